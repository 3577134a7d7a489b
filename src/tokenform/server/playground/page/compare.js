// Samplers on a small language: bars of what each draws, beside the exact distribution.

import { bar, el, percent, visible } from "./dom.js";
import { field, runner, valueOf, withoutModel } from "./panel.js";

const NAMES = { exact: "exact", local: "local masking", asap: "ASAp", cars: "CARS", awrs: "AWRS", smc: "SMC(8)", mcmc: "MCMC(5)" };

export function comparePanel(panel, context) {
  const { asked, state, engine } = context;
  if (!engine().compare) return panel.append(withoutModel("Comparing samplers", engine().fill));
  const given = { ...context, state: () => state() ?? {} };
  const status = el("p", { class: "hint", role: "status" });
  const output = el("div", { id: "compared" });
  const run = runner("Compare", status, async (signal) => {
    const columns = [];
    output.replaceChildren();
    const settings = { draws: valueOf(panel, "draws"), seed: valueOf(panel, "seed"), max_tokens: valueOf(panel, "max_tokens") };
    await engine().compare(asked(settings), (event) => take(event, columns, output, status), signal);
    return `Done. "Distance" is total variation to the exact distribution; ${settings.draws} exact draws would show ${columns[0].noise.toFixed(3)} by chance alone. Weighted draws are worth fewer equal ones, and so many exact draws would show what stands under "by chance": a distance near it is no bias, one far above it is.`;
  });
  panel.append(
    el("p", { class: "hint" }, "Enumerates every text of the language, so it takes a small one: the example “A small language”, choices, a short pattern."),
    el("div", { class: "fields" }, field("Draws of each", "draws", { min: 10, max: 500, step: 10, standard: 200 }, given),
      field("Seed", "seed", { min: 0, step: 1, standard: 0 }, given),
      field("Most tokens", "max_tokens", { min: 1, max: 64, step: 1, standard: 16 }, given)),
    run, status, output);
}

function take(event, columns, output, status) {
  if (event.type === "exact") columns.push({ name: "exact", bars: event.probabilities, ...event });
  else if (event.type === "sampler") columns.push(event);
  else return;
  status.textContent = `${NAMES[event.name ?? "exact"]} is done …`;
  output.replaceChildren(table(columns));
}

function table(columns) {
  const [{ texts, count }] = columns;
  const shown = columns.filter((column) => column.bars);
  const head = el("tr", {}, el("th", { scope: "col" }, `Text (${texts.length} of ${count})`), shown.map(({ name }) => el("th", { scope: "col" }, NAMES[name])));
  const body = texts.map((text, row) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, visible(text) || "(empty)")),
    shown.map(({ name, bars }) => el("td", {}, bar(bars[row], name === "exact" ? "exact" : "masked", percent(bars[row]))))));
  const foot = [
    ["Worth, in equal draws", ({ ess }) => (ess === undefined ? "" : ess.toFixed(ess < 10 ? 1 : 0))],
    ["So many, by chance", ({ name, ess, noise }) => (name !== "exact" && ess !== undefined ? noise.toFixed(3) : "")],
    ["Distance", ({ distance }) => (distance === undefined ? "0" : distance.toFixed(3))],
    ["How known", ({ how }) => how ?? "enumerated"],
    ["Forward passes", ({ forwards }) => String(forwards ?? "")],
  ].map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), shown.map((column) => el("td", {}, value(column)))));
  const lost = columns.filter((column) => column.gave_up).map(({ name, gave_up }) => el("p", { class: "hint" }, `${NAMES[name]} gave up: ${gave_up}`));
  return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Comparison, scrolls sideways" },
    el("table", { class: "compared" }, el("thead", {}, head), el("tbody", {}, body), el("tfoot", {}, foot))), lost);
}
