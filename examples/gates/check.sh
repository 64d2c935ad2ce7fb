#!/bin/sh
# The check that the agent must pass, and may not talk its way around.
failed=0
expect() {
    wanted=$1
    shift
    got=$(sh sum.sh "$@" 2>&1)
    if [ "$got" != "$wanted" ]; then
        echo "sum of $*: expected $wanted, got $got"
        failed=1
    fi
}
expect 5 2 3
expect 10 1 2 3 4
exit $failed
