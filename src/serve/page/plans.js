// The plans of all projects, and the page of one plan with its tasks, its merge queue and what happened.

import { shares } from "./charts.js";
import { api, clock, counted, dollars, element, icon, poll, post, problem, server, setCrumb, time } from "./lib.js";

const REFRESH = 2000;
const STATES = {
  running: ["live", "live"], merging: ["merge", "live"], waiting: ["dot", "plain"], done: ["check", "good"],
  parked: ["cross", "bad"], skipped: ["skip", "plain"], removed: ["skip", "plain"], interrupted: ["alert", "warning"],
};
const ORDER = ["running", "merging", "parked", "interrupted", "waiting", "done", "skipped", "removed"];

const planLink = (plan) => `/plans/${encodeURIComponent(plan.project_id)}/${encodeURIComponent(plan.plan)}`;
const runLink = (directory) => `/runs/${encodeURIComponent(directory.split("/").filter(Boolean).pop())}`;

function state(plan) {
  if (plan.is_running) return ["live", "live", "Running"];
  const outcome = plan.outcome && plan.outcome.outcome;
  return {
    complete: ["check", "good", "Complete"], incomplete: ["alert", "warning", "Tasks are parked"],
    out_of_budget: ["alert", "warning", "Budget used up"], interrupted: ["skip", "warning", "Interrupted"],
  }[outcome] || ["alert", "warning", "Not running"];
}

const countOf = (plan, name) => plan.tasks.filter((task) => task.state === name).length;

function progress(plan) {
  const tones = { done: "good", running: "live", merging: "live", parked: "bad", skipped: "rest", removed: "rest", interrupted: "warning", waiting: "rest" };
  const parts = ["done", "merging", "running", "interrupted", "parked", "waiting", "skipped", "removed"]
    .map((name) => ({ size: countOf(plan, name), tone: tones[name], label: `${countOf(plan, name)} ${name}` }));
  return shares(parts.filter((part) => part.size), "Tasks");
}

export function showPlans(content) {
  document.title = "Plans · ralph";
  setCrumb();
  const list = element("div", { class: "plans" });
  content.append(element("main", { class: "wide" }, element("h1", { class: "visually-hidden" }, "Plans"), list));
  const draw = ({ plans }) => list.replaceChildren(...(plans.length ? plans.map(planCard) : [
    element("div", { class: "empty" }, element("p", {}, "No plans yet. A plan is a list of tasks:"), element("pre", {}, "ralph plan run PLAN.md --jobs 4")),
  ]));
  return poll(() => api("/plans"), draw, REFRESH).close;
}

function planCard(plan) {
  const [name, tone, text] = state(plan);
  return element("a", { class: `card ${tone}`, href: planLink(plan) },
    element("span", { class: "card-head" }, element("strong", {}, plan.project), element("span", {}, plan.last ? clock(plan.last) : "")),
    element("span", { class: "card-title" }, plan.plan), progress(plan),
    element("span", { class: "card-foot" },
      element("span", { class: `state ${tone}` }, icon(name, tone), ` ${text}`),
      element("span", {}, [`${countOf(plan, "done")} of ${counted(plan.tasks.length, "task")}`, plan.cost_usd > 0 && dollars(plan.cost_usd)].filter(Boolean).join(" · "))));
}

export function showPlan(content, project, name) {
  document.title = `${name} · ralph`;
  setCrumb(name);
  const path = `/plans/${encodeURIComponent(project)}/${encodeURIComponent(name)}`;
  const main = element("main", { class: "wide" });
  const status = element("span", { class: "sent", role: "status", "aria-live": "polite" });
  content.append(main);
  let steering = false;
  server().then((facts) => { steering = facts.steering; polling.refresh(); });

  const command = (label, body, tone = "") => element("button", {
    type: "button", class: `small ${tone}`, onclick: async () => {
      status.textContent = "";
      try { await post(`${path}/commands`, body); status.textContent = "Sent"; } catch (error) { status.textContent = error.message; }
    },
  }, label);

  function draw(plan) {
    const [mark, tone, text] = state(plan);
    const facts = [
      ["Tasks", `${countOf(plan, "done")} of ${plan.tasks.length} done`], ["Cost", dollars(plan.cost_usd)],
      ["Branch", plan.branch], ["Started", plan.began && clock(plan.began)], ["Source", plan.source],
    ].filter(([, value]) => value);
    const queue = plan.branch ? [element("section", { class: "panel" }, element("h2", {}, "Merge queue"), mergeQueue(plan))] : [];
    main.replaceChildren(
      element("header", { class: "run-header" },
        element("p", { class: `pill ${tone}` }, icon(mark, tone), text),
        element("h1", {}, plan.plan), element("p", { class: "sub" }, plan.project_root),
        progress(plan),
        element("dl", { class: "facts" }, facts.map(([label, value]) => element("div", {}, element("dt", {}, label), element("dd", {}, value)))),
        steering && plan.is_running && element("div", { class: "steering" }, command("Stop the plan", { kind: "stop", task: null }, "danger"), status)),
      element("div", { class: "plan-columns" },
        element("section", { class: "panel" }, element("h2", {}, "Tasks"),
          element("ul", { class: "rows" }, [...plan.tasks].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state)).map((task) => taskRow(plan, task)))),
        element("div", {}, queue, element("section", { class: "panel" }, element("h2", {}, "What happened"), timeline(plan)))));
  }

  function taskRow(plan, task) {
    const [mark, tone] = STATES[task.state] || ["dot", "plain"];
    const place = [task.host && `on ${task.host}`, task.engine_state].filter(Boolean).join(" · ");
    return element("li", { class: "row task" }, icon(mark, tone),
      element("div", { class: "row-main" },
        task.run ? element("a", { class: "row-title", href: runLink(task.run) }, task.title) : element("span", { class: "row-title" }, task.title),
        element("div", { class: "row-sub" }, element("span", { class: `state ${tone}` }, task.state), element("code", {}, task.id),
          task.attempt > 1 && element("span", {}, `attempt ${task.attempt}`), place && element("span", {}, place),
          task.commit && element("code", {}, task.commit.slice(0, 10))),
        task.why && element("p", { class: "why" }, task.why)),
      element("span", { class: "figure cost" }, task.cost_usd > 0 ? dollars(task.cost_usd) : ""),
      steering && element("span", { class: "row-actions" },
        ["parked", "skipped"].includes(task.state) && command("Retry", { kind: "retry", task: task.id }),
        ["waiting", "parked", "interrupted"].includes(task.state) && command("Skip", { kind: "skip", task: task.id }),
        plan.is_running && task.state === "running" && command("Stop", { kind: "stop", task: task.id }, "danger")));
  }

  const polling = poll(() => api(path), draw, REFRESH);
  api(path).catch((error) => main.replaceChildren(problem(error.message)));
  return polling.close;
}

/** The tasks that wait for their merge, and the merged ones, newest first. */
function mergeQueue(plan) {
  const waiting = plan.tasks.filter((task) => task.state === "merging");
  const merged = plan.events.filter((event) => event.type === "task_merged").reverse();
  const title = (id) => (plan.tasks.find((task) => task.id === id) || { title: id }).title;
  const entry = (mark, tone, text, note) => element("li", {}, icon(mark, tone), element("span", {}, text), element("code", {}, note || ""));
  if (!waiting.length && !merged.length) return element("p", { class: "empty" }, "Nothing has been merged yet.");
  return element("ol", { class: "queue" }, waiting.map((task, index) => entry("merge", "live", task.title, index ? `${index + 1}.` : "next")),
    merged.map((event) => entry("check", "good", title(event.task), event.commit.slice(0, 10))));
}

const SENTENCES = {
  plan_started: () => "The plan started", plan_resumed: () => "The plan was resumed",
  task_chosen: (event) => `${event.task} started${event.attempt > 1 ? `, attempt ${event.attempt}` : ""}`,
  task_run: (event) => `${event.task} runs as ${event.run.split("/").pop()}`,
  task_verified: (event) => `${event.task} passed its gates`, task_committed: (event) => `${event.task} was committed`,
  task_stopped: (event) => `${event.task} stopped`, merge_prepared: (event) => `${event.tasks.join(", ")}: gates run on the merged tree`,
  task_merged: (event) => `${event.task} was merged`, task_rejected: (event) => `${event.task} was rejected and runs again`,
  task_done: (event) => `${event.task} is done`, task_parked: (event) => `${event.task} is parked${event.reason ? `: ${event.reason}` : ""}`,
  task_reopened: (event) => `${event.task} is open again`, task_skipped: (event) => `${event.task} is skipped`,
  task_removed: (event) => `${event.task} was removed from the plan`, command_received: (event) => `Command: ${event.kind} ${event.task || ""}`,
  warning: (event) => event.text, plan_ended: (event) => `The plan ended: ${event.outcome.replaceAll("_", " ")}`,
};

function timeline(plan) {
  const entries = [...plan.events].reverse().map((event) => element("li", { class: event.type },
    time(event.at), element("span", {}, (SENTENCES[event.type] || (() => event.type.replaceAll("_", " ")))(event))));
  return element("ol", { class: "timeline", tabindex: "0", "aria-label": "What happened" }, entries);
}
