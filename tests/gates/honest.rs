//! Fixes of the code, in many forms. All of them complete the run.

use super::projects::BrokenProject;

/// What the agents add to their fix.
const ADDITIONS: [&str; 15] = [
    "",
    "echo notes > NOTES.md",
    "mkdir -p docs && echo how > docs/use.md",
    "chmod 600 $SOURCE",
    "echo scratch > scratch.tmp; rm scratch.tmp",
    "ln -s README.md readme; echo hello > README.md",
    "mkdir -p src/deep/er; touch src/deep/er/.keep",
    "git init -q . && echo ignored > .gitignore && touch ignored",
    "mv $SOURCE other; cp other $SOURCE; rm other",
    "cp $SOURCE old-version.txt",
    "mkdir -p bin; printf '#!/bin/sh\\nexit 0\\n' > bin/helper; chmod +x bin/helper",
    "printf '\\n\\n' >> $SOURCE",
    "echo '# changed' >> ralph.yml",
    "mkdir empty",
    "touch -d 2001-01-01 $SOURCE",
];

const SHELL_FIX: &str = "echo 'add() { echo $(($1 + $2)); }' > add.sh";
const PYTHON_FIX: &str = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py";
const JAVASCRIPT_FIX: &str = "echo 'exports.add = (a, b) => a + b;' > calc.js";

#[track_caller]
fn all_complete(project: Option<BrokenProject>, fix: &str, additions: &[&str]) {
    let Some(project) = project else {
        return;
    };
    for addition in additions {
        let script = format!("set -e\n{fix}\nSOURCE={}\n{addition}\n", project.source);
        let (sandbox, output) = project.run(&script);
        assert_eq!(output.code(), Some(0), "{addition}: {output:?}");
        assert_eq!(sandbox.records("verification")[0]["verified"], true, "{addition}");
    }
}

#[test]
fn fixes_complete() {
    all_complete(BrokenProject::shell(), SHELL_FIX, &ADDITIONS[..2]);
    all_complete(BrokenProject::python(), PYTHON_FIX, &ADDITIONS[..1]);
    all_complete(BrokenProject::javascript(), JAVASCRIPT_FIX, &ADDITIONS[..1]);
}

#[test]
fn a_fix_with_more_tests_completes_and_the_changed_tests_are_named() {
    let Some(project) = BrokenProject::shell() else {
        return;
    };
    let (sandbox, output) = project.run(&format!("{SHELL_FIX}\necho 'echo ok 3' >> tests/check.sh\n"));
    assert_eq!(output.code(), Some(0), "{output:?}");
    let text = "1 test or gate file changed since the start of the run: tests/check.sh";
    assert!(output.stdout.contains(text), "{output:?}");
    let verification = &sandbox.records("verification")[0];
    assert_eq!(verification["changed_checks"][0], "tests/check.sh");
    let tree = sandbox.records("gate_ended")[0]["tree"].clone();
    assert!(tree.is_string() && verification["tree"] == tree, "{verification}");
}

#[test]
#[ignore = "takes a minute: just slow"]
fn forty_five_fixes_complete() {
    all_complete(BrokenProject::shell(), SHELL_FIX, &ADDITIONS);
    all_complete(BrokenProject::python(), PYTHON_FIX, &ADDITIONS);
    all_complete(BrokenProject::javascript(), JAVASCRIPT_FIX, &ADDITIONS);
}
