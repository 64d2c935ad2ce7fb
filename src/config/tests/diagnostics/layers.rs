//! Unreadable files, and errors in other layers than the project's file.

use super::*;

#[test]
fn file_that_is_not_utf8() {
    insta::assert_snapshot!(error_for(b"cli:\n  model: caf\xe9 noir\n"), @r"
    invalid UTF-8
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   model: caf� noir
      |             ^
      |
      = help: save the file as UTF-8
    ");
}

#[test]
fn file_that_is_a_directory() {
    let fixture = ConfigFixture::new();
    fs::create_dir(fixture.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(fixture.error(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: it is a directory, not a regular file
    ");
}

#[test]
fn file_that_is_a_dangling_link() {
    let fixture = ConfigFixture::new();
    std::os::unix::fs::symlink("gone.yml", fixture.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(fixture.error(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: No such file or directory (os error 2)
    ");
}

#[test]
fn file_that_is_too_large() {
    let fixture = ConfigFixture::new().write("project/ralph.yml", "#".repeat(2 << 20));
    insta::assert_snapshot!(fixture.error(), @r"
    configuration file /tmp/x/project/ralph.yml is larger than 1048576 bytes
    ");
}

#[test]
fn named_file_that_does_not_exist() {
    let mut fixture = ConfigFixture::new().write("project/ralph.yml", "session: fresh\n");
    fixture.file = Some(PathBuf::from("nightly.yml"));
    insta::assert_snapshot!(fixture.error(), @r"
    configuration file /tmp/x/project/nightly.yml does not exist
    ");
}

#[test]
fn alias_bomb() {
    let many = format!("cli:\n  args: [&x aaaa{}]\n", ", *x".repeat(500));
    insta::assert_snapshot!(error_for(many), @r"
    invalid YAML: too large, too deeply nested, or too many aliases
     --> /tmp/x/project/ralph.yml:2:419
      |
    2 | …x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *…
      |                                                             ^^
      |
      = help: write the values out instead of using aliases
    ");
}

#[test]
fn nested_alias_bomb_is_not_expanded() {
    let mut text = String::from("hats:\n  h0: &h0 {triggers: &t0 [x, x, x, x, x, x, x, x]}\n");
    for level in 1..30 {
        let below = vec![format!("*t{}", level - 1); 8].join(", ");
        text.push_str(&format!(
            "  h{level}: &h{level} {{triggers: &t{level} [{below}]}}\n"
        ));
    }
    let error = error_for(text);
    assert!(
        error.starts_with("`hats.h1.triggers[0]`: expected a string, found `*t0`"),
        "{error}"
    );
}

#[test]
fn error_in_the_users_file() {
    let fixture = ConfigFixture::new()
        .write("home/ralph.yml", "sesion: fresh\n")
        .write("project/ralph.yml", "session: fresh\n");
    insta::assert_snapshot!(fixture.error(), @r"
    `sesion`: unknown key
     --> /tmp/x/home/ralph.yml:1:1
      |
    1 | sesion: fresh
      | ^^^^^^
      |
      = help: did you mean `session`?
    ");
}

#[test]
fn variable_that_is_not_a_number() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_MAX_ITERATIONS", "ten").error(), @r"
    environment variable `RALPH_MAX_ITERATIONS`: expected an integer, found `ten`
    ");
}

#[test]
fn variable_with_an_unknown_unit() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_MAX_RUNTIME_SECONDS", "8 hours").error(), @r"
    environment variable `RALPH_MAX_RUNTIME_SECONDS`: expected a duration such as `90s`, `5m`, `1h30m`, or a number of seconds, found `8 hours`
      = help: write `8h`
    ");
}

#[test]
fn variable_out_of_range() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_MAX_COST_USD", "NaN").error(), @r"
    environment variable `RALPH_MAX_COST_USD`: expected a finite number greater than 0, found `NaN`
      = help: omit it for no cost limit
    ");
}

#[test]
fn variable_with_an_unknown_format() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_TRANSCRIPT", "codex_text").error(), @r"
    environment variable `RALPH_TRANSCRIPT`: expected a transcript format, found `codex_text`
      = help: did you mean `codex-text`?
    ");
}

#[test]
fn variable_with_an_unclosed_quote() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_AGENT_CMD", "agent 'x").error(), @r"
    environment variable `RALPH_AGENT_CMD`: unclosed single quote
    ");
}

#[test]
fn variable_without_a_command() {
    insta::assert_snapshot!(
        ConfigFixture::new().set("RALPH_AGENT_CMD", "  ").error(), @r"
    environment variable `RALPH_AGENT_CMD`: expected a command, found only whitespace
    ");
}

#[test]
fn flag_out_of_range() {
    let mut fixture = ConfigFixture::new();
    fixture.flags.event_loop.max_iterations = Some(0);
    insta::assert_snapshot!(fixture.error(), @r"
    `event_loop.max_iterations` (command line): expected at least 1, found `0`
      = help: omit it to use the default
    ");
}
