#!/bin/sh
# Writes docs/picture.svg: a screen of the demo, captured with tmux and converted by examples/ansi_to_svg.rs.
# Needs tmux and a built ralph (cargo build).
set -eu
cd "$(dirname "$0")/../.."
ralph=${RALPH:-$PWD/target/debug/ralph}
socket=$(mktemp -u)
tmux="tmux -S $socket -f /dev/null"
trap '$tmux kill-server 2>/dev/null || true' EXIT
$tmux new-session -d -x 110 -y 30 "'$ralph' demo --tui"
tries=0
until $tmux capture-pane -p | grep -q 'q quit'; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "the demo did not end" >&2; exit 1; }
    sleep 0.2
done
$tmux capture-pane -pe | cargo run --quiet --example ansi_to_svg > docs/picture.svg
echo "docs/picture.svg"
