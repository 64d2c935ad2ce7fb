# Shared by the scripts of this directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
out=$PWD/target/packages

step() { printf '\n== %s\n' "$*"; }
skip() { printf 'SKIPPED %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The tools of the Python registry, in an environment of their own.
python_tools=$PWD/target/packages/.python
