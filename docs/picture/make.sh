#!/bin/sh
# Makes docs/picture.svg: a real capture of the demo's screen. Needs tmux and a built ralph (cargo build).
# The SVG is drawn by examples/ansi_to_svg.rs from what tmux saw.
set -eu
cd "$(dirname "$0")/../.."
ralph=${RALPH:-$PWD/target/debug/ralph}
socket=$(mktemp -u)
tmux="tmux -S $socket -f /dev/null"
trap '$tmux kill-server 2>/dev/null || true' EXIT
$tmux new-session -d -x 110 -y 30 "'$ralph' demo --tui"
tries=0
until $tmux capture-pane -p | grep -q 'q leave'; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "the demo did not end" >&2; exit 1; }
    sleep 0.2
done
# The test's output, unfolded.
$tmux send-keys k k k k k k Enter
sleep 1
$tmux capture-pane -pe | cargo run --quiet --example ansi_to_svg > docs/picture.svg
echo "docs/picture.svg"
