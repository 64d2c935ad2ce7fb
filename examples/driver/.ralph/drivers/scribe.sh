#!/usr/bin/env bash
# Driver for `scribe`. Sourced by bash, never executed. `ralph drivers new NAME` writes a skeleton with every hook.

driver_name() { echo "scribe"; }
driver_display_name() { echo "Scribe"; }
driver_cli_binary() { echo "./scribe"; }
driver_valid_tools() { VALID_TOOL_PATTERNS=("Write"); }

# $1: the prompt file; $2: extra context (may be empty); $3: the session to resume (empty for a new session)
driver_build_command() {
    local prompt_file="$1" session_id="$3"
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "--json")
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--resume" "$session_id")
    fi
    CLAUDE_CMD_ARGS+=("$(cat "$prompt_file")")
}

# Extracts the agent's answer from each JSON line. ralph evaluates the filter itself; jq is not needed.
driver_stream_filter() {
    echo 'if .kind == "text" then .text + "\n" elif .kind == "file" then "wrote " + .path + "\n" else empty end'
}
