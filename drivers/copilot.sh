#!/usr/bin/env bash
# Driver script for the GitHub Copilot CLI. It is sourced, not executed; docs/drivers.md describes the hooks.

driver_name() { echo "copilot"; }
driver_display_name() { echo "GitHub Copilot CLI"; }
driver_cli_binary() { echo "copilot"; }
driver_min_version() { echo "1.0.0"; }
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }

driver_valid_tools() {
    VALID_TOOL_PATTERNS=("shell" "shell(*)" "write" "view" "edit" "create")
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
    # A leading line break keeps a prompt that starts with a dash from being parsed as an option.
    if [[ "$prompt" == -* ]]; then
        prompt=$'\n'"$prompt"
    fi
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "--allow-all" "--no-ask-user")
    if [[ "${CLAUDE_OUTPUT_FORMAT:-json}" == "json" ]]; then
        CLAUDE_CMD_ARGS+=("--output-format" "json" "--stream" "off")
    else
        CLAUDE_CMD_ARGS+=("-s")
    fi
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--resume=$session_id")
    fi
    CLAUDE_CMD_ARGS+=("-p" "$prompt")
}

driver_stream_filter() {
    echo 'select(.type == "assistant.message") | .data.content | select(. != null and . != "") | . + "\n"'
}

driver_permission_denial_help() {
    echo "Copilot was refused a tool. Allow it with --allow-tool, after -- on ralph's command line."
}
