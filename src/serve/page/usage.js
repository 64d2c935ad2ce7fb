// What the runs cost: by day, project and agent.

import { bars, shares } from "./charts.js";
import { api, compact, counted, dollars, element, poll, setCrumb, tokens } from "./lib.js";
import { lastDays } from "./runs.js";

const REFRESH = 5000;
const DAYS = 30;

export function showUsage(content) {
  document.title = "Usage · ralph";
  setCrumb();
  let unit;
  const chart = element("section", { class: "panel" });
  const tables = element("div", { class: "panels" });
  content.append(element("main", { class: "wide" }, element("h1", { class: "visually-hidden" }, "Usage"), chart, tables));

  function draw({ totals }) {
    const days = lastDays(DAYS).map((name) => [name, totals.days[name]]);
    const cost = (entry) => (entry && entry.usage.cost_usd) || 0;
    const used = (entry) => (entry && tokens(entry.usage)) || 0;
    unit ??= days.some(([, entry]) => cost(entry) > 0) ? "cost" : "tokens";
    const value = { cost, tokens: used, runs: (entry) => (entry && entry.runs) || 0 }[unit];
    const text = { cost: (n) => dollars(n), tokens: (n) => `${compact(n)} tokens`, runs: (n) => counted(n, "run") }[unit];
    const most = Math.max(...days.map(([, entry]) => value(entry)), 0);
    const sum = days.reduce((total, [, entry]) => total + value(entry), 0);
    const buttons = ["cost", "tokens", "runs"].map((name) => element("button", {
      type: "button", "aria-pressed": String(unit === name), onclick: () => { unit = name; draw({ totals }); },
    }, name[0].toUpperCase() + name.slice(1)));
    chart.replaceChildren(
      element("div", { class: "panel-head" },
        element("h2", {}, text(sum) || "0", " ", element("small", {}, `in the last ${DAYS} days`)),
        element("div", { class: "segments", role: "group", "aria-label": "Unit" }, buttons)),
      bars(days.map(([name, entry], index) => ({
        size: most ? value(entry) / most : 0, label: `${name}: ${text(value(entry)) || "0"}, ${counted((entry && entry.runs) || 0, "run")}`,
        caption: index % 5 === 4 ? name.slice(5) : undefined,
      })), { height: 110, slot: 32, name: "By day" }));
    tables.replaceChildren(
      sumTable("Project", Object.entries(totals.projects), (root) => element("a", { class: "name", href: `/?project=${encodeURIComponent(root)}`, title: root }, root.split("/").pop() || root)),
      sumTable("Agent", Object.entries(totals.agents), (name) => element("a", { href: `/?agent=${encodeURIComponent(name)}` }, name)));
  }

  const polling = poll(() => api("/runs?limit=0"), draw, REFRESH);
  return polling.close;
}

function sumTable(name, entries, link) {
  const sorted = entries.sort((a, b) => (b[1].usage.cost_usd || 0) - (a[1].usage.cost_usd || 0) || b[1].runs - a[1].runs);
  const head = [name, "Runs", "Complete", "Iterations", "Tokens", "Cost"];
  return element("section", { class: "panel" }, element("h2", {}, `By ${name.toLowerCase()}`),
    element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, head.map((title, index) => element("th", { class: index && title !== "Complete" ? "right" : "", scope: "col" }, title)))),
      element("tbody", {}, sorted.map(([key, total]) => element("tr", {},
        element("td", {}, link(key)),
        element("td", { class: "right" }, total.runs.toLocaleString("en-US")),
        element("td", {}, shares([
          { size: total.complete, tone: "good", label: `${total.complete} complete` },
          { size: total.runs - total.complete, tone: "rest", label: `${total.runs - total.complete} not` }], "Runs")),
        element("td", { class: "right" }, total.iterations.toLocaleString("en-US")),
        element("td", { class: "right" }, compact(tokens(total.usage))),
        element("td", { class: "right" }, dollars(total.usage.cost_usd))))))));
}
