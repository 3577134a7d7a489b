//! Longest-match conflicts: tokens in which one language ends while another reads on, or ends there too and is preferred.
//!
//! Two languages that begin alike are walked side by side as long as both live.  Where both are wide (a plain scalar and a
//! comment of YAML), the pair of states leads back to itself under most characters, so only the few other characters are
//! visited, as [`super::charwalk`] does for one language.
//! Invariant: of the tokens that are text, the same as the byte walk finds ([`lost_by_bytes`]); no lexeme that could follow
//! reads a token that is no text.
//! Complexity: nodes of the characters that lead a pair elsewhere, and what is below them; the byte walk takes 10 to
//! 20 times as long.
//! Memory: the visited pairs, as long as the walk.

use std::cell::OnceCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::self_loops::SelfLoop;
use super::suffixes::TokenSuffixSet;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId};
use crate::vocab::{Chars, NodeId, Trie, Vocabulary};
use crate::work;

/// Nodes from which on a walk by characters pays, and from which on it pays to compute a pair's loop.
const TEXTS: usize = 256;
const LOOP_NODES: u32 = 128;

/// `terms`: the language that loses, and the other; `first`: the bytes that both may begin with; `chosen`:
/// where both end, the other is preferred.
pub fn conflicts(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    trie: &Trie,
    suffixes: TokenSuffixSet,
    terms: (TermId, TermId),
    first: &ByteSet,
    chosen: bool,
) -> Vec<u32> {
    let lexes = (lexicon.at(Spelling::Raw, terms.0), lexicon.at(Spelling::Raw, terms.1));
    let texts = std::ptr::eq(trie, vocab.trie());
    let mut walk = PairWalk { lexicon, vocab, chosen, pairs: FxHashMap::default(), out: Vec::new() };
    for byte in first.and(&suffixes.bytes).iter() {
        let Some(child) = trie.child(suffixes.node, byte) else { continue };
        let steps = (walk.lexicon.step(lexes.0, byte), walk.lexicon.step(lexes.1, byte));
        let (Step::Stay(a), Step::Stay(b)) = steps else { continue };
        match vocab.chars().index_of(child).filter(|_| texts && trie.subtree_size(child) >= TEXTS) {
            Some(at) => walk.visit_below(at, (a, b)),
            None => lost_by_bytes(walk.lexicon, trie, child, (a, b), chosen, &mut walk.out),
        }
    }
    let mut out = walk.out;
    out.sort_unstable();
    out
}

/// The walk byte by byte.
fn lost_by_bytes(
    lexicon: &mut Lexicon,
    trie: &Trie,
    node: NodeId,
    at: (LexId, LexId),
    chosen: bool,
    out: &mut Vec<u32>,
) {
    let (bytes, nodes) = trie.children(node);
    let ends = lexicon.outcome(at.0) != Lexicon::NONE;
    let both = chosen && ends && lexicon.outcome(at.1) != Lexicon::NONE;
    for (&byte, &child) in bytes.iter().zip(nodes) {
        match (lexicon.step(at.0, byte), lexicon.step(at.1, byte)) {
            (Step::Stay(a), Step::Stay(b)) => lost_by_bytes(lexicon, trie, child, (a, b), chosen, out),
            (Step::Stay(_), _) => {}
            (_, Step::Stay(_)) if ends => out.extend(trie.subtree_tokens(child).iter().map(|t| t.0)),
            (_, Step::Stay(_)) => {}
            _ if both => out.extend(trie.subtree_tokens(child).iter().map(|t| t.0)),
            _ => {}
        }
    }
}

/// The effect of a character on a pair, beside `DEAD` (nothing is lost below).
const STAYS: LexId = LexId(1);
const OTHER: LexId = LexId(2);

/// The states of both languages between code points.
type StatePair = (LexId, LexId);

struct ConflictPair {
    /// The first ends here; and the second ends here, too, and is preferred.
    ends: bool,
    both: bool,
    /// The code points under which both stay what they are, those under which nothing is lost, and the others.
    row: OnceCell<Box<[(u32, LexId)]>>,
    /// The same by characters, once it was computed.
    self_loop: OnceCell<SelfLoop>,
}

struct PairWalk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    chosen: bool,
    pairs: FxHashMap<StatePair, Rc<ConflictPair>>,
    out: Vec<u32>,
}

impl<'a> PairWalk<'a> {
    fn pair(&mut self, states: StatePair) -> Rc<ConflictPair> {
        memo!(self.pairs, states, {
            let ends = self.lexicon.outcome(states.0) != Lexicon::NONE;
            let both = self.chosen && ends && self.lexicon.outcome(states.1) != Lexicon::NONE;
            Rc::new(ConflictPair { ends, both, row: OnceCell::new(), self_loop: OnceCell::new() })
        })
    }

    /// Visits the nodes below one that leads to both states.
    fn visit_below(&mut self, at: u32, states: StatePair) {
        let chars: &'a Chars = self.vocab.chars();
        let (from, to) = (at + 1, chars.end(at));
        if from == to {
            return;
        }
        let pair = self.pair(states);
        let self_loop = self.self_loop(states, &pair, to - from);
        let mut next = from;
        if let Some(self_loop) = self_loop.filter(|self_loop| self_loop.few_outside) {
            for &at in self_loop.outside_nodes(chars, from, to) {
                if at >= next {
                    self.visit_elsewhere(at, states, &pair);
                    next = chars.end(at);
                }
            }
            return;
        }
        work::spend(1 + u64::from(to - from) / 16);
        while next < to {
            let c = chars.char_of(next);
            match self_loop {
                Some(self_loop) if self_loop.has(c) => next += 1,
                Some(self_loop) if self_loop.is_dead(c) => next = chars.end(next),
                _ => {
                    self.visit_elsewhere(next, states, &pair);
                    next = chars.end(next);
                }
            }
        }
    }

    /// The loop of a pair with so many nodes below.
    fn self_loop<'p>(
        &mut self,
        states: StatePair,
        pair: &'p ConflictPair,
        nodes: u32,
    ) -> Option<&'p SelfLoop> {
        if pair.self_loop.get().is_some() || nodes < LOOP_NODES {
            return pair.self_loop.get();
        }
        let row = pair.row.get_or_init(|| self.row(states, pair.ends));
        if row.iter().all(|run| run.1 != STAYS) {
            return None;
        }
        let tail = if pair.ends { None } else { Some(false) };
        Some(pair.self_loop.get_or_init(|| SelfLoop::find(self.vocab.chars(), STAYS, row, false, |_| tail)))
    }

    fn row(&mut self, states: StatePair, ends: bool) -> Box<[(u32, LexId)]> {
        let rows = (self.lexicon.row(states.0), self.lexicon.row(states.1));
        let (mut i, mut j) = (0, 0);
        let mut row: Vec<(u32, LexId)> = Vec::new();
        while i < rows.0.len() && j < rows.1.len() {
            let ((end_a, a), (end_b, b)) = (rows.0[i], rows.1[j]);
            let what = match (a != Lexicon::DEAD, b != Lexicon::DEAD) {
                _ if (a, b) == states => STAYS,
                (true, true) => OTHER,
                (false, _) if ends => OTHER,
                _ => Lexicon::DEAD,
            };
            let end = end_a.min(end_b);
            match row.last_mut() {
                Some(last) if last.1 == what => last.0 = end,
                _ => row.push((end, what)),
            }
            i += usize::from(end_a <= end_b);
            j += usize::from(end_b <= end_a);
        }
        row.into()
    }

    /// A node whose character leads the pair elsewhere, with all that is below.
    fn visit_elsewhere(&mut self, at: u32, (mut a, mut b): StatePair, pair: &ConflictPair) {
        let chars: &'a Chars = self.vocab.chars();
        let (bytes, size) = self.bytes(chars.node(at));
        for (i, &byte) in bytes[4 - size..].iter().enumerate() {
            match (self.lexicon.step(a, byte), self.lexicon.step(b, byte)) {
                (Step::Stay(next_a), Step::Stay(next_b)) => (a, b) = (next_a, next_b),
                (Step::Stay(_), _) => return,
                // within a code point no language ends
                (_, reads) => {
                    let lost = if matches!(reads, Step::Stay(_)) { pair.ends } else { pair.both };
                    if i == 0 && lost {
                        self.out.extend_from_slice(chars.tokens(at, chars.end(at)));
                    }
                    return;
                }
            }
        }
        if chars.end(at) > at + 1 {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.visit_below(at, (a, b)));
        }
    }

    /// The bytes of the character that leads to a node: the last so many of four.
    fn bytes(&self, mut node: NodeId) -> ([u8; 4], usize) {
        let trie = self.vocab.trie();
        let mut bytes = [0; 4];
        let mut size = 0;
        loop {
            let byte = trie.byte(node);
            size += 1;
            bytes[4 - size] = byte;
            if !(0x80..0xC0).contains(&byte) || size == 4 {
                return (bytes, size);
            }
            node = trie.parent(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::Terms;
    use crate::mask::suffixes::TokenSuffixSets;
    use crate::regex::{parse, Dialect};

    /// Every text of up to four of these after an `a`, and those cut off in their last character.
    fn vocabulary() -> Vocabulary {
        let letters = ["a", "b", " ", "#", "é", "中", "丙"];
        let mut texts: Vec<Vec<u8>> = vec![b"a".to_vec()];
        let mut from = 0;
        for _ in 0..4 {
            let upto = texts.len();
            for i in from..upto {
                let begun = texts[i].clone();
                texts.extend(letters.iter().map(|c| [&begun, c.as_bytes()].concat()));
            }
            from = upto;
        }
        let cut = texts.iter().filter(|t| t[t.len() - 1] >= 0x80).map(|t| t[..t.len() - 1].to_vec());
        let mut all: Vec<Vec<u8>> = cut.chain(texts.iter().cloned()).collect();
        all.sort_unstable();
        all.dedup();
        let end = all.len() as u32;
        let tokens = all.into_iter().chain([b"</s>".to_vec()]).map(Vec::into_boxed_slice).collect();
        Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary")
    }

    #[test]
    fn a_walk_by_characters_finds_what_the_bytes_tell() {
        let vocab = vocabulary();
        let patterns = [
            "[ab]+",
            "a[^#]*",
            "[^#]+",
            "a( #|b)*",
            "aab?",
            "a[é中]*",
            "a[é丙 ]*b?",
            "a.{2}",
            "(a|aé|a中b)",
            "a[^中]*#?",
        ];
        let mut lexicon = Lexicon::new(Terms::default());
        let mut suffix_sets = TokenSuffixSets::default();
        let all = suffix_sets.below(&vocab, Trie::ROOT);
        let (suffixes, trie) = (suffix_sets.get(all), vocab.trie());
        let child = trie.child(Trie::ROOT, b'a').expect("all texts begin so");
        assert!(trie.subtree_size(child) >= TEXTS);
        let terms = patterns.map(|p| lexicon.terms.lower(&parse(p, Dialect::Python).expect("a pattern")));
        let mut lost = 0;
        for (x, y, chosen) in
            terms.iter().flat_map(|&x| terms.iter().flat_map(move |&y| [(x, y, false), (x, y, true)]))
        {
            let first = ByteSet::of(b"a");
            let found = conflicts(&mut lexicon, &vocab, trie, suffixes, (x, y), &first, chosen);
            let mut by_bytes = Vec::new();
            let begun = (lexicon.at(Spelling::Raw, x), lexicon.at(Spelling::Raw, y));
            if let (Step::Stay(a), Step::Stay(b)) = (lexicon.step(begun.0, b'a'), lexicon.step(begun.1, b'a'))
            {
                lost_by_bytes(&mut lexicon, trie, child, (a, b), chosen, &mut by_bytes);
            }
            by_bytes.sort_unstable();
            lost += by_bytes.len();
            assert_eq!(found, by_bytes, "{x:?} beside {y:?}, {chosen}");
        }
        assert!(lost > 10_000);
    }
}
