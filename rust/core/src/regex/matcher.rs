//! The slow oracle: whether a text is in a language, by the definition of each operator.
//!
//! For a node and a set of positions: at which positions of the text can a string of the node's language end that
//! starts at one of them? Sequence, choice and repetition work on whole sets; intersection and complement on
//! one start at a time, since they compare strings with the same start. O(nodes · n²) for a text of n
//! characters, times n for each level of `And` and `Not`. It shares no idea with derivatives or automata, which
//! is why it judges them; it is never on a hot path.

use super::lang::Lang;

/// Whether `text` is in the language.
pub fn matches(lang: &Lang, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let start = Positions::only(0, chars.len());
    ends(lang, &start, &chars).has(chars.len())
}

/// A set of positions in the text, 0 to n, as bits.
#[derive(Clone, PartialEq)]
struct Positions(Vec<u64>);

impl Positions {
    fn none(n: usize) -> Self {
        Self(vec![0; n / 64 + 1])
    }

    fn only(at: usize, n: usize) -> Self {
        let mut set = Self::none(n);
        set.add(at);
        set
    }

    fn from(at: usize, n: usize) -> Self {
        let mut set = Self::none(n);
        (at..=n).for_each(|position| set.add(position));
        set
    }

    fn add(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn combine(&mut self, other: &Self, with: impl Fn(u64, u64) -> u64) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a = with(*a, *b));
    }

    fn members(&self, n: usize) -> impl Iterator<Item = usize> + '_ {
        (0..=n).filter(|at| self.has(*at))
    }
}

fn ends(lang: &Lang, starts: &Positions, text: &[char]) -> Positions {
    let n = text.len();
    let mut out = Positions::none(n);
    if starts.is_empty() {
        return out;
    }
    match lang {
        Lang::Empty => {}
        Lang::Epsilon => return starts.clone(),
        Lang::Class(set) => {
            let read = starts.members(n).filter(|&at| at < n && set.contains(text[at] as u32));
            read.for_each(|at| out.add(at + 1));
        }
        Lang::Literal(literal) => {
            let literal: Vec<char> = literal.chars().collect();
            let found = starts.members(n).filter(|&at| text[at..].starts_with(&literal));
            found.for_each(|at| out.add(at + literal.len()));
        }
        Lang::Concat(parts) => return parts.iter().fold(starts.clone(), |at, part| ends(part, &at, text)),
        Lang::Or(parts) => parts.iter().for_each(|part| out.combine(&ends(part, starts, text), |a, b| a | b)),
        Lang::And(parts) => {
            for start in starts.members(n) {
                let mut common = Positions::from(start, n);
                let start = Positions::only(start, n);
                parts.iter().for_each(|part| common.combine(&ends(part, &start, text), |a, b| a & b));
                out.combine(&common, |a, b| a | b);
            }
        }
        Lang::Not(inner) => {
            for start in starts.members(n) {
                let mut others = Positions::from(start, n);
                others.combine(&ends(inner, &Positions::only(start, n), text), |a, b| a & !b);
                out.combine(&others, |a, b| a | b);
            }
        }
        Lang::States(states) => {
            for start in starts.members(n) {
                let mut state = Some(0);
                for at in start..=n {
                    let Some(here) = state.map(|state| &states[state as usize]) else { break };
                    if here.ends {
                        out.add(at);
                    }
                    let run = |c: char| here.runs.iter().find(|run| run.0 >= c as u32);
                    state = text.get(at).and_then(|&c| run(c)?.1);
                }
            }
        }
        Lang::Repeat(inner, low, high) => return repeat(inner, *low, *high, starts, text),
    }
    out
}

/// The sets after each round either grow (with the empty string in the language) or move right, so they stop
/// changing after at most n + 1 rounds, whatever the counts are.
fn repeat(inner: &Lang, low: u32, high: Option<u32>, starts: &Positions, text: &[char]) -> Positions {
    let mut at = starts.clone();
    let next = |at: &Positions| {
        let next = ends(inner, at, text);
        (next != *at).then_some(next)
    };
    for _ in 0..low {
        match next(&at) {
            Some(moved) => at = moved,
            None => break,
        }
    }
    let mut out = at.clone();
    let mut left = high.map(|high| high.saturating_sub(low));
    while left != Some(0) {
        match next(&at) {
            Some(moved) => at = moved,
            None => break,
        }
        out.combine(&at, |a, b| a | b);
        left = left.map(|left| left - 1);
    }
    out
}
