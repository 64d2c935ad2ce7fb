//! Every measured case: the command line, the live command line, and what the filter prints, byte for byte.

use std::ffi::OsString;
use std::fs;

use ralph::agent::driver::{Asking, Driver, Globals};
use ralph::transcript::jq::Filter;
use serde_json::Value;

use super::fixture::{fixtures, globals, host};

fn cases() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/driver_cases.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the measured cases")).expect("JSON")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn words(value: &Value) -> Vec<OsString> {
    let words = value.as_array().into_iter().flatten();
    words.map(|word| OsString::from(text(word))).collect()
}

fn load(name: &str, globals: Globals, cwd: &std::path::Path) -> Driver {
    let script = fixtures().find(name).expect("a driver of the fixtures");
    Driver::load(&script, host(cwd), globals, Asking::Describe).expect("a driver that answers")
}

#[test]
fn every_measured_command_line_is_reproduced() {
    let cases = cases();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("PROMPT.md"), text(&cases["prompt_text"])).unwrap();
    let builds = cases["build"].as_array().expect("cases");
    for case in builds {
        let given = &case["globals"];
        let globals = Globals {
            output_format: text(&given["CLAUDE_OUTPUT_FORMAT"]),
            permission_mode: text(&given["CLAUDE_PERMISSION_MODE"]),
            allowed_tools: text(&given["CLAUDE_ALLOWED_TOOLS"]),
            use_continue: text(&given["CLAUDE_USE_CONTINUE"]),
            ..globals()
        };
        let driver = load(case["driver"].as_str().unwrap(), globals, directory.path());
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
fn every_measured_filter_output_is_reproduced() {
    let cases = cases();
    let directory = tempfile::tempdir().unwrap();
    let cases = cases["stream_filter"].as_array().expect("cases").clone();
    assert!(cases.len() > 10);
    for case in cases {
        let driver = load(case["driver"].as_str().unwrap(), globals(), directory.path());
        let filter = Filter::compile(driver.filter.as_deref().expect("a filter")).unwrap();
        let printed = filter
            .apply(&case["event"].to_string())
            .expect("an event that the filter takes");
        assert_eq!(printed, text(&case["output"]), "{case:#}");
    }
}

#[test]
fn the_session_comes_from_the_first_that_knows_it() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    let driver = load("opencode", globals(), directory.path());
    let session = |text: &str, told: Option<&str>| {
        fs::write(&output, text).unwrap();
        driver.session_of(&output, told)
    };
    assert_eq!(
        session("{\"session\":{\"id\":\"s1\"}}\n", Some("told")).as_deref(),
        Some("s1")
    );
    assert_eq!(session("{}\n", Some("told")).as_deref(), Some("told"));
    assert_eq!(session("{\"session_id\":\"s2\"}\n", None).as_deref(), Some("s2"));
    assert_eq!(session("", Some("$(id)")).as_deref(), Some("from-the-list"));
    let copilot = load("copilot", globals(), directory.path());
    assert_eq!(
        copilot.session_of(&output, Some("told")),
        None,
        "it has no sessions"
    );
}
