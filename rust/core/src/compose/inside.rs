//! Special tokens that end texts, in a grammar that goes on after them: a generator would stop there.
//!
//! Complexity: one pass over the rules of each host, two where it stands both at the end and before
//! something.

use rustc_hash::FxHashSet;

use super::{CompositeAutomaton, Part, TokenSpelling};
use crate::cfg::grammar::Symbol;
use crate::error::{Error, Kind};

impl CompositeAutomaton {
    /// An error where a token that ends texts is required in the middle of one.
    pub(super) fn end_in_the_middle(&mut self) -> Option<Error> {
        let mut seen: FxHashSet<(u32, bool)> = FxHashSet::default();
        let mut parts = vec![(self.root, false)];
        while let Some((part, followed)) = parts.pop() {
            if !seen.insert((part, followed)) {
                continue;
            }
            match &self.parts[part as usize] {
                Part::Special { text, spelled: TokenSpelling::Unknown, ends: true, .. } if followed => {
                    let message = format!(
                        "the special token {text:?} ends texts in this vocabulary, and the grammar goes on after it; \
                         give a vocabulary in which it is no end (eos=...), or write its characters (tf.literal)"
                    );
                    return Some(Error::new(Kind::VocabularyError, message));
                }
                Part::Tokens { names, ends: true, .. } if followed => {
                    let message = format!(
                        "the token {} ends texts in this vocabulary, and the grammar goes on after it; give a \
                         vocabulary in which it is no end (eos=...)",
                        names[0]
                    );
                    return Some(Error::new(Kind::VocabularyError, message));
                }
                &Part::OuterGrammar(host) => self.parts_within(host, followed, &mut parts),
                _ => {}
            }
        }
        None
    }

    /// The parts of a host, each with whether something must follow it.
    fn parts_within(&mut self, host: u32, followed: bool, out: &mut Vec<(u32, bool)>) {
        let grammar = &self.chart(host).grammar;
        let mut seen: FxHashSet<(u32, bool)> = FxHashSet::default();
        let mut rules = vec![(grammar.start, followed)];
        while let Some((rule, followed)) = rules.pop() {
            if !seen.insert((rule, followed)) {
                continue;
            }
            for &expansion in &grammar.by_rule[rule as usize] {
                let expansion = &grammar.expansions[expansion as usize];
                for (i, symbol) in (0u32..).zip(expansion.symbols.iter()) {
                    let followed = followed || i + 1 < expansion.optional_from;
                    match *symbol {
                        Symbol::Rule(rule) => rules.push((rule, followed)),
                        Symbol::Terminal(terminal) => {
                            let part = grammar.terminals[terminal as usize].part;
                            out.extend(part.map(|part| (part, followed)));
                        }
                    }
                }
            }
        }
    }
}
