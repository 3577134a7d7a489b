//! Rules that merge operands of a union or an intersection: classes, counts of a class, repetitions.
//!
//! Invariant: every rule keeps the language; a set has one form, whichever way it was built.
//! Complexity: one pass over the operands, sorted by class and tail where counts may touch.

use super::term::{intersect_ranges, union_ranges, Term, TermId, Terms, INF};

/// The operands of one kind, sorted, if there are two or more.
pub(super) fn several(flat: &[TermId], mut meant: impl FnMut(TermId) -> bool) -> Option<Vec<TermId>> {
    let mut found: Vec<TermId> = flat.iter().copied().filter(|&x| meant(x)).collect();
    found.sort_unstable();
    (found.len() > 1).then_some(found)
}

impl Terms {
    /// Union (or intersection) of the classes among the operands, as one class.
    pub(super) fn merge_classes(&mut self, flat: &mut Vec<TermId>, union: bool) {
        let Some(classes) = several(flat, |x| matches!(self.get(x), Term::Class(_))) else { return };
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (i, &c) in classes.iter().enumerate() {
            let Term::Class(s) = *self.get(c) else { unreachable!() };
            let own = self.set(s).to_vec();
            ranges = match (i, union) {
                (0, _) => own,
                (_, true) => union_ranges(&ranges, &own),
                (_, false) => intersect_ranges(&ranges, &own),
            };
        }
        let merged = self.class(&ranges);
        flat.retain(|x| classes.binary_search(x).is_err());
        flat.push(merged);
    }

    /// `y | x x* y` is `x* y`: the form of an optional repetition in a grammar's rules.
    pub(super) fn merge_stars(&mut self, flat: &mut Vec<TermId>) {
        for i in 0..flat.len() {
            let Term::Concat(x, tail) = *self.get(flat[i]) else { continue };
            let (head, rest) = match *self.get(tail) {
                Term::Concat(head, rest) => (head, rest),
                _ => (tail, Self::EPS),
            };
            if !matches!(*self.get(head), Term::Repeat(y, 0, INF) if y == x) {
                continue;
            }
            self.spend(flat.len() as u64 / 16);
            if !flat.contains(&rest) {
                continue;
            }
            flat[i] = tail;
            flat.retain(|&y| y != rest);
            return self.merge_stars(flat);
        }
    }

    fn as_count(&self, x: TermId) -> Option<(TermId, u32, u32)> {
        match *self.get(x) {
            Term::Repeat(c, lo, hi) if matches!(self.get(c), Term::Class(_)) => Some((c, lo, hi)),
            Term::Class(_) => Some((x, 1, 1)),
            _ => None,
        }
    }

    /// `c{a,b} t | c{d,e} t` is one count where the ranges touch.
    pub(super) fn merge_counts(&mut self, flat: &mut Vec<TermId>) {
        let counted = |x: TermId| match *self.get(x) {
            Term::Concat(head, tail) => self.as_count(head).map(|(c, lo, hi)| (c, tail, lo, hi, x)),
            _ => self.as_count(x).map(|(c, lo, hi)| (c, Self::EPS, lo, hi, x)),
        };
        let mut counts: Vec<(TermId, TermId, u32, u32, TermId)> =
            flat.iter().filter_map(|&x| counted(x)).collect();
        if counts.len() < 2 {
            return;
        }
        counts.sort_unstable();
        let (mut gone, mut merged) = (Vec::new(), Vec::new());
        let mut i = 0;
        while i < counts.len() {
            let (class, tail, lo, mut hi, _) = counts[i];
            let mut j = i + 1;
            while j < counts.len()
                && (counts[j].0, counts[j].1) == (class, tail)
                && counts[j].2 <= hi.saturating_add(1)
            {
                hi = hi.max(counts[j].3);
                j += 1;
            }
            if j > i + 1 {
                gone.extend(counts[i..j].iter().map(|c| c.4));
                let one = self.repeat(class, lo, hi);
                merged.push(self.concat(one, tail));
            }
            i = j;
        }
        // all at once: there may be as many that touch as there are operands
        gone.sort_unstable();
        flat.retain(|x| gone.binary_search(x).is_err());
        flat.append(&mut merged);
    }

    /// `c{a,b} & d{e,f}` is `(c&d){max,min}`.
    pub(super) fn cut_counts(&mut self, flat: &mut Vec<TermId>) {
        let counts: Vec<(TermId, u32, u32, TermId)> =
            flat.iter().filter_map(|&x| self.as_count(x).map(|(c, lo, hi)| (c, lo, hi, x))).collect();
        if counts.len() < 2 {
            return;
        }
        let (mut lo, mut hi, mut class) = (0, INF, None);
        for &(c, a, b, _) in &counts {
            lo = lo.max(a);
            hi = hi.min(b);
            class = Some(match class {
                None => c,
                Some(prev) if prev == c => c,
                Some(prev) => {
                    let (Term::Class(s), Term::Class(t)) = (self.get(prev), self.get(c)) else {
                        // the intersection so far is already empty: only the empty string is left
                        continue;
                    };
                    let both = intersect_ranges(self.set(*s), self.set(*t));
                    self.class(&both)
                }
            });
        }
        let merged = self.repeat(class.unwrap_or(Self::EMPTY), lo, hi);
        flat.retain(|x| !counts.iter().any(|c| c.3 == *x));
        flat.push(merged);
    }
}
