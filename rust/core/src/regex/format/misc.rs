//! `uuid` (RFC 4122 §3) and `duration` (RFC 3339 appendix A). Exact but for [`Digits`].

use super::abnf::{any_of, cat, hex_digit, text, times};
use super::Digits;
use crate::regex::lang::Lang;

/// Digits of a count of units that writers write: those of 64 bits.
const COUNT: u32 = 19;

/// Five groups of hexadecimal digits; any version and variant.
pub(super) fn uuid() -> Lang {
    let group = |n| times(hex_digit(), n);
    cat![group(8), times(cat![text("-"), group(4)], 3), text("-"), group(12)]
}

/// A unit may be left out only from either end: `P1Y2D` is none.
pub(super) fn duration(digits: Digits) -> Lang {
    let count = |unit: &str| cat![digits.up_to(COUNT), text(unit)];
    // largest unit first: each may go on with the next smaller one
    let chain = |units: [&str; 3]| {
        let third = count(units[2]);
        let second = cat![count(units[1]), third.clone().optional()];
        let first = cat![count(units[0]), second.clone().optional()];
        any_of![first, second, third]
    };
    let time = cat![text("T"), chain(["H", "M", "S"])];
    let date = cat![chain(["Y", "M", "D"]), time.clone().optional()];
    cat![text("P"), any_of![date, time, count("W")]]
}
