// The changes of a run or of one iteration: the files, and the patch of each when it is opened.

import { shares } from "./charts.js";
import { api, counted, element } from "./lib.js";

/** Files that are opened without a click, if they are short. */
const OPEN_FILES = 8;
const OPEN_LINES = 400;
/** Lines of a patch that are drawn before the reader asks for more. */
const SHOWN_LINES = 3000;

/** Draws the changes into a container. `iteration` is absent for the whole run. */
export async function showChanges(container, path, iteration) {
  const query = iteration === undefined ? "" : `?iteration=${iteration}`;
  const which = iteration === undefined ? "This run" : `Iteration ${iteration}`;
  let changes;
  try {
    changes = await api(`${path}/changes${query}`);
  } catch {
    container.replaceChildren(element("p", { class: "empty" }, `${which} has no snapshots to compare.`));
    return;
  }
  if (!changes.files.length) {
    container.replaceChildren(element("p", { class: "empty" }, `${which} changed no files.`));
    return;
  }
  const files = changes.files.map((file, index) => fileView(file, () => api(`${path}/changes/${index}${query}`), index));
  container.replaceChildren(
    element("p", { class: "diff-summary" }, element("strong", {}, `${counted(changes.files.length, "file")} changed`), " ",
      element("span", { class: "good" }, `+${changes.added}`), " ", element("span", { class: "bad" }, `−${changes.removed}`)),
    ...files);
}

function fileView(file, load, index) {
  const lines = (file.added || 0) + (file.removed || 0);
  const letter = { added: "A", deleted: "D", modified: "M" }[file.change];
  const body = element("div", { class: "diff" });
  const details = element("details", { class: "file" },
    element("summary", {},
      element("span", { class: `change ${file.change}`, title: file.change }, letter), element("code", {}, file.path),
      file.added === undefined ? element("small", {}, "binary") : element("span", { class: "file-lines" },
        element("span", { class: "good" }, `+${file.added}`), " ", element("span", { class: "bad" }, `−${file.removed}`),
        shares([{ size: file.added, tone: "good", label: `${file.added} added` }, { size: file.removed, tone: "bad", label: `${file.removed} removed` }], file.path))),
    body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount) return;
    body.append(element("p", { class: "empty" }, "Loading…"));
    try {
      const { patch, truncated } = await load();
      body.replaceChildren(patchTable(patch), ...(truncated ? [element("p", { class: "empty" }, "The end is left out. ralph diff prints everything.")] : []));
    } catch (error) {
      body.replaceChildren(element("p", { class: "empty bad" }, error.message));
    }
  });
  details.open = index < OPEN_FILES && lines <= OPEN_LINES;
  return details;
}

/** Parses a unified patch of one file into rows with line numbers. */
function rowsOf(patch) {
  const rows = [];
  let [old, now, inHunk] = [0, 0, false];
  for (const line of patch.split("\n")) {
    const hunk = line.match(/^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/);
    if (hunk) {
      [old, now, inHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      rows.push({ kind: "hunk", text: line });
    } else if (!inHunk) {
      if (line.startsWith("Binary files")) rows.push({ kind: "hunk", text: line });
    } else if (line.startsWith("+")) rows.push({ kind: "added", now: now++, text: line.slice(1) });
    else if (line.startsWith("-")) rows.push({ kind: "removed", old: old++, text: line.slice(1) });
    else if (line.startsWith(" ")) rows.push({ kind: "same", old: old++, now: now++, text: line.slice(1) });
    else if (line.startsWith("\\")) rows.push({ kind: "hunk", text: line.slice(2) });
  }
  return rows;
}

function patchTable(patch) {
  const rows = rowsOf(patch);
  const body = element("tbody");
  const add = (from) => body.append(...rows.slice(from, from + SHOWN_LINES).map((row) => element("tr", { class: row.kind },
    element("td", { class: "number" }, row.old === undefined ? "" : String(row.old)),
    element("td", { class: "number" }, row.now === undefined ? "" : String(row.now)),
    element("td", { class: "sign", "aria-label": row.kind }, { added: "+", removed: "−" }[row.kind] || ""),
    element("td", { class: "line" }, row.text))));
  add(0);
  const table = element("table", { class: "patch" }, body);
  if (rows.length <= SHOWN_LINES) return table;
  let from = SHOWN_LINES;
  const more = element("button", { type: "button", class: "small", onclick: () => { add(from); from += SHOWN_LINES; if (from >= rows.length) more.remove(); } }, "Show more lines");
  return element("div", {}, table, more);
}
