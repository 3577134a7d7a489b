//! How many bytes tables hold: what the limits on memory count.
//!
//! Counted from capacities and sizes, so the same on every machine of one word size; the allocator's own bytes per block are
//! taken as [`BLOCK`].
//! The bounds are those of `mask::epoch` (an automaton) and `mask::reclaim` (the process).
//! Complexity: constant per table: [`Interner`] counts boxed contents as they come.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;
use std::ops::Deref;

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

/// Bytes that a block of its own costs beside its contents.
pub const BLOCK: usize = 16;

/// An index beside each entry, with its hash.
const INDEX: usize = 16;

pub fn set<T, S>(set: &IndexSet<T, S>) -> usize {
    set.capacity() * (size_of::<T>() + INDEX)
}

pub fn index_map<K, V, S>(map: &IndexMap<K, V, S>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + INDEX)
}

pub fn map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + 1) / 7 * 8
}

pub fn list<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// A boxed slice's own bytes.
pub fn slice<T>(slice: &[T]) -> usize {
    BLOCK + std::mem::size_of_val(slice)
}

/// What a thing owns in blocks of its own, beside its size.
pub trait Owned {
    fn owned(&self) -> usize;
}

impl<T> Owned for Box<[T]> {
    fn owned(&self) -> usize {
        slice(self)
    }
}

impl Owned for Box<str> {
    fn owned(&self) -> usize {
        slice(self.as_bytes())
    }
}

/// What a table holds under a key; found and put there where it holds nothing.  What unwinds or returns on the way
/// leaves nothing behind.  A key that is borrowed is followed by one to keep.
macro_rules! memo {
    ($table:expr, $key:expr, $found:expr) => {{
        let key = $key;
        memo!($table, &key, key, $found)
    }};
    ($table:expr, $key:expr, $owned:expr, $found:expr) => {
        match $table.get($key) {
            Some(known) => Clone::clone(known),
            None => {
                let found = $found;
                $table.insert($owned, Clone::clone(&found));
                found
            }
        }
    };
}

/// What things of a type own: `heap_size::owned!(Words, this => heap_size::slice(&this.list))`.
macro_rules! owned {
    ($thing:ty, $this:ident => $bytes:expr) => {
        impl $crate::heap_size::Owned for $thing {
            fn owned(&self) -> usize {
                let $this = self;
                $bytes
            }
        }
    };
}
pub(crate) use owned;

/// Things that own nothing, or what another counts.
macro_rules! plain {
    ($($thing:ty),* $(,)?) => {
        $(impl $crate::heap_size::Owned for $thing {
            fn owned(&self) -> usize {
                0
            }
        })*
    };
}
pub(crate) use plain;

/// Things numbered in the order in which they came: equal things have one number.  What they hold is counted as they
/// come, for none changes or goes.
#[derive(Clone)]
pub struct Interner<T, S = FxBuildHasher> {
    things: IndexSet<T, S>,
    owned: usize,
}

impl<T, S: Default> Default for Interner<T, S> {
    fn default() -> Self {
        Interner { things: IndexSet::default(), owned: 0 }
    }
}

impl<T: Eq + Hash + Owned, S: BuildHasher> Interner<T, S> {
    /// The number of a thing, and whether it is new.
    #[inline]
    pub fn insert_full(&mut self, thing: T) -> (usize, bool) {
        let (place, new) = self.things.insert_full(thing);
        if new {
            self.owned += self.things[place].owned();
        }
        (place, new)
    }

    /// The number of a thing.
    #[inline]
    pub fn intern(&mut self, thing: T) -> u32 {
        self.insert_full(thing).0 as u32
    }
}

impl<T, S> Deref for Interner<T, S> {
    type Target = IndexSet<T, S>;

    #[inline]
    fn deref(&self) -> &IndexSet<T, S> {
        &self.things
    }
}

impl<T: Eq + Hash + Owned, S: BuildHasher + Default> FromIterator<T> for Interner<T, S> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut this = Interner::default();
        for thing in things {
            this.intern(thing);
        }
        this
    }
}

/// A table that says how many bytes it holds.
pub trait Table {
    fn bytes(&self) -> usize;
}

impl<T, S> Table for Interner<T, S> {
    fn bytes(&self) -> usize {
        set(&self.things) + self.owned
    }
}

impl<K, V, S> Table for HashMap<K, V, S> {
    fn bytes(&self) -> usize {
        map(self)
    }
}

impl<K, V, S> Table for IndexMap<K, V, S> {
    fn bytes(&self) -> usize {
        index_map(self)
    }
}

impl<T> Table for Vec<T> {
    fn bytes(&self) -> usize {
        list(self)
    }
}

/// The bytes of some tables of a struct: `heap_size::bytes!(self: names, values)`.
macro_rules! bytes {
    ($this:ident: $($table:ident),* $(,)?) => {
        0usize $(+ $crate::heap_size::Table::bytes(&$this.$table))*
    };
}
pub(crate) use bytes;

/// A struct that holds as many bytes as some of its tables, and more: `heap_size::tables!(Words: list; this => this.boxed)`.
macro_rules! tables {
    ($thing:ty: $($table:ident),* $(; $this:ident => $more:expr)?) => {
        impl $crate::heap_size::Table for $thing {
            fn bytes(&self) -> usize {
                let own = $crate::heap_size::bytes!(self: $($table),*);
                $(let own = own + {
                    let $this = self;
                    $more
                };)?
                own
            }
        }
    };
}
pub(crate) use tables;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_are_one_and_counted_once() {
        let mut texts: Interner<Box<str>> = ["", "a", "bc"].into_iter().map(Into::into).collect();
        let before = Table::bytes(&texts);
        assert_eq!((texts.intern("a".into()), texts.intern("bc".into())), (1, 2));
        assert_eq!(Table::bytes(&texts), before);
        assert_eq!(texts.insert_full("def".into()), (3, true));
        let owned: usize = texts.iter().map(Owned::owned).sum();
        assert_eq!(Table::bytes(&texts), set(&texts) + owned);
        struct Held {
            texts: Interner<Box<str>>,
            numbers: Vec<u32>,
        }
        let held = Held { texts, numbers: Vec::with_capacity(4) };
        assert_eq!(bytes!(held: texts, numbers), Table::bytes(&held.texts) + 16);
    }
}
