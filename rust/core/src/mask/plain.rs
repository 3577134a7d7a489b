//! Positions from which many tokens lead to one position, so that they share an edge or need none.
//!
//! In a string state that plain text does not change, such tokens are taken without a builder: most tokens of
//! a text stand in free strings, and an edge for each would cost a call of a builder and its memory, once per
//! state and token. In a number whose digits are only counted, all tokens of the same number of digits share
//! one edge.
//! Invariant: every character that JSON spells as it is was tried, byte for byte; nothing is inferred from the form of the
//! lexical state.
//! Complexity: 1,500 steps per lexical state that keeps them all, one for most others; the state of any string, which is the
//! same in every arena, is tried once per process.
//! Rejected: an edge for a class of tokens (which class a token is of depends on the lexical state).

use std::ops::RangeInclusive;

use once_cell::race::OnceBool;

use super::core::{Core, StateKey};
use crate::automaton::byte_automaton::ByteAutomaton;
use crate::lexical::{LexId, Lexicon, Spelling, Step, Terms};
use crate::vocab::NUMERAL;

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

/// The lexical states after the bytes of a character; `None` where one of them is refused.
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
    static KEEPS: [OnceBool; 4] = [const { OnceBool::new() }; 4];
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
    pub(super) fn is_kept_by_text(&mut self, state_key: StateKey) -> bool {
        let lex = state_key.pos.lex;
        if state_key.text != 0
            || self.structure.records(state_key.pos.ctx)
            || !self.structure.lexicon().is_string(lex)
        {
            return false;
        }
        memo!(self.keeps_characters_memo, lex, {
            let lexicon = self.structure.lexicon();
            match lexicon.term(lex) {
                Some((spelling, Terms::ALL)) => keeps_characters_of_all(lexicon, lex, spelling),
                _ => keeps_characters(lexicon, lex),
            }
        })
    }

    /// Whether what follows a run of up to [`NUMERAL`] digits depends on its length alone, as long as it stays in the
    /// lexeme.
    pub(super) fn counts_digits(&mut self, state_key: StateKey) -> bool {
        if state_key.text != 0 || self.structure.records(state_key.pos.ctx) {
            return false;
        }
        let longest = self.vocab.reach().digits.min(NUMERAL as u32);
        let lexicon = self.structure.lexicon();
        let mut at = state_key.pos.lex;
        (0..longest).all(|_| match lexicon.step(at, b'0') {
            Step::Stay(next) => {
                let same = (b'1'..=b'9').all(|digit| lexicon.step(at, digit) == Step::Stay(next));
                at = next;
                same
            }
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::vocab::{TokenId, Vocabulary};
    use crate::{Grammar, Limits, TokenAutomaton};

    /// The bytes, then these, then the end.
    const WORDS: [&str; 6] = ["12", "34", "00", "345", "56789", "7,"];
    const END: u32 = 262;

    fn automaton(schema: &str) -> Arc<TokenAutomaton> {
        let bytes = (0..=255u8).map(|b| Box::from([b]));
        let words = WORDS.map(|w| w.as_bytes().into());
        let tokens = bytes.chain(words).chain([Box::from(*b"</s>")]).collect();
        let vocabulary = Arc::new(Vocabulary::new(tokens, vec![END], &[END]).expect("a vocabulary"));
        let grammar = Grammar::json_schema(schema, Default::default()).expect("a grammar");
        grammar.compile(vocabulary, Limits::default()).expect("an automaton")
    }

    /// The tokens that are known to lead on after a text once the token "12" was taken there.
    fn known(schema: &str, text: &str) -> Vec<&'static str> {
        let automaton = automaton(schema);
        let at =
            automaton.step_bytes(&automaton.start(), text.as_bytes()).expect("an answer").expect("a text");
        let next = automaton.advance(&at, TokenId(256)).expect("a state");
        let mut found = Vec::new();
        for (id, word) in (256..).zip(WORDS) {
            if let Some(to) = at.known_next(automaton.vocabulary(), TokenId(id)) {
                assert!(to == next, "{word}");
                found.push(word);
            }
        }
        found
    }

    #[test]
    fn tokens_of_as_many_digits_share_an_edge_where_digits_are_counted() {
        let alike = ["12", "34", "00"];
        assert_eq!(known(r#"{"type": "integer"}"#, "1"), alike);
        assert_eq!(known(r#"{"type": "number"}"#, "-3.1"), alike);
        assert_eq!(known(r#"{"pattern": "^[0-9]{9}$", "type": "string"}"#, "\"1"), alike);
    }

    #[test]
    fn tokens_of_digits_have_edges_of_their_own_where_their_value_or_the_end_matters() {
        assert_eq!(known(r#"{"type": "integer", "maximum": 5000}"#, "1"), ["12"]);
        assert_eq!(known(r#"{"type": "integer", "multipleOf": 7}"#, "1"), ["12"]);
        assert_eq!(known(r#"{"type": "integer"}"#, ""), ["12"]);
        assert_eq!(known(r#"{"pattern": "^[0-9]{3}$", "type": "string"}"#, "\"1"), ["12"]);
        assert_eq!(
            known(r#"{"type": "object", "patternProperties": {"1": {"type": "null"}}}"#, "{\"1"),
            ["12"]
        );
    }

    #[test]
    fn masks_near_the_longest_number_are_those_of_the_slow_way() {
        let automaton = automaton(r#"{"type": "integer"}"#);
        let mut at =
            automaton.step_bytes(&automaton.start(), &[b'1'; 70]).expect("an answer").expect("a text");
        for _ in 0..10 {
            let mask = automaton.mask(&at).expect("a mask").ids(9);
            assert_eq!(mask, automaton.oracle(&at).expect("a mask"));
            for id in (256..256 + WORDS.len() as u32).chain([b'0'.into(), b'9'.into()]) {
                let next = automaton.follow(&at, TokenId(id)).expect("an answer");
                assert_eq!(next.is_some(), mask.contains(&id), "token {id}");
            }
            at = automaton.advance(&at, TokenId(b'5'.into())).expect("a state");
        }
    }
}
