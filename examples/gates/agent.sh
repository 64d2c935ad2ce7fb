#!/bin/sh
# A scripted stand-in for a coding agent that reports completion too early. It does the rest of the work when the prompt (its
# argument) contains the output of the gate.
set -eu

case $1 in
*"expected 10"*)
    cat >sum.sh <<'END'
#!/bin/sh
# Prints the sum of its arguments.
total=0
for number; do
    total=$((total + number))
done
echo "$total"
END
    echo "sum.sh must accept any number of arguments, not only two. Now it adds them all."
    ;;
*)
    cat >sum.sh <<'END'
#!/bin/sh
# Prints the sum of its arguments.
echo $(($1 + $2))
END
    echo "sum.sh added the first number to itself. I fixed it, and all tests pass."
    ;;
esac
echo LOOP_COMPLETE
