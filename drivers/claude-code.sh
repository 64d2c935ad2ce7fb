#!/usr/bin/env bash
# Driver script for Claude Code. It is sourced, not executed; docs/drivers.md describes the hooks.

driver_name() { echo "claude-code"; }
driver_display_name() { echo "Claude Code"; }
driver_cli_binary() { echo "claude"; }
driver_min_version() { echo "2.0.0"; }
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null 2>&1; }

driver_valid_tools() {
    VALID_TOOL_PATTERNS=(
        "Read" "Write" "Edit" "MultiEdit" "NotebookEdit" "Glob" "Grep" "LS"
        "Task" "TodoWrite" "WebFetch" "WebSearch" "Skill" "BashOutput" "KillShell"
        "Bash" "Bash(*)" "mcp__*"
    )
}

driver_supports_tool_allowlist() { return 0; }
driver_supports_sessions() { return 0; }
driver_supports_live_output() { return 0; }

driver_build_command() {
    local prompt_file="$1" loop_context="$2" session_id="$3" prompt list tool
    CLAUDE_CMD_ARGS=()
    if [[ ! -f "$prompt_file" ]]; then
        echo "there is no prompt file $prompt_file" >&2
        return 1
    fi
    # A leading line break keeps a prompt that starts with a dash from being parsed as an option.
    prompt="$(cat "$prompt_file")"
    if [[ "$prompt" == -* ]]; then
        prompt=$'\n'"$prompt"
    fi
    CLAUDE_CMD_ARGS=("$(driver_cli_binary)")
    if [[ "${CLAUDE_OUTPUT_FORMAT:-json}" == "json" ]]; then
        CLAUDE_CMD_ARGS+=("--output-format" "json")
    fi
    CLAUDE_CMD_ARGS+=("--permission-mode" "${CLAUDE_PERMISSION_MODE:-bypassPermissions}")
    # A question would block an unattended run.
    CLAUDE_CMD_ARGS+=("--disallowedTools" "AskUserQuestion" "EnterPlanMode" "ExitPlanMode")
    if [[ -n "${CLAUDE_ALLOWED_TOOLS:-}" ]]; then
        CLAUDE_CMD_ARGS+=("--allowedTools")
        list="$CLAUDE_ALLOWED_TOOLS,"
        while [[ -n "$list" ]]; do
            tool="${list%%,*}"
            list="${list#*,}"
            tool="${tool#"${tool%%[![:space:]]*}"}"
            tool="${tool%"${tool##*[![:space:]]}"}"
            if [[ -n "$tool" ]]; then
                CLAUDE_CMD_ARGS+=("$tool")
            fi
        done
    fi
    if [[ "${CLAUDE_USE_CONTINUE:-}" == "true" && -n "$session_id" ]]; then
        CLAUDE_CMD_ARGS+=("--resume" "$session_id")
    fi
    if [[ -n "$loop_context" ]]; then
        CLAUDE_CMD_ARGS+=("--append-system-prompt" "$loop_context")
    fi
    CLAUDE_CMD_ARGS+=("-p" "$prompt")
}

# stream-json requires --verbose.
driver_prepare_live_command() {
    local previous="" argument
    LIVE_CMD_ARGS=()
    for argument in "${CLAUDE_CMD_ARGS[@]}"; do
        if [[ "$previous" == "--output-format" && "$argument" == "json" ]]; then
            LIVE_CMD_ARGS+=("stream-json" "--verbose")
        else
            LIVE_CMD_ARGS+=("$argument")
        fi
        previous="$argument"
    done
}

driver_stream_filter() {
    cat <<'FILTER'
if .type == "assistant" then
  .message.content[]? | if .type == "text" then .text + "\n"
                        elif .type == "tool_use" then "[\(.name)]\n"
                        else empty end
else empty end
FILTER
}

driver_permission_denial_help() {
    echo "Claude Code was refused a tool."
    echo "Allow it: add it to driver.allowed_tools in ralph.yml, or to ALLOWED_TOOLS in ${RALPHRC_FILE:-.ralphrc}."
    echo "Or allow everything: driver.permission_mode: bypassPermissions"
}
