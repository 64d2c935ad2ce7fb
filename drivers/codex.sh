#!/usr/bin/env bash
# Driver script for OpenAI Codex. It is sourced, not executed; docs/drivers.md describes the hooks.

driver_name() { echo "codex"; }
driver_display_name() { echo "OpenAI Codex"; }
driver_cli_binary() { echo "codex"; }
driver_min_version() { echo "0.100.0"; }
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }

driver_valid_tools() {
    VALID_TOOL_PATTERNS=("shell" "apply_patch" "web_search" "mcp__*")
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
    # Options that `resume` does not accept must precede it.
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)" "exec" "--skip-git-repo-check" "--sandbox" "workspace-write")
    if [[ "${CLAUDE_OUTPUT_FORMAT:-json}" == "json" ]]; then
        CLAUDE_CMD_ARGS+=("--json")
    fi
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("resume" "$session_id")
    fi
    # After `--`, a prompt may start with a dash.
    CLAUDE_CMD_ARGS+=("--" "$prompt")
}

driver_prepare_live_command() { LIVE_CMD_ARGS=("${CLAUDE_CMD_ARGS[@]}"); }

driver_stream_filter() {
    echo 'select(.type == "item.completed" and .item.type == "agent_message") | (.item.text // empty) + "\n"'
}

driver_permission_denial_help() {
    echo "Codex was refused something outside of its sandbox."
    echo "Start it without one: use cli.backend: codex instead of the driver, or allow it in ~/.codex/config.toml."
}
