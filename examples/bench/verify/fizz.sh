#!/bin/sh
# Checks the complete output of fizz.sh.
want="1 2 fizz 4 5 fizz 7 8 fizz 10 11 fizz 13 14 fizz"
got=$(echo $(sh fizz.sh))
[ "$got" = "$want" ] || { echo "fizz.sh printed: $got"; exit 1; }
