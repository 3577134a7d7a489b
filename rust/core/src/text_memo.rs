//! A process-wide memo of texts that were read, so that they are not read again.
//!
//! Invariant: no thread waits for it: after a fork nobody might release the lock.
//! Memory: bounded in bytes; past the bound all is forgotten.

use std::sync::{LazyLock, Mutex};

/// A table of the process; `T` holds what is remembered.
pub(crate) struct TextMemo<T> {
    known: LazyLock<Mutex<(T, usize)>>,
    most: usize,
}

impl<T: Default> TextMemo<T> {
    pub const fn new(most: usize) -> Self {
        TextMemo { known: LazyLock::new(Mutex::default), most }
    }

    /// What is known; `None` also where another thread is looking.
    pub fn find<R>(&self, look: impl FnOnce(&T) -> Option<R>) -> Option<R> {
        look(&self.known.try_lock().ok()?.0)
    }

    /// Adds something of so many bytes.
    pub fn add(&self, bytes: usize, add: impl FnOnce(&mut T)) {
        let Some(mut known) = self.known.try_lock().ok().filter(|_| bytes <= self.most) else { return };
        if known.1 + bytes > self.most {
            *known = Default::default();
        }
        known.1 += bytes;
        add(&mut known.0);
    }
}
