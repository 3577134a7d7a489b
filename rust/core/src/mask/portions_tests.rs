//! Texts that are read again in portions, after what was made for them was freed.

use std::sync::Arc;

use super::{State, TokenAutomaton};
use crate::error::Kind;
use crate::vocab::{TokenId, Vocabulary};
use crate::{Grammar, Limits};

/// A token of so many bytes, each some steps.
const LONG: usize = 50;

/// An automaton that counts, so that no state recurs, whose calls may do as much as a portion (a few of these
/// tokens); and a text of some of them.
fn text_of(tokens: usize) -> (Arc<TokenAutomaton>, State) {
    let bytes = (0..=255u8).map(|b| Box::from([b]));
    let others: [Box<[u8]>; 2] = [[b'a'; LONG].into(), (*b"</s>").into()];
    let vocabulary = Vocabulary::new(bytes.chain(others).collect(), vec![257], &[257]).expect("a vocabulary");
    let grammar = Grammar::regex("[a-y]{0,900000}z?").expect("a grammar");
    let limits = Limits { work: 20_000, ..Limits::default() };
    let automaton = grammar.compile(Arc::new(vocabulary), limits).expect("an automaton");
    let mut state = automaton.start();
    for _ in 0..tokens {
        state = automaton.step_bytes(&state, &[b'a'; LONG]).expect("an answer").expect("a text");
    }
    (automaton, state)
}

#[test]
fn one_call_reads_a_text_of_several_portions_again() {
    let (automaton, state) = text_of(30);
    automaton.clear();
    assert!(automaton.allows(&state, TokenId(b'z'.into())).expect("an answer"));
    assert_eq!((automaton.stats().failed, automaton.stats().cleared), (0, 1));
}

#[test]
fn a_longer_text_is_read_by_several_calls_none_of_which_begins_anew() {
    let (automaton, state) = text_of(400);
    automaton.clear();
    let mut refused = 0;
    let allowed = loop {
        match automaton.allows(&state, TokenId(b'z'.into())) {
            Ok(allowed) => break allowed,
            Err(error) => assert!(error.kind == Kind::LimitExceeded && error.message.contains("ask again")),
        }
        refused += 1;
        assert!(refused < 400, "nothing is kept");
    };
    assert!(allowed && (1..=10).contains(&refused), "{refused} calls");
    assert_eq!((automaton.stats().failed, automaton.stats().cleared), (0, 1));
}
