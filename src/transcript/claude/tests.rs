//! Cases of the Claude format without a capture: compatible programs, subagents, limits and unknown events.

use crate::event::{Meta, TranscriptEvent};
use crate::transcript::read_all;

/// The events of these lines, one short line each.
fn seen(lines: &[&str]) -> Vec<String> {
    read_all("claude", "Do it.", &lines.join("\n"))
        .iter()
        .map(brief)
        .collect()
}

fn brief(event: &TranscriptEvent) -> String {
    match event {
        TranscriptEvent::Text {
            tag,
            text,
            flow,
            parent,
        } => {
            let parent = parent.as_ref().map(|id| format!(" in {id}")).unwrap_or_default();
            format!("{tag:?} {flow:?}{parent}: {text}")
        }
        TranscriptEvent::ToolStart { tool } => {
            let parent = tool
                .parent
                .as_ref()
                .map(|id| format!(" in {id}"))
                .unwrap_or_default();
            format!("start {} {}{parent}", tool.id, tool.name)
        }
        TranscriptEvent::ToolOutput { tool, text } => format!("output {}: {text}", tool.id),
        TranscriptEvent::ToolEnd { tool } => format!("end {} {:?}", tool.id, tool.status),
        TranscriptEvent::Usage { usage } => {
            format!(
                "usage {:?} {:?} {:?}",
                usage.scope, usage.prompt_tokens, usage.completion_tokens
            )
        }
        TranscriptEvent::Meta {
            meta: Meta::Finished { success, reason, .. },
        } => format!("finished {success} {}", reason.as_deref().unwrap_or("-")),
        TranscriptEvent::Meta { meta } => serde_json::to_string(meta).unwrap_or_default(),
    }
}

#[test]
fn deltas_without_envelope_are_one_message() {
    assert_eq!(
        seen(&[
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"fixed the bug\n"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":""}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"<<<RALPHEX:"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"COMPLETED>>>\n"}}"#,
            r#"{"type":"result","result":""}"#,
        ]),
        [
            "Ai Message: fixed the bug\n",
            "Ai Delta: <<<RALPHEX:",
            "Ai Delta: COMPLETED>>>\n",
            "finished true -"
        ]
    );
}

#[test]
fn answer_that_only_the_result_contains_is_emitted_once() {
    let result = r#"{"type":"result","subtype":"success","result":"All done."}"#;
    let emitted = |before: &str| {
        let events = read_all("claude", "Do it.", &format!("{before}\n{result}"));
        let emitted = events
            .iter()
            .filter(|event| brief(event) == "Ai Message: All done.");
        let repeated = events.iter().find_map(|event| match event {
            TranscriptEvent::Meta {
                meta: Meta::Finished { text, .. },
            } => Some(text.clone()),
            _ => None,
        });
        (emitted.count(), repeated.flatten())
    };
    let message =
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"All done."}]}}"#;
    assert_eq!(emitted(""), (1, None));
    assert_eq!(emitted(message), (1, Some("All done.".to_owned())));
}

#[test]
fn lone_surrogate_is_replaced() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"x":"\ud83d"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"one\n\ud83d"}]}}"#,
            r#"{"type":"result","subtype":"success","result":"two\n\ude00"}"#,
        ]),
        [
            "start t Bash",
            "output t: one\n\u{fffd}",
            "end t Ok",
            "Ai Message: two\n\u{fffd}",
            "finished true success"
        ]
    );
}

#[test]
fn tool_call_ends_a_message_without_id() {
    assert_eq!(
        seen(&[
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"one"}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":""}]}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"two"}}"#,
        ]),
        ["Ai Message: one", "start t Bash", "end t Ok", "Ai Message: two"]
    );
}

#[test]
fn repeated_result_is_not_emitted() {
    let message = r#"{"type":"assistant","message":{"content":[{"text":"All done."}]}}"#;
    let finished = "finished true -";
    for result in [r#""All done.\n""#, r#"{"output":"All done."}"#] {
        let result = format!(r#"{{"type":"result","result":{result}}}"#);
        assert_eq!(seen(&[message, &result]), ["Ai Message: All done.", finished]);
        assert_eq!(seen(&[&result])[1], finished);
        assert_eq!(seen(&[&result])[0].trim_end(), "Ai Message: All done.");
    }
    assert_eq!(
        seen(&[message, r#"{"type":"result","result":"LOOP_COMPLETE"}"#]),
        ["Ai Message: All done.", "Ai Message: LOOP_COMPLETE", finished]
    );
}

#[test]
fn message_stop_that_repeats_streamed_text_is_ignored() {
    assert_eq!(
        seen(&[
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hel"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"lo"}}"#,
            r#"{"type":"message_stop","message":{"content":[{"type":"text","text":"Hello"}]}}"#,
            r#"{"type":"result","result":"Hello"}"#,
        ]),
        ["Ai Message: Hel", "Ai Delta: lo", "finished true -"]
    );
}

#[test]
fn tokens_of_several_results_are_summed() {
    assert_eq!(
        seen(&[
            r#"{"type":"result","result":"one","usage":{"input_tokens":10,"output_tokens":1}}"#,
            r#"{"type":"result","result":"two","usage":{"input_tokens":20,"output_tokens":2}}"#,
        ]),
        [
            "Ai Message: one",
            "usage Iteration Some(10) Some(1)",
            "finished true -",
            "Ai Message: two",
            "usage Iteration Some(30) Some(3)",
            "finished true -",
        ]
    );
}

#[test]
fn session_without_answer_fails() {
    assert_eq!(
        seen(&[r#"{"type":"result","result":""}"#]),
        ["finished false no answer"]
    );
    assert_eq!(
        seen(&[r#"{"type":"result","subtype":"success","num_turns":0,"result":"Unknown command: /x"}"#]),
        ["finished false no model turn was made"]
    );
}

#[test]
fn events_of_a_subagent_have_its_tool_call_as_parent() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}]}}"#,
            r#"{"type":"user","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"Look."}]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Read"}]}}"#,
            r#"{"type":"user","parent_tool_use_id":"t1","message":{"content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"no"}]}}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m3","content":[{"type":"text","text":"LOOP_COMPLETE"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"seen"},{"type":"image","source":{}},"odd"]}]}}"#,
        ]),
        [
            "start t1 Task",
            "User Message in t1: Look.",
            "start t2 Read in t1",
            "output t2: no",
            "end t2 Fail",
            "Ai Message in t1: LOOP_COMPLETE",
            "output t1: seen\n[image]\nodd",
            "end t1 Ok",
        ]
    );
}

#[test]
fn blocks_of_unknown_kinds_are_shown() {
    let block = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}"#;
    let line = format!(r#"{{"type":"assistant","message":{{"id":"m","content":[{block}]}}}}"#);
    assert_eq!(seen(&[&line]), [format!("Sys Message: {block}")]);
}

#[test]
fn later_blocks_are_lines_of_the_same_message() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"c"}]}}"#,
            r#"{"type":"assistant","message":{"id":"n","content":"plain string"}}"#,
        ]),
        [
            "Ai Message: a",
            "Ai Line: b",
            "Ai Line: c",
            "Ai Message: plain string"
        ]
    );
}

#[test]
fn rate_limit_has_its_reset_time() {
    let event = |status: &str| {
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1784079000,"rateLimitType":"five_hour"}}}}"#
        )
    };
    let expected = |status: &str| {
        format!(
            r#"{{"kind":"rate_limit","status":"{status}","resets_at":"2026-07-15T01:30:00Z","limit":"five_hour"}}"#
        )
    };
    assert_eq!(
        seen(&[&event("allowed"), &event("allowed_warning"), &event("rejected")]),
        [expected("allowed"), expected("warning"), expected("rejected")]
    );
    assert_eq!(seen(&[r#"{"type":"rate_limit_event"}"#]), [""; 0]);
}

#[test]
fn utilization_is_a_share_and_paid_overage_is_no_rejection() {
    let event = |more: &str| {
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","rateLimitType":"five_hour"{more}}}}}"#
        )
    };
    let expected = |status: &str, more: &str| {
        format!(r#"{{"kind":"rate_limit","status":"{status}","limit":"five_hour"{more}}}"#)
    };
    assert_eq!(
        seen(&[
            &event(r#","utilization":0.83"#),
            &event(r#","utilization":83"#),
            &event(r#","utilization":"much""#),
            &event(r#","isUsingOverage":true,"utilization":1.02"#),
        ]),
        [
            expected("rejected", r#","utilization":0.83"#),
            expected("rejected", r#","utilization":0.83"#),
            expected("rejected", ""),
            expected("warning", r#","utilization":1.02"#),
        ]
    );
}

#[test]
fn reset_time_in_a_message_is_parsed() {
    let line = r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1784079000"}"#;
    assert_eq!(
        seen(&[line]),
        [
            r#"{"kind":"error","class":"rate_limit","message":"Claude AI usage limit reached|1784079000"}"#,
            r#"{"kind":"rate_limit","status":"rejected","resets_at":"2026-07-15T01:30:00Z"}"#,
            "finished false error",
        ]
    );
}

#[test]
fn not_logged_in_is_an_auth_error() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"Not logged in · Please run /login"}]},"error":"authentication_failed"}"#,
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}"#,
        ]),
        [
            r#"{"kind":"error","class":"auth","message":"Not logged in · Please run /login"}"#,
            "Sys Message: Not logged in · Please run /login",
            "finished false authentication_failed",
        ]
    );
}

#[test]
fn todo_list_is_a_plan() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"TodoWrite","input":{"todos":[{"content":"read","status":"completed"},{"content":"write","status":"in_progress"},{"content":"test","status":"pending"}]}}]}}"#
        ])[1],
        r#"{"kind":"plan","items":[{"text":"read","status":"done"},{"text":"write","status":"active"},{"text":"test","status":"pending"}]}"#
    );
}

#[test]
fn fields_of_unexpected_type_are_ignored() {
    assert_eq!(
        seen(&[
            r#"{"type":"assistant","session_id":7,"message":{"id":["m"],"model":{},"usage":"none","content":[{"type":"text","text":"still read"},7,null]}}"#,
            r#"{"type":"user","message":"hello"}"#,
            r#"{"type":"result","is_error":"no","subtype":3,"num_turns":"2","usage":[],"result":["x"]}"#,
        ]),
        [
            "Ai Message: still read",
            "Sys Message: 7",
            "Sys Message: null",
            "User Message: hello",
            "finished true -"
        ]
    );
}

#[test]
fn lone_surrogate_does_not_drop_the_line() {
    assert_eq!(
        seen(&[r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"ok \ud83d"}}"#]),
        ["Ai Message: ok \u{fffd}"]
    );
}

#[test]
fn unknown_events_are_reported_by_text_or_type() {
    assert_eq!(
        seen(&[
            r#"{"type":"tool_use_summary","summary":"Read 3 files"}"#,
            r#"{"type":"brand_new","n":1}"#,
            r#"{"type":"system","subtype":"brand_new"}"#,
            r#"{"type":"system","subtype":"local_command_output","content":"ok"}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ]),
        [
            "Sys Message: Read 3 files",
            r#"{"kind":"unknown","part":"event_type","name":"brand_new"}"#,
            r#"{"kind":"unknown","part":"event_type","name":"system/brand_new"}"#,
            "Sys Message: ok",
            r#"{"kind":"error","class":"overload","message":"Overloaded"}"#,
            "Sys Message: Overloaded",
        ]
    );
}

#[test]
fn unreadable_line_is_reported_and_shown() {
    assert_eq!(
        seen(&["npm warn deprecated", r#"{"no":"type"}"#, "", "[1]"]),
        [
            r#"{"kind":"parse_error","message":"not a JSON object"}"#,
            "Sys Line: npm warn deprecated",
            r#"{"kind":"parse_error","message":"`type` is missing"}"#,
            r#"Sys Line: {"no":"type"}"#,
            r#"{"kind":"parse_error","message":"not a JSON object"}"#,
            "Sys Line: [1]",
        ]
    );
}

#[test]
fn repeated_prompt_is_hidden() {
    assert_eq!(
        seen(&[r#"{"type":"user","message":{"content":[{"type":"text","text":"Do it.\n"}]}}"#]),
        ["Prompt Message: … prompt hidden (1 line)"]
    );
}
