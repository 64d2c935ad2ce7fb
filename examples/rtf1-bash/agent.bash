#!/usr/bin/env bash
# A scripted agent that prints RTF1: a line that starts with "@@RALPH@@ " contains one event as JSON. All other lines are the
# answer. Works with bash 3.2 or later and does not need jq.
set -u

event() { printf '@@RALPH@@ %s\n' "$1"; }

# Prints a text as a JSON string.
quoted() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\t'/\\t}
    text=${text//$'\r'/\\r}
    text=${text//$'\n'/\\n}
    printf '"%s"' "$text"
}

# Runs a command as a tool call and reports its output and status. Usage: tool ID COMMAND
tool() {
    local id=$1 command=$2 output status=ok
    event "{\"type\":\"tool_start\",\"tool\":{\"id\":\"$id\",\"name\":\"shell\",\"input\":{\"cmd\":$(quoted "$command")}}}"
    output=$(bash -c "$command" 2>&1) || status=fail
    event "{\"type\":\"tool_output\",\"tool\":{\"id\":\"$id\"},\"text\":$(quoted "$output")}"
    event "{\"type\":\"tool_end\",\"tool\":{\"id\":\"$id\",\"status\":\"$status\"}}"
    [ "$status" = ok ]
}

prompt=$(cat)

event '{"type":"meta","meta":{"kind":"session","session_id":"bash-1"}}'
event '{"type":"text","tag":"THINK","text":"List the scripts, count them, write the number to count.txt."}'
tool t1 'ls *.sh'               # matches no file, so this tool call fails
tool t2 'ls *.bash | wc -l | tr -d " " >count.txt && cat count.txt'
event "{\"type\":\"usage\",\"usage\":{\"prompt_tokens\":$((${#prompt} / 4)),\"completion_tokens\":40,\"model\":\"none\"}}"

if [ -s count.txt ]; then
    echo "There is one script here. The number is in count.txt."
    echo LOOP_COMPLETE
else
    echo "count.txt could not be written."
fi
