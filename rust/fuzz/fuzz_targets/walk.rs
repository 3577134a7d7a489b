//! What every target asserts of an automaton, byte by byte.
//!
//! At each step: a byte is allowed exactly if its bit is set in the mask; a state that is not accepting allows some
//! byte; the end is allowed exactly where the text may end. Where a byte is refused, the walk goes on with one that is
//! allowed, so that it comes far.

#![allow(dead_code)] // each target is a crate that takes what it needs

use std::sync::{Arc, OnceLock};

use tokenform_core::automaton::ByteAutomaton;
use tokenform_core::limits::Limits;
use tokenform_core::mask::TokenAutomaton;
use tokenform_core::vocab::{TokenId, Vocabulary};
use tokenform_core::Result;

const EOS: u32 = 256;
/// Bytes of a document that are walked.
const LONGEST: usize = 96;
/// Steps that a call may do: with the counters and checks of a fuzz target a step takes fifty times as long as without,
/// and what is cut short is looked at as well.
const WORK: u64 = 2_000_000;

/// Bounds the calls of this process.
pub fn bound() {
    Limits { work: WORK, ..Limits::default() }.make_default();
}

/// All bytes, and an end.
pub fn vocabulary() -> Arc<Vocabulary> {
    static BYTES: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let mut tokens: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
        // what no form can name as a special token
        tokens.push(Box::from(*b"\xFF</s>"));
        Arc::new(Vocabulary::new(tokens, vec![EOS], &[EOS]).expect("a vocabulary of all bytes"))
    };
    BYTES.get_or_init(make).clone()
}

/// The automaton of a constraint that is read anew whenever its memory is dropped.
pub fn automaton<S: ByteAutomaton + 'static>(
    make: impl Fn() -> Result<S> + Send + Sync + 'static,
) -> Result<Arc<TokenAutomaton>> {
    TokenAutomaton::of(make, vocabulary())
}

/// The bytes that the walk took, each with the number of tokens allowed before it.
pub fn walk(automaton: &TokenAutomaton, document: &[u8]) -> Result<Vec<(u8, usize)>> {
    let mut state = automaton.start();
    let mut taken = Vec::new();
    for &wanted in document.iter().take(LONGEST) {
        let words = automaton.vocabulary().mask_words();
        let allowed = automaton.mask(&state)?.ids(words);
        let accepting = automaton.accepting(&state)?;
        assert_eq!(accepting, allowed.contains(&EOS), "the end is allowed exactly where the text may end");
        let many = allowed.len();
        let bytes: Vec<u32> = allowed.into_iter().filter(|&id| id != EOS).collect();
        assert!(accepting || !bytes.is_empty(), "a dead end");
        let fits = automaton.allows(&state, TokenId(wanted.into()))?;
        assert_eq!(fits, bytes.contains(&wanted.into()), "the mask and the automaton differ on a byte");
        if bytes.is_empty() {
            return Ok(taken);
        }
        let next = if fits { wanted.into() } else { bytes[wanted as usize % bytes.len()] };
        taken.push((next as u8, many));
        state = automaton.advance(&state, TokenId(next))?;
    }
    automaton.distance(&state, 64)?;
    automaton.forced_bytes(&state)?;
    automaton.describe(&state)?;
    Ok(taken)
}

/// What stands before a byte 0, as text, and what stands after it.
pub fn parts(data: &[u8]) -> Option<(&str, &[u8])> {
    let (text, document) = match data.iter().position(|&b| b == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    Some((std::str::from_utf8(text).ok()?, document))
}
