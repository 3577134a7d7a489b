//! A short way from any position to the end of the document.
//!
//! The way is driven through the machine itself, so that it keeps every option (order, whitespace): at each
//! position the cheapest branch is taken, where the cost of a branch is the length of a short value for it and
//! of what its parents still need then.
//! Invariant: every prefix of the way is accepted, and the whole ends the document.
//! Complexity: the branches of each frame on the way; what follows a position is remembered.
//! Memory: the pieces of ways between positions that were met.

use rustc_hash::FxHashMap;

use super::{Alternative, JsonMachine, Node, ParserPhase};
use crate::automaton::byte_automaton::step;
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::lexical::{shortest_lexeme, Lexicon, Step, LONGEST};
use crate::schema::live::Witness;
use crate::schema::used::KeySet;
use crate::schema::{ArrId, ValId};

/// A cost beyond every real one.
const NEVER: usize = usize::MAX / 4;

struct Way {
    pos: Pos,
    text: Vec<u8>,
    out: Vec<u8>,
    costs: FxHashMap<(CtxId, u32), usize>,
    /// Bytes that it may have.
    most: usize,
}

impl JsonMachine {
    pub(crate) fn completion(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<u8>> {
        let most = most.min(LONGEST);
        let mut way = Way { most, pos, text: text.to_vec(), out: Vec::new(), costs: FxHashMap::default() };
        let mut marks: Vec<(Pos, usize)> = Vec::new();
        while !self.accepting(way.pos, &way.text) {
            if way.text.is_empty() {
                if self.tails.contains_key(&way.pos) {
                    break;
                }
                marks.push((way.pos, way.out.len()));
            }
            let before = way.out.len();
            self.advance_way(&mut way)?;
            if way.out.len() == before || way.out.len() > most {
                return None;
            }
        }
        self.remember_tails(&marks, &way);
        let mut next = way.text.is_empty().then_some(way.pos);
        while let Some((piece, then)) = next.and_then(|pos| self.tails.get(&pos)) {
            way.out.extend_from_slice(piece);
            next = *then;
        }
        (way.out.len() <= most).then_some(way.out)
    }

    /// Positions on a way and what follows each until the next: other ways that come there end the same.
    fn remember_tails(&mut self, marks: &[(Pos, usize)], way: &Way) {
        for (i, &(pos, from)) in marks.iter().enumerate() {
            let (to, next) = match marks.get(i + 1) {
                Some(&(next, to)) => (to, Some(next)),
                None => (way.out.len(), way.text.is_empty().then_some(way.pos)),
            };
            self.tails.insert(pos, (way.out[from..to].into(), next.filter(|&n| n != pos)));
        }
    }

    fn advance_way(&mut self, way: &mut Way) -> Option<()> {
        let node = self.node(way.pos.ctx);
        match node.place {
            ParserPhase::Scalar | ParserPhase::Key => self.finish_lexeme(way, node),
            ParserPhase::Done => self.finish_white(way),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                let goals = self.frames[node.goals()].clone();
                self.best_value(way, &goals, node.up)
            }
            ParserPhase::Colon => self.push(way, b":"),
            ParserPhase::ObjectStart | ParserPhase::ObjectAfter | ParserPhase::ObjectNext => {
                self.best_property(way, node)
            }
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter => self.best_item(way, node),
            ParserPhase::ReturnRoot | ParserPhase::ReturnObject | ParserPhase::ReturnArray => None,
        }
    }

    /// Writes bytes, with the whitespace that the options ask for before each.
    fn push(&mut self, way: &mut Way, bytes: &[u8]) -> Option<()> {
        for &byte in bytes {
            if let Step::Stay(lex) = self.lexicon().step(way.pos.lex, byte) {
                // inside a lexeme nothing can fail, and its text may be long
                way.out.push(byte);
                way.pos.lex = lex;
                if self.records(way.pos.ctx) {
                    way.text.push(byte);
                }
                continue;
            }
            for _ in 0..LONGEST {
                let mut text = way.text.clone();
                if let Some(next) = step(self, way.pos, &mut text, byte) {
                    way.out.push(byte);
                    (way.pos, way.text) = (next, text);
                    break;
                }
                self.one_white(way)?;
            }
        }
        Some(())
    }

    fn one_white(&mut self, way: &mut Way) -> Option<()> {
        for &(byte, blank) in &[(b' ', true), (b'\n', true), (b'\t', true)] {
            if let (Step::Stay(lex), true) = (self.lexicon().step(way.pos.lex, byte), blank) {
                way.out.push(byte);
                way.pos.lex = lex;
                return Some(());
            }
        }
        None
    }

    fn finish_white(&mut self, way: &mut Way) -> Option<()> {
        let (bytes, lex) = shortest_lexeme(self.lexicon(), way.pos.lex, way.most)?;
        way.out.extend(bytes);
        way.pos.lex = lex;
        Some(())
    }

    fn finish_lexeme(&mut self, way: &mut Way, node: Node) -> Option<()> {
        let string = node.place == ParserPhase::Key || self.lexicon().is_string(way.pos.lex) || {
            // in the middle of a code point or an escape: only strings have those
            self.lexicon().term(way.pos.lex).is_none()
        };
        let (mut bytes, _) = shortest_lexeme(self.lexicon(), way.pos.lex, way.most)?;
        if string {
            bytes.push(b'"');
            return self.push(way, &bytes);
        }
        self.push(way, &bytes)?;
        let outcome = self.lexicon().outcome(way.pos.lex);
        if outcome == Lexicon::NONE || self.accepting(way.pos, &way.text) {
            return Some(());
        }
        // a number or a word ends with what follows it: go on from there
        let held: Vec<u32> = {
            let map = self.frames[node.map()].clone();
            let list = self.lexicon().outcome_list(outcome);
            list.iter().map(|&i| map[i as usize]).collect()
        };
        let record = self.add(node.record, &way.text);
        way.pos = self.resume(node.up, &held, record)?;
        way.text.clear();
        self.advance_way(way)
    }

    /// The cheapest value among several goals.
    fn best_value(&mut self, way: &mut Way, goals: &[ValId], up: CtxId) -> Option<()> {
        let mut best: Option<(usize, std::sync::Arc<Witness>)> = None;
        for (i, &v) in goals.iter().enumerate() {
            let Some(value) = self.schema.witness(v) else { continue };
            let cost = value.length.saturating_add(self.cost_above(way, up, i as u32));
            if cost < NEVER && best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, value));
            }
        }
        let (cost, value) = best?;
        // what will be too long is not begun
        if cost > way.most {
            return None;
        }
        self.push(way, value.opening().as_bytes())
    }

    /// Length of what the frames above still need when the value here satisfies a goal.
    fn cost_above(&mut self, way: &mut Way, up: CtxId, goal: u32) -> usize {
        if let Some(&known) = way.costs.get(&(up, goal)) {
            return known;
        }
        way.costs.insert((up, goal), NEVER);
        let node = self.node(up);
        let cost = match node.place {
            ParserPhase::ReturnRoot => 0,
            _ => {
                let pending = self.frames[node.pending()].clone();
                let mut best = NEVER;
                let item = pending.goals[goal as usize];
                let mut ways: Vec<(usize, u32)> = Vec::new();
                for (_, next) in pending.properties().iter().filter(|b| b.0 == goal) {
                    ways.push((self.object_cost(next, pending.used), next.goal));
                }
                for &(_, (own, rest)) in pending.items().iter().filter(|b| b.0 == goal) {
                    ways.push((self.array_cost(rest, Some(item)), own));
                }
                for (own, above) in ways {
                    if own < best {
                        let above =
                            stacker::maybe_grow(64 << 10, 1 << 20, || self.cost_above(way, node.up, above));
                        best = best.min(own.saturating_add(above));
                    }
                }
                best
            }
        };
        way.costs.insert((up, goal), cost.min(NEVER));
        cost.min(NEVER)
    }

    fn object_cost(&mut self, a: &Alternative, used: KeySet) -> usize {
        let rest = self.schema.object_witness(a.formula, &self.frames.keys(a, used));
        rest.map_or(NEVER, |rest| rest.length - 1)
    }

    fn array_cost(&mut self, formula: ArrId, item: Option<ValId>) -> usize {
        let items = self.schema.array_rest_witness(formula).or_else(|| {
            // the end needs an item equal to this one: as long as for a short value of its kind
            let item = self.schema.witness(item?)?;
            let text = self.schema.spelled(&item, LONGEST)?;
            let value = self.schema.constant_of_text(&text)?;
            let after = self.schema.remember(formula, value);
            self.schema.array_rest_witness(after)
        });
        items.map_or(NEVER, |items| self.schema.length_of_items(&items).saturating_add(1))
    }

    fn best_property(&mut self, way: &mut Way, node: Node) -> Option<()> {
        let frame = self.frames[node.object()].clone();
        let (go, close) = self.white_leaves(way.pos);
        let close = close && node.place != ParserPhase::ObjectNext;
        let mut best: Option<(usize, Alternative)> = None;
        for a in frame.alternatives.iter() {
            if !go && !self.schema.may_end(a.formula) {
                continue;
            }
            let own = self.object_cost(a, frame.used);
            let cost = own.saturating_add(self.cost_above(way, node.up, a.goal));
            if cost < NEVER && best.is_none_or(|b| cost < b.0) {
                best = Some((cost, *a));
            }
        }
        let a = best?.1;
        if close && self.schema.may_end(a.formula) {
            return self.push(way, b"}");
        }
        let mut key = self.schema.first_key(a.formula, &self.frames.keys(&a, frame.used));
        if key.is_none() {
            // after a comma some key must come, needed or not
            let term = self.key_term(node.object());
            let spelling = self.schema.string_spelling();
            key = self.schema.shortest(spelling, term).map(|t| format!("\"{t}\""));
        }
        let mut bytes = if node.place == ParserPhase::ObjectAfter { vec![b','] } else { Vec::new() };
        bytes.extend(key?.into_bytes());
        self.push(way, &bytes)
    }

    fn best_item(&mut self, way: &mut Way, node: Node) -> Option<()> {
        let frame = self.frames[node.array()].clone();
        let (go, close) = self.white_leaves(way.pos);
        let mut best: Option<(usize, ArrId)> = None;
        for &(goal, formula) in frame.iter() {
            if !go && !self.schema.may_end(formula) {
                continue;
            }
            let own = self.array_cost(formula, None);
            let cost = own.saturating_add(self.cost_above(way, node.up, goal));
            if cost < NEVER && best.is_none_or(|b| cost < b.0) {
                best = Some((cost, formula));
            }
        }
        let best = best?.1;
        if close && self.schema.may_end(best) {
            return self.push(way, b"]");
        }
        if node.place == ParserPhase::ArrayAfter {
            return self.push(way, b",");
        }
        let (goals, up, _) = self.item(node)?;
        let goals = self.frames[goals].clone();
        self.best_value(way, &goals, up)
    }
}
