// What the views share: requests, elements, texts for figures and states, icons.

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

let serverFacts;
/** Facts about the server, which do not change while it runs. */
export function server() {
  serverFacts ??= api("/server").catch(() => { serverFacts = undefined; return { steering: false }; });
  return serverFacts;
}

/** A random id for a command. `randomUUID` is missing on pages that are forwarded under a name other than localhost. */
export const commandId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** Creates an element. Text is never interpreted as HTML. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Creates an SVG element. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(created, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else created.setAttribute(key, value === true ? "" : value);
  }
  created.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return created;
}

const SHAPES = {
  check: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M5 8.2l2.1 2.1L11.2 6"],
  cross: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M5.8 5.8l4.4 4.4M10.2 5.8l-4.4 4.4"],
  alert: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M8 4.6v4M8 11.2v.1"],
  question: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M6.2 6.2a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.1M8 11.4v.1"],
  pause: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M6.4 5.8v4.4M9.6 5.8v4.4"],
  clock: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M8 4.6V8l2.2 1.6"],
  dot: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M8 8h.01"],
  merge: ["M4 2.6v10.8M4 6c0 3 2 4.2 5.2 4.2", "M4 1.6a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4zM11 9a1.2 1.2 0 1 0 0 2.4A1.2 1.2 0 0 0 11 9z"],
  skip: ["M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13z", "M5.4 8h5.2"],
  arrow: ["M3 8h10M9.5 4.5L13 8l-3.5 3.5"],
};

/** A small picture; it is hidden from screen readers, so a text must say the same. */
export function icon(name, tone = "") {
  if (name === "live") return element("span", { class: `icon spinner ${tone}`, "aria-hidden": "true" });
  const paths = SHAPES[name].map((d) => svg("path", { d }));
  return svg("svg", { viewBox: "0 0 16 16", class: `icon ${tone}`, "aria-hidden": "true" }, paths);
}

/** `12.3k`, `4.5M` */
export function compact(count) {
  if (count === undefined || count === null) return "";
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)}M`;
  if (count >= 1e3) return `${(count / 1e3).toFixed(1)}k`;
  return String(count);
}

export function dollars(amount) {
  if (amount === undefined || amount === null) return "";
  if (amount > 0 && amount < 0.01) return `$${amount.toFixed(4)}`;
  return `$${amount.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

export function tokens(usage) {
  if (!usage) return undefined;
  if (usage.total_tokens !== undefined) return usage.total_tokens;
  const sum = (usage.prompt_tokens || 0) + (usage.completion_tokens || 0);
  return sum || undefined;
}

/** `1 run`, `2 runs` */
export const counted = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

/** `1h05m`, `3m20s`, `4s` */
export function duration(ms) {
  if (ms === undefined || ms === null) return "";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return `${Math.max(0, Math.round(ms))}ms`;
  const [d, h, m, s] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (n) => String(n).padStart(2, "0");
  return d ? `${d}d${two(h)}h` : h ? `${h}h${two(m)}m` : m ? `${m}m${two(s)}s` : `${s}s`;
}

/** The time that a run has taken, which goes on: until its last record, and since then. */
export function elapsed(live) {
  const node = element("span", { class: "elapsed", "data-ms": live.totals.duration_ms, "data-last": live.last });
  updateElapsed([node]);
  return node;
}

/** Writes the current time into all elements that `elapsed` has created. */
export function updateElapsed(nodes = document.querySelectorAll(".elapsed")) {
  for (const node of nodes) {
    const { ms, last } = node.dataset;
    const text = duration(Number(ms) + (last ? Math.max(0, Date.now() - new Date(last)) : 0));
    if (node.textContent !== text) node.textContent = text;
  }
}

export const timeOfDay = (time) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
export const day = (time) => new Date(time).toLocaleDateString("en-US", { weekday: "short", month: "short", day: "numeric" });

export function clock(time) {
  const today = new Date(time).toDateString() === new Date().toDateString();
  return today ? timeOfDay(time) : `${new Date(time).toLocaleDateString("en-US", { month: "short", day: "numeric" })}, ${timeOfDay(time)}`;
}

/** A time with its exact form as a tooltip. */
export const time = (at, text = clock(at)) => element("time", { datetime: at, title: new Date(at).toString() }, text);

/** Icon, tone and name of each outcome of a run. */
export const OUTCOMES = {
  complete: ["check", "good", "Complete"],
  failed: ["cross", "bad", "Failed"],
  auth: ["cross", "bad", "Not logged in"],
  limit: ["alert", "warning", "Limit reached"],
  unreviewed: ["alert", "warning", "Unreviewed"],
  interrupted: ["skip", "warning", "Interrupted"],
  running: ["live", "live", "Running"],
  died: ["cross", "bad", "Died"],
  broken: ["question", "bad", "Unreadable"],
};

const WAITS = { cooldown: "Cooling down", backoff: "Retrying after a failure", rate_limit: "Usage limit", overload: "Service overloaded", quota: "Usage limit of the account" };

/** Icon, tone and text of what a running run is doing. */
export function activity(live) {
  const now = live.activity;
  switch (now.state) {
    case "agent": return ["live", "live", now.tool ? `Agent · ${now.tool}` : "Agent is working"];
    case "gate": return ["live", "live", `Gate · ${now.name}`];
    case "waiting": {
      // How long other runs need is unknown.
      const until = new Date(now.until) > new Date() ? ` · until ${clock(now.until)}` : "";
      return ["clock", "warning", `${now.reason || WAITS[now.why] || "Waiting"}${until}`];
    }
    case "paused": return ["pause", "warning", "Paused"];
    case "asking": return ["question", "warning", "Asks whether to continue"];
    case "question": return ["question", "warning", `Asks: ${now.text}`];
    case "stopping": return ["live", "warning", "Stopping"];
    default: return ["live", "live", "Starting"];
  }
}

/** Icon, tone and text of a run in a list. */
export const runState = (run) => (run.live ? activity(run.live) : OUTCOMES[run.outcome] || ["question", "plain", run.outcome]);

/** A button that copies a text. */
export function copyButton(text, label = "Copy") {
  const button = element("button", {
    class: "small", onclick: async () => {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 1500);
    },
  }, label);
  return button;
}

export function setConnection(text, tone = "") {
  const status = document.getElementById("connection");
  if (status.textContent !== text) status.textContent = text;
  status.className = tone;
}

/** The path to the page, after the navigation. */
export function setCrumb(...children) {
  document.getElementById("crumb").replaceChildren(...children);
}

/** Calls a function now and again after each pause, until it is closed. The page is drawn again only if something has changed. */
export function poll(load, draw, pause) {
  let [timer, closed, shown] = [undefined, false, ""];
  async function refresh() {
    clearTimeout(timer);
    try {
      const value = await load();
      if (closed) return;
      setConnection("Live", "good");
      const state = JSON.stringify(value);
      if (state !== shown) { shown = state; draw(value); }
    } catch (error) {
      if (closed) return;
      setConnection(error instanceof TypeError ? "No connection, retrying" : error.message, "bad");
    }
    timer = setTimeout(refresh, document.hidden ? pause * 5 : pause);
  }
  refresh();
  return { refresh: () => { shown = ""; return refresh(); }, close: () => { closed = true; clearTimeout(timer); } };
}

/** A page that has failed to load. */
export const problem = (text) => element("p", { class: "empty", role: "alert" }, text);
