//! Counted work: how much one call may do, the same on every machine.
//!
//! A call of the engine runs inside [`run`]; whatever may go on for long calls [`spend`], a unit being about the work
//! of one step of an automaton.  Past the limit the call is unwound from where it stands, so that no loop has to ask
//! whether it should end, and nothing that was half done is looked at again: who catches a [`Cut`] drops what the
//! call was building (see `mask::epoch`).  Limits of another kind ([`refuse`]: item sets, key patterns, terms) end a
//! call the same way: "undecided" is never an answer that a memo could keep.
//! Memory is counted too, where the host's allocator is [`Counting`]: each block is work, so that what grows is never
//! free of charge, and a call that holds too much at once is cut like one that works too long.
//! Invariant: outside of [`run`] nothing is limited; an allocation never unwinds, the next [`spend`] does.
//! Complexity: a subtraction a call of [`spend`] or a block; the interrupt is asked once a slice.
//! Source: `Cancelled::throw` of salsa, which rust-analyzer cancels its queries by.
//! Rejected: clocks (results would depend on the machine, and on who else uses it); a flag that every loop looks at
//! (each memo has to know that what it keeps may be half done); errors as values (through two hundred functions).

use std::alloc::{GlobalAlloc, Layout};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Kind};
use crate::limits::Limits;

/// Units after which the interrupt is asked: well below a millisecond.
const SLICE: u64 = 1 << 13;
/// Bytes that a call may hold beside what was there before it, or as many as [`BYTES`] a unit of its work, where that
/// is more. A table that is just being doubled counts twice, so that this is the peak and not what is left of it.
const MEMORY: u64 = 256 << 20;
const BYTES: u64 = 7;
/// Bytes that cost as much as a step: 256 are taken and cleared in about 30 ns.
const BLOCK: usize = 256;

/// Why a call was cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It needed more than this many units.
    Work(u64),
    /// It held more than this many bytes.
    Memory(u64),
    /// The host wants it to end.
    Interrupted,
    /// A limit of the engine's own was passed, or what the call came upon can't be had.
    Refused(Box<Error>),
    /// A mistake in the engine.
    Panic(String),
}

/// What a call may still spend, and what its thread holds: in one place, for finding a thread's own numbers costs more
/// than changing them.
struct Meter {
    /// Units left of the slice; less than none where blocks have cost more.
    left: Cell<i64>,
    /// Bytes that this thread has allocated, less those that it has freed.
    held: Cell<i64>,
    /// Units beyond the slice.
    rest: Cell<u64>,
    limit: Cell<u64>,
    /// Bytes of this thread above which the call is cut.
    most_held: Cell<i64>,
    /// Whether there were more for a moment.
    exceeded: Cell<bool>,
}

thread_local! {
    /// Without a limit outside of a call.
    static METER: Meter = const { Meter {
        left: Cell::new(i64::MAX),
        held: Cell::new(0),
        rest: Cell::new(u64::MAX),
        limit: Cell::new(u64::MAX),
        most_held: Cell::new(i64::MAX),
        exceeded: Cell::new(false),
    } };
    /// Whether the call that this thread does a part of is to end.
    static ENDING: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
    /// What this thread cut short last.
    static LAST: RefCell<Option<Cut>> = const { RefCell::new(None) };
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
/// With a [`Cut`], which [`run`] catches, where a limit is passed or the host wants the call to end.
#[inline]
pub fn spend(units: u64) {
    METER.with(|meter| {
        meter.left.set(meter.left.get().saturating_sub_unsigned(units));
        if meter.left.get() < 0 {
            meter.next_slice();
        }
    });
}

impl Meter {
    #[cold]
    fn next_slice(&self) {
        let (rest, limit) = (self.rest.get(), self.limit.get());
        if limit == u64::MAX {
            return self.left.set(i64::MAX);
        }
        if std::thread::panicking() {
            return;
        }
        if interrupted() {
            end(Cut::Interrupted);
        }
        let missing = self.left.get().unsigned_abs();
        if rest < missing {
            end(Cut::Work(limit));
        }
        if self.exceeded.get() {
            end(Cut::Memory(most_bytes(limit)));
        }
        let slice = SLICE.max(missing).min(rest);
        self.rest.set(rest - slice);
        self.left.set((slice - missing) as i64);
    }

    fn fill(&self, limit: u64) {
        let slice = limit.min(SLICE);
        self.limit.set(limit);
        self.rest.set(limit - slice);
        self.left.set(if limit == u64::MAX { i64::MAX } else { slice as i64 });
    }
}

/// Ends the call under way.
fn end(cut: Cut) -> ! {
    LAST.set(Some(cut.clone()));
    resume_unwind(Box::new(cut))
}

/// What ended the last call of this thread that was cut short.  A program that does not unwind ends there: its host,
/// where that outlives it (WebAssembly), learns from this what the limit was.
pub fn last_cut() -> Option<Error> {
    LAST.with_borrow(|last| last.clone().map(Error::from))
}

/// Ends the call under way with an error: how a search reports that it came upon a limit.  No stand-in for an answer
/// goes back to those who asked, so that nothing can be remembered of what was not decided.
///
/// # Panics
/// With a [`Cut`], which [`run`] catches.
pub fn refuse(error: Error) -> ! {
    end(Cut::Refused(Box::new(error)))
}

/// Runs a part of a call; where it is refused, the message begins with the name of the part.
pub fn naming<T>(name: impl FnOnce() -> String, part: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|payload| match payload.downcast::<Cut>() {
        Ok(cut) => match *cut {
            Cut::Refused(error) => {
                let message = format!("{}: {}", name(), error.message);
                refuse(Error { message, ..*error })
            }
            cut => resume_unwind(Box::new(cut)),
        },
        Err(payload) => resume_unwind(payload),
    })
}

fn most_bytes(limit: u64) -> u64 {
    MEMORY.max(limit.saturating_mul(BYTES))
}

/// Runs a call that may spend `limit` units.
pub fn run<T>(limit: u64, call: impl FnOnce() -> T) -> Result<T, Cut> {
    METER.with(|meter| {
        let before = (meter.left.get(), meter.rest.get(), meter.limit.get());
        let most_held = meter.held.get().saturating_add_unsigned(most_bytes(limit));
        let most_held = meter.most_held.replace(most_held);
        let exceeded = meter.exceeded.replace(false);
        meter.fill(limit);
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let answer = call();
            spend(0); // blocks that were taken since the last step count like those before
            answer
        }));
        meter.left.set(before.0);
        meter.rest.set(before.1);
        meter.limit.set(before.2);
        meter.most_held.set(most_held);
        meter.exceeded.set(exceeded || meter.held.get() > most_held);
        answer.map_err(cut_of)
    })
}

/// Units that the call under way has spent.
pub fn spent() -> u64 {
    METER.with(|meter| {
        (meter.limit.get() - meter.rest.get()).saturating_add_signed(meter.left.get().saturating_neg())
    })
}

/// Units that the call under way may spend at most; outside of one as many as one of the process may.
pub fn allowed() -> u64 {
    match METER.with(|meter| meter.limit.get()) {
        u64::MAX => Limits::default().work,
        limit => limit,
    }
}

/// Gives the call under way its whole allowance of work once more: its work so far belongs to other calls.
pub fn refill() {
    METER.with(|meter| meter.fill(meter.limit.get()));
}

/// An allocator whose blocks are counted as work and memory of the call under way.
pub struct Counting<A>(pub A);

impl<A> Counting<A> {
    /// A block was taken, and one of `gone` bytes is given back as soon as it was copied.
    fn took(bytes: usize, gone: usize) {
        METER.with(|Meter { left, held, most_held, exceeded, .. }| {
            left.set(left.get().saturating_sub_unsigned(1 + (bytes / BLOCK) as u64));
            let both = held.get() + bytes as i64;
            if both > most_held.get() {
                exceeded.set(true);
            }
            held.set(both - gone as i64);
        });
    }

    fn gave(bytes: usize) {
        METER.with(|meter| meter.held.set(meter.held.get() - bytes as i64));
    }
}

// what is counted are numbers of the thread's own, which need neither memory nor a destructor
#[allow(unsafe_code)]
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::took(layout.size(), 0);
        self.0.alloc(layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::took(layout.size(), 0);
        self.0.alloc_zeroed(layout)
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::took(size, layout.size());
        self.0.realloc(block, layout, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::gave(layout.size());
        self.0.dealloc(block, layout);
    }
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
            Cut::Memory(most) => Error::limit(format!(
                "the call needs more than {} MB of memory (256, or {BYTES} bytes a step of Limits.work); simplify the \
                 constraint or raise the limit",
                most >> 20
            )),
            Cut::Interrupted => Error::new(Kind::Interrupted, "the call was interrupted"),
            Cut::Refused(error) => *error,
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

    #[global_allocator]
    static ALLOCATOR: Counting<std::alloc::System> = Counting(std::alloc::System);

    #[test]
    fn blocks_are_work() {
        let many = || {
            (0..1000u64)
                .map(|i| {
                    spend(1);
                    Box::new(i)
                })
                .collect::<Vec<_>>()
                .len()
        };
        assert_eq!(run(10_000, many), Ok(1000));
        assert_eq!(run(1500, many), Err(Cut::Work(1500)));
        let large = || {
            let block = vec![1u8; 1 << 20];
            spend(1);
            block.len()
        };
        assert_eq!(run(1000, large), Err(Cut::Work(1000)));
        assert_eq!(run(100_000, large), Ok(1 << 20));
    }

    #[test]
    fn what_is_held_at_once_is_bounded() {
        let block = |_| {
            let block = Vec::<u8>::with_capacity(16 << 20);
            spend(1);
            block
        };
        let kept = || (0..20).map(block).collect::<Vec<_>>().len();
        assert_eq!(run(30_000_000, kept), Err(Cut::Memory(256 << 20)));
        assert_eq!(run(50_000_000, kept), Ok(20));
        assert_eq!(run(30_000_000, || (0..200).map(block).map(|b| b.len()).sum::<usize>()), Ok(0));
        // the old block beside the new one
        let doubled = |bytes: usize| {
            let mut block = Vec::<u8>::with_capacity(bytes);
            block.push(1);
            block.reserve_exact(2 * bytes);
            spend(1);
            block.len()
        };
        assert_eq!(run(30_000_000, || doubled(100 << 20)), Err(Cut::Memory(256 << 20)));
        assert_eq!(run(30_000_000, || doubled(80 << 20)), Ok(1));
    }

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
    fn a_refusal_ends_the_call_and_names_the_part() {
        let refused = |named: bool| {
            run(10, || match named {
                true => naming(|| "the terminal A".into(), || refuse(Error::limit("too many states"))),
                false => refuse(Error::limit("too many states")),
            })
        };
        let message = |answer: Result<(), Cut>| Error::from(answer.unwrap_err()).message;
        assert_eq!(message(refused(false)), "too many states");
        assert_eq!(message(refused(true)), "the terminal A: too many states");
        assert_eq!(last_cut().map(|error| error.message).as_deref(), Some("the terminal A: too many states"));
        // other ends pass a name by
        assert_eq!(run(10, || naming(|| "A".into(), || spend(11))), Err(Cut::Work(10)));
        assert_eq!(run(10, || naming(|| "A".into(), || 1)), Ok(1));
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
