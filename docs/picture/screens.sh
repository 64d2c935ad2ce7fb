#!/bin/sh
# Writes pictures of the TUI in three sizes: docs/picture-80x24.svg, docs/picture-120x40.svg and docs/picture-200x60.svg. They
# show the end of the demo, captured with tmux and converted by examples/ansi_to_svg.rs.
# Needs tmux and a built ralph (cargo build).
set -eu
cd "$(dirname "$0")/../.."
ralph=${RALPH:-$PWD/target/debug/ralph}
directory=${1:-docs}
socket=$(mktemp -u)
tmux="tmux -S $socket -f /dev/null"
trap '$tmux kill-server 2>/dev/null || true' EXIT
cargo build --quiet --locked --example ansi_to_svg
for size in 80x24 120x40 200x60; do
    columns=${size%x*}
    $tmux new-session -d -s "$size" -x "$columns" -y "${size#*x}" "'$ralph' demo --tui"
    tries=0
    until $tmux capture-pane -p -t "$size" | grep -q 'q quit'; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "the demo did not end" >&2; exit 1; }
        sleep 0.2
    done
    $tmux capture-pane -pe -t "$size" | target/debug/examples/ansi_to_svg "$columns" > "$directory/picture-$size.svg"
    $tmux kill-session -t "$size"
    echo "$directory/picture-$size.svg"
done
