//! Compares command lines, live command lines and filter output with recorded cases, byte by byte.

use std::ffi::OsString;
use std::fs;

use ralph::agent::driver::{Driver, DriverQuery, DriverVariables};
use ralph::transcript::jq::Filter;
use serde_json::Value;

use super::fixture::{fixture_dirs, host, variables};

fn cases() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/driver_cases.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the recorded cases")).expect("JSON")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(value: &Value) -> Vec<OsString> {
    let words = value.as_array().into_iter().flatten();
    words.map(|word| OsString::from(text(word))).collect()
}

fn load(name: &str, variables: DriverVariables, cwd: &std::path::Path) -> Driver {
    let script = fixture_dirs().find(name).expect("a fixture driver");
    Driver::load(&script, host(cwd), variables, DriverQuery::Describe).expect("the driver loads")
}

#[test]
fn recorded_command_lines_are_reproduced() {
    let cases = cases();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("PROMPT.md"), text(&cases["prompt_text"])).unwrap();
    let builds = cases["build"].as_array().expect("cases");
    for case in builds {
        let values = &case["globals"];
        let variables = DriverVariables {
            output_format: text(&values["CLAUDE_OUTPUT_FORMAT"]),
            permission_mode: text(&values["CLAUDE_PERMISSION_MODE"]),
            allowed_tools: text(&values["CLAUDE_ALLOWED_TOOLS"]),
            use_continue: text(&values["CLAUDE_USE_CONTINUE"]),
            ..super::fixture::variables()
        };
        let driver = load(case["driver"].as_str().unwrap(), variables, directory.path());
        let (context, session) = (text(&case["loop_context"]), text(&case["session_id"]));
        let built = driver
            .build(text(&case["prompt_file"]).as_ref(), &context, &session)
            .unwrap();
        assert_eq!(u64::from(built.status), case["rc"].as_u64().unwrap(), "{case:#}");
        assert_eq!(built.argv, words(&case["argv"]), "{case:#}");
        let live = built
            .live_status
            .map_or("undefined".to_owned(), |status| status.to_string());
        assert_eq!(live, text(&case["live_rc"]), "{case:#}");
        assert_eq!(built.live_argv, words(&case["live_argv"]), "{case:#}");
        assert_eq!(built.stderr, text(&case["stderr"]), "{case:#}");
    }
    assert!(builds.len() >= 50, "only {} cases", builds.len());
}

#[test]
fn recorded_filter_output_is_reproduced() {
    let cases = cases();
    let directory = tempfile::tempdir().unwrap();
    let cases = cases["stream_filter"].as_array().expect("cases").clone();
    assert!(cases.len() > 10);
    for case in cases {
        let driver = load(case["driver"].as_str().unwrap(), variables(), directory.path());
        let filter = Filter::compile(driver.filter.as_deref().expect("a filter")).unwrap();
        let printed = filter
            .apply(&case["event"].to_string())
            .expect("the filter accepts the event");
        assert_eq!(printed, text(&case["output"]), "{case:#}");
    }
}

#[test]
fn session_id_comes_from_the_first_source_that_has_one() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    let driver = load("opencode", variables(), directory.path());
    let session = |text: &str, from_transcript: Option<&str>| {
        fs::write(&output, text).unwrap();
        driver.session_id_of(&output, from_transcript)
    };
    assert_eq!(
        session("{\"session\":{\"id\":\"s1\"}}\n", Some("from-transcript")).as_deref(),
        Some("s1")
    );
    assert_eq!(
        session("{}\n", Some("from-transcript")).as_deref(),
        Some("from-transcript")
    );
    assert_eq!(session("{\"session_id\":\"s2\"}\n", None).as_deref(), Some("s2"));
    assert_eq!(session("", Some("$(id)")).as_deref(), Some("from-the-list"));
    let copilot = load("copilot", variables(), directory.path());
    assert_eq!(
        copilot.session_id_of(&output, Some("from-transcript")),
        None,
        "the driver has no sessions"
    );
}
