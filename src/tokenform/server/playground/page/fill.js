// A diffusion model fills a canvas under the constraint: what each pass of it commits, in any order.

import { el, option, visible } from "./dom.js";
import { field, runner, valueOf, withoutModel } from "./panel.js";

const POLICIES = {
  threshold: "all that are sure (0.9)",
  confidence: "the surest",
  entropy: "those of little entropy",
  blocks: "blocks of 16",
  left: "from left to right",
  draft: "the surest, passes drafted ahead",
};
const PACE = 300; // milliseconds in which a pass is seen

export function fillPanel(panel, context) {
  const { asked, state, engine } = context;
  if (!engine().fill) return panel.append(withoutModel("Filling a canvas"));
  const given = { ...context, state: () => state() ?? {} };
  const policy = el("select", { name: "policy", on: { change: ({ target }) => context.changed({ policy: target.value }) } },
    Object.entries(POLICIES).map(([name, label]) => option(name, label, state()?.policy ?? "threshold")));
  const status = el("p", { class: "hint", role: "status" });
  const output = el("div", { class: "canvas", id: "filled", lang: "zxx" });
  const run = runner("Fill", status, async (signal) => {
    output.replaceChildren();
    const settings = { policy: policy.value, length: valueOf(panel, "length"), temperature: valueOf(panel, "temperature"), seed: valueOf(panel, "seed") };
    const canvas = { cells: [], passes: 0, said: "" };
    let drawn = Promise.resolve(); // one pass after the other, however fast they come
    await engine().fill(asked(settings), (event) => (drawn = drawn.then(() => draw(event, canvas, output, status, signal))), signal);
    await drawn;
    return canvas.said;
  });
  panel.append(
    el("p", { class: "hint" }, "All positions are predicted at once. Each pass commits some, of one filling that the constraint accepts; a dot is a position that is open."),
    el("div", { class: "fields" }, el("label", {}, "A pass commits", policy),
      field("Positions", "length", { min: 1, max: 256, step: 1, standard: 64 }, given),
      field("Temperature", "temperature", { min: 0, max: 5, step: 0.1, standard: 0 }, given),
      field("Seed", "seed", { min: 0, step: 1, standard: 0 }, given)),
    run, status, output);
}

async function draw(event, canvas, output, status, signal) {
  if (signal.aborted) return;
  if (event.type === "canvas") {
    canvas.cells = Array.from({ length: event.length }, () => el("span", { class: "cell" }, "·"));
    output.replaceChildren(...canvas.cells);
  } else if (event.type === "pass") {
    for (const cell of canvas.cells) cell.classList.remove("new");
    for (const [at, text] of event.filled) {
      canvas.cells[at].textContent = text === null ? "end" : visible(text) || "(none)";
      canvas.cells[at].className = text === null ? "cell known end new" : "cell known new";
    }
    canvas.passes += 1;
    status.textContent = `Pass ${canvas.passes}: ${event.known} of ${canvas.cells.length} positions known.`;
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) await new Promise((done) => setTimeout(done, PACE));
  } else {
    for (const cell of canvas.cells) cell.classList.remove("new");
    output.append(el("code", { class: "part" }, event.text));
    const { model, mask } = event.seconds;
    canvas.said = `${event.tokens} tokens in ${event.forwards} passes; ${(model + mask).toFixed(2)} s, of which the canvas took ${mask.toFixed(2)}.`;
  }
}
