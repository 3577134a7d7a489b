//! A short completion from any position to the end of the document.
//!
//! It is found by driving the machine itself, so that it obeys every option (order, whitespace).  At each position the
//! cheapest branch is taken: the length of a short value for it, and of what its parents still need after that.
//! Invariant: every prefix of the completion is accepted, and the whole ends the document.
//! Complexity: the branches of each frame on the path; what follows a position is remembered.
//! Memory: the pieces of completions between positions that were met.

use rustc_hash::FxHashMap;

use super::{Alternative, Context, JsonMachine, ParserPhase};
use crate::automaton::byte_automaton::step;
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::lexical::{shortest_lexeme, Lexicon, Step, LONGEST};
use crate::schema::key_sets::KeySet;
use crate::schema::live::Witness;
use crate::schema::{ArrId, ValId};

/// A cost beyond every real one.
const NEVER: usize = usize::MAX / 4;

struct CompletionPath {
    pos: Pos,
    text: Vec<u8>,
    out: Vec<u8>,
    costs: FxHashMap<(CtxId, u32), usize>,
    /// Bytes that it may have.
    most: usize,
}

impl JsonMachine {
    pub(crate) fn completion_bytes(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<u8>> {
        let most = most.min(LONGEST);
        let mut path =
            CompletionPath { most, pos, text: text.to_vec(), out: Vec::new(), costs: FxHashMap::default() };
        let mut marks: Vec<(Pos, usize)> = Vec::new();
        while !self.accepting(path.pos, &path.text) {
            if path.text.is_empty() {
                if self.suffixes.contains_key(&path.pos) {
                    break;
                }
                marks.push((path.pos, path.out.len()));
            }
            let before = path.out.len();
            self.advance(&mut path)?;
            if path.out.len() == before || path.out.len() > most {
                return None;
            }
        }
        self.remember_suffixes(&marks, &path);
        let mut next = path.text.is_empty().then_some(path.pos);
        while let Some((piece, then)) = next.and_then(|pos| self.suffixes.get(&pos)) {
            path.out.extend_from_slice(piece);
            next = *then;
        }
        (path.out.len() <= most).then_some(path.out)
    }

    /// Positions on a way and what follows each until the next: other ways that come there end the same.
    fn remember_suffixes(&mut self, marks: &[(Pos, usize)], path: &CompletionPath) {
        for (i, &(pos, from)) in marks.iter().enumerate() {
            let (to, next) = match marks.get(i + 1) {
                Some(&(next, to)) => (to, Some(next)),
                None => (path.out.len(), path.text.is_empty().then_some(path.pos)),
            };
            self.suffixes.insert(pos, (path.out[from..to].into(), next.filter(|&n| n != pos)));
        }
    }

    fn advance(&mut self, path: &mut CompletionPath) -> Option<()> {
        let context = self.context(path.pos.ctx);
        match context.phase {
            ParserPhase::Scalar | ParserPhase::Key => self.finish_lexeme(path, context),
            ParserPhase::Done => self.finish_whitespace(path),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                let goals = self.frames[context.goals()].clone();
                self.best_value(path, &goals, context.parent)
            }
            ParserPhase::Colon => self.push(path, b":"),
            ParserPhase::ObjectStart | ParserPhase::ObjectAfter | ParserPhase::ObjectNext => {
                self.best_property(path, context)
            }
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter => self.best_item(path, context),
            ParserPhase::ReturnRoot | ParserPhase::ReturnObject | ParserPhase::ReturnArray => None,
        }
    }

    /// Writes bytes, with the whitespace that the options ask for before each.
    fn push(&mut self, path: &mut CompletionPath, bytes: &[u8]) -> Option<()> {
        for &byte in bytes {
            if let Step::Stay(lex) = self.lexicon().step(path.pos.lex, byte) {
                // inside a lexeme nothing can fail, and its text may be long
                path.out.push(byte);
                path.pos.lex = lex;
                if self.records(path.pos.ctx) {
                    path.text.push(byte);
                }
                continue;
            }
            for _ in 0..LONGEST {
                let mut text = path.text.clone();
                if let Some(next) = step(self, path.pos, &mut text, byte) {
                    path.out.push(byte);
                    (path.pos, path.text) = (next, text);
                    break;
                }
                self.push_whitespace(path)?;
            }
        }
        Some(())
    }

    fn push_whitespace(&mut self, path: &mut CompletionPath) -> Option<()> {
        for &(byte, blank) in &[(b' ', true), (b'\n', true), (b'\t', true)] {
            if let (Step::Stay(lex), true) = (self.lexicon().step(path.pos.lex, byte), blank) {
                path.out.push(byte);
                path.pos.lex = lex;
                return Some(());
            }
        }
        None
    }

    fn finish_whitespace(&mut self, path: &mut CompletionPath) -> Option<()> {
        let (bytes, lex) = shortest_lexeme(self.lexicon(), path.pos.lex, path.most)?;
        path.out.extend(bytes);
        path.pos.lex = lex;
        Some(())
    }

    fn finish_lexeme(&mut self, path: &mut CompletionPath, context: Context) -> Option<()> {
        let string = context.phase == ParserPhase::Key || self.lexicon().is_string(path.pos.lex) || {
            // in the middle of a code point or an escape: only strings have those
            self.lexicon().term(path.pos.lex).is_none()
        };
        let (mut bytes, _) = shortest_lexeme(self.lexicon(), path.pos.lex, path.most)?;
        if string {
            bytes.push(b'"');
            return self.push(path, &bytes);
        }
        self.push(path, &bytes)?;
        let outcome = self.lexicon().outcome(path.pos.lex);
        if outcome == Lexicon::NONE || self.accepting(path.pos, &path.text) {
            return Some(());
        }
        // a number or a word ends with what follows it: go on from there
        let satisfied: Vec<u32> = {
            let map = self.frames[context.map()].clone();
            let list = self.lexicon().outcome_list(outcome);
            list.iter().map(|&i| map[i as usize]).collect()
        };
        let record = self.add(context.record, &path.text);
        path.pos = self.resume(context.parent, &satisfied, record)?;
        path.text.clear();
        self.advance(path)
    }

    /// The cheapest value among several goals.
    fn best_value(&mut self, path: &mut CompletionPath, goals: &[ValId], parent: CtxId) -> Option<()> {
        let mut best: Option<(usize, std::sync::Arc<Witness>)> = None;
        for (i, &v) in goals.iter().enumerate() {
            let Some(value) = self.schema.witness(v) else { continue };
            let cost = value.length.saturating_add(self.cost_above(path, parent, i as u32));
            if cost < NEVER && best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, value));
            }
        }
        let (cost, value) = best?;
        // what will be too long is not begun
        if cost > path.most {
            return None;
        }
        self.push(path, value.opening().as_bytes())
    }

    /// Length of what the frames above still need when the value here satisfies a goal.
    fn cost_above(&mut self, path: &mut CompletionPath, parent: CtxId, goal: u32) -> usize {
        if let Some(&known) = path.costs.get(&(parent, goal)) {
            return known;
        }
        path.costs.insert((parent, goal), NEVER);
        let context = self.context(parent);
        let cost = match context.phase {
            ParserPhase::ReturnRoot => 0,
            _ => {
                let return_frame = self.frames[context.return_frame()].clone();
                let mut best = NEVER;
                let item = return_frame.goals[goal as usize];
                let mut ways: Vec<(usize, u32)> = Vec::new();
                for (_, next) in return_frame.properties().iter().filter(|b| b.0 == goal) {
                    ways.push((self.object_cost(next, return_frame.used), next.goal));
                }
                for &(_, (own, rest)) in return_frame.items().iter().filter(|b| b.0 == goal) {
                    ways.push((self.array_cost(rest, Some(item)), own));
                }
                for (own, above) in ways {
                    if own < best {
                        let above = stacker::maybe_grow(64 << 10, 1 << 20, || {
                            self.cost_above(path, context.parent, above)
                        });
                        best = best.min(own.saturating_add(above));
                    }
                }
                best
            }
        };
        path.costs.insert((parent, goal), cost.min(NEVER));
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

    fn best_property(&mut self, path: &mut CompletionPath, context: Context) -> Option<()> {
        let frame = self.frames[context.object()].clone();
        let (go, close) = self.whitespace_leads_to(path.pos);
        let close = close && context.phase != ParserPhase::ObjectNext;
        let mut best: Option<(usize, Alternative)> = None;
        for a in frame.alternatives.iter() {
            if !go && !self.schema.may_end(a.formula) {
                continue;
            }
            let own = self.object_cost(a, frame.used);
            let cost = own.saturating_add(self.cost_above(path, context.parent, a.goal));
            if cost < NEVER && best.is_none_or(|b| cost < b.0) {
                best = Some((cost, *a));
            }
        }
        let a = best?.1;
        if close && self.schema.may_end(a.formula) {
            return self.push(path, b"}");
        }
        let mut key = self.schema.first_key(a.formula, &self.frames.keys(&a, frame.used));
        if key.is_none() {
            // after a comma some key must come, needed or not
            let term = self.key_term(context.object());
            let spelling = self.schema.string_spelling();
            key = self.schema.shortest(spelling, term).map(|t| format!("\"{t}\""));
        }
        let mut bytes = if context.phase == ParserPhase::ObjectAfter { vec![b','] } else { Vec::new() };
        bytes.extend(key?.into_bytes());
        self.push(path, &bytes)
    }

    fn best_item(&mut self, path: &mut CompletionPath, context: Context) -> Option<()> {
        let frame = self.frames[context.array()].clone();
        let (go, close) = self.whitespace_leads_to(path.pos);
        let mut best: Option<(usize, ArrId)> = None;
        for &(goal, formula) in frame.iter() {
            if !go && !self.schema.may_end(formula) {
                continue;
            }
            let own = self.array_cost(formula, None);
            let cost = own.saturating_add(self.cost_above(path, context.parent, goal));
            if cost < NEVER && best.is_none_or(|b| cost < b.0) {
                best = Some((cost, formula));
            }
        }
        let best = best?.1;
        if close && self.schema.may_end(best) {
            return self.push(path, b"]");
        }
        if context.phase == ParserPhase::ArrayAfter {
            return self.push(path, b",");
        }
        let (goals, parent, _) = self.item(context)?;
        let goals = self.frames[goals].clone();
        self.best_value(path, &goals, parent)
    }
}
