//! Texts that matter, where nearly all of them mean the same.
//!
//! Purpose: the key of an object that no schema names, or a string inside an item of a `uniqueItems` array, is
//! remembered; yet the 500 tokens that close it lead to places that differ only by what was remembered.  One
//! position stands for all texts but the few that the frame or an earlier item knows; so a mask is one walk.
//! Invariant: the position allows what the exact one does, as long as no further remembered text is closed;
//! every such closing is counted, and the caller takes the exact way where the count moved.
//! Rejected: a context for every text a token may close: 20,000 contexts for one document of 150 strings.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::frames::{FrameId, ObjectFrameId, RecordId, ReturnFrameId};
use super::{JsonMachine, Node, ObjectFrame, ParserPhase, ReturnFrame};
use crate::automaton::{CtxId, Pos};
use crate::held::{self, Interner};
use crate::lexical::term::Term;
use crate::lexical::{LexId, TermId, Terms};
use crate::schema::by_key::Key;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::used::KeySet;
use crate::schema::NameId;

/// Words that a language must have beyond every text for one of them more or less not to matter: those of two
/// characters over so many places.
const ROOM: u32 = 256;

/// Patterns that are told apart side by side; the keys of objects with more are looked at one by one.
const MOST_KINDS: usize = 16;

/// Texts in ascending order.
type Texts = Arc<[Box<str>]>;

/// A context's own part, and the number of what is above it as far as it counts.
type Near = (ParserPhase, FrameId, RecordId, u32);

/// Which texts matter where, and which contexts no other text tells apart.
#[derive(Default)]
pub(super) struct Alike {
    generic: FxHashMap<ObjectFrameId, Option<ReturnFrameId>>,
    twins: FxHashMap<CtxId, CtxId>,
    /// Contexts cut after so many levels.
    nears: Interner<Near>,
    nears_of: FxHashMap<(CtxId, u32), u32>,
    /// The keys that a frame's schemas name: the number of their set, and each set's texts, sorted.
    special: FxHashMap<ObjectFrameId, u32>,
    named: IndexMap<Box<[NameId]>, Texts, FxBuildHasher>,
    /// Texts inside the items that were remembered so far.
    recalled: BTreeSet<Box<str>>,
    roomy: FxHashMap<CtxId, bool>,
    /// The languages that tell a frame's other keys apart.
    kinds: FxHashMap<ObjectFrameId, Option<LexId>>,
    /// How often a text that matters was closed.
    pub texts_closed: u64,
}

held::plain!(Near);

held::tables!(Alike: generic, twins, nears, nears_of, special, roomy, kinds; this => {
    // texts of remembered items are short; a set's texts are those of its names
    let named: usize = this.named.keys().map(|names| 64 + 4 * names.len()).sum();
    64 * this.recalled.len() + named
});

impl JsonMachine {
    /// Where a lexeme leads that is closed with a text like most others.
    pub(super) fn after_generic(&mut self, ctx: CtxId, held: &[u32]) -> Option<Pos> {
        let node = self.node(ctx);
        match node.place {
            ParserPhase::Key if node.record.is_none() || self.is_roomy(node) => self.after_generic_key(node),
            ParserPhase::Scalar if self.is_roomy(node) && self.is_free_text(node) => {
                let goals: Vec<u32> = held.iter().map(|&i| self.frames[node.map()][i as usize]).collect();
                self.resume(node.up, &goals, RecordId::OTHER)
            }
            _ => None,
        }
    }

    /// What is left of the texts that begin with this one and that the frame or an earlier item knows. Keys that
    /// were used are not among them: the language of the key has none of them any more.
    pub(super) fn special_texts(&mut self, ctx: CtxId, text: &str) -> Vec<String> {
        let node = self.node(ctx);
        let mut out: Vec<String> = Vec::new();
        if !node.record.is_none() {
            let from = self
                .alike
                .recalled
                .range::<str, _>((std::ops::Bound::Included(text), std::ops::Bound::Unbounded));
            let own = from.take_while(|known| known.starts_with(text));
            out.extend(own.map(|known| known[text.len()..].to_string()));
        }
        if node.place == ParserPhase::Key {
            let set = self.special_set(node.object());
            let names = &self.alike.named[set as usize];
            let from = names.partition_point(|n| &**n < text);
            let own = names[from..].iter().take_while(|n| n.starts_with(text));
            out.extend(own.map(|n| n[text.len()..].to_string()));
        }
        out
    }

    /// Whether the text is one that the frame or an earlier item knows.
    pub(super) fn is_special_text(&mut self, ctx: CtxId, text: &str) -> bool {
        let node = self.node(ctx);
        if !node.record.is_none() && self.alike.recalled.contains(text) {
            return true;
        }
        node.place == ParserPhase::Key && {
            let set = self.special_set(node.object());
            self.alike.named[set as usize].binary_search_by(|name| (**name).cmp(text)).is_ok()
        }
    }

    /// Every text of a remembered item is known from now on.
    pub(super) fn recall(&mut self, value: JsonNodeId) {
        let mut stack = vec![value];
        while let Some(at) = stack.pop() {
            match self.schema.doc.get(at) {
                Json::String(text) => {
                    self.alike.recalled.insert((**text).into());
                }
                Json::Array(items) => stack.extend(items.iter()),
                Json::Object(entries) => {
                    for (key, value) in entries.iter() {
                        self.alike.recalled.insert((**key).into());
                        stack.push(*value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether one value more or less is of no account to the arrays that remember this one: the next item of
    /// each has the same schema, and duplicates are only forbidden, never asked for.
    fn is_roomy(&mut self, node: Node) -> bool {
        memo!(self.alike.roomy, node.up, {
            let mut at = node.up;
            let mut answer = true;
            loop {
                let up = self.node(at);
                if up.place == ParserPhase::ReturnArray {
                    let pending = self.frames[up.pending()].clone();
                    answer &= pending.start == 0 || self.repeats(&pending);
                    if up.record.is_none() && pending.start != 0 {
                        break;
                    }
                } else if up.place == ParserPhase::ReturnRoot {
                    break;
                }
                at = up.up;
            }
            answer
        })
    }

    fn repeats(&mut self, pending: &ReturnFrame) -> bool {
        pending.items().iter().all(|&(_, (_, rest))| {
            if self.schema.wants_duplicates(rest) {
                return false;
            }
            let items = self.schema.next_items(rest);
            items.iter().all(|&(sub, _)| {
                let v = self.schema.compile_or_refuse(sub);
                pending.goals.contains(&v)
            })
        })
    }

    /// Whether a string is of languages in which every text can go on in very many ways.
    fn is_free_text(&mut self, node: Node) -> bool {
        let up = self.node(node.up);
        let goals = self.frames[up.pending()].goals.clone();
        let map = self.frames[node.map()].clone();
        map.iter().all(|&i| {
            let language = self.schema.value(goals[i as usize]).str;
            self.has_room(language)
        })
    }

    fn has_room(&mut self, t: TermId) -> bool {
        let terms = self.terms();
        match terms.get(t).clone() {
            Term::All => true,
            Term::Not(x) => terms.lists_words(x),
            Term::Repeat(c, _, hi) => {
                hi >= ROOM && matches!(terms.get(c), Term::Class(s) if size(terms.set(*s)) > 1)
            }
            Term::And(xs) => xs.iter().all(|&x| self.has_room(x)),
            _ => false,
        }
    }

    /// Where a key leads that no schema of the frame names and that was not used; `None` where patterns tell
    /// such keys apart.
    fn after_generic_key(&mut self, node: Node) -> Option<Pos> {
        let pending = memo!(self.alike.generic, node.object(), self.generic_pending(node.object()))?;
        let record = if node.record.is_none() { RecordId::NONE } else { RecordId::OTHER };
        let next = self.ctx(ParserPhase::Colon, node.up, pending, record, node.depth);
        Some(self.pos(next))
    }

    /// Where patterns tell the keys apart that no schema of the frame names: the state of the patterns, side by side.
    /// Only where no later key is wanted whatever its name: which text the key had makes a difference there.
    pub(super) fn kinds_of_keys(&mut self, ctx: CtxId) -> Option<LexId> {
        let node = self.node(ctx);
        if node.place != ParserPhase::Key || !node.record.is_none() {
            return None;
        }
        memo!(self.alike.kinds, node.object(), self.find_kinds(node.object()))
    }

    fn find_kinds(&mut self, frame: ObjectFrameId) -> Option<LexId> {
        let object = self.frames[frame].clone();
        let mut patterns = Vec::new();
        for a in object.alternatives.iter() {
            let mut own = Vec::new();
            self.schema.all_patterns(a.formula, &mut own);
            crate::lists::sort_unique(&mut own);
            for (cell, _) in self.schema.cells_of(&own).iter() {
                let rests = self.schema.read_key(a.formula, &Key::Cell(cell));
                if rests.iter().any(|&(_, rest)| self.schema.wants_some_key(rest)) {
                    return None;
                }
            }
            patterns.extend(own);
        }
        patterns.retain(|&p| p != Terms::ALL);
        crate::lists::sort_unique(&mut patterns);
        if patterns.is_empty() || patterns.len() > MOST_KINDS {
            return None;
        }
        // the last has all texts, so that the state never dies
        patterns.push(Terms::ALL);
        let term = self.terms().tuple(&patterns);
        let spelling = self.schema.string_spelling();
        Some(self.lexicon().at(spelling, term))
    }

    /// The context that has the same ways to an end: which keys were used tells only those apart that need some
    /// key, whatever its name.
    pub(super) fn twin_of(&mut self, ctx: CtxId) -> CtxId {
        memo!(self.alike.twins, ctx, {
            let node = self.node(ctx);
            if !node.record.is_none() || node.place == ParserPhase::ReturnRoot {
                ctx
            } else {
                let up = stacker::maybe_grow(64 << 10, 1 << 20, || self.twin_of(node.up));
                let frame = match node.place {
                    ParserPhase::Colon | ParserPhase::ReturnObject => {
                        self.plain_pending(node.pending()).into()
                    }
                    ParserPhase::ObjectStart | ParserPhase::ObjectAfter | ParserPhase::Key => {
                        self.plain_frame(node.object()).into()
                    }
                    _ => node.frame,
                };
                self.ctx(node.place, up, frame, node.record, node.depth)
            }
        })
    }

    /// See [`crate::automaton::ByteAutomaton::near`].
    pub(super) fn near_of(&mut self, ctx: CtxId, levels: u32, longest: u32) -> Option<u32> {
        let depth = self.node(ctx).depth;
        // above this depth a level tells what whitespace may follow
        let shallow = levels + self.indents(longest)?;
        // a token may open as many levels as it has bytes
        let deepest = depth.saturating_add(longest);
        (depth > shallow && deepest < self.levels.deepest).then(|| self.cut(ctx, levels))
    }

    fn cut(&mut self, ctx: CtxId, levels: u32) -> u32 {
        memo!(self.alike.nears_of, (ctx, levels), {
            let node = self.node(ctx);
            let above = if levels == 0 { u32::MAX } else { self.cut(node.up, levels - 1) };
            self.alike.nears.intern((node.place, node.frame, node.record, above))
        })
    }

    fn plain_pending(&mut self, pending: ReturnFrameId) -> ReturnFrameId {
        let known = self.frames[pending].clone();
        let some_key = known.properties().iter().any(|(_, a)| self.schema.wants_some_key(a.formula));
        if known.used == KeySet::EMPTY || known.start != 0 || some_key {
            return pending;
        }
        self.frames.pending(ReturnFrame { used: KeySet::EMPTY, ..known })
    }

    fn plain_frame(&mut self, frame: ObjectFrameId) -> ObjectFrameId {
        let known = self.frames[frame].clone();
        let some_key = known.alternatives.iter().any(|a| self.schema.wants_some_key(a.formula));
        if known.used == KeySet::EMPTY || some_key {
            return frame;
        }
        self.frames.object(ObjectFrame { used: KeySet::EMPTY, ..known })
    }

    fn generic_pending(&mut self, frame: ObjectFrameId) -> Option<ReturnFrameId> {
        let object = self.frames[frame].clone();
        let mut patterns = Vec::new();
        for a in object.alternatives.iter() {
            self.schema.all_patterns(a.formula, &mut patterns);
        }
        if patterns.iter().any(|&p| p != Terms::ALL) {
            return None;
        }
        // what a key leads to depends on the keys used before only where another key is closed, and the caller
        // watches that: one position serves the frame whatever was used
        let term = self.key_term(frame);
        let open = self.terms().lacks_words(term);
        let frame = if open {
            let plain = ObjectFrame { alternatives: object.alternatives.clone(), used: KeySet::EMPTY };
            self.frames.object(plain)
        } else {
            frame
        };
        // a key like no other: code point U+FFFF repeated, made longer until no schema names it
        let special = self.special_set(frame);
        let special = self.alike.named[special as usize].clone();
        let mut text = String::from("\u{FFFF}");
        let mut name = self.schema.name(&text);
        while special.binary_search_by(|known| (**known).cmp(&*text)).is_ok()
            || self.schema.key_sets.contains(object.used, name)
        {
            text.push('\u{FFFF}');
            name = self.schema.name(&text);
        }
        let pending = self.pending(frame, name)?;
        if !open {
            return Some(pending);
        }
        let plain = ReturnFrame { used: KeySet::EMPTY, ..self.frames[pending].clone() };
        Some(self.frames.pending(plain))
    }

    /// The number of the keys that a frame's schemas name, sorted; they are the same whatever was used.
    pub(super) fn special_set(&mut self, frame: ObjectFrameId) -> u32 {
        memo!(self.alike.special, frame, {
            let object = &self.frames[frame];
            let mut names = Vec::new();
            for a in object.alternatives.iter() {
                self.schema.all_names(a.formula, &mut names);
                names.extend(self.frames.ranks[a.order as usize].keys());
            }
            crate::lists::sort_unique(&mut names);
            let named = self.alike.named.get_index_of(&names[..]);
            named.unwrap_or_else(|| {
                let mut texts: Vec<Box<str>> =
                    names.iter().map(|&n| self.schema.name_text(n).into()).collect();
                texts.sort_unstable();
                self.alike.named.insert_full(names.into(), texts.into()).0
            }) as u32
        })
    }
}

fn size(ranges: &[(u32, u32)]) -> u32 {
    ranges.iter().map(|&(lo, hi)| hi - lo + 1).sum()
}
