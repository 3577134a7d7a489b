//! Syntax tree -> language: assertions become intersections and complements.
//!
//! Continuation passing, from right to left: `then(node, K)` is the language of all that may follow a
//! position at which `node` matches and then `K`. A lookahead X intersects K with X·any (or its complement).
//! What stands *before* a position matters only through [`PrecedingChar`]: nothing at all, or a last
//! character of one of a few disjoint sets (the *pasts*). K is one language for each past, which decides `^`,
//! `\b` and lookbehinds of one character wherever they stand. A repetition whose body asserts something is
//! exact in these cases: the assertion is decided inside of one round ([`Lowering::local`]); the body asserts
//! only about the past (a matrix over pasts, [`rounds`]); single characters up to the end of the string, as
//! in `((?!x).)*$` (no position may start an x); a few rounds (unrolled). The rest, and longer lookbehinds,
//! go through the explicit automaton of [`automaton`], or are refused there.
//! Invariant: the result is the language, exactly. Cost: linear for patterns without assertions.

mod automaton;
mod edges;
mod rounds;

use super::charset::CharSet;
use super::error::RegexError;
use super::lang::Lang;
use super::syntax::Node;
use crate::hash::KeyedSet;
use edges::{ending_in, starting_with};

/// Nodes that the tree of a pattern may have, and that its assertions may copy.
const MAX_SIZE: usize = 4_000_000;
/// Sets of last characters that are distinguished.
const MAX_PASTS: usize = 8;
/// Rounds of a repetition that are written out.
const MAX_UNROLLED: u32 = 16;

/// The language of the strings that the pattern matches as a whole.
pub fn lower(node: &Node) -> Result<Lang, RegexError> {
    if let Some(parts) = between_ends(node) {
        return Ok(Lang::concat(parts.iter().map(plain)));
    }
    match Lowering::new(node, &[]).and_then(|lowering| lowering.whole(node)) {
        // The first past is "nothing before".
        Ok(mut of_past) => Ok(of_past.swap_remove(0)),
        Err(Fail::Refused(error)) => Err(error),
        Err(Fail::Crossing(column)) => automaton::language(node, column),
    }
}

/// The languages of a tree by what stands before: nothing, or a character of each set of the partition by
/// `sets`; without `sets`, one language.
pub fn lower_around(node: &Node, sets: &[CharSet]) -> Result<Vec<Lang>, RegexError> {
    match Lowering::new(node, sets).and_then(|lowering| lowering.whole(node)) {
        Ok(of_past) if !sets.is_empty() => Ok(of_past),
        Ok(mut of_past) => Ok(vec![of_past.swap_remove(0)]),
        Err(Fail::Refused(error)) => Err(error),
        Err(Fail::Crossing(column)) if sets.is_empty() => Ok(vec![automaton::language(node, column)?]),
        Err(Fail::Crossing(column)) => {
            let message = "this assertion crosses others and may look before the match; simplify it";
            Err(RegexError::unsupported(column, message))
        }
    }
}

/// The parts between the ends of the text, if they assert nothing: most patterns are a search for `^...$`.
fn between_ends(node: &Node) -> Option<&[Node]> {
    let mut parts = match node {
        Node::Concat(parts) => &parts[..],
        _ => std::slice::from_ref(node),
    };
    if let [any, look, rest @ ..] = parts {
        if any.is_any() && look.is_start() {
            parts = rest;
        }
    }
    if let [rest @ .., look, any] = parts {
        if any.is_any() && look.is_end() {
            parts = rest;
        }
    }
    parts.iter().all(Node::is_plain).then_some(parts)
}

/// The same language by the explicit automaton alone.
#[cfg(test)]
pub fn by_automaton(node: &Node) -> Result<Lang, RegexError> {
    automaton::language(node, 1)
}

/// The language of a tree without assertions.
fn plain(node: &Node) -> Lang {
    match node {
        Node::Set(set) => Lang::class(set.clone()),
        Node::Text(text) => Lang::text(text),
        Node::Concat(parts) => Lang::concat(parts.iter().map(plain)),
        Node::Alt(parts) => Lang::or(parts.iter().map(plain)),
        Node::Repeat(inner, low, high) => plain(inner).repeat(*low, *high),
        Node::Lazy(inner) => plain(inner),
        Node::Look(_) => unreachable!("an assertion in a tree that was said to have none"),
    }
}

/// Why this way does not give the language.
enum Fail {
    Refused(RegexError),
    /// Assertions that cross each other or a repetition; the column of one of them.
    Crossing(usize),
}

/// A last character in the set, or (`None`) no character before the position.
type PrecedingChar = Option<CharSet>;

struct Lowering {
    pasts: Vec<PrecedingChar>,
    budget: usize,
}

impl Lowering {
    /// The pasts that `told` and the lookbehinds of the tree distinguish.
    fn new(node: &Node, told: &[CharSet]) -> Result<Self, Fail> {
        let mut sets = super::charset::parted(told);
        let mut long = None;
        node.each_look(&mut |look| match &look.body {
            Node::Set(set) if look.behind => {
                sets = super::charset::part(&sets, set);
                sets.truncate(MAX_PASTS + 1);
            }
            _ if look.behind => long = long.or(Some(look.column)),
            _ => {}
        });
        match long {
            Some(column) => Err(Fail::Crossing(column)),
            None if sets.len() > MAX_PASTS => Err(Fail::Crossing(1)),
            None => {
                let pasts = std::iter::once(None).chain(sets.into_iter().map(Some)).collect();
                Ok(Self { pasts, budget: MAX_SIZE })
            }
        }
    }

    /// The languages of a whole tree, by what stands before it.
    fn whole(mut self, node: &Node) -> Result<Vec<Lang>, Fail> {
        let ends = vec![Lang::Epsilon; self.pasts.len()];
        self.then(node, &ends)
    }

    /// Counts a copy of the continuations.
    fn charge(&mut self, k: &[Lang]) -> Result<(), Fail> {
        let size = k.iter().map(Lang::size).sum::<usize>();
        crate::work::spend(1 + size as u64);
        self.budget = self.budget.checked_sub(size).ok_or_else(|| {
            Fail::Refused(RegexError::limit(
                1,
                "the assertions of the pattern multiply it beyond the size limit",
            ))
        })?;
        Ok(())
    }

    fn then(&mut self, node: &Node, k: &[Lang]) -> Result<Vec<Lang>, Fail> {
        self.charge(k)?;
        if node.is_plain() {
            return Ok(self.plain_then(&plain(node), k));
        }
        match node {
            Node::Concat(parts) => {
                let mut k = k.to_vec();
                // neighbours that assert nothing are one language
                for run in parts.chunk_by(|a, b| a.is_plain() && b.is_plain()).rev() {
                    if !run[0].is_plain() {
                        k = self.then(&run[0], &k)?;
                        continue;
                    }
                    self.charge(&k)?;
                    k = self.plain_then(&Lang::concat(run.iter().map(plain)), &k);
                }
                Ok(k)
            }
            Node::Alt(parts) => self.choice(parts, k),
            Node::Repeat(inner, low, high) => self.repetition(inner, *low, *high, k),
            Node::Lazy(inner) => self.then(inner, k),
            Node::Look(look) if look.behind => {
                let Node::Set(set) = &look.body else {
                    return Err(Fail::Crossing(look.column));
                };
                let holds = |preceding: &PrecedingChar| {
                    preceding.as_ref().is_some_and(|last| !last.intersect(set).is_empty())
                };
                let keep = |(preceding, k): (&PrecedingChar, &Lang)| {
                    if holds(preceding) != look.negative {
                        k.clone()
                    } else {
                        Lang::Empty
                    }
                };
                Ok(self.pasts.iter().zip(k).map(keep).collect())
            }
            Node::Look(look) => self.ahead(&look.body, look.negative, k),
            Node::Set(_) | Node::Text(_) => unreachable!("characters assert nothing"),
        }
    }

    fn choice(&mut self, parts: &[Node], k: &[Lang]) -> Result<Vec<Lang>, Fail> {
        let (free, asserting): (Vec<&Node>, Vec<&Node>) = parts.iter().partition(|part| part.is_plain());
        let mut branches = Vec::new();
        if !free.is_empty() {
            branches.push(self.plain_then(&Lang::or(free.into_iter().map(plain)), k));
        }
        for part in asserting {
            branches.push(self.then(part, k)?);
        }
        Ok((0..k.len())
            .map(|preceding| Lang::or(branches.iter().map(|branch| branch[preceding].clone())))
            .collect())
    }

    /// `lang`, which asserts nothing, and then the `k` of the past that `lang` ends in. Alternatives that all
    /// continuations share are written once: in a search for `a|^b`, the `a` is the same after every past.
    fn plain_then(&self, lang: &Lang, k: &[Lang]) -> Vec<Lang> {
        if k.iter().all(|other| *other == k[0]) {
            return vec![Lang::concat([lang.clone(), k[0].clone()]); k.len()];
        }
        let alternatives: Vec<Vec<&Lang>> = k
            .iter()
            .map(|k| match k {
                Lang::Or(members) => members.iter().collect(),
                one => vec![one],
            })
            .collect();
        let sets: Vec<KeyedSet<&Lang>> =
            alternatives.iter().map(|members| members.iter().copied().collect()).collect();
        let in_all = |member: &&Lang| sets.iter().all(|members| members.contains(*member));
        let common = Lang::or(alternatives[0].iter().copied().filter(in_all).cloned());
        let rests: Vec<Lang> = alternatives
            .iter()
            .map(|members| Lang::or(members.iter().copied().filter(|member| !in_all(member)).cloned()))
            .collect();
        let mut moved = vec![Lang::concat([lang.clone(), common])];
        for (i, rest) in rests.iter().enumerate() {
            if matches!(rest, Lang::Empty) || rests[..i].iter().skip(1).any(|earlier| earlier == rest) {
                continue;
            }
            let same = self.pasts.iter().zip(&rests).filter(|(_, other)| *other == rest);
            let last = same
                .filter_map(|(preceding, _)| preceding.as_ref())
                .fold(CharSet::empty(), |a, b| a.union(b));
            moved.push(Lang::concat([ending_in(lang, &last), rest.clone()]));
        }
        let nullable = lang.nullable();
        let stay = |rest: Lang| if nullable { rest } else { Lang::Empty };
        rests.into_iter().map(|rest| Lang::or(moved.iter().cloned().chain([stay(rest)]))).collect()
    }

    fn ahead(&mut self, body: &Node, negative: bool, k: &[Lang]) -> Result<Vec<Lang>, Fail> {
        if let Node::Set(set) = body {
            let first = if negative { set.negate() } else { set.clone() };
            let end = |k: &Lang| {
                if negative && k.nullable() {
                    Lang::Epsilon
                } else {
                    Lang::Empty
                }
            };
            return Ok(k.iter().map(|k| Lang::or([starting_with(k, &first), end(k)])).collect());
        }
        let seen = self.then(body, &vec![Lang::any(); k.len()])?;
        let meet =
            |(seen, k): (Lang, &Lang)| Lang::and([k.clone(), if negative { seen.not() } else { seen }]);
        Ok(seen.into_iter().zip(k).map(meet).collect())
    }

    fn repetition(
        &mut self,
        body: &Node,
        low: u32,
        high: Option<u32>,
        k: &[Lang],
    ) -> Result<Vec<Lang>, Fail> {
        if low == 0 && k.iter().all(Lang::is_any) {
            return Ok(k.to_vec());
        }
        if let Some(round) = self.local(body)? {
            return Ok(self.plain_then(&round.repeat(low, high), k));
        }
        let mut ahead = None;
        body.each_look(&mut |look| ahead = if look.behind { ahead } else { Some(look.column) });
        let Some(column) = ahead else {
            return self.rounds_over_pasts(body, low, high, k);
        };
        if k.iter().all(|k| *k == Lang::Epsilon) {
            if let Some(tempered) = self.tempered(body, low, high)? {
                return Ok(vec![tempered; k.len()]);
            }
        }
        match high {
            Some(high) if high <= MAX_UNROLLED => {
                let mut total = k.to_vec();
                for _ in low..high {
                    let more = self.then(body, &total)?;
                    total = more.into_iter().zip(k).map(|(more, k)| Lang::or([more, k.clone()])).collect();
                }
                for _ in 0..low {
                    total = self.then(body, &total)?;
                }
                Ok(total)
            }
            _ => Err(Fail::Crossing(column)),
        }
    }
}
