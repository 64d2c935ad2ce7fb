// The list of all runs, with totals by day, project and agent.

import { OUTCOMES, activityText, api, clock, compact, dollars, duration, element, setConnection, setCrumb, tokens } from "./app.js";

const REFRESH = 2000;
const PAGE = 100;

export function showList(content) {
  document.title = "ralph · runs";
  setCrumb();
  const query = new URLSearchParams(location.search);
  const filter = { q: query.get("q") || "", outcome: query.get("outcome") || "", project: query.get("project") || "" };
  let limit = PAGE;
  let shown = "";
  let timer;
  let closed = false;

  const search = element("input", {
    type: "search", placeholder: "Filter by project, agent, prompt or id", "aria-label": "Filter runs", value: filter.q,
    oninput: () => { filter.q = search.value; limit = PAGE; refresh(); },
  });
  const outcome = element("select", { "aria-label": "Outcome", onchange: () => { filter.outcome = outcome.value; limit = PAGE; refresh(); } },
    element("option", { value: "" }, "all outcomes"),
    Object.entries(OUTCOMES).map(([name, [, , label]]) => element("option", { value: name, selected: filter.outcome === name }, label)));
  const cards = element("section", { class: "cards", "aria-label": "Running now" });
  const list = element("div", { class: "scroll" });
  const totals = element("div", { class: "totals" });
  content.append(element("main", { class: "wide" },
    element("h1", { class: "visually-hidden" }, "Runs"), cards,
    element("div", { class: "filter" }, search, outcome), list, totals));

  async function refresh() {
    clearTimeout(timer);
    const parameters = new URLSearchParams({ limit });
    for (const [key, value] of Object.entries(filter)) if (value) parameters.set(key, value);
    parameters.delete("limit");
    const address = parameters.toString() ? `/?${parameters}` : "/";
    if (location.pathname + location.search !== address) history.replaceState(null, "", address);
    parameters.set("limit", limit);
    try {
      const overview = await api(`/runs?${parameters}`);
      if (closed) return;
      setConnection("");
      // Nothing is drawn again while nothing changes, so that text can be selected.
      const state = JSON.stringify(overview);
      if (state !== shown) { shown = state; draw(overview); }
    } catch (error) {
      if (closed) return;
      setConnection(error instanceof TypeError ? "no connection, retrying" : error.message, "bad");
    }
    timer = setTimeout(refresh, document.hidden ? REFRESH * 5 : REFRESH);
  }

  function draw(overview) {
    cards.replaceChildren(...overview.runs.filter((run) => run.live).map(card));
    const rows = overview.runs.map(row);
    const more = overview.count > overview.runs.length && element("button", {
      class: "quiet", onclick: () => { limit += PAGE * 4; refresh(); },
    }, `Show more of ${overview.count.toLocaleString()} runs`);
    const empty = !rows.length && element("p", { class: "empty" },
      filter.q || filter.outcome || filter.project ? "No run matches." : "No runs yet. Start one with ralph run.");
    list.replaceChildren(...(rows.length ? [table(rows)] : []), ...[more, empty].filter(Boolean));
    drawTotals(overview.totals);
  }

  function drawTotals(sums) {
    const days = Object.entries(sums.days).filter(([day]) => day !== "unknown").slice(-30);
    const usd = ([, total]) => total.usage.cost_usd || 0;
    const useCost = days.some((day) => usd(day) > 0);
    const value = (day) => (useCost ? usd(day) : tokens(day[1].usage) || 0);
    const most = Math.max(...days.map(value), 0);
    const label = (day) => `${day[0]}: ${day[1].runs} runs, ${useCost ? dollars(usd(day)) : `${compact(value(day))} tokens`}`;
    const chart = days.length > 1 && most > 0 && element("figure", {},
      element("figcaption", {}, useCost ? "Cost by day" : "Tokens by day"),
      bars(days.map((day) => ({ size: value(day) / most, label: label(day) }))));
    totals.replaceChildren(...[
      chart, sumTable("Project", Object.entries(sums.projects), true), sumTable("Agent", Object.entries(sums.agents)),
    ].filter(Boolean));
  }

  function sumTable(name, entries, isProject) {
    if (!entries.length) return false;
    const short = (key) => (isProject ? key.split("/").pop() || key : key);
    const key = (value) => (isProject
      ? element("a", { href: `/?project=${encodeURIComponent(value)}`, title: value }, short(value)) : value);
    return element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ...[name, "Runs", "Iterations", "Tokens", "Cost"].map((title) => element("th", {}, title)))),
      element("tbody", {}, entries.sort((a, b) => b[1].runs - a[1].runs).map(([value, total]) => element("tr", {},
        element("td", {}, key(value)), element("td", {}, String(total.runs)), element("td", {}, String(total.iterations)),
        element("td", {}, compact(tokens(total.usage))), element("td", {}, dollars(total.usage.cost_usd)))))));
  }

  refresh();
  return () => { closed = true; clearTimeout(timer); };
}

function badge(outcome) {
  const [mark, tone, label] = OUTCOMES[outcome] || ["?", "plain", outcome];
  return element("span", { class: `badge ${tone}` }, `${mark} ${label}`);
}

function card(run) {
  const live = run.live;
  const urgent = ["asking", "paused", "waiting"].includes(live.activity.state);
  return element("a", { class: `card ${urgent ? "urgent" : ""}`, href: `/runs/${encodeURIComponent(run.id)}` },
    element("strong", {}, run.project), " ", element("small", {}, run.agent || ""),
    element("p", {}, run.prompt || run.id),
    element("p", { class: "activity" }, activityText(live)),
    element("small", {}, [`iteration ${live.iteration}`, live.hat, duration(live.totals.duration_ms),
      tokens(live.totals.usage) && `${compact(tokens(live.totals.usage))} tokens`, dollars(live.totals.usage.cost_usd)].filter(Boolean).join(" · ")));
}

function table(rows) {
  const titles = ["Outcome", "Started", "Project", "Agent", "Task", "Iterations", "Time", "Tokens", "Cost"];
  return element("table", { class: "runs" },
    element("thead", {}, element("tr", {}, titles.map((title) => element("th", {}, title)))),
    element("tbody", {}, rows));
}

function row(run) {
  const cell = (title, ...children) => element("td", { "data-title": title }, ...children);
  const usage = run.usage || {};
  return element("tr", {},
    cell("Outcome", run.live ? element("span", { class: "badge live" }, `▸ ${activityText(run.live)}`) : badge(run.outcome)),
    cell("Started", run.began ? clock(run.began) : ""), cell("Project", run.project), cell("Agent", run.agent || ""),
    cell("Task", element("a", { href: `/runs/${encodeURIComponent(run.id)}`, title: run.id }, run.prompt || run.id)),
    cell("Iterations", run.iterations === undefined ? "" : String(run.iterations)), cell("Time", duration(run.duration_ms)),
    cell("Tokens", compact(tokens(usage))), cell("Cost", dollars(usage.cost_usd)));
}

/** A bar chart. Sizes are from 0 to 1. */
export function bars(values) {
  const svg = (name, attributes, ...children) => {
    const created = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
    created.append(...children);
    return created;
  };
  const [width, height, gap] = [12, 60, 3];
  const drawn = values.map(({ size, label, tone }, index) => {
    const length = Math.max(1, Math.round(size * height));
    return svg("rect", { x: index * (width + gap), y: height - length, width, height: length, rx: 2, class: tone || "bar-fill" }, svg("title", {}, label));
  });
  return svg("svg", {
    viewBox: `0 0 ${Math.max(1, values.length * (width + gap))} ${height}`, class: "bars", role: "img",
    "aria-label": values.map(({ label }) => label).join("; "), width: values.length * (width + gap), height,
  }, ...drawn);
}
