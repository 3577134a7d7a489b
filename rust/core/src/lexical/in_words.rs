//! What may come next inside a lexeme, for messages: "a digit", not the classes of an automaton.

use super::term::{union_ranges, Term, MAX_CP};
use super::{LexId, Lexicon, TermId, Terms};

/// Most entries of a list in a message.
pub(crate) const SHOWN: usize = 8;
/// Longest text that is shown whole, in characters.
const LONG: usize = 60;

type Range = (u32, u32);

/// Sets that have a name, wider ones first.
const NAMED: [(&str, &[Range]); 6] = [
    ("a letter", &[(0x41, 0x5A), (0x61, 0x7A)]),
    ("a lower-case letter", &[(0x61, 0x7A)]),
    ("an upper-case letter", &[(0x41, 0x5A)]),
    ("a digit", &[(0x30, 0x39)]),
    ("whitespace", &[(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)]),
    ("a character beyond ASCII", &[(0x80, 0xD7FF), (0xE000, MAX_CP)]),
];

impl Lexicon {
    /// What can follow from a state: the remaining texts if they are few, else kinds of characters.
    pub fn in_words(&mut self, lex: LexId) -> Vec<String> {
        let Some((_, term)) = self.term(lex) else { return vec![self.begun_in_words(lex).into()] };
        if let Some(words) = self.terms.few_words(term) {
            return words.iter().filter(|w| !w.is_empty()).map(|w| quoted(w)).collect();
        }
        let ranges = self.terms.next_characters(term);
        characters(&ranges)
    }
}

impl Terms {
    /// The texts of a term where they are few and short.
    pub(crate) fn few_words(&self, term: TermId) -> Option<Vec<Box<str>>> {
        let mut words = match self.get(term) {
            Term::Tuple(parts) => {
                let mut all = Vec::new();
                for &part in parts.iter() {
                    all.extend(self.finite_words(part)?);
                }
                all
            }
            _ => self.finite_words(term)?,
        };
        crate::lists::sort_unique(&mut words);
        (words.len() <= SHOWN && words.iter().all(|w| w.chars().count() <= LONG)).then_some(words)
    }

    /// The first characters of the term's texts.
    fn next_characters(&mut self, term: TermId) -> Vec<Range> {
        let (mut out, mut from) = (Vec::new(), 0);
        for run in self.delta(term).iter() {
            let dead = match self.get(run.to) {
                Term::Tuple(parts) => parts.iter().all(|&p| p == Self::EMPTY),
                _ => run.to == Self::EMPTY,
            };
            if !dead {
                out.push((from, run.end));
            }
            from = run.end.saturating_add(1);
        }
        union_ranges(&out, &[])
    }
}

/// A text in quotes, as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string")
}

fn one(cp: u32) -> String {
    char::from_u32(cp).map_or_else(|| format!("U+{cp:04X}"), |c| quoted(&c.to_string()))
}

/// A set of characters, in words.
fn characters(ranges: &[Range]) -> Vec<String> {
    let missing = complement(ranges);
    let left_out: u32 = missing.iter().map(|r| r.1 - r.0 + 1).sum();
    if left_out == 0 {
        return vec!["any character".into()];
    }
    if left_out <= 4 {
        let each: Vec<String> = missing.iter().flat_map(|r| r.0..=r.1).map(one).collect();
        return vec![format!("any character but {}", each.join(", "))];
    }
    let mut rest = ranges.to_vec();
    let mut words = Vec::new();
    for (name, set) in NAMED {
        if set.iter().all(|part| rest.iter().any(|r| r.0 <= part.0 && part.1 <= r.1)) {
            words.push(name.to_string());
            rest = without(&rest, set);
        }
    }
    // what no name covers is shown as single characters and ranges
    let singles = rest.iter().map(|&(lo, hi)| match hi - lo {
        0 => one(lo),
        _ if (0x30..=0x39).contains(&lo) && hi <= 0x39 => {
            format!("a digit from {} to {}", lo - 0x30, hi - 0x30)
        }
        1 => format!("{} or {}", one(lo), one(hi)),
        _ if lo >= 0x80 => "some characters beyond ASCII".into(),
        _ => format!("{} to {}", one(lo), one(hi)),
    });
    for word in singles {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    shortened(words, "other characters")
}

/// A list of at most [`SHOWN`] entries.
pub(crate) fn shortened(mut words: Vec<String>, others: &str) -> Vec<String> {
    if words.len() > SHOWN {
        let more = words.len() - SHOWN + 1;
        words.truncate(SHOWN - 1);
        words.push(format!("{more} {others}"));
    }
    words
}

/// The code points outside the ranges, without surrogates.
fn complement(ranges: &[Range]) -> Vec<Range> {
    without(&[(0, 0xD7FF), (0xE000, MAX_CP)], ranges)
}

fn without(ranges: &[Range], removed: &[Range]) -> Vec<Range> {
    let mut left = ranges.to_vec();
    for &(lo, hi) in removed {
        left = left
            .into_iter()
            .flat_map(|(a, b)| {
                let below = (a < lo).then(|| (a, b.min(lo.saturating_sub(1))));
                let above = (b > hi).then(|| (a.max(hi + 1), b));
                if hi < a || lo > b {
                    vec![(a, b)]
                } else {
                    below.into_iter().chain(above).collect()
                }
            })
            .collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::Spelling;
    use crate::regex::{parse, Dialect};

    fn told(pattern: &str) -> String {
        let mut lexicon = Lexicon::default();
        let term = lexicon.terms.lower(&parse(pattern, Dialect::Python).expect(pattern));
        let lex = lexicon.at(Spelling::Raw, term);
        lexicon.in_words(lex).join("; ")
    }

    #[test]
    fn sets_of_characters_have_names() {
        for (pattern, words) in [
            ("[0-9]+", "a digit"),
            ("[a-z]+", "a lower-case letter"),
            ("[a-zA-Z_]+", "a letter; \"_\""),
            ("[1-5]+", "a digit from 1 to 5"),
            ("[34]+", "a digit from 3 to 4"),
            ("[ab]+", "\"a\" or \"b\""),
            ("(?s).+", "any character"),
            (".+", "any character but \"\\n\""),
            ("[^<>]*", "any character but \"<\", \">\""),
            (r"\s*x", "whitespace; \"\\u000b\" or \"\\f\"; \"\\u001c\" to \"\\u001f\"; \"x\"; \"\u{85}\"; \"\u{a0}\"; \"\u{1680}\"; 5 other characters"),
            ("yes|no", "\"no\"; \"yes\""),
            ("-?[0-9]+", "a digit; \"-\""),
        ] {
            if pattern.contains('\\') {
                assert!(told(pattern).starts_with("whitespace; "), "{}", told(pattern));
            } else {
                assert_eq!(told(pattern), words, "{pattern}");
            }
        }
    }
}
