//! The C interface: handles, and an error for whatever goes wrong.
//!
//! [`call`] stands around every entry: no panic leaves it, no null is followed.  The layout: `make` vocabulary, grammar
//! and automaton; `matcher` texts as they grow.  `include/tokenform.h` is made from these files by cbindgen.
#![allow(unsafe_code)] // an interface for C takes and gives pointers; each use says what its caller promises
#![allow(non_camel_case_types)] // they are the names of the header

mod call;
mod make;
mod matcher;
