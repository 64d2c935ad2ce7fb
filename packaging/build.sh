#!/usr/bin/env bash
# Builds the packages into target/packages:  packaging/build.sh [TARGET]
#
# Without TARGET, the binary is static if the musl target is installed; otherwise it needs the glibc of this machine.
. "$(dirname "$0")/lib.sh"

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-}
if [ -z "$target" ]; then
    target=${host/gnu/musl}
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || target=$host
fi
binaries=$PWD/target/$target/release
mkdir -p "$out"

step "binary for $target"
cargo build --locked --release --target "$target" --bin ralph --bin ralph-run

step "man pages and completions"
# The packages contain what the program itself prints.
rm -rf target/packages/share
mkdir -p target/packages/share/completions
"$binaries/ralph" man --out target/packages/share/man
for shell in bash zsh fish; do
    "$binaries/ralph" completions "$shell" >"target/packages/share/completions/ralph.$shell"
done

step deb
if command -v dpkg >/dev/null; then
    command -v cargo-deb >/dev/null || cargo install --locked --quiet cargo-deb
    cargo deb --no-build --target "$target" --output "$out/"
else
    skip "deb: dpkg is not installed"
fi

step npm
if command -v npm >/dev/null; then
    case $target in
        x86_64-*linux*) os=linux cpu=x64 ;;
        aarch64-*linux*) os=linux cpu=arm64 ;;
        x86_64-*darwin*) os=darwin cpu=x64 ;;
        aarch64-*darwin*) os=darwin cpu=arm64 ;;
        *) fail "no npm platform for $target" ;;
    esac
    stage=$(mktemp -d)
    trap 'rm -rf "$stage"' EXIT
    mkdir -p "$stage/platform/bin" "$stage/launcher"
    cp "$binaries/ralph" "$stage/platform/bin/"
    sed -e "s/@VERSION@/$version/; s/@OS@/$os/; s/@CPU@/$cpu/" packaging/npm/platform.json >"$stage/platform/package.json"
    sed -e "s/@VERSION@/$version/g" packaging/npm/package.json >"$stage/launcher/package.json"
    cp packaging/npm/ralph.js README.md "$stage/launcher/"
    cp LICENSE-MIT LICENSE-APACHE "$stage/launcher/"
    for package in platform launcher; do
        (cd "$stage/$package" && npm pack --silent --pack-destination "$out")
    done
else
    skip "npm: npm is not installed"
fi

step wheel
if command -v python3 >/dev/null && python3 -m venv "$python_tools" 2>/dev/null; then
    "$python_tools/bin/pip" install --quiet 'maturin>=1.7,<2'
    # A static binary runs on every Linux, so it needs no check of its libraries.
    "$python_tools/bin/maturin" build --quiet --locked --release --target "$target" \
        --manifest-path Cargo.toml --out "$out"
else
    skip "wheel: python3 with venv is not installed"
fi

step "Homebrew formula"
# The release workflow fills in the checksums of the archives of all platforms.
packaging/formula.sh /dev/null >"$out/ralph-run.rb"

step packages
ls -l "$out"
