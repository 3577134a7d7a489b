//! Pattern text -> [`Node`], for each dialect.
//!
//! [`dialect`] has what the dialects mean and who reads a construct; [`reader`] reads groups and quantifiers, [`escape`] what
//! follows a backslash, [`property`] `\p{..}`, [`class`] brackets, and [`tree`] puts the nodes together.  Rust's own dialect is
//! read by `regex-syntax`, which is that dialect ([`rust`]); the Unicode tables are that crate's too.

mod class;
mod cursor;
pub(super) mod dialect;
mod escape;
pub(super) mod node;
mod property;
mod reader;
mod rust;
mod tree;

pub use dialect::{Dialect, Note, DIALECTS};
pub use node::Node;

use super::error::RegexError;

/// The longest pattern that is read, in bytes.
pub const MAX_LENGTH: usize = 1 << 20;
/// The deepest nesting of groups that is read.
pub const MAX_NESTING: usize = 250;
/// The greatest count of a `{m,n}`.
pub const MAX_COUNT: u32 = 1_000_000;

/// The tree of a pattern, and what was read otherwise than its dialect says; `ordered`: with lazy quantifiers.
pub fn parse(pattern: &str, dialect: Dialect, ordered: bool) -> Result<(Node, Vec<Note>), RegexError> {
    match dialect {
        Dialect::Rust => Ok((rust::parse(pattern, ordered)?, Vec::new())),
        _ => reader::Reader::read(pattern, dialect, ordered),
    }
}
