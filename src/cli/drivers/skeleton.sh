#!/usr/bin/env bash
# Driver for @NAME@: defines how ralph calls it. Sourced by bash (3.2 or newer), never executed.
# Functions return text with echo, yes or no with the exit status, command lines in arrays.
# Check it:  ralph drivers check @NAME@
# Use it:    ralph run --agent driver:@NAME@

# --- Required -------------------------------------------------------------------------------------------------------

# Short name in lower case.
driver_name() {
    echo "@NAME@"
}

# Display name.
driver_display_name() {
    echo "@NAME@"
}

# The program: a name in PATH, or a path.
driver_cli_binary() {
    echo "@NAME@"
}

# Tools that an allowlist may contain.
driver_valid_tools() {
    VALID_TOOL_PATTERNS=("Read" "Write" "Edit" "Bash" "Bash(*)")
}

# Sets CLAUDE_CMD_ARGS to the command line for one prompt.
#   $1  file with the prompt
#   $2  additional context for the agent (may be empty)
#   $3  session to resume (empty: new session)
# Also set: CLAUDE_OUTPUT_FORMAT (json or text), CLAUDE_PERMISSION_MODE, CLAUDE_ALLOWED_TOOLS,
# CLAUDE_USE_CONTINUE (true or false).
driver_build_command() {
    local prompt_file="$1" loop_context="$2" session_id="$3" prompt
    if [[ ! -f "$prompt_file" ]]; then
        echo "prompt file not found: $prompt_file" >&2
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

# --- Output ---------------------------------------------------------------------------------------------------------

# jq filter for each line of JSON; its output is the agent's message text.
driver_stream_filter() {
    echo 'select(.type == "text") | .text + "\n"'
}

# Return 1 if the agent prints plain text instead of JSON lines; the filter is then not used.
driver_supports_live_output() {
    return 0
}

# --- Optional -------------------------------------------------------------------------------------------------------

# Sets LIVE_CMD_ARGS from CLAUDE_CMD_ARGS, for a program that needs an option to stream its output.
driver_prepare_live_command() {
    LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[@]}")
}

# Return 0 if the agent accepts a list of allowed tools.
driver_supports_tool_allowlist() {
    return 1
}

# Return 0 if sessions can be resumed.
driver_supports_sessions() {
    return 0
}

# Hint to show when a tool was denied.
driver_permission_denial_help() {
    echo "A tool was denied; check the settings of $DRIVER_DISPLAY_NAME."
}

# Used by `ralph drivers check` and `ralph doctor`.
driver_min_version() {
    echo "0.0.1"
}

driver_check_available() {
    command -v "$(driver_cli_binary)" >/dev/null 2>&1
}

# For programs whose session id ralph does not detect; $1 is the file with the output:
#   driver_extract_session_id_from_output, driver_fallback_session_id
