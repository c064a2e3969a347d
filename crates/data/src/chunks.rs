//! Inputs larger than a device: a tensor taken through a function chunk by chunk
//! ([`process_in_chunks`]), and batches through a model without gradients ([`evaluate`]). Both give
//! cached memory back now and then if they are told to. Copies ahead are `prefetch.rs`.

use plimsoll_memory::{Configuration, Site, with_site};
use plimsoll_tensor::{Device, Error, Result, Tensor, memory, no_grad};

use crate::batch::Batch;
use crate::prefetch::{PrefetchOptions, Prefetcher};

plimsoll_tensor::options! {
    /// How [`process_in_chunks_with`] goes about it. What is not said is in the configuration.
    ChunkOptions {
        /// Rows of a chunk; the configuration's `chunk_size`, else all rows, if nothing is said.
        chunk_size: Option<usize> = None,
        /// Where the function runs; where the input is if nothing is said.
        device: Option<Device> = None,
        /// Where the results are gathered; where the input is if nothing is said.
        results_on: Option<Device> = None,
        /// Chunks that are on the device at once, from 1 to 3, if the input is elsewhere.
        prefetch_buffers: Option<usize> = None,
        /// Gives the device's cached memory back after every so many chunks; 0 is never.
        cleanup_every: Option<usize> = None,
        /// Whether the device's cached memory is given back at the end.
        final_cleanup: Option<bool> = None,
    }
}

/// The results of `f` on an input's rows, `chunk_size` at a time, joined in order. See
/// [`process_in_chunks_with`] for an input that does not fit on the device where `f` runs.
///
/// ```
/// use plimsoll_data::process_in_chunks;
/// use plimsoll_tensor::{DType, Tensor};
///
/// let x = Tensor::arange(0, 10, 1, DType::F32)?.view(&[5, 2])?;
/// let sums = process_in_chunks(&x, 2, |rows| rows.sum_with(1))?;
/// assert_eq!(sums.to_vec::<f32>()?, [1.0, 5.0, 9.0, 13.0, 17.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn process_in_chunks(
    input: &Tensor,
    chunk_size: usize,
    f: impl FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let options = ChunkOptions::new().chunk_size(chunk_size);
    process_in_chunks_with(input, options, f)
}

/// The results of `f` on an input's rows, some at a time, joined in order. With a `device`, each
/// chunk is copied there (the next one while `f` runs on this one), and its result comes back to
/// where the results are gathered: the device has `prefetch_buffers` chunks and what `f` makes of
/// one. `f` gives one row of result for each row, and is not recorded for gradients, which would
/// keep every chunk's intermediate results.
///
/// ```
/// use plimsoll_data::{ChunkOptions, process_in_chunks_with};
/// use plimsoll_tensor::{DType, Tensor, device, device::StandIn};
///
/// // 4 MiB of input for a device of 3 MiB.
/// let gpu = device::stand_in(StandIn { capacity_bytes: 3 << 20, ..StandIn::default() })?;
/// let x = Tensor::ones(&[1024, 1024], DType::F32)?;
/// let options = ChunkOptions::new().chunk_size(64usize).device(gpu).cleanup_every(1usize);
/// let y = process_in_chunks_with(&x, options, |rows| rows.mul(2.0))?;
/// assert!(y.device().is_cpu());
/// assert_eq!(y.sum()?.item::<f32>()?, 2_097_152.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn process_in_chunks_with(
    input: &Tensor,
    options: ChunkOptions,
    mut f: impl FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let site = Site::caller();
    let input = &input.detach();
    let Some(&rows) = input.shape().first() else {
        return refused("the input is a number and has no rows; unsqueeze it");
    };
    let configuration = Configuration::process()?;
    let chunk = options.chunk_size.or(configuration.chunk_size().map(|rows| rows.get()));
    let chunk = chunk.unwrap_or(rows.max(1));
    if chunk == 0 {
        return refused("chunk_size must be at least 1");
    }
    let device = options.device.unwrap_or(input.device());
    let cleanup = Cleanup::new(device, options.cleanup_every, options.final_cleanup)?;
    let results_on = options.results_on.unwrap_or(input.device());
    let mut results = Gathered { rows, device: results_on, at: 0, all: None, site };
    // An input without rows is one chunk, so that the result has its shape.
    let chunks = (0..rows.max(1))
        .step_by(chunk)
        .map(move |at| with_site(site, || input.narrow(0, at as i64, chunk.min(rows - at) as i64)));
    let chunks = on_device(chunks, Some(device), input.device(), options.prefetch_buffers, site)?;
    no_grad(|| {
        for (number, chunk) in chunks.enumerate() {
            let chunk = chunk?;
            let rows = chunk.shape()[0];
            let result = f(&chunk)?;
            // Its memory is for the next one.
            drop(chunk);
            results.add(result, rows)?;
            cleanup.after(number);
        }
        cleanup.at_the_end();
        results.all.map_or_else(|| refused("there were no chunks"), Ok)
    })
}

/// What was computed so far.
struct Gathered {
    rows: usize,
    device: Device,
    /// Rows that are there.
    at: usize,
    all: Option<Tensor>,
    site: Site,
}

impl Gathered {
    /// Adds the result of a chunk of `rows`.
    fn add(&mut self, result: Tensor, rows: usize) -> Result<()> {
        let at = self.at;
        if result.shape().first() != Some(&rows) {
            return refused(format!(
                "the function made a result of shape {:?} of the {rows} rows from {at} on; it must make one row \
                 of result for each row",
                result.shape()
            ));
        }
        self.at += rows;
        if rows == self.rows {
            self.all = Some(with_site(self.site, || result.to(self.device))?);
            return Ok(());
        }
        with_site(self.site, || {
            let all = match self.all.take() {
                Some(all) => all,
                None => {
                    let mut sizes: Vec<i64> = result.shape().iter().map(|&s| s as i64).collect();
                    sizes[0] = self.rows as i64;
                    Tensor::empty(&sizes, (result.dtype(), self.device))?
                }
            };
            if all.shape()[1..] != result.shape()[1..] || all.dtype() != result.dtype() {
                return refused(format!(
                    "the result for the rows from {at} on has shape {:?} and dtype {}, the ones before {:?} and {}",
                    result.shape(),
                    result.dtype(),
                    all.shape(),
                    all.dtype()
                ));
            }
            all.narrow(0, at as i64, rows as i64)?.copy_(&result)?;
            self.all = Some(all);
            Ok(())
        })
    }
}

plimsoll_tensor::options! {
    /// How [`evaluate_with`] goes about it. What is not said is in the configuration.
    EvaluateOptions {
        /// Where batches are brought, ahead of their use; if nothing is said they stay where they
        /// are.
        device: Option<Device> = None,
        /// Batches that are on the device at once, from 1 to 3.
        prefetch_buffers: Option<usize> = None,
        /// Gives cached memory back after every so many batches; 0 is never.
        cleanup_every: Option<usize> = None,
        /// Whether cached memory is given back at the end.
        final_cleanup: Option<bool> = None,
    }
}

/// What `f` gives for each batch, without recording for gradients.
///
/// ```
/// use plimsoll_data::{DataLoader, InMemory, LoaderOptions, evaluate};
///
/// let options = LoaderOptions::new().batch_size(2usize);
/// let loader = DataLoader::new(InMemory(vec![1i64, 2, 3]), options)?;
/// let sums = evaluate(loader.epoch()?, |batch| batch.sum()?.item::<i64>())?;
/// assert_eq!(sums, [3, 3]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn evaluate<B: Batch, R>(
    batches: impl Iterator<Item = Result<B>>,
    f: impl FnMut(B) -> Result<R>,
) -> Result<Vec<R>> {
    evaluate_with(batches, EvaluateOptions::new(), f)
}

/// As [`evaluate`], on a device, and giving cached memory back now and then.
///
/// ```
/// use plimsoll_data::{DataLoader, EvaluateOptions, InMemory, LoaderOptions, evaluate_with};
/// use plimsoll_tensor::{device, memory};
///
/// let gpu = device::stand_in(Default::default())?;
/// let loader = DataLoader::new(InMemory(vec![1i64, 2, 3]), LoaderOptions::new())?;
/// let options = EvaluateOptions::new().device(gpu).final_cleanup(true);
/// let doubled = evaluate_with(loader.epoch()?, options, |x| x.mul(2)?.item::<i64>())?;
/// assert_eq!(doubled, [2, 4, 6]);
/// assert_eq!(memory::memory_reserved(gpu), 0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn evaluate_with<B: Batch, R>(
    batches: impl Iterator<Item = Result<B>>,
    options: EvaluateOptions,
    mut f: impl FnMut(B) -> Result<R>,
) -> Result<Vec<R>> {
    let site = Site::caller();
    let cleans = options.device.unwrap_or(Device::cpu());
    let cleanup = Cleanup::new(cleans, options.cleanup_every, options.final_cleanup)?;
    let host = Device::cpu();
    let batches = on_device(batches, options.device, host, options.prefetch_buffers, site)?;
    no_grad(|| {
        let mut results = Vec::new();
        for (number, batch) in batches.enumerate() {
            results.push(f(batch?)?);
            cleanup.after(number);
        }
        cleanup.at_the_end();
        Ok(results)
    })
}

/// The batches, brought to `device` ahead if that is another one than `from`.
fn on_device<'a, B: Batch>(
    batches: impl Iterator<Item = Result<B>> + 'a,
    device: Option<Device>,
    from: Device,
    buffers: Option<usize>,
    site: Site,
) -> Result<Box<dyn Iterator<Item = Result<B>> + 'a>> {
    match device.filter(|&device| device != from) {
        Some(device) => {
            let options = PrefetchOptions { buffers };
            let made = with_site(site, || Prefetcher::with_options(batches, device, options))?;
            Ok(Box::new(made))
        }
        None => Ok(Box::new(batches)),
    }
}

/// When cached memory is given back.
struct Cleanup {
    device: Device,
    every: Option<usize>,
    finally: bool,
}

impl Cleanup {
    fn new(device: Device, every: Option<usize>, finally: Option<bool>) -> Result<Cleanup> {
        let configuration = Configuration::process()?;
        let every = every.or(configuration.cleanup_every().map(|every| every.get()));
        Ok(Cleanup {
            device,
            every: every.filter(|&every| every > 0),
            finally: finally.unwrap_or(configuration.final_cleanup()),
        })
    }

    /// After chunk or batch `number`, counted from 0.
    fn after(&self, number: usize) {
        if self.every.is_some_and(|every| (number + 1).is_multiple_of(every)) {
            memory::empty_cache(self.device);
        }
    }

    fn at_the_end(&self) {
        if self.finally {
            memory::empty_cache(self.device);
        }
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::invalid_argument(why).in_operation("process_in_chunks"))
}
