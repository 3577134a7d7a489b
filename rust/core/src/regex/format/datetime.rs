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
/// Hours and minutes are bound to the offset's apart from each other; both must hold.
fn leap_second() -> Lang {
    let two = || times(digit(), 2);
    let number = |n: u32| text(&format!("{n:02}"));
    let clock = |h: Lang, m: Lang, sign: &str, oh: Lang, om: Lang| {
        cat![h, text(":"), m, text(":60"), fraction(), text(sign), oh, text(":"), om]
    };
    let hours = |sign: &str, hour: &dyn Fn(u32) -> u32, m: Lang, om: Lang| {
        Lang::or((0..24).map(|oh| clock(number(hour(oh)), m.clone(), sign, number(oh), om.clone())))
    };
    let minutes = |sign: &str, range: std::ops::Range<u32>, minute: &dyn Fn(u32) -> u32| {
        Lang::or(range.map(|om| clock(two(), number(minute(om)), sign, two(), number(om))))
    };
    any_of![
        cat![text("23:59:60"), fraction(), either_case("z")],
        Lang::and([hours("-", &|oh| 23 - oh, two(), two()), minutes("-", 0..60, &|om| 59 - om)]),
        hours("+", &|oh| (oh + 23) % 24, text("59"), text("00")),
        Lang::and([hours("+", &|oh| oh, two(), two()), minutes("+", 1..60, &|om| om - 1)]),
    ]
}
