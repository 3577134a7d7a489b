//! The interpreter as the engine's host: when it may be waited for, when it interrupts, and its end.
//!
//! Whatever may build runs inside [`unlocked`], so that no thread waits for an automaton while it holds the
//! interpreter.  Long calls ask now and then whether a signal has come.  At the interpreter's exit threads that are
//! inside the engine never take the interpreter again: it would end them by unwinding through Rust, which aborts the
//! process; they are parked instead, and the process ends without them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use numpy::PyArray1;
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokenform_core::{process, work};

/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Time that the interpreter's exit waits for threads inside the engine; they look for it within milliseconds.
const FAREWELL: Duration = Duration::from_secs(2);

static CLOSING: AtomicBool = AtomicBool::new(false);
static UNLOCKED: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// The thread that signals go to, where that is known, and the one that ends the interpreter.
static MAIN: OnceLock<ThreadId> = OnceLock::new();
static CLOSER: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

fn is_closing() -> bool {
    CLOSING.load(Ordering::SeqCst) && CLOSER.get() != Some(&thread::current().id())
}

/// Runs a call without the interpreter.
pub fn unlocked<T: Ungil + Send>(py: Python<'_>, call: impl FnOnce() -> T + Ungil + Send) -> T {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let answer = py.allow_threads(|| {
        let answer = call();
        if is_closing() {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
            loop {
                thread::park();
            }
        }
        answer
    });
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    answer
}

/// Runs a call without the interpreter, where it takes longer than getting it back may.
pub fn unlocked_if<T: Ungil + Send>(
    long: bool,
    py: Python<'_>,
    call: impl FnOnce() -> T + Ungil + Send,
) -> T {
    if long {
        unlocked(py, call)
    } else {
        call()
    }
}

/// Runs a call that runs Python code: the interpreter does not end in the middle of it.
pub fn in_python<T>(py: Python<'_>, call: impl FnOnce() -> T) -> T {
    if is_closing() {
        unlocked(py, || ());
    }
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let answer = call();
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    answer
}

/// Whether the call under way is to end: a signal's handler has raised, or the interpreter is ending.
fn interrupted() -> bool {
    if is_closing() {
        return true;
    }
    let now = Instant::now();
    let looked = LOOKED.get().is_some_and(|last| now - last < LOOK);
    if looked || MAIN.get().is_some_and(|main| *main != thread::current().id()) {
        return false;
    }
    LOOKED.set(Some(now));
    Python::with_gil(|py| match py.check_signals() {
        Ok(()) => false,
        Err(error) => {
            RAISED.set(Some(error));
            true
        }
    })
}

/// What the signal's handler has raised.
pub fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

/// Waits until no thread is inside the engine that would want the interpreter back.
#[pyfunction]
fn _close(py: Python<'_>) {
    let _ = CLOSER.set(thread::current().id());
    CLOSING.store(true, Ordering::SeqCst);
    py.allow_threads(|| {
        let end = Instant::now() + FAREWELL;
        while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

#[pyfunction]
fn _forked() {
    process::forked();
}

/// What a lock holds; it is whole wherever a thread may have ended.
pub fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether other threads of Python run beside the one that asks: an interpreter without a lock.
pub fn threads_run_beside() -> bool {
    UNLOCKED.load(Ordering::Relaxed)
}

/// Tells the engine about its host.
pub fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    if main.eq(threading.call_method0("get_ident")?)? {
        let _ = MAIN.set(thread::current().id());
    }
    // imports numpy here: later an import could stand between a thread and the interpreter's end
    PyArray1::<u32>::zeros(py, 0, false);
    let sys = py.import("sys")?;
    if sys.hasattr("_is_gil_enabled")? {
        UNLOCKED.store(!sys.call_method0("_is_gil_enabled")?.is_truthy()?, Ordering::Relaxed);
    }
    work::set_interrupt(interrupted);
    let close = wrap_pyfunction!(_close, module)?;
    let children = PyDict::new(py);
    children.set_item("after_in_child", wrap_pyfunction!(_forked, module)?)?;
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        os.call_method("register_at_fork", (), Some(&children))?;
    }
    py.import("atexit")?.call_method1("register", (close,))?;
    Ok(())
}
