// The transcript: a list of HTML blocks of which only the visible part is in the document.
//
// Blocks are grouped into chunks. A chunk that leaves the screen is replaced by a space of its height.

import { element, time } from "./lib.js";

const CHUNK = 60;
/** Assumed height of a block that has not been drawn yet. */
const BLOCK_HEIGHT = 30;

export class Blocks {
  /** `link` returns the address of a record as JSON. */
  constructor(container, link) {
    this.container = container;
    this.link = link;
    this.chunks = [];
    /** Position of each block by its id. */
    this.places = new Map();
    this.open = new Set();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) this.setVisible(this.chunks[Number(entry.target.dataset.chunk)], entry.isIntersecting);
    }, { rootMargin: "1200px 0px" });
    // A block is created anew when it changes or returns to the screen; what the reader unfolded stays unfolded.
    container.addEventListener("toggle", (event) => {
      const block = event.target.closest("[data-block]");
      if (!block || event.target.parentElement !== block) return;
      if (event.target.open) this.open.add(block.dataset.block);
      else this.open.delete(block.dataset.block);
    }, true);
  }

  get length() {
    return this.places.size;
  }

  /** Adds or replaces blocks. Blocks arrive in the order of the transcript. */
  apply(blocks) {
    for (const { section, index, seq, at, html } of blocks) {
      const id = `${section}-${index}`;
      const place = this.places.get(id);
      if (place) this.replace(place, id, html);
      else this.add(id, html, seq, at);
    }
  }

  add(id, html, seq, at) {
    let chunk = this.chunks.at(-1);
    if (!chunk || chunk.blocks.length >= CHUNK) chunk = this.addChunk();
    const block = { id, html, seq, at };
    this.places.set(id, { chunk, block });
    chunk.blocks.push(block);
    if (chunk.visible) chunk.node.append(this.render(block));
    else if (!chunk.drawn) chunk.node.style.height = `${chunk.blocks.length * BLOCK_HEIGHT}px`;
  }

  replace({ chunk, block }, id, html) {
    if (block.html === html) return;
    block.html = html;
    block.text = undefined;
    if (!chunk.visible) return;
    chunk.node.children[chunk.blocks.indexOf(block)].replaceWith(this.render(block));
  }

  addChunk() {
    const node = document.createElement("div");
    node.className = "chunk";
    node.dataset.chunk = this.chunks.length;
    const chunk = { node, blocks: [], visible: false, drawn: false };
    this.chunks.push(chunk);
    this.container.append(node);
    this.observer.observe(node);
    return chunk;
  }

  setVisible(chunk, visible) {
    if (chunk.visible === visible) return;
    if (visible) {
      chunk.node.style.height = "";
      chunk.node.append(...chunk.blocks.map((block) => this.render(block)));
    } else {
      chunk.node.style.height = `${chunk.node.offsetHeight}px`;
      chunk.node.replaceChildren();
    }
    chunk.visible = visible;
    chunk.drawn = true;
  }

  /** The HTML comes from the server, which escapes everything that an agent wrote. */
  render(block) {
    const node = document.createElement("div");
    node.dataset.block = block.id;
    node.innerHTML = block.html;
    if (block.html) node.append(this.anchor(block));
    const details = node.querySelector(":scope > details");
    if (details && this.open.has(block.id)) details.open = true;
    return node;
  }

  /** The number of the block's first record, as a link to this place, and its time, as a link to the record. */
  anchor({ seq, at }) {
    return element("span", { class: "anchor" },
      element("a", { href: `#r${seq}`, "aria-label": `Link to record ${seq}` }, `#${seq}`),
      element("a", { href: this.link(seq), target: "_blank", rel: "noopener", "aria-label": `Record ${seq} as JSON` },
        time(at, new Date(at).toLocaleTimeString([], { hourCycle: "h23" }))));
  }

  /** The block that a record belongs to. */
  blockOf(seq) {
    let found;
    for (const chunk of this.chunks) {
      for (const block of chunk.blocks) {
        if (block.seq > seq) return found;
        found = block.id;
      }
    }
    return found;
  }

  /** The ids of the blocks that contain a text. */
  find(text) {
    const wanted = text.toLowerCase();
    if (!wanted) return [];
    const parser = new DOMParser();
    const found = [];
    for (const chunk of this.chunks) {
      for (const block of chunk.blocks) {
        block.text ??= parser.parseFromString(block.html, "text/html").body.textContent.toLowerCase();
        if (block.text.includes(wanted)) found.push(block.id);
      }
    }
    return found;
  }

  /** Scrolls a block into view and marks it. */
  reveal(id) {
    const place = this.places.get(id);
    if (!place) return;
    this.setVisible(place.chunk, true);
    const node = place.chunk.node.children[place.chunk.blocks.indexOf(place.block)];
    const details = node.querySelector(":scope > details");
    if (details) details.open = true;
    for (const marked of this.container.querySelectorAll(".found")) marked.classList.remove("found");
    node.classList.add("found");
    node.scrollIntoView({ block: "center" });
  }

  close() {
    this.observer.disconnect();
  }
}
