// Tests the page of `ralph serve` in Chromium. `run.sh` starts it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { attackFromOtherOrigins, openHostileJournal } from "./attacks.mjs";

const { chromium } = await import(process.env.PLAYWRIGHT);
const { RALPH_BIN, CHROMIUM, SCREENSHOTS } = process.env;
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP evil.example 127.0.0.1"];
const GOLDEN = join(dirname(fileURLToPath(import.meta.url)), "../../golden/events.v1.jsonl");

// An agent that prints RTF1, waits for a file named `go`, and completes in its third iteration.
const AGENT = `#!/bin/bash
cat >/dev/null
say() { printf '@@RALPH@@ %s\\n' "$1"; }
say '{"type":"text","tag":"THINK","text":"The failing test concerns <b>escaping</b>."}'
say '{"type":"tool_start","tool":{"id":"1","name":"Bash","input":{"command":"cargo test"}}}'
say '{"type":"tool_output","tool":{"id":"1"},"text":"test parses_a_field ... FAILED"}'
say '{"type":"tool_end","tool":{"id":"1","status":"fail","duration_ms":1200}}'
say '{"type":"text","tag":"AI","text":"The parser **drops** a field:\\n\\n- read it\\n- keep it\\n\\n\`\`\`rust\\nlet field = \\"<kept>\\";\\n\`\`\`\\n"}'
echo "iteration $RALPH_ITERATION" >>notes.txt
say '{"type":"usage","usage":{"prompt_tokens":1200,"completion_tokens":340,"total_tokens":1540,"cost_usd":0.0123}}'
while [ -n "$WAIT" ] && [ ! -e "$WAIT" ]; do sleep 0.05; done
if [ "$RALPH_ITERATION" -ge 3 ] || [ -n "$WAIT" ]; then say '{"type":"text","tag":"AI","text":"Every test passes.\\n\\nLOOP_COMPLETE"}'
else say '{"type":"text","tag":"AI","text":"Two tests still fail."}'; fi
`;

const base = mkdtempSync(join(tmpdir(), "ralph-browser-"));
const env = { ...process.env, HOME: join(base, "home"), RALPH_STATE_DIR: join(base, "state"), TZ: "UTC" };
const project = join(base, "parser");
mkdirSync(env.HOME);
mkdirSync(project);
writeFileSync(join(project, "agent.sh"), AGENT, { mode: 0o755 });
writeFileSync(join(project, "ralph.yml"), "cli: {backend: custom, command: ./agent.sh, transcript: rtf1}\nevent_loop: {max_iterations: 5}\ngates: [{name: tests, run: echo '1 passed in 0.1s'}]\n");
const ralph = (args, extra = {}) => spawn(RALPH_BIN, args, { cwd: project, env: { ...env, ...extra }, stdio: ["ignore", "pipe", "inherit"] });
/** Creates a project whose agent is a script. */
function createProject(name, script) {
  const path = join(base, name);
  mkdirSync(path);
  writeFileSync(join(path, "agent.sh"), `#!/bin/bash\ncat >/dev/null\nsay() { printf '@@RALPH@@ %s\\n' "$1"; }\n${script}\n`, { mode: 0o755 });
  writeFileSync(join(path, "ralph.yml"), "cli: {backend: custom, command: ./agent.sh, transcript: rtf1}\nevent_loop: {max_iterations: 5}\n");
  return path;
}
const processes = [];

function startServer(port = 0) {
  const server = ralph(["serve", "--steer", "--port", String(port)]);
  processes.push(server);
  return new Promise((resolve, reject) => {
    let text = "";
    server.stdout.on("data", (chunk) => {
      text += chunk;
      const address = text.match(/http:\/\/localhost:(\d+)\/\S+/);
      if (address) resolve({ server, address: address[0], port: Number(address[1]) });
    });
    server.on("exit", () => reject(new Error("ralph serve ended")));
  });
}

const shot = async (page, name) => {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
};
const exited = (child) => new Promise((resolve) => (child.exitCode === null ? child.on("exit", resolve) : resolve(child.exitCode)));

let [passed, failed] = [0, 0];
async function test(name, body) {
  try {
    await body();
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
try {
  assert.equal(spawnSync(RALPH_BIN, ["run", "-q", "-p", "# Fix the parser"], { cwd: project, env }).status, 0);
  let { server, address, port } = await startServer();
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(20000);
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (message.text().includes("Content Security Policy")) problems.push(message.text()); });
  const requests = new Set();
  page.on("request", (request) => requests.add(new URL(request.url()).host));

  await test("the printed address signs in and the list shows the completed run", async () => {
    await page.goto(address);
    await page.waitForSelector(".row");
    assert.match(await page.textContent(".rows"), /Fix the parser.*Complete.*parser/s);
    assert.match(await page.textContent(".stats"), /1 of 1 run/);
    await shot(page, "list");
  });

  await test("filters are part of the address", async () => {
    await page.click(".segments >> text=Failed");
    await page.waitForSelector(".empty:has-text('No run matches')");
    assert.match(page.url(), /outcome=failed/);
    await page.click(".segments >> text=All");
    await page.waitForSelector(".row");
  });

  await test("the transcript renders Markdown and escapes the agent's markup", async () => {
    await page.click(".row-title");
    await page.waitForSelector(".transcript h2");
    assert.equal(await page.textContent(".transcript strong"), "drops");
    assert.match(await page.textContent(".transcript .prose pre"), /"<kept>"/);
    assert.equal(await page.locator(".transcript .think b").count(), 0);
    assert.match(await page.textContent(".run-header"), /Done\. All gates passed/);
    assert.equal(await page.locator(".turn").count(), 3);
    await shot(page, "run");
  });

  await test("search counts its matches and goes through them", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("still fail");
    await page.keyboard.press("Enter");
    assert.equal(await page.textContent(".found-count"), "1 of 2");
    await page.keyboard.press("Enter");
    assert.equal(await page.textContent(".found-count"), "2 of 2");
    await page.fill(".toolbar input[type=search]", "nowhere");
    await page.keyboard.press("Enter");
    assert.equal(await page.textContent(".found-count"), "no match");
    await page.keyboard.press("Escape");
  });

  await test("each block has a link to its record", async () => {
    const link = page.locator(".transcript [data-block]:has-text('drops') > .anchor a").first();
    const target = await link.getAttribute("href");
    const view = await context.newPage();
    await view.goto(page.url().split("#")[0] + target);
    await view.waitForSelector(".found:has-text('drops')");
    const record = await page.request.get(`http://localhost:${port}${await page.locator(".transcript [data-block]:has-text('drops') > .anchor a").nth(1).getAttribute("href")}`);
    assert.equal((await record.json()).seq, Number(target.slice(2)));
    await view.close();
  });

  await test("the tabs show the changes of each iteration, the gates, the prompt and the details", async () => {
    await page.click("#tab-changes");
    await page.waitForSelector(".file:has-text('notes.txt') .patch .added:has-text('iteration 3')");
    await shot(page, "changes");
    await page.click(".turn >> nth=1");
    await page.waitForFunction(() => {
      const text = document.querySelector("#panel-changes").textContent;
      return text.includes("iteration 2") && !text.includes("iteration 3");
    });
    await page.click(".turn >> nth=1");
    await page.focus("#tab-changes");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".gate-card:has-text('1 passed')");
    await page.click("#tab-prompt");
    await page.waitForSelector(".prompt-text:has-text('# Fix the parser')");
    await page.click("#tab-details");
    await page.waitForSelector(".commands:has-text('ralph diff')");
    assert.equal(await page.getAttribute("#tab-details", "aria-selected"), "true");
  });

  const go = join(base, "go");
  const run = ralph(["run", "-q", "-p", "Migrate the billing module"], { WAIT: go });
  processes.push(run);
  await test("a live run appears in the list and its page follows it", async () => {
    await page.click(".home");
    await page.waitForSelector(".card:has-text('Migrate the billing module')");
    await page.click(".card");
    await page.waitForSelector(".turn.live");
    assert.match(await page.textContent(".pill"), /Agent/);
    await shot(page, "live");
  });

  await test("a message is sent to the run", async () => {
    await page.fill("input[aria-label='Message for the next prompt']", "use the new API");
    await page.click("text=Send");
    await page.waitForSelector(".steering [role=status]:has-text('Sent')");
    await page.waitForSelector(".transcript :text('use the new API')");
  });

  await test("the page reconnects after the server was killed", async () => {
    server.kill("SIGKILL");
    await page.waitForSelector("#connection.bad");
    writeFileSync(go, "");
    await exited(run);
    ({ server } = await startServer(port));
    await page.waitForSelector(".pill.good");
    assert.match(await page.textContent(".transcript"), /Every test passes/);
    const headings = await page.locator(".transcript h2").count();
    assert.equal(headings, await page.locator(".turn").count(), "nothing is shown twice");
  });

  await test("the question of an agent is answered", async () => {
    const asking = createProject("asking", `if [ "$RALPH_ITERATION" = 1 ]; then say '{"type":"text","tag":"AI","text":"<event topic=\\"ask\\">SQLite or PostgreSQL?</event>"}'
else say '{"type":"text","tag":"AI","text":"LOOP_COMPLETE"}'; fi`);
    const child = spawn(RALPH_BIN, ["run", "-q", "-p", "Choose a database"], { cwd: asking, env, stdio: "ignore" });
    processes.push(child);
    await page.click(".home");
    await page.click(".card.warning:has-text('SQLite or PostgreSQL?')");
    await page.fill("input[aria-label='Your answer']", "SQLite");
    await shot(page, "question");
    await page.click(".question button");
    assert.equal(await exited(child), 0);
    await page.waitForSelector(".pill.good");
    assert.equal(await page.locator(".question:not(:empty)").count(), 0);
    await page.click("#tab-prompt");
    await page.waitForSelector(".prompt-text:has-text('SQLite')");
  });

  await test("a plan shows its tasks and why one is parked", async () => {
    const planned = createProject("planned", `say '{"type":"text","tag":"AI","text":"LOOP_COMPLETE"}'`);
    writeFileSync(join(planned, "PLAN.md"), "- [ ] Write the page\n- [ ] Send the mail\n  - gate: `false`\n  - max_iterations: 1\n");
    assert.equal(spawnSync(RALPH_BIN, ["plan", "run", "PLAN.md"], { cwd: planned, env, stdio: "ignore" }).status, 1);
    await page.click(".tabs-top >> text=Plans");
    await page.click(".card:has-text('1 of 2 tasks')");
    await page.waitForSelector(".task:has-text('Write the page'):has-text('done')");
    await page.waitForSelector(".task:has-text('Send the mail'):has-text('parked')");
    assert.match(await page.textContent(".timeline"), /is parked/);
    await shot(page, "plan");
    await page.click(".task:has-text('Write the page') a");
    await page.waitForSelector(".pill.good");
  });

  await test("totals by project and agent", async () => {
    await page.click(".tabs-top >> text=Usage");
    await page.waitForSelector(".panel:has-text('By project') >> text=parser");
    await page.click(".segments >> text=Tokens");
    assert.match(await page.textContent(".panel-head h2"), /tokens/);
    await page.click("#theme");
    assert.equal(await page.getAttribute("html", "data-theme"), "light");
  });

  await test("only what is visible is in the document", async () => {
    const long = join(base, "long");
    mkdirSync(long);
    writeFileSync(join(long, "agent.sh"), `#!/bin/bash
cat >/dev/null
for i in $(seq 20000); do
  printf '@@RALPH@@ {"type":"tool_start","tool":{"id":"%d","name":"Read","input":{"path":"file%d"}}}\\n' $i $i
  printf '@@RALPH@@ {"type":"tool_end","tool":{"id":"%d","status":"ok"}}\\n' $i
done
printf '@@RALPH@@ {"type":"text","tag":"AI","text":"LOOP_COMPLETE"}\\n'
`, { mode: 0o755 });
    writeFileSync(join(long, "ralph.yml"), "cli: {backend: custom, command: ./agent.sh, transcript: rtf1}\n");
    assert.equal(spawnSync(RALPH_BIN, ["run", "-q", "-p", "long"], { cwd: long, env }).status, 0);
    await page.click(".home");
    await page.click(".row-title:text-is('long')");
    await page.waitForFunction(() => document.querySelectorAll(".chunk").length > 300, undefined, { timeout: 60000 });
    await page.waitForFunction(() => document.querySelectorAll("[data-block]").length < 600);
    await page.keyboard.press("/");
    await page.keyboard.type("file15000");
    await page.keyboard.press("Enter");
    assert.equal(await page.textContent(".found-count"), "1 of 1");
    assert.match(await page.textContent(".found"), /file15000/);
  });

  await test("dark and phone width", async () => {
    const phone = await browser.newContext({ viewport: { width: 390, height: 800 }, colorScheme: "dark", storageState: await context.storageState() });
    const view = await phone.newPage();
    await view.goto(`http://localhost:${port}/`);
    await view.waitForSelector(".row");
    const width = await view.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} wide`);
    const background = await view.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.match(background, /^(rgb|color)/, background);
    await shot(view, "phone");
    await view.locator(".row-title").last().click();
    await view.waitForSelector(".transcript h2");
    const wide = await view.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `the page of the run is ${wide} wide`);
    await shot(view, "phone-run");
    await phone.close();
  });

  await test("pages of other origins neither read nor steer", async () => {
    const target = createProject("target", "sleep 600");
    const child = spawn(RALPH_BIN, ["run", "-q", "-p", "Stay alone"], { cwd: target, env, stdio: "ignore" });
    processes.push(child);
    await page.goto(`http://localhost:${port}/`);
    await page.click(".card:has-text('Stay alone')");
    const run = page.url().split("/").pop();
    const commandsOf = () => {
      const journal = readdirSync(join(base, "state/projects")).map((name) => join(base, "state/projects", name, "runs", run, "events.jsonl")).find((path) => existsSync(path));
      return readFileSync(journal, "utf8").split("\n").filter((line) => line.includes('"type":"told"'));
    };
    const attacks = await attackFromOtherOrigins(context, { port, run, commandsOf });
    assert.ok(attacks >= 25, `${attacks} attacks`);
    assert.equal(child.exitCode, null, "the run continues");
    child.kill("SIGTERM");
    await exited(child);
  });

  await test("markup in every text of a journal stays text", () => openHostileJournal(context, { state: join(base, "state"), golden: GOLDEN, port }));

  await test("nothing is loaded from elsewhere and no script fails", async () => {
    assert.deepEqual([...requests], [`localhost:${port}`]);
    assert.deepEqual(problems, []);
  });
} finally {
  await browser.close();
  for (const child of processes) child.kill("SIGKILL");
  rmSync(base, { recursive: true, force: true });
}
console.log(`browser: ${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
