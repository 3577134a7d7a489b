// What the page shows, held by the link: the part behind # is the state as JSON in base64url.

export const KINDS = {
  schema: "JSON Schema",
  regex: "Regex",
  choices: "Choices",
  lark: "Lark",
  gbnf: "GBNF",
  tools: "Tools",
};

// The first of each list is what the library takes where nothing is said.
export const OPTIONS = {
  schema: {
    order: ["declared", "any"],
    whitespace: ["natural", "compact", "spaced", "indent", "any"],
    numbers: ["natural", "canonical", "any"],
    strings: ["natural", "canonical", "any"],
  },
  tools: {
    format: ["hermes", "llama3_json", "mistral_v11", "qwen3_coder", "deepseek_v3", "json"],
    tool_choice: ["auto", "required", "none"],
  },
};

const TEXTS = ["source", "text", "prompt", "view", "sampler", "policy"];
const NUMBERS = ["temperature", "seed", "max_tokens", "n", "draws", "length"];

export function encoded(state) {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

// The state of a link, or null: a link is anybody's, so every field is checked.
export function decoded(hash) {
  try {
    const binary = atob(hash.replace(/^#/, "").replace(/-/g, "+").replace(/_/g, "/"));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (sign) => sign.charCodeAt(0)));
    return checked(JSON.parse(text));
  } catch {
    return null;
  }
}

function checked(given) {
  if (given === null || typeof given !== "object" || !Object.hasOwn(KINDS, given.kind)) return null;
  const state = { kind: given.kind, options: {} };
  for (const name of TEXTS) if (typeof given[name] === "string") state[name] = given[name].slice(0, 65536);
  if (given.messages === true) state.messages = true;
  for (const name of NUMBERS) if (Number.isFinite(given[name])) state[name] = given[name];
  for (const [name, values] of Object.entries(OPTIONS[given.kind] ?? {})) {
    if (values.includes(given.options?.[name])) state.options[name] = given.options[name];
  }
  return state;
}
