//! Pattern text -> [`Node`], for two dialects.
//!
//! [`ecma`] and [`python`] read what differs between the dialects (escapes, classes, flags) and reduce the
//! text to atoms, groups, bars and quantifiers; [`assemble`] hands that skeleton to the parser of
//! `fancy-regex`, which knows lookarounds; sets, Unicode tables and folding are `regex-syntax`'s.

mod assemble;
mod cursor;
pub(super) mod ecma;
pub(super) mod node;
pub(super) mod python;

pub use node::Node;

/// The longest pattern that is read, in bytes.
pub const MAX_LENGTH: usize = 1 << 20;
/// The deepest nesting of groups that is read.
pub const MAX_NESTING: usize = 250;
/// The greatest count of a `{m,n}`.
pub const MAX_COUNT: u32 = 1_000_000;
