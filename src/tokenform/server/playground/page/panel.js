// What the panels of a model share: fields of numbers, a button that runs and one that stops.

import { el } from "./dom.js";

export function field(label, name, attributes, { state, changed }) {
  const change = ({ target }) => target.value !== "" && changed({ [name]: Number(target.value) });
  return el("label", {}, label, el("input", { type: "number", name, value: state()[name] ?? attributes.standard, ...attributes, on: { change } }));
}

export const valueOf = (panel, name) => Number(panel.querySelector(`[name=${name}]`).value);

// Runs `work(signal)`; the button stops it while it runs.  What goes wrong is said in `status`.
export function runner(label, status, work) {
  let running = null;
  const click = async () => {
    if (running) return running.abort();
    running = new AbortController();
    button.textContent = "Stop";
    status.textContent = "At work …";
    try {
      status.textContent = (await work(running.signal)) ?? "";
    } catch (error) {
      status.textContent = error.name === "AbortError" ? "Stopped." : `${error.kind ?? "Error"}: ${error.message}`;
    } finally {
      running = null;
      button.textContent = label;
    }
  };
  const button = el("button", { type: "button", class: "run", on: { click } }, label);
  return button;
}

export const withoutModel = (what, fills = false) =>
  el("p", { class: "hint" }, fills ? `${what} needs a model that writes from left to right; this server's fills canvases.` : `${what} needs a model. This page runs the engine alone, in WebAssembly; "tokenform serve" or "tokenform playground" serves it with one.`);
