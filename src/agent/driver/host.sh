# The host of a driver script. Run as: bash --norc --noprofile -p -c HOST ralph TASK DRIVER COUNT [NAME=VALUE]... [ARG]...
# Speaks on descriptor 9, in fields that each end with a NUL byte; whatever the driver prints goes to stderr.
# Nothing newer than bash 3.2 is used, and nothing but builtins, so that no function of the driver comes between.
exec 9>&1 1>&2 </dev/null

ralph_say() { builtin printf '%s\0' "$@" >&9; }
ralph_has() { builtin declare -F "$1" >/dev/null; }

# What a hook prints, and how it ended. In a subshell: `exit` ends only that.
ralph_text() {
    ralph_has "$1" || return 0
    ralph_say begin "$1"
    ralph_printed=$("$@" </dev/null)
    ralph_status=$?
    set +eu
    set +o pipefail
    ralph_say text "$1" "$ralph_status" "$ralph_printed"
}

# Only how it ended.
ralph_flag() {
    ralph_has "$1" || return 0
    ralph_say begin "$1"
    if ( "$1" ) </dev/null >/dev/null; then ralph_status=0; else ralph_status=$?; fi
    ralph_say flag "$1" "$ralph_status"
}

# In this very shell, for the array that it fills.
ralph_call() {
    ralph_say begin "$1"
    if "$@" </dev/null; then ralph_status=0; else ralph_status=$?; fi
    set +eu
    set +o pipefail
    ralph_say done "$1" "$ralph_status"
}

readonly -f ralph_say ralph_has ralph_text ralph_flag ralph_call
ralph_task=$1 ralph_driver=$2 ralph_count=$3
shift 3
while [ "$ralph_count" -gt 0 ]; do
    unset -v "${1%%=*}"
    builtin printf -v "${1%%=*}" '%s' "${1#*=}"
    shift
    ralph_count=$((ralph_count - 1))
done
unset -v CLAUDE_CMD_ARGS LIVE_CMD_ARGS VALID_TOOL_PATTERNS

ralph_say ralph-driver 1 "$BASH_VERSION" begin source
. "$ralph_driver"
ralph_status=$?
set +eu
set +o pipefail
unset -f builtin
ralph_say done source "$ralph_status"

for ralph_hook in driver_name driver_display_name driver_cli_binary driver_valid_tools driver_build_command; do
    ralph_has "$ralph_hook" || ralph_say missing "$ralph_hook"
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
        ralph_has "$ralph_hook" && ralph_say has "$ralph_hook"
    done
    [ "$ralph_task" = check ] && ralph_flag driver_check_available
    if ralph_has driver_valid_tools; then
        VALID_TOOL_PATTERNS=()
        ralph_call driver_valid_tools
        ralph_say array VALID_TOOL_PATTERNS "${#VALID_TOOL_PATTERNS[@]}" ${VALID_TOOL_PATTERNS[@]+"${VALID_TOOL_PATTERNS[@]}"}
    fi
    ;;
build)
    CLAUDE_CMD_ARGS=()
    ralph_call driver_build_command "$1" "$2" "$3"
    ralph_say array CLAUDE_CMD_ARGS "${#CLAUDE_CMD_ARGS[@]}" ${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"}
    LIVE_CMD_ARGS=(${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"})
    if ralph_has driver_prepare_live_command; then
        LIVE_CMD_ARGS=()
        ralph_call driver_prepare_live_command
    fi
    ralph_say array LIVE_CMD_ARGS "${#LIVE_CMD_ARGS[@]}" ${LIVE_CMD_ARGS[@]+"${LIVE_CMD_ARGS[@]}"}
    ;;
session)
    ralph_text "$1" "$2"
    ;;
esac
ralph_say end
