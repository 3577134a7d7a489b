//! How a context goes on with a byte: [`ByteAutomaton`] for JSON.
//!
//! Invariant: a byte leads to one position or none; what was read is in the position, but for the lexeme's own text.
//! Complexity: a lookup where the context was met before; else what its frame costs.  Memory: each context once (`frames`).

use super::frames::{FrameId, GoalsId, RecordId};
use super::repeated_items::UNLIKE;
use super::{Context, JsonMachine, LexemeKind, ParserPhase};
use crate::automaton::byte_automaton::{may_step, step, Seen};
use crate::automaton::{ByteAutomaton, CtxId, Left, Piece, Pos};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::Openings;

impl JsonMachine {
    /// A value begins with this byte.
    fn begin_value(
        &mut self,
        goals: GoalsId,
        parent: CtxId,
        record: RecordId,
        depth: u32,
        byte: u8,
    ) -> Option<Pos> {
        match byte {
            b'"' => {
                let (map, lex) = self.scalar(goals, LexemeKind::String)?;
                let record = self.add(record, b"\"");
                let ctx = self.ctx(ParserPhase::Scalar, parent, map, record, depth);
                Some(Pos { ctx, lex })
            }
            b'{' => {
                let goals = self.goals_at(goals, depth);
                let frame = self.open_object(goals)?;
                let record = self.add(record, b"{");
                let ctx = self.ctx(ParserPhase::ObjectStart, parent, frame, record, depth + 1);
                Some(self.pos(ctx))
            }
            b'[' => {
                let goals = self.goals_at(goals, depth);
                let frame = self.open_array(goals)?;
                let record = self.add(record, b"[");
                let ctx = self.ctx(ParserPhase::ArrayStart, parent, frame, record, depth + 1);
                Some(self.pos(ctx))
            }
            _ => {
                let (map, lex) = self.scalar(goals, LexemeKind::Bare)?;
                let Step::Stay(next) = self.lexicon().step(lex, byte) else { return None };
                // the first byte goes into the record here, the others when the lexeme ends
                let record = self.add(record, &[byte]);
                let ctx = self.ctx(ParserPhase::Scalar, parent, map, record, depth);
                Some(Pos { ctx, lex: next })
            }
        }
    }

    /// Adds to a record where one is kept.
    pub(super) fn add(&mut self, record: RecordId, more: &[u8]) -> RecordId {
        match record.holds_text() {
            true => self.record(record, more),
            false => record,
        }
    }

    /// The value of a scalar context has ended under this outcome.
    pub(super) fn end_scalar(
        &mut self,
        ctx: CtxId,
        outcome: OutcomeId,
        text: &[u8],
        quote: bool,
    ) -> Option<Pos> {
        let context = self.context(ctx);
        let plain = context.record.is_none();
        if plain {
            if let Some(&known) = self.memos.closes.get(&(ctx, outcome.0)) {
                return known;
            }
        }
        let accepting: Vec<u32> = {
            let map = &self.frames[context.map()];
            self.schema.lexicon.outcome_list(outcome).iter().map(|&i| map[i as usize]).collect()
        };
        let mut record = context.record;
        if record.holds_text() {
            let mut more = text.to_vec();
            if quote {
                more.push(b'"');
            }
            record = self.record(record, &more);
            self.generic.texts_closed += 1;
        }
        let next = self.resume(context.parent, &accepting, record);
        if plain {
            self.memos.closes.insert((ctx, outcome.0), next);
        }
        next
    }

    /// Whether the document is complete when the lexeme ends with this outcome.
    pub(crate) fn ends_at(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8]) -> bool {
        match self.context(ctx).phase {
            ParserPhase::Done => true,
            ParserPhase::Scalar => self
                .end_scalar(ctx, outcome, text, false)
                .is_some_and(|next| self.context(next.ctx).phase == ParserPhase::Done),
            _ => false,
        }
    }

    /// Bytes that may make a complete document longer; a superset.
    pub(crate) fn tail_bytes(&mut self, pos: Pos) -> ByteSet {
        let context = self.context(pos.ctx);
        match context.phase {
            ParserPhase::Done => self.lexicon().first_bytes(pos.lex),
            ParserPhase::Scalar if self.lexicon().is_string(pos.lex) => ByteSet::default(),
            ParserPhase::Scalar if self.context(context.parent).phase == ParserPhase::ReturnRoot => {
                ByteSet::of(b"0123456789.eE+-")
            }
            _ => ByteSet::default(),
        }
    }

    /// Whether a string value is being read.
    pub(crate) fn in_string_value(&self, pos: Pos) -> bool {
        self.context(pos.ctx).phase == ParserPhase::Scalar && self.schema.lexicon.is_string(pos.lex)
    }

    /// The bracket that closes an object or array is read.
    fn close_container(&mut self, context: Context, byte: u8) -> Option<Pos> {
        let goals = match byte {
            b'}' => self.object_goals(context.object()),
            _ => self.array_goals(context.array()),
        };
        let record = self.add(context.record, &[byte]);
        if goals.is_empty() {
            return None;
        }
        self.resume(context.parent, &goals, record)
    }

    fn begin_item(&mut self, context: Context, byte: u8) -> Option<Pos> {
        let (goals, parent, record) = self.item(context)?;
        self.begin_value(goals, parent, record, context.depth, byte)
    }

    fn begin_key(&mut self, context: Context) -> Option<Pos> {
        let term = self.key_term(context.object());
        let spelling = self.schema.string_spelling();
        let lex = self.lexicon().at(spelling, term);
        if lex == Lexicon::DEAD {
            return None;
        }
        let record = self.add(context.record, b"\"");
        let ctx = self.ctx(ParserPhase::Key, context.parent, context.frame, record, context.depth);
        Some(Pos { ctx, lex })
    }

    /// Position of the next property or item after a comma.
    fn after_comma(&mut self, context: Context) -> Option<Pos> {
        let record = self.add(context.record, b",");
        let context = Context { record, ..context };
        let ctx = match context.phase {
            ParserPhase::ObjectAfter if !self.has_key(context.object()) => return None,
            ParserPhase::ObjectAfter => {
                self.ctx(ParserPhase::ObjectNext, context.parent, context.frame, record, context.depth)
            }
            _ => {
                let (goals, parent, record) = self.item(context)?;
                self.ctx(ParserPhase::Item, parent, goals, record, context.depth)
            }
        };
        Some(self.pos(ctx))
    }
}

impl ByteAutomaton for JsonMachine {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.schema.lexicon
    }

    fn bytes(&mut self) -> usize {
        self.memory_bytes()
    }

    fn set_deepest(&mut self, levels: u32) {
        JsonMachine::set_deepest(self, levels);
    }

    fn start(&mut self) -> Option<Pos> {
        let parent = self.ctx(ParserPhase::ReturnRoot, CtxId(0), FrameId::NONE, RecordId::NONE, 0);
        let root = self.root;
        let goals = self.goal_list(&[root]);
        let ctx = self.ctx(ParserPhase::Root, parent, goals, RecordId::NONE, 0);
        Some(self.pos(ctx))
    }

    #[inline]
    fn records(&self, ctx: CtxId) -> bool {
        let context = &self.frames.contexts[ctx.0 as usize];
        match context.phase {
            ParserPhase::Key => true,
            ParserPhase::Scalar => !context.record.is_none(),
            _ => false,
        }
    }

    fn close(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8]) -> Option<Pos> {
        match self.frames.contexts[ctx.0 as usize].phase {
            ParserPhase::Key => {
                self.generic.texts_closed += 1;
                self.after_key(ctx, text)
            }
            _ => self.end_scalar(ctx, outcome, text, true),
        }
    }

    fn close_generic(&mut self, ctx: CtxId, accepting: &[u32]) -> Option<Pos> {
        self.after_generic(ctx, accepting)
    }

    fn truncated_key(&mut self, ctx: CtxId, levels: u32, longest: u32) -> Option<u32> {
        self.truncated_key_of(ctx, levels, longest)
    }

    fn equivalent(&mut self, ctx: CtxId) -> CtxId {
        self.equivalent_of(ctx)
    }

    fn exceptional(&mut self, ctx: CtxId, text: &str) -> Vec<String> {
        self.special_texts(ctx, text)
    }

    fn is_exceptional(&mut self, ctx: CtxId, text: &str) -> bool {
        self.is_special_text(ctx, text)
    }

    fn partition(&mut self, ctx: CtxId) -> Option<LexId> {
        self.key_partition(ctx)
    }

    fn bytes_after_any_text(&mut self, ctx: CtxId) -> Option<ByteSet> {
        let context = self.context(ctx);
        // a key is offered only if something can follow it
        (context.record.is_none() && context.phase == ParserPhase::Key).then(|| self.before_value())
    }

    fn closings(&self) -> u64 {
        self.generic.texts_closed
    }

    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> Option<Pos> {
        let context = self.context(ctx);
        let accepting = self.schema.lexicon.outcome_list(outcome);
        let (go, close) = self.whitespace_choice(context.phase, accepting);
        match (context.phase, byte) {
            (ParserPhase::Scalar, _) => {
                let next = self.end_scalar(ctx, outcome, text, false)?;
                step(self, next, &mut Vec::new(), byte)
            }
            (ParserPhase::Root | ParserPhase::Value | ParserPhase::Item, _) => {
                self.begin_value(context.goals(), context.parent, context.record, context.depth, byte)
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectNext, b'"') if go => self.begin_key(context),
            (ParserPhase::Colon, b':') => {
                let record = self.add(context.record, b":");
                Some(self.property_value(Context { record, ..context }, context.return_frame()))
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectAfter, b'}')
            | (ParserPhase::ArrayStart | ParserPhase::ArrayAfter, b']')
                if close =>
            {
                self.close_container(context, byte)
            }
            (ParserPhase::ObjectAfter | ParserPhase::ArrayAfter, b',') if go => self.after_comma(context),
            (ParserPhase::ArrayStart, _) if go => self.begin_item(context, byte),
            _ => None,
        }
    }

    fn may_leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> bool {
        let context = self.context(ctx);
        let accepting = self.schema.lexicon.outcome_list(outcome);
        let (go, _) = self.whitespace_choice(context.phase, accepting);
        match (context.phase, byte) {
            (ParserPhase::Scalar, _) => {
                let next = self.end_scalar(ctx, outcome, text, false);
                next.is_some_and(|next| may_step(self, next, &[], byte))
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectNext, b'"') => {
                go && self.has_key(context.object())
            }
            (ParserPhase::Root | ParserPhase::Value | ParserPhase::Item, b'"') => {
                self.scalar(context.goals(), LexemeKind::String).is_some()
            }
            _ => self.leave(ctx, outcome, text, byte).is_some(),
        }
    }

    fn leave_bytes(&mut self, ctx: CtxId, _: OutcomeId) -> ByteSet {
        let context = self.context(ctx);
        match context.phase {
            ParserPhase::Scalar => ByteSet::of(b" \t\r\n,]}"),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => self.value_bytes(context.goals()),
            ParserPhase::ObjectStart => ByteSet::of(b"\"}"),
            ParserPhase::ObjectNext => ByteSet::of(b"\""),
            ParserPhase::Colon => ByteSet::of(b":"),
            ParserPhase::ObjectAfter => ByteSet::of(b",}"),
            ParserPhase::ArrayAfter => ByteSet::of(b",]"),
            ParserPhase::ArrayStart => {
                let mut set = match self.item(context) {
                    Some((goals, ..)) => self.value_bytes(goals),
                    None => ByteSet::default(),
                };
                set.insert(b']');
                set
            }
            _ => ByteSet::default(),
        }
    }

    fn accepting(&mut self, pos: Pos, text: &[u8]) -> bool {
        let outcome = self.lexicon().outcome(pos.lex);
        if outcome == Lexicon::NONE || self.lexicon().is_string(pos.lex) {
            return false;
        }
        self.ends_at(pos.ctx, outcome, text)
    }

    fn completion(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<Piece>> {
        self.completion_bytes(pos, text, most).map(|bytes| vec![Piece::Bytes(bytes)])
    }

    fn remaining_bound(&mut self, pos: Pos, opens: Openings) -> Option<usize> {
        self.most_remaining(pos, opens)
    }

    fn left(&mut self, pos: Pos, most: usize) -> Option<Vec<Left>> {
        self.remaining_of_value(pos, most)
    }

    fn longest_left(&mut self, pos: Pos) -> Option<u32> {
        self.longest_remaining_of_string(pos)
    }

    fn describe(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        let (mut words, mut place) = self.in_words(pos, seen);
        if let Some(array) = self.pointer_of_repeated(self.context(pos.ctx), seen) {
            words.push(UNLIKE.into());
            place = array;
        }
        (words, place)
    }
}
