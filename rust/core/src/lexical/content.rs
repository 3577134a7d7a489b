//! The content of a lexical state: a key under which its masks are shared between automata.
//!
//! Two states with the same key allow the same tokens. Counters beyond the longest token are clamped, since
//! no token can tell them apart; under `And` and `Not` a count may decide what is alive, so there it stays
//! exact. The key is a 128-bit hash (two SipHashes, whose random keys each process draws) of the keys of the
//! parts. It is memoised for each term, so that a new state costs only its new terms.
//! Rejected: the content itself, as bytes: exact, but it took kilobytes for each state of a large pattern (a
//! `date-time` took 100 µs a state), and larger patterns had none.
//! Memory: a key for each term that was queried.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::OnceLock;

use super::spell::{LexId, Lexicon, Spelling};
use super::term::{Term, TermId, Terms, INF};

/// A term with more operands or ranges, or more words than [`MOST_WORDS`], has no key.
const WIDEST: usize = 1024;
const MOST_WORDS: u32 = 128;
/// Terms without a memoised key that one call may visit: a state that needs more has no key.
const PATIENCE: u32 = 300;

/// Bytes that most contents of one term take.
const USUAL: usize = 64;

/// The key of a state's language, independent of the ids in its automaton.
pub type Content = u128;

/// The keys of terms, with clamped (true) or exact counters; for tokens of at most `longest` code points.
#[derive(Clone, Default)]
pub struct Contents {
    known: rustc_hash::FxHashMap<(TermId, bool), Option<Content>>,
    longest: u32,
    left: u32,
}

crate::heap_size::tables!(Contents: known);

impl Lexicon {
    /// The key of a state at a code point's border, for tokens of at most `longest` code points.
    pub fn content(&mut self, lex: LexId, longest: u32) -> Option<Content> {
        let (spelling, term) = self.term(lex)?;
        if self.terms.known.contents.longest != longest {
            self.terms.known.contents = Contents { longest, ..Contents::default() };
        }
        self.terms.known.contents.left = PATIENCE;
        let content = self.terms.content(term, true)?;
        let spelling = match spelling {
            Spelling::Raw => 0u8,
            Spelling::Json => 1,
            Spelling::JsonAny => 2,
            Spelling::JsonNatural => 3,
        };
        Some(key(&(spelling, content)))
    }
}

impl Terms {
    fn content(&mut self, t: TermId, clamp: bool) -> Option<Content> {
        if let Some(&known) = self.known.contents.known.get(&(t, clamp)) {
            return known;
        }
        if self.known.contents.left == 0 {
            return None;
        }
        self.known.contents.left -= 1;
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.find_content(t, clamp));
        if found.is_some() || self.known.contents.left > 0 {
            self.known.contents.known.insert((t, clamp), found);
        }
        found
    }

    fn find_content(&mut self, t: TermId, clamp: bool) -> Option<Content> {
        let mut out: Vec<u8> = Vec::with_capacity(USUAL);
        match self.get(t).clone() {
            Term::Empty => out.push(0),
            Term::Eps => out.push(1),
            Term::All => out.push(2),
            Term::Class(s) => {
                let ranges = self.set(s);
                if ranges.len() > WIDEST {
                    return None;
                }
                out.push(3);
                ranges.iter().for_each(|(lo, hi)| {
                    out.extend(lo.to_le_bytes());
                    out.extend(hi.to_le_bytes());
                });
            }
            Term::Words(w) => {
                if w.hi - w.lo > MOST_WORDS {
                    return None;
                }
                out.push(4);
                for word in self.word_slice(w).iter().map(|word| &word[w.depth as usize..]) {
                    out.extend((word.len() as u32).to_le_bytes());
                    out.extend(word.as_bytes());
                }
            }
            Term::TrieNode(node) => {
                out.extend([13, node.ends as u8]);
                node.next.iter().for_each(|(cp, _)| out.extend(cp.to_le_bytes()));
                let tails: Vec<TermId> = node.next.iter().map(|n| n.1).collect();
                self.parts(14, &tails, clamp, &mut out)?
            }
            Term::Concat(x, y) => self.parts(5, &[x, y], clamp, &mut out)?,
            Term::Or(xs) => self.parts(6, &xs, clamp, &mut out)?,
            Term::And(xs) => self.parts(7, &xs, false, &mut out)?,
            Term::Not(x) => self.parts(8, &[x], false, &mut out)?,
            Term::Repeat(x, mut lo, mut hi) => {
                if clamp {
                    let digits = self.is_digits(x).then_some(self.numbers.reach.digits);
                    let longest = digits.unwrap_or(u32::MAX).min(self.known.contents.longest);
                    lo = lo.min(longest + 1);
                    hi = if hi > longest { INF } else { hi };
                }
                out.push(12);
                out.extend(lo.to_le_bytes());
                out.extend(hi.to_le_bytes());
                self.parts(9, &[x], clamp, &mut out)?;
            }
            Term::Tuple(xs) => self.parts(10, &xs, clamp, &mut out)?,
            Term::Num(set, text) => {
                out.push(11);
                if !self.numbers.encode(set, text, &mut out) {
                    return None;
                }
            }
            Term::State(table, state) => {
                out.push(15);
                out.extend(state.to_le_bytes());
                out.extend(self.automata[table as usize].content()?.to_le_bytes());
            }
        }
        Some(key(&out[..]))
    }

    fn is_digits(&self, x: TermId) -> bool {
        matches!(self.get(x), Term::Class(s) if self.set(*s) == [(0x30, 0x39)])
    }

    fn parts(&mut self, tag: u8, xs: &[TermId], clamp: bool, out: &mut Vec<u8>) -> Option<()> {
        if xs.len() > WIDEST {
            return None;
        }
        out.push(tag);
        let mut parts: Vec<Content> =
            xs.iter().map(|&x| self.content(x, clamp)).collect::<Option<Vec<Content>>>()?;
        // operands are sorted by id, and ids differ between arenas
        if matches!(tag, 6 | 7) {
            parts.sort_unstable();
        }
        parts.iter().for_each(|part| out.extend_from_slice(&part.to_le_bytes()));
        Some(())
    }
}

/// A key by hash.
pub(super) fn key<T: Hash + ?Sized>(what: &T) -> Content {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let [a, b] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    (a.hash_one(what) as u128) << 64 | b.hash_one(what) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(build: impl Fn(&mut Terms) -> TermId) -> Option<Content> {
        let mut lexicon = Lexicon::default();
        let term = build(&mut lexicon.terms);
        let lex = lexicon.at(Spelling::Json, term);
        lexicon.content(lex, 20)
    }

    fn either(terms: &mut Terms, first: &str, second: &str) -> TermId {
        let (first, second) = (terms.literal(first), terms.literal(second));
        let (many, more) = (terms.repeat(first, 0, 9), terms.repeat(second, 0, 9));
        terms.or(&[many, more])
    }

    #[test]
    fn equal_languages_of_two_automata_have_one_key_whatever_was_numbered_first() {
        let one = content(|terms| either(terms, "ab", "cd"));
        assert!(one.is_some());
        assert_eq!(one, content(|terms| either(terms, "cd", "ab")));
        assert_ne!(one, content(|terms| either(terms, "cd", "ac")));
    }

    #[test]
    fn texts_up_to_the_same_words_have_one_key() {
        let upto = |words: &'static [&str]| {
            content(move |terms| {
                terms.literal("something before");
                terms.find(&words.iter().map(|word| Box::from(*word)).collect::<Vec<_>>())
            })
        };
        assert!(upto(&["<a>"]).is_some());
        assert_eq!(upto(&["<a>", "b"]), upto(&["<a>", "b"]));
        assert_ne!(upto(&["<a>"]), upto(&["<a>", "b"]));
    }

    #[test]
    fn counters_that_no_token_reaches_are_one() {
        let upto = |most: u32| {
            content(move |terms| {
                let word = terms.literal("ab");
                terms.repeat(word, 0, most)
            })
        };
        assert_eq!(upto(21), upto(5_000));
        assert_ne!(upto(20), upto(19));
    }

    #[test]
    fn what_is_large_has_no_key_and_its_parts_have_theirs() {
        let mut lexicon = Lexicon::default();
        let (mut term, mut part) = (Terms::EPS, Terms::EPS);
        for i in 0..2_000u32 {
            let word = lexicon.terms.literal(&format!("w{i}"));
            let some = lexicon.terms.repeat(word, 0, 2);
            term = lexicon.terms.concat(some, term);
            part = if i == 50 { term } else { part };
        }
        let (all, part) = (lexicon.at(Spelling::Json, term), lexicon.at(Spelling::Json, part));
        assert_eq!(lexicon.content(all, 20), None);
        assert!(lexicon.content(part, 20).is_some());
        assert_eq!(lexicon.content(all, 20), None);
    }
}
