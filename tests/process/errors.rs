//! A child that cannot be started: the error says what and where, and nothing is running.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralph::process::{Child, Stdin, Supervisors};

use super::stage::{PTY, Stage};

fn error_of(stage: &Stage) -> String {
    match stage.try_spawn() {
        Ok(running) => panic!("started: {:?}", running.finish()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_missing_program_is_named() {
    let mut stage = Stage::playing("");
    stage.spec.program = "no-such-agent".into();
    assert_eq!(error_of(&stage), "program not found: no-such-agent");
    stage.spec.program = "/no/such/agent".into();
    assert_eq!(error_of(&stage), "program not found: /no/such/agent");
    assert_eq!(error_of(&stage.on(PTY)), "program not found: /no/such/agent");
}

#[test]
fn a_program_without_permission_is_named() {
    let mut stage = Stage::playing("");
    stage.spec.program = stage.path("default.script");
    assert_eq!(
        error_of(&stage),
        format!(
            "no permission to execute {}",
            stage.path("default.script").display()
        )
    );
}

#[test]
fn a_missing_interpreter_is_not_a_missing_program() {
    let mut stage = Stage::playing("");
    stage.spec.program = stage.path("agent");
    fs::write(stage.path("agent"), "#!/no/such/shell\n").unwrap();
    fs::set_permissions(stage.path("agent"), fs::Permissions::from_mode(0o755)).unwrap();
    let expected = format!(
        "the interpreter that {} asks for was not found",
        stage.path("agent").display()
    );
    assert_eq!(error_of(&stage), expected);
}

#[test]
fn a_working_directory_that_cannot_be_entered_is_named() {
    let mut stage = Stage::playing("");
    stage.spec.cwd = "/no/such/directory".into();
    assert_eq!(
        error_of(&stage),
        "cannot enter the working directory /no/such/directory: No such file or directory (os error 2)"
    );
    stage.spec.cwd = stage.path("default.script");
    let expected = format!(
        "cannot enter the working directory {}: Not a directory (os error 20)",
        stage.path("default.script").display()
    );
    assert_eq!(error_of(&stage), expected);
}

#[test]
fn arguments_that_are_too_long_are_measured() {
    let mut stage = Stage::playing("");
    stage.spec.program = "/bin/true".into();
    stage.spec.args = vec!["x".repeat(200_000).into()];
    assert_eq!(
        error_of(&stage),
        "the arguments of /bin/true are too long for the system (200001 bytes)"
    );
}

#[test]
fn a_missing_file_for_stdin_is_named() {
    let stage = Stage::playing("").reading(Stdin::File("/no/such/prompt.md".into()));
    assert_eq!(
        error_of(&stage),
        "cannot open /no/such/prompt.md as standard input: No such file or directory (os error 2)"
    );
}

#[test]
fn an_argument_with_a_nul_byte_is_refused() {
    let stage = Stage::playing("").with_args(&["a\0b"]);
    let expected = format!(
        "cannot start {}: nul byte found in provided data",
        stage.spec.program.display()
    );
    assert_eq!(error_of(&stage), expected);
}

#[test]
fn a_keeper_that_is_none_is_named() {
    let stage = Stage::playing("");
    let error = |program: &str| {
        Child::spawn(&Supervisors::at(program), &stage.spec, |_| {})
            .map(|child| child.pid())
            .unwrap_err()
            .to_string()
    };
    let agent = stage.spec.program.display();
    assert_eq!(
        error("/no/such/ralph"),
        format!(
            "cannot start /no/such/ralph as the keeper of {agent}: No such file or directory (os error 2)"
        )
    );
    assert!(error("/bin/true").starts_with(&format!("cannot start /bin/true as the keeper of {agent}: ")));
}
