#!/bin/sh
# A scripted agent that always reports that it is done.
. "${0%/*}/lib.sh"

case $prompt in
*greet.sh*)
    # Does not run the test.
    write greet.sh <<'END'
#!/bin/sh
echo "Hello, $1!"
END
    ;;
*hello.txt*) echo "Hello, world!" | write hello.txt ;;
*count.txt*) echo 2 | write count.txt ;;
*notes.txt*) echo "a note" | write notes.txt ;; # does not commit
*fizz.sh*) echo 'echo fizz' | write fizz.sh ;;
*slug.sh*) ;; # does nothing
esac
done_after 1000 0.01
