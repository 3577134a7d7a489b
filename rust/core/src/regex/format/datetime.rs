//! `date`, `time`, `date-time`: RFC 3339 §5.6, with the restrictions of §5.7.
//!
//! The day fits its month, 29 February its year. A second of 60 needs a time of 23:59 in UTC; which days had
//! a leap second is a table that grows (appendix D), so no day is excluded. `T` and `Z` in either case.

use super::abnf::{any_of, cat, digit, either_case, one_of, text, times, two_digits};
use super::Digits;
use crate::regex::lang::Lang;

/// Digits of a fraction that writers write: those of nanoseconds.
const FRACTION: u32 = 9;

/// full-date
pub(super) fn date() -> Lang {
    let year = times(digit(), 4);
    let month_day = any_of![
        cat![
            any_of![text("01"), text("03"), text("05"), text("07"), text("08"), text("10"), text("12")],
            day(31)
        ],
        cat![any_of![text("04"), text("06"), text("09"), text("11")], day(30)],
        cat![text("02"), day(28)],
    ];
    any_of![cat![year, text("-"), month_day], cat![leap_year(), text("-02-29")]]
}

/// `-dd` up to `last`.
fn day(last: u32) -> Lang {
    cat![text("-"), two_digits(1, last)]
}

/// Divisible by 4 and not by 100, or by 400.
fn leap_year() -> Lang {
    let fourth = |tens_even: &str| {
        any_of![cat![one_of(tens_even), one_of("048")], cat![one_of("13579"), one_of("26")],]
    };
    let not_zero = any_of![fourth("2468"), cat![text("0"), one_of("48")]];
    any_of![cat![times(digit(), 2), not_zero], cat![fourth("02468"), text("00")]]
}

/// full-time
pub(super) fn time(digits: Digits) -> Lang {
    let offset =
        any_of![either_case("z"), cat![one_of("+-"), two_digits(0, 23), text(":"), two_digits(0, 59)],];
    let ordinary = cat![
        two_digits(0, 23),
        text(":"),
        two_digits(0, 59),
        text(":"),
        two_digits(0, 59),
        fraction(digits),
        offset,
    ];
    any_of![ordinary, leap_second(digits)]
}

/// date-time
pub(super) fn date_time(digits: Digits) -> Lang {
    cat![date(), either_case("t"), time(digits)]
}

fn fraction(digits: Digits) -> Lang {
    cat![text("."), digits.up_to(FRACTION)].optional()
}

/// A second of 60: local time minus offset is 23:59. With hours h, minutes m and an offset of H:M,
/// `-`: h = 23-H and m = 59-M; `+`: for M = 0, m = 59 and h = H-1 (mod 24); else m = M-1 and h = H.
/// Hours are bound to the offset's hours apart from the minutes, and both must hold: a branch for each hour and
/// minute would be 1,440, and digits bound one by one would let a time go on that only a search shows to be dead.
fn leap_second(digits: Digits) -> Lang {
    let hour_before =
        |hour: u32| cat![text(":59:60"), fraction(digits), text(&format!("+{:02}:00", (hour + 1) % 24))];
    any_of![
        cat![text("23:59:60"), fraction(digits), either_case("z")],
        Lang::and([hours(digits, "-", |hour| 23 - hour), minutes(digits, "-", 59, |minute| 59 - minute)]),
        numbered(23, hour_before),
        Lang::and([hours(digits, "+", |hour| hour), minutes(digits, "+", 58, |minute| minute + 1)]),
    ]
}

/// Two digits up to a number, each followed by what depends on it. By their first digit: so that no more than ten
/// are carried along.
fn numbered(last: u32, then: impl Fn(u32) -> Lang) -> Lang {
    let of = |tens: u32| {
        let units = (10 * tens..=last.min(10 * tens + 9)).map(|n| cat![text(&(n % 10).to_string()), then(n)]);
        cat![text(&tens.to_string()), Lang::or(units)]
    };
    Lang::or((0..=last / 10).map(of))
}

/// A clock at a second of 60 whose offset has the hours that its own call for, and any minutes.
fn hours(digits: Digits, sign: &str, offset: impl Fn(u32) -> u32) -> Lang {
    numbered(23, |hour| {
        let end = text(&format!("{sign}{:02}:", offset(hour)));
        cat![text(":"), times(digit(), 2), text(":60"), fraction(digits), end, times(digit(), 2)]
    })
}

/// The same for minutes, up to a last one.
fn minutes(digits: Digits, sign: &str, last: u32, offset: impl Fn(u32) -> u32) -> Lang {
    let of = |minute| {
        let end = text(&format!(":{:02}", offset(minute)));
        cat![text(":60"), fraction(digits), text(sign), times(digit(), 2), end]
    };
    cat![times(digit(), 2), text(":"), numbered(last, of)]
}
