//! Threads that read, build and clear one automaton at once.
//!
//! Run under ThreadSanitizer too (`make thread`), which sees whether what one thread publishes is read in order. The
//! standard library is built with it (component `rust-src`): without, each lock of its own is reported as a race.

use std::sync::Arc;

use super::batch::{self, Answer, Asked, Row};
use super::{State, TokenAutomaton};
use crate::vocab::{TokenId, TokenSet, Vocabulary};
use crate::{Grammar, Limits};

fn vocabulary() -> Arc<Vocabulary> {
    let bytes = (0..=255u8).map(|b| Box::from([b]));
    let words = ["\": ", ", \"", "12", "ab", "}"].map(|w| w.as_bytes().into());
    let tokens = bytes.chain(words).chain([Box::from(*b"</s>")]).collect();
    Arc::new(Vocabulary::new(tokens, vec![261], &[261]).expect("a vocabulary"))
}

/// Walks a text byte by byte; each mask has what follows and lacks what no text has there.
fn walk(automaton: &TokenAutomaton, text: &str) -> State {
    let mut state = automaton.start();
    for &byte in text.as_bytes() {
        let mask = automaton.mask(&state).expect("a mask");
        assert!(mask.has(byte as u32) && !mask.has(0), "{text}");
        assert!(!mask.has(261) && !automaton.accepting(&state).expect("an answer"), "{text}");
        let next = automaton.advance(&state, TokenId(byte as u32)).expect("a state");
        // the token again gives the same state, or one that allows the same if memory was freed in between
        let again = automaton.advance(&state, TokenId(byte as u32)).expect("a state");
        let [same, row] = [&again, &next].map(|s| automaton.mask(s).expect("a mask").ids(9));
        assert_eq!(same, row, "{text}");
        state = next;
    }
    assert!(automaton.accepting(&state).expect("an answer"), "{text}");
    assert_eq!(automaton.distance(&state, 9).expect("a distance"), 0);
    state
}

#[test]
fn threads_find_what_one_would() {
    let text = r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#;
    let grammar = Grammar::json_schema(text, Default::default()).expect("a grammar");
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let shared = grammar.compile(vocabulary(), limits).expect("an automaton");
    let held = walk(&shared, r#"{"a": 1, "b": 22}"#);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (shared, held) = (&shared, held.clone());
            scope.spawn(move || {
                for round in 0..40 {
                    // every other text is common to all threads
                    let own = if round % 2 == 0 { 0 } else { worker + 1 };
                    walk(shared, &format!("{{\"k{own}\": {round}, \"m{round}\": -7{round}}}"));
                    if (round + worker) % 13 == 0 {
                        shared.clear();
                    }
                    assert!(shared.mask(&held).expect("a mask").has(261));
                }
            });
        }
    });
}

#[test]
fn rows_are_filled_side_by_side() {
    let vocab = vocabulary();
    let grammar = Grammar::regex("(ab|12)*[0-9]{2,30}").expect("a grammar");
    let automata: Vec<_> =
        (0..3).map(|_| grammar.compile(vocab.clone(), Limits::default()).expect("an automaton")).collect();
    let mut states: Vec<State> = (0..24).map(|i| automata[i % 3].start()).collect();
    for &token in b"abab1234567" {
        let mut out = vec![0u32; states.len() * vocab.mask_words()];
        let mut rows: Vec<Row<'_>> = out
            .chunks_mut(vocab.mask_words())
            .zip(&states)
            .enumerate()
            .map(|(i, (out, state))| Row {
                automaton: &automata[i % 3],
                state,
                budget: (i % 5 == 0).then_some(40),
                out,
                answer: Ok(Answer::default()),
            })
            .collect();
        batch::fill(&mut rows, Asked { distance: true, forced: true }, 4);
        let distances: Vec<u32> =
            rows.iter().map(|r| r.answer.as_ref().expect("an answer").distance).collect();
        assert!(distances.iter().all(|d| *d == distances[0]));
        let words = vocab.mask_words();
        assert!(out.chunks(words).all(|row| row == &out[..words] && row.allows(token as u32)));
        let next =
            |(i, s): (usize, &State)| automata[i % 3].advance(s, TokenId(token as u32)).expect("a state");
        states = states.iter().enumerate().map(next).collect();
    }
}
