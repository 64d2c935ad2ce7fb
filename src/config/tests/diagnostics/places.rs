//! Files that cannot be read, and mistakes outside of the project's file.

use super::*;

#[test]
fn file_that_is_not_utf8() {
    insta::assert_snapshot!(complaint_about(b"cli:\n  model: caf\xe9 noir\n"), @r"
    the file is not UTF-8 text
     --> /tmp/x/project/ralph.yml:2:13
      |
    2 |   model: caf� noir
      |             ^
      |
      = help: save it as UTF-8; other encodings are not read
    ");
}

#[test]
fn file_that_is_a_directory() {
    let place = Place::new();
    fs::create_dir(place.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(place.complaint(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: Is a directory (os error 21)
    ");
}

#[test]
fn file_that_leads_nowhere() {
    let place = Place::new();
    std::os::unix::fs::symlink("gone.yml", place.path("project/ralph.yml")).unwrap();
    insta::assert_snapshot!(place.complaint(), @r"
    cannot read configuration file /tmp/x/project/ralph.yml: No such file or directory (os error 2)
    ");
}

#[test]
fn file_that_is_far_too_large() {
    let place = Place::new().write("project/ralph.yml", "#".repeat(2 << 20));
    insta::assert_snapshot!(place.complaint(), @r"
    configuration file /tmp/x/project/ralph.yml is larger than 1048576 bytes
    ");
}

#[test]
fn named_file_that_does_not_exist() {
    let mut place = Place::new().write("project/ralph.yml", "session: fresh\n");
    place.file = Some(PathBuf::from("nightly.yml"));
    insta::assert_snapshot!(place.complaint(), @r"
    configuration file /tmp/x/project/nightly.yml does not exist
    ");
}

#[test]
fn alias_bomb() {
    let many = format!("cli:\n  args: [&x aaaa{}]\n", ", *x".repeat(500));
    insta::assert_snapshot!(complaint_about(many), @r"
    not valid YAML: it is too long, too deep, or repeats too much
     --> /tmp/x/project/ralph.yml:2:419
      |
    2 | …x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *x, *…
      |                                                             ^^
      |
      = help: write the values out instead of using aliases
    ");
}

#[test]
fn nested_alias_bomb_is_not_unfolded() {
    let mut text = String::from("hats:\n  h0: &h0 {triggers: &t0 [x, x, x, x, x, x, x, x]}\n");
    for level in 1..30 {
        let below = vec![format!("*t{}", level - 1); 8].join(", ");
        text.push_str(&format!(
            "  h{level}: &h{level} {{triggers: &t{level} [{below}]}}\n"
        ));
    }
    let complaint = complaint_about(text);
    assert!(
        complaint.starts_with("`hats.h1.triggers[0]` must be text, but is `*t0`"),
        "{complaint}"
    );
}

#[test]
fn mistake_in_the_users_own_file() {
    let place = Place::new()
        .write("home/ralph.yml", "sesion: fresh\n")
        .write("project/ralph.yml", "session: fresh\n");
    insta::assert_snapshot!(place.complaint(), @r"
    `sesion` is not a known key
     --> /tmp/x/home/ralph.yml:1:1
      |
    1 | sesion: fresh
      | ^^^^^^
      |
      = help: did you mean `session`?
    ");
}

#[test]
fn variable_that_is_no_number() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_ITERATIONS", "ten").complaint(), @r"
    environment variable `RALPH_MAX_ITERATIONS` must be a whole number, but is `ten`
    ");
}

#[test]
fn variable_with_a_unit() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_RUNTIME_SECONDS", "8h").complaint(), @r"
    environment variable `RALPH_MAX_RUNTIME_SECONDS` must be a whole number of seconds, but is `8h`
      = help: times are given in seconds, without a unit: write `28800`
    ");
}

#[test]
fn variable_out_of_range() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_MAX_COST_USD", "NaN").complaint(), @r"
    environment variable `RALPH_MAX_COST_USD` must be more than 0 and finite, but is `NaN`
      = help: leave it out for no limit on the cost
    ");
}

#[test]
fn variable_with_an_unknown_name() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_TRANSCRIPT", "codex_text").complaint(), @r"
    environment variable `RALPH_TRANSCRIPT` must be a transcript format, but is `codex_text`
      = help: did you mean `codex-text`?
    ");
}

#[test]
fn variable_with_an_open_quote() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_AGENT_CMD", "agent 'x").complaint(), @r"
    environment variable `RALPH_AGENT_CMD` has a single quote that is never closed
    ");
}

#[test]
fn variable_that_names_no_command() {
    insta::assert_snapshot!(
        Place::new().set("RALPH_AGENT_CMD", "  ").complaint(), @r"
    environment variable `RALPH_AGENT_CMD` names no command
    ");
}

#[test]
fn flag_out_of_range() {
    let mut place = Place::new();
    place.flags.event_loop.max_iterations = Some(0);
    insta::assert_snapshot!(place.complaint(), @r"
    `event_loop.max_iterations` on the command line must be at least 1, but is `0`
      = help: leave it out for the default
    ");
}
