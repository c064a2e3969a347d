//! What Plimsoll's tests are made of, apart from the tests themselves: a naive [`oracle`] of every
//! operation, [`layouts`] that lay the same values out in every way, and the cases that bring them together.
//!
//! Nothing here is part of the runtime; only tests depend on it.

#![forbid(unsafe_code)]

pub mod layouts;
pub mod oracle;
