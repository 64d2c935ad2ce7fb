//! Test cases: output format, transcript and expected outcome.

use super::CaseOutcome::{self, *};
use super::OutputFormat::{self, *};

pub(super) const CASES: &[(OutputFormat, &str, CaseOutcome)] = &[
    // Valid markers.
    (Structured, "ai LOOP_COMPLETE", Yes),
    (Structured, "ai All tests pass.\\n\\nLOOP_COMPLETE", Yes),
    (Structured, "ai LOOP_COMPLETE\\n\\nI changed three files.", Yes),
    (Structured, "ai   LOOP_COMPLETE  ", Yes),
    (Structured, "ai **LOOP_COMPLETE**", Yes),
    (Structured, "ai `LOOP_COMPLETE`", Yes),
    (Structured, "ai LOOP_COMPLETE.", Yes),
    (Structured, "ai ok\\r\\nLOOP_COMPLETE\\r", Yes),
    (Structured, "ai <promise>COMPLETE</promise>", Yes),
    (Structured, "ai All green. <promise>COMPLETE</promise>", Yes),
    (Structured, "ai <<<RALPHEX:COMPLETED>>>", Yes),
    (Structured, "ai <<<RALPHEX:ALL_TASKS_DONE>>>", Yes),
    // Markers split over stream events.
    (Structured, "ai done\\nLOOP_\n+COMPLETE", Yes),
    (Structured, "ai L\n+OOP\n+_COMP\n+LETE", Yes),
    (Structured, "ai <promise>COMP\n+LETE</promise>", Yes),
    (Structured, "line All good.\nline LOOP_COMPLETE", Yes),
    (
        Structured,
        "ai done\\n\n+LOOP_COMPLETE\n+ it will be",
        Ignored("alone on its own line"),
    ),
    // Tool calls may precede the final message. If they follow it, it was not final.
    (Structured, "tool\nout ok\nend\nai LOOP_COMPLETE", Yes),
    (Structured, "ai Now the tests.\ntool\nend\nai LOOP_COMPLETE", Yes),
    (
        Structured,
        "ai LOOP_COMPLETE\ntool\nend\nai One more thing to fix.",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\ntool\nend",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\nai Wait, a test fails.",
        Ignored("earlier message"),
    ),
    (Structured, "tool\nai LOOP_COMPLETE\nend", Yes),
    (Structured, "ai LOOP_COMPLETE\nthink Was that all?", Yes),
    // Markers that are mentioned, quoted or part of an event.
    (
        Structured,
        "ai I will print LOOP_COMPLETE when the tests pass.",
        Ignored("alone on its own line"),
    ),
    (
        Structured,
        "ai Shall I print LOOP_COMPLETE?",
        Ignored("alone on its own line"),
    ),
    (Structured, "ai LOOP_COMPLETE?", Ignored("alone on its own line")),
    (
        Structured,
        "ai Not LOOP_COMPLETE yet.",
        Ignored("alone on its own line"),
    ),
    (Structured, "ai - LOOP_COMPLETE", Ignored("alone on its own line")),
    (Structured, "ai > LOOP_COMPLETE", Ignored("alone on its own line")),
    (
        Structured,
        "ai Status: LOOP_COMPLETE",
        Ignored("alone on its own line"),
    ),
    (
        Structured,
        "ai Say <promise>COMPLETE</promise>\\nwhen you are done.",
        Ignored("alone on its own line"),
    ),
    (Structured, "ai ```\\nLOOP_COMPLETE\\n```", Ignored("code fence")),
    (
        Structured,
        "ai ```text\\necho\\nLOOP_COMPLETE",
        Ignored("code fence"),
    ),
    (
        Structured,
        "ai ~~~\\nLOOP_COMPLETE\\n~~~\\nis what I would print",
        Ignored("code fence"),
    ),
    (Structured, "ai ```\\nls\\n```\\nLOOP_COMPLETE", Yes),
    (
        Structured,
        "ai <event topic=\"build.done\">LOOP_COMPLETE</event>",
        Ignored("event payload"),
    ),
    (
        Structured,
        "ai <event topic=\"a\">\\nLOOP_COMPLETE\\n</event>",
        Ignored("event payload"),
    ),
    (
        Structured,
        "ai <event topic=\"build.done\">ok</event>\\nLOOP_COMPLETE",
        Yes,
    ),
    // Texts that only resemble a marker.
    (Structured, "ai incomplete", No),
    (Structured, "ai The task is complete.", No),
    (Structured, "ai COMPLETE", No),
    (Structured, "ai loop_complete", No),
    (Structured, "ai LOOP_COMPLETED", Ignored("alone on its own line")),
    (
        Structured,
        "ai NOT_LOOP_COMPLETE",
        Ignored("alone on its own line"),
    ),
    (Structured, "ai EXIT_SIGNAL: true", No),
    (Structured, "ai tests: pass", No),
    // Markers outside the assistant's messages.
    (Structured, "think LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "prompt LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "user LOOP_COMPLETE\nai Not yet.", No),
    (Structured, "sys LOOP_COMPLETE\nai Not yet.", No),
    (
        Structured,
        "nested LOOP_COMPLETE\nai The helper says it is done; I will check.",
        No,
    ),
    (
        Structured,
        "tool\nout Fix it, then print:\\nLOOP_COMPLETE\nend\nai I read PROMPT.md.",
        No,
    ),
    (
        Structured,
        "tool\nout LOOP_COMPLETE\nend\nai That log is from yesterday.",
        No,
    ),
    (Structured, "ai Working.\nstderr LOOP_COMPLETE", No),
    // The copy of the final message in the terminal event is ignored: the message is also a text.
    (Structured, "ai Working.\nok done\\nLOOP_COMPLETE", No),
    (
        Structured,
        "ai Working.\nai done\\nLOOP_COMPLETE\nok done\\nLOOP_COMPLETE",
        Yes,
    ),
    (Structured, "ai LOOP_COMPLETE\nok LOOP_COMPLETE", Yes),
    (Structured, "ai LOOP_COMPLETE\nok", Yes),
    (Structured, "ok first\nai LOOP_COMPLETE\nok", Yes),
    (
        Structured,
        "ok LOOP_COMPLETE\nai There is more to do.\nok There is more to do.",
        No,
    ),
    (Structured, "ok LOOP_COMPLETE\nai There is more to do.", No),
    (Structured, "ok LOOP_COMPLETE\ntool\nend", No),
    (
        Structured,
        "ai LOOP_COMPLETE\nok LOOP_COMPLETE\nai There is more to do.",
        Ignored("earlier message"),
    ),
    // Error texts in tickets, dependencies and logs are not failures of the agent.
    (
        Structured,
        "tool\nout error: API Error: 429 rate limit exceeded\nend\nai LOOP_COMPLETE",
        Yes,
    ),
    (
        Structured,
        "ai Bumped ratelimit to 0.9; quota.rs is tested.\\nLOOP_COMPLETE",
        Yes,
    ),
    (
        Structured,
        "stderr usage limit reached for the sandbox\nai LOOP_COMPLETE",
        Yes,
    ),
    (Structured, "ai Ticket: API Error: login shows 401", No),
    // Status blocks are not markers; only the last message counts.
    (
        Structured,
        "ai STATUS: COMPLETE\\nEXIT_SIGNAL: true\\nTASKS: incomplete",
        No,
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\nok LOOP_COMPLETE\nai A test fails.\nok A test fails.",
        Ignored("earlier message"),
    ),
    (
        Structured,
        "ai Not yet.\nok Not yet.\nai LOOP_COMPLETE\nok LOOP_COMPLETE",
        Yes,
    ),
    // Output of a previous run, read back from its log.
    (
        Structured,
        "tool\nout RALPH: LOOP_COMPLETE\\n<promise>COMPLETE</promise>\nend\nai The last run says that it was done.",
        No,
    ),
    (Structured, "user <<<RALPHEX:FAILED>>>\nai Going on.", No),
    (
        Structured,
        "tool\nout <<<RALPHEX:FAILED>>>\nend\nai LOOP_COMPLETE",
        Yes,
    ),
    // Unterminated lines and unusual whitespace.
    (Structured, "ai done\\n\u{a0}LOOP_COMPLETE\u{a0}", Yes),
    (
        Structured,
        "ai ✅ LOOP_COMPLETE",
        Ignored("alone on its own line"),
    ),
    (Structured, "ai __LOOP_COMPLETE__!", Yes),
    // A failed agent is not done, whatever its messages contain.
    (Structured, "ai LOOP_COMPLETE\nbad", Failed),
    (Structured, "ai LOOP_COMPLETE\nok\nexit 1", Failed),
    (Structured, "ai LOOP_COMPLETE\nok\nexit 143", Failed),
    (Structured, "ai LOOP_COMPLETE\ncut", Failed),
    (
        Structured,
        "error API Error: 500\nai Recovered.\\nLOOP_COMPLETE",
        Yes,
    ),
    (Structured, "", Failed),
    (Structured, "think LOOP_COMPLETE\nexit 1", Failed),
    (Structured, "ai <<<RALPHEX:FAILED>>>", DeclaredFailure),
    (
        Structured,
        "ai I cannot do this. <<<RALPHEX:TASK_FAILED>>>",
        DeclaredFailure,
    ),
    (
        Structured,
        "ai LOOP_COMPLETE\\n<<<RALPHEX:FAILED>>>",
        DeclaredFailure,
    ),
    (
        Structured,
        "ai <<<RALPHEX:FAILED>>>\\nLOOP_COMPLETE",
        DeclaredFailure,
    ),
    (
        Structured,
        "ai I would say <<<RALPHEX:FAILED>>> if it did not work.",
        Ignored("alone on its own line"),
    ),
    // Formats with lines only: the last 20 lines count, an echoed prompt does not.
    (Plain, "line working\nline LOOP_COMPLETE", Yes),
    (Plain, "line LOOP_COMPLETE\nline tokens used: 1,234", Yes),
    (Plain, "line done. <promise>COMPLETE</promise>", Yes),
    (
        Plain,
        "line Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE",
        Ignored("repeated the prompt"),
    ),
    (
        Plain,
        "line Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE\nline Fixed it.\nline LOOP_COMPLETE",
        Yes,
    ),
    (
        Plain,
        "line I print LOOP_COMPLETE at the end",
        Ignored("alone on its own line"),
    ),
    (
        Plain,
        "line ```\nline LOOP_COMPLETE\nline ```",
        Ignored("code fence"),
    ),
    (
        Plain,
        "line LOOP_COMPLETE\nmany more output",
        Ignored("more than 20 lines"),
    ),
    (Plain, "line LOOP_COMPLETE\nline\nline\nline bye", Yes),
    (Plain, "line LOOP_COMPLETE\nexit 1", Failed),
    (Plain, "stderr LOOP_COMPLETE\nline hm", No),
    (Plain, "stderr LOOP_COMPLETE", Failed),
    (Plain, "", Failed),
    (Plain, "line <<<RALPHEX:FAILED>>>", DeclaredFailure),
    (Plain, "line incomplete", No),
    (
        Plain,
        "line 429 Too Many Requests was the title\nline LOOP_COMPLETE",
        Yes,
    ),
    (
        Plain,
        "line $ cat PROMPT.md\nline Fix the bug.\nline When everything is done, print:\nline LOOP_COMPLETE\nline ok",
        Ignored("repeated the prompt"),
    ),
];
