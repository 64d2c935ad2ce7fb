#!/usr/bin/env bash
# Builds the documentation as a site into target/site. Installs mdbook if it is missing.
#
# Links to files outside of docs/ lead to the repository, at the tag of this version if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v mdbook >/dev/null || cargo install --locked --quiet mdbook
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
revision=main
git rev-parse --quiet --verify "v$version^{commit}" >/dev/null && revision=v$version
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)

rm -rf target/site target/site-source
mkdir -p target
cp -r docs target/site-source
rm target/site-source/site.sh
sed -i "s/^title = .*/title = \"ralph $version\"/" target/site-source/book.toml
find target/site-source -name '*.md' -exec sed -i -E \
    -e "s#\]\((\.\./)+(examples|README\.md|CONTRIBUTING\.md|CHANGELOG\.md|SECURITY\.md|src|tests|benches|fuzz|drivers|justfile|\.ci|packaging)([^)]*)\)#]($repository/blob/$revision/\2\3)#g" {} +
mdbook build target/site-source --dest-dir "$PWD/target/site"

# Every link inside of the site must lead to a page.
broken=0
while IFS= read -r page; do
    directory=$(dirname "$page")
    while IFS= read -r link; do
        case $link in http*|mailto:*|\#*|'') continue ;; esac
        file=${link%%#*}
        [ -e "$directory/$file" ] || { echo "broken link in ${page#target/site/}: $link"; broken=1; }
    done < <(grep -oE 'href="[^"]*"' "$page" | sed 's/^href="//; s/"$//' | sort -u)
done < <(find target/site -name '*.html' ! -name 'print.html' ! -name '404.html' ! -name 'toc.html')
[ "$broken" = 0 ] || { echo "error: broken links"; exit 1; }
echo "target/site/index.html"
