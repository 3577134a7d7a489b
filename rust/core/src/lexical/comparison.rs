//! The base of a state: a simpler language; the state's mask is that of the base with differences.
//!
//! "Any string but these keys", "at most 20 characters", "a match somewhere inside", "one of several
//! branches' strings" allow nearly the tokens of a plain class of characters; a pattern with a bound on its
//! length allows nearly those of the pattern. See [`crate::mask::lexmask::LexMask::differ`].

use rustc_hash::FxHashSet;

use super::term::{union_ranges, Term, TermId, Terms, INF};

/// Terms that the search for an alphabet may visit.
const PARTS: usize = 256;

/// What a state is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub term: TermId,
    /// Every state of the base can reach an accepting one within so many code points.
    pub eccentricity: u32,
    /// The state's language is the base's, restricted to these lengths.
    pub bounds: Option<(u32, u32)>,
    /// The state stays alive (not dead) on the same texts as the base.
    pub alive: bool,
    /// On texts of at most so many code points, both are alive or neither, and both accept or neither.
    pub upto: Option<u32>,
}

impl Terms {
    /// The base: a simpler language that contains every word of the term.
    pub fn base(&mut self, t: TermId) -> Option<Comparison> {
        memo!(self.known.bases, t, self.find_base(t))
    }

    fn find_base(&mut self, t: TermId) -> Option<Comparison> {
        match self.get(t).clone() {
            Term::Repeat(c, lo, hi) if hi > 1 && (lo, hi) != (0, INF) && self.is_class(c) => {
                let term = self.star(c);
                Some(Comparison {
                    term,
                    eccentricity: 0,
                    bounds: Some((lo, hi)),
                    alive: hi == INF,
                    upto: None,
                })
            }
            Term::And(xs) if !self.counts_inside(&xs) => self.bounded(&xs),
            _ => {
                if let Some((term, upto)) = self.endless(t) {
                    return Some(Comparison {
                        term,
                        eccentricity: 0,
                        bounds: None,
                        alive: false,
                        upto: Some(upto),
                    });
                }
                if let Term::And(xs) = self.get(t).clone() {
                    return self.bounded(&xs);
                }
                // a check of the form comes first: it is cheaper than the alphabet, which visits all parts
                if !self.total(t, None) {
                    return None;
                }
                let alphabet = self.alphabet(t)?;
                let term = self.star(alphabet);
                (term != t && self.total(t, Some(alphabet))).then_some(Comparison {
                    term,
                    eccentricity: 0,
                    bounds: None,
                    alive: true,
                    upto: None,
                })
            }
        }
    }

    /// The base of a conjunction: without its bounds on length and its excluded finite sets.
    fn bounded(&mut self, xs: &[TermId]) -> Option<Comparison> {
        let (mut bounds, mut words, mut rest) = (None, false, Vec::new());
        for &x in xs {
            match *self.get(x) {
                Term::Repeat(c, lo, hi) if self.is_any(c) => bounds = Some((lo, hi)),
                Term::Not(y) if self.lists_words(y) => words = true,
                _ => rest.push(x),
            }
        }
        if rest.len() == xs.len() {
            return None;
        }
        let term = self.and(&rest);
        let eccentricity = self.remaining_bound(term)?;
        // a term with a lower bound on length stays alive only where arbitrarily long words can follow
        let grows = term == Self::ALL
            || self.is_open(term)
            || matches!(self.get(term), Term::Repeat(c, 0, INF) if self.is_class(*c));
        let plain = bounds.filter(|b| !words && (b.0 == 0 || grows));
        Some(Comparison {
            term,
            eccentricity,
            bounds: plain,
            alive: bounds.is_none() && term == Self::ALL,
            upto: None,
        })
    }

    /// Whether some operand may have counters inside, beside bounds on the length of the whole.
    fn counts_inside(&self, xs: &[TermId]) -> bool {
        xs.iter().any(|&x| match self.get(x) {
            Term::Repeat(c, ..) => !self.is_class(*c),
            Term::Concat(..) | Term::Or(_) | Term::Tuple(_) => true,
            _ => false,
        })
    }

    /// Whether the term, by its form, is every string but some listed ones.
    pub fn lacks_words(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::All => true,
            Term::Not(x) => self.lists_words(*x),
            Term::And(xs) => xs.iter().all(|&x| self.lacks_words(x)),
            _ => false,
        }
    }

    /// The words that a term lacks, if it is every string but those: the ones that fit; in a trie, with every
    /// prefix.
    pub fn missing_words(&self, t: TermId, fits: &mut dyn FnMut(&str) -> bool) -> Option<Vec<Box<str>>> {
        match self.get(t) {
            Term::All => Some(Vec::new()),
            Term::Not(x) => match self.get(*x) {
                Term::TrieNode(node) => Some(self.branch_words(node, fits)),
                _ => Some(self.finite_words(*x)?.into_iter().filter(|w| fits(w)).collect()),
            },
            Term::And(xs) => {
                let lists: Option<Vec<_>> = xs.iter().map(|&x| self.missing_words(x, fits)).collect();
                lists.map(|lists| lists.concat())
            }
            _ => None,
        }
    }

    pub(super) fn is_class(&self, c: TermId) -> bool {
        matches!(self.get(c), Term::Class(_))
    }

    /// `rest` and `most` of a term `rest & .{0,most}`.
    pub(super) fn length_limit(&self, t: TermId) -> Option<(TermId, u32)> {
        let Term::And(xs) = self.get(t) else { return None };
        let most = |x: TermId| match self.get(x) {
            Term::Repeat(c, 0, hi) if self.is_any(*c) => Some(*hi),
            _ => None,
        };
        match **xs {
            [x, y] => most(x).map(|most| (y, most)).or_else(|| most(y).map(|most| (x, most))),
            _ => None,
        }
    }

    fn is_any(&self, c: TermId) -> bool {
        matches!(self.get(c), Term::Class(s) if self.set(*s) == [(0, 0xD7FF), (0xE000, super::term::MAX_CP)])
    }

    /// A class with all code points of the term's words, from its form; `None` where that does not tell.
    fn alphabet(&mut self, t: TermId) -> Option<TermId> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut stack = vec![t];
        let mut seen = FxHashSet::default();
        while let Some(t) = stack.pop() {
            if !seen.insert(t) {
                continue;
            }
            if seen.len() > PARTS {
                return None;
            }
            match self.get(t) {
                Term::Class(s) => ranges = union_ranges(&ranges, self.set(*s)),
                Term::All | Term::Not(_) => return Some(self.any()),
                Term::Concat(x, y) => stack.extend([*x, *y]),
                Term::Or(xs) | Term::Tuple(xs) | Term::And(xs) => stack.extend(xs.iter()),
                Term::Repeat(x, _, _) => stack.push(*x),
                Term::Words(_) | Term::TrieNode(_) => {
                    if self.finite_count(t).is_none_or(|count| count > 64) {
                        return None;
                    }
                    for word in self.finite_words(t).unwrap_or_default() {
                        let own: Vec<(u32, u32)> = {
                            let mut own: Vec<u32> = word.chars().map(|c| c as u32).collect();
                            own.sort_unstable();
                            own.into_iter().map(|c| (c, c)).collect()
                        };
                        ranges = union_ranges(&ranges, &own);
                    }
                }
                Term::Empty | Term::Eps => {}
                Term::Num(..) | Term::State(..) => return None,
            }
        }
        (!ranges.is_empty()).then(|| self.class(&ranges))
    }

    /// Whether, by the form, every text over the alphabet is a prefix of a word; `None`: over some alphabet.
    fn total(&self, t: TermId, alphabet: Option<TermId>) -> bool {
        match self.get(t) {
            Term::All => true,
            // the head is never dead and can always reach an accepting state, so the tail can always follow
            Term::Concat(x, y) => self.total(*x, alphabet) && !self.is_boolean(*y),
            Term::Or(xs) | Term::Tuple(xs) => xs.iter().any(|&x| self.total(x, alphabet)),
            Term::Not(x) => self.lists_words(*x),
            Term::Repeat(c, _, INF) => alphabet.is_none_or(|a| *c == a),
            Term::And(xs) => {
                // every prefix has infinitely many words: some remain whatever finite set is excluded
                let listed = |x: &&TermId| matches!(self.get(**x), Term::Not(y) if self.lists_words(*y));
                let mut others = xs.iter().filter(|x| !listed(x));
                others.next().is_none_or(|&x| self.total(x, alphabet)) && others.next().is_none()
            }
            _ => false,
        }
    }

    /// Whether the base is the endless term of `t`, and both agree on texts of at most `height` code points.
    pub fn agrees_up_to(&mut self, t: TermId, base: TermId, height: u32) -> bool {
        self.endless(t).is_some_and(|(endless, upto)| endless == base && height <= upto)
    }

    /// Whether the term accepts exactly the words that the base does, up to `height` code points.
    pub fn equals_up_to(&self, t: TermId, base: TermId, height: u32) -> bool {
        t == base
            || match (self.get(t), self.get(base)) {
                (Term::Repeat(c, 0, hi), Term::Repeat(d, 0, INF)) => c == d && *hi >= height,
                (Term::Repeat(c, 0, hi), Term::All) => *hi >= height && self.is_any(*c),
                _ => false,
            }
    }

    /// Whether the term stays alive on every text of `height` code points on which the base does.
    pub fn keeps_alive(&self, t: TermId, base: TermId, eccentricity: u32, height: u32) -> bool {
        match self.get(t) {
            Term::Repeat(c, _, hi) => *hi >= height && self.fills_class(*c, base),
            Term::And(xs) => {
                let far = |x: &TermId| {
                    matches!(self.get(*x), Term::Repeat(c, 0, hi)
                        if *hi >= height.saturating_add(eccentricity) && self.is_any(*c))
                };
                let others: Vec<TermId> = xs.iter().copied().filter(|x| !far(x)).collect();
                match self.get(base) {
                    Term::And(ys) => others.iter().all(|x| ys.contains(x)),
                    _ => others == [base],
                }
            }
            _ => false,
        }
    }

    fn fills_class(&self, c: TermId, base: TermId) -> bool {
        match self.get(base) {
            Term::All => self.is_any(c),
            Term::Repeat(d, 0, INF) => *d == c,
            _ => false,
        }
    }
}
