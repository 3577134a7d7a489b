//! The walk by characters below a state that counts them: `[0-9a-f]{8}-`.
//!
//! Each character of the class leads to another state, so there is no self-loop ([`super::self_loops`]). But
//! these states treat all characters alike, and the depth of a node determines which of them reads it.
//! Invariant: what [`CharWalk::visit_below`] finds state by state.
//! Complexity: one array access for each node inside the class; each state is expanded once.

use std::rc::Rc;

use super::charwalk::{CharTable, CharWalk};
use super::self_loops::{begins, SelfLoop};
use crate::lexical::{LexId, Lexicon};
use crate::vocab::Chars;
use crate::work;

/// Nodes below from which on a state is checked for counting. The vocabularies of tests are small.
const NODES: u32 = if cfg!(test) { 4 } else { 512 };

/// The states after 0, 1, 2 characters of a class.
struct Counted {
    states: Vec<(LexId, Rc<CharTable>)>,
    /// The last of them treats characters differently.
    ends: bool,
    /// The class.
    class: SelfLoop,
}

impl CharTable {
    /// The target of all allowed characters, if it is one state.
    fn only(&self) -> Option<LexId> {
        let mut live = self.row.iter().map(|run| run.1).filter(|&to| to != Lexicon::DEAD);
        let first = live.next()?;
        live.all(|to| to == first).then_some(first)
    }

    /// Whether both states allow the same characters, and each leads to one state under them.
    fn counts_like(&self, other: &CharTable) -> bool {
        let same = |(a, b): (&(u32, LexId), &(u32, LexId))| {
            a.0 == b.0 && (a.1 == Lexicon::DEAD) == (b.1 == Lexicon::DEAD)
        };
        self.row.len() == other.row.len()
            && self.row.iter().zip(other.row.iter()).all(same)
            && other.only().is_some()
    }
}

impl CharWalk<'_> {
    /// What [`CharWalk::visit_below`] does, where the state counts characters; false where it does not.
    pub(super) fn below_counted(&mut self, at: u32, lex: LexId, known: &CharTable, preset: bool) -> bool {
        let chars: &Chars = self.vocab.chars();
        if self.ends.is_some() || chars.end(at) - at < NODES {
            return false;
        }
        let Some(next) = known.only().filter(|&next| next != lex) else { return false };
        let after = self.known(next);
        if !known.counts_like(&after) || after.only() == Some(next) {
            return false;
        }
        let lives = |tail| Some(begins(&known.row, tail));
        let class = SelfLoop::find(chars, next, &known.row, true, lives);
        let first = self.known(lex);
        let mut counted = Counted { states: vec![(lex, first), (next, after)], ends: false, class };
        match chars.children(at) {
            Some(children) if !preset => {
                for kid in self.live_children(children, known) {
                    self.sweep_counted((kid, chars.end(kid)), chars.depth(at), &mut counted, preset);
                }
            }
            _ => self.sweep_counted((at + 1, chars.end(at)), chars.depth(at), &mut counted, preset),
        }
        true
    }

    /// The nodes from..to, below one of this depth at which the first state stands.
    fn sweep_counted(&mut self, (from, to): (u32, u32), top: u32, counted: &mut Counted, preset: bool) {
        let chars: &Chars = self.vocab.chars();
        work::spend(1 + u64::from(to - from) / 16);
        let (mut at, mut run) = (from, from);
        while at < to {
            let (c, depth) = (chars.char_of(at), (chars.depth(at) - top) as usize);
            if counted.class.has(c) && !self.is_last(depth, counted) {
                at += 1;
                continue;
            }
            if !preset {
                self.set(run, at);
            }
            let (lex, known) = counted.states[depth - 1].clone();
            match counted.class.is_dead(c) {
                true => self.visit_dead(chars.node(at), lex, preset),
                false => self.visit_elsewhere(at, lex, &known, preset),
            }
            at = chars.end(at);
            run = at;
        }
        if !preset {
            self.set(run, to);
        }
    }

    /// Whether so many characters lead to a state that does not count like those before; the states up to there are
    /// made.
    fn is_last(&mut self, depth: usize, counted: &mut Counted) -> bool {
        while !counted.ends && counted.states.len() <= depth {
            let (_, last) = counted.states[counted.states.len() - 1].clone();
            let next = last.only().expect("it counts like those before");
            let known = self.known(next);
            counted.ends = !last.counts_like(&known) || known.only() == Some(next);
            counted.states.push((next, known));
        }
        counted.ends && depth + 1 >= counted.states.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::lexical::{Lexicon, Spelling};
    use crate::mask::lexmask::LexMask;
    use crate::mask::within::{SubtreeReading, Within};
    use crate::vocab::{Trie, Vocabulary};

    /// Characters in and out of the classes, halves of some, and what ends a string or begins an escape.
    const PIECES: &[&[u8]] = &[
        b"a",
        b"b",
        b"7",
        b"-",
        b" ",
        "é".as_bytes(),
        b"\xc3",
        "日".as_bytes(),
        b"\xe6\x97",
        b"\"",
        b"\\",
        b"\\u00",
        b"\n",
    ];

    const PATTERNS: &[&str] = &[
        "^[a-b]{3}-[ab]{2}$",
        "^[a-z0-9é]{2,5}$",
        "^[ab7]{1,3}é?$",
        "^.{4}$",
        "^([ab]{2}){2}x?",
        "^[^-]{3}(-[^b]{2})*$",
        "[ab]{4}",
    ];

    fn ids(within: &Within) -> Vec<u32> {
        match within {
            Within::Few(ids) => ids.to_vec(),
            Within::Many(..) => unreachable!("the vocabulary is small"),
        }
    }

    proptest! {
        #[test]
        fn the_walk_by_bytes_finds_the_same(
            pieces in prop::collection::vec(
                prop::collection::vec(prop::sample::select(PIECES), 1..7), 1..60
            ),
            pattern in prop::sample::select(PATTERNS),
            spelling in prop::sample::select(vec![Spelling::Json, Spelling::JsonAny, Spelling::JsonNatural]),
            free in any::<bool>(),
        ) {
            let tokens = pieces.iter().map(|token| token.concat().into()).chain([Box::from(*b"</s>")]);
            let tokens: Vec<Box<[u8]>> = tokens.collect();
            let end = tokens.len() as u32 - 1;
            let vocab = Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary");
            let mut lexicon = Lexicon::default();
            let lang = crate::regex::parse(pattern, crate::regex::Dialect::Ecma).expect(pattern);
            let term = lexicon.terms.lower(&lang);
            let lex = lexicon.at(spelling, term);
            let any = lexicon.at(spelling, crate::lexical::Terms::ALL);
            let judge = LexMask::build(&mut lexicon, &vocab, Trie::ROOT, lex);
            let base = LexMask::build(&mut lexicon, &vocab, Trie::ROOT, any);
            let at = SubtreeReading { lexicon: &mut lexicon, vocab: &vocab, node: Trie::ROOT, lex };
            let found = LexMask::by_chars(at, free.then_some(&base)).expect("at the border of a code point");
            prop_assert_eq!(ids(&found.within), ids(&judge.within));
            let exits = |mask: &LexMask| {
                let mut all: Vec<_> = mask.all_exits().map(|(e, outcome)| (e.node, e.length, outcome.to_vec())).collect();
                all.sort();
                all
            };
            prop_assert_eq!(exits(&found), exits(&judge));
        }
    }
}
