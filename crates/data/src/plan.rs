//! What there is to do in an epoch: a list of tasks in order, each of which makes one batch. Tasks
//! are taken one at a time, and carried out by any thread; `workers.rs` and `loader.rs` do both.

use std::cell::Cell;
use std::sync::Arc;

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{Device, Error, Generator, Result, with_generator};

use crate::batch::Batch;
use crate::collate::Collate;
use crate::dataset::{Dataset, Samples};
use crate::failure::misfitting;
use crate::sampler::Order;

/// Makes a batch; `None` if it was told to stop.
pub(crate) type Task<B> = Box<dyn FnOnce(&Progress<'_>) -> Result<Option<B>> + Send>;

/// The tasks of an epoch, in order.
pub(crate) type Plan<B> = Box<dyn Iterator<Item = Task<B>> + Send>;

/// What a task asks of whoever carries it out.
pub(crate) trait Turn {
    /// Whether nobody wants the batch any more.
    fn is_stopped(&self) -> bool;

    /// Waits until the batch, of so many bytes if that is known, may take memory; false if nobody
    /// wants it any more.
    fn let_in(&self, bytes: Option<usize>) -> bool;
}

/// A task under way.
pub(crate) struct Progress<'a> {
    pub(crate) turn: &'a dyn Turn,
    /// The line that iterates over the loader.
    pub(crate) site: Site,
    /// The sample in work, for whoever has to tell of a failure.
    pub(crate) sample: Cell<Option<usize>>,
}

/// The settings that tasks need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making {
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
    pub(crate) pin_memory: bool,
}

/// The tasks of samples by number, from batch `skipped` on.
pub(crate) fn by_number<D: Dataset, C: Collate<D::Sample>>(
    dataset: Arc<D>,
    collate: Arc<C>,
    order: Order<Vec<usize>>,
    skipped: u64,
    making: Making,
) -> Plan<C::Batch> {
    let order = order.enumerate().skip(usize::try_from(skipped).unwrap_or(usize::MAX));
    Box::new(order.map(move |(number, indices)| -> Task<C::Batch> {
        let (dataset, collate) = (dataset.clone(), collate.clone());
        Box::new(move |progress| {
            let indices = indices?;
            making.drawing_for(number as u64, || {
                let mut samples = Vec::with_capacity(indices.len());
                for &index in &indices {
                    if progress.turn.is_stopped() {
                        return Ok(None);
                    }
                    progress.sample.set(Some(index));
                    samples.push(dataset.get(index)?);
                }
                progress.sample.set(None);
                let batch = making.collated(&*collate, samples, progress);
                batch.inspect_err(|error| progress.sample.set(misfitting(error, &indices)))
            })
        })
    }))
}

/// The tasks of a stream, in batches of `batch_size`, from batch `skipped` on. Samples are read
/// when a task is taken, which happens in order.
pub(crate) fn by_reading<S: Send + 'static, C: Collate<S>>(
    samples: Samples<S>,
    collate: Arc<C>,
    (batch_size, drop_last): (usize, bool),
    skipped: u64,
    making: Making,
) -> Plan<C::Batch> {
    let mut reading = Reading { samples, read: 0, number: 0 };
    let skip = usize::try_from(skipped).unwrap_or(usize::MAX).saturating_mul(batch_size);
    Box::new(std::iter::from_fn(move || {
        if reading.number == 0 && skip > 0 {
            reading.skip(skip);
        }
        let number = skipped + reading.number;
        reading.number += 1;
        let first = reading.read;
        let batch = making.drawing_for(number, || reading.next(batch_size));
        if matches!(&batch, Ok(batch) if batch.is_empty() || (drop_last && batch.len() < batch_size))
        {
            return None;
        }
        let (failed, collate) = (reading.read.saturating_sub(1), collate.clone());
        let task: Task<C::Batch> = Box::new(move |progress| {
            let batch = batch.inspect_err(|_| progress.sample.set(Some(failed)))?;
            let numbers: Vec<usize> = (first..first + batch.len()).collect();
            making.drawing_for(number, || {
                let batch = making.collated(&*collate, batch, progress);
                batch.inspect_err(|error| progress.sample.set(misfitting(error, &numbers)))
            })
        });
        Some(task)
    }))
}

/// A stream that is read.
struct Reading<S> {
    samples: Samples<S>,
    /// Samples read so far.
    read: usize,
    /// Batches read so far.
    number: u64,
}

impl<S> Reading<S> {
    fn skip(&mut self, count: usize) {
        self.read += self.samples.by_ref().take(count).count();
    }

    /// The next batch's samples; none after the last. An error ends the batch it is in.
    fn next(&mut self, batch_size: usize) -> Result<Vec<S>> {
        let mut batch = Vec::new();
        while batch.len() < batch_size {
            let Some(sample) = self.samples.next() else { break };
            self.read += 1;
            batch.push(sample?);
        }
        Ok(batch)
    }
}

impl Making {
    /// Runs `body` with random numbers on the CPU that are a function of seed, epoch and batch, so
    /// that what a dataset draws does not depend on the number of workers.
    fn drawing_for<R>(self, batch: u64, body: impl FnOnce() -> R) -> R {
        // An odd factor keeps batches apart; which one does not matter.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = self.seed ^ self.epoch.wrapping_add(1).wrapping_mul(SPREAD).rotate_left(32);
        let seed = mixed ^ batch.wrapping_add(1).wrapping_mul(SPREAD);
        with_generator(&Generator::new(Device::cpu(), seed), body)
    }

    fn collated<S, C: Collate<S>>(
        self,
        collate: &C,
        samples: Vec<S>,
        progress: &Progress<'_>,
    ) -> Result<Option<C::Batch>> {
        if !progress.turn.let_in(collate.bytes(&samples)) {
            return Ok(None);
        }
        let batch = match collate.is_the_programs() {
            true => collate.collate(samples)?,
            false => with_site(progress.site, || collate.collate(samples))?,
        };
        let batch = match self.pin_memory {
            true => with_site(progress.site, || batch.map_tensors(&mut |x| x.pin_memory()))?,
            false => batch,
        };
        batch.for_each_tensor(&mut |tensor| drop(tensor.mark_input()));
        Ok(Some(batch))
    }
}

/// The error of a plan that panicked while it was asked for the next task.
pub(crate) fn plan_is_lost(error: Error) -> Error {
    let why = "the order of samples cannot be read any further; the epoch ends here";
    Error::new(error.kind(), why).in_operation("DataLoader").because(error)
}
