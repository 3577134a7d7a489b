//! Rules of the table that compare numbers.

use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// The language of a rule that is not written in the table; `fraction`: that of a rule that is.
pub(super) fn rule(name: &str, fraction: impl FnOnce() -> Lang) -> Lang {
    match name {
        "leap-second" => leap_second(&fraction()),
        "characters-in-order" => characters_in_order(),
        "counts-in-order-1" => in_order("", 1, 10, ","),
        "counts-in-order-2" => in_order("", 2, 10, ","),
        "counts-in-order-3" => in_order("", 3, 10, ","),
        "hex-in-order-2" => in_order("\\x", 2, 16, "-"),
        "hex-in-order-4" => in_order("\\u", 4, 16, "-"),
        _ => panic!("no rule of the table: {name}"),
    }
}

fn cat<const N: usize>(parts: [Lang; N]) -> Lang {
    Lang::concat(parts)
}

fn digits(count: u32) -> Lang {
    Lang::class(CharSet::from_ranges(&[(0x30, 0x39)])).repeat(count, Some(count))
}

/// A second of 60: local time minus offset is 23:59. With hours h, minutes m and an offset of H:M,
/// `-`: h = 23-H and m = 59-M; `+`: for M = 0, m = 59 and h = H-1 (mod 24); else m = M-1 and h = H.
/// One language relates the hours to the offset's, another the minutes, and both must hold: a branch for each
/// hour and minute would make 1,440, and digits related one by one would allow prefixes that only a search
/// shows to be dead.
fn leap_second(fraction: &Lang) -> Lang {
    let text = |text: &str| Lang::text(text);
    let second = || cat([text(":60"), fraction.clone()]);
    // a time whose offset has the hours that its own hours require, and any minutes
    let hours = |offset: &dyn Fn(u32) -> String| {
        numbered(23, |hour| cat([text(":"), digits(2), second(), text(&offset(hour)), digits(2)]))
    };
    // the same for minutes, up to a last one
    let minutes = |sign: &str, last: u32, offset: &dyn Fn(u32) -> u32| {
        let end = |minute| text(&format!(":{:02}", offset(minute)));
        let of = |minute| cat([second(), text(sign), digits(2), end(minute)]);
        cat([digits(2), text(":"), numbered(last, of)])
    };
    let zulu = Lang::class(CharSet::of("zZ"));
    Lang::or([
        cat([text("23:59"), second(), zulu]),
        Lang::and([hours(&|hour| format!("-{:02}:", 23 - hour)), minutes("-", 59, &|minute| 59 - minute)]),
        numbered(23, |hour| cat([text(":59"), second(), text(&format!("+{:02}:00", (hour + 1) % 24))])),
        Lang::and([hours(&|hour| format!("+{hour:02}:")), minutes("+", 58, &|minute| minute + 1)]),
    ])
}

/// Two-digit numbers up to `last`, each followed by its `then`. Grouped by the first digit, so that at most
/// ten alternatives are open at once.
fn numbered(last: u32, then: impl Fn(u32) -> Lang) -> Lang {
    let of = |tens: u32| {
        let units =
            (10 * tens..=last.min(10 * tens + 9)).map(|n| cat([Lang::text(&(n % 10).to_string()), then(n)]));
        cat([Lang::text(&tens.to_string()), Lang::or(units)])
    };
    Lang::or((0..=last / 10).map(of))
}

/// Ranges of a class of `regex` that start at a printable ASCII character.
fn characters_in_order() -> Lang {
    let plain = CharSet::of("\\]-").negate();
    let ascii = CharSet::from_ranges(&[(0x20, 0x7E)]).intersect(&plain);
    Lang::or(ascii.0.iter().flat_map(|&(low, high)| low..=high).map(|low| {
        let high = CharSet::from_ranges(&[(low, 0x10_FFFF)]).intersect(&plain);
        cat([Lang::class(CharSet::single(low)), Lang::text("-"), Lang::class(high)])
    }))
}

/// Two numbers of so many digits, `opening` before each, the first not above the second: equal up to some digit, and
/// there less; or equal throughout. Each digit is compared by itself; the comparisons are intersected.
fn in_order(opening: &str, digits: u32, radix: u32, between: &str) -> Lang {
    let digit_of = |value: u32| Lang::class(CharSet::of(&format!("{value:x}{value:X}")));
    let any = |count| Lang::or((0..radix).map(digit_of)).repeat(count, Some(count));
    let both = |at: u32, low: Lang, high: Lang| {
        let number = |value: Lang| cat([Lang::text(opening), any(at), value, any(digits - at - 1)]);
        cat([number(low), Lang::text(between), number(high)])
    };
    let equal = |at| Lang::or((0..radix).map(|value| both(at, digit_of(value), digit_of(value))));
    let less = |at| {
        Lang::or(
            (1..radix).map(|value| both(at, digit_of(value - 1), Lang::or((value..radix).map(digit_of)))),
        )
    };
    let less_first_at = |at: u32| Lang::and((0..at).map(equal).chain([less(at)]));
    let all_equal = Lang::and((0..digits).map(equal));
    Lang::or([Lang::or((0..digits).map(less_first_at)), all_equal])
}
