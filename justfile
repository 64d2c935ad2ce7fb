# Shortcuts for those who work on ralph. Users need none of them.

# Everything that CI checks
ci:
    bash .ci/run

# The fast checks
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test

# The tests that take their time: a gigabyte through the whole path and in one line, a million lines, 500 iterations
slow:
    cargo test --release --test suite -- --ignored run::floods faults::

# The demo, as a new user sees it
demo:
    cargo run --release -- demo

# The real agents' programs, run by the real ralph, against a model on loopback; says SKIPPED where that cannot be
real-agents *arguments:
    tests/real_agents/run.sh {{arguments}}

# Loops in which everything goes wrong that can, for some minutes; ends with a table of what was tried and lost
soak minutes='10':
    RALPH_SOAK_MINUTES={{minutes}} cargo test --release --test suite -- --ignored --nocapture soak::whatever

# An agent that talks without a pause, for some minutes; ends with a table of the memory, files and threads that ralph holds
flood minutes='3':
    RALPH_FLOOD_MINUTES={{minutes}} cargo test --release --test suite -- --ignored --nocapture soak::flood

# What ralph costs, against floors measured in the same run; wants a quiet machine. `just bench F4` measures one figure
bench *figures:
    cargo bench --bench figures -- {{figures}}

# Instructions of the hot paths, against the committed counts; needs valgrind, and minds no noise
bench-check:
    cargo bench --bench counts

# Ten minutes of fuzzing for each target; needs a nightly toolchain and cargo-fuzz
fuzz:
    fuzz/run 600
