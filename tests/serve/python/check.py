"""Checks the API of `ralph serve` and its traces. `run.sh` starts it."""

import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

RALPH = os.environ["RALPH_BIN"]
# Streams do not end, so only their status could be compared.
EXCLUDED = r"/(events|page)$"
AGENT = """#!/bin/bash
cat >/dev/null
say() { printf '@@RALPH@@ %s\\n' "$1"; }
say '{"type":"tool_start","tool":{"id":"1","name":"Bash","input":{"command":"cargo test"}}}'
say '{"type":"tool_end","tool":{"id":"1","status":"fail","duration_ms":1200}}'
echo "iteration $RALPH_ITERATION" >>notes.txt
say '{"type":"usage","usage":{"prompt_tokens":1200,"completion_tokens":340,"cost_usd":0.0123}}'
if [ "$RALPH_ITERATION" -ge 3 ]; then say '{"type":"text","tag":"AI","text":"LOOP_COMPLETE"}'
else say '{"type":"text","tag":"AI","text":"Not yet."}'; fi
"""


def create(base):
    """A project with a completed run and a plan, whose traces are sent to a collector."""
    received = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    project = base / "project"
    project.mkdir()
    (base / "home").mkdir()
    (project / "agent.sh").write_text(AGENT)
    (project / "agent.sh").chmod(0o755)
    (project / "ralph.yml").write_text(
        "cli: {backend: custom, command: ./agent.sh, transcript: rtf1}\n"
        "event_loop: {max_iterations: 5}\ngates: [{name: tests, run: 'true'}]\n"
    )
    (project / "PLAN.md").write_text("- [ ] Write the page\n")
    env = {**os.environ, "HOME": str(base / "home"), "RALPH_STATE_DIR": str(base / "state")}
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    run = {**env, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    subprocess.run([RALPH, "run", "-q", "-p", "# Fix the parser"], cwd=project, env=run, check=True)
    subprocess.run([RALPH, "plan", "run", "PLAN.md"], cwd=project, env=env, check=True, stdout=subprocess.DEVNULL)
    return project, env, received


def decoded(document):
    """Parses OTLP/JSON, in which ids are hexadecimal, with the protobuf definitions, in which they are base64."""
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return json_format.ParseDict(document, ExportTraceServiceRequest())


def spans_of(requests):
    return [span for request in requests for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


def attribute(span, key):
    for pair in span.attributes:
        if pair.key == key:
            return getattr(pair.value, pair.value.WhichOneof("value"))
    return None


def check_traces(project, env, received):
    """The sums of the spans are those of the journal, both when exported and when sent."""
    runs = json.loads(subprocess.check_output([RALPH, "runs", "--json"], cwd=project, env=env))
    runs = runs if isinstance(runs, list) else runs["runs"]
    run = runs[-1]["id"]
    shown = json.loads(subprocess.check_output([RALPH, "show", run, "--json"], cwd=project, env=env))
    exported = json.loads(subprocess.check_output([RALPH, "export", run, "--format", "otlp"], cwd=project, env=env))
    for name, requests in (("exported", [exported]), ("sent", received)):
        spans = spans_of([decoded(request) for request in requests])
        ids = {span.span_id for span in spans}
        assert len(ids) == len(spans), f"{name}: ids are unique"
        assert len({span.trace_id for span in spans}) == 1, f"{name}: one trace"
        assert [span.name.split()[0] for span in spans if not span.parent_span_id] == ["ralph"], f"{name}: one root"
        assert all(not span.parent_span_id or span.parent_span_id in ids for span in spans), f"{name}: parents exist"
        assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans), f"{name}: times"
        iterations = [span for span in spans if span.name.startswith("iteration")]
        assert len(iterations) == shown["iteration_count"] == 3, f"{name}: {len(iterations)} iterations"
        for operation, count in (("invoke_agent", 3), ("execute_tool", 3), ("invoke_workflow", 1)):
            assert sum(attribute(span, "gen_ai.operation.name") == operation for span in spans) == count, f"{name}: {operation}"
        for key, total in (
            ("gen_ai.usage.input_tokens", shown["usage"]["prompt_tokens"]),
            ("gen_ai.usage.output_tokens", shown["usage"]["completion_tokens"]),
        ):
            assert sum(attribute(span, key) or 0 for span in iterations) == total, f"{name}: {key}"
        cost = sum(attribute(span, "ralph.cost_usd") or 0 for span in iterations)
        assert abs(cost - shown["usage"]["cost_usd"]) < 1e-9, f"{name}: cost {cost}"
        print(f"traces: {name}: {len(spans)} spans decoded, sums equal the journal")


def check_api(project, env):
    """schemathesis compares every answer with the document."""
    server = subprocess.Popen([RALPH, "serve", "--steer", "--port", "0"], cwd=project, env=env, stdout=subprocess.PIPE, text=True)
    try:
        address = re.match(r"Open (http://localhost:\d+)(/\S+)", server.stdout.readline())
        origin, sign_in = address.groups()
        cookie = urllib.request.urlopen(origin + sign_in).headers["Set-Cookie"].split(";")[0]
        arguments = [
            str(Path(sys.executable).with_name("schemathesis")), "run", f"{origin}/api/v1/openapi.json",
            "--header", f"Cookie: {cookie}", "--header", f"Origin: {origin}",
            "--exclude-path-regex", EXCLUDED, "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
            "--max-examples", os.environ.get("EXAMPLES", "20"), "--seed", "1", "--request-timeout", "20", "--no-color",
        ]
        return subprocess.run(arguments, cwd=project).returncode
    finally:
        server.kill()


with tempfile.TemporaryDirectory(prefix="ralph-api-") as base:
    created = create(Path(base))
    check_traces(*created)
    sys.exit(check_api(*created[:2]))
