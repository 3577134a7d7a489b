//! Tools that were read before, by the JSON texts of their definitions.
//!
//! Invariant: a definition has a number, and no two texts ever the same: what is not known any more gets another when it comes
//! again.  A definition is the one that was seen where each of its texts and numbers is ([`crate::seen`]).
//! Complexity: a look at what came last after the definition before; where that is another, writing the text and looking it up.
//! Memory: texts, what was seen of them and what was made of them: those since the bound was last passed (twice of it while one
//! list is read), and those of the time before that, so that a list that just came is known when it comes again.
//! Rejected: hashes in place of texts (an attacker who finds a collision is served another's); the order in which they were
//! asked for (keeping it takes as long as the look).

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokenform_core::hash::KeyedSet;

use crate::branches::OfTool;
use crate::host::lock;
use crate::json_text::Writer;
use crate::listed::{ListedTools, Slot};
use crate::seen::{is_same, Step};

/// Tools that a look lets go of beside one for each that is new.
const LET_GO: usize = 8;
/// What is seen of larger definitions is not kept.
const MOST_SEEN: usize = 1 << 14;

/// A definition.
pub struct Known {
    pub text: Box<str>,
    number: u64,
    seen: Box<[Step]>,
    /// The definition that came after it last.
    next: Mutex<Weak<Known>>,
    /// The generation that it was last asked for in.
    turn: AtomicU64,
    pub made: Mutex<Option<Made>>,
}

/// The tool that was made of a definition, and its branches.
pub struct Made {
    pub tool: Py<PyAny>,
    pub branches: Py<OfTool>,
}

struct ByText(Arc<Known>);

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ByText {}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

/// What came up between two times when the bound was passed.
#[derive(Default)]
struct Generation {
    known: KeyedSet<ByText>,
    bytes: usize,
}

#[derive(Default)]
struct Table {
    young: Generation,
    old: Generation,
    last: u64,
    turn: u64,
    /// What the list before began with.
    first: Weak<Known>,
    /// What was forgotten and is not yet let go of: that of a whole generation at once would hold up one call.
    gone: Vec<ByText>,
}

impl Table {
    /// What is known of a text; it is of this generation then.
    fn known(&mut self, text: &str, seen: &mut Vec<Step>, most: usize) -> Arc<Known> {
        if let Some(known) = self.young.known.get(text) {
            return known.0.clone();
        }
        let known = self.old.known.take(text).map(|known| known.0).unwrap_or_else(|| {
            self.last += 1;
            let seen: Box<[Step]> =
                if seen.len() > MOST_SEEN { Box::default() } else { seen.drain(..).collect() };
            Arc::new(Known {
                text: text.into(),
                number: self.last,
                seen,
                next: Mutex::default(),
                turn: AtomicU64::new(0),
                made: Mutex::default(),
            })
        });
        self.stays(&known, most);
        known
    }

    /// A definition that was known is of this generation.
    fn again(&mut self, known: &Arc<Known>, most: usize) {
        if known.turn.load(Ordering::Relaxed) != self.turn && !self.young.known.contains(&*known.text) {
            self.old.known.remove(&*known.text);
            self.stays(known, most);
        }
    }

    fn stays(&mut self, known: &Arc<Known>, most: usize) {
        self.young.bytes += known.text.len();
        self.young.known.insert(ByText(known.clone()));
        known.turn.store(self.turn, Ordering::Relaxed);
        self.end_turn(2 * most); // of a list that is larger than all may be the beginning goes
    }

    /// Begins another generation, where the bound is passed.
    fn end_turn(&mut self, most: usize) {
        if self.young.bytes > most {
            let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.gone.extend(old.known);
            self.turn += 1;
        }
    }

    /// Some of what was forgotten.
    fn some_gone(&mut self, most: usize) -> Vec<ByText> {
        self.gone.split_off(self.gone.len().saturating_sub(most))
    }
}

#[pyclass(frozen, module = "tokenform._core")]
pub struct KeptTools {
    table: Mutex<Table>,
    writer: Mutex<Writer>,
    most: usize,
}

impl KeptTools {
    /// The definition that came after another one last, where the item is that.
    fn guessed(&self, before: Option<&Arc<Known>>, item: &Bound<'_, PyAny>) -> Option<Arc<Known>> {
        let next = match before {
            Some(known) => lock(&known.next).upgrade(),
            None => lock(&self.table).first.upgrade(),
        };
        let known = next.filter(|next| is_same(item, &next.seen))?;
        lock(&self.table).again(&known, self.most);
        Some(known)
    }

    /// The definition with the text of the item, which comes after another one.
    fn written(
        &self,
        writer: &mut Writer,
        before: Option<&Arc<Known>>,
        item: &Bound<'_, PyAny>,
    ) -> Option<Arc<Known>> {
        // what can't be written is met again where it is read
        let Ok(Some((text, seen))) = writer.write(item) else { return None };
        let mut table = lock(&self.table);
        let known = table.known(text, seen, self.most);
        match before {
            Some(before) => *lock(&before.next) = Arc::downgrade(&known),
            None => table.first = Arc::downgrade(&known),
        }
        Some(known)
    }
}

#[pymethods]
impl KeptTools {
    /// `most`: bytes of the texts that are known.
    #[new]
    fn new(most: usize) -> Self {
        KeptTools { table: Mutex::default(), writer: Mutex::default(), most }
    }

    /// What is known of a list's items.
    fn look<'py>(&self, py: Python<'py>, items: &Bound<'py, PyList>) -> ListedTools {
        lock(&self.table).end_turn(self.most);
        let mut writer = std::mem::take(&mut *lock(&self.writer));
        let mut numbers = Vec::with_capacity(8 * items.len());
        let (mut slots, mut bytes, mut fresh) = (Vec::with_capacity(items.len()), 0, 0);
        let mut before: Option<Arc<Known>> = None;
        for item in items {
            let known = self
                .guessed(before.as_ref(), &item)
                .or_else(|| self.written(&mut writer, before.as_ref(), &item));
            let Some(known) = known else {
                slots.push(Slot::Own(None));
                continue;
            };
            bytes += known.text.len();
            numbers.extend(known.number.to_le_bytes());
            fresh += usize::from(lock(&known.made).is_none());
            before = Some(known.clone());
            slots.push(Slot::Known(known));
        }
        *lock(&self.writer) = writer;
        let gone = lock(&self.table).some_gone(LET_GO + fresh);
        drop(gone); // without the lock: what goes may look
        let all = numbers.len() == 8 * items.len();
        ListedTools::new(slots, all.then(|| PyBytes::new(py, &numbers).unbind()), bytes)
    }

    /// Forgets all.
    fn clear(&self) {
        let before = std::mem::take(&mut *lock(&self.table));
        drop(before);
    }
}
