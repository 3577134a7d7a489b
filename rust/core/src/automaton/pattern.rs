//! A constraint that is one regular language: a single lexeme, spelled as it is.

use super::byte_automaton::{ByteAutomaton, CtxId, Left, Piece, Pos, Seen};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{shortest_lexeme, Lexicon, Spelling, TermId};

/// Texts that no form lists up to which they are few.
const FEW: usize = 64;

/// One term over the whole text.
pub struct Pattern {
    lexicon: Lexicon,
    term: TermId,
    /// What the user wrote, for messages.
    name: String,
}

impl Pattern {
    pub fn new(lexicon: Lexicon, term: TermId, name: String) -> Self {
        Pattern { lexicon, term, name }
    }
}

impl ByteAutomaton for Pattern {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.lexicon
    }

    fn bytes(&mut self) -> usize {
        self.lexicon.bytes()
    }

    fn start(&mut self) -> Option<Pos> {
        let lex = self.lexicon.at(Spelling::Raw, self.term);
        (lex != Lexicon::DEAD).then_some(Pos { ctx: CtxId(0), lex })
    }

    fn leave(&mut self, _: CtxId, _: OutcomeId, _: &[u8], _: u8) -> Option<Pos> {
        None
    }

    fn leave_bytes(&mut self, _: CtxId, _: OutcomeId) -> ByteSet {
        ByteSet::default()
    }

    fn accepting(&mut self, pos: Pos, _: &[u8]) -> bool {
        self.lexicon.outcome(pos.lex) != Lexicon::NONE
    }

    fn completion(&mut self, pos: Pos, _: &[u8], most: usize) -> Option<Vec<Piece>> {
        shortest_lexeme(&mut self.lexicon, pos.lex, most).map(|(bytes, _)| vec![Piece::Bytes(bytes)])
    }

    fn left(&mut self, pos: Pos, most: usize) -> Option<Vec<Left>> {
        // a text is decided as a whole or not at all
        if Some(pos) != self.start() {
            return None;
        }
        let terms = &mut self.lexicon.terms;
        let words = match terms.words_of(self.term, most) {
            Some(words) => words,
            None => terms.words_up_to(self.term, FEW)?,
        };
        Some(words.iter().map(|word| Left { bytes: word.as_bytes().into(), closed: false }).collect())
    }

    fn describe(&mut self, pos: Pos, _: Seen) -> (Vec<String>, Option<String>) {
        let mut shown = self.lexicon.in_words(pos.lex);
        if self.lexicon.outcome(pos.lex) != Lexicon::NONE {
            shown.push("the end of the text".into());
        }
        (shown, Some(self.name.clone()))
    }
}
