//! Counted work: how much one call may do, the same on every machine.
//!
//! A call of the engine runs inside [`run`]; whatever may go on for long calls [`spend`], a unit being about the work
//! of one step of an automaton.  Past the limit the call is unwound from where it stands, so that no loop has to ask
//! whether it should end, and nothing that was half done is looked at again: who catches a [`Cut`] drops what the
//! call was building (see `mask::generation`).
//! Invariant: outside of [`run`] nothing is limited.
//! Complexity: a subtraction a call of [`spend`]; the interrupt is asked once a slice.
//! Source: `Cancelled::throw` of salsa, which rust-analyzer cancels its queries by.
//! Rejected: clocks (results would depend on the machine, and on who else uses it); a flag that every loop looks at
//! (each memo has to know that what it keeps may be half done); errors as values (through two hundred functions).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind};

/// Units after which the interrupt is asked: well below a millisecond.
const SLICE: u64 = 1 << 13;

/// Why a call was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It needed more than this many units.
    Work(u64),
    /// The host wants it to end.
    Interrupted,
    /// A mistake in the engine.
    Panic(String),
}

#[derive(Clone, Copy)]
struct Meter {
    /// Units beyond the slice.
    rest: u64,
    limit: u64,
}

/// Without a limit.
const FREE: Meter = Meter { rest: u64::MAX, limit: u64::MAX };

thread_local! {
    /// Units left of the slice.
    static SLICE_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static METER: Cell<Meter> = const { Cell::new(FREE) };
    /// Whether the call that this thread does a part of is to end.
    static ENDING: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();

/// The host's question whether the call under way is to end; asked every now and then by the thread that works.
pub fn set_interrupt(wanted: fn() -> bool) {
    let _ = INTERRUPT.set(wanted);
}

/// Whether the host wants the call under way to end.
pub fn interrupted() -> bool {
    let flag = ENDING.with_borrow(Clone::clone);
    if flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        return true;
    }
    let wanted = INTERRUPT.get().is_some_and(|wanted| wanted());
    if let (true, Some(flag)) = (wanted, flag) {
        flag.store(true, Ordering::Relaxed);
    }
    wanted
}

/// Runs a part of a call that other threads do other parts of: an interrupt that one of them meets ends all.
pub fn together<T>(ending: &Arc<AtomicBool>, part: impl FnOnce() -> T) -> T {
    let before = ENDING.replace(Some(ending.clone()));
    let answer = part();
    ENDING.set(before);
    answer
}

/// Counts units of work.
///
/// # Panics
/// With a [`Cut`], which [`run`] catches, where the limit is passed or the host wants the call to end.
#[inline]
pub fn spend(units: u64) {
    SLICE_LEFT.with(|left| match left.get().checked_sub(units) {
        Some(less) => left.set(less),
        None => next_slice(units),
    });
}

#[cold]
fn next_slice(units: u64) {
    let meter = METER.get();
    if meter.limit == u64::MAX {
        return SLICE_LEFT.set(u64::MAX);
    }
    if std::thread::panicking() {
        return;
    }
    if interrupted() {
        resume_unwind(Box::new(Cut::Interrupted));
    }
    let missing = units - SLICE_LEFT.get();
    if meter.rest < missing {
        resume_unwind(Box::new(Cut::Work(meter.limit)));
    }
    let slice = SLICE.max(missing).min(meter.rest);
    METER.set(Meter { rest: meter.rest - slice, ..meter });
    SLICE_LEFT.set(slice - missing);
}

/// Runs a call that may spend `limit` units.
pub fn run<T>(limit: u64, call: impl FnOnce() -> T) -> Result<T, Cut> {
    let before = (METER.get(), SLICE_LEFT.get());
    refill_to(limit);
    let answer = catch_unwind(AssertUnwindSafe(call));
    METER.set(before.0);
    SLICE_LEFT.set(before.1);
    answer.map_err(cut_of)
}

/// Units that the call under way has spent.
pub fn spent() -> u64 {
    let meter = METER.get();
    meter.limit - meter.rest - SLICE_LEFT.get().min(meter.limit - meter.rest)
}

/// The call under way gets its whole allowance once more: what it did so far was done on behalf of others.
pub fn refill() {
    refill_to(METER.get().limit);
}

fn refill_to(limit: u64) {
    let slice = limit.min(SLICE);
    METER.set(Meter { rest: limit - slice, limit });
    SLICE_LEFT.set(if limit == u64::MAX { u64::MAX } else { slice });
}

fn cut_of(payload: Box<dyn Any + Send>) -> Cut {
    match payload.downcast::<Cut>() {
        Ok(cut) => *cut,
        Err(payload) => {
            Cut::Panic(match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
                (Some(text), _) => text.to_string(),
                (_, Some(text)) => text.clone(),
                _ => "no message".into(),
            })
        }
    }
}

impl From<Cut> for Error {
    fn from(cut: Cut) -> Error {
        match cut {
            Cut::Work(limit) => Error::limit(format!(
                "the call needs more than {limit} steps of work (Limits.work); simplify the constraint or raise the limit"
            )),
            Cut::Interrupted => Error::new(Kind::Interrupted, "the call was interrupted"),
            Cut::Panic(message) => Error::new(
                Kind::EngineError,
                format!("the engine made a mistake ({message}); please report it with the constraint"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_cut() {
        assert_eq!(run(100_000, || (0..99_000).for_each(|_| spend(1))), Ok(()));
        assert_eq!(run(100_000, || (0..101_000).for_each(|_| spend(1))), Err(Cut::Work(100_000)));
        assert_eq!(run(10, || spend(11)), Err(Cut::Work(10)));
        // outside of a call nothing is limited
        (0..1_000_000).for_each(|_| spend(u64::MAX / 4));
    }

    #[test]
    fn a_call_within_another_has_an_allowance_of_its_own() {
        let answer = run(50_000, || {
            spend(40_000);
            assert_eq!(run(20_000, || spend(30_000)), Err(Cut::Work(20_000)));
            spend(9_000);
            let spent = spent();
            refill();
            spend(40_000);
            spent
        });
        assert_eq!(answer, Ok(49_000));
    }

    #[test]
    fn panics_become_errors() {
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let answer = run(10, || panic!("nobody expects this"));
        std::panic::set_hook(quiet);
        assert_eq!(answer, Err::<(), _>(Cut::Panic("nobody expects this".into())));
    }
}
