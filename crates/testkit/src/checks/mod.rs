//! The checks themselves, as functions of a device: tests call them on the devices of this machine,
//! and the GPU bundle calls the same functions on a machine that has a GPU and no Rust.
//!
//! `oracle` compares values, `gradients` derivatives, `dry` bytes, `exhaustion` what happens when
//! memory runs out, `once` what a sanitizer sees, all over the one list of cases; `devices` holds
//! programs of more than one operation, and what only a device can do; `interrupted` trains while
//! memory runs out.

pub mod devices;
pub mod dry;
pub mod exhaustion;
pub mod gradients;
mod graph;
pub mod interrupted;
pub mod once;
pub mod oracle;

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_core::Error;

use crate::cases::Instance;
use crate::failures::Failures;

/// What a check over the list of cases found.
#[derive(Debug, Default)]
pub struct Tally {
    /// What went wrong.
    pub failures: Failures,
    /// Instances that a device refused because it has no kernel for them, by operation.
    pub without_kernel: BTreeMap<&'static str, usize>,
    /// Instances whose result was compared.
    pub compared: usize,
}

impl Tally {
    /// Notes what came of an instance: compared, and right or wrong.
    pub fn note(&mut self, instance: &Instance<'_>, wrong: Option<String>) {
        self.compared += 1;
        self.failures.note(instance, wrong);
    }

    /// Notes an instance that there is no kernel for.
    pub fn note_without_kernel(&mut self, instance: &Instance<'_>) {
        *self.without_kernel.entry(instance.case.op).or_default() += 1;
    }

    /// Panics if anything failed, or if fewer than `at_least` instances were compared.
    pub fn assert_right(&self, at_least: usize) {
        self.failures.assert_none(0);
        assert!(self.compared >= at_least, "only {} instances were compared", self.compared);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused: usize = self.without_kernel.values().sum();
        write!(f, "{} instances compared, {refused} without a kernel", self.compared)?;
        if refused > 0 {
            let each = |(op, count): (&&str, &usize)| format!("{op} {count}");
            let operations: Vec<String> = self.without_kernel.iter().map(each).collect();
            write!(f, ": {}", operations.join(", "))?;
        }
        Ok(())
    }
}

/// Whether a device says that it has no kernel for something.
pub fn is_without_kernel(error: &Error) -> bool {
    let words = error.to_string();
    let says =
        ["no CUDA kernel yet", "runs on the CPU only"].iter().any(|said| words.contains(said));
    error.is_unsupported() && says
}
