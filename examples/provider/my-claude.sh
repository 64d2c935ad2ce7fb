#!/bin/sh
# A Claude-compatible wrapper: it is called with `-p PROMPT` and prints claude's stream-json. This one writes the file itself.
# A real wrapper passes the prompt to a model and converts the answer to these lines.
set -eu

prompt=
while [ $# -gt 0 ]; do
    case $1 in
    -p)
        prompt=$2
        shift
        ;;
    esac # every other flag is ignored
    shift
done

delta() {
    printf '{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s"}}\n' "$1"
}

if [ -z "$prompt" ]; then
    printf '{"type":"result","is_error":true,"result":"no prompt was given"}\n'
    exit 1
fi

echo "Again, but better." >motto.txt
delta 'The motto is in '
delta 'motto.txt.\n'
delta 'LOOP_COMPLETE\n'
printf '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"mine-1","total_cost_usd":0.002,"usage":{"input_tokens":%d,"output_tokens":12}}\n' "$((${#prompt} / 4))"
