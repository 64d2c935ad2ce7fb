#!/bin/sh
# Runs the page of `ralph serve` in a real browser: headless Chromium, driven by playwright-core from the npm registry.
#
# Usage: tests/serve/browser/run.sh [DIRECTORY]     With a directory, screenshots are written to it.
#
# If the browser cannot run here, the script prints one line, SKIPPED, appends it to $RALPH_SKIP_LOG and succeeds, unless
# RALPH_REQUIRE_ALL=1. Otherwise the last line is the number of tests.
set -eu
cd "$(dirname "$0")/../../.."

skip() {
    echo "SKIPPED browser: $1"
    [ -z "${RALPH_SKIP_LOG:-}" ] || echo "SKIPPED browser: $1" >>"$RALPH_SKIP_LOG"
    [ "${RALPH_REQUIRE_ALL:-}" != 1 ] || exit 1
    exit 0
}

for tool in node npm bash; do
    command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
done
find_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! find_chromium >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update && DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y chromium; } >target/chromium.log 2>&1 || true
fi
CHROMIUM=$(find_chromium) || skip "Chromium is not installed and cannot be installed"
export CHROMIUM

tools=target/browser
version=1.64.1
if [ "$(cat "$tools/installed" 2>/dev/null)" != "$version" ]; then
    mkdir -p "$tools"
    echo '{ "private": true }' >"$tools/package.json"
    timeout 300 npm install --prefix "$tools" --no-audit --no-fund --loglevel=error "playwright-core@$version" >"$tools/log" 2>&1 \
        || skip "playwright-core cannot be installed: $(tail -n 1 "$tools/log")"
    echo "$version" >"$tools/installed"
fi

cargo build --locked --quiet
RALPH_BIN=$PWD/target/debug/ralph
SCREENSHOTS=${1:-}
PLAYWRIGHT=$PWD/$tools/node_modules/playwright-core/index.mjs
export RALPH_BIN SCREENSHOTS PLAYWRIGHT
exec timeout 300 node tests/serve/browser/page.mjs
