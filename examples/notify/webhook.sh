#!/usr/bin/env bash
# A hook for ralph: posts the event as JSON to a URL.
#
#   hooks:
#     on_complete: ./notify/webhook.sh https://example.org/ralph
#     on_fail: ./notify/webhook.sh https://example.org/ralph
#
# WEBHOOK_URL      the URL, if it is not given as an argument; use this for a URL that contains a secret
# WEBHOOK_TOKEN    a bearer token (optional)
# WEBHOOK_FORMAT   set to text to send {"text": "…"}, which Slack, Mattermost and Rocket.Chat accept
# WEBHOOK_TIMEOUT  timeout in seconds (default: 10)
#
# Needs curl. Always exits with 0.

url="${1:-${WEBHOOK_URL:-}}"
document=$(cat)

if [ -z "$url" ]; then
    echo "webhook.sh: no URL; pass it as an argument or set WEBHOOK_URL" >&2
    exit 0
fi

# Prints a text as a JSON string. RALPH_HOOK_MESSAGE is one line without control characters.
quoted() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$text"
}

if [ "${WEBHOOK_FORMAT:-json}" = text ]; then
    document="{\"text\": $(quoted "ralph: ${RALPH_HOOK_MESSAGE:-a test}")}"
fi

# The token is passed through a file descriptor, because other users can read the arguments of a process.
options=""
if [ -n "${WEBHOOK_TOKEN:-}" ]; then
    options="header = $(quoted "Authorization: Bearer $WEBHOOK_TOKEN")"
fi

if ! printf '%s\n' "$document" | curl --config <(printf '%s\n' "$options") --silent --show-error --fail \
    --output /dev/null --connect-timeout 3 --max-time "${WEBHOOK_TIMEOUT:-10}" \
    --header 'Content-Type: application/json' --data-binary @- --url "$url"; then
    echo "webhook.sh: the message was not delivered" >&2
fi

exit 0
