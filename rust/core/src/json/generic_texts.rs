//! Strings whose text is remembered, where nearly all texts have the same effect.
//!
//! Purpose: the key of an object that no schema names, or a string inside an item of a `uniqueItems` array, is remembered.
//! So the 500 tokens that close it lead to contexts that differ only by what was remembered.  Here one position stands for
//! all texts but the few *special* ones that the frame or an earlier item knows; so a mask is one walk.
//! Invariant: the position allows what the exact one does, as long as no further remembered text is closed;
//! every such closing is counted, and the caller takes the exact way where the count moved.
//! Rejected: a context for every text a token may close: 20,000 contexts for one document of 150 strings.

use std::collections::BTreeSet;
use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::frames::{FrameId, ObjectFrameId, RecordId, ReturnFrameId};
use super::{Context, JsonMachine, ObjectFrame, ParserPhase, ReturnFrame};
use crate::automaton::{CtxId, Pos};
use crate::heap_size::{self, Interner};
use crate::lexical::term::Term;
use crate::lexical::{LexId, TermId, Terms};
use crate::schema::by_key::Key;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::key_sets::KeySet;
use crate::schema::NameId;

/// Words that a language must have beyond every text for one of them more or less not to matter: those of two
/// characters over so many places.
const ROOM: u32 = 256;

/// Patterns that are read side by side; keys of objects with more patterns are examined one by one.
const MOST_KINDS: usize = 16;

/// Texts in ascending order.
type TextList = Arc<[Box<str>]>;

/// A context's own part, and the key of the levels above it up to the cut.
type TruncatedContext = (ParserPhase, FrameId, RecordId, u32);

/// Memos: the special texts of each frame, and the contexts that allow the same texts.
#[derive(Default)]
pub(super) struct GenericTexts {
    generic_returns: FxHashMap<ObjectFrameId, Option<ReturnFrameId>>,
    equivalents: FxHashMap<CtxId, CtxId>,
    /// Contexts cut after so many levels.
    truncated: Interner<TruncatedContext>,
    truncated_keys: FxHashMap<(CtxId, u32), u32>,
    /// The keys that a frame's schemas name: the number of their set, and each set's texts, sorted.
    special: FxHashMap<ObjectFrameId, u32>,
    named: IndexMap<Box<[NameId]>, TextList, FxBuildHasher>,
    /// Texts inside the items that were remembered so far.
    remembered: BTreeSet<Box<str>>,
    ignores_one_more: FxHashMap<CtxId, bool>,
    /// The languages that tell a frame's other keys apart.
    partitions: FxHashMap<ObjectFrameId, Option<LexId>>,
    /// How often a text that matters was closed.
    pub texts_closed: u64,
}

heap_size::plain!(TruncatedContext);

heap_size::tables!(GenericTexts: generic_returns, equivalents, truncated, truncated_keys, special, ignores_one_more, partitions; this => {
    // texts of remembered items are short; a set's texts are those of its names
    let named: usize = this.named.keys().map(|names| 64 + 4 * names.len()).sum();
    64 * this.remembered.len() + named
});

impl JsonMachine {
    /// Where a lexeme leads that is closed with a text like most others.
    pub(super) fn after_generic(&mut self, ctx: CtxId, accepting: &[u32]) -> Option<Pos> {
        let context = self.context(ctx);
        match context.phase {
            ParserPhase::Key if context.record.is_none() || self.ignores_one_more_value(context) => {
                self.after_generic_key(context)
            }
            ParserPhase::Scalar if self.ignores_one_more_value(context) && self.is_free_text(context) => {
                let goals: Vec<u32> =
                    accepting.iter().map(|&i| self.frames[context.map()][i as usize]).collect();
                self.resume(context.parent, &goals, RecordId::OTHER)
            }
            _ => None,
        }
    }

    /// What is left of the texts that begin with this one and that the frame or an earlier item knows. Keys that
    /// were used are not among them: the language of the key has none of them any more.
    pub(super) fn special_texts(&mut self, ctx: CtxId, text: &str) -> Vec<String> {
        let context = self.context(ctx);
        let mut out: Vec<String> = Vec::new();
        if !context.record.is_none() {
            let from = self
                .generic
                .remembered
                .range::<str, _>((std::ops::Bound::Included(text), std::ops::Bound::Unbounded));
            let own = from.take_while(|known| known.starts_with(text));
            out.extend(own.map(|known| known[text.len()..].to_string()));
        }
        if context.phase == ParserPhase::Key {
            let set = self.special_set(context.object());
            let names = &self.generic.named[set as usize];
            let from = names.partition_point(|n| &**n < text);
            let own = names[from..].iter().take_while(|n| n.starts_with(text));
            out.extend(own.map(|n| n[text.len()..].to_string()));
        }
        out
    }

    /// Whether the text is one that the frame or an earlier item knows.
    pub(super) fn is_special_text(&mut self, ctx: CtxId, text: &str) -> bool {
        let context = self.context(ctx);
        if !context.record.is_none() && self.generic.remembered.contains(text) {
            return true;
        }
        context.phase == ParserPhase::Key && {
            let set = self.special_set(context.object());
            self.generic.named[set as usize].binary_search_by(|name| (**name).cmp(text)).is_ok()
        }
    }

    /// Every text of a remembered item is known from now on.
    pub(super) fn remember_texts(&mut self, value: JsonNodeId) {
        let mut stack = vec![value];
        while let Some(at) = stack.pop() {
            match self.schema.doc.get(at) {
                Json::String(text) => {
                    self.generic.remembered.insert((**text).into());
                }
                Json::Array(items) => stack.extend(items.iter()),
                Json::Object(entries) => {
                    for (key, value) in entries.iter() {
                        self.generic.remembered.insert((**key).into());
                        stack.push(*value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether one value more or less is of no account to the arrays that remember this one: the next item of
    /// each has the same schema, and duplicates are only forbidden, never asked for.
    fn ignores_one_more_value(&mut self, context: Context) -> bool {
        memo!(self.generic.ignores_one_more, context.parent, {
            let mut at = context.parent;
            let mut answer = true;
            loop {
                let parent = self.context(at);
                if parent.phase == ParserPhase::ReturnArray {
                    let return_frame = self.frames[parent.return_frame()].clone();
                    answer &= return_frame.start == 0 || self.repeats(&return_frame);
                    if parent.record.is_none() && return_frame.start != 0 {
                        break;
                    }
                } else if parent.phase == ParserPhase::ReturnRoot {
                    break;
                }
                at = parent.parent;
            }
            answer
        })
    }

    fn repeats(&mut self, return_frame: &ReturnFrame) -> bool {
        return_frame.items().iter().all(|&(_, (_, rest))| {
            if self.schema.wants_duplicates(rest) {
                return false;
            }
            let items = self.schema.next_items(rest);
            items.iter().all(|&(sub, _)| {
                let v = self.schema.compile_or_refuse(sub);
                return_frame.goals.contains(&v)
            })
        })
    }

    /// Whether a string is of languages in which every text can go on in very many ways.
    fn is_free_text(&mut self, context: Context) -> bool {
        let parent = self.context(context.parent);
        let goals = self.frames[parent.return_frame()].goals.clone();
        let map = self.frames[context.map()].clone();
        map.iter().all(|&i| {
            let language = self.schema.value(goals[i as usize]).str;
            self.has_many_continuations(language)
        })
    }

    fn has_many_continuations(&mut self, t: TermId) -> bool {
        let terms = self.terms();
        match terms.get(t).clone() {
            Term::All => true,
            Term::Not(x) => terms.lists_words(x),
            Term::Repeat(c, _, hi) => {
                hi >= ROOM && matches!(terms.get(c), Term::Class(s) if size(terms.set(*s)) > 1)
            }
            Term::And(xs) => xs.iter().all(|&x| self.has_many_continuations(x)),
            _ => false,
        }
    }

    /// Where a key leads that no schema of the frame names and that was not used; `None` where patterns tell
    /// such keys apart.
    fn after_generic_key(&mut self, context: Context) -> Option<Pos> {
        let return_frame = memo!(
            self.generic.generic_returns,
            context.object(),
            self.generic_return_frame(context.object())
        )?;
        let record = if context.record.is_none() { RecordId::NONE } else { RecordId::OTHER };
        let next = self.ctx(ParserPhase::Colon, context.parent, return_frame, record, context.depth);
        Some(self.pos(next))
    }

    /// Where patterns tell the keys apart that no schema of the frame names: the state of the patterns, side by side.
    /// Only where no later key is wanted whatever its name: which text the key had makes a difference there.
    pub(super) fn key_partition(&mut self, ctx: CtxId) -> Option<LexId> {
        let context = self.context(ctx);
        if context.phase != ParserPhase::Key || !context.record.is_none() {
            return None;
        }
        memo!(self.generic.partitions, context.object(), self.find_key_partition(context.object()))
    }

    fn find_key_partition(&mut self, frame: ObjectFrameId) -> Option<LexId> {
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
    pub(super) fn equivalent_of(&mut self, ctx: CtxId) -> CtxId {
        memo!(self.generic.equivalents, ctx, {
            let context = self.context(ctx);
            if !context.record.is_none() || context.phase == ParserPhase::ReturnRoot {
                ctx
            } else {
                let parent = stacker::maybe_grow(64 << 10, 1 << 20, || self.equivalent_of(context.parent));
                let frame = match context.phase {
                    ParserPhase::Colon | ParserPhase::ReturnObject => {
                        self.representative_return_frame(context.return_frame()).into()
                    }
                    ParserPhase::ObjectStart | ParserPhase::ObjectAfter | ParserPhase::Key => {
                        self.representative_frame(context.object()).into()
                    }
                    _ => context.frame,
                };
                self.ctx(context.phase, parent, frame, context.record, context.depth)
            }
        })
    }

    /// See [`crate::automaton::ByteAutomaton::truncated_key`].
    pub(super) fn truncated_key_of(&mut self, ctx: CtxId, levels: u32, longest: u32) -> Option<u32> {
        let depth = self.context(ctx).depth;
        // above this depth a level tells what whitespace may follow
        let shallow = levels + self.indents(longest)?;
        // a token may open as many levels as it has bytes
        let deepest = depth.saturating_add(longest);
        (depth > shallow && deepest < self.levels.deepest).then(|| self.cut(ctx, levels))
    }

    fn cut(&mut self, ctx: CtxId, levels: u32) -> u32 {
        memo!(self.generic.truncated_keys, (ctx, levels), {
            let context = self.context(ctx);
            let above = if levels == 0 { u32::MAX } else { self.cut(context.parent, levels - 1) };
            self.generic.truncated.intern((context.phase, context.frame, context.record, above))
        })
    }

    fn representative_return_frame(&mut self, return_frame: ReturnFrameId) -> ReturnFrameId {
        let known = self.frames[return_frame].clone();
        let some_key = known.properties().iter().any(|(_, a)| self.schema.wants_some_key(a.formula));
        if known.used == KeySet::EMPTY || known.start != 0 || some_key {
            return return_frame;
        }
        self.frames.return_frame(ReturnFrame { used: KeySet::EMPTY, ..known })
    }

    fn representative_frame(&mut self, frame: ObjectFrameId) -> ObjectFrameId {
        let known = self.frames[frame].clone();
        let some_key = known.alternatives.iter().any(|a| self.schema.wants_some_key(a.formula));
        if known.used == KeySet::EMPTY || some_key {
            return frame;
        }
        self.frames.object(ObjectFrame { used: KeySet::EMPTY, ..known })
    }

    fn generic_return_frame(&mut self, frame: ObjectFrameId) -> Option<ReturnFrameId> {
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
        let special = self.generic.named[special as usize].clone();
        let mut text = String::from("\u{FFFF}");
        let mut name = self.schema.name(&text);
        while special.binary_search_by(|known| (**known).cmp(&*text)).is_ok()
            || self.schema.key_sets.contains(object.used, name)
        {
            text.push('\u{FFFF}');
            name = self.schema.name(&text);
        }
        let return_frame = self.return_frame(frame, name)?;
        if !open {
            return Some(return_frame);
        }
        let plain = ReturnFrame { used: KeySet::EMPTY, ..self.frames[return_frame].clone() };
        Some(self.frames.return_frame(plain))
    }

    /// The number of the keys that a frame's schemas name, sorted; they are the same whatever was used.
    pub(super) fn special_set(&mut self, frame: ObjectFrameId) -> u32 {
        memo!(self.generic.special, frame, {
            let object = &self.frames[frame];
            let mut names = Vec::new();
            for a in object.alternatives.iter() {
                self.schema.all_names(a.formula, &mut names);
                names.extend(self.frames.ranks[a.order as usize].keys());
            }
            crate::lists::sort_unique(&mut names);
            let named = self.generic.named.get_index_of(&names[..]);
            named.unwrap_or_else(|| {
                let mut texts: Vec<Box<str>> =
                    names.iter().map(|&n| self.schema.name_text(n).into()).collect();
                texts.sort_unstable();
                self.generic.named.insert_full(names.into(), texts.into()).0
            }) as u32
        })
    }
}

fn size(ranges: &[(u32, u32)]) -> u32 {
    ranges.iter().map(|&(lo, hi)| hi - lo + 1).sum()
}
