//! Positions inside a string that plain text leaves as they are: tokens of it are taken without asking a builder.
//!
//! Most tokens of a text stand in free strings, and each lands where it began: an edge for each of them would cost a
//! call of a builder and the memory of an edge, once a state and token.
//! Invariant: every character that JSON spells as it is was tried, byte for byte; nothing is taken from what the lexical
//! state stands for.
//! Complexity: 1,500 steps a lexical state that keeps them all, one for most others; the state of any string, which is the
//! same in every arena, is tried once a process.
//! Rejected: an edge for a class of tokens (which class a token is of depends on the lexical state).

use std::ops::RangeInclusive;

use once_cell::race::OnceBool;

use super::core::{Core, StateKey};
use crate::automaton::byte_automaton::ByteAutomaton;
use crate::lexical::{LexId, Lexicon, Spelling, Step, Terms};

type Bytes = RangeInclusive<u8>;

const TAIL: Bytes = 0x80..=0xBF;

/// The well-formed characters (Unicode, table 3-7) but controls, quotes and backslashes, by their bytes.
const CHARACTERS: [&[Bytes]; 11] = [
    &[0x20..=0x21],
    &[0x23..=0x5B],
    &[0x5D..=0x7F],
    &[0xC2..=0xDF, TAIL],
    &[0xE0..=0xE0, 0xA0..=0xBF, TAIL],
    &[0xE1..=0xEC, TAIL, TAIL],
    &[0xED..=0xED, 0x80..=0x9F, TAIL],
    &[0xEE..=0xEF, TAIL, TAIL],
    &[0xF0..=0xF0, 0x90..=0xBF, TAIL, TAIL],
    &[0xF1..=0xF3, TAIL, TAIL, TAIL],
    &[0xF4..=0xF4, 0x80..=0x8F, TAIL, TAIL],
];

/// The lexical states after the bytes of a character; `None` where one of them may not be.
fn after(lexicon: &mut Lexicon, at: &[LexId], bytes: &Bytes) -> Option<Vec<LexId>> {
    let mut next = Vec::new();
    for &lex in at {
        for byte in bytes.clone() {
            let Step::Stay(to) = lexicon.step(lex, byte) else { return None };
            if !next.contains(&to) {
                next.push(to);
            }
        }
    }
    Some(next)
}

/// The same for the state of any string of a spelling.
fn keeps_characters_of_all(lexicon: &mut Lexicon, lex: LexId, spelling: Spelling) -> bool {
    static KEEPS: [OnceBool; 3] = [const { OnceBool::new() }; 3];
    KEEPS[spelling as usize].get_or_init(|| keeps_characters(lexicon, lex))
}

fn keeps_characters(lexicon: &mut Lexicon, lex: LexId) -> bool {
    CHARACTERS.iter().all(|character| {
        let mut at = vec![lex];
        character.iter().all(|bytes| {
            let next = after(lexicon, &at, bytes);
            next.map(|next| at = next).is_some()
        }) && at == [lex]
    })
}

impl<S: ByteAutomaton> Core<S> {
    /// Whether the state is the same after any whole characters that JSON spells as they are.
    pub(super) fn is_kept_by_text(&mut self, stand: StateKey) -> bool {
        let lex = stand.pos.lex;
        if stand.text != 0
            || self.structure.records(stand.pos.ctx)
            || !self.structure.lexicon().is_string(lex)
        {
            return false;
        }
        if let Some(&known) = self.kept.get(&lex) {
            return known;
        }
        let lexicon = self.structure.lexicon();
        let keeps = match lexicon.term(lex) {
            Some((spelling, Terms::ALL)) => keeps_characters_of_all(lexicon, lex, spelling),
            _ => keeps_characters(lexicon, lex),
        };
        self.kept.insert(lex, keeps);
        keeps
    }
}
