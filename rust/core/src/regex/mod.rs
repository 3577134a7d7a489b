//! Patterns -> languages over Unicode code points.
//!
//! Reading order: [`lang`] (what comes out), [`syntax`] (text to a tree without dialect), [`lower`] (assertions
//! away: tree to language), [`lazy`] (lazy quantifiers), [`around`] (what assertions say of the text around a match), [`format`] (the formats of JSON Schema, from their grammars), `matcher` (the slow,
//! simple oracle). Nothing here knows bytes, JSON spelling or tokens; the lexical layer takes a [`Lang`] over.

pub mod around;
pub mod charset;
pub mod error;
pub mod format;
pub mod lang;
mod lazy;
mod lower;
#[cfg(test)]
mod matcher;
mod syntax;
#[cfg(test)]
mod tests;

pub use charset::CharSet;
pub use error::{RegexError, RegexErrorKind};
pub use format::format;
pub use lang::Lang;

use crate::work;
use syntax::Node;

/// How a pattern is written and what it means by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// ECMA-262 as JSON Schema's `pattern` uses it: the pattern is found somewhere in the string.
    Ecma,
    /// Python's `re`: the pattern matches the whole string (`re.fullmatch`).
    Python,
}

/// The language of a pattern: for [`Dialect::Ecma`] the strings in which it is found, for [`Dialect::Python`]
/// the strings that it matches as a whole.
pub fn parse(pattern: &str, dialect: Dialect) -> Result<Lang, RegexError> {
    parse_with(pattern, dialect, dialect == Dialect::Python)
}

/// The language of a pattern: the strings that match as a whole if `anchored`, else those that hold a match.
pub fn parse_with(pattern: &str, dialect: Dialect, anchored: bool) -> Result<Lang, RegexError> {
    let node = read(pattern, dialect, false)?;
    let whole = if anchored { node } else { Node::concat(vec![Node::any(), node, Node::any()]) };
    lower::lower(&whole)
}

/// The tree of a pattern; `ordered`: with lazy quantifiers, which say where a match in a text ends.
fn read(pattern: &str, dialect: Dialect, ordered: bool) -> Result<Node, RegexError> {
    work::spend(pattern.len() as u64);
    match dialect {
        Dialect::Ecma => syntax::ecma::parse(pattern),
        Dialect::Python => syntax::python::parse(pattern, ordered),
    }
}
