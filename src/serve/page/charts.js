// Charts as SVG. Every value is also a text: as a tooltip, and in the label for screen readers.

import { svg } from "./lib.js";

const MIN_SLOTS = 14;

/** A bar chart that fills its container. `values` have a `size` from 0 to 1, a `label` and perhaps a `tone`, `caption` and `onclick`. */
export function bars(values, { height = 96, slot = 20, name = "" } = {}) {
  const bottom = values.some((value) => value.caption) ? 14 : 0;
  // A few bars do not fill the width: they would be as wide as they are high.
  const width = Math.max(MIN_SLOTS, values.length) * slot;
  const drawn = values.flatMap(({ size, label, tone, caption, onclick }, index) => {
    const length = Math.max(size > 0 ? 2 : 1, Math.round(size * (height - 4)));
    const x = index * slot;
    return [
      svg("g", { class: `bar-slot ${onclick ? "clickable" : ""}`, onclick },
        svg("rect", { x, y: 0, width: slot, height, class: "bar-hit" }),
        svg("rect", { x: x + 3, y: height - length, width: slot - 6, height: length, rx: 2, class: `bar-fill ${size > 0 ? tone || "" : "none"}` }),
        svg("title", {}, label)),
      caption && svg("text", { x: x + slot / 2, y: height + 11, class: "bar-caption" }, caption),
    ].filter(Boolean);
  });
  return svg("svg", {
    viewBox: `0 0 ${width} ${height + bottom}`, class: "bars", role: "img", preserveAspectRatio: "xMinYMax meet",
    "aria-label": `${name}${name && ": "}${values.map(({ label }) => label).join("; ")}`,
  }, drawn);
}

/** A line without axes, for a tile. */
export function sparkline(values, name) {
  const [width, height] = [100, 28];
  const most = Math.max(...values, 0);
  if (values.length < 2 || most <= 0) return false;
  const point = (value, index) => `${((index / (values.length - 1)) * width).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`;
  const line = values.map(point).join(" ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "sparkline", preserveAspectRatio: "none", role: "img", "aria-label": name },
    svg("polygon", { points: `0,${height} ${line} ${width},${height}` }), svg("polyline", { points: line, "vector-effect": "non-scaling-stroke" }));
}

/** A horizontal bar of shares; `parts` have a `size`, a `tone` and a `label`. */
export function shares(parts, name) {
  const sum = parts.reduce((total, part) => total + part.size, 0) || 1;
  let x = 0;
  const drawn = parts.filter((part) => part.size > 0).map((part) => {
    const width = (part.size / sum) * 100;
    const rect = svg("rect", { x, y: 0, width, height: 8, class: `share ${part.tone}` }, svg("title", {}, part.label));
    x += width;
    return rect;
  });
  return svg("svg", { viewBox: "0 0 100 8", class: "shares", preserveAspectRatio: "none", role: "img", "aria-label": `${name}: ${parts.map((part) => part.label).join(", ")}` }, drawn);
}
