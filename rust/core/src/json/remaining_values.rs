//! All that may be left of a value, where it is one of few scalars, for decoders that decide such values as wholes.
//!
//! Invariant: a list is complete but for other spellings of a value that is in it (escapes, notations of numbers).
//! Complexity: linear in the list; `None` as soon as a value has more.
//! Rejected: objects and arrays of which there are few (their layout would multiply the texts).

use super::{JsonMachine, LexemeKind, ParserPhase};
use crate::automaton::{Left, Pos};
use crate::lexical::number::Decimal;
use crate::lexical::TermId;
use crate::schema::ValId;

/// Values that no form lists, as a range of integers or a pattern, up to which they are few.
const FEW: usize = 64;

impl JsonMachine {
    /// What is left of the value that is read or comes next (or may come, in an array that may end as well).
    pub(super) fn remaining_of_value(&mut self, pos: Pos, most: usize) -> Option<Vec<Left>> {
        let context = self.context(pos.ctx);
        match context.phase {
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                self.all_scalars(context.goals(), most)
            }
            ParserPhase::ArrayStart => {
                let (goals, ..) = self.item(context)?;
                self.all_scalars(goals, most)
            }
            ParserPhase::Scalar => {
                let (_, term) = self.lexicon().term(pos.lex)?;
                let words = self.terms().words_of(term, most)?;
                let quoted = self.lexicon().is_string(pos.lex);
                Some(words.iter().map(|word| if quoted { string(word, 1) } else { bare(word) }).collect())
            }
            _ => None,
        }
    }

    /// Code points that are left at most of the string that is read.
    pub(super) fn longest_remaining_of_string(&mut self, pos: Pos) -> Option<u32> {
        if self.context(pos.ctx).phase != ParserPhase::Scalar || !self.lexicon().is_string(pos.lex) {
            return None;
        }
        let (_, term) = self.lexicon().term(pos.lex)?;
        self.terms().at_most(term)
    }

    fn all_scalars(&mut self, goals: super::GoalsId, most: usize) -> Option<Vec<Left>> {
        if self.open_object(goals).is_some() || self.open_array(goals).is_some() {
            return None;
        }
        let mut all = Vec::new();
        for &v in self.frames[goals].clone().iter() {
            self.scalars_of(v, most, &mut all)?;
        }
        crate::lists::sort_unique(&mut all);
        (all.len() <= most).then_some(all)
    }

    fn scalars_of(&mut self, v: ValId, most: usize, all: &mut Vec<Left>) -> Option<()> {
        use crate::schema::value::{FALSE, NULL, TRUE};
        let value = self.schema.value(v).clone();
        for (bit, word) in [(NULL, "null"), (TRUE, "true"), (FALSE, "false")] {
            if value.consts & bit != 0 {
                all.push(bare(word));
            }
        }
        let numbers: Vec<Decimal> = self.schema.numbers(&value).finite(FEW)?;
        for number in numbers {
            let text = number.short();
            if text.contains('e') {
                return None;
            }
            all.push(bare(&text));
        }
        let language: TermId = self.language(v, LexemeKind::String);
        if self.terms().live(language) {
            let words = match self.terms().words_of(language, most) {
                Some(words) => words,
                None => self.terms().words_up_to(language, FEW)?,
            };
            all.extend(words.iter().map(|word| string(word, 0)));
        }
        Some(())
    }
}

fn bare(word: &str) -> Left {
    Left { bytes: word.as_bytes().into(), closed: false }
}

/// A string as writers spell it, without its first bytes.
fn string(word: &str, from: usize) -> Left {
    let text = serde_json::to_string(word).expect("a string");
    Left { bytes: text.as_bytes()[from..].into(), closed: true }
}
