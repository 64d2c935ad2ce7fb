//! The same iteration with all options.

use super::*;

#[test]
fn single_iteration_with_tools() {
    insta::assert_snapshot!(rendered(PLAIN, single_iteration), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │ ✗ 48.1s · 2 lines
            │   running 3 tests
            │   failed
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
    ACTIONS │ 2 calls, 1 failed: Read · Bash
     REPORT │ ✓ done: the agent printed LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Done, but unverified: no gates are configured.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 input, 38,000 of them cached; 1,200 output)
      cost        $0.12 of $20.00 (reported)
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn terminal_output_is_wrapped() {
    insta::assert_snapshot!(rendered(LIVE, single_iteration), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │ ✗ 48.1s · 2 lines
            │   running 3 tests
            │   failed
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
    ACTIONS │ 2 calls, 1 failed: Read · Bash
     REPORT │ ✓ done: the agent printed LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Done, but unverified: no gates are configured.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 input, 38,000 of them cached; 1,200 output)
      cost        $0.12 of $20.00 (reported)
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn output_fits_40_columns() {
    insta::assert_snapshot!(rendered(PlainOptions { width: 40, ..LIVE }, single_iteration), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────── 08:00 ──
        SYS │ session 3f2a91bc · claude-op…
      THINK │ The parser drops the last
            │ line when it has no newline.
            │ I should look at the reader
            │ …
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the
            │   stream into lines and keeps
            │   the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspac…
            │ ✗ 48.1s · 2 lines
            │   running 3 tests
            │   failed
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
            │
    ACTIONS │ 2 calls, 1 failed: Read ·
            │ Bash
     REPORT │ ✓ done: the agent printed
            │ LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k
            │ cached) · $0.12 (reported)
            │ so far: 48.0s · 46.2k tokens
            │ (38.0k cached) · $0.12 of
            │ $20.00

    ✓ Done, but unverified: no gates are configured.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 input, 38,000 of them cached; 1,200 output)
      cost        $0.12 of $20.00 (reported)
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn verbose_shows_input_output_and_reasoning_in_full() {
    let options = PlainOptions {
        verbosity: Verbosity::Verbose,
        ..LIVE
    };
    insta::assert_snapshot!(rendered(options, single_iteration), @"
    ralph 0.1.0 · run 20260301-080000-3f2a
      agent       claude 2.1.0
      limits      100 iterations · 4h00m · $20.00
      workspace   /home/me/parser
      started     2026-03-01 08:00

    ── iteration 1/100 ─────────────────────────────────────────────────── 08:00 ──
        SYS │ started process 4242: claude -p Fix it
        SYS │ session 3f2a91bc · claude-opus-4
      THINK │ The parser drops the last line when it has no newline. I should look
            │ at the reader first. Then I will write a test that fails, and only
            │ then change the code, because the bug may well be somewhere else
            │ entirely and a test tells me so at once. Let me begin.
         AI │ I'll look at the code first.
            │
            │ Three things matter:
            │ - the reader, which cuts the stream into lines and keeps the rest
            │ - the parser
       TOOL │ ▸ Read src/lib.rs
            │   file_path: /home/me/parser/src/lib.rs
            │ ┊ one
            │ ┊ two
            │ ┊ three
            │ ✓ 12ms · 3 lines
       TOOL │ ▸ Bash cargo test --workspace --all-features -- --test-threads=1 --n…
            │   command: cargo test --workspace --all-features -- --test-threads=1
            │   --nocapture 2>&1 | tail -50
            │ ┊ running 3 tests
            │ ┊ failed
            │ ✗ 48.1s · 2 lines
         AI │ Fixed.
            │
            │ LOOP_COMPLETE
        SYS │ the agent ended with exit code 0 after 1m01s
            │
    ACTIONS │ 2 calls, 1 failed: Read · Bash
     REPORT │ ✓ done: the agent printed LOOP_COMPLETE
            │ 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
            │ so far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00

    ✓ Done, but unverified: no gates are configured.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 input, 38,000 of them cached; 1,200 output)
      cost        $0.12 of $20.00 (reported)
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn quiet_prints_only_the_final_report() {
    let options = PlainOptions {
        verbosity: Verbosity::Quiet,
        ..LIVE
    };
    insta::assert_snapshot!(rendered(options, single_iteration), @"
    ✓ Done, but unverified: no gates are configured.
      iterations  1 of 100
      time        1m10s
      tokens      46,200 (45,000 input, 38,000 of them cached; 1,200 output)
      cost        $0.12 of $20.00 (reported)
      gates       none
      journal     /home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
}

#[test]
fn colors_do_not_change_the_text() {
    let text = rendered(PlainOptions { color: true, ..LIVE }, single_iteration);
    insta::assert_snapshot!(visible(&text), @"
    ␛[1mralph 0.1.0 · run 20260301-080000-3f2a␛[0m
    ␛[2m  agent       ␛[0mclaude 2.1.0
    ␛[2m  limits      ␛[0m100 iterations · 4h00m · $20.00
    ␛[2m  workspace   ␛[0m/home/me/parser
    ␛[2m  started     ␛[0m2026-03-01 08:00

    ␛[2m── ␛[0m␛[1miteration 1/100␛[0m␛[2m ─────────────────────────────────────────────────── 08:00 ──␛[0m
        ␛[2mSYS␛[0m␛[2m │␛[0m session 3f2a91bc · claude-opus-4
      ␛[2mTHINK␛[0m␛[2m │␛[0m ␛[2mThe parser drops the last line when it has no newline. I should look␛[0m
           ␛[2m │␛[0m ␛[2mat the reader first. Then I will write a test that fails, and only␛[0m
           ␛[2m │␛[0m ␛[2mthen change the code, because the bug may well be somewhere else␛[0m
           ␛[2m │␛[0m …
         ␛[1mAI␛[0m␛[2m │␛[0m I'll look at the code first.
           ␛[2m │␛[0m
           ␛[2m │␛[0m Three things matter:
           ␛[2m │␛[0m - the reader, which cuts the stream into lines and keeps the rest
           ␛[2m │␛[0m - the parser
       ␛[36mTOOL␛[0m␛[2m │␛[0m ▸ ␛[36mRead␛[0m src/lib.rs
           ␛[2m │␛[0m ␛[32m✓␛[0m ␛[2m12ms · 3 lines␛[0m
       ␛[36mTOOL␛[0m␛[2m │␛[0m ▸ ␛[36mBash␛[0m cargo test --workspace --all-features -- --test-threads=1 --n…
           ␛[2m │␛[0m ␛[1m␛[31m✗␛[0m ␛[2m48.1s · 2 lines␛[0m
           ␛[2m │␛[0m   running 3 tests
           ␛[2m │␛[0m   failed
         ␛[1mAI␛[0m␛[2m │␛[0m Fixed.
           ␛[2m │␛[0m
           ␛[2m │␛[0m LOOP_COMPLETE
           ␛[2m │␛[0m
    ␛[1mACTIONS␛[0m␛[2m │␛[0m 2 calls, 1 failed: Read · Bash
     ␛[1mREPORT␛[0m␛[2m │␛[0m ␛[32m✓␛[0m done: the agent printed LOOP_COMPLETE
           ␛[2m │␛[0m 1m05s · 46.2k tokens (38.0k cached) · $0.12 (reported)
           ␛[2m │␛[0m ␛[2mso far: 48.0s · 46.2k tokens (38.0k cached) · $0.12 of $20.00␛[0m

    ␛[32m✓␛[0m␛[1m Done, but unverified: no gates are configured.␛[0m
    ␛[2m  iterations  ␛[0m1 of 100
    ␛[2m  time        ␛[0m1m10s
    ␛[2m  tokens      ␛[0m46,200 (45,000 input, 38,000 of them cached; 1,200 output)
    ␛[2m  cost        ␛[0m$0.12 of $20.00 (reported)
    ␛[2m  gates       ␛[0mnone
    ␛[2m  journal     ␛[0m/home/me/.local/state/ralph/projects/parser-12/runs/20260301-080000-3f2a
    ");
    let bare = anstream::adapter::strip_str(&text).to_string();
    assert_eq!(bare, rendered(LIVE, single_iteration));
}
