//! The slow, right version of a mask: every token, byte by byte, from the state.
//!
//! It shares the automaton over bytes with the fast version, and nothing of the token layer: no trie, no
//! shared lexical masks, no memo.

use super::automaton::TokenAutomaton;
use super::core::StateId;
use crate::error::Result;
use crate::vocab::TokenId;

/// Sorted ids of the tokens that the state allows.
pub fn mask(automaton: &TokenAutomaton, s: StateId) -> Result<Vec<u32>> {
    let vocab = automaton.vocabulary();
    let mut out = Vec::new();
    for id in 0..vocab.size() as u32 {
        let token = TokenId(id);
        let allowed = if vocab.is_special(token) {
            vocab.is_eos(token) && automaton.accepting(s)? || automaton.step_special(s, token)?.is_some()
        } else if vocab.token(token).is_empty() {
            false
        } else {
            automaton.step_bytes(s, vocab.token(token))?.is_some()
        };
        if allowed {
            out.push(id);
        }
    }
    Ok(out)
}
