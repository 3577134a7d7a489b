//! Subsumption by form: a union drops operands that another one contains, a conjunction those that contain another one.
//!
//! Purpose: the derivative of `.*a{30000}.*` after k times "a" is a union of k counts, that of `(.*[A-Z]){4}`
//! any subset of four tails. Reduced to one term each, such patterns have as many states as they count, not
//! its square or a power of two.
//! Invariant: "yes" is proven by the form of both terms; "no" means unknown.
//! Complexity: a walk along the operands' heads, for pairs of which one begins with a loop or accepts every
//! continuation.
//! Rejected: inclusion of languages by search: each union would pay for it.

use super::term::{CharSetId, Term, TermId, Terms, INF};
use crate::work;

/// Operands of one union or conjunction that are compared with each other.
const PAIRED: usize = 16;
/// Parts of a chain that one comparison looks at.
const PARTS: u32 = 24;

/// The characters of a loop that a term begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeadingLoop {
    Any,
    Of(CharSetId),
}

impl Terms {
    /// Removes the operands of a union that another one contains.
    pub(super) fn drop_covered(&mut self, flat: &mut Vec<TermId>) {
        if flat.len() > PAIRED {
            return;
        }
        work::spend(flat.len() as u64);
        let holders: Vec<TermId> = flat.iter().copied().filter(|&x| self.may_cover(x)).collect();
        for holder in holders {
            if flat.contains(&holder) {
                flat.retain(|&x| x == holder || !self.covers_cached(holder, x));
            }
        }
    }

    /// Removes the operands of a conjunction that contain another one.
    pub(super) fn drop_covering(&mut self, flat: &mut Vec<TermId>) {
        if flat.len() > PAIRED {
            return;
        }
        work::spend(flat.len() as u64);
        let holders: Vec<TermId> =
            flat.iter().copied().filter(|&x| self.negated(x).is_some() || self.may_cover(x)).collect();
        for holder in holders {
            let negated = self.negated(holder);
            let needless = flat.iter().filter(|&&x| x != holder).any(|&x| match (negated, self.negated(x)) {
                // what is not in the larger language is not in the smaller one
                (Some(y), Some(x)) => self.may_cover(x) && self.covers_cached(x, y),
                (Some(_), None) => false,
                (None, _) => self.covers_cached(holder, x),
            });
            if needless {
                flat.retain(|&x| x != holder);
            }
        }
    }

    fn negated(&self, x: TermId) -> Option<TermId> {
        match *self.get(x) {
            Term::Not(y) => Some(y),
            _ => None,
        }
    }

    fn may_cover(&self, x: TermId) -> bool {
        self.is_open(x) || self.leading_loop(x).is_some()
    }

    /// The same as [`Terms::covers`], memoised: derivatives share most of their operands.
    fn covers_cached(&mut self, a: TermId, b: TermId) -> bool {
        memo!(self.known.covered, (a, b), self.covers(a, b, &mut { PARTS }))
    }

    /// Whether the form shows that every word of `b` is one of `a`.
    fn covers(&mut self, a: TermId, mut b: TermId, left: &mut u32) -> bool {
        let leading_loop = self.leading_loop(a);
        loop {
            if a == b || a == Self::ALL {
                return true;
            }
            if *left == 0 {
                return false;
            }
            *left -= 1;
            work::spend(1);
            let ((head, tail), (other, rest)) = (self.head_and_tail(a), self.head_and_tail(b));
            if head == other && tail != Self::EPS && rest != Self::EPS && self.covers(tail, rest, left) {
                return true;
            }
            let ((x, least), (y, more)) = (self.copies(head), self.copies(other));
            if x == y && tail == rest && least <= more {
                // after n copies the tail accepts anything, or the loop of `a` can read the further copies
                let loops = leading_loop.is_some_and(|leading_loop| self.loop_covers(x, leading_loop));
                if tail == Self::ALL || loops {
                    return true;
                }
            }
            // the loop reads the head of `b`; the rest must be in the language of `a` again
            match leading_loop {
                Some(leading_loop) if self.loop_covers(other, leading_loop) => match rest {
                    Self::EPS => return matches!(self.get(a), Term::Repeat(_, 0, INF)),
                    rest => b = rest,
                },
                _ => return false,
            }
        }
    }

    /// Head and tail of a chain.
    fn head_and_tail(&self, t: TermId) -> (TermId, TermId) {
        match *self.get(t) {
            Term::Concat(x, y) => (x, y),
            _ => (t, Self::EPS),
        }
    }

    /// The repeated term, and its least number of copies.
    fn copies(&self, t: TermId) -> (TermId, u32) {
        match *self.get(t) {
            Term::Repeat(x, lo, _) if lo > 0 => (x, lo),
            _ => (t, 1),
        }
    }

    /// The loop that a term begins with: its language `L` contains `c L` for every `c` of the loop.
    fn leading_loop(&self, t: TermId) -> Option<LeadingLoop> {
        match *self.get(t) {
            Term::All => Some(LeadingLoop::Any),
            Term::Concat(x, _) => self.leading_loop(x),
            Term::Repeat(x, 0, INF) => match *self.get(x) {
                Term::Class(set) => Some(LeadingLoop::Of(set)),
                _ => None,
            },
            Term::Repeat(x, 1.., _) => self.leading_loop(x),
            _ => None,
        }
    }

    /// Whether the loop reads every word; memoised, since classes of characters may have hundreds of ranges.
    fn loop_covers(&mut self, t: TermId, leading_loop: LeadingLoop) -> bool {
        let LeadingLoop::Of(set) = leading_loop else { return true };
        memo!(self.known.read_by, (t, set), self.within(t, leading_loop, &mut { PARTS }))
    }

    /// Whether all characters of all words are among those of the loop.
    fn within(&self, t: TermId, leading_loop: LeadingLoop, left: &mut u32) -> bool {
        let LeadingLoop::Of(set) = leading_loop else { return true };
        if *left == 0 {
            return false;
        }
        *left -= 1;
        match self.get(t) {
            Term::Eps => true,
            Term::Class(own) => *own == set || self.is_subset(*own, set),
            Term::Concat(x, y) => self.within(*x, leading_loop, left) && self.within(*y, leading_loop, left),
            Term::Repeat(x, ..) => self.within(*x, leading_loop, left),
            Term::Or(xs) => xs.iter().all(|&x| self.within(x, leading_loop, left)),
            Term::Words(w) if w.hi - w.lo <= *left => {
                *left -= w.hi - w.lo;
                let words = self.word_slice(*w);
                words.iter().all(|word| {
                    let tail = &word[w.depth as usize..];
                    tail.len() <= PARTS as usize && tail.chars().all(|c| self.has_point(set, c as u32))
                })
            }
            _ => false,
        }
    }

    fn has_point(&self, set: CharSetId, cp: u32) -> bool {
        let ranges = self.set(set);
        ranges.get(ranges.partition_point(|r| r.1 < cp)).is_some_and(|r| r.0 <= cp)
    }

    fn is_subset(&self, part: CharSetId, whole: CharSetId) -> bool {
        let whole = self.set(whole);
        self.set(part).iter().all(|&(lo, hi)| {
            whole.get(whole.partition_point(|r| r.1 < lo)).is_some_and(|r| r.0 <= lo && hi <= r.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::{parse, Dialect};

    fn term(terms: &mut Terms, pattern: &str) -> TermId {
        terms.lower(&parse(pattern, Dialect::Python).expect("a pattern"))
    }

    /// The number of distinct derivatives along the texts.
    fn states(pattern: &str, texts: &[String]) -> usize {
        let mut terms = Terms::default();
        let start = term(&mut terms, pattern);
        let mut seen = std::collections::BTreeSet::new();
        for text in texts {
            let mut at = start;
            for c in text.chars() {
                at = terms.derive_raw(at, c as u32);
                seen.insert(at);
            }
        }
        seen.len()
    }

    #[test]
    fn counts_after_a_loop_are_one_state_each() {
        let text = ["a".repeat(300)];
        assert!(states("(?s).*a{300}.*", &text) <= 301);
        assert!(states("(?s).*(ab){150}.*", &["ab".repeat(150)]) <= 301);
        let letters: Vec<String> = (0..4096u32)
            .map(|n| (0..12).map(|i| if n >> i & 1 == 1 { 'A' } else { 'b' }).collect())
            .collect();
        assert!(states("(.*[A-Z]){8}(?s:.*)", &letters) <= 32);
        assert!(states("(?s)(.*A.*b){5}.*", &letters) <= 32);
    }

    #[test]
    fn what_is_dropped_from_a_union_was_in_it() {
        let mut terms = Terms::default();
        let patterns = [
            "a{3}(?s:.*)",
            "a{5}(?s:.*)",
            "[ab]*a{2}",
            "[ab]*a{2}b?",
            "b[ab]*a{2}",
            "c[ab]*a{2}",
            "[ab]*",
            "abab",
            "abc",
            "([ab]*a){2}",
            "([ab]*a){3}",
            "([ab]*a){3}b",
            "([ab]*c){3}",
            "(?s:.*)ab(?s:.*)",
            "(?s:.*)b(?s:.*)ab",
            "a{2,3}b",
            "a{4}b",
            "a{6}b",
            "a{0,3}(?s:.*)b",
        ];
        let texts: Vec<String> = (0..6u32)
            .flat_map(|n| {
                (0..3u32.pow(n))
                    .map(move |i| (0..n).map(|k| ['a', 'b', 'c'][(i / 3u32.pow(k) % 3) as usize]).collect())
            })
            .collect();
        let all: Vec<TermId> = patterns.iter().map(|p| term(&mut terms, p)).collect();
        for (i, &x) in all.iter().enumerate() {
            for (j, &y) in all.iter().enumerate() {
                let (nx, ny) = (terms.not(x), terms.not(y));
                let (either, both, neither) = (terms.or(&[x, y]), terms.and(&[x, y]), terms.and(&[nx, ny]));
                for text in &texts {
                    let (a, b) = (terms.accepts(x, text), terms.accepts(y, text));
                    let shown = format!("{} {} {text:?}", patterns[i], patterns[j]);
                    assert_eq!(terms.accepts(either, text), a | b, "or {shown}");
                    assert_eq!(terms.accepts(both, text), a & b, "and {shown}");
                    assert_eq!(terms.accepts(neither, text), !a & !b, "neither {shown}");
                    assert!(!terms.covers(x, y, &mut { PARTS }) || !b || a, "covers {shown}");
                }
            }
        }
    }
}
