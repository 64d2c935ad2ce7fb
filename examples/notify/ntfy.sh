#!/usr/bin/env bash
# A hook for ralph: sends a message to your phone through ntfy (https://ntfy.sh, or your own server).
#
#   hooks:
#     on_complete: NTFY_TOPIC=my-secret-topic ./notify/ntfy.sh
#     on_fail: NTFY_TOPIC=my-secret-topic ./notify/ntfy.sh
#     on_rate_limit: NTFY_TOPIC=my-secret-topic ./notify/ntfy.sh
#
# NTFY_TOPIC    the topic that you subscribed to; on a public server, everyone who knows its name can read it
# NTFY_SERVER   the server (default: https://ntfy.sh)
# NTFY_TOKEN    an access token, if the server requires one
# NTFY_TIMEOUT  timeout in seconds (default: 10)
#
# Needs curl. Always exits with 0.

cat >/dev/null

if [ -z "${NTFY_TOPIC:-}" ]; then
    echo "ntfy.sh: NTFY_TOPIC is not set" >&2
    exit 0
fi

case ${RALPH_HOOK:-} in
complete) priority=default tags=white_check_mark ;;
fail) priority=high tags=x ;;
rate_limit) priority=low tags=hourglass ;;
*) priority=min tags=arrows_counterclockwise ;;
esac

# The token is passed through a file descriptor, because other users can read the arguments of a process.
options=""
if [ -n "${NTFY_TOKEN:-}" ]; then
    options="header = \"Authorization: Bearer $NTFY_TOKEN\""
fi

server="${NTFY_SERVER:-https://ntfy.sh}"
if ! printf '%s' "${RALPH_HOOK_MESSAGE:-test message}" |
    curl --config <(printf '%s\n' "$options") --silent --show-error --fail \
        --output /dev/null --connect-timeout 3 --max-time "${NTFY_TIMEOUT:-10}" \
        --header "Title: ralph: ${RALPH_HOOK:-test}" --header "Priority: $priority" --header "Tags: $tags" \
        --data-binary @- --url "${server%/}/$NTFY_TOPIC"; then
    echo "ntfy.sh: the message was not delivered" >&2
fi

exit 0
