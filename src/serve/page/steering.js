// The controls of a run: messages, pause, stop, answers, and starting it again. Without `--steer` they show how to do it in a terminal.

import { commandId, element, post, server } from "./lib.js";

/** A button that stops something asks to be pressed again within this time. */
const CONFIRM = 4000;

export class Steering {
  constructor(path) {
    this.path = path;
    this.controls = element("div", { class: "steering" });
    this.question = element("div", { class: "question", role: "alert" });
    this.status = element("span", { class: "sent", role: "status", "aria-live": "polite" });
    this.drawn = "";
    this.allowed = false;
    server().then((facts) => { this.allowed = facts.steering; if (this.run) this.draw(this.run); });
  }

  /** Draws the controls again if the state of the run has changed, so that a text that is being written stays. */
  draw(run) {
    this.run = run;
    const now = run.live && run.live.activity;
    const state = JSON.stringify([this.allowed, run.state, now && now.state, now && now.text]);
    if (state === this.drawn) return;
    this.drawn = state;
    this.drawQuestion(now);
    this.controls.replaceChildren(...(this.allowed ? this.buttons(run, now) : []));
  }

  drawQuestion(now) {
    if (!now || !["asking", "question"].includes(now.state)) { this.question.replaceChildren(); return; }
    if (now.state === "asking") {
      this.question.replaceChildren(element("p", {}, "The run asks whether to continue."), ...(this.allowed ? [element("div", { class: "buttons" },
        this.button("Continue", { kind: "answer", answer: "continue" }, "primary"),
        this.button("Continue without asking", { kind: "answer", answer: "continue_without_asking" }),
        this.button("Quit", { kind: "answer", answer: "quit" }))] : []));
      return;
    }
    const heading = element("p", {}, element("strong", {}, "The agent asks: "), now.text);
    this.question.replaceChildren(heading, this.allowed
      ? this.form("Answer", "Your answer", (text) => ({ kind: "answer_question", text }))
      : element("p", {}, "To answer: ", element("code", {}, "ralph tell --answer TEXT")));
  }

  buttons(run, now) {
    if (!now) {
      const again = element("button", { type: "button", class: "primary", onclick: () => this.send(`${this.path}/continue`, {}) }, "Continue the run");
      return [...(run.state === "complete" ? [] : [again]), this.status];
    }
    return [
      this.form("Send", "Message for the next prompt", (text) => ({ kind: "message", text })),
      now.state === "paused" ? this.button("Resume", { kind: "resume" }, "primary") : this.button("Pause", { kind: "pause" }),
      ...(now.state === "waiting" ? [this.button("Retry now", { kind: "wake" })] : []),
      this.confirmed("Stop iteration", { kind: "stop_iteration" }), this.confirmed("Stop run", { kind: "stop" }), this.status,
    ];
  }

  form(label, placeholder, command) {
    const text = element("input", { type: "text", placeholder, "aria-label": placeholder, autocomplete: "off" });
    return element("form", { onsubmit: async (event) => {
      event.preventDefault();
      if (text.value.trim() && await this.command(command(text.value))) text.value = "";
    } }, text, element("button", { class: "primary" }, label));
  }

  button(label, command, tone = "") {
    return element("button", { type: "button", class: tone, onclick: () => this.command(command) }, label);
  }

  /** The first press asks, the second one sends. */
  confirmed(label, command) {
    let timer;
    const button = element("button", { type: "button", class: "danger", onclick: () => {
      clearTimeout(timer);
      if (button.dataset.armed) {
        delete button.dataset.armed;
        button.textContent = label;
        this.command(command);
        return;
      }
      button.dataset.armed = "yes";
      button.textContent = `${label}?`;
      timer = setTimeout(() => { delete button.dataset.armed; button.textContent = label; }, CONFIRM);
    } }, label);
    return button;
  }

  command(body) {
    return this.send(`${this.path}/commands`, { id: commandId(), ...body });
  }

  async send(path, body) {
    this.status.textContent = "";
    try {
      await post(path, body);
      this.status.textContent = "Sent";
      return true;
    } catch (error) {
      this.status.textContent = error.message;
      return false;
    }
  }
}
