#!/bin/sh
# Writes the pictures of the web page to docs/pictures: a scripted agent works in a few projects, and headless Chromium opens the page.
# Needs node, Chromium, a built ralph (cargo build), and playwright-core, which tests/serve/browser/run.sh installs.
set -eu
cd "$(dirname "$0")/../.."
RALPH_BIN=${RALPH:-$PWD/target/debug/ralph}
PLAYWRIGHT=${PLAYWRIGHT:-$PWD/target/browser/node_modules/playwright-core/index.mjs}
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
PICTURES=${1:-$PWD/docs/pictures}
export RALPH_BIN PLAYWRIGHT CHROMIUM PICTURES
exec timeout 300 node docs/picture/serve.mjs
