// The constraint as a request elsewhere.

import { el } from "./dom.js";
import { OPTIONS } from "./state.js";

// A Python literal: a raw text over several lines where it can be one, else JSON's, which Python reads alike.
function python(text) {
  const plain = !/'''|\\$|'$|[\u0000-\u0008\u000b-\u001f\u007f]/.test(text);
  return plain && /[\n\\"]/.test(text) ? `r'''${text}'''` : JSON.stringify(text);
}

const chosen = ({ kind, options }) => Object.entries(options).filter(([name, value]) => kind === "tools" || OPTIONS[kind]?.[name]?.[0] !== value);
const given = (state) => chosen(state).map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");

function grammar(state) {
  const { kind, source } = state;
  if (kind === "choices") return `tf.choice(${JSON.stringify(source.split("\n").filter(Boolean))})`;
  if (kind === "tools") return `tf.tools(json.loads(${python(source)})${given(state)})`;
  return `tf.${{ schema: "json_schema", regex: "regex", lark: "lark", gbnf: "gbnf" }[kind]}(${python(source)}${given(state)})`;
}

const prompted = (state) => (state.messages ? `json.loads(${python(state.prompt)})` : python(state.prompt));

function inPython(state) {
  const imports = state.kind === "tools" || state.messages ? "import json\n\nimport tokenform as tf" : "import tokenform as tf";
  return `${imports}\n\ngrammar = ${grammar(state)}\nresult = tf.generate(${prompted(state)}, grammar)\nprint(result.text)`;
}

const json = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

// What OpenAI's chat requests say, and what engines add to them; null where the source is no JSON yet.
function request(state, names, model) {
  const { kind, source, prompt } = state;
  const messages = state.messages ? json(prompt) : [{ role: "user", content: prompt }];
  if (messages === null) return null;
  const body = { model, messages, max_tokens: 200 };
  if (kind === "schema") {
    const schema = json(source);
    return schema === null ? null : { ...body, response_format: { type: "json_schema", json_schema: { name: "document", schema, strict: true } } };
  }
  if (kind === "tools") {
    const tools = json(source);
    return tools === null ? null : { ...body, tools, tool_choice: state.options.tool_choice ?? "auto" };
  }
  const value = kind === "choices" ? source.split("\n").filter(Boolean) : source;
  return { ...body, ...names(kind, value) };
}

const vllm = (kind, value) => ({ structured_outputs: { [{ regex: "regex", choices: "choice" }[kind] ?? "grammar"]: value } });
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\\/]/g, "\\$&");
function sglang(kind, value) {
  if (kind === "regex") return { regex: value };
  return kind === "choices" ? { regex: value.map(escaped).join("|") } : { ebnf: value };
}

function curl(state, names, address, model = "MODEL", key = "") {
  const body = request(state, names, model);
  if (body === null) return "the source or the prompt is no JSON yet";
  const text = JSON.stringify(body, null, 2).replace(/'/g, "'\\''");
  return `curl ${address}/v1/chat/completions \\\n  -H 'Content-Type: application/json' \\\n${key}  -d '${text}'`;
}

function llamaCpp(state) {
  return `import json\nimport urllib.request\n\nimport tokenform as tf\n\ngrammar = ${grammar(state)}\nbody = {"prompt": ${python(state.prompt)}, "grammar": grammar.to_gbnf(), "n_predict": 200}
headers = {"Content-Type": "application/json"}
request = urllib.request.Request("http://127.0.0.1:8080/completion", json.dumps(body).encode(), headers)
print(json.load(urllib.request.urlopen(request))["content"])`;
}

// The texts by their titles.  `engine`: what its own server calls the model (`served`), and whether it wants keys.
export function copies(state, here, engine) {
  const key = engine?.keys ? `  -H "Authorization: Bearer $TOKENFORM_API_KEY" \\\n` : "";
  return {
    Python: inPython(state),
    "curl, for tokenform serve": curl(state, vllm, here, engine?.served ?? "tokenform-builtin", key),
    "vLLM, with tokenform's plug-in": `# pip install "tokenform[vllm]"; vllm serve MODEL\n${curl(state, vllm, "http://127.0.0.1:8000")}`,
    "SGLang, with tokenform's plug-in": `# python -m sglang.launch_server --model-path MODEL --grammar-backend tokenform\n${curl(state, sglang, "http://127.0.0.1:30000")}`,
    "llama.cpp's server": llamaCpp(state),
  };
}

export function copyPanel(panel, state, engine) {
  const here = engine.served ? location.origin : "http://127.0.0.1:8000";
  const parts = copies(state, here, engine);
  panel.replaceChildren(...Object.entries(parts).map(([name, text]) => {
    const click = async ({ target }) => {
      await navigator.clipboard?.writeText(text).catch(() => {});
      target.textContent = "Copied";
    };
    const button = el("button", { type: "button", "aria-label": `Copy: ${name}`, on: { click } }, "Copy");
    return el("section", { class: "snippet" }, el("h3", {}, name, " ", button), el("pre", { tabindex: "0" }, text));
  }));
}
