//! Languages over Unicode code points: the neutral tree between patterns and the lexical layer.
//!
//! A [`Lang`] denotes a set of strings of scalar values. It is built only through the constructors
//! below, which keep it small: no nested `Concat`/`Or`/`And`, no neutral or absorbing members, runs of
//! single characters as one `Literal`, alternatives of one character as one `Class`, equal neighbours
//! in a `Concat` as one `Repeat`. They never change the language, and are linear in their arguments.
//! Complement is with respect to all strings of scalar values (Brzozowski 1964).
//! Rejected: hash-consing here; the lexical layer interns the terms once, and a pattern is read once.

use crate::hash::KeyedSet;

use super::charset::CharSet;

/// A regular language over Unicode scalar values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lang {
    /// No string at all.
    Empty,
    /// The empty string alone.
    Epsilon,
    /// The strings of one character of the set.
    Class(CharSet),
    /// One string of at least two characters.
    Literal(String),
    Concat(Vec<Lang>),
    Or(Vec<Lang>),
    And(Vec<Lang>),
    Not(Box<Lang>),
    /// From `.1` to `.2` times (`None`: any number of times).
    Repeat(Box<Lang>, u32, Option<u32>),
    /// The words that lead from the first state to an accepting one.
    States(Vec<State>),
}

/// The target of the code points up to each end, ascending, up to the last code point; `None`: dead.
pub type StateRuns = Vec<(u32, Option<u32>)>;

/// A state: whether a word ends here, and where code points lead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub ends: bool,
    pub runs: StateRuns,
}

impl State {
    /// From disjoint ranges, each with its target.
    pub fn new(ends: bool, mut arrows: Vec<((u32, u32), u32)>) -> State {
        arrows.sort_unstable();
        let (mut runs, mut from) = (StateRuns::new(), 0);
        for ((first, last), to) in arrows {
            if first > from {
                runs.push((first - 1, None));
            }
            match runs.last_mut() {
                Some(run) if run.1 == Some(to) => run.0 = last,
                _ => runs.push((last, Some(to))),
            }
            from = last + 1;
        }
        if from <= char::MAX as u32 {
            runs.push((char::MAX as u32, None));
        }
        State { ends, runs }
    }
}

impl Lang {
    /// Every string.
    pub fn any() -> Lang {
        Lang::Repeat(Box::new(Lang::any_char()), 0, None)
    }

    /// Every string of one character.
    pub fn any_char() -> Lang {
        Lang::Class(CharSet::full())
    }

    pub fn is_any(&self) -> bool {
        matches!(self, Lang::Repeat(inner, 0, None) if matches!(&**inner, Lang::Class(set) if set.is_full()))
    }

    pub fn class(set: CharSet) -> Lang {
        if set.is_empty() {
            Lang::Empty
        } else {
            Lang::Class(set)
        }
    }

    /// The language of one string.
    pub fn text(text: &str) -> Lang {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (None, _) => Lang::Epsilon,
            (Some(c), None) => Lang::Class(CharSet::single(c as u32)),
            _ => Lang::Literal(text.to_owned()),
        }
    }

    /// `a b c …`
    pub fn concat(parts: impl IntoIterator<Item = Lang>) -> Lang {
        let mut out: Vec<Lang> = Vec::new();
        let mut run = String::new();
        for part in parts {
            match part {
                Lang::Empty => return Lang::Empty,
                Lang::Concat(inner) => {
                    for member in inner {
                        push_factor(&mut out, &mut run, member);
                    }
                }
                other => push_factor(&mut out, &mut run, other),
            }
        }
        flush_run(&mut out, &mut run);
        match out.len() {
            0 => Lang::Epsilon,
            1 => out.remove(0),
            _ => Lang::Concat(out),
        }
    }

    /// `a | b | c …`
    pub fn or(parts: impl IntoIterator<Item = Lang>) -> Lang {
        let mut seen = KeyedSet::default();
        let mut out = Vec::new();
        let mut chars: Vec<(u32, u32)> = Vec::new();
        for part in parts {
            for member in members(part, |lang| match lang {
                Lang::Or(inner) => Ok(inner),
                other => Err(other),
            }) {
                match member {
                    Lang::Empty => {}
                    Lang::Class(set) => chars.extend(set.0),
                    any if any.is_any() => return any,
                    other => {
                        if seen.insert(other.clone()) {
                            out.push(other);
                        }
                    }
                }
            }
        }
        if !chars.is_empty() {
            out.push(Lang::Class(CharSet::from_ranges(&chars)));
        }
        let nullable = out.iter().any(|lang| !matches!(lang, Lang::Epsilon) && lang.nullable());
        if nullable {
            out.retain(|lang| !matches!(lang, Lang::Epsilon));
        }
        match out.len() {
            0 => Lang::Empty,
            1 => out.remove(0),
            _ => Lang::Or(out),
        }
    }

    /// `a & b & c …`
    pub fn and(parts: impl IntoIterator<Item = Lang>) -> Lang {
        let mut seen = KeyedSet::default();
        let mut out: Vec<Lang> = Vec::new();
        let mut chars: Option<CharSet> = None;
        let mut epsilon = false;
        for part in parts {
            for member in members(part, |lang| match lang {
                Lang::And(inner) => Ok(inner),
                other => Err(other),
            }) {
                match member {
                    Lang::Empty => return Lang::Empty,
                    Lang::Epsilon => epsilon = true,
                    Lang::Class(set) => {
                        chars = Some(chars.map_or_else(|| set.clone(), |old| old.intersect(&set)))
                    }
                    any if any.is_any() => {}
                    other => {
                        if seen.insert(other.clone()) {
                            out.push(other);
                        }
                    }
                }
            }
        }
        if epsilon {
            let all = chars.is_none() && out.iter().all(Lang::nullable);
            return if all { Lang::Epsilon } else { Lang::Empty };
        }
        match chars {
            Some(set) if set.is_empty() => return Lang::Empty,
            Some(set) => out.push(Lang::Class(set)),
            None => {}
        }
        match out.len() {
            0 => Lang::any(),
            1 => out.remove(0),
            _ => Lang::And(out),
        }
    }

    /// Every string that is not in the language.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Lang {
        match self {
            Lang::Not(inner) => *inner,
            Lang::Empty => Lang::any(),
            any if any.is_any() => Lang::Empty,
            other => Lang::Not(Box::new(other)),
        }
    }

    /// From `min` to `max` times (`None`: no upper bound).
    pub fn repeat(self, min: u32, max: Option<u32>) -> Lang {
        match (self, min, max) {
            (_, 0, Some(0)) | (Lang::Epsilon, ..) | (Lang::Empty, 0, _) => Lang::Epsilon,
            (_, min, Some(max)) if min > max => Lang::Empty,
            (Lang::Empty, ..) => Lang::Empty,
            (lang, 1, Some(1)) => lang,
            (Lang::Repeat(inner, 0, None), ..) => Lang::Repeat(inner, 0, None),
            (Lang::Repeat(inner, 1, None), 0, _) => Lang::Repeat(inner, 0, None),
            (Lang::Repeat(inner, 1, None), 1, _) => Lang::Repeat(inner, 1, None),
            (lang, min, max) => Lang::Repeat(Box::new(lang), min, max),
        }
    }

    pub fn star(self) -> Lang {
        self.repeat(0, None)
    }

    pub fn plus(self) -> Lang {
        self.repeat(1, None)
    }

    pub fn optional(self) -> Lang {
        self.repeat(0, Some(1))
    }

    /// Whether the empty string is in the language.
    pub fn nullable(&self) -> bool {
        match self {
            Lang::Empty | Lang::Class(_) | Lang::Literal(_) => false,
            Lang::Epsilon => true,
            Lang::Concat(parts) | Lang::And(parts) => parts.iter().all(Lang::nullable),
            Lang::Or(parts) => parts.iter().any(Lang::nullable),
            Lang::Not(inner) => !inner.nullable(),
            Lang::Repeat(inner, min, _) => *min == 0 || inner.nullable(),
            Lang::States(states) => states[0].ends,
        }
    }

    /// Bounds on the lengths of its strings, in characters: every string is at least `.0` and at most `.1`
    /// long (`None`: no bound known). Not tight under `And` and `Not`.
    pub fn length_bounds(&self) -> (usize, Option<usize>) {
        match self {
            Lang::Empty | Lang::Epsilon => (0, Some(0)),
            Lang::Class(_) => (1, Some(1)),
            Lang::Literal(text) => {
                let length = text.chars().count();
                (length, Some(length))
            }
            Lang::Concat(parts) => parts.iter().map(Lang::length_bounds).fold((0, Some(0)), |sum, part| {
                (sum.0.saturating_add(part.0), sum.1.zip(part.1).and_then(|(a, b)| a.checked_add(b)))
            }),
            Lang::Or(parts) => {
                let mut bounds = parts.iter().map(Lang::length_bounds);
                let first = bounds.next().unwrap_or((0, Some(0)));
                bounds.fold(first, |a, b| (a.0.min(b.0), a.1.zip(b.1).map(|(x, y)| x.max(y))))
            }
            Lang::And(parts) => {
                parts.iter().map(Lang::length_bounds).fold((0, None), |a, b| (a.0.max(b.0), least(a.1, b.1)))
            }
            Lang::Not(_) | Lang::States(_) => (0, None),
            Lang::Repeat(inner, min, max) => {
                let (lo, hi) = inner.length_bounds();
                let hi = match (hi, max) {
                    (Some(0), _) => Some(0),
                    (Some(hi), Some(max)) => hi.checked_mul(*max as usize),
                    _ => None,
                };
                (lo.saturating_mul(*min as usize), hi)
            }
        }
    }

    /// Whether its form shows that it has a word; false for intersections, complements and states.
    pub fn plainly_has_words(&self) -> bool {
        match self {
            Lang::Empty | Lang::And(_) | Lang::Not(_) | Lang::States(_) => false,
            Lang::Epsilon | Lang::Literal(_) => true,
            Lang::Class(set) => !set.is_empty(),
            Lang::Concat(parts) => parts.iter().all(Lang::plainly_has_words),
            Lang::Or(parts) => parts.iter().any(Lang::plainly_has_words),
            Lang::Repeat(inner, least, _) => *least == 0 || inner.plainly_has_words(),
        }
    }

    /// Number of nodes of the tree, a literal by its length in bytes.
    pub fn size(&self) -> usize {
        match self {
            Lang::Literal(text) => text.len(),
            Lang::Concat(parts) | Lang::Or(parts) | Lang::And(parts) => {
                1 + parts.iter().map(Lang::size).sum::<usize>()
            }
            Lang::Not(inner) | Lang::Repeat(inner, ..) => 1 + inner.size(),
            Lang::States(states) => states.iter().map(|state| 1 + state.runs.len()).sum(),
            _ => 1,
        }
    }
}

fn least(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn members(lang: Lang, open: impl Fn(Lang) -> Result<Vec<Lang>, Lang>) -> Vec<Lang> {
    open(lang).unwrap_or_else(|one| vec![one])
}

/// Appends one factor of a concatenation; `run` holds the literal text not yet appended.
fn push_factor(out: &mut Vec<Lang>, run: &mut String, factor: Lang) {
    match factor {
        Lang::Epsilon => {}
        Lang::Literal(text) => run.push_str(&text),
        Lang::Class(ref set) if set.as_single().is_some() => {
            let same =
                run.is_empty() && matches!(out.last(), Some(Lang::Repeat(inner, ..)) if **inner == factor);
            if same {
                merge(out, factor);
            } else {
                run.extend(set.as_single());
            }
        }
        other => {
            flush_run(out, run);
            merge(out, other);
        }
    }
}

fn flush_run(out: &mut Vec<Lang>, run: &mut String) {
    if !run.is_empty() {
        out.push(Lang::text(run));
        run.clear();
    }
}

/// `x{a,b} x{c,d}` is `x{a+c,b+d}`; a factor without bounds counts as `x{1,1}`.
fn merge(out: &mut Vec<Lang>, factor: Lang) {
    fn parts(lang: &Lang) -> (&Lang, u32, Option<u32>) {
        match lang {
            Lang::Repeat(inner, min, max) => (inner, *min, *max),
            other => (other, 1, Some(1)),
        }
    }
    let merged = out.last().and_then(|last| {
        let ((x, a, b), (y, c, d)) = (parts(last), parts(&factor));
        if x != y || !matches!(x, Lang::Class(_)) {
            return None;
        }
        let max = match (b, d) {
            (Some(b), Some(d)) => Some(b.checked_add(d)?),
            _ => None,
        };
        Some(Lang::Repeat(Box::new(x.clone()), a.checked_add(c)?, max))
    });
    match (merged, out.last_mut()) {
        (Some(merged), Some(last)) => *last = merged,
        _ => out.push(factor),
    }
}
