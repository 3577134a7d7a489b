//! `date`, `time`, `date-time`: RFC 3339 §5.6, with the restrictions of §5.7.
//!
//! The day fits its month, 29 February its year. A second of 60 needs a time of 23:59 in UTC; which days had
//! a leap second is a table that grows (appendix D), so no day is excluded. `T` and `Z` in either case.

use super::abnf::{any_of, cat, digit, either_case, one_of, text, times, two_digits};
use crate::regex::lang::Lang;

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
pub(super) fn time() -> Lang {
    let offset =
        any_of![either_case("z"), cat![one_of("+-"), two_digits(0, 23), text(":"), two_digits(0, 59)],];
    let ordinary = cat![
        two_digits(0, 23),
        text(":"),
        two_digits(0, 59),
        text(":"),
        two_digits(0, 59),
        fraction(),
        offset,
    ];
    any_of![ordinary, leap_second()]
}

/// date-time
pub(super) fn date_time() -> Lang {
    cat![date(), either_case("t"), time()]
}

fn fraction() -> Lang {
    cat![text("."), digit().plus()].optional()
}

/// A second of 60: local time minus offset is 23:59. With hours h, minutes m and an offset of H:M,
/// `-`: h = 23-H and m = 59-M; `+`: for M = 0, m = 59 and h = H-1 (mod 24); else m = M-1 and h = H.
/// Each digit is bound to the offset's digits apart from the others, and all must hold: a branch for each hour
/// and minute would be an alternative that every state before them carries along.
fn leap_second() -> Lang {
    let hours_minus = [
        Lang::or((0..10).map(|u| hours("-", ["d", &ten(13 - u), "d", &ten(u)]))),
        any_of![
            Lang::or((0..3).map(|t| hours("-", [&ten(2 - t), "d", &ten(t), "0123"]))),
            Lang::or((0..2).map(|t| hours("-", [&ten(1 - t), "d", &ten(t), "456789"]))),
        ],
    ];
    let minutes_minus = [
        minutes("-", (0..10).map(|u| ["d".into(), ten(9 - u), "d".into(), ten(u)])),
        minutes("-", (0..6).map(|t| [ten(5 - t), "d".into(), ten(t), "d".into()])),
    ];
    let hours_plus = [
        Lang::or((0..10).map(|u| hours("+", ["d", &ten(u), "d", &ten(u)]))),
        any_of![
            Lang::or((0..2).map(|t| hours("+", [&ten(t), "d", &ten(t), "d"]))),
            hours("+", ["2", "0123", "2", "0123"]),
        ],
    ];
    let carried = (1..6).map(|t| [ten(t - 1), "d".into(), ten(t), "0".into()]);
    let minutes_plus = [
        minutes("+", (0..10).map(|u| ["d".into(), ten(u + 9), "d".into(), ten(u)])),
        minutes("+", (0..6).map(|t| [ten(t), "d".into(), ten(t), "123456789".into()]).chain(carried)),
    ];
    let hour_before = Lang::or((0..24).map(|h| {
        let end = format!("+{h:02}:00");
        cat![text(&format!("{:02}:59:60", (h + 23) % 24)), fraction(), text(&end)]
    }));
    any_of![
        cat![text("23:59:60"), fraction(), either_case("z")],
        Lang::and(hours_minus.into_iter().chain(minutes_minus)),
        hour_before,
        Lang::and(hours_plus.into_iter().chain(minutes_plus)),
    ]
}

/// The last digit of a number.
fn ten(n: u32) -> String {
    (n % 10).to_string()
}

/// The digits of a place: `d` is any.
fn place(digits: &str) -> Lang {
    if digits == "d" {
        digit()
    } else {
        one_of(digits)
    }
}

/// A clock at a second of 60 whose hours are these two digits, the offset's the other two.
fn hours(sign: &str, [tens, units, off_tens, off_units]: [&str; 4]) -> Lang {
    let hours = cat![place(tens), place(units), text(":"), times(digit(), 2), text(":60"), fraction()];
    cat![hours, text(sign), place(off_tens), place(off_units), text(":"), times(digit(), 2)]
}

/// The same for minutes, of which any of these may be.
fn minutes(sign: &str, any: impl Iterator<Item = [String; 4]>) -> Lang {
    let ends = any.map(|[tens, units, off_tens, off_units]| {
        let minutes = cat![place(&tens), place(&units), text(":60"), fraction(), text(sign)];
        cat![minutes, times(digit(), 2), text(":"), place(&off_tens), place(&off_units)]
    });
    cat![times(digit(), 2), text(":"), Lang::or(ends)]
}
