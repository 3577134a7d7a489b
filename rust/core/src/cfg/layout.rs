//! Line breaks as NEWLINE, INDENT and DEDENT (the meaning of `lark.indenter.Indenter`).
//!
//! The columns after a line break decide which of these it is: each width that the context allows is a language of its own
//! (the terminal's words with that many columns behind the last `\n`), so the lexical layer reads widths and no text is
//! kept.  Brackets are counted; inside them a line break counts for nothing.
//!
//! Limits, both documented: a line opens a block at most [`STEP`] columns deeper than the one before, and no line
//! is indented by more than [`WIDEST`] columns.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::grammar::Terminal;
use crate::error::{Error, Kind, Result};
use crate::lexical::{TermId, Terms};

/// Columns by which a block may be deeper than the one around it.
pub const STEP: u16 = 8;
/// Greatest indentation.
pub const WIDEST: u16 = 160;

pub struct Layout {
    pub newline: u32,
    pub indent: u32,
    pub dedent: u32,
    pub open: Vec<u32>,
    pub close: Vec<u32>,
    tab: u16,
    names: Vec<String>,
    pattern: TermId,
    words: FxHashMap<u16, TermId>,
    columns: Vec<TermId>,
}

/// Open blocks by their columns, and how many brackets are open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    pub widths: Box<[u16]>,
    pub brackets: u32,
}

impl Blocks {
    pub fn outermost() -> Self {
        Blocks { widths: Box::new([0]), brackets: 0 }
    }

    pub fn width(&self) -> u16 {
        *self.widths.last().expect("the outermost block stays")
    }
}

impl Layout {
    pub fn read(value: &Value, terminals: &[Terminal], _terms: &mut Terms) -> Result<Option<Self>> {
        if value.is_null() {
            return Ok(None);
        }
        let find = |name: &str| {
            terminals.iter().position(|t| t.name == name).map(|i| i as u32).ok_or_else(|| {
                Error::new(
                    Kind::InvalidGrammar,
                    format!("The indenter names {name}, which is no terminal of the grammar"),
                )
            })
        };
        let name = |key: &str| value[key].as_str().unwrap_or_default().to_string();
        let list = |key: &str| -> Result<Vec<u32>> {
            value[key]
                .as_array()
                .into_iter()
                .flatten()
                .map(|v| find(v.as_str().unwrap_or_default()))
                .collect()
        };
        let newline = find(&name("newline"))?;
        let Some(pattern) = terminals[newline as usize].term else {
            return Err(Error::new(
                Kind::InvalidGrammar,
                format!("The indenter's {} has no pattern", name("newline")),
            ));
        };
        Ok(Some(Layout {
            newline,
            indent: find(&name("indent"))?,
            dedent: find(&name("dedent"))?,
            open: list("open")?,
            close: list("close")?,
            tab: value["tab"].as_u64().unwrap_or(8) as u16,
            names: vec![name("indent"), name("dedent")],
            pattern,
            words: FxHashMap::default(),
            columns: Vec::new(),
        }))
    }

    /// Whether the terminal is one that only layout gives.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// Line breaks with just that many columns behind them.
    pub fn line_break(&mut self, terms: &mut Terms, width: u16) -> TermId {
        memo!(self.words, width, {
            let columns = self.columns(terms, width);
            let end = terms.literal("\n");
            let any = terms.concat_all(&[Terms::ALL, end, columns]);
            terms.and(&[self.pattern, any])
        })
    }

    /// Texts of one line that take just that many columns: blanks count one, tabs `tab`, all else nothing.
    fn columns(&mut self, terms: &mut Terms, width: u16) -> TermId {
        let other = terms.class(&[(0, 8), (11, 31), (33, 0xD7FF), (0xE000, 0x10FFFF)]);
        let rest = terms.star(other);
        let (blank, tab) = (terms.literal(" "), terms.literal("\t"));
        while self.columns.len() <= width as usize {
            let at = self.columns.len();
            let mut ways = Vec::new();
            if at == 0 {
                ways.push(Terms::EPS);
            } else {
                ways.push(terms.concat(blank, self.columns[at - 1]));
            }
            if self.tab > 0 && at >= self.tab as usize {
                ways.push(terms.concat(tab, self.columns[at - self.tab as usize]));
            }
            let way = terms.or(&ways);
            self.columns.push(terms.concat(rest, way));
        }
        self.columns[width as usize]
    }
}
