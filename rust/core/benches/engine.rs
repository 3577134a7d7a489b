//! Micro-benchmarks of the core: `cargo bench -p tokenform-core` (or one: `-- "warm mask"`).
//!
//! Purpose: what one call costs, without Python: compiling a schema, the first mask of an automaton, a mask that
//! is there, an edge that is there, a new edge, and the walk of the whole trie behind the first string of a
//! process. The vocabulary is made up: all bytes, then words with the lengths and the punctuation of real ones,
//! 131,072 in all; real schemas and vocabularies are measured by `benchmarks/maskbench.py`.

use std::collections::HashSet;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{criterion_group, criterion_main, BatchSize, Criterion};
use tokenform_core::json::JsonMachine;
use tokenform_core::mask::{State, TokenAutomaton};
use tokenform_core::schema::options::{Options, Order, Whitespace};
use tokenform_core::schema::Schema;
use tokenform_core::vocab::{TokenId, Vocabulary};

const SIZE: usize = 131_072;

const PERSON: &str = r##"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "email": {"type": "string", "pattern": "^[a-z.]+@[a-z]+[.][a-z]{2,4}$"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": true},
        "address": {"$ref": "#/$defs/address"}
    },
    "required": ["name", "age"],
    "additionalProperties": false,
    "$defs": {"address": {"type": "object", "properties": {"street": {}, "city": {"type": "string"}}}}
}"##;

const DOCUMENT: &str = r#"{"name": "Ada Lovelace", "age": 36, "email": "ada@math.org", "tags": ["red", "blue"], "address": {"city": "London"}}"#;

/// A small generator of numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

fn tokens() -> Vec<Box<[u8]>> {
    let heads: [&[u8]; 10] = [b" ", b" ", b" ", b"", b"", b"\"", b"\", \"", b"\": \"", b"_", b"\n  "];
    let letters = b"eeeeeetttttaaaaooooiiiinnnnssshhhrrrdddllluucmfwypvbgkjqxz";
    let mut numbers = Numbers(1);
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    let mut out: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
    known.extend(out.iter().map(|t| t.to_vec()));
    while out.len() < SIZE - 1 {
        let mut word = heads[numbers.below(heads.len())].to_vec();
        let length = 1 + numbers.below(9);
        word.extend((0..length).map(|_| letters[numbers.below(letters.len())]));
        if known.insert(word.clone()) {
            out.push(word.into());
        }
    }
    out.push(Box::from(*b"</s>"));
    out
}

fn vocabulary(tokens: &[Box<[u8]>]) -> Arc<Vocabulary> {
    let end = tokens.len() as u32 - 1;
    Arc::new(Vocabulary::new(tokens.to_vec(), vec![end], &[end]).expect("it spells every byte"))
}

fn options(order: Order) -> Options {
    Options { order, whitespace: Whitespace::Any, ..Options::default() }
}

fn compile(schema: &str, order: Order, vocab: &Arc<Vocabulary>) -> Arc<TokenAutomaton> {
    let text: Arc<str> = schema.into();
    let make = move || JsonMachine::new(Schema::new(&text, options(order))?);
    TokenAutomaton::of(make, vocab.clone()).expect("a schema with texts, which the vocabulary spells")
}

/// The states along the document, and the tokens between them.
fn walk(automaton: &TokenAutomaton, ids: &[TokenId]) -> Vec<State> {
    let mut states = vec![automaton.start()];
    for &token in ids {
        let last = states.last().expect("it begins with one");
        states.push(automaton.advance(last, token).expect("the document is valid"));
    }
    states
}

/// 1,000 tables of 20 described columns: about 2 MB, of which little is visited.
fn large_schema() -> String {
    let table = |i: usize| {
        let columns: Vec<String> = (0..20)
            .map(|j| {
                format!(r#""column_{i}_{j}": {{"type": "string", "description": "{}"}}"#, "words ".repeat(12))
            })
            .collect();
        format!(r#""table_{i}": {{"type": "object", "properties": {{{}}}}}"#, columns.join(", "))
    };
    let tables: Vec<String> = (0..1000).map(table).collect();
    format!(r#"{{"type": "object", "properties": {{{}}}}}"#, tables.join(", "))
}

fn compiling(c: &mut Criterion, vocab: &Arc<Vocabulary>) {
    for (name, order) in [("declared", Order::Declared), ("any", Order::Any)] {
        c.bench_function(&format!("compile, order {name}"), |b| b.iter(|| compile(PERSON, order, vocab)));
    }
    let large = large_schema();
    let mut group = c.benchmark_group("large");
    group.sample_size(10);
    group.bench_function(format!("compile {} KiB", large.len() >> 10), |b| {
        b.iter(|| compile(&large, Order::Declared, vocab))
    });
    group.finish();
}

fn masks(c: &mut Criterion, vocab: &Arc<Vocabulary>) {
    let ids = vocab.greedy_tokens(DOCUMENT.as_bytes()).expect("every byte is a token");
    let warm = compile(PERSON, Order::Declared, vocab);
    let states = walk(&warm, &ids);
    let mut row = vec![0u32; vocab.mask_words()];
    let fill = |automaton: &TokenAutomaton, states: &[State], row: &mut [u32]| {
        for s in states {
            automaton.mask(s).expect("no limit is near").write(row);
        }
    };
    fill(&warm, &states, &mut row);
    c.bench_function("first mask (lexical masks shared)", |b| {
        b.iter_batched(
            || compile(PERSON, Order::Declared, vocab),
            |automaton| automaton.mask(&automaton.start()).map(black_box).is_ok(),
            BatchSize::SmallInput,
        )
    });
    c.bench_function(&format!("new automaton along {} tokens", ids.len()), |b| {
        b.iter_batched(
            || compile(PERSON, Order::Declared, vocab),
            |automaton| {
                let states = walk(&automaton, &ids);
                fill(&automaton, &states, &mut row);
            },
            BatchSize::SmallInput,
        )
    });
    let (start, inside) = (states[0].clone(), warm.step_bytes(&states[0], b"{\"name\": \"A").expect("valid"));
    let inside = inside.expect("a string has begun");
    for (name, s) in [("few tokens", start), ("in a string", inside)] {
        let s = [s];
        fill(&warm, &s, &mut row);
        c.bench_function(&format!("warm mask, {name}"), |b| b.iter(|| fill(&warm, black_box(&s), &mut row)));
    }
}

fn edges(c: &mut Criterion, vocab: &Arc<Vocabulary>) {
    let ids = vocab.greedy_tokens(DOCUMENT.as_bytes()).expect("every byte is a token");
    let warm = compile(PERSON, Order::Declared, vocab);
    walk(&warm, &ids);
    c.bench_function("advance, known edge", |b| {
        b.iter(|| warm.advance(black_box(&warm.start()), black_box(ids[0])).is_ok())
    });
    c.bench_function(&format!("advance along {} tokens, new edges", ids.len()), |b| {
        b.iter_batched(
            || compile(PERSON, Order::Declared, vocab),
            |automaton| walk(&automaton, &ids).len(),
            BatchSize::SmallInput,
        )
    });
}

/// A vocabulary that no table knows yet: the first string walks the whole trie.
fn trie(c: &mut Criterion, tokens: &[Box<[u8]>]) {
    let mut group = c.benchmark_group("trie");
    group.sample_size(10);
    group.bench_function("build", |b| b.iter(|| vocabulary(tokens).size()));
    group.bench_function("walk for the first string", |b| {
        b.iter_batched(
            || {
                let automaton = compile(r#"{"type": "string"}"#, Order::Declared, &vocabulary(tokens));
                let inside =
                    automaton.step_bytes(&automaton.start(), b"\"").expect("valid").expect("a string");
                (automaton, inside)
            },
            |(automaton, inside)| automaton.mask(&inside).map(black_box).is_ok(),
            BatchSize::PerIteration,
        )
    });
    group.finish();
}

fn engine(c: &mut Criterion) {
    let tokens = tokens();
    let vocab = vocabulary(&tokens);
    compiling(c, &vocab);
    masks(c, &vocab);
    edges(c, &vocab);
    trie(c, &tokens);
}

criterion_group!(benches, engine);
criterion_main!(benches);
