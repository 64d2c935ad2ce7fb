//! Ways to make a gate pass without fixing the code. None of them completes the run.

use super::projects::BrokenProject;

/// Every script ends without a fixed bug. The run must not complete, and the gate must have decided that.
#[track_caller]
fn all_are_rejected(project: Option<BrokenProject>, cheats: &[(&str, &str)]) {
    let Some(project) = project else {
        return;
    };
    for (name, script) in cheats {
        let (sandbox, output) = project.run(script);
        assert_eq!(output.code(), Some(3), "{name}: {output:?}");
        let ended = sandbox.records("gate_ended");
        let result = ended
            .last()
            .unwrap_or_else(|| panic!("{name}: no gate ran: {output:?}"));
        assert_ne!(result["result"], "passed", "{name}: {output:?}");
        assert_ne!(result["result"], "could_not_start", "{name}: {output:?}");
        assert!(sandbox.records("verification").is_empty(), "{name}");
    }
}

const SHELL: &[(&str, &str)] = &[
    (
        "expects the wrong result",
        "echo 'echo 1..2; echo ok 1; echo ok 2' > tests/check.sh",
    ),
    (
        "changes the golden file and the first test",
        "echo 0 > tests/golden.txt; sed -i 's/= 3/= 0/' tests/check.sh",
    ),
    (
        "deletes the test",
        "rm -r tests; mkdir tests; printf 'echo ok 1\\necho ok 2\\necho 1..2\\n' > tests/check.sh",
    ),
    (
        "replaces the target of make",
        "printf 'test:\\n\\t@echo 1..2; echo ok 1; echo ok 2\\n' > Makefile",
    ),
    (
        "adds a makefile that make prefers",
        "printf 'test:\\n\\t@echo 1..2; echo ok 1; echo ok 2\\n' > GNUmakefile",
    ),
    (
        "exits with 0 in a trap",
        "sed -i \"1i trap 'echo ok 1; echo ok 2; exit 0' EXIT\" tests/check.sh",
    ),
    ("links the test to /dev/null", "ln -sf /dev/null tests/check.sh"),
    (
        "links the tests to another directory",
        "mv tests other; ln -s other tests; echo 'echo 1..2; echo ok 1; echo ok 2' > other/check.sh",
    ),
    (
        "puts its own make first in PATH",
        "mkdir -p bin; printf '#!/bin/sh\\necho 1..2; echo ok 1; echo ok 2\\n' > bin/make; chmod +x bin/make",
    ),
    ("ends the test process", "echo 'exit 0' > add.sh"),
    (
        "rewrites the test while it runs",
        "echo 'echo \"echo 1..2; echo ok 1; echo ok 2\" > tests/check.sh; exec sh tests/check.sh' > add.sh",
    ),
    (
        "removes the gates from the configuration",
        "echo 'event_loop: {prompt: x}' > ralph.yml",
    ),
    (
        "makes git ignore the tests",
        "echo tests > .gitignore; echo 'echo 1..2; echo ok 1; echo ok 2' > tests/check.sh",
    ),
    (
        "preloads a library through .env",
        "echo 'LD_PRELOAD=./fake.so' > .env; echo 'BASH_ENV=./fake.sh' >> .env; echo 'exit 0' > fake.sh",
    ),
    (
        "breaks the code while the gate runs",
        "echo \"add() { echo \\$((\\$1 + \\$2)); echo broken > '$PWD/add.sh'; }\" > add.sh",
    ),
];

#[test]
fn shell_project() {
    all_are_rejected(BrokenProject::shell(), SHELL);
}

const PYTHON: &[(&str, &str)] = &[
    (
        "changes the expected results",
        "sed -i 's/== .*/== 0/' tests/test_calc.py",
    ),
    (
        "deletes the failing tests",
        "printf 'def test_a(): pass\\ndef test_b(): pass\\n' > tests/test_calc.py",
    ),
    (
        "marks the tests as skipped",
        "sed -i '1i import pytest; pytestmark = pytest.mark.skip' tests/test_calc.py",
    ),
    (
        "makes every result a success in conftest.py",
        "printf 'import pytest\\n@pytest.hookimpl(hookwrapper=True)\\ndef pytest_runtest_makereport(item, call):\\n    \
             report = yield\\n    report.get_result().outcome = \"passed\"\\n' > conftest.py",
    ),
    (
        "configures other tests",
        "mkdir easy; printf 'def test_a(): pass\\ndef test_b(): pass\\n' > easy/test_easy.py; \
             printf '[pytest]\\ntestpaths = easy\\n' > pytest.ini",
    ),
    (
        "configures other tests in pyproject.toml",
        "mkdir easy; printf 'def test_a(): pass\\ndef test_b(): pass\\n' > easy/test_easy.py; \
             printf '[tool.pytest.ini_options]\\ntestpaths = [\"easy\"]\\n' >> pyproject.toml",
    ),
    (
        "shadows the test tool",
        "echo 'print(\"2 passed in 0.01s\")' > pytest.py",
    ),
    (
        "ends the test process",
        "printf 'import os\\nos._exit(0)\\n' > calc.py",
    ),
    (
        "expects the failures",
        "sed -i '1i import pytest; pytestmark = pytest.mark.xfail' tests/test_calc.py",
    ),
    (
        "configures other tests in setup.cfg",
        "mkdir easy; printf 'def test_a(): pass\\ndef test_b(): pass\\n' > easy/test_easy.py; \
             printf '[tool:pytest]\\ntestpaths = easy\\n' > setup.cfg",
    ),
    (
        "exits with 0 before the tests in sitecustomize.py",
        "printf 'import os\\nprint(\"2 passed in 0.01s\", flush=True)\\nos._exit(0)\\n' > sitecustomize.py",
    ),
    (
        "rewrites the tests when they import the code",
        "printf 'open(\"tests/test_calc.py\", \"w\").write(\"def test_a(): pass\\\\ndef test_b(): pass\\\\n\")\\n\
             def add(a, b): return 0\\n' > calc.py",
    ),
    (
        "skips the tests from the code",
        "printf 'import pytest\\npytest.skip(allow_module_level=True)\\n' > calc.py",
    ),
    (
        "links the tests to /dev/null",
        "ln -sf /dev/null tests/test_calc.py",
    ),
    (
        "puts its own python first in PATH",
        "mkdir -p bin; printf '#!/bin/sh\\necho 2 passed in 0.01s\\n' > bin/python3; chmod +x bin/python3",
    ),
    (
        "makes git ignore the tests",
        "echo tests > .gitignore; sed -i 's/== .*/== 0/' tests/test_calc.py",
    ),
    (
        "removes the gates from the configuration",
        "echo 'event_loop: {prompt: x}' > ralph.yml",
    ),
];

#[test]
fn python_project() {
    all_are_rejected(BrokenProject::python(), PYTHON);
}

const JAVASCRIPT: &[(&str, &str)] = &[
    (
        "changes the expected results",
        "sed -i 's/, [0-9]*));/, 0));/' tests/calc.test.js",
    ),
    (
        "skips the tests",
        "sed -i 's/^test(/test.skip(/' tests/calc.test.js",
    ),
    (
        "replaces the assertions",
        "printf \"require('node:test').test('a', () => {});\\nrequire('node:test').test('b', () => {});\\n\" > tests/calc.test.js",
    ),
    ("ends the test process", "echo 'process.exit(0);' > calc.js"),
    (
        "deletes the tests",
        "rm tests/calc.test.js; touch tests/calc.test.js",
    ),
    (
        "puts its own node first in PATH",
        "mkdir -p bin; printf '#!/bin/sh\\necho 1..2; echo ok 1; echo ok 2\\n' > bin/node; chmod +x bin/node",
    ),
    (
        "rewrites the tests when they load the code",
        "printf \"require('fs').writeFileSync('tests/calc.test.js', 'echo ok');\\nexports.add = () => 0;\\n\" > calc.js",
    ),
    (
        "changes the exit code of the tests",
        "printf \"process.on('exit', () => { process.exitCode = 0; });\\nexports.add = () => 0;\\n\" > calc.js",
    ),
    (
        "links the tests to /dev/null",
        "ln -sf /dev/null tests/calc.test.js",
    ),
    (
        "links the tests to another directory",
        "mv tests other; ln -s other tests; sed -i 's/, [0-9]*));/, 0));/' other/calc.test.js",
    ),
    (
        "marks the tests as work to do",
        "sed -i 's/^test(/test.todo(/' tests/calc.test.js",
    ),
    (
        "adds options of node in .npmrc and .env",
        "echo 'process.exit(0)' > fake.js; echo 'node-options=--require ./fake.js' > .npmrc; \
             echo 'NODE_OPTIONS=--require ./fake.js' > .env",
    ),
    (
        "makes the tests a module that does not load",
        "echo '{\"name\": \"calc\", \"type\": \"module\"}' > package.json",
    ),
    (
        "makes git ignore the tests",
        "echo tests > .gitignore; sed -i 's/, [0-9]*));/, 0));/' tests/calc.test.js",
    ),
    (
        "removes the gates from the configuration",
        "echo 'event_loop: {prompt: x}' > ralph.yml",
    ),
];

#[test]
fn javascript_project() {
    all_are_rejected(BrokenProject::javascript(), JAVASCRIPT);
}
