//! A list of tools: what is known of each, and their branches in a way of calling them.
//!
//! Invariant: what is kept of a definition is of its whole text ([`crate::kept`]); of what is no plain JSON a list holds the
//! branches alone, for a tool may hold functions, and these the list.
//! Complexity: a look at each tool, for each question.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tokenform_core::compose::branches::{Branch, Branches as CoreBranches};
use tokenform_core::hash::KeyedMap;
use tokenform_core::schema::plain::Definition;

use crate::branches::{Branches, OfTool, Rest};
use crate::errors::raise;
use crate::host::{lock, unlocked, unlocked_if};
use crate::kept::{Known, Made};

/// What a definition says: its name, description, parameters, and these closed.
type Plain = (String, String, String, Option<String>);

/// Definitions that are read, and branches that are sorted, within a tenth of a millisecond.
const FEW: usize = 8;
const MANY: usize = 1024;

/// What a list has at a place.
pub enum Slot {
    Known(Arc<Known>),
    Own(Option<Py<OfTool>>),
}

impl Slot {
    /// The branches of its tool, where that is made.
    fn branches<T>(&self, look: impl FnOnce(&OfTool) -> T) -> Option<T> {
        match self {
            Slot::Known(known) => lock(&known.made).as_ref().map(|made| look(made.branches.get())),
            Slot::Own(own) => own.as_ref().map(|own| look(own.get())),
        }
    }
}

#[pyclass(frozen, module = "tokenform._core")]
pub struct ListedTools {
    slots: Mutex<Vec<Slot>>,
    /// The numbers of the definitions, eight bytes each; None: one is no plain JSON.
    #[pyo3(get)]
    key: Option<Py<PyBytes>>,
    /// Bytes of their texts.
    #[pyo3(get)]
    size: usize,
}

impl ListedTools {
    pub fn new(slots: Vec<Slot>, key: Option<Py<PyBytes>>, size: usize) -> Self {
        ListedTools { slots: Mutex::new(slots), key, size }
    }

    fn put(&self, at: usize, way: u64, branch: Arc<Branch>) {
        lock(&self.slots)[at].branches(|own| own.put(way, branch));
    }
}

#[pymethods]
impl ListedTools {
    /// Of tools that are made, by their branches.
    #[staticmethod]
    fn of(tools: Vec<Py<OfTool>>) -> Self {
        ListedTools::new(tools.into_iter().map(|own| Slot::Own(Some(own))).collect(), None, 0)
    }

    /// What was made at each place, None where there is nothing yet; the places of these.
    fn made<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Vec<usize>)> {
        let (all, mut fresh) = (PyList::empty(py), Vec::new());
        for (at, slot) in lock(&self.slots).iter().enumerate() {
            let known = if let Slot::Known(known) = slot { Some(known) } else { None };
            let made = known.and_then(|known| lock(&known.made).as_ref().map(|made| made.tool.clone_ref(py)));
            if made.is_none() {
                fresh.push(at);
            }
            all.append(made)?;
        }
        Ok((all, fresh))
    }

    /// What the definitions at places say, where they are plain.
    fn definitions(&self, py: Python<'_>, places: Vec<usize>) -> Vec<Option<Plain>> {
        let slots = lock(&self.slots);
        let known = places.iter().map(|&at| match &slots[at] {
            Slot::Known(known) => Some(known.clone()),
            Slot::Own(_) => None,
        });
        let known: Vec<Option<Arc<Known>>> = known.collect();
        drop(slots);
        let read = |known: &Option<Arc<Known>>| {
            let one = Definition::read(&known.as_ref()?.text)?;
            Some((one.name, one.description, one.parameters, one.closed))
        };
        unlocked_if(places.len() > FEW, py, || known.iter().map(read).collect())
    }

    /// The tool that was made for a place; own: this list's alone, whatever the definition says.
    #[pyo3(signature = (at, tool, branches, own = false))]
    fn keep(&self, at: usize, tool: Py<PyAny>, branches: Py<OfTool>, own: bool) {
        let mut slots = lock(&self.slots);
        match &slots[at] {
            Slot::Known(known) if !own => {
                // another list may have made it meanwhile
                lock(&known.made).get_or_insert(Made { tool, branches });
            }
            _ => slots[at] = Slot::Own(Some(branches)),
        }
    }

    /// Two places whose tools have the same name.
    fn twice(&self) -> Option<(usize, usize)> {
        let slots = lock(&self.slots);
        let mut places: KeyedMap<Box<str>, usize> = KeyedMap::default();
        places.reserve(slots.len());
        slots.iter().enumerate().find_map(|(at, slot)| {
            let name = slot.branches(|own| own.name.clone())?;
            places.insert(name, at).map(|before| (before, at))
        })
    }

    /// The names of the tools, with commas between them.
    fn names(&self) -> String {
        let mut names = String::new();
        for slot in lock(&self.slots).iter() {
            slot.branches(|own| {
                let comma = if names.is_empty() { "" } else { ", " };
                names.extend([comma, &own.name]);
            });
        }
        names
    }

    /// The places of tools that have no branch yet for a way of calling them.
    fn missing(&self, way: u64) -> Vec<usize> {
        let slots = lock(&self.slots);
        let has = |slot: &Slot| slot.branches(|own| own.has(way)).unwrap_or_default();
        (0..slots.len()).filter(|&at| !has(&slots[at])).collect()
    }

    /// The branches of all tools; None: one has none.
    fn branches(&self, py: Python<'_>, way: u64) -> Option<Branches> {
        let slots = lock(&self.slots);
        let all: Option<Vec<_>> =
            slots.iter().map(|slot| slot.branches(|own| own.get(way)).flatten()).collect();
        drop(slots);
        all.map(|all| Branches { core: unlocked_if(all.len() > MANY, py, || CoreBranches::new(all)) })
    }

    /// Reads branches that go on alike: (place, text, the schema in the slot as JSON text) each.
    fn read(
        &self,
        py: Python<'_>,
        way: u64,
        rest: &Bound<'_, Rest>,
        all: Vec<(usize, String, Option<String>)>,
    ) -> PyResult<()> {
        let rest = &rest.get().core;
        let places: Vec<usize> = all.iter().map(|one| one.0).collect();
        let texts = all.into_iter().map(|(_, head, schema)| (head, schema)).collect();
        let read = unlocked(py, || Branch::read(rest, texts)).map_err(raise)?;
        places.into_iter().zip(read).for_each(|(at, branch)| self.put(at, way, branch));
        Ok(())
    }

    /// Reads branches that go on each in its own way: (place, text, the rule of the table, a grammar as JSON text, with which
    /// what follows it begins) each.  Gives the special tokens of each, None for those after whose text nothing may follow.
    fn read_each(
        &self,
        py: Python<'_>,
        way: u64,
        table: &str,
        all: Vec<(usize, String, String)>,
    ) -> PyResult<Vec<Option<Vec<String>>>> {
        let places: Vec<usize> = all.iter().map(|one| one.0).collect();
        let texts = all.into_iter().map(|(_, head, rule)| (head, rule)).collect();
        let read = unlocked(py, || Branch::read_each(table, texts)).map_err(raise)?;
        let kept = places.into_iter().zip(read).map(|(at, branch)| {
            let specials =
                branch.as_ref().map(|branch| branch.specials().iter().map(|s| s.to_string()).collect());
            branch.into_iter().for_each(|branch| self.put(at, way, branch));
            specials
        });
        Ok(kept.collect())
    }
}
