#!/usr/bin/env python3
"""A scripted agent that prints RTF1: a line that starts with "@@RALPH@@ " contains one event as JSON. All other lines are
the answer. Uses only the standard library of Python 3."""

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path


def event(**fields):
    print("@@RALPH@@ " + json.dumps(fields), flush=True)


@contextmanager
def tool(id, name, **arguments):
    """Reports the start, the output and the end of a tool call."""
    event(type="tool_start", tool={"id": id, "name": name, "input": arguments})
    started = time.monotonic()
    status = "fail"
    try:
        yield lambda text: event(type="tool_output", tool={"id": id}, text=text)
        status = "ok"
    finally:
        milliseconds = int((time.monotonic() - started) * 1000)
        event(type="tool_end", tool={"id": id, "status": status, "duration_ms": milliseconds})


prompt = sys.stdin.read()

event(type="meta", meta={"kind": "session", "session_id": "python-1"})
event(type="text", tag="THINK", text="Read the notes, count the words, write the number to count.txt.")

with tool("t1", "read", path="notes.txt") as output:
    words = Path("notes.txt").read_text().split()
    output(f"{len(words)} words")

with tool("t2", "write", path="count.txt") as output:
    Path("count.txt").write_text(f"{len(words)}\n")

event(type="usage", usage={"prompt_tokens": len(prompt) // 4, "completion_tokens": 40, "model": "none"})
print(f"notes.txt has {len(words)} words. The number is in count.txt.")
print("LOOP_COMPLETE")
