//! Plain Python values as JSON text, character by character what `json.dumps` writes.
//!
//! Schemas and forms come as values, and the engine reads text: this is a quarter of the time in which `json` writes
//! them, and other threads have their turn meanwhile, for which one call of `json` leaves no room.
//! What is not plain (a mapping of another type, a key that is no text, half of a surrogate pair) is left to `json`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::with_critical_section;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use pyo3::{ffi, Borrowed};
use tokenform_core::schema::parse::{most_values, too_many_values};

use crate::errors::raise;
use crate::host::{threads_run_beside, unlocked};
use crate::seen::Step;

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
    let mut out = Out { text: String::with_capacity(1 << 11), ..Out::default() };
    Ok(write(value, &mut out, DEEPEST)?.then_some(out.text))
}

/// Writes one text after the other into the same place.
#[derive(Default)]
pub struct Writer {
    text: String,
    seen: Vec<Step>,
}

impl Writer {
    /// As [`json_text`], and what was seen of the value.
    pub fn write(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Option<(&str, &mut Vec<Step>)>> {
        let seen = Some(std::mem::take(&mut self.seen));
        let mut out = Out { text: std::mem::take(&mut self.text), values: 0, seen };
        out.text.clear();
        out.seen.as_mut().expect("it is given above").clear();
        let plain = write(value, &mut out, DEEPEST);
        (self.text, self.seen) = (out.text, out.seen.unwrap_or_default());
        Ok(plain?.then_some((&self.text, &mut self.seen)))
    }
}

/// What was written.
#[derive(Default)]
struct Out {
    text: String,
    /// Values that were written.
    values: u64,
    /// What was seen on the way; None: nobody asks.
    seen: Option<Vec<Step>>,
}

impl Out {
    fn saw(&mut self, step: impl FnOnce() -> Step) {
        if let Some(seen) = &mut self.seen {
            seen.push(step());
        }
    }

    /// Counts a value that is written; now and then other threads have their turn, and nothing stays that is not held.
    fn counted(&mut self, py: Python<'_>) -> PyResult<()> {
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
        let Ok(plain) = text.to_str() else { return Ok(false) };
        out.saw(|| Step::Is(value.clone().unbind()));
        if plain.len() < LONG {
            write_text(plain, &mut out.text);
        } else {
            let held = text.clone();
            unlocked(held.py(), || write_text(plain, &mut out.text));
        }
        return Ok(true);
    }
    if let Ok(members) = value.downcast_exact::<PyDict>() {
        out.saw(|| Step::Dict(members.len() as u32));
        return write_members(members.clone(), out, depth);
    }
    if let Ok(items) = value.downcast_exact::<PyList>() {
        out.saw(|| Step::List(items.len() as u32));
        return write_items(items.py(), items.iter(), out, depth);
    }
    if let Ok(items) = value.downcast_exact::<PyTuple>() {
        out.saw(|| Step::List(items.len() as u32));
        return write_items(items.py(), items.iter(), out, depth);
    }
    out.saw(|| Step::Is(value.clone().unbind()));
    write_atom(value, &mut out.text)
}

fn write_members(members: Bound<'_, PyDict>, out: &mut Out, depth: usize) -> PyResult<bool> {
    let mut count = 0;
    out.text.push('{');
    let plain = each_member(&members, |key, value| {
        let Ok(Ok(name)) = key.downcast_exact::<PyString>().map(|key| key.to_str()) else {
            return Ok(false);
        };
        if count > 0 {
            out.text.push_str(", ");
        }
        out.saw(|| Step::Is(key.clone().unbind()));
        write_text(name, &mut out.text);
        out.text.push_str(": ");
        if !write(value, out, depth - 1)? {
            return Ok(false);
        }
        count += 1;
        out.counted(key.py())?;
        Ok(true)
    });
    if matches!(plain, Ok(true)) && count != members.len() {
        return Err(PyRuntimeError::new_err("dictionary changed size during iteration"));
    }
    out.text.push('}');
    plain
}

/// Goes through the members until `look` says no, which is the answer then.  They are lent by the dict, which is held: holding
/// each of them is a quarter of the time.
#[allow(unsafe_code)]
pub fn each_member<'py>(
    members: &Bound<'py, PyDict>,
    mut look: impl FnMut(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> PyResult<bool>,
) -> PyResult<bool> {
    let (py, dict, alone) = (members.py(), members.as_ptr(), !threads_run_beside());
    let mut place = 0;
    let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
    with_critical_section(members, || {
        // SAFETY: the dict lives.  Its members do until another thread may run.  Without an interpreter's lock they are held;
        // with one that is while a value is written (`write` holds what it needs then) or counted (they are looked at no more)
        while unsafe { ffi::PyDict_Next(dict, &mut place, &mut key, &mut value) } != 0 {
            let (key, value) = unsafe { (Borrowed::from_ptr(py, key), Borrowed::from_ptr(py, value)) };
            let _held = (!alone).then(|| (key.to_owned(), value.to_owned()));
            if !look(&key, &value)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
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
            out.text.push_str(", ");
        }
        if !write(&item, out, depth - 1)? {
            return Ok(false);
        }
        out.counted(py)?;
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

/// A text in quotes, as ASCII.
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

/// Whether one of eight bytes is not written as it is.
fn any_escaped(bytes: &[u8]) -> bool {
    const EACH: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    // the high bit of a byte below a number; of the first that is zero
    let below = |word: u64, least: u64| word.wrapping_sub(EACH * least) & !word;
    let is = |byte: u8| below(word ^ (EACH * byte as u64), 1);
    (word | below(word, b' ' as u64) | is(b'"') | is(b'\\') | is(0x7f)) & (EACH << 7) != 0
}

/// Where the first byte stands that is not written as it is.
fn first_escaped(text: &[u8]) -> Option<usize> {
    let plain = 8 * text.chunks_exact(8).take_while(|word| !any_escaped(word)).count();
    let rest = &text[plain..];
    if text.len() >= 8 && rest.len() < 8 && !any_escaped(&text[text.len() - 8..]) {
        return None;
    }
    rest.iter().position(|b| ESCAPED[*b as usize]).map(|at| plain + at)
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
