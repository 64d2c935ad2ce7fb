#!/usr/bin/env bash
# A driver for @NAME@: tells ralph how to call it. Sourced by bash (3.2 or newer), never executed.
# Text is returned with echo, yes and no with the exit status, command lines in arrays.
# Try it:  ralph drivers check @NAME@
# Use it:  ralph run --agent driver:@NAME@

# --- What every driver must define ---------------------------------------------------------------------------------

# A short name in lower case.
driver_name() {
    echo "@NAME@"
}

# The name that people read.
driver_display_name() {
    echo "@NAME@"
}

# The program: a name that is looked up in PATH, or a path.
driver_cli_binary() {
    echo "@NAME@"
}

# The tools that an allowlist may name.
driver_valid_tools() {
    VALID_TOOL_PATTERNS=("Read" "Write" "Edit" "Bash" "Bash(*)")
}

# The whole command line for one prompt, in CLAUDE_CMD_ARGS.
#   $1  the file that holds the prompt
#   $2  more context for the agent (may be empty)
#   $3  the session to resume (empty: a new one)
# Also set: CLAUDE_OUTPUT_FORMAT (json or text), CLAUDE_PERMISSION_MODE, CLAUDE_ALLOWED_TOOLS,
# CLAUDE_USE_CONTINUE (true or false).
driver_build_command() {
    local prompt_file="$1" loop_context="$2" session_id="$3" prompt
    if [[ ! -f "$prompt_file" ]]; then
        echo "there is no prompt file $prompt_file" >&2
        return 1
    fi
    prompt="$(cat "$prompt_file")"
    if [[ -n "$loop_context" ]]; then
        prompt="$loop_context"$'\n\n'"$prompt"
    fi
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "--output-format" "${CLAUDE_OUTPUT_FORMAT:-json}")
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--resume" "$session_id")
    fi
    CLAUDE_CMD_ARGS+=("$prompt")
}

# --- What of its output is the agent's answer ----------------------------------------------------------------------

# A jq filter that is applied to each line of JSON; what it prints is what the agent said.
driver_stream_filter() {
    echo 'select(.type == "text") | .text + "\n"'
}

# Return 1 if it prints plain text, not lines of JSON; then the filter is not used.
driver_supports_live_output() {
    return 0
}

# --- What may be left out ------------------------------------------------------------------------------------------

# Turns CLAUDE_CMD_ARGS into LIVE_CMD_ARGS, for a program that streams only when it is asked to.
driver_prepare_live_command() {
    LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[@]}")
}

# 0 if it takes a list of allowed tools.
driver_supports_tool_allowlist() {
    return 1
}

# 0 if a session can be resumed.
driver_supports_sessions() {
    return 0
}

# What helps when a tool was refused.
driver_permission_denial_help() {
    echo "$DRIVER_DISPLAY_NAME was refused a tool; see its own settings."
}

# Asked by `ralph drivers check` and `ralph doctor`.
driver_min_version() {
    echo "0.0.1"
}

driver_check_available() {
    command -v "$(driver_cli_binary)" >/dev/null 2>&1
}

# Two more, for programs whose session id ralph does not find by itself; $1 is the file with the output:
#   driver_extract_session_id_from_output, driver_fallback_session_id
