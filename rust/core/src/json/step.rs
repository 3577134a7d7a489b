//! Bytes: how a context goes on; the face of JSON to the token layer.
//!
//! Invariant: a byte leads to one position or none; what was read is in the position, but for the lexeme's own text.
//! Complexity: a look at what is known of the context; else what its frame costs.  Memory: each context once (`frames`).

use super::frames::{FrameId, GoalsId, RecordId};
use super::repeated::UNLIKE;
use super::{JsonMachine, Kind, Node, ParserPhase};
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
        up: CtxId,
        record: RecordId,
        depth: u32,
        byte: u8,
    ) -> Option<Pos> {
        match byte {
            b'"' => {
                let (map, lex) = self.scalar(goals, Kind::String)?;
                let record = self.add(record, b"\"");
                let ctx = self.ctx(ParserPhase::Scalar, up, map, record, depth);
                Some(Pos { ctx, lex })
            }
            b'{' => {
                let goals = self.goals_at(goals, depth);
                let frame = self.open_object(goals)?;
                let record = self.add(record, b"{");
                let ctx = self.ctx(ParserPhase::ObjectStart, up, frame, record, depth + 1);
                Some(self.pos(ctx))
            }
            b'[' => {
                let goals = self.goals_at(goals, depth);
                let frame = self.open_array(goals)?;
                let record = self.add(record, b"[");
                let ctx = self.ctx(ParserPhase::ArrayStart, up, frame, record, depth + 1);
                Some(self.pos(ctx))
            }
            _ => {
                let (map, lex) = self.scalar(goals, Kind::Bare)?;
                let Step::Stay(next) = self.lexicon().step(lex, byte) else { return None };
                // the first byte goes into the record here, the others when the lexeme ends
                let record = self.add(record, &[byte]);
                let ctx = self.ctx(ParserPhase::Scalar, up, map, record, depth);
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
        let node = self.node(ctx);
        let plain = node.record.is_none();
        if plain {
            if let Some(&known) = self.answers.closes.get(&(ctx, outcome.0)) {
                return known;
            }
        }
        let held: Vec<u32> = {
            let map = &self.frames[node.map()];
            self.schema.lexicon.outcome_list(outcome).iter().map(|&i| map[i as usize]).collect()
        };
        let mut record = node.record;
        if record.holds_text() {
            let mut more = text.to_vec();
            if quote {
                more.push(b'"');
            }
            record = self.record(record, &more);
            self.alike.texts_closed += 1;
        }
        let next = self.resume(node.up, &held, record);
        if plain {
            self.answers.closes.insert((ctx, outcome.0), next);
        }
        next
    }

    /// Whether the document is complete when the lexeme ends with this outcome.
    pub(crate) fn ends_at(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8]) -> bool {
        match self.node(ctx).place {
            ParserPhase::Done => true,
            ParserPhase::Scalar => self
                .end_scalar(ctx, outcome, text, false)
                .is_some_and(|next| self.node(next.ctx).place == ParserPhase::Done),
            _ => false,
        }
    }

    /// Bytes that may make a complete document longer; a superset.
    pub(crate) fn tail_bytes(&mut self, pos: Pos) -> ByteSet {
        let node = self.node(pos.ctx);
        match node.place {
            ParserPhase::Done => self.lexicon().first_bytes(pos.lex),
            ParserPhase::Scalar if self.lexicon().is_string(pos.lex) => ByteSet::default(),
            ParserPhase::Scalar if self.node(node.up).place == ParserPhase::ReturnRoot => {
                ByteSet::of(b"0123456789.eE+-")
            }
            _ => ByteSet::default(),
        }
    }

    /// Whether a string value is being read.
    pub(crate) fn in_string_value(&self, pos: Pos) -> bool {
        self.node(pos.ctx).place == ParserPhase::Scalar && self.schema.lexicon.is_string(pos.lex)
    }

    /// The bracket that closes an object or array is read.
    fn close_container(&mut self, node: Node, byte: u8) -> Option<Pos> {
        let goals = match byte {
            b'}' => self.object_goals(node.object()),
            _ => self.array_goals(node.array()),
        };
        let record = self.add(node.record, &[byte]);
        if goals.is_empty() {
            return None;
        }
        self.resume(node.up, &goals, record)
    }

    fn begin_item(&mut self, node: Node, byte: u8) -> Option<Pos> {
        let (goals, up, record) = self.item(node)?;
        self.begin_value(goals, up, record, node.depth, byte)
    }

    fn begin_key(&mut self, node: Node) -> Option<Pos> {
        let term = self.key_term(node.object());
        let spelling = self.schema.string_spelling();
        let lex = self.lexicon().at(spelling, term);
        if lex == Lexicon::DEAD {
            return None;
        }
        let record = self.add(node.record, b"\"");
        let ctx = self.ctx(ParserPhase::Key, node.up, node.frame, record, node.depth);
        Some(Pos { ctx, lex })
    }

    /// Position of the next property or item after a comma.
    fn after_comma(&mut self, node: Node) -> Option<Pos> {
        let record = self.add(node.record, b",");
        let node = Node { record, ..node };
        let ctx = match node.place {
            ParserPhase::ObjectAfter if !self.has_key(node.object()) => return None,
            ParserPhase::ObjectAfter => {
                self.ctx(ParserPhase::ObjectNext, node.up, node.frame, record, node.depth)
            }
            _ => {
                let (goals, up, record) = self.item(node)?;
                self.ctx(ParserPhase::Item, up, goals, record, node.depth)
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
        self.bytes_held()
    }

    fn set_deepest(&mut self, levels: u32) {
        JsonMachine::set_deepest(self, levels);
    }

    fn start(&mut self) -> Option<Pos> {
        let up = self.ctx(ParserPhase::ReturnRoot, CtxId(0), FrameId::NONE, RecordId::NONE, 0);
        let root = self.root;
        let goals = self.goal_list(&[root]);
        let ctx = self.ctx(ParserPhase::Root, up, goals, RecordId::NONE, 0);
        Some(self.pos(ctx))
    }

    #[inline]
    fn records(&self, ctx: CtxId) -> bool {
        let node = &self.frames.nodes[ctx.0 as usize];
        match node.place {
            ParserPhase::Key => true,
            ParserPhase::Scalar => !node.record.is_none(),
            _ => false,
        }
    }

    fn close(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8]) -> Option<Pos> {
        match self.frames.nodes[ctx.0 as usize].place {
            ParserPhase::Key => {
                self.alike.texts_closed += 1;
                self.after_key(ctx, text)
            }
            _ => self.end_scalar(ctx, outcome, text, true),
        }
    }

    fn close_generic(&mut self, ctx: CtxId, held: &[u32]) -> Option<Pos> {
        self.after_generic(ctx, held)
    }

    fn truncated_key(&mut self, ctx: CtxId, levels: u32, longest: u32) -> Option<u32> {
        self.near_of(ctx, levels, longest)
    }

    fn equivalent(&mut self, ctx: CtxId) -> CtxId {
        self.twin_of(ctx)
    }

    fn exceptional(&mut self, ctx: CtxId, text: &str) -> Vec<String> {
        self.special_texts(ctx, text)
    }

    fn is_exceptional(&mut self, ctx: CtxId, text: &str) -> bool {
        self.is_special_text(ctx, text)
    }

    fn partition(&mut self, ctx: CtxId) -> Option<LexId> {
        self.kinds_of_keys(ctx)
    }

    fn after_any(&mut self, ctx: CtxId) -> Option<ByteSet> {
        let node = self.node(ctx);
        // a key is offered only if something can follow it
        (node.record.is_none() && node.place == ParserPhase::Key).then(|| self.before_value())
    }

    fn changes(&self) -> u64 {
        self.alike.texts_closed
    }

    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> Option<Pos> {
        let node = self.node(ctx);
        let held = self.schema.lexicon.outcome_list(outcome);
        let (go, close) = self.white_choice(node.place, held);
        match (node.place, byte) {
            (ParserPhase::Scalar, _) => {
                let next = self.end_scalar(ctx, outcome, text, false)?;
                step(self, next, &mut Vec::new(), byte)
            }
            (ParserPhase::Root | ParserPhase::Value | ParserPhase::Item, _) => {
                self.begin_value(node.goals(), node.up, node.record, node.depth, byte)
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectNext, b'"') if go => self.begin_key(node),
            (ParserPhase::Colon, b':') => {
                let record = self.add(node.record, b":");
                Some(self.property_value(Node { record, ..node }, node.pending()))
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectAfter, b'}')
            | (ParserPhase::ArrayStart | ParserPhase::ArrayAfter, b']')
                if close =>
            {
                self.close_container(node, byte)
            }
            (ParserPhase::ObjectAfter | ParserPhase::ArrayAfter, b',') if go => self.after_comma(node),
            (ParserPhase::ArrayStart, _) if go => self.begin_item(node, byte),
            _ => None,
        }
    }

    fn may_leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> bool {
        let node = self.node(ctx);
        let held = self.schema.lexicon.outcome_list(outcome);
        let (go, _) = self.white_choice(node.place, held);
        match (node.place, byte) {
            (ParserPhase::Scalar, _) => {
                let next = self.end_scalar(ctx, outcome, text, false);
                next.is_some_and(|next| may_step(self, next, &[], byte))
            }
            (ParserPhase::ObjectStart | ParserPhase::ObjectNext, b'"') => go && self.has_key(node.object()),
            (ParserPhase::Root | ParserPhase::Value | ParserPhase::Item, b'"') => {
                self.scalar(node.goals(), Kind::String).is_some()
            }
            _ => self.leave(ctx, outcome, text, byte).is_some(),
        }
    }

    fn leave_bytes(&mut self, ctx: CtxId, _: OutcomeId) -> ByteSet {
        let node = self.node(ctx);
        match node.place {
            ParserPhase::Scalar => ByteSet::of(b" \t\r\n,]}"),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => self.value_bytes(node.goals()),
            ParserPhase::ObjectStart => ByteSet::of(b"\"}"),
            ParserPhase::ObjectNext => ByteSet::of(b"\""),
            ParserPhase::Colon => ByteSet::of(b":"),
            ParserPhase::ObjectAfter => ByteSet::of(b",}"),
            ParserPhase::ArrayAfter => ByteSet::of(b",]"),
            ParserPhase::ArrayStart => {
                let mut set = match self.item(node) {
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

    fn way_out(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<Piece>> {
        self.completion(pos, text, most).map(|bytes| vec![Piece::Bytes(bytes)])
    }

    fn remains(&mut self, pos: Pos, opens: Openings) -> Option<usize> {
        self.most_remaining(pos, opens)
    }

    fn left(&mut self, pos: Pos, most: usize) -> Option<Vec<Left>> {
        self.left_of_value(pos, most)
    }

    fn longest_left(&mut self, pos: Pos) -> Option<u32> {
        self.longest_of_string(pos)
    }

    fn describe(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        let (mut words, mut place) = self.in_words(pos, seen);
        if let Some(array) = self.place_of_repeated(self.node(pos.ctx), seen) {
            words.push(UNLIKE.into());
            place = array;
        }
        (words, place)
    }
}
