//! The cases: how an agent's output is read, what it says, and whether that means done.

use super::Done::{self, *};
use super::Format::{self, *};

pub(super) const CASES: &[(Format, &str, Done)] = &[
    // A marker as it should be.
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
    // Split over the stream.
    (Structured, "ai done\\nLOOP_\n+COMPLETE", Yes),
    (Structured, "ai L\n+OOP\n+_COMP\n+LETE", Yes),
    (Structured, "ai <promise>COMP\n+LETE</promise>", Yes),
    (Structured, "line All good.\nline LOOP_COMPLETE", Yes),
    (
        Structured,
        "ai done\\n\n+LOOP_COMPLETE\n+ it will be",
        Ignored("middle of a sentence"),
    ),
    // Attempt before the final message is as it should be; after it, it was not final.
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
    // Named, not given.
    (
        Structured,
        "ai I will print LOOP_COMPLETE when the tests pass.",
        Ignored("middle of a sentence"),
    ),
    (
        Structured,
        "ai Shall I print LOOP_COMPLETE?",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai LOOP_COMPLETE?", Ignored("middle of a sentence")),
    (
        Structured,
        "ai Not LOOP_COMPLETE yet.",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai - LOOP_COMPLETE", Ignored("middle of a sentence")),
    (Structured, "ai > LOOP_COMPLETE", Ignored("middle of a sentence")),
    (
        Structured,
        "ai Status: LOOP_COMPLETE",
        Ignored("middle of a sentence"),
    ),
    (
        Structured,
        "ai Say <promise>COMPLETE</promise>\\nwhen you are done.",
        Ignored("middle of a sentence"),
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
        Ignored("event's payload"),
    ),
    (
        Structured,
        "ai <event topic=\"a\">\\nLOOP_COMPLETE\\n</event>",
        Ignored("event's payload"),
    ),
    (
        Structured,
        "ai <event topic=\"build.done\">ok</event>\\nLOOP_COMPLETE",
        Yes,
    ),
    // Words that only look like it.
    (Structured, "ai incomplete", No),
    (Structured, "ai The task is complete.", No),
    (Structured, "ai COMPLETE", No),
    (Structured, "ai loop_complete", No),
    (Structured, "ai LOOP_COMPLETED", Ignored("middle of a sentence")),
    (
        Structured,
        "ai NOT_LOOP_COMPLETE",
        Ignored("middle of a sentence"),
    ),
    (Structured, "ai EXIT_SIGNAL: true", No),
    (Structured, "ai tests: pass", No),
    // Somebody else's words.
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
    // The terminal event repeats the final message; it is the final message.
    (Structured, "ai Working.\nok done\\nLOOP_COMPLETE", Yes),
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
    // Words that ended good runs elsewhere: a ticket, a dependency, a log. None of them is the agent's failure.
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
    // A status block, in whatever form, is not a marker; the last word is the last message's.
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
    // What the last run said, read back from its log.
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
    // Half a line is a whole one when nothing follows; spaces of any kind are no words.
    (Structured, "ai done\\n\u{a0}LOOP_COMPLETE\u{a0}", Yes),
    (Structured, "ai ✅ LOOP_COMPLETE", Ignored("middle of a sentence")),
    (Structured, "ai __LOOP_COMPLETE__!", Yes),
    // Who failed has not finished, whatever was said.
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
    (Structured, "ai <<<RALPHEX:FAILED>>>", GaveUp),
    (
        Structured,
        "ai I cannot do this. <<<RALPHEX:TASK_FAILED>>>",
        GaveUp,
    ),
    (Structured, "ai LOOP_COMPLETE\\n<<<RALPHEX:FAILED>>>", GaveUp),
    (Structured, "ai <<<RALPHEX:FAILED>>>\\nLOOP_COMPLETE", GaveUp),
    (
        Structured,
        "ai I would say <<<RALPHEX:FAILED>>> if it did not work.",
        Ignored("middle of a sentence"),
    ),
    // Lines only: the last twenty count, an echoed prompt does not.
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
        Ignored("middle of a sentence"),
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
    (Plain, "line <<<RALPHEX:FAILED>>>", GaveUp),
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
