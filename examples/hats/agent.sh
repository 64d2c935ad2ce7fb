#!/bin/sh
# A scripted stand-in for a coding agent with hats. A real agent reads its role from the prompt; this one reads RALPH_HAT, which
# ralph sets for every agent.
set -eu

touch poem.txt
lines=$(($(wc -l <poem.txt)))

case ${RALPH_HAT:-none} in
planner)
    if [ "$lines" -ge 2 ]; then
        echo "The poem has two lines, and both passed the review."
        echo LOOP_COMPLETE
    else
        echo "Line $((lines + 1)) is next."
        echo "<event topic=\"plan.ready\">Line $((lines + 1)), about a loop.</event>"
    fi
    ;;
builder)
    case $lines in
    0)
        echo "Round and round the same small hill" >poem.txt
        echo "Wrote the first line."
        ;;
    *)
        if grep -q 'hill$' poem.txt; then
            echo "Round and round the same small hill." >poem.txt
            echo "Added the full stop."
        else
            echo "Every time a bit less ill." >>poem.txt
            echo "Wrote the second line."
        fi
        ;;
    esac
    # Publishes nothing, so ralph publishes the hat's `default_publishes`.
    ;;
reviewer)
    if tail -n 1 poem.txt | grep -q '\.$'; then
        echo '<event topic="review.passed">The line is complete.</event>'
    else
        echo '<event topic="review.rejected">The full stop is missing.</event>'
    fi
    ;;
*)
    echo "unknown hat: ${RALPH_HAT:-none}" >&2
    exit 1
    ;;
esac
