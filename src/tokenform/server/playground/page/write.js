// A model writes under the constraint, and each token says where it came from.

import { bar, el, option, percent, visible } from "./dom.js";
import { field, runner, valueOf, withoutModel } from "./panel.js";

const SAMPLERS = {
  local: "Local: masked token by token",
  cars: "CARS: exact draws",
  asap: "ASAp: learns what masks bend",
  awrs: "AWRS: rejection, weighted",
  smc: "SMC: 8 particles, weighted",
  mcmc: "MCMC: 5 steps",
  beam: "Beam: the likeliest texts",
};
const ORIGINS = { drafted: "guessed by a draft and accepted", forced: "forced by the constraint", drawn: "drawn from the model" };

export function writePanel(panel, context) {
  const { asked, state, engine } = context;
  if (!engine().write) return panel.append(withoutModel("Writing", engine().fill));
  const sampler = el("select", { name: "sampler", on: { change: ({ target }) => context.changed({ sampler: target.value }) } },
    Object.entries(SAMPLERS).map(([name, label]) => option(name, label, state()?.sampler ?? "local")));
  const given = { ...context, state: () => state() ?? {} };
  const status = el("p", { class: "hint", role: "status" });
  const output = el("div", { class: "written", id: "written" });
  const run = runner("Generate", status, async (signal) => {
    const local = sampler.value === "local";
    output.replaceChildren();
    const settings = { sampler: sampler.value, seed: valueOf(panel, "seed"), max_tokens: valueOf(panel, "max_tokens"), temperature: valueOf(panel, "temperature") };
    if (!local) settings.n = valueOf(panel, "n");
    if (!local && settings.temperature === 0) settings.temperature = 1;
    return (local ? writeOne : drawMany)(output, (take) => engine().write(asked(settings), take, signal));
  });
  panel.append(
    el("div", { class: "fields" }, el("label", {}, "Sampler", sampler),
      field("Temperature", "temperature", { min: 0, max: 5, step: 0.1, standard: 0 }, given),
      field("Seed", "seed", { min: 0, step: 1, standard: 0 }, given),
      field("Most tokens", "max_tokens", { min: 1, max: 512, step: 1, standard: 120 }, given),
      field("Texts, of samplers that weigh", "n", { min: 1, max: 32, step: 1, standard: 8 }, given)),
    run, status, el("ul", { class: "legend" }, Object.entries(ORIGINS).map(([name, words]) => el("li", {}, el("span", { class: `written-token ${name}` }, name), ` ${words}`))),
    output);
}

async function writeOne(output, stream) {
  const line = el("p", { class: "tokens-line", lang: "zxx" });
  output.append(line);
  let said = "";
  await stream((event) => {
    if (event.type === "token") line.append(tokenOf(event));
    else said = summary(event, output);
  });
  return said;
}

function tokenOf({ token, text, logprob, origin, forced }) {
  const kind = forced ? "forced" : origin;
  const words = `${visible(token)}: ${ORIGINS[kind]}${forced && origin === "drafted" ? ", and drafted" : ""}; ${percent(Math.exp(logprob))} under the model alone`;
  return el("span", { class: `written-token ${kind}`, title: words }, text === "" ? "·" : text);
}

function summary({ text, tokens, forwards, drafted, accepted, logprob, seconds }, output) {
  output.append(el("p", { class: "hint" }, "The whole text: ", el("code", { class: "part" }, text)));
  const masks = tokens > 0 ? ` Masks and draws took ${((1e6 * seconds.mask) / tokens).toFixed(0)} µs a token.` : "";
  return `${tokens} tokens in ${forwards} forward passes (${(tokens / Math.max(1, forwards)).toFixed(1)} a pass); ${accepted} of ${drafted} drafted tokens accepted; log-probability ${logprob.toFixed(2)}.${masks}`;
}

async function drawMany(output, stream) {
  const body = el("tbody");
  const head = el("tr", {}, ["Text", "Weight", "Log-probability"].map((name) => el("th", { scope: "col" }, name)));
  output.append(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), body)));
  let said = "";
  await stream((event) => {
    if (event.type === "draw") {
      body.append(el("tr", {}, el("th", { scope: "row" }, el("code", {}, event.text)), el("td", {}, bar(event.weight, "masked")), el("td", {}, event.logprob.toFixed(2))));
    } else if (event.type === "done") said = certificate(event);
  });
  return said;
}

function certificate({ exact, ess, forwards, attempts, log_z, log_z_error, distance }) {
  const parts = [exact ? "Each draw has exactly the target's distribution." : `The draws are worth ${ess.toFixed(1)} equally weighted ones.`];
  if (log_z !== null) parts.push(`log Z is ${log_z.toFixed(3)}${log_z_error === null ? "" : ` ± ${log_z_error.toFixed(3)}`}.`);
  if (!exact && distance !== null) parts.push(`Proven: at most ${distance.toFixed(3)} from the target.`);
  parts.push(`${forwards} forward passes, ${attempts} texts begun.`);
  return parts.join(" ");
}
