// The page: its state, what is asked of the engine when it changes, and which panel is seen.

import { byId, el, later, option } from "./dom.js";
import { decoded, encoded, KINDS, OPTIONS } from "./state.js";
import { showProblem, showPromptProblem, showReport, numberLines } from "./constraint.js";
import { showChecked, showNext, showReason, waitForNext } from "./check.js";
import { reasons } from "./why.js";
import { writePanel } from "./write.js";
import { fillPanel } from "./fill.js";
import { comparePanel } from "./compare.js";
import { copyPanel } from "./copy.js";

const VIEWS = { check: "Check", write: "Generate", fill: "Fill", compare: "Compare samplers", copy: "Copy as" };
const page = { engine: null, examples: [], state: null, pending: null };

// What every request says of the constraint.
const asked = (more = {}) => {
  const { kind, source, options } = page.state;
  const messages = page.state.messages ? { messages: true } : {};
  return { constraint: { kind, source, options }, prompt: page.state.prompt, ...messages, ...more };
};

async function start() {
  const [config, examples] = await Promise.all(["config.json", "examples.json"].map(async (name) => (await fetch(name)).json()));
  page.examples = examples;
  page.engine = await (config.engine === "wasm"
    ? (await import("./wasm.js")).wasmEngine(config, examples)
    : (await import("./server.js")).serverEngine(config));
  byId("engine").textContent = page.engine.line;
  byId("key-label").hidden = !config.keys;
  byId("example").append(...examples.map(({ name }, place) => option(String(place), name)), option("", "your own"));
  const kinds = Object.entries(KINDS).map(([kind, label]) => {
    const input = el("input", { type: "radio", name: "kind", value: kind, id: `kind-${kind}`, on: { change: () => changed({ kind, options: {} }) } });
    return el("span", { class: "kind" }, input, el("label", { for: `kind-${kind}` }, label));
  });
  byId("kinds").append(...kinds);
  tabs();
  listen();
  take(decoded(location.hash) ?? fromExample(0));
}

function fromExample(place) {
  const { kind, source, options, text, prompt } = page.examples[place];
  return { kind, source, options: { ...options }, text, prompt };
}

// Shows a state from elsewhere: a link, an example.
function take(state) {
  page.state = { view: page.state?.view ?? "check", text: "", prompt: "", source: "", messages: false, ...state };
  byId("source").value = page.state.source;
  byId("prompt").value = page.state.prompt;
  byId("document").value = page.state.text;
  byId("messages").checked = page.state.messages = page.state.messages === true;
  show();
}

function changed(part) {
  Object.assign(page.state, part);
  show();
}

function show() {
  const { state } = page;
  const hash = `#${encoded(state)}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
  const place = page.examples.findIndex((one) => one.source === state.source && one.kind === state.kind);
  byId("example").value = place < 0 ? "" : String(place);
  byId("about").textContent = place < 0 ? "" : page.examples[place].about;
  byId(`kind-${state.kind}`).checked = true;
  byId("source-label").textContent = { choices: "One text a line", tools: "Tools, a JSON array" }[state.kind] ?? KINDS[state.kind];
  numberLines(state.source);
  showOptions();
  for (const view of Object.keys(VIEWS)) {
    const seen = view === state.view;
    byId(`panel-${view}`).hidden = !seen;
    byId(`tab-${view}`).setAttribute("aria-selected", String(seen));
    byId(`tab-${view}`).tabIndex = seen ? 0 : -1;
  }
  if (state.view === "copy") copyPanel(byId("panel-copy"), state, page.engine);
  document.body.dataset.state = "busy";
  inspectLater();
}

const inspectLater = later(120, inspect);

async function inspect() {
  page.pending?.abort();
  const controller = (page.pending = new AbortController());
  const request = asked({ text: page.state.text });
  let found = null;
  try {
    found = await page.engine.inspect(request, controller.signal);
    if (controller.signal.aborted) return;
    showProblem(null, page.state);
    showPromptProblem(null);
    showReport(found.report);
    showChecked(found, page.state, insert);
    if (found.refused && request.constraint.kind === "schema") {
      const named = await reasons(page.engine, request, found, controller.signal);
      if (controller.signal.aborted) return;
      showReason(named, page.state);
    }
    if (page.engine.next) {
      waitForNext();
      const next = await page.engine.next(request, controller.signal);
      if (controller.signal.aborted) return;
      showNext(next, insert);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.kind === "invalid_api_key") { // nothing was asked of the constraint
      byId("key").focus();
      showProblem(null, page.state);
      showChecked(null, page.state, insert, "This server wants a key: type it above.");
      document.body.dataset.state = "ready";
      return;
    }
    if (found !== null) { // the constraint is right: it is the prompt that the model can't read
      showPromptProblem(error);
      byId("next").replaceChildren();
      document.body.dataset.state = "ready";
      return;
    }
    showProblem(error, page.state);
    showReport([]);
    showChecked(null, page.state, insert);
  }
  if (!controller.signal.aborted) document.body.dataset.state = "ready";
}

// Puts text at the end of the document's accepted part.
function insert(text, units) {
  const document_ = byId("document");
  document_.value = page.state.text.slice(0, units) + text;
  document_.focus();
  changed({ text: document_.value });
}

function showOptions() {
  const known = OPTIONS[page.state.kind] ?? {};
  const box = byId("options");
  const same = box.dataset.kind === page.state.kind;
  box.dataset.kind = page.state.kind;
  if (!same) {
    box.replaceChildren(...Object.entries(known).map(([name, values]) => {
      const change = ({ target }) => changed({ options: { ...page.state.options, [name]: target.value } });
      return el("label", {}, name.replace("_", " "), el("select", { "data-option": name, on: { change } }, values.map((value) => option(value, value))));
    }));
  }
  for (const select of box.querySelectorAll("select")) {
    const name = select.dataset.option;
    select.value = page.state.options[name] ?? known[name][0];
    if (page.state.kind === "tools") page.state.options[name] ??= known[name][0]; // a tool's format has no default
  }
}

function tabs() {
  const names = Object.keys(VIEWS);
  byId("tabs").append(...names.map((view, place) => {
    const keydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -place, End: names.length - 1 - place }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      const next = names[(place + step + names.length) % names.length];
      changed({ view: next });
      byId(`tab-${next}`).focus();
    };
    const attributes = { type: "button", role: "tab", id: `tab-${view}`, "aria-controls": `panel-${view}` };
    return el("button", { ...attributes, on: { click: () => changed({ view }), keydown } }, VIEWS[view]);
  }));
  const context = { asked, state: () => page.state, engine: () => page.engine, changed: (part) => Object.assign(page.state, part) };
  writePanel(byId("panel-write"), context);
  fillPanel(byId("panel-fill"), context);
  comparePanel(byId("panel-compare"), context);
}

function listen() {
  byId("source").addEventListener("input", ({ target }) => changed({ source: target.value }));
  byId("source").addEventListener("scroll", ({ target }) => (byId("lines").scrollTop = target.scrollTop));
  byId("prompt").addEventListener("input", ({ target }) => changed({ prompt: target.value }));
  byId("messages").addEventListener("change", ({ target }) => changed({ messages: target.checked }));
  byId("key").value = sessionStorage.getItem("key") ?? "";
  byId("key").addEventListener("change", ({ target }) => {
    sessionStorage.setItem("key", target.value.trim());
    show();
  });
  byId("document").addEventListener("input", ({ target }) => changed({ text: target.value }));
  byId("example").addEventListener("change", ({ target }) => target.value !== "" && take(fromExample(Number(target.value))));
  addEventListener("hashchange", () => {
    const state = decoded(location.hash);
    if (state && encoded(state) !== encoded(page.state)) take(state);
  });
  byId("share").addEventListener("click", async ({ target }) => {
    await navigator.clipboard?.writeText(location.href).catch(() => {});
    target.textContent = "Copied";
    setTimeout(() => (target.textContent = "Copy the link"), 2000);
  });
  const theme = byId("theme");
  theme.value = localStorage.getItem("theme") ?? "";
  const paint = () => (document.documentElement.dataset.theme = theme.value);
  theme.addEventListener("change", () => {
    localStorage.setItem("theme", theme.value);
    paint();
  });
  paint();
}

start().catch((error) => (byId("engine").textContent = `The engine can't be loaded: ${error.message}`));
