//! How the work of a batch norm is divided: a unit is a part of a channel's slices (or of a tile's,
//! see `columns.rs`). What is added up over a channel is added up part by part and joined in order,
//! whoever computes the parts, so that results do not depend on the number of threads.

use std::ops::Range;

use plimsoll_core::{Error, Result};

use plimsoll_engine::CpuLaunch;
use plimsoll_engine::iterate::GRAIN;
use plimsoll_engine::parallel;

/// Units that a launch over much is cut into at least, so that many threads have work.
const UNITS: usize = 64;

/// How a launch over `jobs` channels is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    jobs: usize,
    /// Parts of each.
    parts: usize,
    threads: usize,
}

impl Split {
    /// For `jobs` channels of together `numel` elements.
    pub(super) fn new(jobs: usize, numel: usize) -> Split {
        let most = numel.checked_div(jobs).unwrap_or(0) / GRAIN;
        let parts = UNITS.checked_div(jobs).unwrap_or(0).min(most).max(1);
        Split { jobs, parts, threads: parallel::parts(numel, GRAIN).max(1) }
    }

    /// Whether a thread takes whole channels: it then finds in its caches what it has just added
    /// up. Not where threads would be left without a channel.
    fn is_whole(&self) -> bool {
        self.parts == 1
            || self.threads == 1
            || self.jobs >= 4 * self.threads
            || (self.jobs >= self.threads && self.jobs.is_multiple_of(self.threads))
    }

    /// Bytes of workspace for sums of type `A`, where something is measured.
    pub(super) fn workspace_bytes<A>(&self) -> usize {
        if self.is_whole() { 0 } else { self.jobs * self.parts * size_of::<A>() }
    }

    /// For every channel: `measure` its parts' slices, `join` what comes out in order, and `finish`
    /// slices of it with the total; the first call of a channel is told so. Without anything to
    /// measure `measure` is `None`.
    pub(super) fn run<A: Copy + Send + Default>(
        &self,
        launch: &CpuLaunch<'_>,
        slices: usize,
        measure: Option<&(dyn Fn(usize, Range<usize>) -> A + Sync)>,
        join: &(dyn Fn(A, A) -> A + Sync),
        finish: &(dyn Fn(usize, Range<usize>, A, bool) + Sync),
    ) -> Result<()> {
        let part = |part: usize| parallel::part_range(slices, self.parts, part);
        if self.is_whole() {
            parallel::fork(self.threads.min(self.jobs), |thread| {
                let threads = self.threads.min(self.jobs);
                for job in parallel::part_range(self.jobs, threads, thread) {
                    let total = measure.map_or_else(A::default, |measure| {
                        (1..self.parts).fold(measure(job, part(0)), |total, index| {
                            join(total, measure(job, part(index)))
                        })
                    });
                    finish(job, 0..slices, total, true);
                }
            });
            return Ok(());
        }
        let needed = if measure.is_some() { self.workspace_bytes::<A>() } else { 0 };
        if launch.workspace.bytes() < needed {
            return Err(Error::invalid_argument(format!(
                "the kernel needs {needed} bytes of workspace, but was launched with {}",
                launch.workspace.bytes()
            ))
            .in_operation(launch.operation));
        }
        let sums = Sums(launch.workspace.pointer().cast::<A>());
        if let Some(measure) = measure {
            parallel::fork(self.jobs * self.parts, |unit| {
                let sum = measure(unit / self.parts, part(unit % self.parts));
                // SAFETY: this unit's own place in the workspace, which was just measured.
                unsafe { sums.at(unit).write(sum) };
            });
        }
        parallel::fork(self.jobs * self.parts, |unit| {
            let (job, index) = (unit / self.parts, unit % self.parts);
            let total = if measure.is_some() {
                // SAFETY: written by the units before, which have joined.
                let sum = |index: usize| unsafe { sums.at(job * self.parts + index).read() };
                (1..self.parts).fold(sum(0), |total, index| join(total, sum(index)))
            } else {
                A::default()
            };
            finish(job, part(index), total, index == 0);
        });
        Ok(())
    }
}

/// The parts' sums in the workspace.
#[derive(Clone, Copy)]
struct Sums<A>(*mut A);

// SAFETY: each unit writes its own place; they are read after the join.
unsafe impl<A: Send> Send for Sums<A> {}
// SAFETY: as for Send.
unsafe impl<A: Send> Sync for Sums<A> {}

impl<A> Sums<A> {
    fn at(&self, unit: usize) -> *mut A {
        self.0.wrapping_add(unit)
    }
}
