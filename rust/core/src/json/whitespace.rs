//! The whitespace that may stand between two lexemes.
//!
//! Runs are bounded, so that a model can't loop in them.  Natural: a space, or a line break and an indentation, where
//! writers put them: after an opening bracket and a comma (there a space may stand before the break, as Python 2 left
//! it), and before a bracket that closes; a space after a colon.  Nothing stands before a comma and a colon: after a break
//! there a model writes the bracket that closes, and can't where a key is missing.  So whitespace after a value tells
//! "go on" from "close", as in an indented document.  Any: any mixture of up to [`RUN`] characters, or a line break and an
//! indentation; at most n: any mixture of so many.  Indentations have up to eight columns per level (what
//! `json.dumps(indent=0..8)` writes); the number of levels is known only roughly, so that depths share their states.
//! Rejected: one indentation per document, chosen at its first line (each would be a copy of every context, and writers do
//! mix: an array in one line, the next in ten).

use super::{Context, JsonMachine, ParserPhase};
use crate::automaton::{CtxId, Pos};
use crate::lexical::spell::ByteSet;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Spelling, TermId, Terms};
use crate::schema::options::Whitespace;

/// Whitespace characters in a row that need no reason.
const RUN: u32 = 16;
/// Columns of indentation a level.
const COLUMNS: u32 = 8;
/// Deeper levels share the bound of the next power of two, and with it their states.
const EXACT: u32 = 32;
/// The same where it is natural.
const SHALLOW: u32 = 2;

impl JsonMachine {
    /// The lexical state at the beginning of the whitespace of a context.
    pub(super) fn whitespace_at(&mut self, ctx: CtxId) -> LexId {
        let context = self.context(ctx);
        let choice = if self.tells_by_whitespace(context.phase) {
            self.can_go_on_or_close(context)
        } else {
            (true, true)
        };
        let phase = context.phase;
        let depth = match self.schema.options.whitespace {
            Whitespace::Any if context.depth > EXACT => context.depth.next_power_of_two(),
            Whitespace::Natural => context.depth.max(SHALLOW).next_power_of_two(),
            Whitespace::AtMost(_) => 0,
            _ => context.depth,
        };
        let key = (phase, depth, choice);
        memo!(self.memos.white, key, {
            let term = self.whitespace_term(phase, depth, choice);
            self.lexicon().at(Spelling::Raw, term)
        })
    }

    /// Whether the frame can go on (where nothing is written for it, that need not be known), and whether it can close.
    fn can_go_on_or_close(&mut self, context: Context) -> (bool, bool) {
        let free = self.schema.options.whitespace == Whitespace::Natural;
        match context.phase {
            ParserPhase::ObjectStart | ParserPhase::ObjectAfter => {
                let go = free || self.has_key(context.object());
                (go, !self.object_goals(context.object()).is_empty())
            }
            _ => (free || self.item(context).is_some(), !self.array_goals(context.array()).is_empty()),
        }
    }

    /// Places where what was read of the whitespace tells "go on" from "close".
    fn tells_by_whitespace(&self, phase: ParserPhase) -> bool {
        match phase {
            ParserPhase::ObjectStart | ParserPhase::ArrayStart => {
                self.schema.options.whitespace == Whitespace::Indent
            }
            ParserPhase::ObjectAfter | ParserPhase::ArrayAfter => {
                matches!(self.schema.options.whitespace, Whitespace::Indent | Whitespace::Natural)
            }
            _ => false,
        }
    }

    /// Which of "go on" and "close" the whitespace that was begun may still lead to.
    pub(super) fn whitespace_leads_to(&mut self, pos: Pos) -> (bool, bool) {
        if !self.tells_by_whitespace(self.context(pos.ctx).phase) {
            return (true, true);
        }
        match self.lexicon().term(pos.lex).map(|known| self.terms().get(known.1).clone()) {
            Some(Term::Tuple(terms)) => (terms[0] != Terms::EMPTY, terms[1] != Terms::EMPTY),
            _ => (true, true),
        }
    }

    fn whitespace_term(&mut self, phase: ParserPhase, depth: u32, (go, close): (bool, bool)) -> TermId {
        let only = |possible: bool, term: TermId| if possible { term } else { Terms::EMPTY };
        let style = self.schema.options.whitespace;
        match (style, phase) {
            (Whitespace::Any, _) => self.any_whitespace(depth),
            (Whitespace::AtMost(most), _) => self.run(u32::from(most)),
            (Whitespace::Natural, ParserPhase::Value) => {
                let space = self.terms().literal(" ");
                self.terms().optional(space)
            }
            (Whitespace::Natural, ParserPhase::ObjectStart | ParserPhase::ArrayStart) => {
                self.beside_bracket(depth)
            }
            (Whitespace::Natural, ParserPhase::ObjectAfter | ParserPhase::ArrayAfter) => {
                let white = self.beside_bracket(depth);
                self.terms().tuple(&[only(go, Terms::EPS), only(close, white)])
            }
            (Whitespace::Natural, ParserPhase::ObjectNext | ParserPhase::Item) => {
                let (space, line) = (self.terms().literal(" "), self.natural_line(depth));
                let (space, line) = (self.terms().optional(space), self.terms().optional(line));
                self.terms().concat(space, line)
            }
            (Whitespace::Spaced, ParserPhase::Value | ParserPhase::Item | ParserPhase::ObjectNext)
            | (Whitespace::Indent, ParserPhase::Value) => self.terms().literal(" "),
            (Whitespace::Indent, ParserPhase::Item | ParserPhase::ObjectNext) => self.line(depth),
            (Whitespace::Indent, ParserPhase::ObjectStart | ParserPhase::ArrayStart) => {
                let line = self.line(depth);
                self.terms().tuple(&[only(go, line), only(close, Terms::EPS)])
            }
            (Whitespace::Indent, ParserPhase::ObjectAfter | ParserPhase::ArrayAfter) => {
                let line = self.line(depth - 1);
                self.terms().tuple(&[only(go, Terms::EPS), only(close, line)])
            }
            _ => Terms::EPS,
        }
    }

    /// Bytes that may follow a key.
    pub(super) fn before_value(&self) -> ByteSet {
        match self.schema.options.whitespace {
            Whitespace::Any | Whitespace::AtMost(_) => ByteSet::of(b" \t\r\n:"),
            _ => ByteSet::of(b":"),
        }
    }

    fn line(&mut self, depth: u32) -> TermId {
        let text = format!("\n{}", "  ".repeat(depth as usize));
        self.terms().literal(&text)
    }

    /// Nothing, a space, or a line break and an indentation.
    fn beside_bracket(&mut self, depth: u32) -> TermId {
        let (space, line) = (self.terms().literal(" "), self.natural_line(depth));
        let white = self.terms().or(&[space, line]);
        self.terms().optional(white)
    }

    fn natural_line(&mut self, depth: u32) -> TermId {
        self.line_and_blanks(COLUMNS * depth)
    }

    /// A line break and at most so many blanks and tabs.
    fn line_and_blanks(&mut self, most: u32) -> TermId {
        let terms = self.terms();
        let (crlf, lf) = (terms.literal("\r\n"), terms.literal("\n"));
        let ends = terms.or(&[crlf, lf]);
        let inside = terms.class(&[(9, 9), (32, 32)]);
        let indent = terms.repeat(inside, 0, most);
        terms.concat(ends, indent)
    }

    fn run(&mut self, most: u32) -> TermId {
        let terms = self.terms();
        let blank = terms.class(&[(9, 10), (13, 13), (32, 32)]);
        terms.repeat(blank, 0, most)
    }

    fn any_whitespace(&mut self, depth: u32) -> TermId {
        let run = self.run(RUN);
        let wide = COLUMNS * (depth + 1);
        if wide <= RUN {
            return run;
        }
        let indented = self.line_and_blanks(wide);
        self.terms().or(&[run, indented])
    }

    /// Levels below which an indentation may be longer than every token; `None` where each level has its own.
    pub(super) fn indents(&self, longest: u32) -> Option<u32> {
        match self.schema.options.whitespace {
            Whitespace::Compact | Whitespace::Spaced | Whitespace::AtMost(_) => Some(0),
            Whitespace::Any | Whitespace::Natural => Some(longest.max(RUN) / COLUMNS + 1),
            Whitespace::Indent => None,
        }
    }

    /// Which of "go on" and "close" the whitespace that was read allows.
    pub(super) fn whitespace_choice(&self, phase: ParserPhase, accepting: &[u32]) -> (bool, bool) {
        let split = self.tells_by_whitespace(phase);
        if split {
            (accepting.contains(&0), accepting.contains(&1))
        } else {
            (!accepting.is_empty(), !accepting.is_empty())
        }
    }
}
