#!/usr/bin/env bash
# Driver script for OpenCode. It is sourced, not executed; docs/drivers.md describes the hooks.

driver_name() { echo "opencode"; }
driver_display_name() { echo "OpenCode"; }
driver_cli_binary() { echo "opencode"; }
driver_min_version() { echo "1.0.0"; }
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }

driver_valid_tools() {
    VALID_TOOL_PATTERNS=(
        "bash" "read" "write" "edit" "patch" "glob" "grep" "list" "todowrite" "todoread" "webfetch" "task"
    )
}

driver_supports_tool_allowlist() { return 1; }
driver_supports_sessions() { return 0; }
driver_supports_live_output() { return 0; }

driver_build_command() {
    local prompt_file="$1" loop_context="$2" session_id="$3" prompt
    CLAUDE_CMD_ARGS=()
    if [[ ! -f "$prompt_file" ]]; then
        echo "there is no prompt file $prompt_file" >&2
        return 1
    fi
    prompt="$(cat "$prompt_file")"
    if [[ -n "$loop_context" ]]; then
        prompt="$loop_context"$'\n\n'"$prompt"
    fi
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "run" "--auto")
    if [[ "${CLAUDE_OUTPUT_FORMAT:-json}" == "json" ]]; then
        CLAUDE_CMD_ARGS+=("--format" "json" "--thinking")
    fi
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--session" "$session_id")
    fi
    CLAUDE_CMD_ARGS+=("--" "$prompt")
}

driver_prepare_live_command() { LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[@]}"); }

driver_stream_filter() {
    echo 'select(.type == "text" and (.part.synthetic | not)) | .part.text + "\n"'
}

# Every output line contains the session id.
driver_extract_session_id_from_output() {
    sed -n 's/.*"sessionID":"\([A-Za-z0-9_-]*\)".*/\1/p' "$1" | head -n 1
}

# Falls back to the newest session of this directory.
driver_fallback_session_id() {
    "$(driver_cli_binary)" session list --format json --max-count 1 2>/dev/null |
        sed -n 's/.*"id": *"\([A-Za-z0-9_-]*\)".*/\1/p' | head -n 1
}

driver_permission_denial_help() {
    echo "OpenCode was refused a tool, or a path outside of the project."
    echo "Allow it under \"permission\" in opencode.json."
}
