//! Errors of children that cannot be started: each names the program or the path, and no process is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ralph::process::{Child, Stdin, Supervisors};

use super::helpers::{ChildFixture, PTY};

fn error_of(fixture: &ChildFixture) -> String {
    match fixture.try_spawn() {
        Ok(running) => panic!("started: {:?}", running.finish()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_missing_program_is_named() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = "no-such-agent".into();
    assert_eq!(error_of(&fixture), "program not found: no-such-agent");
    fixture.spec.program = "/no/such/agent".into();
    assert_eq!(error_of(&fixture), "program not found: /no/such/agent");
    assert_eq!(
        error_of(&fixture.with_transport(PTY)),
        "program not found: /no/such/agent"
    );
}

#[test]
fn a_program_without_permission_is_named() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = fixture.path("default.script");
    assert_eq!(
        error_of(&fixture),
        format!(
            "no permission to execute {}",
            fixture.path("default.script").display()
        )
    );
}

#[test]
fn a_missing_interpreter_is_not_a_missing_program() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = fixture.path("agent");
    fs::write(fixture.path("agent"), "#!/no/such/shell\n").unwrap();
    fs::set_permissions(fixture.path("agent"), fs::Permissions::from_mode(0o755)).unwrap();
    let expected = format!(
        "the interpreter of {} was not found",
        fixture.path("agent").display()
    );
    assert_eq!(error_of(&fixture), expected);
}

#[test]
fn a_working_directory_that_cannot_be_entered_is_named() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.cwd = "/no/such/directory".into();
    assert_eq!(
        error_of(&fixture),
        "cannot enter the working directory /no/such/directory: No such file or directory (os error 2)"
    );
    fixture.spec.cwd = fixture.path("default.script");
    let expected = format!(
        "cannot enter the working directory {}: Not a directory (os error 20)",
        fixture.path("default.script").display()
    );
    assert_eq!(error_of(&fixture), expected);
}

#[test]
fn the_error_for_long_arguments_states_their_size() {
    let mut fixture = ChildFixture::with_script("");
    fixture.spec.program = "/bin/true".into();
    fixture.spec.args = vec!["x".repeat(200_000).into()];
    assert_eq!(
        error_of(&fixture),
        "the arguments of /bin/true are too long for the system (200001 bytes)"
    );
}

#[test]
fn a_missing_file_for_stdin_is_named() {
    let fixture = ChildFixture::with_script("").with_stdin(Stdin::File("/no/such/prompt.md".into()));
    assert_eq!(
        error_of(&fixture),
        "cannot open /no/such/prompt.md as standard input: No such file or directory (os error 2)"
    );
}

#[test]
fn an_argument_with_a_nul_byte_is_refused() {
    let fixture = ChildFixture::with_script("").with_args(&["a\0b"]);
    let expected = format!(
        "cannot start {}: nul byte found in provided data",
        fixture.spec.program.display()
    );
    assert_eq!(error_of(&fixture), expected);
}

#[test]
fn a_program_that_is_not_a_supervisor_is_named() {
    let fixture = ChildFixture::with_script("");
    let error = |program: &str| {
        Child::spawn(&Supervisors::at(program), &fixture.spec, |_| {})
            .map(|child| child.pid())
            .unwrap_err()
            .to_string()
    };
    let agent = fixture.spec.program.display();
    assert_eq!(
        error("/no/such/ralph"),
        format!(
            "cannot start /no/such/ralph as the supervisor of {agent}: No such file or directory (os error 2)"
        )
    );
    assert!(
        error("/bin/true").starts_with(&format!("cannot start /bin/true as the supervisor of {agent}: "))
    );
}
