#!/bin/sh
# A scripted stand-in for a coding agent. It does the first open item of TODO.md, as PROMPT.md asks, and ignores its argument,
# the prompt.
set -eu

item=$(sed -n 's/^- \[ \] //p' TODO.md | head -n 1)
if [ -z "$item" ]; then
    echo "All items are ticked. There is nothing left to do."
    echo LOOP_COMPLETE
    exit 0
fi

file=${item%%:*}
text=${item#*: }
echo "$text" >"$file"
echo "I wrote \"$text\" to $file."

awk '!ticked && sub(/^- \[ \]/, "- [x]") { ticked = 1 } { print }' TODO.md >TODO.new
mv TODO.new TODO.md

if ! grep -q '^- \[ \]' TODO.md; then
    echo "That was the last one."
    echo LOOP_COMPLETE
fi
