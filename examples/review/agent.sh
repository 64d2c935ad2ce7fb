#!/bin/sh
# A scripted stand-in for a coding agent and for five reviewers. ralph sets RALPH_REVIEWER for a reviewer, which works in a copy of
# the project and answers with JSON.
set -eu

finding() { # file, line, category, severity, claim
    printf '{"file": "%s", "line": %s, "category": "%s", "severity": "%s", "claim": "%s"}' "$@"
}

answer() {
    printf 'I have read slug.sh and test.sh.\n{"findings": [%s]}\n' "$1"
}

case ${RALPH_REVIEWER:-worker} in
correctness)
    if grep -q 'A-Z' slug.sh; then answer ''; else
        answer "$(finding slug.sh 2 correctness high 'Upper case stays: slug.sh Hello prints Hello.')"
    fi
    ;;
security)
    if grep -q 'printf' slug.sh; then answer ''; else
        answer "$(finding slug.sh 2 security high 'The argument is not quoted, so the shell expands * in it.')"
    fi
    ;;
tests)
    answer "$(finding test.sh 2 tests medium 'Only one input is tested.')"
    ;;
simplicity | task)
    answer ''
    ;;
worker)
    if [ ! -e slug.sh ]; then
        printf '#!/bin/sh\necho $1 | tr " " -\n' >slug.sh
        printf '#!/bin/sh\n[ "$(sh slug.sh "a b")" = a-b ]\n' >test.sh
        echo "Wrote slug.sh and test.sh."
    else
        printf '#!/bin/sh\nprintf "%%s\\n" "$1" | tr "A-Z " "a-z-"\n' >slug.sh
        echo "Fixed what the reviewers found."
        echo '<event topic="finding">F1 fixed</event>'
        echo '<event topic="finding">F3 fixed</event>'
    fi
    echo LOOP_COMPLETE
    ;;
esac
