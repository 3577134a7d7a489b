//! The shortest text that completes a lexeme.
//!
//! Complexity: A*, at most `SEARCH` states.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::spell::{LexId, Lexicon, Step};
use super::term::TermId;

/// Most bytes of a completion.
pub const LONGEST: usize = 1 << 20;

/// States that the search for a short completion may visit.
const SEARCH: usize = 200_000;
/// The same in a number before its completion is tried by arithmetic, and after that fails: each state of a
/// number costs arithmetic on its digits.
const SEARCH_NUMBERS: usize = 64;
const SEARCH_DIGITS: usize = 20_000;

/// A shortest text (in characters) from a lexical state to an accepting one, and that state: A* with the
/// form's lower bound on the missing length; `None` where none of at most `most` characters is found.
pub fn shortest_lexeme(lexicon: &mut Lexicon, from: LexId, most: usize) -> Option<(Vec<u8>, LexId)> {
    let mut prefix = Vec::new();
    let mut at = from;
    // complete a partly read code point or escape: any byte that is not dead will do
    while lexicon.term(at).is_none() {
        let (byte, next) = (0..=255u8).find_map(|b| match lexicon.step(at, b) {
            Step::Stay(next) => Some((b, next)),
            _ => None,
        })?;
        prefix.push(byte);
        at = next;
    }
    // the digits of a fitting number may be many, and an exponent that fits is always near
    let term = lexicon.term(at).map(|t| t.1);
    let number = term.is_some_and(|term| lexicon.terms.is_number(term));
    if number && lexicon.outcome(at) == Lexicon::NONE {
        if let Some((tail, end)) = told_end(lexicon, at, term) {
            prefix.extend_from_slice(tail.as_bytes());
            return Some((prefix, end));
        }
    }
    let mut search = match term {
        _ if number => SEARCH_NUMBERS,
        Some(term) if lexicon.terms.is_numbers(term) => SEARCH_DIGITS,
        _ => SEARCH,
    };
    let missing =
        |lexicon: &Lexicon, lex: LexId| lexicon.term(lex).map_or(0, |t| lexicon.terms.least_missing(t.1));
    let mut parent: FxHashMap<LexId, (LexId, char)> = FxHashMap::default();
    let mut seen: FxHashMap<LexId, u32> = FxHashMap::from_iter([(at, 0)]);
    // of equal bounds the deepest, then the first found
    let mut queue = BinaryHeap::from([(Reverse(0), 0, Reverse(0), at)]);
    while let Some((Reverse(bound), depth, _, lex)) = queue.pop() {
        crate::work::spend(4);
        if depth > seen[&lex] {
            continue;
        }
        if bound as usize > most {
            return None;
        }
        if lexicon.outcome(lex) != Lexicon::NONE {
            let mut chars = Vec::new();
            let mut back = lex;
            while let Some(&(before, c)) = parent.get(&back) {
                chars.push(c);
                back = before;
            }
            let json = lexicon.is_string(lex);
            for c in chars.into_iter().rev() {
                spell(c, json, &mut prefix);
            }
            return Some((prefix, lex));
        }
        if seen.len() > search {
            if let Some((tail, end)) = told_end(lexicon, at, term) {
                prefix.extend_from_slice(tail.as_bytes());
                return Some((prefix, end));
            }
            if search != SEARCH_NUMBERS {
                return None;
            }
            search = SEARCH_DIGITS;
        }
        let depth = depth + 1;
        for (c, next) in lexicon.representatives(lex) {
            if seen.get(&next).is_none_or(|&found| depth < found) {
                seen.insert(next, depth);
                parent.insert(next, (lex, c));
                let bound = bound.max(depth + missing(lexicon, next));
                queue.push((Reverse(bound), depth, Reverse(parent.len()), next));
            }
        }
    }
    None
}

/// The completion of a number by arithmetic, cut at its first accepting state, and that state: else the
/// distance recorded for an accepting state on the way would be too great.
fn told_end(lexicon: &mut Lexicon, at: LexId, term: Option<TermId>) -> Option<(String, LexId)> {
    let mut tail = lexicon.terms.number_tail(term?)?;
    let mut end = at;
    for (read, byte) in tail.bytes().enumerate() {
        let Step::Stay(next) = lexicon.step(end, byte) else { return None };
        end = next;
        if lexicon.outcome(end) != Lexicon::NONE {
            tail.truncate(read + 1);
            break;
        }
    }
    Some((tail, end))
}

/// A character as UTF-8, escaped where a JSON string demands it.
fn spell(c: char, json: bool, out: &mut Vec<u8>) {
    if json && (c < ' ' || c == '"' || c == '\\') {
        let quoted = serde_json::to_string(&c.to_string()).expect("a string");
        out.extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
    } else {
        let mut buf = [0; 4];
        out.extend_from_slice(c.encode_utf8(&mut buf).as_bytes());
    }
}
