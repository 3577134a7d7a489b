// tokenform in WebAssembly: masks for structured generation where JavaScript runs, without a bundler.
//
//     import { load } from "./tokenform.js";
//     const tokenform = await load(fetch("tokenform.wasm"));
//     const vocabulary = tokenform.vocabulary(tokens, [eos]);              // tokens: an array of strings or Uint8Array
//     const matcher = tokenform.jsonSchema({ type: "integer" }).matcher(vocabulary, { maxTokens: 100 });
//     matcher.fillMask(mask);                                             // Uint32Array of vocabulary.maskWords
//     matcher.accept([17]);
//
// Every object has `free()`.  Errors are `TokenformError` with the `kind` that the Python package raises.  WebAssembly
// does not unwind: a call that passes a limit throws LimitExceeded, and ends the objects made so far, whose later calls
// say so.  What is made from then on (vocabularies first) lives in a new instance of the module.

export class TokenformError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "TokenformError";
    this.kind = kind;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const bytesOf = (text) => (typeof text === "string" ? encoder.encode(text) : text);

class Engine {
  #wasm;
  ended = false;

  constructor(exports) {
    this.#wasm = exports;
  }

  // Calls an entry; numbers and handles below zero, and handles that are zero, are errors.
  call(name, ...values) {
    if (this.ended) throw new TokenformError("EngineError", "an earlier call ended this object; make it again");
    try {
      return this.#wasm[`tokenform_${name}`](...values);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
      throw this.#end(error);
    }
  }

  // What a call says that never returned.
  #end(error) {
    let said = ["EngineError", String(error)];
    try {
      this.#wasm.tokenform_ended();
      said = [this.#text("error_kind"), this.#text("error")];
    } catch {
      // not even that is answered (no stack, no memory)
    }
    this.ended = true;
    return new TokenformError(...said);
  }

  checked(answer) {
    if (answer < 0) throw new TokenformError(this.#text("error_kind"), this.#text("error"));
    return answer;
  }

  handle(name, ...values) {
    const handle = this.call(name, ...values);
    return handle === 0 ? this.checked(-1) : handle;
  }

  #text(name) {
    const start = this.#wasm[`tokenform_${name}`]();
    const memory = new Uint8Array(this.#wasm.memory.buffer);
    return decoder.decode(memory.slice(start, memory.indexOf(0, start)));
  }

  // Lends memory for arrays while `use` runs with their addresses.
  lend(arrays, use) {
    const lent = arrays.map((array) => {
      const at = this.call("reserve", array.byteLength);
      new Uint8Array(this.#wasm.memory.buffer).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
      return [at, array.byteLength];
    });
    try {
      return use(...lent.map(([at]) => at));
    } finally {
      if (!this.ended) lent.forEach(([at, size]) => this.call("release", at, size));
    }
  }

  // What an entry writes into an array, given its address.
  written(array, use) {
    return this.lend([array], (at) => {
      const answer = this.checked(use(at));
      const memory = new Uint8Array(this.#wasm.memory.buffer, at, array.byteLength);
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(memory);
      return answer;
    });
  }

  // All entries of a list that an entry writes as far as there is room.
  listed(Type, name, handle, ...values) {
    const list = new Type(this.checked(this.call(name, handle, ...values, 0, 0)));
    this.written(list, (at) => this.call(name, handle, ...values, at, list.length));
    return list;
  }

  // What an entry says as JSON.
  said(name, handle, ...values) {
    return JSON.parse(decoder.decode(this.listed(Uint8Array, name, handle, ...values)));
  }
}

class Held {
  constructor(engine, handle, kind) {
    this.engine = engine;
    this.handle = handle;
    this.kind = kind;
  }

  free() {
    if (this.handle !== 0) this.engine.call(`${this.kind}_free`, this.handle);
    this.handle = 0;
  }
}

export class Vocabulary extends Held {
  get maskWords() {
    return this.engine.checked(this.engine.call("mask_words", this.handle));
  }
}

export class Grammar extends Held {
  // The masks of texts over a vocabulary; `maxTokens`: texts end within so many.
  matcher(vocabulary, options = {}) {
    const automaton = this.automaton(vocabulary);
    try {
      return automaton.matcher(options);
    } finally {
      automaton.free();
    }
  }

  // The automaton: make it once for many matchers, which share what they find out.
  automaton(vocabulary) {
    const { engine } = this;
    return new Automaton(engine, engine.handle("automaton_new", this.handle, vocabulary.handle, 0), "automaton");
  }

  toBytes() {
    return this.engine.listed(Uint8Array, "grammar_to_bytes", this.handle);
  }

  // What was ignored, loosened or not proven; empty: the grammar is exact.
  get report() {
    const text = decoder.decode(this.engine.listed(Uint8Array, "grammar_report", this.handle));
    return text === "" ? [] : text.split("\n");
  }
}

export class Automaton extends Held {
  matcher({ maxTokens = -1 } = {}) {
    return new Matcher(this.engine, this.engine.handle("matcher_new", this.handle, maxTokens), "matcher");
  }

  // What is wrong with a text: null, or { offset, expected, pointer }: the first byte that is refused (the text's length
  // where it may go on but not end), what was expected there, and where the schema says so.
  check(text) {
    const { engine, handle } = this;
    const bytes = bytesOf(text);
    return engine.lend([bytes], (at) => engine.said("automaton_check", handle, at, bytes.length));
  }
}

export class Matcher extends Held {
  // Takes tokens, all of them or none.
  accept(tokens) {
    const { engine, handle } = this;
    engine.lend([Uint32Array.from(tokens)], (at) => engine.checked(engine.call("matcher_accept", handle, at, tokens.length)));
  }

  // How many of the tokens may follow one after the other.
  validate(tokens) {
    const { engine, handle } = this;
    return engine.lend([Uint32Array.from(tokens)], (at) =>
      engine.checked(engine.call("matcher_validate", handle, at, tokens.length)));
  }

  rollback(count) {
    this.engine.checked(this.engine.call("matcher_rollback", this.handle, count));
  }

  reset() {
    this.engine.checked(this.engine.call("matcher_reset", this.handle));
  }

  fork() {
    return new Matcher(this.engine, this.engine.handle("matcher_fork", this.handle), "matcher");
  }

  // Writes the mask into a Uint32Array: bit t % 32 of word t / 32 says whether token t may come next.
  fillMask(mask) {
    this.engine.written(mask, (at) => this.engine.call("matcher_fill_mask", this.handle, at, mask.length));
  }

  get isTerminated() {
    return this.engine.checked(this.engine.call("matcher_is_terminated", this.handle)) === 1;
  }

  get isAccepting() {
    return this.engine.checked(this.engine.call("matcher_is_accepting", this.handle)) === 1;
  }

  get allowedTokens() {
    return this.engine.listed(Uint32Array, "matcher_allowed_tokens", this.handle);
  }

  get tokens() {
    return this.engine.listed(Uint32Array, "matcher_tokens", this.handle);
  }

  get forcedTokens() {
    return this.engine.listed(Uint32Array, "matcher_forced_tokens", this.handle);
  }

  // What may come next, in words, and where the schema says so.
  get expected() {
    return this.engine.said("matcher_expected", this.handle);
  }

  // The least number of tokens to an end, or null where none is known.
  get distance() {
    const distance = this.engine.call("matcher_distance", this.handle);
    return distance === -2 ? null : this.engine.checked(distance);
  }

  // The automaton from here on: { accepting: [may a text end in state i], edges: [[from, text, to or -1]] }.
  drawn(most = 14) {
    return this.engine.said("matcher_drawn", this.handle, most);
  }

  get forcedText() {
    return decoder.decode(this.engine.listed(Uint8Array, "matcher_forced_text", this.handle));
  }
}

export class Tokenform {
  #module;
  #running;

  constructor(module) {
    this.#module = module;
  }

  // The engine, a new one where a call ended that before it.
  get #engine() {
    if (this.#running === undefined || this.#running.ended)
      this.#running = new Engine(new WebAssembly.Instance(this.#module, {}).exports);
    return this.#running;
  }

  // The tokens of every id as strings or bytes (empty: no text), the ids that end a text, those that no text spells.
  vocabulary(tokens, eos, special = eos) {
    const engine = this.#engine;
    const parts = tokens.map(bytesOf);
    const lengths = Uint32Array.from(parts, (part) => part.length);
    const bytes = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    const lists = [bytes, lengths, Uint32Array.from(eos), Uint32Array.from(special)];
    return engine.lend(lists, (text, sizes, ends, named) => new Vocabulary(
      engine,
      engine.handle("vocabulary_new", text, sizes, parts.length, ends, eos.length, named, special.length),
      "vocabulary",
    ));
  }

  #grammar(entry, ...texts) {
    const engine = this.#engine;
    const arrays = texts.map(bytesOf);
    return engine.lend(arrays, (...at) => {
      const values = at.flatMap((address, i) => [address, arrays[i].length]);
      return new Grammar(engine, engine.handle(`grammar_${entry}`, ...values), "grammar");
    });
  }

  // A JSON Schema as a value or as text; `options` by name: { whitespace: "compact" }.
  jsonSchema(schema, options = {}) {
    const text = typeof schema === "string" ? schema : JSON.stringify(schema);
    return this.#grammar("json_schema", text, JSON.stringify(options));
  }

  regex(pattern) {
    return this.#grammar("regex", pattern);
  }

  choice(texts) {
    return this.#grammar("choice", JSON.stringify(texts));
  }

  gbnf(text, start = "root") {
    return this.#grammar("gbnf", text, start);
  }

  // What `Grammar.to_bytes()` of the Python package gave: grammars in Lark's language, tool calls, compositions.
  grammarFromBytes(bytes) {
    return this.#grammar("from_bytes", bytes);
  }
}

// The engine from a response (`fetch`), a promise of one, or the bytes of the module.
export async function load(source) {
  const given = await source;
  const bytes = given instanceof Response ? await given.arrayBuffer() : given;
  return new Tokenform(await WebAssembly.compile(bytes));
}
