//! Formulas compiled from the schema's text: that of each expression, and the node that each came from.
//!
//! Invariant: an expression is compiled once, when a text reaches a value that it is about; nothing is kept of what a limit
//! cut short. Memory: an entry for each expression that was reached.

use rustc_hash::FxHashMap;

use super::{ExprId, JsonNodeId, ValId};
use crate::hash::KeyedMap;
use crate::heap_size;

#[derive(Default)]
pub(crate) struct Compiled {
    pub of: FxHashMap<ExprId, ValId>,
    /// Expressions whose formulas are being made: one that is met again refers to itself.
    pub under_way: Vec<ExprId>,
    /// Formulas as far as they speak of names, and whether such a one is being made.
    pub names: FxHashMap<ExprId, ValId>,
    pub names_only: bool,
    /// The schema that a formula was made of first, and those that came to it later.
    pub origin: FxHashMap<ValId, JsonNodeId>,
    pub more_origins: Vec<(ValId, JsonNodeId)>,
    /// Values by their canonical text, so that equal values are equal numbers.
    pub constants: KeyedMap<Box<str>, JsonNodeId>,
    /// Schemas that are compiled at once, since they may be too much to decide.
    pub eager: Vec<JsonNodeId>,
}

heap_size::tables!(Compiled: of, names, origin, more_origins, constants);
