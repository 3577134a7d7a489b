//! From the tree of a parsed pattern to terms.

use super::term::{TermId, Terms, INF};
use crate::regex::Lang;

impl Terms {
    /// The term of a language.
    pub fn lower(&mut self, lang: &Lang) -> TermId {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.lower_node(lang))
    }

    fn lower_node(&mut self, lang: &Lang) -> TermId {
        match lang {
            Lang::Empty => Self::EMPTY,
            Lang::Epsilon => Self::EPS,
            Lang::Class(set) => self.class(&set.0),
            Lang::Literal(text) => self.literal(text),
            Lang::Concat(parts) => {
                let parts: Vec<TermId> = parts.iter().map(|p| self.lower(p)).collect();
                self.concat_all(&parts)
            }
            Lang::Or(parts) => {
                let literals: Option<Vec<Box<str>>> = parts.iter().map(as_literal).collect();
                if let Some(words) = literals {
                    return self.words(words);
                }
                let parts: Vec<TermId> = parts.iter().map(|p| self.lower(p)).collect();
                self.or(&parts)
            }
            Lang::And(parts) => {
                let parts: Vec<TermId> = parts.iter().map(|p| self.lower(p)).collect();
                self.and(&parts)
            }
            Lang::Not(inner) => {
                let inner = self.lower(inner);
                self.not(inner)
            }
            Lang::Repeat(inner, lo, hi) => {
                let inner = self.lower(inner);
                self.repeat(inner, *lo, hi.unwrap_or(INF))
            }
            Lang::States(states) => self.table(states.clone()),
        }
    }
}

fn as_literal(lang: &Lang) -> Option<Box<str>> {
    match lang {
        Lang::Literal(text) => Some(text.as_str().into()),
        Lang::Epsilon => Some("".into()),
        _ => None,
    }
}
