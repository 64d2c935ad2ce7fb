// Chooses the view for the address, and handles what all views have: links, the navigation and the color scheme.

import { setConnection, setCrumb, updateElapsed } from "./lib.js";
import { showPlan, showPlans } from "./plans.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { showUsage } from "./usage.js";

const VIEWS = [
  [/^\/$/, "/", showRuns],
  [/^\/usage$/, "/usage", showUsage],
  [/^\/plans$/, "/plans", showPlans],
  [/^\/plans\/([^/]+)\/([^/]+)$/, "/plans", showPlan],
  [/^\/runs\/([^/]+)$/, "/", showRun],
];

let close = () => {};
let shown;

function route() {
  close();
  shown = location.pathname + location.search;
  const content = document.getElementById("content");
  content.replaceChildren();
  setConnection("");
  setCrumb();
  const [match, section, show] = VIEWS.map(([pattern, section, show]) => [location.pathname.match(pattern), section, show])
    .find(([match]) => match) || [[], "/", showRuns];
  for (const link of document.querySelectorAll(".tabs-top a")) {
    if (link.getAttribute("href") === section) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  close = show(content, ...match.slice(1).map(decodeURIComponent)) || (() => {});
}

/** Follows links inside the page without loading it again. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  const href = link && link.getAttribute("href");
  if (!link || href.startsWith("/api/") || link.target || event.defaultPrevented || event.button) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", href);
  route();
  document.getElementById("content").focus({ preventScroll: true });
  scrollTo(0, 0);
});
// A link to a record of the same run changes only the fragment.
addEventListener("popstate", () => { if (location.pathname + location.search !== shown) route(); });

const THEMES = ["auto", "light", "dark"];
const toggle = document.getElementById("theme");
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  toggle.setAttribute("aria-label", `Color scheme: ${theme}`);
  toggle.title = `Color scheme: ${theme}`;
  toggle.dataset.choice = theme;
}
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
setTheme(THEMES.includes(stored()) ? stored() : "auto");
toggle.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(toggle.dataset.choice) + 1) % THEMES.length];
  try { localStorage.setItem("theme", next); } catch { /* the choice lasts as long as the page */ }
  setTheme(next);
});

setInterval(() => updateElapsed(), 1000);
route();
