//! Liveness: does a term accept anything at all?
//!
//! A term without `And`, `Not` is empty only if it is `Empty`: the constructors see to that.  Others are
//! searched breadth first over their derivatives until one accepts; what was met on the way is answered with
//! it.  A bound on length is taken apart first, because walking the counter would visit a term a count:
//! `R & .{lo,hi}` needs the lengths of R's words, not its words.  The search has a budget; without an answer
//! the term counts as live, and the question is counted in `unproven`.

use rustc_hash::FxHashMap;

use super::term::{Term, TermId, Terms, INF};

/// Terms that one question may visit.
const BUDGET: usize = 20_000;

impl Terms {
    /// Whether some text is accepted.
    pub fn live(&mut self, t: TermId) -> bool {
        if !self.is_boolean(t) {
            return t != Self::EMPTY;
        }
        if self.nullable(t) {
            return true;
        }
        if let Some(&known) = self.live.get(&t) {
            return known;
        }
        let answer = stacker::maybe_grow(128 << 10, 1 << 20, || self.decide(t));
        if !self.overflow {
            self.live.insert(t, answer);
        }
        answer
    }

    fn decide(&mut self, t: TermId) -> bool {
        match self.get(t).clone() {
            Term::Or(xs) | Term::Tuple(xs) => xs.iter().any(|&x| self.live(x)),
            Term::Concat(x, y) => self.live(x) && self.live(y),
            Term::Repeat(x, lo, _) => lo == 0 || self.live(x),
            Term::Not(x) if self.finite_words(x).is_some() => true,
            Term::And(xs) => match self.split_length(&xs) {
                Some((rest, lo, hi)) => self.has_length(rest, lo, hi),
                None => self.search(t),
            },
            _ => self.search(t),
        }
    }

    fn search(&mut self, start: TermId) -> bool {
        let mut parent: FxHashMap<TermId, TermId> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([start]);
        parent.insert(start, start);
        while let Some(t) = queue.pop_front() {
            let runs = self.delta_raw(t);
            for run in runs.iter() {
                if run.to == Self::EMPTY || parent.contains_key(&run.to) {
                    continue;
                }
                parent.insert(run.to, t);
                let known = self.live.get(&run.to).copied();
                if self.nullable(run.to) || !self.is_boolean(run.to) || known == Some(true) {
                    let mut at = run.to;
                    while at != start {
                        self.live.insert(at, true);
                        at = parent[&at];
                    }
                    return true;
                }
                if known == Some(false) {
                    continue;
                }
                queue.push_back(run.to);
            }
            if self.overflow || parent.len() > BUDGET {
                self.unproven += 1;
                return true;
            }
        }
        for t in parent.into_keys() {
            self.live.insert(t, false);
        }
        false
    }

    /// `And` of a bound on length and the rest.
    fn split_length(&mut self, xs: &[TermId]) -> Option<(TermId, u32, u32)> {
        let any = self.any();
        let at = xs.iter().position(|&x| matches!(*self.get(x), Term::Repeat(c, _, _) if c == any))?;
        let Term::Repeat(_, lo, hi) = *self.get(xs[at]) else { unreachable!() };
        let rest: Vec<TermId> = xs.iter().copied().filter(|&x| x != xs[at]).collect();
        Some((self.and(&rest), lo, hi))
    }

    /// Whether R has a word with a length in `lo..=hi`.
    fn has_length(&mut self, rest: TermId, lo: u32, hi: u32) -> bool {
        if self.some_length(rest).is_some_and(|n| (lo..=hi).contains(&n)) {
            return true;
        }
        match self.least_length(rest) {
            None => return false,
            Some(least) if least > hi => return false,
            Some(least) if least >= lo => return true,
            _ => {}
        }
        if self.unbounded_at_will(rest) && hi == INF {
            return true;
        }
        self.walk_levels(rest, lo, hi)
    }

    /// The length of some word, without a search: alternatives that need one are passed over.
    fn some_length(&mut self, t: TermId) -> Option<u32> {
        if !self.is_boolean(t) || self.nullable(t) {
            return self.least_length(t);
        }
        match self.get(t).clone() {
            Term::Concat(x, y) => {
                let rest = stacker::maybe_grow(128 << 10, 1 << 20, || self.some_length(y))?;
                Some(self.some_length(x)?.saturating_add(rest))
            }
            Term::Or(xs) => xs.iter().filter_map(|&x| self.some_length(x)).min(),
            Term::Repeat(x, lo, _) => Some(self.some_length(x)?.saturating_mul(lo)),
            _ => None,
        }
    }

    /// Sets of terms reached after k code points, until `lo..=hi` is reached or the sets repeat.
    fn walk_levels(&mut self, start: TermId, lo: u32, hi: u32) -> bool {
        let mut seen: FxHashMap<Vec<TermId>, u32> = FxHashMap::default();
        let mut history: Vec<bool> = Vec::new();
        let mut level = vec![start];
        let mut work = 0;
        for k in 0.. {
            let accepts = level.iter().any(|&t| self.nullable(t));
            if k >= lo && accepts {
                return true;
            }
            if level.is_empty() || k >= hi {
                return false;
            }
            if let Some(&first) = seen.get(&level) {
                let period = k - first;
                return (k.max(lo)..=hi.min(k.max(lo).saturating_add(period)))
                    .any(|n| history[(first + (n - first) % period) as usize]);
            }
            seen.insert(level.clone(), k);
            history.push(accepts);
            let mut next: Vec<TermId> = Vec::new();
            for &t in &level {
                let runs = self.delta_raw(t);
                next.extend(runs.iter().map(|r| r.to).filter(|&to| to != Self::EMPTY));
            }
            next.sort_unstable();
            next.dedup();
            work += next.len();
            if work > BUDGET || self.overflow {
                self.unproven += 1;
                return true;
            }
            level = next;
        }
        unreachable!()
    }

    /// Length of the shortest word; `None` when there is none (or none was found within the budget).
    pub fn least_length(&mut self, t: TermId) -> Option<u32> {
        if self.nullable(t) {
            return Some(0);
        }
        if let Some(&known) = self.least.get(&t) {
            return known;
        }
        let answer = stacker::maybe_grow(128 << 10, 1 << 20, || self.measure(t));
        self.least.insert(t, answer);
        answer
    }

    fn measure(&mut self, t: TermId) -> Option<u32> {
        match self.get(t).clone() {
            Term::Empty => None,
            Term::Class(_) => Some(1),
            Term::Words(w) => self.list_words(w).iter().map(|s| s.chars().count() as u32).min(),
            Term::Concat(x, y) => Some(self.least_length(x)?.saturating_add(self.least_length(y)?)),
            Term::Or(xs) | Term::Tuple(xs) => xs.iter().filter_map(|&x| self.least_length(x)).min(),
            Term::Repeat(x, lo, _) => Some(self.least_length(x)?.saturating_mul(lo)),
            _ => self.least_by_search(t),
        }
    }

    fn least_by_search(&mut self, t: TermId) -> Option<u32> {
        let mut seen = rustc_hash::FxHashSet::from_iter([t]);
        let mut level = vec![t];
        for depth in 1.. {
            let mut next = Vec::new();
            for &t in &level {
                let runs = self.delta_raw(t);
                for run in runs.iter() {
                    if run.to == Self::EMPTY || !seen.insert(run.to) {
                        continue;
                    }
                    if self.nullable(run.to) {
                        return Some(depth);
                    }
                    next.push(run.to);
                }
            }
            if next.is_empty() {
                return None;
            }
            if seen.len() > BUDGET || self.overflow {
                self.unproven += 1;
                return Some(depth);
            }
            level = next;
        }
        unreachable!()
    }

    /// A form that has words of every length from some length on.
    fn unbounded_at_will(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::All => true,
            Term::Repeat(x, _, INF) => matches!(self.get(*x), Term::Class(_)),
            Term::Concat(x, y) => self.unbounded_at_will(*x) || self.unbounded_at_will(*y),
            Term::Or(xs) => xs.iter().any(|&x| self.unbounded_at_will(x)),
            _ => false,
        }
    }

    /// All words, where there are few or where the form lists them; else `None`.
    pub fn words_up_to(&mut self, t: TermId, limit: usize) -> Option<Vec<Box<str>>> {
        if let Some(mut words) = self.finite_words(t) {
            words.sort();
            words.dedup();
            return Some(words);
        }
        let mut words: Vec<Box<str>> = Vec::new();
        self.enumerate(t, String::new(), &mut words, limit).then_some(words)
    }

    /// Collects all words; false when there are more than `limit`.
    fn enumerate(&mut self, t: TermId, prefix: String, out: &mut Vec<Box<str>>, limit: usize) -> bool {
        if self.nullable(t) {
            out.push(prefix.clone().into());
        }
        if out.len() > limit || prefix.len() > 4 * limit + 64 {
            return false;
        }
        let runs = self.delta(t);
        let mut from = 0;
        for run in runs.iter() {
            if self.live(run.to) {
                if (run.end - from) as usize >= limit {
                    return false;
                }
                for cp in from..=run.end {
                    let Some(c) = char::from_u32(cp) else { continue };
                    let mut longer = prefix.clone();
                    longer.push(c);
                    if !self.enumerate(run.to, longer, out, limit) {
                        return false;
                    }
                }
            }
            from = run.end + 1;
        }
        true
    }
}
