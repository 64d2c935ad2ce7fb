// The tabs of a run that are loaded when they are opened: gates, prompts and details.

import { api, compact, copyButton, dollars, duration, element, icon, problem, time, tokens } from "./lib.js";

/** The findings of reviews, and the gates of a run or of one iteration, the newest first, each with what failed. */
export async function showGates(container, path, iteration, reviewed = []) {
  let gates;
  try {
    ({ gates } = await api(`${path}/gates`));
  } catch (error) {
    container.replaceChildren(problem(error.message));
    return;
  }
  const shown = gates.filter((gate) => iteration === undefined || gate.iteration === iteration).reverse();
  if (!shown.length) {
    container.replaceChildren(element("p", { class: "empty" }, iteration === undefined ? "No gate has run yet." : `No gate ran in iteration ${iteration}.`));
    return;
  }
  const findings = reviewed.filter((finding) => iteration === undefined || finding.iteration === iteration);
  container.replaceChildren(...(findings.length ? [findingsView(findings)] : []),
    ...shown.map((gate) => gateView(gate, gate === shown.find((other) => !other.passed))));
}

const answerText = (answer) => (answer === "fixed" ? "fixed" : `disputed: ${answer.disputed.why}`);

/** The findings that reject the result come first. */
function findingsView(findings) {
  const blocks = (finding) => ["open", "still_open", "contested"].includes(finding.status);
  const sorted = [...findings].sort((a, b) => blocks(b) - blocks(a));
  return element("section", { class: "panel" },
    element("h2", {}, "Findings ", element("small", {}, `${findings.filter(blocks).length} open`)),
    element("ol", { class: "failures findings" }, sorted.map((finding) => element("li", {},
      element("p", { class: "faint" }, element("strong", {}, finding.id), " ",
        element("span", { class: `state ${blocks(finding) ? "bad" : "good"}` }, finding.status.replaceAll("_", " ")),
        ` · ${finding.severity} · ${finding.category} · ${finding.gate}, round ${finding.round}`,
        finding.reviewers && ` · ${finding.reviewers.join(", ")}`),
      finding.file && element("code", {}, [finding.file, finding.line].filter(Boolean).join(":")),
      element("p", {}, finding.claim), finding.check && element("pre", {}, finding.check),
      finding.answer && element("p", { class: "faint" }, `The agent answered: ${answerText(finding.answer)}`)))));
}


function gateView(gate, isNewestFailure) {
  const tone = gate.passed ? "good" : "bad";
  const report = gate.report;
  const counts = report && [report.passed && `${report.passed} passed`, report.failed && `${report.failed} failed`, report.skipped && `${report.skipped} skipped`].filter(Boolean).join(", ");
  const place = (failure) => [failure.file, failure.line].filter(Boolean).join(":");
  const failures = ((report && report.failures) || []).map((failure) => element("li", {},
    element("strong", {}, failure.name || place(failure)), " ", failure.name && place(failure) ? element("code", {}, place(failure)) : "",
    failure.message && element("pre", {}, failure.message)));
  return element("details", { class: `gate-card ${tone}`, open: isNewestFailure },
    element("summary", {}, icon(gate.passed ? "check" : "cross", tone), element("strong", {}, gate.name),
      element("span", {}, `Iteration ${gate.iteration}`), element("span", { class: tone }, gate.failure || "passed"),
      element("span", { class: "faint" }, counts || ""), element("span", { class: "faint" }, duration(gate.duration_ms)), time(gate.at)),
    gate.paths && element("p", { class: "warning" }, `Files: ${gate.paths.join(", ")}`),
    failures.length > 0 && element("ol", { class: "failures" }, failures,
      report.more_failures > 0 && element("li", { class: "faint" }, `${report.more_failures} more`)),
    element("pre", { class: "output" }, gate.output.trim() || "No output."),
    element("a", { class: "small-link", href: `#r${gate.seq}` }, "Show in the transcript"));
}

/** The prompt of an attempt. */
export async function showPrompt(container, path, turn) {
  if (!turn) { container.replaceChildren(element("p", { class: "empty" }, "No prompt has been sent yet.")); return; }
  let text;
  try {
    text = String(await api(`${path}/iterations/${turn.iteration}/attempts/${turn.attempt}/prompt`));
  } catch (error) {
    container.replaceChildren(problem(error.message));
    return;
  }
  container.replaceChildren(
    element("div", { class: "panel-head" }, element("h2", {}, `Prompt of iteration ${turn.iteration}`, turn.attempt > 1 ? `, attempt ${turn.attempt}` : ""),
      element("span", { class: "faint" }, `${text.length.toLocaleString("en-US")} characters`), copyButton(text)),
    element("pre", { class: "prompt-text", tabindex: "0" }, text));
}

/** All facts, the usage in detail, commands for a terminal, the receipt, and the links to the records. */
export async function showDetails(container, path, run) {
  const usage = run.usage;
  const rows = (pairs) => element("dl", { class: "table" }, pairs.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  const figure = (count) => (count === undefined ? undefined : count.toLocaleString("en-US"));
  const steps = [
    ...(run.live ? [["Watch it", `ralph attach ${run.id}`], ["Send a message", `ralph tell ${run.id} "…"`]] : []),
    ...(run.live || run.state === "complete" ? [] : [["Resume it", `ralph run --continue ${run.id}`]]),
    ["Read it", `ralph logs ${run.id}`], ["See its changes", `ralph diff ${run.id}`], ["Share it", `ralph export ${run.id} -o ${run.id}.html`],
  ];
  const link = (href, text) => element("li", {}, element("a", { href: `/api/v1${path}${href}`, target: "_blank", rel: "noopener" }, text));
  const receipt = element("div");
  container.replaceChildren(
    element("section", { class: "panel" }, element("h2", {}, "Facts"), rows(run.facts.map(([name, value]) => [name[0].toUpperCase() + name.slice(1), value]))),
    element("section", { class: "panel" }, element("h2", {}, "Usage"), rows([
      ["Input tokens", figure(usage.prompt_tokens)], ["of these cached", figure(usage.cached_tokens)], ["Output tokens", figure(usage.completion_tokens)],
      ["of these reasoning", figure(usage.reasoning_tokens)], ["All tokens", figure(tokens(usage))], ["Cost", dollars(usage.cost_usd)], ["Model", usage.model],
      ...(run.roles || []).map((role) => [role.role || role.agent || role.name, [compact(tokens(role.usage)), dollars(role.usage && role.usage.cost_usd)].filter(Boolean).join(" · ")]),
    ])),
    element("section", { class: "panel" }, element("h2", {}, "In a terminal"), element("ul", { class: "commands" }, steps.map(([name, command]) => element("li", {}, element("span", {}, name), element("code", {}, command), copyButton(command))))),
    receipt,
    element("section", { class: "panel" }, element("h2", {}, "Records"), element("ul", { class: "links" },
      link("/records", "Records as JSON"), link("/records/1", "The first record"), link("/gates", "Gates as JSON"), link("", "This summary as JSON"))));
  const value = await api(`${path}/receipt`).catch(() => undefined);
  if (value) receipt.replaceChildren(element("section", { class: "panel" }, element("h2", {}, "Receipt"), element("pre", {}, JSON.stringify(value, null, 2))));
}
