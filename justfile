# Development shortcuts.

# Run every check that CI runs
ci:
    bash .ci/run

# Run the fast checks
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo clippy --lib --bins -- -D warnings
    cargo test

# Print each module with its lines of production code and the modules that it uses; `just modules --mermaid` draws the graph
modules *arguments:
    .ci/modules {{arguments}}

# Run the slow tests: 1 GB of output, 1 GB in one line, a million lines, 500 iterations, 200 kills
slow:
    cargo test --release --test suite -- --ignored run::floods faults:: snapshots:: gates:: resume::

# Build the packages, then install, run and uninstall each of them
packages:
    packaging/build.sh
    packaging/test.sh

# Build the documentation as a site in target/site; needs mdbook
site:
    docs/site.sh

# Run the demo
demo:
    cargo run --release -- demo

# Test the real agent programs against a model server on loopback; prints SKIPPED if that is not possible
real-agents *arguments:
    tests/real_agents/run.sh {{arguments}}

# Test plans on several workers with the engine's development server; prints SKIPPED without it. Needs protoc
fleet *tests:
    cargo build
    cd fleet && cargo test && cargo build
    fleet/tests/run.sh {{tests}}

# Run loops with random faults for some minutes, then print a table of faults tried and data lost
soak minutes='10':
    RALPH_SOAK_MINUTES={{minutes}} cargo test --release --test suite -- --ignored --nocapture soak::random_faults

# Run an agent that prints continuously for some minutes, then print a table of ralph's memory, files and threads
flood minutes='3':
    RALPH_FLOOD_MINUTES={{minutes}} cargo test --release --test suite -- --ignored --nocapture soak::flood

# Measure performance against baselines taken in the same run, on a quiet machine; `just bench F4` measures one figure
bench *figures:
    cargo bench --bench figures -- {{figures}}

# Compare instruction counts of the hot paths with the committed counts; needs valgrind, works on a busy machine
bench-check:
    cargo bench --bench counts

# Fuzz each target for ten minutes; needs a nightly toolchain and cargo-fuzz
fuzz:
    fuzz/run 600
