//! Options of a schema by the bits of a byte.

use tokenform_core::schema::options::{Options, Order, Whitespace};

pub fn options(choice: u8) -> Options {
    let whitespace = [Whitespace::Compact, Whitespace::Spaced, Whitespace::Indent, Whitespace::Any];
    Options {
        order: if choice & 1 == 0 { Order::Declared } else { Order::Any },
        numbers_any: choice & 2 != 0,
        strings_any: choice & 4 != 0,
        whitespace: whitespace[(choice >> 3 & 3) as usize],
        formats: choice & 32 == 0,
        forbid_additional: choice & 64 != 0,
        report_unsupported: choice & 128 != 0,
        ..Options::default()
    }
}
