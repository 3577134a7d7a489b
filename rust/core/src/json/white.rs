//! What may stand between two lexemes.
//!
//! Runs are bounded, so that a model can't loop in them.  Natural: a space, or a line break and an indentation, where
//! writers put them: after an opening bracket and a comma (there a space may stand before the break, as Python 2 left
//! it), and before a bracket that closes; a space after a colon.  Before a comma and a colon stands nothing: after a
//! break there a model writes the bracket that closes, and can't where a key is missing.  So what follows a value tells
//! "go on" from "close", as an indented document does.  Any: any mixture of up to [`RUN`] characters, or a line break and
//! an indentation; at most n: any mixture of so many.  Indentations have up to eight columns a level (what `json.dumps(indent=0..8)` writes); how many
//! levels there are is known only roughly, so that depths share their states.
//! Rejected: one indentation a document, chosen at its first line (each would be a copy of every context, and writers do
//! mix: an array in one line, the next in ten).

use super::{JsonMachine, Node, ParserPhase};
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
    pub(super) fn white_at(&mut self, ctx: CtxId) -> LexId {
        let node = self.node(ctx);
        let ways = if self.splits(node.place) { self.ways(node) } else { (true, true) };
        let place = node.place;
        let depth = match self.schema.options.whitespace {
            Whitespace::Any if node.depth > EXACT => node.depth.next_power_of_two(),
            Whitespace::Natural => node.depth.max(SHALLOW).next_power_of_two(),
            Whitespace::AtMost(_) => 0,
            _ => node.depth,
        };
        let key = (place, depth, ways);
        memo!(self.answers.white, key, {
            let term = self.white_term(place, depth, ways);
            self.lexicon().at(Spelling::Raw, term)
        })
    }

    /// Whether the frame can go on (where nothing is written for it, that need not be known), and whether it can close.
    fn ways(&mut self, node: Node) -> (bool, bool) {
        let free = self.schema.options.whitespace == Whitespace::Natural;
        match node.place {
            ParserPhase::ObjectStart | ParserPhase::ObjectAfter => {
                let go = free || self.has_key(node.object());
                (go, !self.object_goals(node.object()).is_empty())
            }
            _ => (free || self.item(node).is_some(), !self.array_goals(node.array()).is_empty()),
        }
    }

    /// Places where what was read of the whitespace tells "go on" from "close".
    fn splits(&self, place: ParserPhase) -> bool {
        match place {
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
    pub(super) fn white_leaves(&mut self, pos: Pos) -> (bool, bool) {
        if !self.splits(self.node(pos.ctx).place) {
            return (true, true);
        }
        match self.lexicon().term(pos.lex).map(|known| self.terms().get(known.1).clone()) {
            Some(Term::Tuple(ways)) => (ways[0] != Terms::EMPTY, ways[1] != Terms::EMPTY),
            _ => (true, true),
        }
    }

    fn white_term(&mut self, place: ParserPhase, depth: u32, (go, close): (bool, bool)) -> TermId {
        let only = |possible: bool, term: TermId| if possible { term } else { Terms::EMPTY };
        let style = self.schema.options.whitespace;
        match (style, place) {
            (Whitespace::Any, _) => self.any_white(depth),
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

    fn any_white(&mut self, depth: u32) -> TermId {
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
    pub(super) fn white_choice(&self, place: ParserPhase, held: &[u32]) -> (bool, bool) {
        let split = self.splits(place);
        if split {
            (held.contains(&0), held.contains(&1))
        } else {
            (!held.is_empty(), !held.is_empty())
        }
    }
}
