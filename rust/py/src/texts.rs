//! Numbers for values that come again: equal JSON texts have one number, and no two texts ever the same.
//!
//! Invariant: a number is given once: a text that was forgotten gets another when it comes again.
//! Complexity: writing the text of what is asked for, and one look for each item.
//! Memory: the texts, within the bound; past it all are forgotten.
//! Rejected: hashes in place of texts (an attacker who finds a collision is served another's).

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokenform_core::hash::KeyedMap;

use crate::json_text::Writer;

#[derive(Default)]
struct Table {
    numbers: KeyedMap<Box<str>, u64>,
    last: u64,
    bytes: usize,
    writer: Writer,
}

#[pyclass(frozen, module = "tokenform._core")]
pub struct Texts {
    table: Mutex<Table>,
    most: usize,
}

#[pymethods]
impl Texts {
    /// `most`: bytes of the texts that are known.
    #[new]
    fn new(most: usize) -> Self {
        Texts { table: Mutex::default(), most }
    }

    /// The numbers of a list's items, eight bytes each, and the bytes of their texts; None: an item is no plain JSON.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyList>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, usize)>> {
        let mut out = Vec::with_capacity(8 * items.len());
        let mut written = 0;
        // taken out while the interpreter may let others in
        let mut writer = std::mem::take(&mut self.lock().writer);
        for item in items {
            let Some(text) = writer.write(&item)? else { return Ok(None) };
            written += text.len();
            let mut table = self.lock();
            let number = match table.numbers.get(text) {
                Some(number) => *number,
                None => {
                    if table.bytes + text.len() > self.most {
                        table.numbers.clear();
                        table.bytes = 0;
                    }
                    table.last += 1;
                    table.bytes += text.len() + 64;
                    let number = table.last;
                    table.numbers.insert(text.into(), number);
                    number
                }
            };
            out.extend(number.to_le_bytes());
        }
        self.lock().writer = writer;
        Ok(Some((PyBytes::new(py, &out), written)))
    }
}

impl Texts {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
