//! The drawing of an automaton: the first states that texts reach, and the edges between them.
//!
//! Invariant: at most `most` states are drawn.  A state that is left out is an edge without a target; but where a byte that
//! begins an escape, breaks a line or is beyond ASCII leads elsewhere, the edge is left out without a sign.
//! Complexity: 256 byte steps per state and byte of a label, at most [`STEPPED`] times that; all of it is one call, which
//! opens no more states when half of its work is done.
//! Rejected: every byte an edge (a string would have 200 of them).

#![allow(clippy::mutable_key_type)] // states are equal and hashed by identity, which never changes

use indexmap::{IndexMap, IndexSet};

use super::automaton::TokenAutomaton;
use super::builder::Builder;
use super::state::State;
use crate::{work, Result};

/// Longest label of an edge, in characters.
const LABEL: usize = 22;
/// States whose 256 bytes are tried; after so many, paths are followed no further.
const STEPPED: usize = 300;
/// Next states of one state that are drawn separately. If there are more (of recorded texts), those of one
/// byte become one edge.
const APART: usize = 8;

/// A part of an automaton.
pub struct Drawn {
    /// The first is the one to start from.
    pub states: Vec<State>,
    /// The index of a state, the text that leads on, and the index of the next; `None`: one that is not
    /// drawn.
    pub edges: Vec<(usize, String, Option<usize>)>,
}

impl TokenAutomaton {
    /// The states that texts reach from one on, breadth first.
    ///
    /// Bytes that lead to one state make one edge, and so does a path without a choice.
    pub fn drawn(&self, start: &State, most: usize) -> Result<Drawn> {
        self.check_state(start)?;
        if self.is_finished(start) {
            return Ok(Drawn { states: vec![start.clone()], edges: Vec::new() });
        }
        let enough = self.limits().work / 2;
        self.with(Some(start), |builder| DrawWalk { builder, stepped: 0, enough }.drawn(start, most))
    }
}

struct DrawWalk<'a> {
    builder: &'a mut Builder,
    /// States whose bytes were tried.
    stepped: usize,
    /// Work after which no more are.
    enough: u64,
}

impl DrawWalk<'_> {
    fn drawn(&mut self, start: &State, most: usize) -> Result<Drawn> {
        let mut states = IndexSet::from([start.clone()]);
        let mut edges: Vec<(usize, Vec<String>, Option<usize>)> = Vec::new();
        let mut place = 0;
        while place < states.len() && (place == 0 || self.goes_on()) {
            for (label, target) in self.leaving(&states[place].clone())? {
                if states.len() < most {
                    states.extend(target.clone());
                }
                let number = target.and_then(|target| states.get_index_of(&target));
                match edges.iter_mut().find(|edge| edge.0 == place && edge.2 == number) {
                    Some(edge) => edge.1.push(label),
                    None => edges.push((place, vec![label], number)),
                }
            }
            place += 1;
        }
        let edges = edges.into_iter().map(|(from, labels, to)| (from, cut(&labels.join(" | ")), to));
        Ok(Drawn { states: states.into_iter().collect(), edges: edges.collect() })
    }

    fn goes_on(&self) -> bool {
        work::spent() < self.enough
    }

    /// The edges out of a state; a path with one byte at each step is one edge. With more than [`APART`] next
    /// states, so are all those of one byte.
    fn leaving(&mut self, state: &State) -> Result<Vec<(String, Option<State>)>> {
        let mut reached = self.steps(state)?;
        let mut edges = Vec::new();
        if reached.len() > APART {
            let single: Vec<u8> = reached.iter().filter(|(_, m)| m.len() == 1).map(|(_, m)| m[0]).collect();
            reached.retain(|(_, members)| members.len() > 1);
            edges.push((classes(&single), None));
        }
        for (mut at, members) in reached {
            let mut label = classes(&members);
            let mut single = members.len() == 1;
            while single
                && label.chars().count() < LABEL
                && self.stepped < STEPPED
                && self.goes_on()
                && !self.builder.accepting(&at)?
            {
                let mut further = self.steps(&at)?;
                match (further.len(), further.pop()) {
                    (1, Some((onward, then))) if then.len() == 1 => {
                        label += &classes(&then);
                        at = onward;
                    }
                    _ => single = false,
                }
            }
            edges.push((label, Some(at)));
        }
        Ok(edges)
    }

    /// The next states, and the bytes that lead there; escapes, line breaks, tabs and bytes beyond ASCII only if nothing
    /// else may come.
    fn steps(&mut self, state: &State) -> Result<Vec<(State, Vec<u8>)>> {
        self.stepped += 1;
        let mut reached: IndexMap<State, Vec<u8>> = IndexMap::new();
        for byte in 0..=255 {
            if let Some(next) = self.builder.step_bytes(state, &[byte])? {
                reached.entry(next).or_default().push(byte);
            }
        }
        let rare = |members: &[u8]| members[0] >= 128 || members.iter().all(|b| b"\\\n\r\t".contains(b));
        if reached.values().any(|members| !rare(members)) {
            reached.retain(|_, members| !rare(members));
        }
        Ok(reached.into_iter().collect())
    }
}

/// Bytes as people write them: ranges of ASCII, and a word for the rest.
fn classes(members: &[u8]) -> String {
    let printable: Vec<u8> = members.iter().copied().filter(|b| (33..127).contains(b)).collect();
    if printable.len() > 60 {
        let missing: Vec<String> =
            (33..127).filter(|b| !members.contains(b)).map(|b: u8| char::from(b).to_string()).collect();
        return match missing.len() {
            1..=6 => format!("any but {}", missing.join(" ")),
            _ => "any character".into(),
        };
    }
    let runs = printable.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{}-{}", char::from(*first), char::from(*last)),
        _ => char::from(run[0]).to_string(),
    });
    let blanks = members.iter().filter(|&&b| b <= 32).map(|&b| match b {
        b' ' => "\u{b7}".into(),
        b'\n' => "\\n".into(),
        b => format!("\\x{b:02x}"),
    });
    let other = members.iter().any(|&b| b >= 127).then(|| "other".to_owned());
    runs.chain(blanks).chain(other).collect::<Vec<_>>().join(" ")
}

fn cut(label: &str) -> String {
    match label.chars().count() > LABEL {
        true => label.chars().take(LABEL - 1).chain(['…']).collect(),
        false => label.into(),
    }
}
