#!/bin/sh
# A scripted stand-in for `ollama run MODEL`: reads the prompt from stdin and prints an answer as plain text, in pieces.
set -eu

if [ "${1:-}" != run ] || [ $# -ne 2 ]; then
    echo "usage: llama.sh run MODEL <prompt" >&2
    exit 2
fi

question=$(head -n 1)
cat >/dev/null # read the rest of the prompt, which ralph adds

printf 'You ask: %s\n' "$question"
printf 'It does the same '
printf 'thing again, until it is right.\n'
printf 'LOOP_COMPLETE\n'
