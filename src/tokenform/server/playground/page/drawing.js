// The automaton around a state: circles are states, doubled where a text may end; arrows take text.

import { el, svg } from "./dom.js";

const [RADIUS, HIGH, WIDE] = [15, 74, 110];

// `accepting`: one entry a state, the first is the present one; `edges`: [from, text, to], to -1 where it goes on unseen.
export function drawn({ accepting, edges }) {
  const columns = columnsOf(accepting.length, edges);
  const spots = [];
  let x = 34;
  columns.forEach((members, column) => {
    members.forEach((state, row) => (spots[state] = [x, 62 + row * HIGH + (column % 2) * 14]));
    const labels = edges.filter(([from, , to]) => members.includes(from) && from !== to).map(([, label]) => 60 + 8 * label.length);
    x += Math.max(WIDE, ...labels);
  });
  const onward = Math.max(0, ...edges.filter(([, , to]) => to === -1).map(([, label]) => 30 + 8 * label.length));
  const width = Math.max(...spots.map(([at]) => at)) + 60 + onward;
  const height = Math.max(...spots.map(([, at]) => at)) + 48;
  const parts = [marker(), ...edges.map((edge) => arrow(spots, edge)), ...spots.map((spot, state) => circle(spot, state, accepting[state]))];
  const words = edges.map(([from, label, to]) => `${from} by ${label} to ${to === -1 ? "further states" : to}`).join("; ");
  const title = `The automaton from the present state, 0. ${words || "Nothing may follow."}`;
  const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title }, parts);
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Drawing, scrolls sideways" }, image);
}

function columnsOf(count, edges) {
  const depth = new Map([[0, 0]]);
  for (const [from, , to] of edges) if (to >= 0 && !depth.has(to)) depth.set(to, (depth.get(from) ?? 0) + 1);
  const columns = Array.from({ length: Math.max(...depth.values()) + 1 }, () => []);
  for (let state = 0; state < count; state += 1) columns[depth.get(state) ?? 0].push(state);
  return columns;
}

const marker = () => svg("defs", {}, svg("marker", {
  id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0 L8 4 L0 8 z" })));

const circle = ([x, y], state, accepting) => svg("g", { class: `state${accepting ? " accepting" : ""}${state === 0 ? " here" : ""}` },
  svg("circle", { cx: x, cy: y, r: RADIUS }), accepting ? svg("circle", { cx: x, cy: y, r: RADIUS - 4 }) : null,
  svg("text", { x, y: y + 4, "text-anchor": "middle" }, String(state)));

function arrow(spots, [from, label, to]) {
  const [x, y] = spots[from];
  const [path, atX, atY, text, anchor = "middle"] = shape(x, y, spots[to], from === to, to === -1 ? `${label} …` : label);
  return svg("g", { class: "edge" }, svg("path", { d: path, "marker-end": "url(#arrow)" }),
    svg("text", { x: atX, y: atY, "text-anchor": anchor }, text));
}

function shape(x, y, target, loop, label) {
  if (loop) return [`M${x - 8} ${y - 13} C${x - 26} ${y - 46} ${x + 26} ${y - 46} ${x + 8} ${y - 13}`, x, y - 40, label];
  if (target === undefined) return [`M${x + RADIUS} ${y} L${x + 60} ${y}`, x + 68, y + 4, label, "start"];
  const [toX, toY] = target;
  if (toX > x) {
    const middle = (x + toX) / 2;
    return [`M${x + RADIUS} ${y} C${middle} ${y} ${middle} ${toY} ${toX - RADIUS - 2} ${toY}`, middle, (y + toY) / 2 - 6, label];
  }
  if (toX === x) {
    const away = toY > y ? 1 : -1;
    return [`M${x + 12} ${y + 9 * away} Q${x + 40} ${(y + toY) / 2} ${toX + 12} ${toY - 11 * away}`, x + 40, (y + toY) / 2 + 4, label];
  }
  const drop = Math.max(y, toY) + 34;
  return [`M${x} ${y + RADIUS} C${x} ${drop} ${toX} ${drop} ${toX} ${toY + RADIUS + 2}`, (x + toX) / 2, drop - 4, label];
}
