// The page of one run: facts, iterations and the live transcript.

import { OUTCOMES, activityText, api, compact, dollars, duration, element, post, setConnection, setCrumb, tokens } from "./app.js";
import { Blocks } from "./blocks.js";
import { bars } from "./list.js";

export function showRun(content, id) {
  document.title = `ralph · ${id}`;
  setCrumb("/ ", element("code", {}, id));
  const verdict = element("p", { class: "verdict plain" }, "…");
  const title = element("h1", {}, id);
  const facts = element("dl", { class: "facts" });
  const question = element("div", { class: "question", role: "alert" });
  const steering = element("div", { class: "steering" });
  const iterations = element("nav", { class: "iterations", "aria-label": "Iterations" });
  const usage = element("figure", { class: "usage" });
  const transcript = element("div", { class: "transcript", role: "log", "aria-label": "Transcript", "aria-live": "off" });
  const blocks = new Blocks(transcript);
  const count = element("span", { class: "found-count", role: "status", "aria-live": "polite" });
  const search = element("input", { type: "search", placeholder: "Search the transcript ( / )", "aria-label": "Search the transcript" });
  const follow = element("button", { class: "follow", hidden: true, onclick: () => { following = true; toEnd(); } }, "↓ follow");
  content.append(element("main", { class: "run" },
    element("header", { class: "run-header" }, title, verdict, question, facts, steering),
    element("div", { class: "columns" },
      element("aside", {}, iterations, usage),
      element("div", { class: "stream" }, element("div", { class: "filter" }, search, count), transcript, follow))));

  let following = false;
  let server = { steering: false };
  let prompt = "";
  let last;
  api("/server").then((facts) => { server = facts; drawSteering(last); }).catch(() => {});
  api(`/runs/${encodeURIComponent(id)}/iterations/1/attempts/1/prompt`).then((text) => {
    prompt = String(text).trim();
    const first = prompt.split("\n").map((line) => line.replace(/^#+\s*/, "").trim()).find(Boolean);
    if (!first) return;
    title.textContent = first.length > 140 ? `${first.slice(0, 140)}…` : first;
    document.title = `ralph · ${title.textContent}`;
    facts.after(element("details", { class: "fold prompt" }, element("summary", {}, "Prompt of the first iteration"), element("pre", {}, prompt)));
  }).catch(() => {});

  const events = new EventSource(`/api/v1/runs/${encodeURIComponent(id)}/page`);
  events.addEventListener("open", () => setConnection(""));
  events.addEventListener("error", () => setConnection("no connection, retrying", "bad"));
  events.addEventListener("blocks", (event) => {
    const atEnd = following || nearEnd();
    blocks.apply(JSON.parse(event.data).blocks);
    if (atEnd && last && last.live) toEnd();
    drawFollow();
  });
  events.addEventListener("run", (event) => {
    const first = !last;
    last = JSON.parse(event.data);
    drawFacts(last);
    drawIterations(last);
    drawSteering(last);
    if (first && last.live) { following = true; toEnd(); }
  });

  function drawFacts(run) {
    const [mark] = OUTCOMES[run.outcome] || ["·"];
    verdict.className = `verdict ${run.tone}`;
    verdict.replaceChildren(element("span", { class: "mark" }, mark), ` ${run.live ? `Running: ${activityText(run.live)}` : run.verdict}`);
    facts.replaceChildren(...run.facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  }

  function drawIterations(run) {
    let section = 0;
    const entries = run.turns.map((turn) => {
      section += 1;
      const target = `${section}-0`;
      const outcome = turn.outcome || (run.live ? "running" : "interrupted");
      const tones = { completed: "good", continued: "plain", running: "live" };
      const marks = { completed: "✓", continued: "→", running: "▸" };
      const failed = (turn.gates || []).filter((gate) => gate.result !== "passed").map((gate) => gate.name);
      const reason = failed.length ? `${failed.join(", ")} failed` : outcome.replaceAll("_", " ");
      return element("button", { class: `turn ${tones[outcome] || "bad"}`, onclick: () => { following = false; blocks.reveal(target); } },
        element("span", { class: "mark" }, marks[outcome] || "✗"),
        element("span", {}, `${turn.iteration}${turn.attempt > 1 ? `.${turn.attempt}` : ""}${turn.hat ? ` ${turn.hat}` : ""}`),
        element("span", { class: "reason" }, reason),
        element("small", {}, [turn.outcome && duration(turn.duration_ms), dollars(turn.usage.cost_usd) || (tokens(turn.usage) && compact(tokens(turn.usage)))].filter(Boolean).join(" · ")));
    });
    if (iterations.childElementCount !== entries.length || run.live || !iterations.childElementCount) iterations.replaceChildren(...entries);
    const cost = run.turns.some((turn) => turn.usage.cost_usd > 0);
    const value = (turn) => (cost ? turn.usage.cost_usd || 0 : tokens(turn.usage) || 0);
    const most = Math.max(...run.turns.map(value), 0);
    if (run.turns.length > 1 && most > 0) {
      usage.replaceChildren(element("figcaption", {}, cost ? "Cost by iteration" : "Tokens by iteration"),
        bars(run.turns.slice(-60).map((turn) => ({
          size: value(turn) / most, label: `iteration ${turn.iteration}: ${cost ? dollars(value(turn)) : `${compact(value(turn))} tokens`}`,
        }))));
    }
  }

  let steeringState;
  function drawSteering(run) {
    if (!run) return;
    const asking = run.live && run.live.activity.state === "asking";
    const state = JSON.stringify([server.steering, Boolean(run.live), run.live && run.live.activity.state]);
    if (state === steeringState) return;
    steeringState = state;
    question.replaceChildren();
    if (!server.steering) { steering.replaceChildren(); return; }
    const status = element("span", { role: "status", "aria-live": "polite" });
    const send = (label, body) => element("button", { onclick: async () => {
      status.textContent = "";
      try {
        if (body === null) await post(`/runs/${encodeURIComponent(id)}/continue`, {});
        else await post(`/runs/${encodeURIComponent(id)}/commands`, { id: crypto.randomUUID(), ...body });
        status.textContent = "sent";
      } catch (error) { status.textContent = error.message; }
    } }, label);
    if (!run.live) {
      steering.replaceChildren(...(run.outcome === "complete" ? [] : [send("Continue the run", null)]), status);
      return;
    }
    if (asking) {
      question.replaceChildren(element("p", {}, "The run asks whether to continue."),
        send("Continue", { kind: "answer", answer: "continue" }), send("Quit", { kind: "answer", answer: "quit" }));
    }
    const message = element("input", { type: "text", placeholder: "Message for the next prompt", "aria-label": "Message for the next prompt", autocomplete: "off" });
    const form = element("form", { onsubmit: async (event) => {
      event.preventDefault();
      if (!message.value.trim()) return;
      try {
        await post(`/runs/${encodeURIComponent(id)}/commands`, { id: crypto.randomUUID(), kind: "message", text: message.value });
        message.value = "";
        status.textContent = "sent";
      } catch (error) { status.textContent = error.message; }
    } }, message, element("button", {}, "Send"));
    const paused = run.live.activity.state === "paused";
    const waiting = run.live.activity.state === "waiting";
    steering.replaceChildren(form, ...[
      paused ? send("Resume", { kind: "resume" }) : send("Pause", { kind: "pause" }),
      waiting && send("Retry now", { kind: "wake" }),
      send("Stop iteration", { kind: "stop_iteration" }), send("Stop run", { kind: "stop" }),
    ].filter(Boolean), status);
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

  const nearEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const toEnd = () => { scrollTo(0, document.documentElement.scrollHeight); drawFollow(); };
  function drawFollow() {
    follow.hidden = !(last && last.live) || nearEnd();
  }
  const onScroll = () => { following = nearEnd(); drawFollow(); };
  const onKey = (event) => {
    if (event.target.matches("input, select, textarea") || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); search.focus(); }
    if (event.key === "G" || event.key === "End") { following = true; toEnd(); }
    if (event.key === "n") searchFor(1);
    if (event.key === "N") searchFor(-1);
  };
  addEventListener("scroll", onScroll, { passive: true });
  addEventListener("keydown", onKey);
  return () => {
    events.close();
    blocks.close();
    removeEventListener("scroll", onScroll);
    removeEventListener("keydown", onKey);
  };
}
