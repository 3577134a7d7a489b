// A document: each character green or red, why the red one is refused, and what may follow.

import { bar, byId, el, visible } from "./dom.js";
import { drawn } from "./drawing.js";
import { atPointer, select } from "./constraint.js";
import { lineOf, unitsOf } from "./places.js";

let units = 0;

// `found`: what the engine says, or null where there is nothing to say; `without` is why.
export function showChecked(found, state, insert, without = "The constraint is not one yet; see beside it what is wrong.") {
  const { text } = state;
  units = found === null ? 0 : unitsOf(text, found.accepted);
  byId("following").hidden = found === null;
  colour(text, found);
  byId("verdict").replaceChildren(...(found === null ? [el("p", { class: "hint" }, without)] : verdict(found, state)));
  byId("facts").replaceChildren(...(found === null ? [] : facts(found, state, insert)));
  byId("drawing").replaceChildren(...(found === null ? [] : [drawn(found.drawing)]));
  if (found === null) byId("next").replaceChildren();
  else if (found.tokens) listTokens(found, insert);
}

function colour(text, found) {
  const parts = [];
  if (found === null) parts.push(el("span", { class: "unknown" }, text));
  else {
    const red = found.refused ? [...text.slice(units)][0] ?? "" : "";
    parts.push(el("span", { class: "good" }, text.slice(0, units)));
    if (red) parts.push(el("span", { class: "bad" }, red === "\n" ? "↵\n" : red));
    parts.push(el("span", { class: "after" }, text.slice(units + red.length)));
  }
  byId("coloured").replaceChildren(...parts, "\n");
}

function verdict(found, state) {
  const { refused } = found;
  if (refused === null) {
    const words = found.ended ? ["Accepted: ", "a whole document."] : ["So far so good: ", "the document is not complete yet."];
    return [el("p", { class: found.ended ? "yes" : "open" }, el("strong", {}, words[0]), words[1])];
  }
  const { line, column } = lineOf(state.text, units);
  const sign = [...state.text.slice(units)][0] ?? "";
  // the engine names the characters of a place; which of them a context refuses is seen at the sign alone
  const expected = refused.expected.map((word) => word === "any character" && sign !== "" ? `any character but ${visible(sign)}` : word);
  const said = [
    el("strong", {}, "Refused: "),
    el("code", {}, sign === "" ? "the end" : visible(sign)),
    ` at line ${line}, column ${column}. Expected: ${expected.join(" or ") || "nothing more"}.`,
  ];
  const lines = [el("p", { class: "no" }, said)];
  if (refused.pointer !== null) lines.push(said_by(refused.pointer, state));
  if (refused.spelling) lines.push(el("p", { class: "hint" }, "The document is valid: only the order of its keys or its spelling differs from what the options ask for."));
  return lines;
}

// The keywords without any one of which the refused character would be accepted.
export function showReason(named, state) {
  if (named.length === 0) return;
  const parts = named.flatMap(({ pointer, keyword }, index) => {
    const place = atPointer(state.source, `${pointer}/${keyword}`);
    const label = `${keyword}${pointer === "" ? "" : ` at ${pointer}`}`;
    return [index > 0 ? ", or " : "", place === null ? label : el("button", { type: "button", on: { click: () => select(place) } }, label)];
  });
  byId("verdict").append(el("p", { id: "reason" }, "It would be accepted without ", parts, "."));
}

// Which part of the constraint says so.
function said_by(pointer, state) {
  const place = state.kind === "schema" ? atPointer(state.source, pointer) : null;
  if (place === null) return el("p", {}, `Said by ${pointer === "" ? "the whole schema" : pointer}.`);
  const margin = state.source.slice(state.source.lastIndexOf("\n", place.range[0]) + 1).search(/[^ ]|$/);
  const part = state.source.slice(...place.range).replaceAll(new RegExp(`\n {0,${margin}}`, "g"), "\n");
  const shown = part.length > 400 ? `${part.slice(0, 400)} …` : part;
  return el("p", {}, "Said by ", el("button", { type: "button", on: { click: () => select(place) } }, place.label), ": ", el("code", { class: "part" }, shown));
}

// What may follow.  The engine names characters of a string and its end apart, so where a document's string may not end
// yet its quote is the one character that may not stand there.
function following({ expected }, kind) {
  const open = kind === "schema" && !expected.includes("the closing quote");
  return expected.map((word) => open && word === "any character" ? "any character but the closing quote" : word).join(" or ") || "the end";
}

function facts(found, { kind }, insert) {
  const { micros } = found;
  const forced = found.forced === "" ? "nothing" : el("span", {}, el("code", {}, visible(found.forced)), " ",
    el("button", { type: "button", on: { click: () => insert(found.forced, units) } }, "take it"));
  const rows = [
    ["Next", following(found.place, kind)],
    ["Forced text", forced],
    ["May end here", found.accepting ? "yes" : "no"],
    ["To the nearest end", found.distance === null ? "not known" : `${found.distance} token${found.distance === 1 ? "" : "s"}`],
    ["Allowed tokens", `${found.allowed.toLocaleString("en")} of ${found.vocabulary.toLocaleString("en")}`],
    ["The mask took", `${micros.first} µs, again ${micros.again} µs`],
  ];
  return rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

const take = (text, insert) =>
  el("button", { type: "button", class: "token", title: "append it", on: { click: () => insert(text, units) } }, visible(text));

// Without probabilities: the first tokens that the mask allows.
function listTokens(found, insert) {
  const rest = found.allowed - found.tokens.length - (found.accepting ? 1 : 0);
  byId("next").replaceChildren(el("p", { class: "tokens" }, found.tokens.map((text) => take(text, insert)),
    found.accepting ? el("span", { class: "token end" }, "the end") : null, rest > 0 ? ` and ${rest.toLocaleString("en")} more` : ""));
}

export function waitForNext() {
  byId("next").setAttribute("aria-busy", "true");
}

// With probabilities, of the model alone and under the mask.
export function showNext({ rows, mass, micros, reads }, insert) {
  const box = byId("reads");
  box.hidden = false;
  box.querySelector("summary").textContent = `What the model reads: ${reads.tokens} tokens`;
  box.querySelector("pre").textContent = reads.text;
  const head = el("tr", {}, ["Token", "Under the mask", "The model alone"].map((name) => el("th", { scope: "col" }, name)));
  const body = rows.filter((row) => row.allowed || row.free >= 0.0005).map((row) => el("tr", { class: row.allowed ? "" : "forbidden" },
    el("th", { scope: "row" }, row.end ? el("span", { class: "token end" }, "the end") : row.allowed ? take(row.text, insert) : el("span", { class: "token" }, visible(row.text))),
    el("td", {}, row.allowed ? bar(row.masked, "masked") : el("span", { class: "never" }, "masked out")),
    el("td", {}, bar(row.free, "free"))));
  const share = mass > 0.9995 ? "nearly all" : `${(100 * mass).toPrecision(3)} %`;
  byId("next").replaceChildren(
    el("div", { class: "scroll" }, el("table", { class: "next" }, el("thead", {}, head), el("tbody", {}, body))),
    el("p", { class: "hint" }, `The mask keeps ${share} of the model's probability. The model took ${(micros / 1000).toFixed(1)} ms.`));
  byId("next").setAttribute("aria-busy", "false");
}
