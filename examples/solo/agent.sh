#!/bin/sh
# Stands in for a coding agent: does the first open item of TODO.md, as PROMPT.md asks. The prompt is its argument.
set -eu

item=$(sed -n 's/^- \[ \] //p' TODO.md | head -n 1)
if [ -z "$item" ]; then
    echo "Every item is ticked; there is nothing left to do."
    echo LOOP_COMPLETE
    exit 0
fi

file=${item%%:*}
text=${item#*: say }
echo "$text" >"$file"
echo "I wrote \"$text\" to $file."

awk '!ticked && sub(/^- \[ \]/, "- [x]") { ticked = 1 } { print }' TODO.md >TODO.new
mv TODO.new TODO.md

if ! grep -q '^- \[ \]' TODO.md; then
    echo "That was the last one."
    echo LOOP_COMPLETE
fi
