//! The content of a lexical state as bytes: a key under which its masks are shared between automata.
//!
//! Two states with the same key allow the same tokens.  Counters beyond the longest token are clamped, since no
//! token can tell them apart; under `And` and `Not` a count may decide what is alive, so there it stays exact.

use super::spell::{LexId, Lexicon, Spelling};
use super::term::{Term, TermId, Terms, INF};

/// Longer contents are not worth a place in the shared table.
const LONGEST: usize = 4096;

impl Lexicon {
    /// The key of a state at a code point's border, for tokens of at most `longest` code points.
    pub fn content(&self, lex: LexId, longest: u32) -> Option<Box<[u8]>> {
        let (spelling, term) = self.term(lex)?;
        if !self.terms.is_short(term, &mut { LONGEST }) {
            return None;
        }
        let mut out = vec![match spelling {
            Spelling::Raw => 0u8,
            Spelling::Json => 1,
            Spelling::JsonAny => 2,
        }];
        self.terms.encode(term, Some(longest), &mut out).then(|| out.into())
    }
}

impl Terms {
    /// Whether the content may fit: each part of it takes two bytes at least.
    fn is_short(&self, t: TermId, left: &mut usize) -> bool {
        let own = match self.get(t) {
            Term::Words(w) => (w.hi - w.lo) as usize * 4,
            Term::Class(s) => self.set(*s).len() * 8,
            _ => 2,
        };
        if own > *left {
            return false;
        }
        *left -= own;
        match self.get(t) {
            Term::Concat(x, y) => self.is_short(*x, left) && self.is_short(*y, left),
            Term::Or(xs) | Term::And(xs) | Term::Tuple(xs) => xs.iter().all(|&x| self.is_short(x, left)),
            Term::Not(x) | Term::Repeat(x, _, _) => self.is_short(*x, left),
            _ => true,
        }
    }

    fn encode(&self, t: TermId, clamp: Option<u32>, out: &mut Vec<u8>) -> bool {
        if out.len() > LONGEST {
            return false;
        }
        let list = |tag: u8, xs: &[TermId], clamp: Option<u32>, out: &mut Vec<u8>| {
            out.push(tag);
            out.extend((xs.len() as u32).to_le_bytes());
            // operands are sorted by number, which differs between arenas: sort their contents
            let mut parts = Vec::with_capacity(xs.len());
            for &x in xs {
                let mut part = Vec::new();
                if !self.encode(x, clamp, &mut part) {
                    return false;
                }
                parts.push(part);
            }
            if tag != 10 {
                parts.sort();
            }
            out.extend(parts.concat());
            true
        };
        match self.get(t) {
            Term::Empty => out.push(0),
            Term::Eps => out.push(1),
            Term::All => out.push(2),
            Term::Class(s) => {
                let ranges = self.set(*s);
                if ranges.len() > 40 {
                    return false;
                }
                out.push(3);
                out.push(ranges.len() as u8);
                for (lo, hi) in ranges {
                    out.extend(lo.to_le_bytes());
                    out.extend(hi.to_le_bytes());
                }
            }
            Term::Words(w) => {
                if w.hi - w.lo > 128 {
                    return false;
                }
                out.push(4);
                for word in self.list_words(*w) {
                    out.extend((word.len() as u32).to_le_bytes());
                    out.extend(word.as_bytes());
                }
                out.extend(u32::MAX.to_le_bytes());
            }
            Term::Concat(x, y) => {
                out.push(5);
                return self.encode(*x, clamp, out) && self.encode(*y, clamp, out);
            }
            Term::Or(xs) => return list(6, xs, clamp, out),
            Term::And(xs) => return list(7, xs, None, out),
            Term::Not(x) => {
                out.push(8);
                return self.encode(*x, None, out);
            }
            Term::Repeat(x, lo, hi) => {
                let (mut lo, mut hi) = (*lo, *hi);
                if let Some(longest) = clamp {
                    lo = lo.min(longest + 1);
                    if hi > longest {
                        hi = INF;
                    }
                }
                out.push(9);
                out.extend(lo.to_le_bytes());
                out.extend(hi.to_le_bytes());
                return self.encode(*x, clamp, out);
            }
            Term::Tuple(xs) => return list(10, xs, clamp, out),
            Term::Num(set, text) => {
                out.push(11);
                return self.numbers.encode(*set, *text, out) && out.len() <= LONGEST;
            }
            Term::Spans(..) => return false,
        }
        out.len() <= LONGEST
    }
}
