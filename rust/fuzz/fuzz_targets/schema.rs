//! Any schema, any options, any bytes: an error or a working automaton, never a crash, a hang or a contradiction.
//!
//! An input is one byte of options, the schema's text up to a byte 0, and the document.  The document is walked
//! byte by byte; where a byte is refused, the walk goes on with one that is allowed, so that it comes far.
//! Invariants that are asserted at each step: a byte is allowed exactly if its bit is set in the mask; a state
//! that is not accepting allows some byte; the end is allowed exactly where the text may end.
//!
//! Run by `make fuzz`.  Rejected: structure-aware mutation by a generator of schemas; the differential judge
//! (`tokenform.bench.suites differential`) draws those, and finds what is wrong rather than what breaks.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use tokenform_core::json::JsonMachine;
use tokenform_core::mask::TokenAutomaton;
use tokenform_core::schema::options::{Numbers, Options, Order, Strings, Whitespace};
use tokenform_core::schema::Schema;
use tokenform_core::vocab::{TokenId, Vocabulary};

const EOS: u32 = 256;
/// Bytes of a document that are walked.
const LONGEST: usize = 96;

fn vocabulary() -> Arc<Vocabulary> {
    static BYTES: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let mut tokens: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
        tokens.push(Box::from([]));
        Arc::new(Vocabulary::new(tokens, vec![EOS], &[EOS]).expect("a vocabulary of all bytes"))
    };
    BYTES.get_or_init(make).clone()
}

fn options(choice: u8) -> Options {
    let whitespace = [Whitespace::Compact, Whitespace::Spaced, Whitespace::Indent, Whitespace::Any];
    Options {
        order: if choice & 1 == 0 { Order::Declared } else { Order::Any },
        numbers: if choice & 2 == 0 { Numbers::Natural } else { Numbers::Any },
        strings: if choice & 4 == 0 { Strings::Canonical } else { Strings::Any },
        whitespace: whitespace[(choice >> 3 & 3) as usize],
        formats: choice & 32 == 0,
        forbid_additional: choice & 64 != 0,
        report_unsupported: choice & 128 != 0,
        ..Options::default()
    }
}

fn walk(automaton: &TokenAutomaton, document: &[u8]) -> tokenform_core::Result<()> {
    let mut state = automaton.start();
    for &wanted in document.iter().take(LONGEST) {
        let words = automaton.vocabulary().mask_words();
        let allowed = automaton.mask(&state)?.ids(words);
        let accepting = automaton.accepting(&state)?;
        assert_eq!(accepting, allowed.contains(&EOS), "the end is allowed exactly where the text may end");
        let bytes: Vec<u32> = allowed.into_iter().filter(|&id| id != EOS).collect();
        assert!(accepting || !bytes.is_empty(), "a dead end");
        let fits = automaton.allows(&state, TokenId(wanted.into()))?;
        assert_eq!(fits, bytes.contains(&wanted.into()), "the mask and the automaton differ on a byte");
        if bytes.is_empty() {
            return Ok(());
        }
        let next = if fits { wanted.into() } else { bytes[wanted as usize % bytes.len()] };
        state = automaton.advance(&state, TokenId(next))?;
    }
    automaton.distance(&state)?;
    automaton.forced_bytes(&state)?;
    automaton.describe(&state)?;
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (schema, document) = match rest.iter().position(|&b| b == 0) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    let Ok(text) = std::str::from_utf8(schema) else { return };
    let text: Arc<str> = text.into();
    let make = move || JsonMachine::new(Schema::new(&text, options(choice))?);
    let Ok(automaton) = TokenAutomaton::of(make, vocabulary()) else { return };
    // several texts in turns, one of them half walked when memory is let go; an error on the way is a limit that
    // was reached, which the caller is told
    for cut in [document.len() / 2, document.len()] {
        let _ = walk(&automaton, &document[..cut]);
        automaton.clear();
    }
    let backwards: Vec<u8> = document.iter().rev().copied().collect();
    let _ = walk(&automaton, &backwards);
});
