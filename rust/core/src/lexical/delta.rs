//! Derivatives, for every code point at once.
//!
//! `delta(t)` is a list of runs: code points up to `end` lead to `to` (Owens, Reppy, Turon 2009, with the
//! classes computed together with the derivative instead of before it). Two forms are memoised: `raw`, as the
//! rules give it, and pruned, where a target that accepts nothing is `Empty`; only terms with `And` or `Not`
//! differ. Rejected: a representative per class: it derives the same term once for each class.
//! Invariant: runs cover all code points, in order.  Complexity: once for each term, the number of its parts'
//! runs.
//! Memory: both forms for each queried term, often one shared list.

use super::term::{Term, TermId, Terms, INF, MAX_CP};
use crate::heap_size;
use rustc_hash::FxHashMap;

/// Code points up to and including `end` (from the one after the run before) lead to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub end: u32,
    pub to: TermId,
}

/// With so many lists or more, a merge waits for memory at each list.
const MANY: usize = 64;

pub type Runs = std::sync::Arc<[Run]>;

/// Derivatives by term id, as far as they were queried.
#[derive(Clone, Default)]
struct DerivativeTable {
    runs: Vec<Option<Runs>>,
    boxed: usize,
}

impl DerivativeTable {
    #[inline]
    fn get(&self, t: TermId) -> Option<&Runs> {
        self.runs.get(t.0 as usize)?.as_ref()
    }

    fn put(&mut self, t: TermId, runs: Runs) {
        let at = t.0 as usize;
        if at >= self.runs.len() {
            self.runs.resize(at + 1, None);
        }
        // each form counts its half of a shared list
        self.boxed += heap_size::slice(&runs) / std::sync::Arc::strong_count(&runs);
        self.runs[at] = Some(runs);
    }
}

heap_size::tables!(DerivativeTable: runs; this => this.boxed);

/// Both forms of the derivatives.
#[derive(Clone, Default)]
pub(super) struct Derivatives {
    raw: DerivativeTable,
    pruned: DerivativeTable,
}

heap_size::tables!(Derivatives: raw, pruned);

impl Terms {
    /// The derivative by one code point, dead targets included.
    pub fn derive_raw(&mut self, t: TermId, cp: u32) -> TermId {
        let runs = self.delta_raw(t);
        runs[runs.partition_point(|r| r.end < cp)].to
    }

    /// The derivative by one code point; `Empty` exactly when nothing can follow.
    pub fn derive(&mut self, t: TermId, cp: u32) -> TermId {
        let runs = self.delta(t);
        runs[runs.partition_point(|r| r.end < cp)].to
    }

    /// All derivatives; targets that accept nothing are `Empty`.
    pub fn delta(&mut self, t: TermId) -> Runs {
        if let Some(runs) = self.derived.pruned.get(t) {
            return runs.clone();
        }
        let raw = self.delta_raw(t);
        let runs = if self.is_boolean(t) {
            let mut list = raw.to_vec();
            let mut last = None;
            for run in list.iter_mut() {
                run.to = match last {
                    Some((from, to)) if from == run.to => to,
                    _ => {
                        let to = self.prune(run.to);
                        last = Some((run.to, to));
                        to
                    }
                };
            }
            join(list)
        } else {
            raw
        };
        self.derived.pruned.put(t, runs.clone());
        runs
    }

    /// The term itself, or `Empty` when it accepts nothing; for a tuple, member by member.
    pub fn prune(&mut self, t: TermId) -> TermId {
        if let Term::Tuple(xs) = self.get(t) {
            let mut kept: Vec<TermId> = xs.to_vec();
            let mut changed = false;
            for x in kept.iter_mut().filter(|x| **x != Self::EMPTY) {
                let pruned = self.prune(*x);
                changed |= pruned != *x;
                *x = pruned;
            }
            return if changed { self.tuple(&kept) } else { t };
        }
        if self.live(t) {
            t
        } else {
            Self::EMPTY
        }
    }

    pub(super) fn delta_raw(&mut self, t: TermId) -> Runs {
        if let Some(runs) = self.derived.raw.get(t) {
            return runs.clone();
        }
        let runs: Runs = stacker::maybe_grow(64 << 10, 1 << 20, || self.compute(t));
        self.spend(2 + runs.len() as u64 / 4);
        self.derived.raw.put(t, runs.clone());
        runs
    }

    fn compute(&mut self, t: TermId) -> Runs {
        let term = self.get(t).clone();
        match term {
            Term::Empty | Term::Eps => one(Self::EMPTY),
            Term::All => {
                // surrogates are not scalar values: no text holds them
                [
                    Run { end: 0xD7FF, to: Self::ALL },
                    Run { end: 0xDFFF, to: Self::EMPTY },
                    Run { end: MAX_CP, to: Self::ALL },
                ]
                .into()
            }
            Term::Class(s) => {
                let mut runs = Vec::new();
                let mut next = 0;
                for &(lo, hi) in self.set(s) {
                    if lo > next {
                        runs.push(Run { end: lo - 1, to: Self::EMPTY });
                    }
                    runs.push(Run { end: hi, to: Self::EPS });
                    next = hi + 1;
                }
                if next <= MAX_CP {
                    runs.push(Run { end: MAX_CP, to: Self::EMPTY });
                }
                runs.into()
            }
            Term::Words(w) => self.words_runs(w).into(),
            Term::TrieNode(node) => runs_of_points(&node.next).into(),
            Term::Concat(x, y) => {
                let head = self.delta_raw(x);
                let head = self.map(&head, |s, a| s.concat(a, y));
                if !self.nullable(x) {
                    return head;
                }
                let tail = self.delta_raw(y);
                self.zip(&[head, tail], |s, ab| s.or(ab))
            }
            Term::Or(xs) => {
                let parts: Vec<Runs> = xs.iter().map(|&x| self.delta_raw(x)).collect();
                self.zip(&parts, |s, ab| s.or(ab))
            }
            Term::And(xs) => {
                let parts: Vec<Runs> = xs.iter().map(|&x| self.delta_raw(x)).collect();
                self.zip(&parts, |s, ab| s.and(ab))
            }
            Term::Tuple(xs) => {
                // most members of a wide tuple soon become empty
                let held: Vec<usize> = (0..xs.len()).filter(|&i| xs[i] != Self::EMPTY).collect();
                let parts: Vec<Runs> = held.iter().map(|&i| self.delta_raw(xs[i])).collect();
                let mut next = vec![Self::EMPTY; xs.len()];
                self.zip(&parts, |s, ab| {
                    held.iter().zip(ab).for_each(|(&i, &x)| next[i] = x);
                    s.tuple(&next)
                })
            }
            Term::Not(x) => {
                let inner = self.delta_raw(x);
                let all = self.delta_raw(Self::ALL);
                self.zip(&[inner, all], |s, ab| if ab[1] == Self::EMPTY { Self::EMPTY } else { s.not(ab[0]) })
            }
            Term::Repeat(x, lo, hi) => {
                let rest_hi = if hi == INF { INF } else { hi - 1 };
                let rest = self.repeat(x, lo.saturating_sub(1), rest_hi);
                let head = self.delta_raw(x);
                self.map(&head, |s, a| s.concat(a, rest))
            }
            Term::Num(set, text) => self.number_runs(set, text).into(),
            Term::State(table, state) => self.state_runs(table, state).into(),
        }
    }

    fn map(&mut self, runs: &Runs, mut f: impl FnMut(&mut Self, TermId) -> TermId) -> Runs {
        self.zip(std::slice::from_ref(runs), |s, a| f(s, a[0]))
    }

    /// Merges several lists of runs. `f` maps one target of each list to a target, and is called once for
    /// each combination: Unicode classes have hundreds of ranges and few distinct targets.
    fn zip(&mut self, parts: &[Runs], mut f: impl FnMut(&mut Self, &[TermId]) -> TermId) -> Runs {
        let mut at = vec![0usize; parts.len()];
        // contiguous: the least of many is found without access to each list
        let mut ends: Vec<u32> = parts.iter().map(|p| p[0].end).collect();
        let mut targets: Vec<TermId> = parts.iter().map(|p| p[0].to).collect();
        let mut to = f(self, &targets);
        let mut known: FxHashMap<Vec<TermId>, TermId> = FxHashMap::default();
        known.insert(targets.clone(), to);
        let mut out: Vec<Run> = Vec::new();
        let mut looked = 8 * parts.len() as u64;
        // a step over few lists costs less: many lists are far apart in memory
        let near = if parts.len() < MANY { 32 } else { 8 };
        loop {
            looked += 8 + parts.len() as u64;
            let end = ends.iter().copied().fold(MAX_CP, u32::min);
            match out.last_mut() {
                Some(run) if run.to == to => run.end = end,
                _ => out.push(Run { end, to }),
            }
            if end >= MAX_CP {
                self.spend(1 + looked / near);
                return out.into();
            }
            let mut changed = false;
            for (k, part) in parts.iter().enumerate() {
                if ends[k] == end {
                    at[k] += 1;
                    let run = part[at[k]];
                    changed |= targets[k] != run.to;
                    (ends[k], targets[k]) = (run.end, run.to);
                }
            }
            if changed {
                to = match known.get(&targets) {
                    Some(&to) => to,
                    None => {
                        let to = f(self, &targets);
                        known.insert(targets.clone(), to);
                        to
                    }
                };
            }
        }
    }
}

/// Runs of single code points, in ascending order, with their targets; all others lead to `EMPTY`.
pub(crate) fn runs_of_points(points: &[(u32, TermId)]) -> Vec<Run> {
    let mut runs = Vec::with_capacity(points.len() * 2 + 1);
    let mut next = 0;
    for &(cp, to) in points {
        if cp > next {
            runs.push(Run { end: cp - 1, to: Terms::EMPTY });
        }
        runs.push(Run { end: cp, to });
        next = cp + 1;
    }
    if next <= MAX_CP {
        runs.push(Run { end: MAX_CP, to: Terms::EMPTY });
    }
    runs
}

fn one(to: TermId) -> Runs {
    [Run { end: MAX_CP, to }].into()
}

/// Joins neighbours with the same target.
fn join(list: Vec<Run>) -> Runs {
    let mut out: Vec<Run> = Vec::with_capacity(list.len());
    for run in list {
        match out.last_mut() {
            Some(last) if last.to == run.to => last.end = run.end,
            _ => out.push(run),
        }
    }
    out.into()
}
