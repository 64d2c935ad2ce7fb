#!/bin/sh
# Checks slug.sh with two titles that are not in the prompt.
[ -f slug.sh ] || { echo "there is no slug.sh"; exit 1; }
for title in "one two" "x  y z"; do
    want=$title
    while case $want in *" "*) ;; *) false ;; esac; do want="${want%% *}-${want#* }"; done
    got=$(sh slug.sh "$title")
    [ "$got" = "$want" ] || { echo "'$title' became '$got', not '$want'"; exit 1; }
done
