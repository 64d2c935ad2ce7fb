#!/bin/sh
# Stands in for a coding agent that wears a different hat each time. A real one is told by its prompt; this one looks at
# RALPH_HAT, which every agent gets.
set -eu

touch poem.txt
lines=$(($(wc -l <poem.txt)))

case ${RALPH_HAT:-none} in
planner)
    if [ "$lines" -ge 2 ]; then
        echo "Two lines, both reviewed. The poem is whole."
        echo LOOP_COMPLETE
    else
        echo "Line $((lines + 1)) is next."
        echo "<event topic=\"plan.ready\">Line $((lines + 1)), about going round.</event>"
    fi
    ;;
builder)
    case $lines in
    0)
        echo "Round and round the same small hill" >poem.txt
        echo "The first line is there."
        ;;
    *)
        if grep -q 'hill$' poem.txt; then
            echo "Round and round the same small hill." >poem.txt
            echo "Now with its full stop."
        else
            echo "Every time a bit less ill." >>poem.txt
            echo "The second line is there."
        fi
        ;;
    esac
    # Nothing is published here: `default_publishes` does it.
    ;;
reviewer)
    if tail -n 1 poem.txt | grep -q '\.$'; then
        echo '<event topic="review.passed">A whole sentence.</event>'
    else
        echo '<event topic="review.rejected">The full stop is missing.</event>'
    fi
    ;;
*)
    echo "I wear no hat that I know." >&2
    exit 1
    ;;
esac
