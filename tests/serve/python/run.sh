#!/bin/sh
# Checks the HTTP API against its OpenAPI document with schemathesis, and the exported traces with the OTLP definitions of
# OpenTelemetry for Python. Both come from PyPI.
#
# If that is not possible here, the script prints one line, SKIPPED, appends it to $RALPH_SKIP_LOG and succeeds, unless
# RALPH_REQUIRE_ALL=1.
set -eu
cd "$(dirname "$0")/../../.."

skip() {
    echo "SKIPPED api: $1"
    [ -z "${RALPH_SKIP_LOG:-}" ] || echo "SKIPPED api: $1" >>"$RALPH_SKIP_LOG"
    [ "${RALPH_REQUIRE_ALL:-}" != 1 ] || exit 1
    exit 0
}

command -v python3 >/dev/null 2>&1 || skip "python3 is not installed"
tools=target/api
versions="schemathesis==4.32.5 opentelemetry-proto==1.45.2"
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$versions" ]; then
    mkdir -p "$tools"
    python3 -m venv "$tools/python" >"$tools/log" 2>&1 || skip "a Python environment cannot be created: $(tail -n 1 "$tools/log")"
    # shellcheck disable=SC2086 # a list
    timeout 300 "$tools/python/bin/pip" install --quiet $versions >"$tools/log" 2>&1 || skip "packages cannot be installed: $(tail -n 1 "$tools/log")"
    echo "$versions" >"$tools/installed"
fi
[ -n "${RALPH_BIN:-}" ] || cargo build --locked --quiet
RALPH_BIN=${RALPH_BIN:-$PWD/target/debug/ralph}
export RALPH_BIN
exec timeout 600 "$tools/python/bin/python" tests/serve/python/check.py
