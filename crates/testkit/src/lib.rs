//! What Plimsoll's tests are made of, apart from the tests themselves: a naive [`oracle`] of every
//! operation, [`layouts`] that lay the same values out in every way, and the cases that bring them
//! together; and the [`workloads`] that benchmarks time and the [`examples`] that users read.
//!
//! Nothing here is part of the runtime; only tests and benchmarks depend on it.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod cases;
pub mod checks;
pub mod compare;
pub mod examples;
pub mod failing;
pub mod failures;
pub mod golden;
pub mod gradcheck;
pub mod layouts;
pub mod oracle;
pub mod subject;
pub mod workloads;
