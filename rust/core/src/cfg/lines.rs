//! Line breaks that open or close blocks, and the columns that a line may begin at.
//!
//! A width is a place of the lexer's tuple, so that a line break and its indentation are one lexeme (see [`super::layout`]).

use super::layout::{Blocks, STEP, WIDEST};
use super::scanned::{Context, Scanned};
use crate::automaton::byte_automaton::{CtxId, Pos};
use crate::lexical::TermId;

impl Scanned {
    /// Columns that the next line may begin at, where a line break means something.
    pub(super) fn widths(&mut self, context: Context) -> Vec<u16> {
        let blocks = self.blocks[context.blocks as usize].clone();
        let Some(newline) = self.chart.grammar.layout.as_ref().map(|l| l.newline) else { return Vec::new() };
        if blocks.brackets > 0 || self.chart.step(context.set, newline).is_none() {
            return Vec::new();
        }
        let deeper = blocks.width() + 1..=(blocks.width() + STEP).min(WIDEST);
        let all: Vec<u16> = blocks.widths.iter().copied().chain(deeper).collect();
        all.into_iter().filter(|&w| self.after_line_break(context, w).is_some()).collect()
    }

    pub(super) fn after_line_break(&mut self, context: Context, width: u16) -> Option<Context> {
        let layout = self.chart.grammar.layout.as_ref()?;
        let (newline, indent, dedent) = (layout.newline, layout.indent, layout.dedent);
        let mut set = self.chart.step(context.set, newline)?;
        let mut widths = self.blocks[context.blocks as usize].widths.to_vec();
        if width > *widths.last()? {
            set = self.chart.step(set, indent)?;
            widths.push(width);
        }
        while width < *widths.last()? {
            set = self.chart.step(set, dedent)?;
            widths.pop();
        }
        if width != *widths.last()? {
            return None;
        }
        let blocks = Blocks { widths: widths.into(), brackets: 0 };
        let blocks = self.blocks.insert_full(blocks).0 as u32;
        let context = Context { set, blocks, inside: None, last_char_set: 0, following: 0, top: false };
        let lr0 = self.chart.lr0(set).clone();
        let terminals = &self.chart.grammar.terminals;
        let goes_on = lr0.terminals.iter().any(|&t| t != newline && terminals[t as usize].has_text());
        (goes_on || self.ends(context)).then_some(context)
    }

    /// Whether the text may end here, between lexemes: open blocks are closed by the end.
    pub(crate) fn ends(&mut self, context: Context) -> bool {
        if let Some(lex) = context.inside {
            let ctx = self.intern(Context { inside: None, ..context });
            let next = self.after_last(Pos { ctx, lex }).map(|next| self.context(next));
            return next.is_some_and(|next| self.ends(next));
        }
        if self.follow_set(context.following).is_some_and(|following| !following.at_end) {
            return false;
        }
        let mut set = context.set;
        if let Some(dedent) = self.chart.grammar.layout.as_ref().map(|l| l.dedent) {
            for _ in 1..self.blocks[context.blocks as usize].widths.len() {
                match self.chart.step(set, dedent) {
                    Some(next) => set = next,
                    None => return false,
                }
            }
        }
        self.chart.accepts(set)
    }

    /// The place in the tuple of the lexeme that a plan reads next, its language, and how many terminals of the
    /// plan it covers.
    pub(super) fn next_place(&mut self, ctx: CtxId, plan: &[u32]) -> Option<(u32, TermId, usize)> {
        let first = *plan.first()?;
        let context = self.context(ctx);
        let Some(layout) = &mut self.chart.grammar.layout else {
            return Some((first, self.chart.grammar.terminals[first as usize].term?, 1));
        };
        if first != layout.newline {
            return Some((first, self.chart.grammar.terminals[first as usize].term?, 1));
        }
        let widths = &self.blocks[context.blocks as usize].widths;
        let down = plan[1..].iter().take_while(|&&t| t == layout.dedent).count();
        let (width, read) = match plan.get(1) {
            Some(&t) if t == layout.indent => (widths.last()? + 1, 2),
            _ => (*widths.get(widths.len().checked_sub(1 + down)?)?, 1 + down),
        };
        let term = layout.line_break(&mut self.lexicon.terms, width);
        Some((self.chart.grammar.terminals.len() as u32 + 1 + width as u32, term, read))
    }
}
