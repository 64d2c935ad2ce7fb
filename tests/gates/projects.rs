//! Small projects with a bug, a test that finds it, and a gate that runs the test.

use std::env;
use std::fs;
use std::process::Command;

use crate::sandbox::skip::skip;
use crate::sandbox::{CommandOutput, Running, Sandbox};

/// A project in one language.
#[derive(Clone, Copy)]
pub(super) struct BrokenProject {
    files: &'static [(&'static str, &'static str)],
    /// The command of the gate, and the number of its tests.
    gate: (&'static str, u64),
    /// A command that succeeds if the tools of the project are installed.
    probe: &'static str,
    /// The file with the bug.
    pub(super) source: &'static str,
}

const SHELL: BrokenProject = BrokenProject {
    files: &[
        ("Makefile", "test:\n\t@sh tests/check.sh\n"),
        (
            "tests/check.sh",
            "echo 1..2\n. ./add.sh\n[ \"$(add 1 2)\" = 3 ] || { echo not ok 1; exit 1; }\necho ok 1\n\
             [ \"$(add 2 2)\" = \"$(cat tests/golden.txt)\" ] || { echo not ok 2; exit 1; }\necho ok 2\n",
        ),
        ("tests/golden.txt", "4\n"),
        ("add.sh", "add() { echo 0; }\n"),
    ],
    gate: ("make test", 2),
    probe: "command -v make",
    source: "add.sh",
};

const PYTHON: BrokenProject = BrokenProject {
    files: &[
        (
            "tests/test_calc.py",
            "from calc import add\n\ndef test_small():\n    assert add(1, 2) == 3\n\ndef test_large():\n    assert add(20, 22) == 42\n",
        ),
        ("calc.py", "def add(a, b):\n    return 0\n"),
        ("pyproject.toml", "[project]\nname = \"calc\"\nversion = \"1\"\n"),
    ],
    gate: ("python3 -B -m pytest -q -p no:cacheprovider", 2),
    probe: "python3 -c 'import pytest'",
    source: "calc.py",
};

const JAVASCRIPT: BrokenProject = BrokenProject {
    files: &[
        (
            "tests/calc.test.js",
            "const { test } = require('node:test');\nconst assert = require('node:assert');\nconst { add } = require('../calc');\n\
             test('small', () => assert.strictEqual(add(1, 2), 3));\ntest('large', () => assert.strictEqual(add(20, 22), 42));\n",
        ),
        ("calc.js", "exports.add = () => 0;\n"),
        ("package.json", "{\"name\": \"calc\"}\n"),
    ],
    gate: ("node --test --test-reporter=tap tests/calc.test.js", 2),
    probe: "node --test --test-reporter=tap /dev/null",
    source: "calc.js",
};

impl BrokenProject {
    pub(super) fn shell() -> Option<Self> {
        SHELL.if_available()
    }

    pub(super) fn python() -> Option<Self> {
        PYTHON.if_available()
    }

    pub(super) fn javascript() -> Option<Self> {
        JAVASCRIPT.if_available()
    }

    fn if_available(self) -> Option<Self> {
        let probe = Command::new("sh").args(["-c", self.probe]).output();
        if probe.is_ok_and(|output| output.status.success()) {
            return Some(self);
        }
        skip(&format!("`{}` fails", self.probe));
        None
    }

    /// Runs one iteration of an agent that executes a shell script in the project. The run completes only if the gate passes.
    pub(super) fn run(&self, script: &str) -> (Sandbox, CommandOutput) {
        let (command, tests) = self.gate;
        let config = format!(
            "event_loop: {{prompt: fix it, max_iterations: 1}}\ngates:\n  - name: tests\n    run: {command}\n    in: clean\n    \
             protect: ['tests/**', pyproject.toml, package.json]\n    min_tests: {tests}\n"
        );
        let sandbox = Sandbox::scripted("run sh \"$AGENT_SCRIPT\"\nsay LOOP_COMPLETE", &config);
        let work = sandbox.work();
        for (name, text) in self.files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file of the project");
        }
        let agent = sandbox.path("agent").join("cheat.sh");
        fs::write(&agent, script).expect("the agent's script");
        let mut command = sandbox.command(&["run"]);
        // The project's own `bin` comes first, as with an activated environment.
        let system = env::var("PATH").expect("a PATH");
        command.env("PATH", format!("{}:bin:{system}", work.join("bin").display()));
        command.env("AGENT_SCRIPT", &agent);
        // pyenv finds its versions of Python in the home directory, which is another one here.
        if let Some(home) = env::var_os("HOME") {
            command.env("PYENV_ROOT", std::path::Path::new(&home).join(".pyenv"));
        }
        let output = Running::start(&mut command).finish();
        (sandbox, output)
    }
}
