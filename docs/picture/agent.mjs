// A scripted agent for pictures: it prints what Claude Code and Codex print, and works on the project in the current directory.
// `serve.mjs` puts it on the PATH under both names.

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";

if (process.argv.includes("--version")) {
  console.log(process.env.PICTURE_AGENT === "codex" ? "codex-cli 0.142.0" : "2.1.300 (Claude Code)");
  process.exit(0);
}
const iteration = Number(process.env.RALPH_ITERATION || 1);
const print = (value) => console.log(JSON.stringify(value));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let [count, cost] = [0, 0];

const claude = {
  start: () => print({ type: "system", subtype: "init", session_id: "6f1c2a90-5a1e-4a35-9d0e-3c1f5a7e21b4", model: "claude-opus-4-8", tools: ["Read", "Edit", "Bash"], cwd: process.cwd() }),
  block: (content) => print({ type: "assistant", message: { id: `msg_${count += 1}`, role: "assistant", model: "claude-opus-4-8", content: [content], usage: { input_tokens: 5, cache_read_input_tokens: 21400 + 900 * count, output_tokens: 310 } } }),
  think: (thinking) => claude.block({ type: "thinking", thinking }),
  say: (text) => claude.block({ type: "text", text }),
  async tool(name, input, output, failed = false) {
    const id = `toolu_${count + 1}`;
    claude.block({ type: "tool_use", id, name, input });
    await pause(60);
    print({ type: "user", message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: output, is_error: failed }] } });
  },
  end(result) {
    cost = 0.18 + 0.11 * iteration + 0.013 * count;
    print({ type: "result", subtype: "success", is_error: false, result, session_id: "6f1c2a90-5a1e-4a35-9d0e-3c1f5a7e21b4", num_turns: count, duration_ms: 5000, total_cost_usd: cost, usage: { input_tokens: 1840, cache_read_input_tokens: 148000 + 21000 * iteration, output_tokens: 4200 + 600 * iteration } });
  },
};
const codex = {
  start: () => { print({ type: "thread.started", thread_id: "0199a213-81c0-7800-8aa1-bbab2a035a53" }); print({ type: "turn.started" }); },
  item: (item) => print({ type: "item.completed", item: { id: `item_${count += 1}`, ...item } }),
  think: (text) => codex.item({ type: "reasoning", text }),
  say: (text) => codex.item({ type: "agent_message", text }),
  async tool(name, input, output, failed = false) {
    await pause(60);
    codex.item({ type: "command_execution", command: input.command || `${name} ${input.file_path}`, aggregated_output: output, exit_code: failed ? 1 : 0, status: failed ? "failed" : "completed" });
  },
  end: () => print({ type: "turn.completed", usage: { input_tokens: 96000, cached_input_tokens: 71000, output_tokens: 5200 } }),
};
const agent = process.env.PICTURE_AGENT === "codex" ? codex : claude;

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return agent.tool("Edit", { file_path: `${process.cwd()}/${path}` }, `The file ${path} has been updated.`);
}
const finish = (text) => { agent.say(text); agent.end(text); };
const forever = async () => { while (!existsSync(process.env.PICTURE_STOP || "/nonexistent")) await pause(200); };

const TAX = `"""Tax of an invoice."""
from decimal import Decimal, ROUND_HALF_UP

RATES = {"DE": Decimal("0.19"), "FR": Decimal("0.20"), "CH": Decimal("0.081")}


def tax(net: Decimal, country: str) -> Decimal:
    rate = RATES[country]
    return (net * rate).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
`;

const SCENES = {
  async "billing-service"() {
    agent.think(iteration === 1
      ? "The invoices still round with floats. I should find every caller of the old helper before I change its signature."
      : "The gate shows that reverse charge is not handled: a business customer in another country pays no tax.");
    if (iteration === 1) {
      await agent.tool("Bash", { command: "rg -n 'round_tax' src" }, "src/invoice.py:14:    total = net + round_tax(net * rate)\nsrc/report.py:31:    tax = round_tax(sum(rows))");
      await agent.tool("Read", { file_path: `${process.cwd()}/src/invoice.py` }, readFileSync("src/invoice.py", "utf8"));
      await write("src/tax.py", TAX);
      await write("src/invoice.py", "from decimal import Decimal\n\nfrom .tax import tax\n\n\ndef total(net: Decimal, country: str) -> Decimal:\n    return net + tax(net, country)\n");
      finish("The invoices use `Decimal` and the new **tax engine**:\n\n- `src/tax.py` has one table of rates and rounds half up\n- `src/invoice.py` no longer rounds floats\n\n```python\ndef total(net: Decimal, country: str) -> Decimal:\n    return net + tax(net, country)\n```\n\nLOOP_COMPLETE");
    } else if (iteration === 2) {
      await agent.tool("Bash", { command: "pytest -q tests/test_invoice.py" }, "FAILED tests/test_invoice.py::test_reverse_charge\n1 failed, 13 passed in 0.41s", true);
      await write("src/tax.py", TAX.replace("def tax(net: Decimal, country: str) -> Decimal:\n", "def tax(net: Decimal, country: str, business: bool = False) -> Decimal:\n    if business and country != HOME:\n        return Decimal(\"0.00\")  # reverse charge\n").replace("RATES =", "HOME = \"DE\"\nRATES ="));
      finish("Reverse charge is handled. The report still uses the old rounding, so the work continues.");
    } else {
      await agent.tool("Read", { file_path: `${process.cwd()}/src/report.py` }, readFileSync("src/report.py", "utf8"));
      await write("src/report.py", "from .tax import tax\n\n\ndef summary(invoices):\n    return sum(tax(i.net, i.country, i.business) for i in invoices)\n");
      await write("docs/tax.md", "# Tax\n\nRates per country are in `src/tax.py`. Business customers abroad pay no tax (reverse charge).\n");
      appendFileSync("src/.done", "yes\n");
      await agent.tool("Bash", { command: "pytest -q" }, "..............\n14 passed in 0.44s");
      finish("All invoices and reports use the tax engine, and `docs/tax.md` describes it.\n\nLOOP_COMPLETE");
    }
  },
  async parser() {
    agent.think("A quoted field may contain the separator.");
    await write("src/lib.rs", "pub fn fields(line: &str) -> Vec<String> {\n    csv_core::split(line)\n}\n");
    await agent.tool("Bash", { command: "cargo test" }, "test quoted_separator ... ok\ntest result: ok. 9 passed; 0 failed");
    finish("Quoted fields keep their separators.\n\nLOOP_COMPLETE");
  },
  async mobile() {
    await agent.tool("Bash", { command: "./gradlew assembleDebug" }, "error: cannot find symbol class SplashScreen", true);
    process.stderr.write("API error: 500 internal server error\n");
    process.exit(1);
  },
  async "web-app"() {
    agent.think("The bundle contains two date libraries. One of them is only used by the calendar.");
    await agent.tool("Bash", { command: "npx source-map-explorer dist/*.js --json" }, "moment 231 kB\ndate-fns 18 kB\nreact-dom 130 kB");
    if (iteration < 3) {
      await write(`src/calendar-${iteration}.ts`, "import { addDays } from \"date-fns\";\nexport const week = (day: Date) => [...Array(7).keys()].map((n) => addDays(day, n));\n");
      return finish("`moment` is gone from the calendar. The settings page still imports it.");
    }
    agent.say("The settings page formats relative times. I am replacing `moment().fromNow()` with `formatDistanceToNow`:\n\n1. the profile\n2. the audit log\n3. the billing page");
    print({ type: "assistant", message: { id: "msg_last", role: "assistant", model: "claude-opus-4-8", content: [{ type: "tool_use", id: "toolu_last", name: "Bash", input: { command: "npm run test:e2e" } }], usage: { input_tokens: 5, output_tokens: 210, cache_read_input_tokens: 30200 } } });
    return forever();
  },
  async "docs-site"() {
    await agent.tool("Read", { file_path: `${process.cwd()}/mkdocs.yml` }, "theme: material");
    finish("The old pages can be redirected or removed.\n\n<event topic=\"ask\">Should the 41 pages of version 1 redirect to version 2, or return 410 Gone?</event>");
  },
  async "search-index"() {
    agent.say("The index is rebuilt in the background.");
    print({ type: "rate_limit_event", rate_limit_info: { status: "rejected", rateLimitType: "five_hour", resetsAt: Math.floor(Date.now() / 1000) + 2520 } });
    print({ type: "result", subtype: "success", is_error: true, result: "You've hit your limit", session_id: "6f1c2a90-5a1e-4a35-9d0e-3c1f5a7e21b4", num_turns: 3, total_cost_usd: 0.42, usage: { input_tokens: 900, output_tokens: 1200 } });
    process.exit(1);
  },
};

/** A task of the plan in the project `shop`. */
async function shop() {
  const prompt = readFileSync(0, "utf8") + process.argv.join(" ");
  agent.think("I look at the code that the task names.");
  if (prompt.includes("Add the search page")) { await write("pages/search.html", "<h1>Search</h1>\n"); agent.say("The page shows results while you type."); return forever(); }
  if (prompt.includes("Send receipts by mail")) return finish("There is no mail server in this environment.\n\nLOOP_COMPLETE");
  const name = (prompt.match(/(Create|Add|Write|Move|Show) the? ?([a-z ]+)/) || ["", "", "task"])[2].trim().replaceAll(" ", "-");
  await write(`pages/${name}.html`, `<h1>${name}</h1>\n`);
  return finish("The page is there and its test passes.\n\nLOOP_COMPLETE");
}

agent.start();
await (SCENES[basename(process.cwd())] || shop)();
