// The engine in this page: the same calls as server.js, answered by WebAssembly.  What needs a model is left out.

import { Refused } from "./server.js";

const LISTED = 40;
const AGAIN = 500; // a page's clock goes in steps of a tenth of a millisecond
const OF_PYTHON = { lark: "Lark's grammars are read", tools: "Tools are read" };

export async function wasmEngine(config, examples) {
  const { load, TokenformError } = await import("./tokenform.js");
  const bytes = await (await fetch("tokenform.wasm")).arrayBuffer();
  const { tokens, eos, special } = await (await fetch("vocabulary.json")).json();
  const vocabulary = tokens.map((text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)));
  const engine = new Local(() => load(bytes), TokenformError, { vocabulary, eos, special }, examples);
  await engine.fresh();
  const count = vocabulary.length.toLocaleString("en");
  return {
    line: `The engine runs in this page, in WebAssembly, over ${count} tokens. Probabilities, generation and samplers need a model: “tokenform serve” shows this page with one.`,
    inspect: (asked) => engine.answer(() => engine.inspect(asked)),
    reach: (asked) => engine.answer(() => engine.reach(asked)),
  };
}

class Local {
  constructor(reload, TokenformError, model, examples) {
    Object.assign(this, { reload, TokenformError, ...model, examples });
    this.letters = new Map(this.vocabulary.flatMap((token, id) => (token.length === 1 ? [[token[0], id]] : [])));
  }

  // A new instance: one that passed a limit has ended.
  async fresh() {
    const engine = await this.reload();
    const single = Array.from({ length: 256 }, (_, byte) => new Uint8Array([byte]));
    this.engine = engine;
    this.tokens = engine.vocabulary(this.vocabulary, this.eos, this.special);
    this.bytes = engine.vocabulary([...single, ""], [256]);
  }

  async answer(work) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof this.TokenformError)) throw error;
      if (["LimitExceeded", "EngineError"].includes(error.kind)) await this.fresh();
      throw new Refused({ kind: error.kind, message: error.message, ...placeIn(error.message) });
    }
  }

  grammar({ kind, source, options }) {
    if (kind === "schema") return this.engine.jsonSchema(source, options);
    if (kind === "regex") return this.engine.regex(source);
    if (kind === "choices") return this.engine.choice(source.split("\n").filter(Boolean));
    if (kind === "gbnf") return this.engine.gbnf(source);
    const same = this.examples.find((one) => one.kind === kind && one.source === source && one.bytes);
    const asExample = same && Object.entries(options).every(([name, value]) => (same.options[name] ?? "auto") === value);
    if (asExample) return this.engine.grammarFromBytes(Uint8Array.from(atob(same.bytes), (sign) => sign.charCodeAt(0)));
    throw new Refused({ kind: "NeedsPython", message: `${OF_PYTHON[kind]} by the Python part of the library: this page has the examples' alone. Change them in “tokenform serve”.` });
  }

  // Calls `work` with what is made by `make`, and frees it.
  held(make, work) {
    const value = make();
    try {
      return work(value);
    } finally {
      if (value.handle !== 0) value.free();
    }
  }

  // `work(automaton, matcher after the accepted part of the bytes, how many those are)`.
  after(grammar, vocabulary, ids, bytes, work) {
    return this.held(() => grammar.automaton(vocabulary), (automaton) => this.held(() => automaton.matcher(), (matcher) => {
      const tokens = Array.from(bytes, ids);
      const accepted = matcher.validate(tokens);
      matcher.accept(tokens.slice(0, accepted));
      return work(automaton, matcher, accepted);
    }));
  }

  inspect({ constraint, text }) {
    const bytes = new TextEncoder().encode(text);
    return this.held(() => this.grammar(constraint), (grammar) =>
      this.after(grammar, this.bytes, (byte) => byte, bytes, (automaton, letters, accepted) => {
        const verdict = automaton.check(bytes);
        const refused = verdict !== null && accepted < bytes.length ? { ...verdict, offset: accepted, spelling: this.respelled(constraint, bytes) } : null;
        const { pointer, expected } = letters.expected;
        const place = { expected, pointer };
        const drawing = letters.drawn();
        const told = this.after(grammar, this.tokens, (byte) => this.letters.get(byte), bytes.slice(0, accepted), (_, matcher) => this.next(matcher));
        return { report: grammar.report, accepted, refused, ended: verdict === null, place, drawing, ...told };
      }));
  }

  // How many bytes of the text each source accepts; null for one that is no constraint.
  reach({ constraint, text, sources }) {
    const bytes = new TextEncoder().encode(text);
    return { accepted: sources.map((source) => this.reached({ ...constraint, source }, bytes)) };
  }

  reached(constraint, bytes) {
    try {
      return this.held(() => this.grammar(constraint), (grammar) =>
        this.after(grammar, this.bytes, (byte) => byte, bytes, (_automaton, _matcher, accepted) => accepted));
    } catch (error) {
      if (error instanceof this.TokenformError && error.kind !== "LimitExceeded") return null;
      throw error;
    }
  }

  next(matcher) {
    const mask = new Uint32Array(this.tokens.maskWords);
    const [first, again] = [1, AGAIN].map((times) => {
      const began = performance.now();
      for (let time = 0; time < times; time += 1) matcher.fillMask(mask);
      return Math.round((1e5 * (performance.now() - began)) / times) / 100;
    });
    const allowed = matcher.allowedTokens;
    const shown = [...allowed].filter((token) => !this.eos.includes(token)).slice(0, LISTED);
    return {
      accepting: matcher.isAccepting,
      allowed: allowed.length,
      vocabulary: this.vocabulary.length,
      distance: matcher.distance,
      forced: matcher.forcedText,
      micros: { first, again },
      tokens: shown.map((token) => readable(this.vocabulary[token])),
    };
  }

  respelled(constraint, bytes) {
    if (constraint.kind !== "schema") return false;
    const every = { order: "any", whitespace: "any", numbers: "any", strings: "any" };
    return this.held(() => this.grammar({ ...constraint, options: every }), (grammar) =>
      this.held(() => grammar.automaton(this.bytes), (automaton) => automaton.check(bytes) === null));
  }
}

// A token's text; bytes that are no character by themselves as \x...
function readable(token) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(token);
  } catch {
    return Array.from(token, (byte) => (byte < 128 ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`)).join("");
  }
}

// The engine's errors in WebAssembly are sentences; those about places name them.
function placeIn(message) {
  const line = /[Ll]ine (\d+), column (\d+)/.exec(message);
  if (line) return { line: Number(line[1]), column: Number(line[2]) };
  const pointer = /\(?at (\/[^\s()]*)\)?/.exec(message);
  return pointer ? { pointer: pointer[1] } : {};
}
