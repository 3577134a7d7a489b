//! Patterns to languages over Unicode code points.
//!
//! In: the text of a pattern and its dialect.  Out: [`Lang`], a tree of unions, sequences, repetitions, intersections and
//! complements over sets of code points.
//! Data: [`syntax::Node`] before assertions are resolved, [`Lang`] after.
//! Invariant: the language is exactly the pattern's, or the pattern is refused with its column; nothing here knows bytes, JSON
//! or tokens.
//! Papers: Miyazaki, Minamide 2019 (lookaheads by derivatives); ECMA-262, chapter 22.2; Python's module re.
//! Start: [`lang`]; [`syntax`] reads, [`lower`] removes assertions, [`lazy`] lazy quantifiers, [`context`]
//! has what assertions say of the text around a match, [`format`] has the formats of JSON Schema; `matcher`
//! is the slow oracle.

pub mod charset;
pub mod context;
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
pub use syntax::{Dialect, Note, DIALECTS};

/// The language of a pattern: for [`Dialect::Python`] the strings that it matches as a whole, for the others those in
/// which it is found.
pub fn parse(pattern: &str, dialect: Dialect) -> Result<Lang, RegexError> {
    Ok(parse_with(pattern, dialect, dialect == Dialect::Python)?.0)
}

/// The language of a pattern: the strings that match as a whole if `anchored`, else those that hold a match; and what
/// was read otherwise than the dialect says.
pub fn parse_with(pattern: &str, dialect: Dialect, anchored: bool) -> Result<(Lang, Vec<Note>), RegexError> {
    let (node, notes) = read(pattern, dialect, false)?;
    let whole = if anchored { node } else { Node::concat(vec![Node::any(), node, Node::any()]) };
    Ok((lower::lower(&whole)?, notes))
}

/// The tree of a pattern; `ordered`: with lazy quantifiers, which say where a match in a text ends.
fn read(pattern: &str, dialect: Dialect, ordered: bool) -> Result<(Node, Vec<Note>), RegexError> {
    work::spend(pattern.len() as u64);
    syntax::parse(pattern, dialect, ordered)
}
