//! Sets of Unicode scalar values: the alphabet side of every pattern.
//!
//! Invariant: the ranges of a [`CharSet`] are sorted, disjoint, not adjacent, inclusive, and never
//! touch the surrogates D800..=DFFF, so equal sets are equal vectors. Operations are linear in the
//! number of ranges (union sorts first). Unicode tables (`\p{..}`, categories, simple case folding)
//! come from `regex-syntax`; what is written out here is only what the dialects define themselves.
//! Rejected: sets over bytes; UTF-8 is the concern of the lexical layer.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The greatest scalar value.
const MAX: u32 = 0x10_FFFF;

/// A set of Unicode scalar values as sorted, disjoint, inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharSet(pub Vec<(u32, u32)>);

impl CharSet {
    /// No character.
    pub fn empty() -> Self {
        Self(Vec::new())
    }

    /// Every scalar value.
    pub fn full() -> Self {
        Self(vec![(0, 0xD7FF), (0xE000, MAX)])
    }

    /// One character; the empty set for a surrogate.
    pub fn single(c: u32) -> Self {
        Self::from_ranges(&[(c, c)])
    }

    /// The union of inclusive ranges in any order; surrogates are left out.
    pub fn from_ranges(ranges: &[(u32, u32)]) -> Self {
        let mut sorted: Vec<(u32, u32)> = Vec::with_capacity(ranges.len() + 1);
        for &(lo, hi) in ranges {
            for (lo, hi) in [(lo, hi.min(0xD7FF)), (lo.max(0xE000), hi.min(MAX))] {
                if lo <= hi {
                    sorted.push((lo, hi));
                }
            }
        }
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (lo, hi) in sorted {
            match merged.last_mut() {
                // U+D7FF and U+E000 stay two ranges, so that no range spans the surrogates.
                Some(last) if lo <= last.1 || (lo == last.1 + 1) => last.1 = last.1.max(hi),
                _ => merged.push((lo, hi)),
            }
        }
        Self(merged)
    }

    /// The characters of a string.
    pub fn of(chars: &str) -> Self {
        Self::from_ranges(&chars.chars().map(|c| (c as u32, c as u32)).collect::<Vec<_>>())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.0 == [(0, 0xD7FF), (0xE000, MAX)]
    }

    pub fn contains(&self, c: u32) -> bool {
        let i = self.0.partition_point(|&(_, hi)| hi < c);
        self.0.get(i).is_some_and(|&(lo, _)| lo <= c)
    }

    /// The only member, if there is exactly one.
    pub fn as_single(&self) -> Option<char> {
        match self.0[..] {
            [(lo, hi)] if lo == hi => char::from_u32(lo),
            _ => None,
        }
    }

    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges(&[&self.0[..], &other.0[..]].concat())
    }

    /// The complement among scalar values.
    pub fn negate(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(lo, hi) in &self.0 {
            if next < lo {
                gaps.push((next, lo - 1));
            }
            next = hi + 1;
        }
        if next <= MAX {
            gaps.push((next, MAX));
        }
        Self::from_ranges(&gaps)
    }

    pub fn intersect(&self, other: &Self) -> Self {
        Self(intersect_ranges(&self.0, &other.0))
    }

    pub fn minus(&self, other: &Self) -> Self {
        self.intersect(&other.negate())
    }

    /// Closed under Unicode simple case folding.
    pub fn fold_case(&self) -> Self {
        let mut class =
            ClassUnicode::new(self.0.iter().filter_map(|&(lo, hi)| {
                Some(ClassUnicodeRange::new(char::from_u32(lo)?, char::from_u32(hi)?))
            }));
        class.case_fold_simple();
        Self::from_class(&class)
    }

    /// The set of a one-character pattern in the syntax of `regex-syntax`, such as `\p{Greek}`;
    /// `None` where that crate does not know it.
    pub fn from_syntax(pattern: &str) -> Option<Self> {
        match regex_syntax::parse(pattern).ok()?.kind() {
            HirKind::Class(Class::Unicode(class)) => Some(Self::from_class(class)),
            HirKind::Class(Class::Bytes(class)) => Some(Self::from_ranges(
                &class.iter().map(|r| (r.start().into(), r.end().into())).collect::<Vec<_>>(),
            )),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).ok()?;
                let mut chars = text.chars();
                let c = chars.next()?;
                chars.next().is_none().then(|| Self::single(c as u32))
            }
            _ => None,
        }
    }

    pub(super) fn from_class(class: &ClassUnicode) -> Self {
        Self::from_ranges(&class.iter().map(|r| (r.start() as u32, r.end() as u32)).collect::<Vec<_>>())
    }
}

/// Intersection of two sorted lists of inclusive ranges.
pub fn intersect_ranges(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        let (lo, hi) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if lo <= hi {
            out.push((lo, hi));
        }
        if a[i].1 < b[j].1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// The partition of all characters by some sets.
pub fn parted<'s>(sets: impl IntoIterator<Item = &'s CharSet>) -> Vec<CharSet> {
    sets.into_iter().fold(vec![CharSet::full()], |parts, set| part(&parts, set))
}

/// Refines a partition by one more set.
pub fn part(parts: &[CharSet], set: &CharSet) -> Vec<CharSet> {
    let both = parts.iter().flat_map(|old| [old.intersect(set), old.minus(set)]);
    both.filter(|part| !part.is_empty()).collect()
}
