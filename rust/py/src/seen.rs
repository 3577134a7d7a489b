//! Plain Python values as they were seen, for telling whether another says the same.
//!
//! Invariant: a value that is the same has the same JSON text.  What is held here (texts, numbers) never changes, so the same
//! object says the same again; lists and dictionaries are gone through, for their owners may change them.
//! Complexity: a comparison of two pointers for each text and number that is the same object, as a copy's are; else its bytes.
//! Rejected: writing the text of a value and looking that up (twice the time for a list that is known); the identity of lists.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::json_text::each_member;

/// One object, before what it holds.
pub enum Step {
    /// What holds no others.
    Is(Py<PyAny>),
    /// A dictionary of so many members, of which each is a key and a value.
    Dict(u32),
    /// A list or tuple of so many items.
    List(u32),
}

/// Whether a value is the one that was seen.
pub fn is_same(value: &Bound<'_, PyAny>, seen: &[Step]) -> bool {
    let mut steps = seen.iter();
    same(value, &mut steps) && steps.len() == 0
}

fn same(value: &Bound<'_, PyAny>, steps: &mut std::slice::Iter<'_, Step>) -> bool {
    match steps.next() {
        Some(Step::Is(held)) => held.as_ptr() == value.as_ptr() || is_alike(held.bind(value.py()), value),
        Some(Step::Dict(count)) => {
            let Ok(members) = value.downcast_exact::<PyDict>() else { return false };
            let both =
                |key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| Ok(same(key, steps) && same(value, steps));
            members.len() == *count as usize && matches!(each_member(members, both), Ok(true))
        }
        Some(Step::List(count)) => {
            let count = *count as usize;
            if let Ok(items) = value.downcast_exact::<PyList>() {
                return items.len() == count && items.iter().all(|item| same(&item, steps));
            }
            let Ok(items) = value.downcast_exact::<PyTuple>() else { return false };
            items.len() == count && items.iter().all(|item| same(&item, steps))
        }
        None => false,
    }
}

/// Whether another object has the same JSON text.
fn is_alike(held: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> bool {
    if let (Ok(held), Ok(value)) = (held.downcast_exact::<PyString>(), value.downcast_exact::<PyString>()) {
        return matches!((held.to_str(), value.to_str()), (Ok(held), Ok(value)) if held == value);
    }
    if let (Ok(held), Ok(value)) = (held.downcast_exact::<PyFloat>(), value.downcast_exact::<PyFloat>()) {
        return held.value().to_bits() == value.value().to_bits();
    }
    if let (Ok(held), Ok(value)) = (held.downcast_exact::<PyInt>(), value.downcast_exact::<PyInt>()) {
        return matches!((held.extract::<i64>(), value.extract::<i64>()), (Ok(held), Ok(value)) if held == value);
    }
    false
}
