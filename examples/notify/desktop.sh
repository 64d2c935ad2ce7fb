#!/usr/bin/env bash
# A hook for ralph: shows a desktop notification.
#
#   hooks:
#     on_complete: ./notify/desktop.sh
#     on_fail: ./notify/desktop.sh
#
# Uses notify-send (Linux) or osascript (macOS). ralph sets RALPH_HOOK to the name of the event and RALPH_HOOK_MESSAGE to a
# one-line message, and writes a JSON document to stdin, which this script ignores. Always exits with 0.

cat >/dev/null

title="ralph: ${RALPH_HOOK:-test}"
message="${RALPH_HOOK_MESSAGE:-test notification}"
urgency=normal
if [ "${RALPH_HOOK:-}" = fail ]; then
    urgency=critical
fi

# Runs a command with a timeout of five seconds, if the `timeout` program exists.
with_timeout() {
    if command -v timeout >/dev/null 2>&1; then
        timeout 5 "$@"
    else
        "$@"
    fi
}

if command -v notify-send >/dev/null 2>&1; then
    with_timeout notify-send --app-name=ralph --urgency="$urgency" -- "$title" "$message"
elif command -v osascript >/dev/null 2>&1; then
    # The texts are arguments, not part of the script, so text from an agent is never executed.
    with_timeout osascript -e 'on run argv' \
        -e 'display notification (item 2 of argv) with title (item 1 of argv)' \
        -e 'end run' -- "$title" "$message"
else
    echo "desktop.sh: neither notify-send nor osascript is installed" >&2
fi

exit 0
