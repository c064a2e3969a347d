//! Batches on a device before they are needed: copies run on streams of their own while the device
//! computes on an earlier batch. What makes batches is anything that iterates over them, usually a
//! loader's epoch (`loader.rs`).
//!
//! Note [Buffers and streams]
//! Each buffer has a copy stream of its own. Work that reads a batch waits for the end of the
//! stream that wrote it, and there must not already be the next batch's copy. With two buffers one
//! batch is computed on and one is on its way; the host waits for the computation before it lets
//! the next copy go, so there are never more batches on the device than buffers. With three, one
//! may still be computed on while the host goes on to the next. With one there is no copy ahead.
//! What is computed is the same in every case.

use std::collections::VecDeque;

use plimsoll_memory::{Configuration, Site, with_site};
use plimsoll_tensor::{Device, Error, Event, Result, Stream, Tensor, with_stream};

use crate::batch::Batch;

plimsoll_tensor::options! {
    /// How a [`Prefetcher`] copies.
    PrefetchOptions {
        /// Batches that are on the device at once, from 1 to 3; the configuration's
        /// `prefetch_buffers` (2) if nothing is said.
        buffers: Option<usize> = None,
    }
}

/// Brings batches to a device ahead of their use.
///
/// ```
/// use plimsoll_data::{DataLoader, InMemory, LoaderOptions, Prefetcher};
/// use plimsoll_tensor::device;
///
/// let gpu = device::stand_in(Default::default())?;
/// let options = LoaderOptions::new().batch_size(2usize).num_workers(1usize).pin_memory(true);
/// let loader = DataLoader::new(InMemory((0..6).collect::<Vec<i64>>()), options)?;
/// let mut total = 0;
/// for batch in Prefetcher::new(loader.epoch()?, gpu)? {
///     let batch = batch?; // on the device; the next one is on its way
///     assert_eq!(batch.device(), gpu);
///     total += batch.sum()?.item::<i64>()?;
/// }
/// assert_eq!(total, 15);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Prefetcher<I: Iterator> {
    batches: I,
    device: Device,
    /// One a buffer; copies take them in turn.
    streams: Vec<Stream>,
    copies: usize,
    /// Copied, or on their way.
    ready: VecDeque<I::Item>,
    /// The ends of what was computed on batches that were handed out, as far as they are not known
    /// to have passed.
    used: VecDeque<Event>,
    hands_out: bool,
    is_over: bool,
    site: Site,
}

impl<B: Batch, I: Iterator<Item = Result<B>>> Prefetcher<I> {
    /// Brings these batches to `device`.
    #[track_caller]
    pub fn new(batches: I, device: Device) -> Result<Prefetcher<I>> {
        Prefetcher::with_options(batches, device, PrefetchOptions::new())
    }

    /// As [`Prefetcher::new`], with another number of buffers.
    #[track_caller]
    pub fn with_options(
        batches: I,
        device: Device,
        options: PrefetchOptions,
    ) -> Result<Prefetcher<I>> {
        let site = Site::caller();
        let buffers = buffers(options.buffers)?;
        let streams = (0..buffers).map(|_| Stream::new(device)).collect::<Result<_>>()?;
        Ok(Prefetcher {
            batches,
            device,
            streams,
            copies: 0,
            ready: VecDeque::new(),
            used: VecDeque::new(),
            hands_out: false,
            is_over: false,
            site,
        })
    }

    /// The streams that copies run on, one for each buffer, in turn.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Waits until at most `most` batches that were handed out are still computed on.
    fn wait_for_use(&mut self, most: usize) -> Result<()> {
        while self.used.front().is_some_and(Event::query) {
            self.used.pop_front();
        }
        while self.used.len() > most {
            if let Some(end) = self.used.pop_front() {
                end.synchronize()?;
            }
        }
        Ok(())
    }

    /// Lets copies go while there are buffers for them.
    fn fill(&mut self) {
        while !self.is_over && self.used.len() + self.ready.len() < self.streams.len() {
            match self.batches.next() {
                Some(batch) => {
                    let moved = batch.and_then(|batch| self.moved(batch));
                    self.ready.push_back(moved);
                }
                None => self.is_over = true,
            }
        }
    }

    /// The batch on the device, by a copy on the next buffer's stream.
    fn moved(&mut self, batch: B) -> Result<B> {
        let stream = self.streams[self.copies % self.streams.len()];
        self.copies += 1;
        let device = self.device;
        let mut copy = |tensor: Tensor| copied_to(&tensor, device);
        with_site(self.site, || with_stream(&stream, || batch.map_tensors(&mut copy)))
    }
}

/// A tensor of a batch on a device, which copies it from pinned memory: that holds up neither the
/// device nor the host. On the host it is there.
///
/// ```
/// use plimsoll_data::copied_to;
/// use plimsoll_tensor::{DType, Tensor, device};
/// let gpu = device::stand_in(Default::default())?;
/// let x = Tensor::arange(0, 4, 1, DType::I64)?;
/// let there = copied_to(&x, gpu)?;
/// assert_eq!((there.device(), there.to_vec::<i64>()?), (gpu, vec![0, 1, 2, 3]));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn copied_to(tensor: &Tensor, device: Device) -> Result<Tensor> {
    // The host would wait for a copy from memory that is not pinned. A dry run has none.
    let from = tensor.device();
    let pins = !device.is_cpu() && from.is_cpu() && !from.is_dry();
    let host = if pins { tensor.pin_memory()? } else { tensor.clone() };
    Ok(host.to_non_blocking(device)?.mark_input())
}

/// The number of buffers that an option or the configuration says.
pub(crate) fn buffers(given: Option<usize>) -> Result<usize> {
    let buffers = match given {
        Some(buffers) => buffers,
        None => Configuration::process()?.prefetch_buffers(),
    };
    if !(1..=3).contains(&buffers) {
        let why = format!(
            "{buffers} buffers are not from 1 to 3: one is computed on, the rest are copied to"
        );
        return Err(Error::invalid_argument(why).in_operation("Prefetcher"));
    }
    Ok(buffers)
}

impl<B: Batch, I: Iterator<Item = Result<B>>> Iterator for Prefetcher<I> {
    type Item = Result<B>;

    /// The next batch. Whatever the caller queued on this thread's current stream before counts as
    /// the use of the one before it. See Note [Buffers and streams].
    fn next(&mut self) -> Option<Result<B>> {
        if self.hands_out {
            self.used.push_back(Stream::current(self.device).record_event());
            self.hands_out = false;
        }
        if let Err(error) = self.wait_for_use(self.streams.len().saturating_sub(2)) {
            return Some(Err(error));
        }
        self.fill();
        let batch = self.ready.pop_front()?;
        self.hands_out = batch.is_ok();
        Some(batch)
    }
}
