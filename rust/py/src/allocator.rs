//! mimalloc, asked as C asks it: every block is aligned to what usual types want, and saying so costs a second look.
//!
//! Rejected: the crate `mimalloc`, which names the alignment of each block: a tenth of the instructions of taking one.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as mi;

/// mimalloc's number of the option, in every version of its interface (`mi_option_purge_delay`).
const PURGE_DELAY: mi::mi_option_t = 15;
/// Milliseconds after which pages that nothing is in go back to the system.  mimalloc waits a second, in which a busy
/// automaton fills and drops its budget several times, each time on other pages: in the soak of `prices` the process
/// held up to 28 MiB more for minutes (`MIMALLOC_PURGE_DELAY=1000 python
/// benchmarks/soak.py --kind prices`).  A tenth of that wait costs 1 to 3 % of the processor's time, a hundredth 10 %.
const WAIT: std::ffi::c_long = 100;

/// What is dropped goes back to the system soon.  `MIMALLOC_PURGE_DELAY` in the environment is obeyed before this.
pub fn give_back_soon() {
    // a number is stored in a table of mimalloc's
    #[allow(unsafe_code)]
    unsafe {
        mi::mi_option_set_default(PURGE_DELAY, WAIT)
    }
}

/// What the calling thread has dropped goes back to the system now: in the time that it takes to unmap it.
pub fn give_back_now() {
    // mimalloc looks at its own pages
    #[allow(unsafe_code)]
    unsafe {
        mi::mi_collect(true)
    }
}

/// Alignment that blocks of at least so many bytes have.
const USUAL: usize = 16;

pub struct Mimalloc;

fn is_usual(layout: Layout, size: usize) -> bool {
    layout.align() <= USUAL && layout.align() <= size
}

// each function hands its arguments on to the one of mimalloc that promises the same
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Mimalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_usual(layout, layout.size()) {
            true => mi::mi_malloc(layout.size()).cast(),
            false => mi::mi_malloc_aligned(layout.size(), layout.align()).cast(),
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_usual(layout, layout.size()) {
            true => mi::mi_zalloc(layout.size()).cast(),
            false => mi::mi_zalloc_aligned(layout.size(), layout.align()).cast(),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        mi::mi_free(block.cast::<c_void>());
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_usual(layout, size) {
            true => mi::mi_realloc(block.cast::<c_void>(), size).cast(),
            false => mi::mi_realloc_aligned(block.cast::<c_void>(), size, layout.align()).cast(),
        }
    }
}
