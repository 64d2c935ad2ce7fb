// Writes the pictures of the web page in docs/pictures: light, dark and on a phone. `serve.sh` starts it.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createState } from "./state.mjs";

const { chromium } = await import(process.env.PLAYWRIGHT);
/** The pictures in the documentation; with ALL_VIEWS, every view is taken. */
const DOCUMENTED = ["runs", "run", "changes", "plan", "live", "runs-phone"];
const { RALPH_BIN, CHROMIUM, PICTURES, PAGE_FILES } = process.env;
const base = process.env.PICTURE_BASE || mkdtempSync(join(tmpdir(), "ralph-pictures-"));
mkdirSync(PICTURES, { recursive: true });
const { env, end } = await createState(RALPH_BIN, join(base, "demo"));
const server = spawn(RALPH_BIN, ["serve", "--steer", "--port", "0"], { env, stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve) => {
  server.stdout.on("data", (text) => { const found = String(text).match(/http:\/\/localhost:\S+/); if (found) resolve(found[0]); });
});
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--headless", "--no-sandbox", "--disable-gpu"] });
try {
  const options = { viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", timezoneId: "UTC" };
  const light = await browser.newContext({ ...options, colorScheme: "light" });
  // With PAGE_FILES, the files of the page are read from there, so that a change is visible without a build.
  const fromDisk = (context) => PAGE_FILES && context.route("**/assets/*", async (route) => {
    const { readFileSync } = await import("node:fs");
    const name = route.request().url().split("/").pop();
    const path = join(PAGE_FILES, "src/serve/page", name);
    const body = name === "style.css" ? readFileSync(join(PAGE_FILES, "src/ui/export/page.css"), "utf8") + readFileSync(path, "utf8") : readFileSync(path, "utf8");
    const types = { css: "text/css", js: "text/javascript", svg: "image/svg+xml" };
    await route.fulfill({ body, contentType: types[name.split(".").pop()] });
  });
  await fromDisk(light);
  const page = await light.newPage();
  page.on("pageerror", (error) => console.log(`error in the page: ${error.stack}`));
  page.on("console", (message) => { if (message.type() === "error") console.log(`console: ${message.text()}`); });
  await page.goto(address);
  await page.waitForSelector(".card:has-text('docs-site') >> text=Asks");
  await page.waitForSelector(".card:has-text('search-index') >> text=Usage limit");
  await page.waitForSelector(".card:has-text('web-app') >> text=Bash");
  const origin = new URL(address).origin;
  const storageState = await light.storageState();
  const dark = await browser.newContext({ ...options, colorScheme: "dark", storageState });
  const phone = await browser.newContext({ ...options, viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, storageState });
  for (const context of [dark, phone]) await fromDisk(context);

  const shoot = async (context, name, path, prepare = async () => {}) => {
    if (!process.env.ALL_VIEWS && !DOCUMENTED.includes(name)) return;
    const view = await context.newPage();
    view.on("pageerror", (error) => console.log(`error in the page: ${error.stack}`));
    await view.goto(origin + path);
    await view.waitForSelector("main");
    await prepare(view);
    await view.waitForTimeout(700);
    await view.screenshot({ path: join(PICTURES, `${name}.png`) });
    await view.close();
  };
  const { runs } = await (await page.request.get(`${origin}/api/v1/runs`)).json();
  const run = (project, index = 0) => `/runs/${runs.filter((entry) => entry.project === project)[index].id}`;
  const loaded = (view) => view.waitForSelector(".turn");
  await shoot(light, "runs", "/", (view) => view.waitForSelector(".row"));
  await shoot(dark, "runs-dark", "/", (view) => view.waitForSelector(".row"));
  await shoot(phone, "runs-phone", "/", (view) => view.waitForSelector(".row"));
  await shoot(light, "usage", "/usage", (view) => view.waitForSelector(".bars"));
  await shoot(dark, "live", run("web-app"), loaded);
  await shoot(light, "question", run("docs-site"), loaded);
  await shoot(light, "run", run("billing-service"), loaded);
  await shoot(phone, "run-phone", run("billing-service"), loaded);
  const tab = (name) => async (view) => { await loaded(view); await view.click(`#tab-${name}`); await view.waitForTimeout(1500); };
  await shoot(light, "changes", run("billing-service"), tab("changes"));
  await shoot(dark, "gates", run("billing-service"), tab("gates"));
  await shoot(light, "prompt", run("billing-service"), tab("prompt"));
  await shoot(light, "details", run("billing-service"), tab("details"));
  await shoot(phone, "changes-phone", run("billing-service"), tab("changes"));
  await shoot(light, "plans", "/plans", (view) => view.waitForSelector(".card"));
  const { plans } = await (await page.request.get(`${origin}/api/v1/plans`)).json();
  if (plans.length) {
    const path = `/plans/${plans[0].project_id}/${plans[0].plan}`;
    await shoot(light, "plan", path, (view) => view.waitForSelector(".task"));
    await shoot(phone, "plan-phone", path, (view) => view.waitForSelector(".task"));
  }
} finally {
  await browser.close();
  server.kill("SIGKILL");
  end();
  rmSync(join(base, "demo"), { recursive: true, force: true });
}
