//! Numbers: exact decimals, sets of them, and the texts that spell a number of a set.

pub mod alike;
pub mod decimal;
mod possible;
pub mod set;
mod syntax;
mod tail;
pub mod text;
mod window;

pub use decimal::Decimal;
pub use text::{NumberTerms, SpelledId};
