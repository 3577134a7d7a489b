//! Plain Python values as JSON text, character by character what `json.dumps` writes.
//!
//! Schemas and forms come as values, and the engine reads text: this is a quarter of the time in which `json` writes
//! them, and other threads have their turn meanwhile, for which one call of `json` leaves no room.
//! What is not plain (a mapping of another type, a key that is no text, half of a surrogate pair) is left to `json`.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tokenform_core::schema::parse::{most_values, too_many_values};

use crate::errors::raise;
use crate::host::unlocked;

/// Levels beyond which `json` decides what happens.
const DEEPEST: usize = 200;
/// Values after which their number is looked at, and other threads have their turn: some milliseconds. More often than the
/// interpreter's switch interval (5 ms) none had one: a thread that waits is woken by each release, finds the lock taken again and
/// begins its wait anew.
const LOOK: u64 = 1 << 18;
/// Bytes from which on a text is written without the interpreter.
const LONG: usize = 1 << 20;

/// The text of a schema that is given as a value; None where it is not made of dict, list, tuple, str, int, float, bool
/// and None alone. Where it has more values than a schema may have it is not written to its end.
#[pyfunction]
pub fn json_text(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let mut out = Out { text: String::with_capacity(1 << 11), values: 0 };
    Ok(write(value, &mut out, DEEPEST)?.then_some(out.text))
}

/// Writes one text after the other into the same place.
#[derive(Default)]
pub struct Writer {
    text: String,
}

impl Writer {
    /// As [`json_text`].
    pub fn write(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<&str>> {
        let mut out = Out { text: std::mem::take(&mut self.text), values: 0 };
        out.text.clear();
        let plain = write(value, &mut out, DEEPEST);
        self.text = out.text;
        Ok(plain?.then_some(&self.text))
    }
}

/// What was written.
struct Out {
    text: String,
    /// Values that stand beside another.
    values: u64,
}

impl Out {
    /// What stands between two values.
    fn comma(&mut self, py: Python<'_>) -> PyResult<()> {
        self.text.push_str(", ");
        self.values += 1;
        if self.values.is_multiple_of(LOOK) {
            let most = most_values(self.text.len());
            if self.values > most as u64 {
                return Err(raise(too_many_values(most)));
            }
            unlocked(py, || ());
        }
        Ok(())
    }
}

fn write(value: &Bound<'_, PyAny>, out: &mut Out, depth: usize) -> PyResult<bool> {
    if depth == 0 {
        return Ok(false);
    }
    if let Ok(text) = value.downcast_exact::<PyString>() {
        return Ok(write_string(text, &mut out.text));
    }
    if let Ok(members) = value.downcast_exact::<PyDict>() {
        return write_members(members, out, depth);
    }
    if let Ok(items) = value.downcast_exact::<PyList>() {
        return write_items(items.py(), items.iter(), out, depth);
    }
    if let Ok(items) = value.downcast_exact::<PyTuple>() {
        return write_items(items.py(), items.iter(), out, depth);
    }
    write_atom(value, &mut out.text)
}

fn write_members(members: &Bound<'_, PyDict>, out: &mut Out, depth: usize) -> PyResult<bool> {
    out.text.push('{');
    // all at once: one is fetched from memory while the next is looked for, and none is lost to another thread
    let held: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = members.iter().collect();
    for (at, (key, value)) in held.into_iter().enumerate() {
        if at > 0 {
            out.comma(members.py())?;
        }
        let Ok(key) = key.downcast_exact::<PyString>() else { return Ok(false) };
        if !write_string(key, &mut out.text) {
            return Ok(false);
        }
        out.text.push_str(": ");
        if !write(&value, out, depth - 1)? {
            return Ok(false);
        }
    }
    out.text.push('}');
    Ok(true)
}

fn write_items<'py>(
    py: Python<'py>,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    out: &mut Out,
    depth: usize,
) -> PyResult<bool> {
    out.text.push('[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.comma(py)?;
        }
        if !write(&item, out, depth - 1)? {
            return Ok(false);
        }
    }
    out.text.push(']');
    Ok(true)
}

fn write_atom(value: &Bound<'_, PyAny>, out: &mut String) -> PyResult<bool> {
    if value.is_none() {
        out.push_str("null");
    } else if let Ok(value) = value.downcast_exact::<PyBool>() {
        out.push_str(if value.is_true() { "true" } else { "false" });
    } else if let Ok(value) = value.downcast_exact::<PyInt>() {
        let Ok(small) = value.extract::<i64>() else { return Ok(false) };
        out.push_str(&small.to_string());
    } else if let Ok(number) = value.downcast_exact::<PyFloat>() {
        if !number.value().is_finite() {
            return Ok(false);
        }
        out.push_str(number.repr()?.to_str()?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A text in quotes, as ASCII; false where it is none that UTF-8 can spell.
fn write_string(string: &Bound<'_, PyString>, out: &mut String) -> bool {
    let Ok(text) = string.to_str() else { return false };
    if text.len() < LONG {
        write_text(text, out);
    } else {
        unlocked(string.py(), || write_text(text, out));
    }
    true
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_escaped(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        write_escaped(chars.next().expect("something is there"), out);
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// Bytes that are looked at at once: the compiler makes a few instructions of them.
const TOGETHER: usize = 32;

const fn is_escaped(b: u8) -> bool {
    (b.wrapping_sub(b' ') > b'~' - b' ') | (b == b'"') | (b == b'\\')
}

/// The same, looked up.
const ESCAPED: [bool; 256] = {
    let (mut table, mut b) = ([false; 256], 0);
    while b < 256 {
        table[b] = is_escaped(b as u8);
        b += 1;
    }
    table
};

/// Where the first byte stands that is not written as it is.
fn first_escaped(text: &[u8]) -> Option<usize> {
    let pieces = text.chunks_exact(TOGETHER);
    let plain = pieces.take_while(|piece| !piece.iter().fold(false, |any, b| any | is_escaped(*b))).count();
    let from = plain * TOGETHER;
    text[from..].iter().position(|b| ESCAPED[*b as usize]).map(|at| from + at)
}

fn write_escaped(c: char, out: &mut String) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => {
            let digit = |of: u16, at: u32| char::from_digit((of >> at & 15) as u32, 16).expect("below 16");
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str("\\u");
                out.extend([12, 8, 4, 0].map(|at| digit(*unit, at)));
            }
            return;
        }
    };
    out.push_str(short);
}
