//! The text of a form as a value, however deep it stands inside others.

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::work;

/// Levels of brackets in the text of a form: an operator and its operands are two.
const LEVELS: usize = 900;

/// A form as a value.
pub(crate) fn value_of(text: &str) -> Result<Value> {
    // it is written, hashed and read for each grammar that contains it: a step of work for each byte
    work::spend(text.len() as u64);
    if levels(text) > LEVELS {
        return Err(Error::limit(format!(
            "constraints made of others are {} levels inside one another at most",
            LEVELS / 2
        )));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let form = Value::deserialize(serde_stacker::Deserializer::new(&mut reader));
    let form = form.and_then(|form| reader.end().map(|()| form));
    form.map_err(|e| Error::new(Kind::InvalidGrammar, format!("not a form: {e}")))
}

/// The depth of a JSON text's brackets; perhaps more where it is no JSON.
fn levels(text: &str) -> usize {
    let (mut most, mut depth) = (0usize, 0usize);
    let mut bytes = text.bytes();
    let mut quoted = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quoted => _ = bytes.next(),
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}
