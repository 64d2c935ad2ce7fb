// Attacks on a signed-in browser from pages of other origins, and from a journal that an agent has filled with markup. `page.mjs`
// runs them.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Each attack runs in a page of another origin. It returns `refused`, or what it could read. */
const ATTACKS = {
  "fetch with the cookie": (t) => t.read(fetch(`${t.target}/api/v1/runs`, { credentials: "include" })),
  "fetch without CORS": (t) => t.read(fetch(`${t.target}/api/v1/runs`, { mode: "no-cors", credentials: "include" })),
  "fetch with an own header": (t) => t.read(fetch(`${t.target}/api/v1/runs`, { credentials: "include", headers: { "X-A": "b" } })),
  "fetch of the prompt": (t) => t.read(fetch(`${t.target}/api/v1/runs/${t.run}/iterations/1/attempts/1/prompt`, { credentials: "include" })),
  "fetch of the metrics": (t) => t.read(fetch(`${t.target}/metrics`, { credentials: "include" })),
  "fetch through a redirect": (t) => t.read(fetch("/redirect", { credentials: "include" })),
  "XMLHttpRequest": (t) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("GET", `${t.target}/api/v1/runs`);
    request.withCredentials = true;
    request.onload = () => resolve(request.responseText || "refused");
    request.onerror = () => resolve("refused");
    request.send();
  }),
  "EventSource": (t) => new Promise((resolve) => {
    const source = new EventSource(`${t.target}/api/v1/runs/${t.run}/events`, { withCredentials: true });
    source.onopen = () => resolve("opened");
    source.onerror = () => { source.close(); resolve("refused"); };
  }),
  "WebSocket": (t) => new Promise((resolve) => {
    const socket = new WebSocket(`${t.target.replace("http", "ws")}/api/v1/runs`);
    socket.onopen = () => resolve("opened");
    socket.onerror = () => resolve("refused");
  }),
  "POST of text/plain": (t) => t.read(fetch(t.commands, { ...t.stop, mode: "no-cors", headers: { "Content-Type": "text/plain" } })),
  "POST of a form": (t) => t.read(fetch(t.commands, { ...t.stop, mode: "no-cors", body: new URLSearchParams({ kind: "stop" }) })),
  "POST of parts": (t) => { const body = new FormData(); body.set("kind", "stop"); return t.read(fetch(t.commands, { ...t.stop, mode: "no-cors", body })); },
  "POST of JSON": (t) => t.read(fetch(t.commands, { ...t.stop, headers: { "Content-Type": "application/json" } })),
  "POST of a typed blob": (t) => t.read(fetch(t.commands, { ...t.stop, mode: "no-cors", body: new Blob([t.stop.body], { type: "application/json" }) })),
  "POST that outlives the page": (t) => t.read(fetch(t.commands, { ...t.stop, mode: "no-cors", keepalive: true })),
  "beacon": (t) => { navigator.sendBeacon(t.commands, t.stop.body); return "refused"; },
  "beacon of JSON": (t) => { try { navigator.sendBeacon(t.commands, new Blob([t.stop.body], { type: "application/json" })); } catch { /* refused */ } return "refused"; },
  "submitted form": (t) => t.form(t.commands, "text/plain", '{"kind":"stop","x":"', '"}'),
  "submitted form with parts": (t) => t.form(t.commands, "multipart/form-data", "kind", "stop"),
  "start of a run": (t) => t.read(fetch(`${t.target}/api/v1/runs/${t.run}/continue`, { ...t.stop, mode: "no-cors", body: "{}" })),
  "PUT": (t) => t.read(fetch(t.commands, { ...t.stop, method: "PUT" })),
  "DELETE": (t) => t.read(fetch(`${t.target}/api/v1/runs/${t.run}`, { ...t.stop, method: "DELETE", body: undefined })),
  "TRACE": (t) => { try { return t.read(fetch(`${t.target}/`, { method: "TRACE" })); } catch { return "refused"; } },
  "frame": (t) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = t.target;
    frame.onload = () => { try { resolve(frame.contentDocument.body.textContent || "refused"); } catch { resolve("refused"); } };
    document.body.append(frame);
  }),
  "messages to a frame": (t) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = `${t.target}/runs/${t.run}`;
    addEventListener("message", () => resolve("answered"));
    frame.onload = () => { frame.contentWindow.postMessage({ kind: "stop" }, "*"); setTimeout(() => resolve("refused"), 200); };
    document.body.append(frame);
  }),
  "object": (t) => t.load("object", "data", t.target),
  "script": (t) => t.load("script", "src", `${t.target}/api/v1/runs`),
  "picture": (t) => t.load("img", "src", `${t.target}/assets/icon.svg`),
  "style": (t) => new Promise((resolve) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${t.target}/assets/style.css` });
    link.onload = () => { try { resolve(link.sheet.cssRules.length ? "read" : "refused"); } catch { resolve("refused"); } };
    link.onerror = () => resolve("refused");
    document.head.append(link);
  }),
  "module": (t) => import(`${t.target}/assets/lib.js`).then(() => "loaded", () => "refused"),
  "worker": (t) => new Promise((resolve) => {
    const code = `try { importScripts("${t.target}/assets/app.js"); postMessage("loaded"); } catch { postMessage("refused"); }`;
    new Worker(URL.createObjectURL(new Blob([code]))).onmessage = (event) => resolve(event.data);
  }),
  "opened window": (t) => new Promise((resolve) => {
    const opened = window.open(`${t.target}/runs/${t.run}`);
    if (!opened) { resolve("refused"); return; }
    setTimeout(() => {
      let text;
      try { text = opened.document.body.textContent; } catch { text = ""; }
      opened.close();
      resolve(text || "refused");
    }, 500);
  }),
  "guessed tokens": async (t) => {
    const answers = await Promise.all([..."0123456789"].map((digit) => t.read(fetch(`${t.target}/?token=${digit.repeat(64)}`, { credentials: "include" }))));
    return answers.find((answer) => answer !== "refused") || "refused";
  },
};

/** Runs all attacks from a page of `origin`, which the attacker's server answers. */
async function attackFrom(context, origin, { target, run }) {
  const page = await context.newPage();
  await page.goto(origin);
  const results = {};
  for (const [name, attack] of Object.entries(ATTACKS)) {
    results[name] = await page.evaluate(async ([code, target, run]) => {
      const commands = `${target}/api/v1/runs/${run}/commands`;
      const tools = {
        target, run, commands, stop: { method: "POST", credentials: "include", body: '{"kind":"stop"}' },
        read: (request) => request.then(async (response) => (response.type === "opaque" ? "refused" : (await response.text()) || "refused"), () => "refused"),
        load: (name, key, address) => new Promise((resolve) => {
          const node = document.createElement(name);
          node.onload = () => resolve("loaded");
          node.onerror = () => resolve("refused");
          node[key] = address;
          document.body.append(node);
          setTimeout(() => resolve("refused"), 1000);
        }),
        form: (action, enctype, name, value) => new Promise((resolve) => {
          const frame = Object.assign(document.createElement("iframe"), { name: `frame${Math.random()}` });
          const form = Object.assign(document.createElement("form"), { action, enctype, method: "POST", target: frame.name });
          form.append(Object.assign(document.createElement("input"), { name, value }));
          document.body.append(frame, form);
          frame.onload = () => { try { resolve(frame.contentDocument.body.textContent || "refused"); } catch { resolve("refused"); } };
          form.submit();
          setTimeout(() => resolve("refused"), 1000);
        }),
      };
      const result = (0, eval)(`(${code})`)(tools);
      return Promise.race([result, new Promise((resolve) => setTimeout(() => resolve("refused"), 5000))]);
    }, [attack.toString(), target, run]).catch((error) => `the attack failed: ${error.message}`);
  }
  await page.close();
  return results;
}

/** Attacks from another site, and from another port of the same host, which receives the cookie. */
export async function attackFromOtherOrigins(context, { port, run, commandsOf }) {
  const target = `http://localhost:${port}`;
  const evil = createServer((request, response) => {
    const headers = { "Content-Type": "text/html", Location: `${target}/api/v1/runs` };
    response.writeHead(request.url === "/redirect" ? 307 : 200, headers);
    response.end("<title>evil</title>");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => evil.on("listening", resolve));
  const { port: own } = evil.address();
  for (const origin of [`http://127.0.0.1:${own}/`, `http://localhost:${own}/`, `http://evil.example:${own}/`]) {
    const results = await attackFrom(context, origin, { target, run });
    assert.deepEqual(Object.entries(results).filter(([, result]) => result !== "refused"), [], origin);
  }
  // A name that the attacker has pointed to this machine.
  const rebound = await context.newPage();
  const answer = await rebound.goto(`http://evil.example:${port}/`);
  assert.equal(answer.status(), 421);
  await rebound.close();
  evil.close();
  assert.deepEqual(commandsOf(), [], "no command reached the run");
  return Object.keys(ATTACKS).length;
}

const MARKUP = "<img src=x onerror=\"window.attacked=1\"><script>window.attacked=2</script><svg onload=\"window.attacked=3\">[a](javascript:window.attacked=4)'\"";

/** Replaces every text that people read by markup. */
function hostile(value, key) {
  const kept = ["type", "seq", "at", "run_id", "version", "id", "outcome", "why", "kind", "end", "result", "change", "moment", "tag", "flow", "status", "severity", "level", "limit", "cost_source", "scope", "by", "name_of_state", "answer", "class", "unknown"];
  if (typeof value === "string") return kept.includes(key) || /^\d{4}-\d\d-\d\dT/.test(value) ? value : `${value} ${MARKUP}`;
  if (Array.isArray(value)) return value.map((entry) => hostile(entry, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, hostile(entry, name)]));
  return value;
}

/** Opens a run whose journal has markup in every text, and all of its tabs. */
export async function openHostileJournal(context, { state, golden, port }) {
  const runs = readdirSync(join(state, "projects")).map((project) => join(state, "projects", project, "runs"))[0];
  const id = "20260101-000000-evil";
  mkdirSync(join(runs, id, "iterations/0001"), { recursive: true, mode: 0o700 });
  const records = readFileSync(golden, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const lines = records.map((record) => JSON.stringify(hostile(record)));
  writeFileSync(join(runs, id, "events.jsonl"), `${lines.join("\n")}\n`, { mode: 0o600 });
  writeFileSync(join(runs, id, "iterations/0001/prompt.md"), MARKUP, { mode: 0o600 });
  const page = await context.newPage();
  const check = async (where) => {
    assert.equal(await page.evaluate(() => window.attacked), undefined, where);
    assert.equal(await page.locator("[onerror], [onload], img[src=x], #content script, a[href^='javascript']").count(), 0, where);
  };
  await page.goto(`http://localhost:${port}/?q=evil`);
  await page.waitForSelector(".row");
  await check("the list");
  await page.click(".row-title");
  await page.waitForSelector(".transcript h2");
  for (const fold of await page.locator("details").all()) await fold.evaluate((node) => { node.open = true; });
  assert.match(await page.textContent(".transcript"), /window\.attacked=1/, "the texts are shown");
  await check("the transcript");
  for (const tab of ["changes", "gates", "prompt", "details"]) {
    await page.click(`#tab-${tab}`);
    await page.waitForFunction((name) => document.querySelector(`#panel-${name}`).textContent, tab);
    await check(tab);
  }
  for (const path of ["/usage", "/plans"]) {
    await page.goto(`http://localhost:${port}${path}`);
    await page.waitForSelector("main > *");
    await check(path);
  }
  await page.close();
}
