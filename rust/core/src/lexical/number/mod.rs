//! Numbers: exact decimals, sets of them, and the texts that spell a number of a set.

pub mod alike;
pub mod decimal;
pub mod piece;
mod possible;
pub mod set;
mod syntax;
mod tail;
pub mod text;
mod window;

pub use decimal::Decimal;
pub use text::{NumberTerms, SpelledId};

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Integers as digits, other numbers in every spelling of a value in the range of a double, both of
    /// bounded length.
    Natural,
    /// A subset of these, as `json.dumps` writes them: integers as digits, others in the shortest spelling of
    /// a double.
    Shortest,
    /// As `json.dumps` and `JSON.stringify` write them.
    Canonical,
    /// Every spelling.
    Any,
}
