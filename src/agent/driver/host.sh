# Sources a driver script and calls its hooks. Run as: bash --norc --noprofile -p -c HOST ralph TASK DRIVER COUNT [NAME=VALUE]... [ARG]...
# Writes frames of NUL-terminated fields to descriptor 9; everything that the driver prints goes to stderr.
# Uses only features of bash 3.2, and only builtins, so that functions of the driver cannot interfere.
exec 9>&1 1>&2 </dev/null

ralph_emit() { builtin printf '%s\0' "$@" >&9; }
ralph_has() { builtin declare -F "$1" >/dev/null; }

# Emits the output and the status of a hook. The hook runs in a subshell, so `exit` ends only the subshell.
ralph_text() {
    ralph_has "$1" || return 0
    ralph_emit begin "$1"
    ralph_printed=$("$@" </dev/null)
    ralph_status=$?
    set +eu
    set +o pipefail
    ralph_emit text "$1" "$ralph_status" "$ralph_printed"
}

# Emits only the status of a hook.
ralph_flag() {
    ralph_has "$1" || return 0
    ralph_emit begin "$1"
    if ( "$1" ) </dev/null >/dev/null; then ralph_status=0; else ralph_status=$?; fi
    ralph_emit flag "$1" "$ralph_status"
}

# Runs a hook in the current shell, because it sets an array.
ralph_call() {
    ralph_emit begin "$1"
    if "$@" </dev/null; then ralph_status=0; else ralph_status=$?; fi
    set +eu
    set +o pipefail
    ralph_emit done "$1" "$ralph_status"
}

readonly -f ralph_emit ralph_has ralph_text ralph_flag ralph_call
ralph_task=$1 ralph_driver=$2 ralph_count=$3
shift 3
while [ "$ralph_count" -gt 0 ]; do
    unset -v "${1%%=*}"
    builtin printf -v "${1%%=*}" '%s' "${1#*=}"
    shift
    ralph_count=$((ralph_count - 1))
done
unset -v CLAUDE_CMD_ARGS LIVE_CMD_ARGS VALID_TOOL_PATTERNS

ralph_emit ralph-driver 1 "$BASH_VERSION" begin source
. "$ralph_driver"
ralph_status=$?
set +eu
set +o pipefail
unset -f builtin
ralph_emit done source "$ralph_status"

for ralph_hook in driver_name driver_display_name driver_cli_binary driver_valid_tools driver_build_command; do
    ralph_has "$ralph_hook" || ralph_emit missing "$ralph_hook"
done

case $ralph_task in
describe|check)
    ralph_text driver_name
    ralph_text driver_display_name
    DRIVER_DISPLAY_NAME=$ralph_printed
    ralph_text driver_cli_binary
    CLAUDE_CODE_CMD=$ralph_printed
    ralph_text driver_min_version
    ralph_text driver_stream_filter
    ralph_text driver_permission_denial_help
    for ralph_hook in driver_supports_tool_allowlist driver_supports_sessions driver_supports_live_output; do
        ralph_flag "$ralph_hook"
    done
    for ralph_hook in driver_prepare_live_command driver_extract_session_id_from_output driver_fallback_session_id; do
        ralph_has "$ralph_hook" && ralph_emit has "$ralph_hook"
    done
    [ "$ralph_task" = check ] && ralph_flag driver_check_available
    if ralph_has driver_valid_tools; then
        VALID_TOOL_PATTERNS=()
        ralph_call driver_valid_tools
        ralph_emit array VALID_TOOL_PATTERNS "${#VALID_TOOL_PATTERNS[@]}" ${VALID_TOOL_PATTERNS[@]+"${VALID_TOOL_PATTERNS[@]}"}
    fi
    ;;
build)
    CLAUDE_CMD_ARGS=()
    ralph_call driver_build_command "$1" "$2" "$3"
    ralph_emit array CLAUDE_CMD_ARGS "${#CLAUDE_CMD_ARGS[@]}" ${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"}
    LIVE_CMD_ARGS=(${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"})
    if ralph_has driver_prepare_live_command; then
        LIVE_CMD_ARGS=()
        ralph_call driver_prepare_live_command
    fi
    ralph_emit array LIVE_CMD_ARGS "${#LIVE_CMD_ARGS[@]}" ${LIVE_CMD_ARGS[@]+"${LIVE_CMD_ARGS[@]}"}
    ;;
session)
    ralph_text "$1" "$2"
    ;;
esac
ralph_emit end
