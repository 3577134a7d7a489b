//! Options of a schema by the bits of a byte.

use tokenform_core::schema::options::{Numbers, Options, Order, Strings, Whitespace};

pub fn options(choice: u8) -> Options {
    let whitespace = [Whitespace::Compact, Whitespace::Natural, Whitespace::Indent, Whitespace::Any];
    Options {
        order: if choice & 1 == 0 { Order::Declared } else { Order::Any },
        numbers: if choice & 2 == 0 { Numbers::Natural } else { Numbers::Any },
        strings: match (choice & 4, choice & 32) {
            (0, 0) => Strings::Canonical,
            (0, _) => Strings::Natural,
            _ => Strings::Any,
        },
        whitespace: whitespace[(choice >> 3 & 3) as usize],
        formats: choice & 32 == 0,
        forbid_additional: choice & 64 != 0,
        report_unsupported: choice & 128 != 0,
        ..Options::default()
    }
}
