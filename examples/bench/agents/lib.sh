# Functions of both scripted agents: read the prompt, use tools, and report them in RTF1 (docs/transcripts.md).
prompt=$(cat)

event() { printf '@@RALPH@@ %s\n' "$1"; }

# write FILE: writes stdin to a file in the workspace.
write() {
    event '{"type":"tool_start","tool":{"id":"t1","name":"Write","input":{"path":"'"$1"'"}}}'
    cat > "$1"
    event '{"type":"tool_end","tool":{"id":"t1","status":"ok"}}'
}

# done_after TOKENS DOLLARS: reports usage and completion.
done_after() {
    event '{"type":"usage","usage":{"prompt_tokens":'"$1"',"completion_tokens":100,"cost_usd":'"$2"'}}'
    event '{"type":"text","tag":"AI","text":"That is done.\n\nLOOP_COMPLETE"}'
}
