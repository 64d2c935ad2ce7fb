#!/usr/bin/env bash
# A hook for ralph: shows what happened on your desktop.
#
#   hooks:
#     on_complete: ./notify/desktop.sh
#     on_fail: ./notify/desktop.sh
#
# Uses notify-send (Linux) or osascript (macOS). ralph gives the event's name in RALPH_HOOK, the sentence in
# RALPH_HOOK_MESSAGE, and a JSON document on stdin, which is not needed here. Always exits with 0.

cat >/dev/null

title="ralph: ${RALPH_HOOK:-test}"
message="${RALPH_HOOK_MESSAGE:-this is how a notification looks}"
urgency=normal
if [ "${RALPH_HOOK:-}" = fail ]; then
    urgency=critical
fi

# Ends a command that takes longer than five seconds, where there is a program for that.
briefly() {
    if command -v timeout >/dev/null 2>&1; then
        timeout 5 "$@"
    else
        "$@"
    fi
}

if command -v notify-send >/dev/null 2>&1; then
    briefly notify-send --app-name=ralph --urgency="$urgency" -- "$title" "$message"
elif command -v osascript >/dev/null 2>&1; then
    # The texts are arguments, not part of the script: whatever an agent wrote, it is not run.
    briefly osascript -e 'on run argv' \
        -e 'display notification (item 2 of argv) with title (item 1 of argv)' \
        -e 'end run' -- "$title" "$message"
else
    echo "desktop.sh: neither notify-send nor osascript is here" >&2
fi

exit 0
