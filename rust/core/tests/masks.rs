//! Every mask along random texts equals the slow oracle's, over tokens of many bytes; each token that a mask allows can be
//! taken, and a budget that a mask keeps leads to an end.
//!
//! The walks are drawn from a seed, so that a failure is found again. Judge: `TokenAutomaton::oracle`, token by token
//! and byte by byte.

use std::sync::Arc;

use tokenform_core::{Grammar, Limits, Matcher, Numbers, Options, Order, Strings, TokenAutomaton, TokenId};
use tokenform_core::{Vocabulary, Whitespace};

const SCHEMAS: &[&str] = &[
    r#"true"#,
    r#"{"enum": ["a", "ab", 1, 10, null, {"a": [1, "x"]}]}"#,
    r#"{"type": "string", "minLength": 2, "maxLength": 5}"#,
    r#"{"type": "string", "pattern": "^[a-c]+(\\d|é)?$"}"#,
    r#"{"type": "string", "format": "date"}"#,
    r#"{"type": "string", "not": {"enum": ["yes", "no"]}}"#,
    r#"{"type": "integer", "minimum": -20, "maximum": 1234, "multipleOf": 7}"#,
    r#"{"type": "number", "exclusiveMinimum": 0.5}"#,
    r#"{"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}"#,
    r#"{"type": "array", "prefixItems": [{"type": "string"}], "items": false}"#,
    r#"{"type": "array", "contains": {"const": 1}, "minContains": 1, "maxContains": 2, "maxItems": 4}"#,
    r#"{"type": "array", "uniqueItems": true, "items": {"enum": [1, 2, "a"]}}"#,
    r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"], "additionalProperties": false}"#,
    r#"{"type": "object", "patternProperties": {"^x-": {"type": "null"}}, "propertyNames": {"maxLength": 4}}"#,
    r#"{"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": true, "b": true}}"#,
    r#"{"oneOf": [{"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
        {"properties": {"kind": {"const": "ab"}}, "required": ["kind"]}], "type": "object"}"#,
    r##"{"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}]}"##,
    r##"{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"},
        "value": {"type": "integer"}}, "required": ["value"], "additionalProperties": false}}}"##,
    r#"{"if": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]},
        "type": "object"}"#,
    r#"{"type": "object", "properties": {"a": true}, "unevaluatedProperties": false}"#,
];

const PATTERNS: &[&str] = &[
    r"[a-z]{2,4}(ing|ed)?",
    r"(?!no)[a-z]+",
    r"\d{3}-\d{2,}|x*y",
    r"(a|ab)(c|bcd)?(d*)",
    r#""(\\.|[^"\\])*""#,
    r"(?=.*\d)(?=.*[a-c])\w{3,6}",
    r"é+|日本?",
];

const GRAMMARS: &[&str] = &[
    "root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
    "root ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\"\npair ::= [a-c]+ \":\" ws [0-9]\nws ::= \" \"*",
    "root ::= \"a\" root \"b\" | \"\"",
    "root ::= item* <[59]> !<[64]>*\nitem ::= [a-c]+ \" \" | \"(\" item \")\"",
];

/// Bytes, and pieces that cross the borders of lexemes, characters and keywords.
fn vocabulary() -> Arc<Vocabulary> {
    let pieces = [
        "{\"", "\":", "\": ", "\",", "\"}", "}}", "]}", "[[", "[\"", "\"]", ", ", ": ", "\",\"", "true",
        "false", "null", "name", "age", "kind", "a", "ab", "abc", "abcd", "\"a\"", "\"ab", "no", "yes",
        "ing", "ed", "x-", "10", "12", "123", "00", "-1", "0.5", "1e", "é", "日本", "\\u", "\\n", "\\\"",
        "(1", "1)", "+1", "  ", "\n  ", "left", "value\":", "-01-", "2024", "20", "}", "{", "b\":1", "\"b\"",
    ];
    let mut tokens: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
    tokens.extend(pieces.iter().filter(|piece| piece.len() > 1).map(|piece| piece.as_bytes().into()));
    tokens.push("日".as_bytes()[..2].into());
    tokens.push(Box::from(*b"</s>"));
    let end = tokens.len() as u32 - 1;
    Arc::new(Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary"))
}

/// Numbers from a seed (SplitMix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % most as u64) as usize
    }
}

/// Follows random texts; each mask on the way is the oracle's.
fn walk(automaton: &Arc<TokenAutomaton>, draws: &mut Draws, steps: usize, name: &str) {
    let words = automaton.vocabulary().mask_words();
    let mut state = automaton.start();
    for _ in 0..steps {
        let allowed = automaton.mask(&state).expect("no limit is near").ids(words);
        assert_eq!(allowed, automaton.oracle(&state).expect("no limit is near"), "{name}");
        assert!(!allowed.is_empty(), "{name}: a dead end");
        // one-byte tokens are most of the vocabulary: half of the draws are of longer ones
        let long: Vec<u32> = allowed.iter().copied().filter(|&id| id > 255).collect();
        let from = if long.is_empty() || draws.below(2) == 0 { &allowed } else { &long };
        let token = TokenId(from[draws.below(from.len())]);
        state = automaton.advance(&state, token).expect("the mask allows it");
        if automaton.is_finished(&state) {
            return;
        }
    }
}

/// Random texts within a budget end within it.
fn within(automaton: &Arc<TokenAutomaton>, draws: &mut Draws, name: &str) {
    let least = automaton.distance(&automaton.start(), 1000).expect("no limit is near");
    let mut matcher = Matcher::new(automaton.clone(), Some(least + draws.below(12) as u32)).expect("enough");
    while !matcher.is_terminated() {
        let allowed = matcher.allowed_tokens().expect("no limit is near");
        assert!(!allowed.is_empty(), "{name}: no end within the budget");
        matcher.accept_tokens(&[TokenId(allowed[draws.below(allowed.len())])]).expect("the mask allows it");
    }
}

fn judge(grammar: &Grammar, vocabulary: &Arc<Vocabulary>, draws: &mut Draws, name: &str) {
    let automaton = grammar.compile(vocabulary.clone(), Limits::default()).expect(name);
    for _ in 0..6 {
        walk(&automaton, draws, 24, name);
        within(&automaton, draws, name);
    }
}

#[test]
fn masks_of_schemas_are_the_oracles() {
    let (vocabulary, mut draws) = (vocabulary(), Draws(1));
    let any = || Options {
        order: Order::Any,
        whitespace: Whitespace::Any,
        numbers: Numbers::Any,
        strings: Strings::Any,
        ..Options::default()
    };
    let compact =
        || Options { whitespace: Whitespace::Compact, strings: Strings::Canonical, ..Options::default() };
    for schema in SCHEMAS {
        for options in [Options::default(), any(), compact()] {
            let grammar = Grammar::json_schema(schema, options).expect(schema);
            judge(&grammar, &vocabulary, &mut draws, schema);
        }
    }
}

#[test]
fn masks_of_patterns_are_the_oracles() {
    let (vocabulary, mut draws) = (vocabulary(), Draws(2));
    for pattern in PATTERNS {
        judge(&Grammar::regex(pattern).expect(pattern), &vocabulary, &mut draws, pattern);
    }
}

#[test]
fn masks_of_grammars_are_the_oracles() {
    let (vocabulary, mut draws) = (vocabulary(), Draws(3));
    for text in GRAMMARS {
        judge(&Grammar::gbnf(text, "root").expect(text), &vocabulary, &mut draws, text);
    }
}
