#!/bin/sh
# The check that the gate runs: sum.sh must print the right sums.
failed=0
expect() {
    expected=$1
    shift
    got=$(sh sum.sh "$@" 2>&1)
    if [ "$got" != "$expected" ]; then
        echo "sum of $*: expected $expected, got $got"
        failed=1
    fi
}
expect 5 2 3
expect 10 1 2 3 4
exit $failed
