#!/usr/bin/env bash
# Runs tests of the suite in unusual conditions: with ignored signals, under nohup, without a terminal, as the first process
# of a namespace, and with a read-only HOME.
# Usage: tests/conditions.sh [FILTER …]      Without FILTER, runs the whole suite in each condition.
# RALPH_SUITE names the test program if it is already built.
set -uo pipefail
cd "$(dirname "$0")/.."

suite=${RALPH_SUITE:-}
if [ -z "$suite" ]; then
    cargo test --locked --quiet --no-run --test suite || exit 1
    suite=$(cargo test --locked --no-run --test suite --message-format=json 2>/dev/null \
        | sed -n 's/.*"name":"suite".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
fi
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
failed=0

check() { # NAME COMMAND…
    local name=$1
    shift
    if "$@" >"$log/out" 2>&1 </dev/null; then
        printf '%-28s %s\n' "$name" "$(grep '^test result: ' "$log/out" || tail -n 1 "$log/out")"
    else
        failed=1
        printf '%-28s FAILED\n' "$name"
        sed -n '/^failures:/,$p' "$log/out"
    fi
}

# SIGINT is ignored in a background job of a non-interactive shell, and a shell cannot trap what was ignored when it started.
background() { bash -c '"$@" & wait $!' bash "$@"; }
ignoring() { (trap '' INT HUP && exec "$@"); }
read_only_home() {
    unshare --mount bash -c 'mkdir -p /tmp/read-only-home && mount -t tmpfs -o ro none /tmp/read-only-home &&
        HOME=/tmp/read-only-home exec "$@"' bash "$@"
}

check "background job" background "$suite" "$@"
check "SIGINT and SIGHUP ignored" ignoring "$suite" "$@"
check "nohup" nohup "$suite" "$@"
check "no terminal" setsid --wait "$suite" "$@"
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    check "first process" unshare --pid --fork --mount-proc "$suite" "$@"
    check "read-only HOME" read_only_home "$suite" "$@"
else
    echo "SKIPPED first process, read-only HOME: namespaces are not permitted here"
fi
exit "$failed"
