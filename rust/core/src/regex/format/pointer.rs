//! `json-pointer` (RFC 6901 §3) and `relative-json-pointer` (draft-bhutton-relative-json-pointer-00 §3). Exact.
//!
//! The draft's index manipulation (`0+1/x`) came after the drafts of JSON Schema that name the format;
//! the form here is the one that all of them share: a count, then a pointer or `#`.

use super::abnf::{any_of, cat, digit, one_of, ranges, text};
use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

pub(super) fn absolute() -> Lang {
    let unescaped = Lang::class(CharSet::of("/~").negate());
    let token = any_of![unescaped, cat![text("~"), one_of("01")]].star();
    cat![text("/"), token].star()
}

pub(super) fn relative() -> Lang {
    let count = any_of![text("0"), cat![ranges(&[(0x31, 0x39)]), digit().star()]];
    cat![count, any_of![text("#"), absolute()]]
}
