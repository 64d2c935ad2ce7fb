// Chooses the view for the address, and offers what the views share.

import { showList } from "./list.js";
import { showRun } from "./run.js";

/** Fetches JSON; throws an error with the server's message. */
export async function api(path, options) {
  const response = await fetch(`/api/v1${path}`, options);
  const body = await response.text();
  const value = body && (response.headers.get("content-type") || "").includes("json") ? JSON.parse(body) : body;
  if (!response.ok) throw new Error((value && value.error) || `the server answered ${response.status}`);
  return value;
}

/** Sends JSON. */
export function post(path, value) {
  const headers = { "Content-Type": "application/json" };
  return api(path, { method: "POST", headers, body: JSON.stringify(value) });
}

/** Creates an element. Text is never interpreted as HTML. */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else created.setAttribute(key, value === true ? "" : value);
  }
  created.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return created;
}

/** `12.3k`, `4.5M` */
export function compact(count) {
  if (count === undefined || count === null) return "";
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)}M`;
  if (count >= 1e3) return `${(count / 1e3).toFixed(1)}k`;
  return String(count);
}

export function dollars(amount) {
  if (amount === undefined || amount === null) return "";
  return amount > 0 && amount < 0.01 ? `$${amount.toFixed(4)}` : `$${amount.toFixed(2)}`;
}

export function tokens(usage) {
  if (!usage) return undefined;
  if (usage.total_tokens !== undefined) return usage.total_tokens;
  const sum = (usage.prompt_tokens || 0) + (usage.completion_tokens || 0);
  return sum || undefined;
}

/** `1h05m`, `3m20s`, `4s` */
export function duration(ms) {
  if (ms === undefined || ms === null) return "";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return `${Math.max(0, Math.round(ms))}ms`;
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h ? `${h}h${two(m)}m` : m ? `${m}m${two(s)}s` : `${s}s`;
}

export function clock(time) {
  const at = new Date(time);
  const today = at.toDateString() === new Date().toDateString();
  const hours = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return today ? hours : `${at.toLocaleDateString([], { month: "short", day: "numeric" })} ${hours}`;
}

export const OUTCOMES = {
  complete: ["✓", "good", "complete"],
  failed: ["✗", "bad", "failed"],
  auth: ["✗", "bad", "not logged in"],
  limit: ["!", "warning", "limit"],
  unreviewed: ["!", "warning", "unreviewed"],
  interrupted: ["!", "warning", "interrupted"],
  running: ["▸", "live", "running"],
  died: ["✗", "bad", "died"],
  broken: ["?", "bad", "broken"],
};

/** What a running run is doing, in a few words. */
export function activityText(live) {
  if (!live) return "";
  const activity = live.activity;
  const reasons = { cooldown: "cooling down", backoff: "retrying", rate_limit: "usage limit", overload: "service overloaded" };
  switch (activity.state) {
    case "agent": return activity.tool ? `agent · ${activity.tool}` : "agent is working";
    case "gate": return `gate · ${activity.name}`;
    case "waiting": return `${reasons[activity.why] || activity.why} until ${clock(activity.until)}`;
    case "paused": return "paused";
    case "asking": return "asks you a question";
    case "stopping": return "stopping";
    default: return "starting";
  }
}

export function setConnection(text, tone = "") {
  const status = document.getElementById("connection");
  if (status.textContent !== text) status.textContent = text;
  status.className = tone;
}

export function setCrumb(...children) {
  document.getElementById("crumb").replaceChildren(...children);
}

let close = () => {};

function route() {
  close();
  const content = document.getElementById("content");
  content.replaceChildren();
  setConnection("");
  const run = location.pathname.match(/^\/runs\/([^/]+)$/);
  close = run ? showRun(content, decodeURIComponent(run[1])) : showList(content);
}

/** Follows links inside the page without loading it again. */
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  route();
  document.getElementById("content").focus({ preventScroll: true });
  scrollTo(0, 0);
});
addEventListener("popstate", route);
route();
