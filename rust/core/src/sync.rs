//! What [`crate::lock`] is made of; `rust/loom` has the same names of loom.

use crossbeam_utils::atomic::AtomicCell;

pub use std::sync::atomic::{AtomicU32, Ordering};
pub use std::sync::{Condvar, Mutex};

/// A place that one thread at a time looks into.
pub type Slot<T> = AtomicCell<Option<Box<T>>>;
