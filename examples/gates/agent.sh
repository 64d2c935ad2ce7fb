#!/bin/sh
# Stands in for a coding agent, and for a hasty one: says that it is done after half of the work. It does the other half
# when the prompt, its argument, holds what the gate printed.
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
    echo "I see: any number of arguments, not only two. Now it adds them all."
    ;;
*)
    cat >sum.sh <<'END'
#!/bin/sh
# Prints the sum of its arguments.
echo $(($1 + $2))
END
    echo "sum.sh added the first number to itself. I mended it, and all tests pass."
    ;;
esac
echo LOOP_COMPLETE
