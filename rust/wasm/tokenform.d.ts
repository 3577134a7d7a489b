/** Masks for structured generation where JavaScript runs. Every call may throw a {@link TokenformError}. */

/** What is wrong, with the name that the Python package raises it by: "InvalidSchema", "LimitExceeded", ... */
export class TokenformError extends Error {
  constructor(kind: string, message: string);
  readonly kind: string;
}

/** What stands in the engine's memory until it is freed. */
declare class Held {
  free(): void;
}

/** The tokens of a model. */
export class Vocabulary extends Held {
  /** 32-bit words of a mask. */
  readonly maskWords: number;
}

/** A constraint. */
export class Grammar extends Held {
  /** A matcher of its own automaton; `maxTokens`: texts end within so many. */
  matcher(vocabulary: Vocabulary, options?: { maxTokens?: number }): Matcher;
  /** Made once for many matchers, which share what they find out. */
  automaton(vocabulary: Vocabulary): Automaton;
  toBytes(): Uint8Array;
  /** What was ignored, loosened or not proven; empty: the grammar is exact. */
  readonly report: string[];
}

export interface Refusal {
  /** The first byte that is refused; the text's length where it may go on but not end. */
  offset: number;
  expected: string[];
  /** JSON Pointer into the schema, or null. */
  pointer: string | null;
}

export class Automaton extends Held {
  matcher(options?: { maxTokens?: number }): Matcher;
  /** What is wrong with a text, or null. */
  check(text: string | Uint8Array): Refusal | null;
}

/** One text on its way. */
export class Matcher extends Held {
  /** Takes tokens, all of them or none. */
  accept(tokens: ArrayLike<number>): void;
  /** How many of the tokens may follow one after the other. */
  validate(tokens: ArrayLike<number>): number;
  rollback(count: number): void;
  reset(): void;
  fork(): Matcher;
  /** Bit t % 32 of word t / 32 says whether token t may come next. */
  fillMask(mask: Uint32Array): void;
  readonly isTerminated: boolean;
  readonly isAccepting: boolean;
  readonly allowedTokens: Uint32Array;
  readonly tokens: Uint32Array;
  readonly forcedTokens: Uint32Array;
  readonly forcedText: string;
  /** What may come next, in words, and where the schema says so. */
  readonly expected: { expected: string[]; pointer: string | null };
  /** The least number of tokens to an end; null where none is known. */
  readonly distance: number | null;
  /** The automaton from here on, of at most so many states; an edge to -1 leads out of the drawing. */
  drawn(most?: number): { accepting: boolean[]; edges: [number, string, number][] };
}

/** The engine. */
export class Tokenform {
  constructor(module: WebAssembly.Module);
  /** The tokens of every id (empty: no text), the ids that end a text, those that no text spells. */
  vocabulary(tokens: (string | Uint8Array)[], eos: number[], special?: number[]): Vocabulary;
  /** A JSON Schema as a value or as text, with options by name: `{ whitespace: "compact" }`. */
  jsonSchema(schema: unknown, options?: Record<string, unknown>): Grammar;
  regex(pattern: string): Grammar;
  choice(texts: string[]): Grammar;
  gbnf(text: string, start?: string): Grammar;
  /** What `Grammar.to_bytes()` of the Python package gave. */
  grammarFromBytes(bytes: Uint8Array): Grammar;
}

/** The engine from a response (`fetch`), a promise of one, or the bytes of the module. */
export function load(
  source: Response | BufferSource | Promise<Response | BufferSource>,
): Promise<Tokenform>;
