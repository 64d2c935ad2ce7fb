#!/bin/sh
# A scripted agent that solves every task. In one task its first attempt is wrong, and it fixes the result after a gate fails.
. "${0%/*}/lib.sh"

case $prompt in
*greet.sh*)
    write greet.sh <<'END'
#!/bin/sh
echo "Hello, ${1:-world}!"
END
    ;;
*hello.txt*) echo "Hello, world!" | write hello.txt ;;
*count.txt*) cat ./*.txt | grep -c '^TODO' | write count.txt ;;
*notes.txt*)
    echo "a note" | write notes.txt
    git add notes.txt
    git -c user.name=careful -c user.email=careful@localhost commit --quiet --message "Add notes"
    ;;
*fizz.sh*"exit code 1"*)
    write fizz.sh <<'END'
n=1
while [ $n -le 15 ]; do
    if [ $((n % 3)) = 0 ]; then echo fizz; else echo $n; fi
    n=$((n + 1))
done
END
    ;;
*fizz.sh*) echo 'echo fizz' | write fizz.sh ;;
*slug.sh*)
    write slug.sh <<'END'
title=$1
while case $title in *" "*) ;; *) false ;; esac; do title="${title%% *}-${title#* }"; done
echo "$title"
END
    ;;
esac
done_after 2000 0.02
