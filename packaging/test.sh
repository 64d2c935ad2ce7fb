#!/usr/bin/env bash
# Installs each package of target/packages into an empty place, runs it, uninstalls it, and checks that nothing is left.
. "$(dirname "$0")/lib.sh"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export HOME=$place/home XDG_STATE_HOME=$place/state
mkdir -p "$HOME"
passed=0
skipped=0

# The demo runs the whole loop, so it proves that the program works from where it was installed.
check_program() { # DIRECTORY
    [ "$("$1/ralph" --version)" = "ralph $version" ] || fail "$1/ralph is not version $version"
    [ "$("$1/ralph-run" --version)" = "ralph $version" ] || fail "$1/ralph-run is not version $version"
    "$1/ralph" demo --no-tui | tail -n 3
}

nothing_left() { # DIRECTORY
    local left
    left=$(find "$1" -name '*ralph*' 2>/dev/null | head -n 5)
    [ -z "$left" ] || fail "left after the uninstallation: $left"
    passed=$((passed + 1))
}

step npm
tarballs=("$out"/ralph-run-linux-*.tgz "$out/ralph-run-$version.tgz")
if command -v npm >/dev/null && [ -e "${tarballs[0]}" ]; then
    npm install --silent --global --offline --no-audit --no-fund --prefix "$place/npm" "${tarballs[@]}"
    check_program "$place/npm/bin"
    npm uninstall --silent --global --prefix "$place/npm" ralph-run "$(basename "${tarballs[0]}" "-$version.tgz")"
    nothing_left "$place/npm"
else
    skip "npm: not installed, or no package was built"
    skipped=$((skipped + 1))
fi

step wheel
wheels=("$out"/ralph_run-*.whl)
if [ -e "${wheels[0]}" ] && python3 -m venv "$place/venv" 2>/dev/null; then
    "$place/venv/bin/pip" install --quiet --no-index --no-deps "${wheels[0]}"
    check_program "$place/venv/bin"
    "$place/venv/bin/pip" uninstall --quiet --yes ralph-run
    nothing_left "$place/venv"
else
    skip "wheel: no venv, or no package was built"
    skipped=$((skipped + 1))
fi

step deb
debs=("$out"/ralph-run_*.deb)
if [ "$(id -u)" = 0 ] && command -v dpkg >/dev/null && [ -e "${debs[0]}" ]; then
    if command -v debootstrap >/dev/null || apt-get install --yes --quiet debootstrap >/dev/null 2>&1; then
        # The newest stable release of Debian, with what a fresh installation contains.
        debootstrap --variant=minbase --include=git stable "$place/chroot" >"$place/debootstrap.log" 2>&1 \
            || { tail -n 5 "$place/debootstrap.log"; fail "debootstrap"; }
        cp "${debs[0]}" "$place/chroot/tmp/ralph.deb"
        in_root() { chroot "$place/chroot" env HOME=/tmp/home PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
        in_root dpkg --install /tmp/ralph.deb
        [ "$(in_root ralph --version)" = "ralph $version" ] || fail "wrong version in the chroot"
        in_root ralph demo --no-tui | tail -n 3
        in_root test -e /usr/share/man/man1/ralph.1.gz || fail "no man page"
        in_root test -e /usr/share/bash-completion/completions/ralph || fail "no completions"
        in_root dpkg --purge ralph-run
        rm -rf "$place/chroot/tmp/ralph.deb" "$place/chroot/tmp/home"
        nothing_left "$place/chroot"
    else
        skip "deb: debootstrap cannot be installed"
        skipped=$((skipped + 1))
    fi
else
    skip "deb: needs root and dpkg, and a package that was built"
    skipped=$((skipped + 1))
fi

echo
echo "$passed passed, 0 failed, $skipped skipped"
