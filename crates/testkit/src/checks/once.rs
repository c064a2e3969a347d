//! Every case once, forward and backward, under a tool that watches kernels: compute-sanitizer.
//! Values are compared elsewhere; here a call may go wrong only by a byte that it should not touch.

use plimsoll_core::{Device, Result};
use plimsoll_tensor::device;

use super::devices::sorting;
use super::graph::Graph;
use super::{Tally, is_without_kernel};
use crate::cases::{self, Instance};
use crate::failing::assert_balanced;

/// One of so many equal parts of the list of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which, from 0.
    pub at: usize,
    /// Of how many.
    pub of: usize,
}

impl Part {
    /// Reads `3/16`.
    ///
    /// ```
    /// use plimsoll_testkit::checks::once::Part;
    /// assert_eq!(Part::parse("3/16"), Some(Part { at: 3, of: 16 }));
    /// assert_eq!(Part::parse("16/16"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Part> {
        let (at, of) = text.split_once('/')?;
        let part = Part { at: at.parse().ok()?, of: of.parse().ok()? };
        (part.at < part.of).then_some(part)
    }
}

fn run(instance: &Instance<'_>, device: Device) -> Result<()> {
    Graph::record(instance, device)?.gradients()?;
    Ok(())
}

/// Runs a part of the cases on `device`, which must be the test's own: of all, or of those of the
/// named `operations`.
pub fn every_kernel_runs(device: Device, part: Part, operations: &[String]) -> Tally {
    let mut tally = Tally::default();
    for name in operations {
        assert!(cases::all().iter().any(|case| case.op == name), "no case is of `{name}`");
    }
    let is_wanted = |op: &str| operations.is_empty() || operations.iter().any(|name| name == op);
    let wanted = cases::all().into_iter().filter(|case| is_wanted(case.op));
    for case in wanted.skip(part.at).step_by(part.of) {
        for instance in case.instances().iter().filter(|instance| instance.taken) {
            let refusable = case.may_refuse || instance.writes_to_expanded();
            match run(instance, device).err() {
                Some(error) if is_without_kernel(&error) => tally.note_without_kernel(instance),
                error => {
                    tally.note(instance, error.filter(|_| !refusable).map(|e| e.to_string()));
                }
            }
        }
    }
    // No case is as long as this.
    if part.at == 0 && is_wanted("sort") {
        sorting::sorts_of_some_tiles_agree_with_the_cpu(device).expect("sorts run");
    }
    device::synchronize(device).expect("the device still works");
    assert_balanced(device);
    tally
}
