#!/usr/bin/env bash
# Driver script for the Cursor CLI. It is sourced, not executed; docs/drivers.md describes the hooks.

driver_name() { echo "cursor"; }
driver_display_name() { echo "Cursor CLI"; }
driver_min_version() { echo "2025.1.0"; }

# The program is installed as `cursor-agent` or as `agent`.
driver_cli_binary() {
    if command -v cursor-agent >/dev/null 2>&1 || ! command -v agent >/dev/null 2>&1; then
        echo "cursor-agent"
    else
        echo "agent"
    fi
}

driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }

driver_valid_tools() {
    VALID_TOOL_PATTERNS=("read_file" "edit_file" "run_terminal_cmd" "grep_search" "list_dir" "file_search" "web_search")
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
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "-p" "--force" "--trust" "--output-format" "${CLAUDE_OUTPUT_FORMAT:-json}")
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--resume" "$session_id")
    fi
    CLAUDE_CMD_ARGS+=("--" "$prompt")
}

driver_prepare_live_command() {
    local previous="" argument
    LIVE_CMD_ARGS=()
    for argument in "${CLAUDE_CMD_ARGS[@]}"; do
        if [[ "$previous" == "--output-format" && "$argument" == "json" ]]; then
            LIVE_CMD_ARGS+=("stream-json")
        else
            LIVE_CMD_ARGS+=("$argument")
        fi
        previous="$argument"
    done
}

driver_stream_filter() {
    cat <<'FILTER'
if .type == "assistant" then
  [.message.content[]? | select(.type == "text") | .text] | join("") | select(. != "") | . + "\n"
else empty end
FILTER
}

driver_permission_denial_help() {
    echo "Cursor was refused a tool. Allow it under permissions in .cursor/cli.json."
}
