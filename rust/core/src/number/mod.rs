//! Numbers: exact decimals, sets of them, and the texts that spell a number of a set.

pub mod decimal;
pub mod set;
mod tail;
pub mod text;
mod window;

pub use decimal::Decimal;
pub use text::NumberTerms;
