# Shortcuts for those who work on ralph. Users need none of them.

# Everything that CI checks
ci:
    bash .ci/run

# The fast checks
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test

# The tests that take their time: a gigabyte through the whole path
slow:
    cargo test --release -- --ignored gigabyte

# The demo, as a new user sees it
demo:
    cargo run --release -- demo

# Ten minutes of fuzzing for each target; needs a nightly toolchain and cargo-fuzz
fuzz:
    fuzz/run 600
