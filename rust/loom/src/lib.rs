//! The engine's lock (`rust/core/src/lock.rs`, the file itself) under every order in which threads may run: `make loom`.
//!
//! What is asserted: one thread at a time has the thing, what it wrote the next one sees, a thing is let go exactly once
//! after the lock is closed, and nobody sleeps for ever (loom's `wait_timeout` never times out, so a wake that is lost is
//! a deadlock here).

#[allow(dead_code, clippy::all)]
#[path = "../../core/src/lock.rs"]
mod lock;

pub mod sync {
    use loom::sync::atomic::fence;
    pub use loom::sync::atomic::Ordering;
    pub use loom::sync::{Condvar, Mutex};

    /// Loom takes `SeqCst` for `AcqRel` but in fences, so that a wake seemed to get lost: a fence stands behind each such
    /// write and before each such read, as compilers put it for processors without an order of their own.
    pub struct AtomicU32(loom::sync::atomic::AtomicU32);

    fn after<T>(order: Ordering, answer: T) -> T {
        if order == Ordering::SeqCst {
            fence(Ordering::SeqCst);
        }
        answer
    }

    impl AtomicU32 {
        pub fn new(number: u32) -> Self {
            AtomicU32(loom::sync::atomic::AtomicU32::new(number))
        }

        pub fn load(&self, order: Ordering) -> u32 {
            after(order, ());
            self.0.load(if order == Ordering::SeqCst { Ordering::Acquire } else { order })
        }

        pub fn swap(&self, to: u32, order: Ordering) -> u32 {
            after(order, self.0.swap(to, order))
        }

        pub fn fetch_add(&self, by: u32, order: Ordering) -> u32 {
            after(order, self.0.fetch_add(by, order))
        }

        pub fn fetch_sub(&self, by: u32, order: Ordering) -> u32 {
            after(order, self.0.fetch_sub(by, order))
        }

        pub fn compare_exchange(
            &self,
            from: u32,
            to: u32,
            order: Ordering,
            failed: Ordering,
        ) -> Result<u32, u32> {
            after(order, self.0.compare_exchange(from, to, order, failed))
        }
    }

    /// As crossbeam's `AtomicCell` of the engine, but that two threads in it at once are an error: the lock's status
    /// alone keeps them apart.
    pub struct Slot<T>(loom::cell::UnsafeCell<Option<Box<T>>>);

    // SAFETY: loom checks that no access meets another
    unsafe impl<T: Send> Sync for Slot<T> {}

    impl<T> Slot<T> {
        pub fn new(thing: Option<Box<T>>) -> Self {
            Slot(loom::cell::UnsafeCell::new(thing))
        }

        pub fn take(&self) -> Option<Box<T>> {
            // SAFETY: as above
            self.0.with_mut(|place| unsafe { (*place).take() })
        }

        pub fn store(&self, thing: Option<Box<T>>) {
            // SAFETY: as above
            self.0.with_mut(|place| unsafe { *place = thing })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loom::sync::atomic::{AtomicUsize, Ordering};
    use loom::sync::Arc;
    use loom::thread;

    use super::lock::{Lock, ParkingLot, Taken};

    struct Shared {
        lock: Lock<u32>,
        place: ParkingLot,
        freed: AtomicUsize,
    }

    impl Shared {
        fn new() -> Arc<Self> {
            Arc::new(Shared { lock: Lock::new(), place: ParkingLot::default(), freed: AtomicUsize::new(0) })
        }

        fn free(&self) {
            if let Some(thing) = self.lock.let_go() {
                drop(thing);
                self.freed.fetch_add(1, Ordering::Relaxed);
            }
        }

        fn wake(&self) {
            if self.lock.is_awaited() {
                self.place.wake();
            }
        }

        fn put(&self, thing: u32) {
            if self.lock.put(Box::new(thing)) {
                self.free();
            }
            self.wake();
        }

        fn close(&self) {
            if self.lock.close() {
                self.free();
            }
            self.wake();
        }

        /// One more, as a thread does it that asks an automaton; false where it was closed.
        fn add(&self) -> bool {
            loop {
                match self.lock.take() {
                    Taken::Thing(thing) => self.put(*thing + 1),
                    Taken::None => self.put(1),
                    Taken::Busy => {
                        self.lock.wait(&self.place, Duration::from_millis(2));
                        continue;
                    }
                    Taken::Closed => return false,
                }
                return true;
            }
        }
    }

    fn model(threads: usize, run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        // three threads in every order take hours; so many changes of thread find what two can't
        builder.preemption_bound = (threads > 2).then_some(2);
        builder.check(run);
    }

    #[test]
    fn each_of_two_has_it_and_sees_what_the_other_did() {
        model(2, || {
            let shared = Shared::new();
            let other = shared.clone();
            let thread = thread::spawn(move || assert!(other.add()));
            assert!(shared.add());
            thread.join().unwrap();
            assert!(matches!(shared.lock.take(), Taken::Thing(count) if *count == 2));
        });
    }

    #[test]
    fn each_of_three_has_it() {
        model(3, || {
            let shared = Shared::new();
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let other = shared.clone();
                    thread::spawn(move || assert!(other.add()))
                })
                .collect();
            assert!(shared.add());
            others.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(matches!(shared.lock.take(), Taken::Thing(count) if *count == 3));
        });
    }

    #[test]
    fn what_is_closed_is_let_go_once_whoever_has_it() {
        model(2, || {
            let shared = Shared::new();
            assert!(shared.add());
            let other = shared.clone();
            let thread = thread::spawn(move || {
                other.add();
            });
            shared.close();
            thread.join().unwrap();
            assert!(!shared.add(), "it is closed for ever");
            assert_eq!(shared.freed.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn an_idle_one_is_closed_beside_one_that_takes_it() {
        model(3, || {
            let shared = Shared::new();
            assert!(shared.add());
            let (taker, closer) = (shared.clone(), shared.clone());
            let taking = thread::spawn(move || taker.add());
            let closing = thread::spawn(move || closer.close());
            if shared.lock.close_idle() {
                shared.free();
                shared.wake();
            }
            taking.join().unwrap();
            closing.join().unwrap();
            assert_eq!(shared.freed.load(Ordering::Relaxed), 1);
        });
    }
}
