#!/bin/sh
# Stands in for a model's command line: `llama.sh run MODEL` reads a prompt on stdin, up to its end, and prints an answer
# in plain text, a piece at a time.
set -eu

if [ "${1:-}" != run ] || [ $# -ne 2 ]; then
    echo "usage: llama.sh run MODEL <prompt" >&2
    exit 2
fi

question=$(head -n 1)
cat >/dev/null # what ralph adds to the prompt is read, too

printf 'You ask: %s\n' "$question"
printf 'It does the same '
printf 'thing again, until it is right.\n'
printf 'LOOP_COMPLETE\n'
