#!/usr/bin/env bash
# A hook for ralph: posts the JSON document to a web address.
#
#   hooks:
#     on_complete: ./notify/webhook.sh https://example.org/ralph
#     on_fail: ./notify/webhook.sh https://example.org/ralph
#
# The address may also be in WEBHOOK_URL (keep one that holds a secret out of ralph.yml), with WEBHOOK_TOKEN as the
# bearer token, if there is one. With WEBHOOK_FORMAT=text the body is {"text": "…"}, which Slack, Mattermost and Rocket.Chat
# take. It has WEBHOOK_TIMEOUT seconds (10). Needs curl. Always exits with 0.

url="${1:-${WEBHOOK_URL:-}}"
document=$(cat)

if [ -z "$url" ]; then
    echo "webhook.sh: no address; give it as the argument or in WEBHOOK_URL" >&2
    exit 0
fi

# A text as a JSON string. What ralph puts into RALPH_HOOK_MESSAGE is one line without control characters.
quoted() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "$text"
}

if [ "${WEBHOOK_FORMAT:-json}" = text ]; then
    document="{\"text\": $(quoted "ralph: ${RALPH_HOOK_MESSAGE:-a test}")}"
fi

# The token goes by a private descriptor: everybody can read the arguments of a program.
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
