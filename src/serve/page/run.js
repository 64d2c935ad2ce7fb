// The page of one run: its state, its iterations, and tabs with the transcript, the changes, the gates, the prompts and the details.

import { Blocks } from "./blocks.js";
import { bars } from "./charts.js";
import { showChanges } from "./changes.js";
import { showDetails, showGates, showPrompt } from "./run_tabs.js";
import { OUTCOMES, activity, api, clock, compact, dollars, duration, elapsed, element, icon, setConnection, setCrumb, tokens } from "./lib.js";
import { Steering } from "./steering.js";

const TABS = [["transcript", "Transcript"], ["changes", "Changes"], ["gates", "Gates"], ["prompt", "Prompt"], ["details", "Details"]];
const MARKS = { completed: ["check", "good"], continued: ["arrow", "plain"], running: ["live", "live"], skipped: ["skip", "plain"], rate_limited: ["clock", "warning"], overloaded: ["clock", "warning"], interrupted: ["skip", "warning"], limit_reached: ["alert", "warning"] };
/** The bars of the usage chart; a longer run shows its last iterations. */
const CHART_BARS = 60;

export function showRun(content, id) {
  document.title = `${id} · ralph`;
  const path = `/runs/${encodeURIComponent(id)}`;
  const pill = element("p", { class: "pill plain", role: "status", "aria-live": "polite" }, "Loading");
  const title = element("h1", {}, id);
  const sub = element("p", { class: "sub" });
  const verdict = element("p", { class: "verdict-line" });
  const facts = element("dl", { class: "facts" });
  const steering = new Steering(path);
  const iterations = element("nav", { class: "iterations", "aria-label": "Iterations" });
  const usage = element("figure", { class: "usage" });
  const tabs = element("div", { class: "tabs", role: "tablist", "aria-label": "Views of the run" });
  const transcript = element("div", { class: "transcript", role: "log", "aria-label": "Transcript", "aria-live": "off" });
  const blocks = new Blocks(transcript, (seq) => `/api/v1${path}/records/${seq}`);
  const count = element("span", { class: "found-count", role: "status", "aria-live": "polite" });
  const search = element("input", { type: "search", placeholder: "Search the transcript", "aria-label": "Search the transcript" });
  const follow = element("button", { type: "button", class: "follow primary", hidden: true, onclick: () => { following = true; toEnd(); } }, "↓ Follow");
  const hide = (kind, label) => element("button", {
    type: "button", "aria-pressed": "true", onclick: (event) => {
      const shown = event.currentTarget.getAttribute("aria-pressed") !== "true";
      event.currentTarget.setAttribute("aria-pressed", String(shown));
      transcript.classList.toggle(`hide-${kind}`, !shown);
    },
  }, label);
  const panels = {
    transcript: element("div", { class: "tab-panel" }, element("div", { class: "toolbar sticky" }, search, count,
      element("div", { class: "segments", role: "group", "aria-label": "Show" }, hide("think", "Thinking"), hide("tool", "Tools"))), transcript, follow),
    changes: element("div", { class: "tab-panel" }), gates: element("div", { class: "tab-panel" }),
    prompt: element("div", { class: "tab-panel" }), details: element("div", { class: "tab-panel" }),
  };
  content.append(element("main", { class: "run wide" },
    element("header", { class: "run-header" }, pill, title, sub, verdict, steering.question, facts, steering.controls), tabs,
    element("div", { class: "columns" }, element("aside", {}, iterations, usage), element("div", { class: "stream" }, Object.values(panels)))));
  for (const [name, panel] of Object.entries(panels)) {
    panel.id = `panel-${name}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab-${name}`);
  }

  let following = false;
  let last;
  let [tab, selected] = ["transcript", undefined];
  /** What the open tab shows, so that it is drawn again only when that has changed. */
  let drawnTab = "";

  api(`${path}/iterations/1/attempts/1/prompt`).then((text) => {
    const first = String(text).split("\n").map((line) => line.replace(/^#+\s*/, "").trim()).find(Boolean);
    if (!first) return;
    title.textContent = first.length > 160 ? `${first.slice(0, 160)}…` : first;
    document.title = `${title.textContent} · ralph`;
  }).catch(() => {});

  const events = new EventSource(`/api/v1${path}/page`);
  events.addEventListener("open", () => setConnection("Live", "good"));
  events.addEventListener("error", () => setConnection("No connection, retrying", "bad"));
  events.addEventListener("blocks", (event) => {
    const atEnd = following || nearEnd();
    blocks.apply(JSON.parse(event.data).blocks);
    if (atEnd && last && last.live && tab === "transcript") toEnd();
    drawFollow();
  });
  events.addEventListener("run", (event) => {
    const first = !last;
    last = JSON.parse(event.data);
    drawHeader(last);
    drawIterations(last);
    drawUsage(last);
    drawTabs();
    steering.draw(last);
    if (first && location.hash) revealHash();
    else if (first && last.live) { following = true; toEnd(); }
  });

  function drawHeader(run) {
    const [mark, tone, text] = run.live ? activity(run.live) : OUTCOMES[run.state] || ["question", "plain", run.state];
    pill.className = `pill ${tone}`;
    // The box below has the text of a question.
    const isQuestion = run.live && run.live.activity.state === "question";
    pill.replaceChildren(icon(mark, tone), element("span", {}, isQuestion ? "Waiting for your answer" : text));
    const value = Object.fromEntries(run.facts);
    sub.replaceChildren(element("a", { href: `/?project=${encodeURIComponent((run.header && (run.header.project_root || run.header.workspace)) || "")}` }, run.project),
      ...[value.agent, run.usage.model].filter(Boolean).flatMap((part) => [" · ", part]), " · ", element("code", {}, id));
    setCrumb(run.project);
    verdict.className = `verdict-line ${run.tone}`;
    verdict.textContent = run.live ? "" : run.verdict;
    const gates = run.turns.flatMap((turn) => turn.gates || []);
    const shown = [
      ["Iterations", value.iterations], ["Time", run.live ? elapsed(run.live) : value.time], ["Tokens", tokens(run.usage) === undefined ? undefined : compact(tokens(run.usage))],
      ["Cost", value.cost], ["Gates", gates.length ? `${gates.filter((gate) => gate.result === "passed").length} of ${gates.length} passed` : undefined],
      ["Started", run.began && clock(run.began)], [run.live ? undefined : "Ended", run.last && clock(run.last)],
    ].filter(([name, text]) => name && text);
    facts.replaceChildren(...shown.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text))));
  }

  let drawnIterations = "";
  function drawIterations(run) {
    const state = JSON.stringify([run.turns, Boolean(run.live), selected]);
    if (state === drawnIterations) return;
    drawnIterations = state;
    iterations.replaceChildren(...run.turns.map((turn, index) => {
      const outcome = turn.outcome || (run.live && index === run.turns.length - 1 ? "running" : "interrupted");
      const failed = (turn.gates || []).filter((gate) => gate.result !== "passed").map((gate) => gate.name);
      const [mark, tone] = (!failed.length && MARKS[outcome]) || ["cross", "bad"];
      const reason = failed.length ? `${failed.join(", ")} failed` : outcome.replaceAll("_", " ");
      const lines = turn.changes && turn.changes.files ? [element("span", { class: "good" }, `+${turn.changes.added}`), " ", element("span", { class: "bad" }, `−${turn.changes.removed}`)] : [];
      const label = `Iteration ${turn.iteration}${turn.attempt > 1 ? `, attempt ${turn.attempt}` : ""}`;
      return element("button", { type: "button", class: `turn ${tone}`, "aria-current": selected === index ? "true" : undefined, onclick: () => select(index) },
        icon(mark, tone), element("span", { class: "turn-name" }, label, element("small", {}, [turn.hat, turn.agent].filter(Boolean).join(" · "))),
        element("span", { class: `reason ${failed.length ? "bad" : ""}` }, reason),
        element("span", { class: "turn-figures" }, [turn.outcome && duration(turn.duration_ms), dollars(turn.usage.cost_usd) || compact(tokens(turn.usage))].filter(Boolean).join(" · "), lines.length ? " · " : "", lines));
    }));
  }

  function drawUsage(run) {
    const cost = run.turns.some((turn) => turn.usage.cost_usd > 0);
    const value = (turn) => (cost ? turn.usage.cost_usd || 0 : tokens(turn.usage) || 0);
    const most = Math.max(...run.turns.map(value), 0);
    if (run.turns.length < 2 || most <= 0) return;
    const from = Math.max(0, run.turns.length - CHART_BARS);
    usage.replaceChildren(element("figcaption", {}, cost ? "Cost by iteration" : "Tokens by iteration"),
      bars(run.turns.slice(from).map((turn, index) => ({
        size: value(turn) / most, tone: (MARKS[turn.outcome] || ["", "bad"])[1] === "bad" ? "bad" : "",
        label: `Iteration ${turn.iteration}: ${cost ? dollars(value(turn)) : `${compact(value(turn))} tokens`}`, onclick: () => select(from + index),
      })), { height: 56, name: "By iteration" }));
  }

  function drawTabs() {
    const changes = last.turns.reduce((sum, turn) => sum + ((turn.changes && turn.changes.files) || 0), 0);
    const failed = last.turns.flatMap((turn) => turn.gates || []).filter((gate) => gate.result !== "passed").length;
    const badges = { changes: changes || "", gates: failed ? `${failed} ✗` : "" };
    if (tabs.childElementCount !== TABS.length) {
      tabs.replaceChildren(...TABS.map(([name, label]) => element("button", {
        type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => openTab(name), onkeydown: tabKey,
      }, label, element("span", { class: "badge" }))));
    }
    for (const [name, panel] of Object.entries(panels)) {
      const button = tabs.querySelector(`#tab-${name}`);
      button.setAttribute("aria-selected", String(tab === name));
      button.tabIndex = tab === name ? 0 : -1;
      button.querySelector(".badge").textContent = badges[name] || "";
      panel.hidden = tab !== name;
    }
    drawTab();
  }

  function drawTab() {
    const turn = last.turns[selected];
    const state = JSON.stringify([tab, selected, tab === "transcript" ? 0 : last.turns.length, tab === "transcript" ? 0 : last.turns.map((entry) => [entry.outcome, (entry.gates || []).length]), tab === "gates" && last.findings, tab === "details" && last]);
    if (state === drawnTab) return;
    drawnTab = state;
    if (tab === "changes") showChanges(panels.changes, path, turn && turn.iteration);
    if (tab === "gates") showGates(panels.gates, path, turn && turn.iteration, last.findings);
    if (tab === "prompt") showPrompt(panels.prompt, path, turn || last.turns.at(-1));
    if (tab === "details") showDetails(panels.details, path, last);
  }

  function tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = TABS.findIndex(([name]) => name === tab);
    const [name] = TABS[(index + step + TABS.length) % TABS.length];
    openTab(name);
    tabs.querySelector(`#tab-${name}`).focus();
  }

  function openTab(name) {
    tab = name;
    if (last) drawTabs();
    drawFollow();
  }

  /** Chooses an iteration: the transcript scrolls to it, the other tabs show it alone. A second click shows the whole run again. */
  function select(index) {
    following = false;
    selected = selected === index && tab !== "transcript" ? undefined : index;
    drawIterations(last);
    if (tab === "transcript") blocks.reveal(`${index + 1}-0`);
    drawTab();
  }

  let found = [];
  let position = -1;
  function searchFor(step) {
    const text = search.value.trim();
    if (text !== search.dataset.text) {
      search.dataset.text = text;
      found = blocks.find(text);
      position = step > 0 ? -1 : 0;
    }
    if (!text) { count.textContent = ""; return; }
    if (!found.length) { count.textContent = "no match"; return; }
    position = (position + step + found.length) % found.length;
    following = false;
    count.textContent = `${position + 1} of ${found.length}`;
    blocks.reveal(found[position]);
  }
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); searchFor(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; searchFor(1); search.blur(); }
  });

  function revealHash() {
    const seq = location.hash.match(/^#r(\d+)$/);
    const block = seq && blocks.blockOf(Number(seq[1]));
    if (!block) return;
    following = false;
    openTab("transcript");
    blocks.reveal(block);
  }

  const nearEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const toEnd = () => { scrollTo(0, document.documentElement.scrollHeight); drawFollow(); };
  function drawFollow() {
    follow.hidden = !(last && last.live) || tab !== "transcript" || nearEnd();
  }
  const onScroll = () => { following = nearEnd(); drawFollow(); };
  const onKey = (event) => {
    if (event.target.matches("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); openTab("transcript"); search.focus(); }
    if (event.key === "G" || event.key === "End") { following = true; toEnd(); }
    if (event.key === "n") searchFor(1);
    if (event.key === "N") searchFor(-1);
    const number = Number(event.key);
    if (number >= 1 && number <= TABS.length) openTab(TABS[number - 1][0]);
  };
  addEventListener("scroll", onScroll, { passive: true });
  addEventListener("keydown", onKey);
  addEventListener("hashchange", revealHash);
  return () => {
    events.close();
    blocks.close();
    removeEventListener("scroll", onScroll);
    removeEventListener("keydown", onKey);
    removeEventListener("hashchange", revealHash);
  };
}
