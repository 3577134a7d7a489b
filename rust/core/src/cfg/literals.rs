//! Literals in a row that together begin a longer one: `..` before `...`.
//!
//! Longest match goes on with the longer literal as long as it can; where it can't, what was read is the shorter ones.

use super::grammar::Grammar;
use crate::lexical::{TermId, Terms};

/// Literals in a row that together begin a longer one.
pub(super) struct LiteralRun {
    pub longer: u32,
    pub literals: Vec<u32>,
    pub word: TermId,
}

/// The rows of a grammar: each beginning of a literal that is no literal itself, cut by longest match.
pub(super) fn rows(grammar: &Grammar, terms: &mut Terms) -> Vec<LiteralRun> {
    let known: Vec<(u32, &str)> =
        (0u32..).zip(&grammar.terminals).filter_map(|(i, t)| Some((i, t.literal.as_deref()?))).collect();
    let mut out = Vec::new();
    for &(longer, text) in &known {
        for (end, _) in text.char_indices().skip(2) {
            let word = &text[..end];
            let mut rest = word;
            let mut literals = Vec::new();
            while let Some(&(t, first)) =
                known.iter().filter(|k| rest.starts_with(k.1)).max_by_key(|k| k.1.len())
            {
                literals.push(t);
                rest = &rest[first.len()..];
            }
            if rest.is_empty() && literals.len() > 1 {
                out.push(LiteralRun { longer, literals, word: terms.literal(word) });
            }
        }
    }
    out
}
