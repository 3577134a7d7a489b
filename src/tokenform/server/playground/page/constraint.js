// The left side: what is wrong with the constraint, and where.

import { byId, el } from "./dom.js";
import { lineOf, placeOf } from "./places.js";

let marked = null;

export function numberLines(source) {
  const count = source.split("\n").length;
  const signs = Array.from({ length: count }, (_, place) =>
    el("span", { class: place + 1 === marked ? "wrong" : false }, `${place + 1}\n`));
  byId("lines").replaceChildren(...signs);
}

// An error of the constraint at its place, or none.
export function showProblem(error, state) {
  const box = byId("problem");
  box.hidden = error === null;
  const place = error === null ? null : whereIs(error, state);
  marked = place?.line ?? null;
  numberLines(state.source);
  byId("source").setAttribute("aria-invalid", String(error !== null));
  if (error === null) return;
  const words = [el("strong", {}, error.kind ?? "Error"), " ", error.message];
  if (place !== null) words.push(" ", el("button", { type: "button", on: { click: () => select(place) } }, place.label));
  box.replaceChildren(...words);
}

// What is wrong with the prompt, or nothing.
export function showPromptProblem(error) {
  const box = byId("prompt-problem");
  box.hidden = error === null;
  if (error !== null) box.replaceChildren(el("strong", {}, error.kind ?? "Error"), " ", error.message);
  byId("prompt").setAttribute("aria-invalid", String(error !== null));
}

function whereIs(error, { source }) {
  if (error.line) return { line: error.line, label: `line ${error.line}, column ${error.column ?? 1}`, range: lineRange(source, error) };
  if (error.column) return { line: 1, label: `column ${error.column}`, range: [error.column - 1, error.column] };
  if (typeof error.pointer !== "string") return null;
  return atPointer(source, error.pointer);
}

// The place of a pointer in the source, for a button that goes there; null where it names nothing there.
export function atPointer(source, pointer) {
  const range = placeOf(source, pointer);
  if (range === null) return null;
  return { line: lineOf(source, range[0]).line, label: pointer === "" ? "the whole schema" : pointer, range };
}

function lineRange(source, { line, column }) {
  const start = source.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  const at = start + (column ?? 1) - 1;
  return [at, at + 1];
}

export function select({ range }) {
  const editor = byId("source");
  editor.focus();
  editor.setSelectionRange(...range);
}

export function showReport(lines) {
  const box = byId("report");
  box.hidden = lines.length === 0;
  box.querySelector("summary").textContent = `${lines.length} note${lines.length === 1 ? "" : "s"}: ignored, loosened or not proven`;
  box.querySelector("ul").replaceChildren(...lines.map((line) => el("li", {}, line)));
}
