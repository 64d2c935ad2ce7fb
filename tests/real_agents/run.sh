#!/bin/sh
# Runs the real agent programs with the real ralph against a model server on loopback.
#
# Installs the pinned programs from the npm registry into target/real-agents (or $RALPH_REAL_AGENTS), then runs the
# suite in a network namespace with loopback only, with temporary homes and keys that are not valid anywhere. Arguments are
# passed to the suite: a part of a test's name, --nocapture, --test-threads 4.
#
# With --latest as the first argument, the suite runs a second time with the newest version of each program, installed
# beside the pinned ones. The script prints which versions are newer and which tests fail only with them, and succeeds.
#
# If the suite cannot run here, the script prints one line, SKIPPED, appends it to $RALPH_SKIP_LOG and succeeds, unless
# RALPH_REQUIRE_ALL=1. Otherwise the last line is the number of tests; zero tests are a failure.
set -eu
cd "$(dirname "$0")/../.."

skip() {
    echo "SKIPPED real agents: $1"
    [ -z "${RALPH_SKIP_LOG:-}" ] || echo "SKIPPED real agents: $1" >>"$RALPH_SKIP_LOG"
    [ "${RALPH_REQUIRE_ALL:-}" != 1 ] || exit 1
    exit 0
}

[ "$(uname -s)" = Linux ] || skip "network namespaces need Linux"
for tool in node npm unshare ip git flock timeout; do
    command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done

# Root needs no user namespace; other users become root inside a new one.
isolate="unshare --net --pid --fork --kill-child --mount-proc"
[ "$(id -u)" = 0 ] || isolate="$isolate --map-root-user"
$isolate ip link set lo up 2>/dev/null || skip "a network namespace (unshare --net) is not permitted here"

if [ "${1:-}" = --latest ]; then
    shift
    compared=$(mktemp -d)
    trap 'rm -rf "$compared"' EXIT
    for which in pinned latest; do
        echo "== $which versions"
        RALPH_AGENT_VERSIONS=$which "$0" "$@" >"$compared/$which" 2>&1 || true
        grep -E '^(SKIPPED|FLAKY|FAILED|real agents:|newer:|installing)' "$compared/$which" || tail -n 5 "$compared/$which"
        { grep '^FAILED' "$compared/$which" || true; } | sort >"$compared/$which.failed"
    done
    new=$(comm -13 "$compared/pinned.failed" "$compared/latest.failed")
    [ -n "$new" ] && printf 'only with the newest versions:\n%s\n' "$new" || echo "no test fails only with the newest versions"
    exit 0
fi

cache=${RALPH_REAL_AGENTS:-target/real-agents}
[ "${RALPH_AGENT_VERSIONS:-}" != latest ] || cache=$cache/latest
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
versions=tests/real_agents/versions
names=$(grep -v -e '^#' -e '^node ' "$versions" | cut -d' ' -f1)
# Two concurrent runs would overwrite each other.
exec 9>"$cache/lock"
flock 9

if [ "${RALPH_AGENT_VERSIONS:-}" = latest ]; then
    grep -v '^#' "$versions" | while read -r name package version; do
        [ "$name" = node ] || version=$(npm view "$package" version 2>/dev/null || echo "$version")
        echo "$name $package $version"
    done >"$cache/versions"
    grep -v '^#' "$versions" | while read -r name package version; do
        newest=$(sed -n "s|^$name $package ||p" "$cache/versions")
        [ "$newest" = "$version" ] || echo "newer: $name $newest (pinned: $version)"
    done
    versions=$cache/versions
fi

# Installed into a temporary directory and moved when everything works, so that an interrupted installation is not used.
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
        skip "the programs could not be installed from the npm registry ($reason)"
    fi
    for name in $names; do
        PATH="$new/node_modules/.bin:$PATH" timeout 120 "$new/node_modules/.bin/$name" --version 9>&- >"$new/log" 2>&1 </dev/null ||
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
# A copy, so that a concurrent build does not change the tested binary.
if [ -z "${RALPH_UNDER_TEST:-}" ]; then
    cp "$(dirname "$(dirname "$suite")")/ralph" "$cache/ralph.new"
    mv "$cache/ralph.new" "$cache/ralph"
    RALPH_UNDER_TEST="$cache/ralph"
fi
export RALPH_UNDER_TEST
RALPH_REAL_AGENTS="$cache/programs"
export RALPH_REAL_AGENTS
# The programs mostly wait for retries or for a limit, so more tests than cores run concurrently.
RUST_TEST_THREADS=${RUST_TEST_THREADS:-4}
export RUST_TEST_THREADS

start=$(date +%s)
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

# Large programs that share two cores are sometimes too slow. A test that failed runs once more, alone; it fails if it fails
# again, and is reported in both cases.
failed=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log")
if [ -n "$failed" ]; then
    code=0
    for name in $failed; do
        # shellcheck disable=SC2086
        if RUST_TEST_THREADS=1 $isolate sh -c 'ip link set lo up && exec "$@"' - \
            "$suite" --ignored --exact "$name" </dev/null 9>&-; then
            echo "FLAKY real agents: $name failed with other tests, and passed alone"
            passed=$((${passed:-0} + 1))
        else
            echo "FAILED real agents: $name, twice"
            code=1
        fi
    done
fi
# shellcheck disable=SC2086
echo "real agents: ${passed:-0} tests passed with" $names "in $(($(date +%s) - start)) s"
if [ "${passed:-0}" = 0 ] && [ "$code" = 0 ]; then
    echo "no test ran" >&2
    exit 1
fi
exit "$code"
