//! Tools that were read before, by the JSON texts of their definitions.
//!
//! Invariant: a definition has a number, equal texts have one, and no two texts ever the same: what is not known any more gets
//! another when it comes again.
//! Complexity: writing the texts of what is asked for, and one look for each.
//! Memory: texts, and what was made of them: those since the bound was last passed (twice of it while one list is read), and
//! those of the time before that, so that a list that just came is known when it comes again.
//! Rejected: hashes in place of texts (an attacker who finds a collision is served another's); the order in which they were
//! asked for (keeping it takes as long as the look).

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokenform_core::hash::KeyedMap;
use tokenform_core::schema::plain::Definition;

use crate::host::unlocked;
use crate::json_text::Writer;

/// What came up between two times when the bound was passed.
#[derive(Default)]
struct Generation {
    numbers: KeyedMap<Box<str>, u64>,
    made: KeyedMap<u64, Py<PyAny>>,
    bytes: usize,
}

/// Tools that a look lets go of beside one for each that is new.
const LET_GO: usize = 8;

#[derive(Default)]
struct Table {
    young: Generation,
    old: Generation,
    last: u64,
    /// What was forgotten and is not yet let go of: that of a whole generation at once would hold up one call.
    gone: Vec<Py<PyAny>>,
}

impl Table {
    /// The number of a text.
    fn number(&mut self, text: &str, most: usize) -> u64 {
        if let Some(number) = self.young.numbers.get(text) {
            return *number;
        }
        let number = self.old.numbers.remove(text).unwrap_or_else(|| {
            self.last += 1;
            self.last
        });
        self.young.bytes += text.len();
        self.young.numbers.insert(text.into(), number);
        self.young.made.extend(self.old.made.remove(&number).map(|made| (number, made)));
        self.turn(2 * most); // of a list that is larger than all may be the beginning goes
        number
    }

    fn made(&self, number: u64) -> Option<&Py<PyAny>> {
        self.young.made.get(&number).or_else(|| self.old.made.get(&number))
    }

    /// Begins another generation, where the bound is passed.
    fn turn(&mut self, most: usize) {
        if self.young.bytes > most {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.gone.extend(old.made.into_values());
        }
    }

    /// Some of what was forgotten.
    fn some_gone(&mut self, most: usize) -> Vec<Py<PyAny>> {
        self.gone.split_off(self.gone.len().saturating_sub(most))
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
        lock(&self.table).turn(self.most);
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
            let number = table.number(text, self.most);
            let made = table.made(number).map(|made| made.clone_ref(py));
            drop(table);
            numbers.extend(number.to_le_bytes());
            if made.is_none() {
                fresh.push((found.len(), number, text.to_string()));
            }
            found.append(made)?;
        }
        *lock(&self.writer) = writer;
        let gone = lock(&self.table).some_gone(LET_GO + fresh.len());
        drop(gone); // without the lock: what goes may look
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
        let before = lock(&self.table).young.made.insert(number, made);
        drop(before);
    }

    /// Forgets all.
    fn clear(&self) {
        let mut table = lock(&self.table);
        let gone = (std::mem::take(&mut table.young), std::mem::take(&mut table.old));
        let before = std::mem::take(&mut table.gone);
        drop(table);
        drop((gone, before));
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
