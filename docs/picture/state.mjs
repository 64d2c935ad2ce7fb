// Creates a state directory with runs of several projects, for pictures of the web page: real runs of a scripted agent, some of which
// are still running, and copies of them at earlier times.

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const AGENT = join(dirname(fileURLToPath(import.meta.url)), "agent.mjs");
const GATES = {
  "billing-service": "if [ -e src/.done ]; then echo '14 passed in 0.44s'; else printf '%s\\n' '=================================== FAILURES ===================================' '____________________________ test_reverse_charge ____________________________' '' '    def test_reverse_charge():' '>       assert total(Decimal(\"100\"), \"FR\", business=True) == Decimal(\"100\")' 'E       AssertionError: assert Decimal(\"120.00\") == Decimal(\"100\")' '' 'tests/test_invoice.py:42: AssertionError' '=========================== short test summary info ============================' 'FAILED tests/test_invoice.py::test_reverse_charge - AssertionError: assert Decimal(\"120.00\") == Decimal(\"100\")' '========================= 1 failed, 13 passed in 0.41s ========================='; exit 1; fi",
};
const TASKS = {
  "billing-service": ["# Migrate the invoices to the tax engine", "Round prices half up everywhere", "Add invoices in Swiss francs", "Replace the float totals in the yearly report"],
  parser: ["# Keep separators in quoted fields", "Parse fields with line breaks", "Report the line of a malformed record", "Double the throughput of long lines"],
  mobile: ["# Migrate to the new splash screen API", "Remove the deprecated permission dialogs", "Fix the crash when the app resumes offline"],
  "web-app": ["# Remove moment.js from the bundle"], "docs-site": ["# Retire the documentation of version 1"], "search-index": ["# Rebuild the index without downtime"],
};
const PLAN = `# Shop

- [ ] Create the cart
- [ ] Add the checkout page
  - needs: Create the cart
- [ ] Add the search page
- [ ] Write the terms page
- [ ] Send receipts by mail
  - gate: \`test -e pages/mail.html\`
- [ ] Show the order history
  - needs: Send receipts by mail
- [ ] Move the images to the new host
`;

/** Creates everything below `base` and returns the environment for `ralph`, and a function that ends the running runs. */
export async function createState(ralph, base) {
  mkdirSync(base, { recursive: true });
  base = realpathSync(base);
  const stop = join(base, "stop");
  for (const name of ["claude", "codex"]) {
    const path = join(base, "bin", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `#!/bin/sh\nPICTURE_AGENT=${name} exec '${process.execPath}' '${AGENT}' "$@"\n`);
    chmodSync(path, 0o755);
  }
  const env = { ...process.env, HOME: join(base, "home"), RALPH_STATE_DIR: join(base, "state"), PATH: `${join(base, "bin")}:${process.env.PATH}`, PICTURE_STOP: stop, TZ: "UTC",
    GIT_AUTHOR_NAME: "Ada", GIT_AUTHOR_EMAIL: "ada@example.com", GIT_COMMITTER_NAME: "Ada", GIT_COMMITTER_EMAIL: "ada@example.com" };
  mkdirSync(env.HOME);
  const children = [];
  const directory = (name) => join(base, "code", name);
  const start = (name, args) => {
    const child = spawn(ralph, args, { cwd: directory(name), env, stdio: "ignore" });
    children.push(child);
    return new Promise((resolve) => { child.on("exit", resolve); });
  };

  for (const [name, [task]] of Object.entries(TASKS)) {
    const path = directory(name);
    mkdirSync(join(path, "src"), { recursive: true });
    writeFileSync(join(path, "src/invoice.py"), "def total(net, rate):\n    return net + round_tax(net * rate)\n");
    writeFileSync(join(path, "src/report.py"), "def summary(rows):\n    return round_tax(sum(rows))\n");
    writeFileSync(join(path, "PROMPT.md"), `${task}\n\nKeep the public interface. Add tests for what you change.\n`);
    const agent = ["parser", "mobile"].includes(name) ? "codex" : "claude";
    writeFileSync(join(path, "ralph.yml"), `cli: {backend: ${agent}}\nevent_loop: {max_iterations: 20, max_consecutive_failures: 2}\nretry: {backoff: 0}\ngates:\n  - {name: tests, run: ${JSON.stringify(GATES[name] || "echo '9 passed in 0.2s'")}}\n`
      .replace("retry: {backoff: 0}\n", ""));
  }
  const path = directory("shop");
  mkdirSync(join(path, "pages"), { recursive: true });
  writeFileSync(join(path, "PLAN.md"), PLAN);
  writeFileSync(join(path, "ralph.yml"), "cli: {backend: claude}\nevent_loop: {max_iterations: 5}\ngates: [{name: pages, run: 'ls pages'}]\n");
  writeFileSync(join(path, "pages/index.html"), "<h1>Shop</h1>\n");
  for (const args of [["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Start"]]) spawnSync("git", args, { cwd: path, env });

  await Promise.all(["billing-service", "parser", "mobile"].map((name) => start(name, ["run", "-q"])));
  copyRuns(join(base, "state/projects"));
  for (const name of ["web-app", "docs-site", "search-index"]) start(name, ["run", "-q", "--no-tui"]);
  start("shop", ["plan", "run", "PLAN.md", "--jobs", "2"]);
  return { env, end: () => { writeFileSync(stop, ""); for (const child of children) child.kill("SIGKILL"); } };
}

const stamp = (time) => time.toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);

/** Copies the runs that have ended to the days before, with other tasks and costs. */
function copyRuns(projects) {
  let seed = 7;
  const random = () => { seed = (seed * 16807) % 2147483647; return seed / 2147483647; };
  for (const project of readdirSync(projects)) {
    const runs = join(projects, project, "runs");
    if (!existsSync(runs)) continue;
    const [original] = readdirSync(runs).filter((id) => /^\d{8}-/.test(id));
    const [name] = Object.keys(TASKS).filter((task) => project.startsWith(task));
    const journal = readFileSync(join(runs, original, "events.jsonl"), "utf8");
    const began = Date.parse(JSON.parse(journal.split("\n")[0]).at);
    for (let copy = 0; copy < 17; copy += 1) {
      const back = (copy * 1.7 + random() * 1.5) * 86400e3 + 1800e3;
      const id = `${stamp(new Date(began - back))}-${Math.floor(random() * 46656).toString(36).padStart(4, "0").replace(/^/, "c").slice(0, 4)}`;
      const [slower, dearer] = [20 + random() * 200, 0.4 + random() * 2.4];
      const moved = journal.replaceAll(original, id)
        .replace(/"at":"([^"]+)"/g, (_, at) => `"at":"${new Date(began - back + (Date.parse(at) - began) * slower).toISOString()}"`)
        .replace(/"(cost_usd)":([\d.]+)/g, (_, key, cost) => `"${key}":${(Number(cost) * dearer).toFixed(4)}`)
        .replace(/"duration_ms":(\d+)/g, (_, ms) => `"duration_ms":${Math.round(Number(ms) * slower)}`);
      cpSync(join(runs, original), join(runs, id), { recursive: true, filter: (source) => !source.endsWith("events.jsonl") });
      writeFileSync(join(runs, id, "events.jsonl"), moved, { mode: 0o600 });
      const tasks = TASKS[name];
      writeFileSync(join(runs, id, "iterations/0001/prompt.md"), `${tasks[copy % tasks.length]}\n\nKeep the public interface. Add tests for what you change.\n`, { mode: 0o600 });
    }
    // The original took a second.
    rmSync(join(runs, original), { recursive: true });
  }
}
