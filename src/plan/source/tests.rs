//! Tests of all sources: which tasks are found, and which bytes change when one is marked.

use std::collections::BTreeSet;

use super::commands::IssueFormat;
use super::*;

const AGENTS: &[&str] = &["claude", "codex"];

fn parse(text: &str, format: SourceFormat) -> Vec<SourceTask> {
    read(text, format, "PLAN", AGENTS).unwrap_or_else(|problems| panic!("{problems}"))
}

fn markdown(text: &str) -> Vec<SourceTask> {
    parse(text, SourceFormat::Markdown)
}

fn problems(text: &str) -> String {
    match read(text, SourceFormat::Markdown, "PLAN.md", AGENTS) {
        Ok(tasks) => panic!("{tasks:?}"),
        Err(problems) => problems.to_string(),
    }
}

fn titles(tasks: &[SourceTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.task.title.as_str()).collect()
}

/// Marks one task and returns the offsets of the bytes that differ.
fn changed_bytes(text: &str, tasks: &[SourceTask], title: &str) -> Vec<(usize, u8)> {
    let id = tasks
        .iter()
        .find(|task| task.task.title == title)
        .expect("the task")
        .task
        .id
        .clone();
    let done: BTreeSet<String> = tasks
        .iter()
        .filter(|task| task.done)
        .map(|task| task.task.id.clone())
        .chain([id])
        .collect();
    let marked = set_marks(text, tasks, &done);
    assert_eq!(marked.len(), text.len());
    let bytes = text.bytes().zip(marked.bytes()).enumerate();
    bytes
        .filter(|(_, (old, new))| old != new)
        .map(|(at, (_, new))| (at, new))
        .collect()
}

const PLAN: &str = "---
title: a plan
---
# Release

Some prose with - [ ] a box.

## Backend

- [x] Create the table
- [ ] Add **login** to `server.rs`
      and its page

  A paragraph about it.

  - needs: Create the table
  - gate: `cargo test login`
  - touches: src/**, docs/login.md
  - agent: codex
  - max_iterations: 7
  - [ ] a step
  - see: the wiki

```
- [ ] in a fence
```

<!--
- [ ] in a comment
-->

> - [ ] in a quote

## Frontend

1. [ ] First
2. [ ] Second
   * needs: Add login to server.rs
- Group
  - [ ] Nested
";

#[test]
fn only_boxes_of_list_items_are_tasks() {
    let tasks = markdown(PLAN);
    assert_eq!(
        titles(&tasks),
        [
            "Create the table",
            "Add login to server.rs",
            "First",
            "Second",
            "Nested"
        ]
    );
    let login = &tasks[1];
    assert_eq!(
        login.task.body,
        "    and its page\n\nA paragraph about it.\n\n- [ ] a step\n- see: the wiki"
    );
    assert_eq!(login.task.needs, [tasks[0].task.id.clone()]);
    assert_eq!(login.task.gates, ["cargo test login"]);
    assert_eq!(login.task.touches, ["src/**", "docs/login.md"]);
    assert_eq!(
        (login.task.agent.as_deref(), login.task.limits.max_iterations),
        (Some("codex"), Some(7))
    );
    assert_eq!((login.line, tasks[0].done, login.done), (11, true, false));
    assert_eq!(
        tasks[3].task.needs,
        [login.task.id.clone(), tasks[2].task.id.clone()]
    );
}

#[test]
fn marking_a_task_changes_one_byte() {
    for text in [
        PLAN.to_owned(),
        PLAN.replace('\n', "\r\n"),
        format!("\u{feff}{PLAN}ä - [ ] ü"),
    ] {
        let tasks = markdown(&text);
        for title in ["Add login to server.rs", "Second", "Nested"] {
            let changed = changed_bytes(&text, &tasks, title);
            assert!(matches!(changed.as_slice(), [(_, b'x')]), "{title}: {changed:?}");
            let first = text[..changed[0].0].rfind('\n').unwrap_or(0);
            assert!(text[first..].contains(title.split(' ').next().unwrap_or_default()));
        }
    }
}

#[test]
fn marks_that_ralph_did_not_set_are_removed() {
    let everything = PLAN.replace("[ ]", "[x]");
    let tasks = markdown(&everything);
    let done = BTreeSet::from([tasks[0].task.id.clone()]);
    let restored = unmark(&everything, &tasks, &done);
    let open: Vec<bool> = markdown(&restored).iter().map(|task| task.done).collect();
    assert_eq!(open, [true, false, false, false, false]);
    assert!(
        restored.contains("- [x] a step") && restored.contains("- [x] in a fence"),
        "other boxes stay"
    );
}

#[test]
fn ids_survive_edits_of_the_file() {
    let ids = |text: &str| -> Vec<String> { markdown(text).into_iter().map(|task| task.task.id).collect() };
    let before = ids(PLAN);
    let edited = PLAN
        .replace("- [x] Create", "- [ ] A new task\n- [x] Create")
        .replace("Some prose", "Other prose")
        .replace("  A paragraph about it.\n", "");
    let after = ids(&edited);
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.iter().all(|id| after.contains(id)), "{before:?} {after:?}");
    assert_eq!(markdown("- [ ] One\n  - id: X-1\n")[0].task.id, "X-1");
}

#[test]
fn all_mistakes_of_a_file_are_reported_with_their_lines() {
    let text = "# A\r\n- [ ] One\r\n  - need: Two\r\n- [ ] One\r\n- [ ]\r\n- [ ] Two\r\n  - needs: Three, One\r\n  - agent: claud\r\n";
    insta::assert_snapshot!(problems(text), @"
    PLAN.md:3: unknown setting `need`
      did you mean `needs`?
    PLAN.md:4: duplicate task `One`, as in line 2
      change the title, or give one of the two another `id`
    PLAN.md:5: a task without a title
      write what is to be done after the box
    PLAN.md:6: unknown agent `claud`
      did you mean `claude`?
    PLAN.md:6: `Two` needs `Three`, which is not a task of this plan
      name a task by its id or its title
    ");
    assert_eq!(
        problems("# Only prose\n"),
        "PLAN.md:1: no tasks found\n  write each task as a list item with a box: - [ ] Add a test"
    );
}

#[test]
fn two_thousand_tasks_are_read() {
    let mut text = String::from("# Many\n");
    for n in 0..2000 {
        text.push_str(&format!("- [ ] Task number {n}\n  - gate: true {n}\n"));
        if n > 0 {
            text.push_str(&format!("  - needs: Task number {}\n", n - 1));
        }
    }
    let tasks = markdown(&text);
    assert_eq!(tasks.len(), 2000);
    assert_eq!(tasks[1999].task.needs, [tasks[1998].task.id.clone()]);
    assert_eq!(changed_bytes(&text, &tasks, "Task number 1234").len(), 1);
}

const RALPHEX: &str = "# Plan: Health endpoint

## Overview
- [ ] not a task

## Validation Commands
- `go test ./...`
- `golangci-lint run` (all linters)

### Task 1: Add the endpoint
- [x] add the handler
- [ ] add tests

#### Notes
- touches: api/**
- [ ] mark completed

### Iteration 2a: Document it
Text.
- [ ] write the page

### Summary
- [ ] not a task either
";

#[test]
fn ralphex_plan_has_one_task_per_heading() {
    let tasks = markdown(RALPHEX);
    assert_eq!(titles(&tasks), ["Add the endpoint", "Document it"]);
    assert_eq!(tasks[0].task.gates, ["go test ./...", "golangci-lint run"]);
    assert_eq!(tasks[0].task.touches, ["api/**"]);
    assert_eq!(tasks[1].task.needs, [tasks[0].task.id.clone()]);
    assert_eq!((tasks[0].line, tasks[1].line), (10, 18));
    assert!(
        tasks[1].task.body.starts_with("Text.\n- [ ] write"),
        "{}",
        tasks[1].task.body
    );
    assert_eq!(
        changed_bytes(RALPHEX, &tasks, "Add the endpoint").len(),
        2,
        "the two open steps"
    );
}

#[test]
fn both_shapes_of_prd_json_are_read() {
    let stories = r#"{"project": "x", "branchName": "ralph/x",
 "userStories": [
  {"id": "US-001", "title": "Add a field", "description": "As a user", "acceptanceCriteria": ["a", "b"], "priority": 2, "passes": true},
  {"id": 2, "title": "Show \"it\"", "priority": "high", "passes" : false, "dependencies": ["US-001"], "gates": ["npm test"]},
  {"id": "US-003", "title": "No mark"}
 ]}"#;
    let tasks = parse(stories, SourceFormat::Prd);
    assert_eq!(titles(&tasks), ["Add a field", "Show \"it\"", "No mark"]);
    assert_eq!(tasks[0].task.body, "As a user\n\nAcceptance criteria:\n- a\n- b");
    assert_eq!(
        (tasks[1].task.id.as_str(), tasks[1].line, tasks[1].task.priority),
        ("2", 4, Some(2))
    );
    assert_eq!(
        (&tasks[1].task.needs[..], &tasks[1].task.gates[..]),
        (&["US-001".into()][..], &["npm test".into()][..])
    );
    let done = ["US-001", "2", "US-003"].map(str::to_owned).into();
    let marked = set_marks(stories, &tasks, &done);
    assert!(
        marked.contains(r#""passes" : true, "dependencies""#)
            && marked.contains(r#"{"passes": true, "id": "US-003""#)
    );
    assert!(parse(&marked, SourceFormat::Prd).iter().all(|task| task.done));

    let features = "[\n{\"category\": \"ui\", \"description\": \"Open a chat\\nat once\", \"steps\": [\"click\"], \"passes\": false}\n]";
    let tasks = parse(features, SourceFormat::Prd);
    assert_eq!((titles(&tasks), tasks[0].line), (vec!["Open a chat"], 2));
    assert_eq!(tasks[0].task.body, "Open a chat\nat once\n\nSteps:\n- click");
    for (text, error) in [
        ("{", "PLAN:1: invalid JSON"),
        ("{\"a\": []}", "PLAN:1: no list of stories found"),
        ("{\"tasks\":\n 3}", "PLAN:2: expected a list of stories"),
        (
            "[\n{\"title\": \"x\", \"passes\": 3},\n4, {}]",
            "PLAN:2: `passes`: expected true or false, found 3\nPLAN:3: expected a story, which is an object\nPLAN:3: a story without a title",
        ),
    ] {
        let found = read(text, SourceFormat::Prd, "PLAN", AGENTS)
            .expect_err(text)
            .to_string();
        assert!(found.starts_with(error), "{found}");
    }
}

#[test]
fn output_of_commands_is_read() {
    let beads = r#"[{"id":"bd-1","title":"Fix","description":"d","priority":0,"status":"open"},{"id":"bd-a.2","title":"Next"}]"#;
    let tasks = parse(beads, SourceFormat::Issues(IssueFormat::Beads));
    assert_eq!(
        (tasks[0].task.id.as_str(), tasks[0].task.priority),
        ("bd-1", Some(1))
    );
    let issues = r#"[{"number": 7, "title": "Broken", "body": "a\r\nb"}]"#;
    let tasks = parse(issues, SourceFormat::Issues(IssueFormat::GitHub));
    assert_eq!(
        (tasks[0].task.id.as_str(), tasks[0].task.body.as_str()),
        ("gh-7", "a\nb")
    );
    let lines = "{\"title\": \"One\", \"gates\": [\"true\"]}\n\n{\"id\": \"b\", \"title\": \"Two\", \"needs\": [\"One\"], \"done\": true}\n";
    let tasks = parse(lines, SourceFormat::Issues(IssueFormat::Tasks));
    assert_eq!((tasks[1].line, tasks[1].done), (3, true));
    assert_eq!(tasks[1].task.needs, [tasks[0].task.id.clone()]);
    let errors = read(
        "{\"titel\": \"x\"}\nnot json\n",
        SourceFormat::Issues(IssueFormat::Tasks),
        "cmd:x",
        AGENTS,
    );
    let errors = errors.expect_err("mistakes").to_string();
    assert!(
        errors.contains("cmd:x:1: a task without a `title`") && errors.contains("cmd:x:2: invalid JSON"),
        "{errors}"
    );
}

#[test]
fn source_names_are_recognized() {
    let cwd = Path::new("/w");
    let name = |source: &str| Source::of(source, cwd).plan_name();
    assert_eq!(Source::of("PLAN.md", cwd), Source::File("/w/PLAN.md".into()));
    assert_eq!(
        [
            name("docs/My Plan.md"),
            name("beads:"),
            name("gh:good first issue"),
            name("日本.md")
        ],
        ["my-plan", "beads", "gh-good-first-issue", "plan"]
    );
    let Source::Command(github) = Source::of("gh:bug", cwd) else {
        panic!("a command")
    };
    assert_eq!(github.words()[..5], ["gh", "issue", "list", "--state", "open"]);
    assert_eq!(close_command(&github, "gh-7").expect("a command")[3], "7");
}
