//! The classes of a string's tokens, as computed for all at once and as a walk of every token finds them.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::core::Core;
use super::engine::{DistanceClass, Engine};
use super::successors::TokensByClass;
use crate::json::JsonMachine;
use crate::schema::Schema;
use crate::vocab::{TokenId, Trie, Vocabulary};

/// Bytes, and what is awkward: halves of code points and of escapes, ends of strings with what follows them.
fn vocabulary() -> Arc<Vocabulary> {
    let texts = [
        "\":",
        "\": \"",
        "\",\"",
        "\":1,\"",
        "\":{\"a",
        "a\",",
        "ab",
        "abc",
        "x-",
        "-a\"",
        "b\":",
        "\\u00",
        "\\u0061",
        "\\n\"",
        "a\\",
        "\\ud83d\\ude",
        "é",
        "aé",
        "\"]",
        "\"}",
        "{\"a\":\"",
        "日本",
    ];
    let cut: [&[u8]; 3] = [b"a\xe6", b"\x97\xa5", b"x\xf0\x9f"];
    let tokens = (0..=255u8).map(|b| Box::from([b]));
    let tokens =
        tokens.chain(texts.iter().map(|t| t.as_bytes().into())).chain(cut.iter().map(|t| (*t).into()));
    let tokens: Vec<Box<[u8]>> = tokens.chain([Box::from(*b"</s>")]).collect();
    let end = tokens.len() as u32 - 1;
    Arc::new(Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary"))
}

const SCHEMAS: [&str; 18] = [
    r#"{"type": "string"}"#,
    r#"{"type": "string", "minLength": 2, "maxLength": 4}"#,
    r#"{"type": "string", "pattern": "^[a-c]+(x-)?$"}"#,
    r#"{"anyOf": [{"type": "string", "maxLength": 3}, {"enum": ["abcabc", "é"]}]}"#,
    r#"{"type": "object"}"#,
    r#"{"type": "object", "properties": {"a": {"type": "integer"}, "abc": {}}, "required": ["b"]}"#,
    r#"{"type": "object", "properties": {"a": {}, "ab": {}}, "additionalProperties": false}"#,
    r#"{"type": "object", "patternProperties": {"^x-": {"type": "integer"}}}"#,
    r#"{"type": "object", "patternProperties": {"^[ab]+$": {"type": "string"}, "c$": {"type": ["string", "null"]}}}"#,
    r#"{"type": "object", "patternProperties": {"^.+$": {"type": "string"}}, "additionalProperties": false}"#,
    r#"{"type": "object", "properties": {"a": {}}, "patternProperties": {"^a": {"type": "array"}}, "minProperties": 1}"#,
    r#"{"type": "object", "patternProperties": {"^a": {}}, "minProperties": 3, "additionalProperties": false}"#,
    r#"{"type": "object", "propertyNames": {"maxLength": 3}, "additionalProperties": {"type": "integer"}}"#,
    r#"{"type": "object", "propertyNames": {"minLength": 3}, "patternProperties": {"b": {"type": "null"}}}"#,
    r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#,
    r#"{"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}, "uniqueItems": true}"#,
    r#"{"type": "array", "contains": {"const": "abc"}, "items": {"type": "string", "maxLength": 5}}"#,
    r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}"#,
];

fn by_token(core: &Core<JsonMachine>, found: TokensByClass) -> BTreeMap<u32, DistanceClass> {
    let mut out = BTreeMap::new();
    for successor in found.successors(&core.vocab) {
        let ids = successor.tokens.ids(core.vocab.mask_words());
        assert_eq!(ids.first(), Some(&successor.first.0));
        for id in ids {
            assert_eq!(out.insert(id, successor.class), None, "{id} twice");
        }
    }
    out
}

/// Walks a text of tokens drawn from the masks; for how many of its states no walk was needed.
fn walk(schema: &str, strings: crate::Strings, draws: &[u32]) -> usize {
    let options = crate::Options { strings, ..crate::Options::default() };
    let machine = JsonMachine::new(Schema::new(schema, options).expect("a schema")).expect("a machine");
    let mut core = Core::new(machine, vocabulary());
    let (mut state, mut read_off) = (core.start().expect("a start"), 0);
    for &draw in draws {
        let state_key = core.state_key(state);
        let mut found = TokensByClass::default();
        if core.classes_in_string(state_key, &mut found) {
            read_off += 1;
            let found = by_token(&core, found);
            let mut slow = TokensByClass::default();
            let (vocab, mut text) = (core.vocab.clone(), core.text(state_key));
            core.classes_below(vocab.trie(), Trie::ROOT, state_key.pos, &mut text, &mut slow);
            let slow = by_token(&core, slow);
            let shown = |id: &u32| String::from_utf8_lossy(vocab.text_of(TokenId(*id))).into_owned();
            for id in slow.keys().chain(found.keys()) {
                assert_eq!(found.get(id), slow.get(id), "{schema} after {text:?}: {:?}", shown(id));
            }
        }
        let (mask, _) = core.mask(state);
        let allowed: Vec<u32> = mask
            .ids(core.vocab.mask_words())
            .into_iter()
            .filter(|&id| !core.vocab.is_eos(TokenId(id)))
            .collect();
        // half of the texts spell what the schemas name
        let named: Vec<u32> = allowed
            .iter()
            .copied()
            .filter(|&id| core.vocab.text_of(TokenId(id)).iter().all(|b| b"ab\":,{[xc-".contains(b)))
            .collect();
        let from = if draw % 4 > 0 && !named.is_empty() { named } else { allowed };
        let Some(&id) = from.get(draw as usize / 4 % from.len().max(1)) else { break };
        let bytes = core.vocab.clone().text_of(TokenId(id)).to_vec();
        state = core.advance_bytes(state, &bytes).expect("an allowed token");
    }
    read_off
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn classes_are_those_of_every_token_by_itself(draws in prop::collection::vec(any::<u32>(), 14)) {
        for schema in SCHEMAS {
            for strings in [crate::Strings::Natural, crate::Strings::Any, crate::Strings::Canonical] {
                walk(schema, strings, &draws);
            }
        }
    }
}

#[test]
fn the_classes_of_most_strings_are_read_off() {
    for schema in &SCHEMAS[..8] {
        let read_off: usize =
            (0..40u32).map(|seed| walk(schema, crate::Strings::Any, &[seed * 4 + 1; 10])).sum();
        assert!(read_off > 40, "{schema}: {read_off}");
    }
}
