//! Outcomes of lexical states: which languages of a tuple accept, also in the middle of a code point.
//!
//! A lexeme may end before a multi-byte code point, but this is known only when the code point is complete.
//! Until then the outcome before it is kept, with the bytes read since.

use super::spell::{Lex, LexId, Lexicon, OutcomeId};
use super::term::Term;

/// The first number of an outcome in the middle of a code point; then the count of its bytes so far, these
/// bytes, and the languages that accept before the code point.
const BEHIND: u32 = u32::MAX;

impl Lexicon {
    /// Which languages accept here; in the middle of a code point that may not belong to the lexeme, which
    /// languages accepted before it ([`Lexicon::behind`]).
    pub fn outcome(&mut self, lex: LexId) -> OutcomeId {
        let term = match &self.states[lex.0 as usize] {
            Lex::At { term, .. } => *term,
            Lex::Block { behind, .. } => return *behind,
            _ => return Self::NONE,
        };
        match self.terms.get(term) {
            Term::Tuple(xs) => {
                memo!(self.outcomes_of, term, {
                    let accepting: Box<[u32]> = (0u32..)
                        .zip(xs.iter())
                        .filter(|(_, &x)| self.terms.nullable(x))
                        .map(|(i, _)| i)
                        .collect();
                    OutcomeId(self.outcomes.intern(accepting))
                })
            }
            _ if self.terms.nullable(term) => Self::FIRST,
            _ => Self::NONE,
        }
    }

    pub fn outcome_list(&self, id: OutcomeId) -> &[u32] {
        &self.outcomes[id.0 as usize]
    }

    pub fn intern_outcome(&mut self, accepting: &[u32]) -> OutcomeId {
        if let Some(known) = self.outcomes.get_index_of(accepting) {
            return OutcomeId(known as u32);
        }
        OutcomeId(self.outcomes.intern(accepting.into()))
    }

    /// Whether an outcome is one in the middle of a code point.
    pub fn is_behind(&self, outcome: OutcomeId) -> bool {
        self.outcome_list(outcome).first() == Some(&BEHIND)
    }

    /// Splits an outcome in the middle of a code point: the outcome before it, and the bytes since.
    pub fn behind(&mut self, outcome: OutcomeId) -> Option<(OutcomeId, Vec<u8>)> {
        let &[BEHIND, count, ref list @ ..] = self.outcome_list(outcome) else { return None };
        let (bytes, accepting) = list.split_at(count as usize);
        let (bytes, accepting) = (bytes.iter().map(|&b| b as u8).collect(), accepting.to_vec());
        Some((self.intern_outcome(&accepting), bytes))
    }

    /// The outcome after the first byte of a code point: `NONE` where the lexeme may not end before it, or is
    /// not read beside others.
    pub(super) fn before_lead(&mut self, lex: LexId, byte: u8) -> OutcomeId {
        if self.is_string(lex) || self.is_single(lex) {
            return Self::NONE;
        }
        match self.outcome(lex) {
            Self::NONE => Self::NONE,
            outcome => {
                let accepting = self.outcome_list(outcome);
                let list: Vec<u32> = [BEHIND, 1, byte.into()].iter().chain(accepting).copied().collect();
                self.intern_outcome(&list)
            }
        }
    }

    /// The same outcome a byte later.
    pub(super) fn behind_by(&mut self, outcome: OutcomeId, byte: u8) -> OutcomeId {
        let Some((before, mut bytes)) = self.behind(outcome) else { return Self::NONE };
        bytes.push(byte);
        let bytes = bytes.iter().map(|&b| u32::from(b));
        let accepting = self.outcome_list(before).iter().copied();
        let list: Vec<u32> = [BEHIND, bytes.len() as u32].into_iter().chain(bytes).chain(accepting).collect();
        self.intern_outcome(&list)
    }
}
