//! What the token layer needs of a constraint: an automaton over bytes whose states are pairs of numbers.
//!
//! Invariant: a position (context, lexical state, text of the lexeme where it matters) decides what may follow.
//! Complexity, memory: each constraint states its own; [`ByteAutomaton::bytes`] counts its memory.

use std::sync::Arc;

use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Step, TermId};
use crate::vocab::{Openings, TokenId};

/// The number of a context: everything outside the lexeme that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CtxId(pub u32);

impl CtxId {
    /// The context after a lexeme that completes what began below a top ([`Scanner::top`]).
    pub const BELOW: CtxId = CtxId(u32::MAX);
}

/// A state over bytes, but for the text of the lexeme where the context remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pos {
    pub ctx: CtxId,
    pub lex: LexId,
}

/// A piece of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// A special token, which no bytes spell.
    Token(TokenId),
}

/// One of the few texts that may be left of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Left {
    pub bytes: Box<[u8]>,
    /// Whether the last byte ends the value; else what follows it does.
    pub closed: bool,
}

/// The structure layer of one constraint.
///
/// Contract (the laws that every frontend is tested by): from every position that a step leads to, some bytes
/// lead to an accepted end; contexts are interned, so the same history class has the same number; no call
/// changes what a number means.
pub trait ByteAutomaton: Send {
    fn lexicon(&mut self) -> &mut Lexicon;

    /// Sets how deep documents may be nested, where there is such a thing; called before anything else.
    fn set_deepest(&mut self, _levels: u32) {}

    /// Bytes that the structure holds, its lexicon included.
    fn bytes(&mut self) -> usize;

    /// The position before the first byte; `None` when nothing is accepted.
    fn start(&mut self) -> Option<Pos>;

    /// Whether what follows the lexeme depends on its text.
    fn records(&self, _ctx: CtxId) -> bool {
        false
    }

    /// The lexeme was closed by the byte that belongs to it; `text` is what the lexeme held before it.
    fn close(&mut self, _ctx: CtxId, _outcome: OutcomeId, _text: &[u8]) -> Option<Pos> {
        None
    }

    /// The position after a lexeme whose text matters, closed with these languages accepting: one for all texts that are not
    /// [`ByteAutomaton::exceptional`]. Valid as long as [`ByteAutomaton::closings`] does not change while it is walked from.
    fn close_generic(&mut self, _ctx: CtxId, _accepting: &[u32]) -> Option<Pos> {
        None
    }

    /// The lexical state of a language that is read here, where what follows it may begin before it ends.
    fn open_language(&self, _pos: Pos) -> Option<LexId> {
        None
    }

    /// Whether positions depend on how texts are cut into tokens.
    fn counts_tokens(&self) -> bool {
        false
    }

    /// The position at the end of a token that led to this one; `first`: the position after its first byte.
    fn after_token(&mut self, _first: Pos, pos: Pos) -> Pos {
        pos
    }

    /// A position with the same mask and the same completions that was counted no tokens to.
    fn uncounted(&mut self, pos: Pos) -> Pos {
        pos
    }

    /// The representative of the contexts that have the same completions as this one.
    fn equivalent(&mut self, ctx: CtxId) -> CtxId {
        ctx
    }

    /// A key of the stack cut after `levels` levels: contexts of equal keys allow the same texts of at most `longest` bytes
    /// with fewer than `levels` closings. `None`: the context is not deep enough for others to share its key.
    fn truncated_key(&mut self, _ctx: CtxId, _levels: u32, _longest: u32) -> Option<u32> {
        None
    }

    /// What follows `text` in the texts that [`ByteAutomaton::close_generic`] does not cover; both without escapes.
    fn exceptional(&mut self, _ctx: CtxId, _text: &str) -> Vec<String> {
        Vec::new()
    }

    /// Whether a whole text is one of [`ByteAutomaton::exceptional`].
    fn is_exceptional(&mut self, _ctx: CtxId, _text: &str) -> bool {
        false
    }

    /// The start state of languages that partition the texts which are not [`ByteAutomaton::exceptional`] by their meaning; it
    /// accepts all texts. `None` where other things tell them apart as well, or nothing does.
    fn partition(&mut self, _ctx: CtxId) -> Option<LexId> {
        None
    }

    /// A superset of the bytes that may follow the lexeme, where every text that it may have can be closed. `None` where that
    /// depends on the text.
    fn bytes_after_any_text(&mut self, _ctx: CtxId) -> Option<ByteSet> {
        None
    }

    /// The number of closed lexemes whose text matters, so far.
    fn closings(&self) -> u64 {
        0
    }

    /// The lexeme ends before `byte`, which is read by what follows.
    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> Option<Pos>;

    /// Whether [`ByteAutomaton::leave`] finds a position, without building what begins there.
    fn may_leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> bool {
        self.leave(ctx, outcome, text, byte).is_some()
    }

    /// The bytes for which [`ByteAutomaton::leave`] may find a position; a superset is allowed.
    fn leave_bytes(&mut self, ctx: CtxId, outcome: OutcomeId) -> ByteSet;

    /// Whether the whole text may end here.
    fn accepting(&mut self, pos: Pos, text: &[u8]) -> bool;

    /// A short completion of at most `most` bytes; `None` where none was found. One that is plainly longer is not spelled
    /// out.
    fn completion(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<Piece>>;

    /// An upper bound on the bytes of [`ByteAutomaton::completion`] after any allowed token that opens at most so many
    /// objects and arrays inside each other; `None` where no such bound is known.
    fn remaining_bound(&mut self, _pos: Pos, _opens: Openings) -> Option<usize> {
        None
    }

    /// Positions (each with the text of its lexeme) that together allow just what this one does, and whose masks
    /// are quicker to find; `None`: there are none.
    fn split(&mut self, _pos: Pos) -> Option<Vec<(Pos, Vec<u8>)>> {
        None
    }

    /// A position that allows the same as this one among the tokens that a JSON string spells as they are; the
    /// others are to be walked.
    fn unquoted(&mut self, _pos: Pos) -> Option<Pos> {
        None
    }

    /// All that may be left of the value that stands or begins here, spelled as writers do, where it is one of at
    /// most so many; whitespace before it is not counted. `None`: it is not, or nobody knows.
    fn left(&mut self, _pos: Pos, _most: usize) -> Option<Vec<Left>> {
        None
    }

    /// Code points that are left at most of the string that is read here; `None`: it is none, or nobody knows.
    fn longest_left(&mut self, _pos: Pos) -> Option<u32> {
        None
    }

    /// The special tokens that may come here.
    fn specials(&mut self, _pos: Pos, _text: &[u8]) -> Vec<TokenId> {
        Vec::new()
    }

    /// The position after a special token.
    fn take_special(&mut self, _pos: Pos, _text: &[u8], _token: TokenId) -> Option<Pos> {
        None
    }

    /// The structure as one that reads lexemes.
    fn scanner(&mut self) -> Option<&mut dyn Scanner> {
        None
    }

    /// What is expected here, in words, and where in the schema that is said.
    fn describe(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>);
}

/// The text before a refusal, as far as it is known: what was read, and the byte that could not follow.
#[derive(Clone, Copy, Default)]
pub struct Seen<'a> {
    pub read: &'a [u8],
    pub refused: Option<u8>,
}

/// The languages of one lexeme, walked side by side: the place of each terminal, and what is left of its language.
pub type Alive = Arc<[(u32, TermId)]>;

/// A structure that reads lexemes, longest match first: where one lexeme ends and which it was is decided by the
/// languages that began together, and what may come next by the context and the place of the lexeme.
pub trait Scanner: ByteAutomaton {
    /// What the lexeme of a position may become; `None` where that can't be said (inside a code point).
    fn alive(&mut self, lex: LexId) -> Option<Alive>;

    /// What may begin at a context.
    fn readable(&mut self, ctx: CtxId) -> Alive;

    /// Whether the first place is chosen where both languages end at one place and none goes on.
    fn outranks(&self, place: u32, other: u32) -> bool;

    /// The context after a lexeme.
    fn after(&mut self, ctx: CtxId, place: u32) -> Option<CtxId>;

    /// A context of which the same is known as long as nothing is completed that began below the top of the stack: a lexeme
    /// that does so leads to [`CtxId::BELOW`] there.  The context itself where more than the stack matters.
    fn top(&mut self, ctx: CtxId) -> CtxId;

    /// Whether a lexeme that begins with this byte can end at all.
    fn may_begin(&mut self, ctx: CtxId, byte: u8) -> bool;

    /// Ranges of code points that may begin a lexeme where the one before it could go on with their first byte, not with
    /// them.
    fn shared_beginnings(&mut self) -> Arc<[(u32, u32)]>;

    /// Whether a place stands for one code point of a lexeme: beside such places a lexeme ends only before a code point of
    /// one byte, and one that begins with another may not be able to end.
    fn is_code_point(&self, place: u32) -> bool;

    /// First bytes of these after which a lexeme may not be able to end, by where it was begun: [`Scanner::may_begin`].
    fn unsure(&mut self, alive: &Alive) -> ByteSet;
}

/// One byte. `text` is that of the lexeme and is kept up to date where the context records it.
#[inline]
pub fn step<S: ByteAutomaton + ?Sized>(s: &mut S, pos: Pos, text: &mut Vec<u8>, byte: u8) -> Option<Pos> {
    match s.lexicon().step(pos.lex, byte) {
        Step::Stay(lex) => {
            if s.records(pos.ctx) {
                text.push(byte);
            }
            Some(Pos { ctx: pos.ctx, lex })
        }
        Step::Close => {
            let outcome = s.lexicon().outcome(pos.lex);
            let next = s.close(pos.ctx, outcome, text);
            text.clear();
            next
        }
        Step::Dead => {
            let outcome = s.lexicon().outcome(pos.lex);
            if outcome == Lexicon::NONE || s.lexicon().is_string(pos.lex) {
                return None;
            }
            let next = s.leave(pos.ctx, outcome, text, byte);
            text.clear();
            next
        }
    }
}

/// Whether [`step`] leads anywhere, without making the position.
pub fn may_step<S: ByteAutomaton + ?Sized>(s: &mut S, pos: Pos, text: &[u8], byte: u8) -> bool {
    let next = s.lexicon().step(pos.lex, byte);
    if let Step::Stay(_) = next {
        return true;
    }
    let outcome = s.lexicon().outcome(pos.lex);
    match next {
        Step::Close => s.close(pos.ctx, outcome, text).is_some(),
        _ if outcome == Lexicon::NONE || s.lexicon().is_string(pos.lex) => false,
        _ => s.may_leave(pos.ctx, outcome, text, byte),
    }
}
