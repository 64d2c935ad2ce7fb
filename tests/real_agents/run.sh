#!/bin/sh
# The real agents' programs, run by the real ralph, against a model on loopback.
#
# Installs the pinned programs from the npm registry into target/real-agents (or $RALPH_REAL_AGENTS), then runs the
# suite where there is no network but loopback, with throw-away homes and keys that open nothing. Arguments go to the
# suite: a part of a test's name, --nocapture, --test-threads 4.
#
# What cannot be done here is said in one line, SKIPPED, and is no failure.
set -eu
cd "$(dirname "$0")/../.."

skip() {
    echo "SKIPPED real agents: $1"
    exit 0
}

for tool in npm node unshare ip git; do
    command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
[ "$(uname -s)" = Linux ] || skip "network namespaces are Linux's"

# Root needs no user namespace; everybody else becomes root inside one of their own.
isolate="unshare --net --pid --fork --kill-child --mount-proc"
[ "$(id -u)" = 0 ] || isolate="$isolate --map-root-user"
$isolate ip link set lo up 2>/dev/null || skip "a network namespace is not permitted here"

cache=${RALPH_REAL_AGENTS:-target/real-agents}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
versions=tests/real_agents/versions
if ! cmp -s "$versions" "$cache/installed"; then
    rm -f "$cache/installed"
    packages=$(grep -v '^#' "$versions" | while read -r _ package version; do echo "$package@$version"; done)
    echo "installing" $packages
    echo '{ "private": true }' >"$cache/package.json"
    # shellcheck disable=SC2086
    npm install --prefix "$cache" --no-audit --no-fund --loglevel=error $packages ||
        skip "the packages could not be installed"
    cp "$versions" "$cache/installed"
fi
for program in $(grep -v '^#' "$versions" | cut -d' ' -f1); do
    [ -x "$cache/node_modules/.bin/$program" ] || skip "the package of $program has no program for this machine"
done

cargo build --bin ralph
suite=$(cargo test --test real_agents --no-run 2>&1 | tee /dev/stderr | sed -n 's/.*(\(.*real_agents-[0-9a-f]*\)).*/\1/p')
[ -n "$suite" ] || { echo "the suite was not built" >&2; exit 1; }

RALPH_REAL_AGENTS="$cache"
export RALPH_REAL_AGENTS
# shellcheck disable=SC2086
exec $isolate sh -c 'ip link set lo up && exec "$@"' - "$suite" --ignored "$@"
