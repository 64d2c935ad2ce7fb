// The list of all runs: what is happening now, then every run by day, with filters that are part of the address.

import { sparkline } from "./charts.js";
import {
  activity, api, compact, counted, day, dollars, duration, elapsed, element, icon, poll, runState, setCrumb, time, timeOfDay, tokens,
} from "./lib.js";

const REFRESH = 2000;
const PAGE = 100;
const STATES = [
  ["", "All"], ["running", "Running"], ["attention", "Waiting"], ["complete", "Complete"],
  ["failed,auth,died,broken", "Failed"], ["limit,unreviewed,interrupted", "Stopped"],
];

export function showRuns(content) {
  document.title = "Runs · ralph";
  setCrumb();
  const query = new URLSearchParams(location.search);
  const filter = Object.fromEntries(["q", "outcome", "project", "agent"].map((key) => [key, query.get(key) || ""]));
  let page = Math.max(0, Number(query.get("page") || 1) - 1) || 0;
  let shown;

  const changed = () => { page = 0; drawStates(shown); polling.refresh(); };
  const search = element("input", {
    type: "search", placeholder: "Search runs", "aria-label": "Search runs by project, agent, prompt or id", value: filter.q,
    oninput: () => { filter.q = search.value; changed(); },
  });
  const select = (key, label) => element("select", { "aria-label": label, onchange: (event) => { filter[key] = event.target.value; changed(); } });
  const [project, agent] = [select("project", "Project"), select("agent", "Agent")];
  const states = element("div", { class: "segments", role: "group", "aria-label": "State" });
  const stats = element("section", { class: "stats", "aria-label": "Totals" });
  const cards = element("section", { class: "cards", "aria-label": "Running now" });
  const list = element("div", { class: "list" });
  const pager = element("nav", { class: "pager", "aria-label": "Pages" });
  content.append(element("main", { class: "wide" }, element("h1", { class: "visually-hidden" }, "Runs"), stats, cards,
    element("div", { class: "toolbar" }, states, search, project, agent), list, pager));

  const onKey = (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) { event.preventDefault(); search.focus(); }
  };
  addEventListener("keydown", onKey);

  function load() {
    const parameters = new URLSearchParams();
    for (const [key, value] of Object.entries(filter)) if (value) parameters.set(key, value);
    if (page) parameters.set("page", page + 1);
    const address = parameters.toString() ? `/?${parameters}` : "/";
    if (location.pathname + location.search !== address) history.replaceState(null, "", address);
    parameters.delete("page");
    parameters.set("limit", PAGE);
    parameters.set("offset", page * PAGE);
    return api(`/runs?${parameters}`);
  }

  function draw(overview) {
    shown = overview;
    stats.replaceChildren(...tiles(overview));
    drawStates(overview);
    options(project, "All projects", Object.entries(overview.projects), filter.project);
    options(agent, "All agents", overview.agents.map((name) => [name, name]), filter.agent);
    cards.replaceChildren(...overview.runs.filter((run) => run.live).sort((a, b) => urgency(b) - urgency(a)).map(card));
    list.replaceChildren(...(overview.runs.length ? groups(overview.runs) : [nothing()]));
    drawPager(overview.count);
  }

  function drawStates(overview) {
    const count = (names) => names.split(",").reduce((sum, name) => sum + ((overview && overview.outcomes[name]) || 0), 0);
    const all = overview ? Object.entries(overview.outcomes).reduce((sum, [name, n]) => sum + (name === "attention" ? 0 : n), 0) : 0;
    states.replaceChildren(...STATES.map(([value, label]) => element("button", {
      type: "button", "aria-pressed": String(filter.outcome === value),
      onclick: () => { filter.outcome = value; changed(); },
    }, label, " ", element("span", { class: "count" }, (value ? count(value) : all).toLocaleString("en-US")))));
  }

  function drawPager(count) {
    const last = Math.max(0, Math.ceil(count / PAGE) - 1);
    if (!last) { pager.replaceChildren(); return; }
    const go = (to, label) => element("button", {
      type: "button", disabled: to < 0 || to > last, onclick: () => { page = to; polling.refresh(); scrollTo(0, 0); },
    }, label);
    const from = page * PAGE + 1;
    pager.replaceChildren(go(page - 1, "← Newer"),
      element("span", {}, `${from.toLocaleString("en-US")}–${Math.min(count, from + PAGE - 1).toLocaleString("en-US")} of ${count.toLocaleString("en-US")}`),
      go(page + 1, "Older →"));
  }

  const nothing = () => (Object.values(filter).some(Boolean)
    ? element("p", { class: "empty" }, "No run matches the filters.")
    : element("div", { class: "empty" }, element("p", {}, "No runs yet. Start one in a project:"), element("pre", {}, "ralph run -p \"Make the tests pass\"")));

  const polling = poll(load, draw, REFRESH);
  return () => { polling.close(); removeEventListener("keydown", onKey); };
}

function options(select, all, entries, chosen) {
  const state = JSON.stringify([entries, chosen]);
  if (select.dataset.state === state) return;
  select.dataset.state = state;
  select.replaceChildren(element("option", { value: "" }, all),
    ...entries.map(([value, label]) => element("option", { value, selected: value === chosen, title: value }, label)));
}

/** The dates of the last days as they are used in totals, oldest first. */
export function lastDays(count) {
  const names = [];
  for (let back = count - 1; back >= 0; back -= 1) {
    const date = new Date();
    date.setDate(date.getDate() - back);
    names.push(`${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`);
  }
  return names;
}

function tiles({ totals, outcomes }) {
  const days = lastDays(14).map((name) => totals.days[name]);
  const week = days.slice(-7).filter(Boolean);
  const today = days.at(-1);
  const sum = (of) => week.reduce((total, entry) => total + (of(entry) || 0), 0);
  const [runs, complete] = [sum((entry) => entry.runs), sum((entry) => entry.complete)];
  const attention = outcomes.attention || 0;
  const tile = (label, value, note, picture) => element("div", { class: "tile" },
    element("span", { class: "tile-label" }, label), element("span", { class: "tile-value" }, value),
    element("span", { class: "tile-note" }, note), picture || false);
  const cost = (entry) => (entry && entry.usage.cost_usd) || 0;
  const used = (entry) => (entry && tokens(entry.usage)) || 0;
  return [
    tile("Running", String(outcomes.running || 0), attention ? `${attention} waiting` : "none waiting"),
    tile("Complete, 7 days", runs ? `${Math.round((complete / runs) * 100)}%` : "–", `${complete} of ${counted(runs, "run")}`),
    tile("Cost today", dollars(cost(today)) || "$0.00", `${dollars(sum(cost))} in 7 days`, sparkline(days.map(cost), "Cost of the last 14 days")),
    tile("Tokens today", compact(used(today)) || "0", `${compact(sum(used))} in 7 days`, sparkline(days.map(used), "Tokens of the last 14 days")),
  ];
}

const urgency = (run) => ["waiting", "paused", "asking", "question"].indexOf(run.live.activity.state);
const runLink = (run) => `/runs/${encodeURIComponent(run.id)}`;

function card(run) {
  const { live } = run;
  const [name, tone, text] = activity(live);
  const usage = live.totals.usage;
  const figures = [tokens(usage) && `${compact(tokens(usage))} tokens`, dollars(usage.cost_usd)].filter(Boolean);
  return element("a", { class: `card ${tone}`, href: runLink(run) },
    element("span", { class: "card-head" }, element("strong", {}, run.project), element("span", {}, [run.agent, live.hat].filter(Boolean).join(" · "))),
    element("span", { class: "card-title" }, run.prompt || run.id),
    element("span", { class: `card-state ${tone}` }, icon(name, tone), element("span", {}, text)),
    element("span", { class: "card-foot" }, element("span", {}, `Iteration ${live.iteration || 1}`), element("span", {}, elapsed(live), figures.map((figure) => ` · ${figure}`))));
}

function groups(runs) {
  const byDay = new Map();
  for (const run of runs) {
    const key = run.began ? new Date(run.began).toDateString() : "";
    if (!byDay.has(key)) byDay.set(key, []);
    byDay.get(key).push(run);
  }
  const today = new Date().toDateString();
  const yesterday = new Date(Date.now() - 86400e3).toDateString();
  return [...byDay].map(([key, members]) => {
    const name = key === today ? "Today" : key === yesterday ? "Yesterday" : key ? day(members[0].began) : "Unknown time";
    return element("section", { class: "group" }, element("h2", {}, name, " ", element("small", {}, counted(members.length, "run"))),
      element("ul", { class: "rows" }, members.map(row)));
  });
}

function row(run) {
  const [name, tone, text] = runState(run);
  const usage = run.usage || {};
  const figure = (label, value, kind) => element("span", { class: `figure ${kind}`, title: label }, value || "");
  return element("li", { class: "row" },
    icon(name, tone),
    element("div", { class: "row-main" },
      element("a", { class: "row-title", href: runLink(run) }, run.prompt || run.id),
      element("div", { class: "row-sub" },
        element("span", { class: `state ${tone}` }, text), element("span", { class: "chip" }, run.project),
        run.agent && element("span", {}, run.agent), element("code", {}, run.id))),
    figure("Iterations", run.iterations === undefined ? "" : `${run.iterations}×`, "iterations"),
    figure("Time", run.live ? elapsed(run.live) : duration(run.duration_ms), "length"),
    figure("Tokens", compact(tokens(usage)), "tokens"),
    figure("Cost", dollars(usage.cost_usd), "cost"),
    element("span", { class: "figure began" }, run.began ? time(run.began, timeOfDay(run.began)) : ""));
}

