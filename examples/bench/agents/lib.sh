# What both scripted agents need: they read a prompt, use tools, and tell of it in RTF1 (docs/transcripts.md).
prompt=$(cat)

tell() { printf '@@RALPH@@ %s\n' "$1"; }

# write FILE: stdin into a file of the workspace.
write() {
    tell '{"type":"tool_start","tool":{"id":"t1","name":"Write","input":{"path":"'"$1"'"}}}'
    cat > "$1"
    tell '{"type":"tool_end","tool":{"id":"t1","status":"ok"}}'
}

# done_after TOKENS DOLLARS: what it took, and the claim to be done.
done_after() {
    tell '{"type":"usage","usage":{"prompt_tokens":'"$1"',"completion_tokens":100,"cost_usd":'"$2"'}}'
    tell '{"type":"text","tag":"AI","text":"That is done.\n\nLOOP_COMPLETE"}'
}
