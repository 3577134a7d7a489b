//! Tools that were read before, by the JSON texts of their definitions.
//!
//! Invariant: a definition has a number, equal texts have one, and no two texts ever the same: what is not known any more gets
//! another when it comes again.
//! Complexity: writing the texts of what is asked for, and one look for each.
//! Memory: texts, and what was made of them, within the bound; past it all are forgotten when something is asked for next, so
//! that a list is never forgotten while it is read.
//! Rejected: hashes in place of texts (an attacker who finds a collision is served another's); the order in which they were
//! asked for (keeping it takes as long as the look).

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokenform_core::hash::KeyedMap;
use tokenform_core::schema::plain::Definition;

use crate::host::unlocked;
use crate::json_text::Writer;

#[derive(Default)]
struct Table {
    places: KeyedMap<Box<str>, usize>,
    made: Vec<Option<Py<PyAny>>>,
    /// The number of the first place.
    first: u64,
    bytes: usize,
}

impl Table {
    /// The place of a text; one past twice the bound is found by nobody.
    fn place(&mut self, text: &str, most: usize) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        if self.bytes < 2 * most {
            self.bytes += text.len();
            self.places.insert(text.into(), self.made.len());
        }
        self.made.push(None);
        self.made.len() - 1
    }

    /// What there was.
    fn emptied(&mut self) -> Table {
        let first = self.first + self.made.len() as u64;
        std::mem::replace(self, Table { first, ..Table::default() })
    }
}

/// What a definition says: its name, description, parameters, and these closed.
type Plain = (String, String, String, Option<String>);

#[pyclass(frozen, module = "tokenform._core")]
pub struct KeptTools {
    table: Mutex<Table>,
    writer: Mutex<Writer>,
    most: usize,
}

#[pymethods]
impl KeptTools {
    /// `most`: bytes of the texts that are known.
    #[new]
    fn new(most: usize) -> Self {
        KeptTools { table: Mutex::default(), writer: Mutex::default(), most }
    }

    /// The numbers of a list's items, eight bytes each, the bytes of their texts, and of each what was made of it.  Of an item
    /// that is new its number, and what it says where it is a plain definition; of one that is no plain JSON None, and then
    /// there are no numbers.
    #[allow(clippy::type_complexity)]
    fn look<'py>(
        &self,
        py: Python<'py>,
        items: &Bound<'py, PyList>,
    ) -> PyResult<(Option<Bound<'py, PyBytes>>, usize, Bound<'py, PyList>)> {
        drop(self.past_bound()); // without the lock: what goes may look
        let mut writer = std::mem::take(&mut *lock(&self.writer));
        let mut numbers = Vec::with_capacity(8 * items.len());
        let (found, mut fresh, mut bytes) = (PyList::empty(py), Vec::new(), 0);
        for item in items {
            // what can't be written is met again where it is read
            let Ok(Some(text)) = writer.write(&item) else {
                found.append(py.None())?;
                continue;
            };
            bytes += text.len();
            let mut table = lock(&self.table);
            let place = table.place(text, self.most);
            let number = table.first + place as u64;
            let made = table.made[place].as_ref().map(|made| made.clone_ref(py));
            drop(table);
            numbers.extend(number.to_le_bytes());
            if made.is_none() {
                fresh.push((found.len(), number, text.to_string()));
            }
            found.append(made)?;
        }
        *lock(&self.writer) = writer;
        let read = |text: &String| -> Option<Plain> {
            Definition::read(text).map(|one| (one.name, one.description, one.parameters, one.closed))
        };
        if !fresh.is_empty() {
            let plain: Vec<_> = unlocked(py, || fresh.iter().map(|(_, _, text)| read(text)).collect());
            for ((at, number, _), plain) in fresh.into_iter().zip(plain) {
                found.set_item(at, (number, plain))?;
            }
        }
        let all = numbers.len() == 8 * items.len();
        Ok((all.then(|| PyBytes::new(py, &numbers)), bytes, found))
    }

    /// What was made of a definition.
    fn keep(&self, number: u64, made: Py<PyAny>) {
        let mut table = lock(&self.table);
        let place = number.checked_sub(table.first);
        let before = place.and_then(|at| table.made.get_mut(at as usize)).and_then(|slot| slot.replace(made));
        drop(table);
        drop(before);
    }

    /// Forgets all.
    fn clear(&self) {
        let gone = lock(&self.table).emptied();
        drop(gone);
    }
}

impl KeptTools {
    fn past_bound(&self) -> Option<Table> {
        let mut table = lock(&self.table);
        (table.bytes > self.most).then(|| table.emptied())
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
