//! The boundary to Python, and nothing else: convert, release the GIL, map errors.

mod allocator;
mod arguments;
mod automaton;
mod batch;
mod branches;
mod canvas;
mod errors;
mod grammar;
mod host;
mod json_text;
mod kept;
mod limits;
mod listed;
mod matcher;
mod seen;
mod state;
mod vocabulary;

use pyo3::prelude::*;
use tokenform_core::work::Counting;

/// Small terms, contexts and masks come and go by the thousands a second: the system's allocator took a tenth of
/// the time of new masks. What a call allocates is counted: see `work`.
#[global_allocator]
static ALLOCATOR: Counting<allocator::Mimalloc> = Counting(allocator::Mimalloc);

/// No call relies on the interpreter's lock: free-threaded builds need none (they have no stable interface, so `abi3` is
/// ignored there).
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::give_back_soon();
    m.add_class::<vocabulary::Vocabulary>()?;
    m.add_class::<grammar::Grammar>()?;
    m.add_class::<automaton::TokenAutomaton>()?;
    m.add_class::<state::State>()?;
    m.add_class::<matcher::Matcher>()?;
    m.add_class::<canvas::Canvas>()?;
    m.add_class::<limits::Limits>()?;
    m.add_function(wrap_pyfunction!(limits::set_limits, m)?)?;
    m.add_function(wrap_pyfunction!(limits::limits_again, m)?)?;
    m.add_function(wrap_pyfunction!(limits::memory_held, m)?)?;
    m.add_function(wrap_pyfunction!(limits::clear_cache, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::json_schema, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::json_options, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::official_references, m)?)?;
    m.add_function(wrap_pyfunction!(json_text::json_text, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::regex, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::choice, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::context_free, m)?)?;
    m.add_class::<kept::KeptTools>()?;
    m.add_class::<branches::Rest>()?;
    m.add_class::<branches::OfTool>()?;
    m.add_class::<branches::Branches>()?;
    m.add_class::<listed::ListedTools>()?;
    m.add_function(wrap_pyfunction!(grammar::composite, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::gbnf_grammar, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::read_gbnf, m)?)?;
    m.add_function(wrap_pyfunction!(grammar::endless_rule, m)?)?;
    m.add_function(wrap_pyfunction!(automaton::store_figures, m)?)?;
    m.add_function(wrap_pyfunction!(batch::fill_masks, m)?)?;
    m.add_function(wrap_pyfunction!(batch::advance, m)?)?;
    m.add_function(wrap_pyfunction!(matcher::accept_tokens, m)?)?;
    m.add_function(wrap_pyfunction!(matcher::fill_draft_masks, m)?)?;
    host::install(m)?;
    m.add("ERROR_KINDS", errors::names())?;
    Ok(())
}
