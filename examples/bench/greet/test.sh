#!/bin/sh
# Tests greet.sh with a name and without one.
failed=0
expect() {
    got=$(sh greet.sh "$@")
    if [ "$got" = "$want" ]; then
        echo "ok       greet $*"
    else
        echo "FAILED   greet $*: wanted '$want', got '$got'"
        failed=1
    fi
}
want='Hello, Ada!' expect Ada
want='Hello, world!' expect
exit $failed
