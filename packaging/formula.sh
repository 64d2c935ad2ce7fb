#!/usr/bin/env bash
# Prints the Homebrew formula with the checksums of a SHA256SUMS file:  packaging/formula.sh SHA256SUMS
. "$(dirname "$0")/lib.sh"

formula=$(sed -e "s/@VERSION@/$version/g" packaging/homebrew/ralph-run.rb.in)
while read -r sum file; do
    platform=${file#"ralph-v$version-"}
    formula=${formula//"@SHA256_${platform%.tar.gz}@"/$sum}
done <"$1"
printf '%s\n' "$formula"
