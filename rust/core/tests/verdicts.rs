//! What schemas, patterns and grammars accept and refuse, by their own specifications: each line was written from these,
//! not from what the engine says. And what a caller may give by mistake is an error, never a panic.

use std::sync::Arc;

use tokenform_core::batch::{self, Asked, Row};
use tokenform_core::{Grammar, Kind, Limits, Mask, Matcher, Options, Order, TokenAutomaton, TokenId};
use tokenform_core::{Vocabulary, Whitespace};

fn bytes() -> Arc<Vocabulary> {
    let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
    Arc::new(Vocabulary::new(tokens, vec![256], &[256]).expect("a vocabulary"))
}

fn compiled(grammar: &Grammar) -> Arc<TokenAutomaton> {
    grammar.compile(bytes(), Limits::default()).expect("an automaton")
}

/// Texts that are accepted, and texts that are not.
fn check(grammar: &Grammar, name: &str, accepted: &[&str], refused: &[&str]) {
    let automaton = compiled(grammar);
    for (texts, wanted) in [(accepted, true), (refused, false)] {
        for text in texts {
            let found = automaton.check(text.as_bytes()).expect("no limit is near");
            assert_eq!(found.is_none(), wanted, "{name}: {text}");
        }
    }
}

/// A schema, documents that are valid, documents that are not (JSON Schema 2020-12, validation vocabulary).
type Verdicts = (&'static str, &'static [&'static str], &'static [&'static str]);

const SCHEMAS: &[Verdicts] = &[
    (r#"{"type": ["integer", "null"]}"#, &["3", "-0", "null"], &["3.5", "\"3\"", "true", ""]),
    (r#"{"const": {"a": [1, 2]}}"#, &[r#"{"a":[1,2]}"#], &[r#"{"a":[2,1]}"#, r#"{"a":[1,2],"b":1}"#]),
    (r#"{"multipleOf": 0.01, "type": "number"}"#, &["0.01", "75.25", "-3"], &["0.0075", "1.005"]),
    (r#"{"minimum": 1.5, "exclusiveMaximum": 3, "type": "number"}"#, &["1.5", "2.99"], &["1.49", "3", "3.0"]),
    (r#"{"maxLength": 2, "type": "string"}"#, &["\"\"", "\"ab\"", "\"💩é\""], &["\"abc\""]),
    (r#"{"pattern": "a+", "type": "string"}"#, &["\"a\"", "\"xaay\""], &["\"\"", "\"b\""]),
    (r#"{"minItems": 1, "maxItems": 2, "type": "array"}"#, &["[1]", "[1,\"a\"]"], &["[]", "[1,2,3]"]),
    (
        r#"{"uniqueItems": true, "type": "array"}"#,
        &["[1,2]", "[1,true]"],
        &["[1,1]", "[{\"a\":1},{\"a\":1}]"],
    ),
    (r#"{"contains": {"type": "null"}, "type": "array"}"#, &["[1,null]"], &["[]", "[1]"]),
    (
        r#"{"prefixItems": [{"type": "integer"}], "items": {"type": "string"}, "type": "array"}"#,
        &["[]", "[1]", "[1,\"a\"]"],
        &["[\"a\"]", "[1,2]"],
    ),
    (r#"{"required": ["a"], "type": "object"}"#, &[r#"{"a":1}"#, r#"{"b":1,"a":2}"#], &["{}", r#"{"b":1}"#]),
    (
        r#"{"properties": {"a": {"type": "integer"}}, "additionalProperties": false, "type": "object"}"#,
        &["{}", r#"{"a":1}"#],
        &[r#"{"a":"x"}"#, r#"{"b":1}"#],
    ),
    (
        r#"{"patternProperties": {"^n": {"type": "null"}}, "minProperties": 1, "type": "object"}"#,
        &[r#"{"n1":null}"#, r#"{"m":1}"#],
        &["{}", r#"{"n1":1}"#],
    ),
    (r#"{"propertyNames": {"maxLength": 1}, "type": "object"}"#, &["{}", r#"{"a":1}"#], &[r#"{"ab":1}"#]),
    (
        r#"{"dependentRequired": {"a": ["b"]}, "type": "object"}"#,
        &["{}", r#"{"b":1}"#, r#"{"a":1,"b":2}"#],
        &[r#"{"a":1}"#],
    ),
    (r#"{"oneOf": [{"type": "integer"}, {"minimum": 2}], "type": "number"}"#, &["1", "2.5"], &["3", "1.5"]),
    (r#"{"not": {"type": "string"}}"#, &["1", "[]"], &["\"a\""]),
    (r#"{"if": {"minimum": 5}, "then": {"multipleOf": 5}, "type": "integer"}"#, &["4", "10"], &["7"]),
    (
        r#"{"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false, "type": "object"}"#,
        &["{}", r#"{"a":1}"#],
        &[r#"{"b":1}"#],
    ),
    (
        r##"{"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}"##,
        &["[]", "[[],[[]]]"],
        &["[1]", "{}"],
    ),
];

#[test]
fn documents_are_judged_as_json_schema_says() {
    let options = || Options { order: Order::Any, whitespace: Whitespace::Any, ..Options::default() };
    for (schema, valid, invalid) in SCHEMAS {
        check(&Grammar::json_schema(schema, options()).expect(schema), schema, valid, invalid);
    }
}

#[test]
fn texts_are_judged_as_patterns_and_grammars_say() {
    check(
        &Grammar::regex(r"(?!ab)[a-c]{2}\d*").expect("a pattern"),
        "regex",
        &["aa", "ba12"],
        &["ab", "a", "aaa"],
    );
    check(&Grammar::choice(["a", "ab", ""]).expect("texts"), "choice", &["", "a", "ab"], &["b", "aba"]);
    let nested = "root ::= \"(\" root \")\" | [x-z]{1,2}";
    check(&Grammar::gbnf(nested, "root").expect("a grammar"), "gbnf", &["x", "((yz))"], &["", "(x", "xyz"]);
}

/// The interface takes whatever a caller may give.
#[test]
fn mistakes_are_errors() {
    let automaton = compiled(&Grammar::choice(["a", "b"]).expect("texts"));
    let (vocabulary, start) = (automaton.vocabulary().clone(), automaton.start());
    let far = TokenId(u32::MAX);
    assert_eq!(
        (vocabulary.token(far), vocabulary.is_special(far), vocabulary.is_eos(far)),
        (None, false, false)
    );
    assert!(!automaton.mask(&start).expect("a mask").has(u32::MAX));
    assert!(!automaton.allows(&start, far).expect("an answer"));
    let kind = |error: tokenform_core::Error| error.kind;
    assert_eq!(automaton.advance(&start, far).err().map(kind), Some(Kind::TokenRejected));
    assert_eq!(automaton.follow(&start, far).expect("an answer").map(|_| ()), None);
    // a row of too few or too many words, and a state of another automaton
    let other = compiled(&Grammar::choice(["a", "b"]).expect("texts")).start();
    for (state, words, wanted) in
        [(&start, 0, Kind::OptionError), (&start, 99, Kind::OptionError), (&other, 9, Kind::InvalidState)]
    {
        for budget in [None, Some(5)] {
            let mut out = vec![7; words];
            let answer = Ok(Default::default());
            let mut rows = [Row { automaton: &automaton, state, budget, out: &mut out, answer }];
            batch::fill(&mut rows, Asked { distance: true, forced: true }, 2);
            assert_eq!(rows[0].answer.as_ref().err().map(|e| e.kind), Some(wanted));
            assert!(out.iter().all(|&word| word == 0));
        }
    }
    let calls = [
        automaton.mask(&other).err(),
        automaton.distance(&other, 9).err(),
        automaton.forced_bytes(&other).err(),
    ];
    assert!(calls.into_iter().all(|error| error.map(kind) == Some(Kind::InvalidState)));
    let mut matcher = Matcher::new(automaton, Some(3)).expect("a budget");
    assert_eq!(matcher.fill_mask(&mut [0; 3]).err().map(kind), Some(Kind::OptionError));
    assert_eq!(matcher.accept_tokens(&[far]).err().map(kind), Some(Kind::TokenRejected));
    assert_eq!(matcher.rollback(1).err().map(kind), Some(Kind::InvalidState));
    let parents = [Some(7)];
    let draft = matcher.fill_draft_masks(&[TokenId(97)], Some(&parents), &mut [0; 18], 1);
    assert_eq!(draft.err().map(kind), Some(Kind::OptionError));
    assert_eq!(matcher.fill_known_draft_masks(&[TokenId(97)], &mut [0; 2]), None);
    // masks that a caller made
    let mut row = [0; 2];
    Mask::Sparse(Box::new([1, 9999])).write(&mut row);
    Mask::Dense(Box::new([1; 9])).write(&mut row);
    assert_eq!(row, [1, 1]);
}
