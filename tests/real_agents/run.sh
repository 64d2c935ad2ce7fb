#!/bin/sh
# The real agents' programs, run by the real ralph, against a model on loopback.
#
# Installs the pinned programs from the npm registry into target/real-agents (or $RALPH_REAL_AGENTS), then runs the
# suite where there is no network but loopback, with throw-away homes and keys that open nothing. Arguments go to the
# suite: a part of a test's name, --nocapture, --test-threads 4.
#
# What cannot be done here is said in one line, SKIPPED, and is no failure. Otherwise the last line says how many tests
# ran; that none did is a failure.
set -eu
cd "$(dirname "$0")/../.."

skip() {
    echo "SKIPPED real agents: $1"
    exit 0
}

[ "$(uname -s)" = Linux ] || skip "network namespaces are Linux's"
for tool in node npm unshare ip git flock timeout; do
    command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done

# Root needs no user namespace; everybody else becomes root inside one of their own.
isolate="unshare --net --pid --fork --kill-child --mount-proc"
[ "$(id -u)" = 0 ] || isolate="$isolate --map-root-user"
$isolate ip link set lo up 2>/dev/null || skip "a network namespace (unshare --net) is not permitted here"

cache=${RALPH_REAL_AGENTS:-target/real-agents}
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
versions=tests/real_agents/versions
names=$(grep -v '^#' "$versions" | cut -d' ' -f1)
# Two at once would install over each other.
exec 9>"$cache/lock"
flock 9

# Installed beside its place and moved there when all of it works: what was interrupted is not taken for good.
if ! cmp -s "$versions" "$cache/programs/installed"; then
    rm -rf "$cache"/installing.*
    new=$(mktemp -d "$cache/installing.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    packages=$(grep -v '^#' "$versions" | while read -r _ package version; do echo "$package@$version"; done)
    echo "installing" $packages
    echo '{ "private": true }' >"$new/package.json"
    # shellcheck disable=SC2086
    if ! timeout 1200 npm install --prefix "$new" --no-audit --no-fund --loglevel=error --fetch-retries=1 \
        --fetch-retry-mintimeout=2000 --fetch-retry-maxtimeout=5000 $packages 9>&- >"$new/log" 2>&1; then
        reason=$(grep -m 1 -E 'npm (ERR!|error) (code|network|syscall|errno)' "$new/log" || tail -n 1 "$new/log")
        skip "the programs could not be had from the npm registry ($reason)"
    fi
    for name in $names; do
        timeout 120 "$new/node_modules/.bin/$name" --version 9>&- >"$new/log" 2>&1 </dev/null ||
            skip "$name does not run on this machine ($(tail -n 1 "$new/log"))"
    done
    cp "$versions" "$new/installed"
    rm -rf "$cache/programs"
    mv "$new" "$cache/programs"
    trap - EXIT
fi

built=$(cargo test --test real_agents --no-run 2>&1) || { echo "$built" >&2; exit 1; }
suite=$(echo "$built" | sed -n 's/.*(\(.*real_agents-[0-9a-f]*\)).*/\1/p')
[ -n "$suite" ] || { echo "the suite was not built" >&2; exit 1; }
# A copy, so that whoever builds meanwhile does not change what is tested.
if [ -z "${RALPH_UNDER_TEST:-}" ]; then
    cp "$(dirname "$(dirname "$suite")")/ralph" "$cache/ralph.new"
    mv "$cache/ralph.new" "$cache/ralph"
    RALPH_UNDER_TEST="$cache/ralph"
fi
export RALPH_UNDER_TEST
RALPH_REAL_AGENTS="$cache/programs"
export RALPH_REAL_AGENTS
# Most of the time the programs wait: for their own patience, or for a limit that is tested.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
export RUST_TEST_THREADS

began=$(date +%s)
log=$(mktemp "$cache/log.XXXXXX")
trap 'rm -f "$log" "$log.code"' EXIT
{
    code=0
    # shellcheck disable=SC2086
    $isolate sh -c 'ip link set lo up && exec "$@"' - "$suite" --ignored "$@" </dev/null 9>&- || code=$?
    echo "$code" >"$log.code"
} | tee "$log"
passed=$(sed -n 's/^test result: .* \([0-9][0-9]*\) passed;.*/\1/p' "$log")
code=$(cat "$log.code")

# Programs of megabytes that share two cores are late at times. What failed among the others is run once more, alone; it
# counts as failed if it fails again, and is named either way.
failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
if [ -n "$failed" ]; then
    code=0
    for name in $failed; do
        # shellcheck disable=SC2086
        if RUST_TEST_THREADS=1 $isolate sh -c 'ip link set lo up && exec "$@"' - \
            "$suite" --ignored --exact "$name" </dev/null 9>&-; then
            echo "FLAKY real agents: $name failed among the others, and passed alone"
            passed=$((${passed:-0} + 1))
        else
            echo "FAILED real agents: $name, twice"
            code=1
        fi
    done
fi
# shellcheck disable=SC2086
echo "real agents: ${passed:-0} tests passed with" $names "in $(($(date +%s) - began)) s"
if [ "${passed:-0}" = 0 ] && [ "$code" = 0 ]; then
    echo "no test ran" >&2
    exit 1
fi
exit "$code"
