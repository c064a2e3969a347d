//! The loader: a dataset, an order and a way to make batches, made ahead by threads. An epoch is an
//! iterator (`epoch.rs`); where it stands can be saved and gone on from ([`Position`]). The threads
//! are `workers.rs`, how far ahead they go is `gate.rs`.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{Error, Result};

use crate::batch::Batch;
use crate::collate::{Collate, Stack, Stacked};
use crate::dataset::{Dataset, IterableDataset};
use crate::epoch::Epoch;
use crate::gate::Gate;
use crate::plan::{self, Making, Plan};
use crate::sampler::{BatchSampler, RandomSampler, Sampler, SequentialSampler, checked_batch_size};
use crate::workers::{Workers, first_place};

plimsoll_tensor::options! {
    /// How a [`DataLoader`] loads. Names and defaults are PyTorch's where it has the option.
    LoaderOptions {
        /// Samples in a batch.
        batch_size: usize = 1,
        /// Whether samples come in random order, another one each epoch.
        shuffle: bool = false,
        /// Whether a last batch that is not full is left out.
        drop_last: bool = false,
        /// Threads that make batches ahead; with 0 the consumer makes each when it asks for it.
        num_workers: usize = 0,
        /// Batches that each worker may be ahead.
        prefetch_factor: usize = 2,
        /// The most bytes, as the ledger counts them, of batches that were made and not yet taken.
        /// A batch that is larger passes alone.
        prefetch_bytes: Option<usize> = None,
        /// Whether batches are put in pinned memory, from which devices copy beside the host.
        pin_memory: bool = false,
        /// Where random numbers start from: orders, and what datasets draw on the CPU. Batches are
        /// the same for the same seed, whatever the number of workers.
        seed: u64 = 0,
    }
}

/// Where a loader stands: the batch that comes next. Saved with a checkpoint and given to
/// [`DataLoader::set_position`], it lets a loader of the same dataset, order and seed go on with
/// exactly the batches that were left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The batch in its epoch, from 0.
    pub batch: u64,
}

/// Makes the plan of an epoch from a position on.
type Planner<B> = Box<dyn Fn(Position) -> Result<Plan<B>> + Send + Sync>;

/// Loads batches: takes samples in an order, makes batches of them on threads, and hands them out
/// in order.
///
/// ```
/// use plimsoll_data::{DataLoader, LoaderOptions, TensorDataset};
/// use plimsoll_tensor::{DType, Tensor};
///
/// let x = Tensor::arange(0, 10, 1, DType::F32)?;
/// let dataset = TensorDataset::new((x.view(&[10, 1])?, x.to(DType::I64)?))?;
/// let options = LoaderOptions::new().batch_size(4usize).shuffle(true).num_workers(2usize);
/// let loader = DataLoader::new(dataset, options)?;
/// for epoch in 0..2 {
///     for batch in loader.epoch()? {
///         let (x, y) = batch?;
///         assert_eq!(x.shape(), [y.shape()[0], 1]);
///     }
/// }
/// assert_eq!(loader.len(), Some(3));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct DataLoader<B: Batch> {
    planner: Planner<B>,
    batches: Option<usize>,
    options: LoaderOptions,
    pub(crate) workers: Option<Workers<B>>,
    pub(crate) state: Mutex<LoaderState>,
}

#[derive(Debug, Default)]
pub(crate) struct LoaderState {
    pub(crate) position: Position,
    /// Whether an epoch at the position was begun; the next one is then another.
    pub(crate) is_begun: bool,
    /// Whether there is an [`Epoch`].
    pub(crate) is_running: bool,
}

impl<B: Batch> fmt::Debug for DataLoader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataLoader")
            .field("batches", &self.batches)
            .field("options", &self.options)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}

/// The order that the options ask for.
fn usual_order(samples: usize, options: &LoaderOptions) -> Result<BatchSampler> {
    let (size, drop_last) = (options.batch_size, options.drop_last);
    // Nothing cannot be drawn from; in order or shuffled, it has no batches.
    if options.shuffle && samples > 0 {
        return BatchSampler::new(RandomSampler::new(samples, options.seed)?, size, drop_last);
    }
    BatchSampler::new(SequentialSampler::new(samples), size, drop_last)
}

impl<B: Batch> DataLoader<B> {
    /// Batches of samples side by side ([`Stacked`]), in the order that the options say.
    pub fn new<D>(dataset: D, options: LoaderOptions) -> Result<DataLoader<B>>
    where
        D: Dataset,
        D::Sample: Stack<Stacked = B>,
    {
        let order = usual_order(dataset.len(), &options)?;
        DataLoader::by_number(Arc::new(dataset), order, Stacked, options)
    }

    /// As [`DataLoader::new`], with batches made by a function of the samples.
    ///
    /// ```
    /// use plimsoll_data::{DataLoader, InMemory, LoaderOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    ///
    /// let texts = InMemory(vec!["one".to_string(), "three".to_string()]);
    /// let longest = |texts: Vec<String>| {
    ///     let length = texts.iter().map(String::len).max().unwrap_or(0);
    ///     Ok((Tensor::zeros(&[texts.len() as i64, length as i64], DType::I64)?, texts))
    /// };
    /// let options = LoaderOptions::new().batch_size(2usize);
    /// let loader = DataLoader::with_collate(texts, longest, options)?;
    /// let (padded, _) = loader.epoch()?.next().unwrap()?;
    /// assert_eq!(padded.shape(), [2, 5]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn with_collate<D, C>(
        dataset: D,
        collate: C,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>>
    where
        D: Dataset,
        C: Collate<D::Sample, Batch = B>,
    {
        let order = usual_order(dataset.len(), &options)?;
        DataLoader::by_number(Arc::new(dataset), order, collate, options)
    }

    /// With samples in an order of the program's own; `shuffle` must not be asked for.
    ///
    /// ```
    /// use plimsoll_data::{DataLoader, InMemory, LoaderOptions, WeightedRandomSampler};
    ///
    /// let order = WeightedRandomSampler::new(&[0.0, 1.0], 4, true, 0)?;
    /// let (data, options) = (InMemory(vec![10i64, 20]), LoaderOptions::new());
    /// let loader = DataLoader::with_sampler(data, order, options)?;
    /// for batch in loader.epoch()? {
    ///     assert_eq!(batch?.to_vec::<i64>()?, [20]);
    /// }
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn with_sampler<D>(
        dataset: D,
        sampler: impl Sampler<Item = usize>,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>>
    where
        D: Dataset,
        D::Sample: Stack<Stacked = B>,
    {
        if options.shuffle {
            return refused("sampler option is mutually exclusive with shuffle");
        }
        let order = BatchSampler::new(sampler, options.batch_size, options.drop_last)?;
        DataLoader::by_number(Arc::new(dataset), order, Stacked, options)
    }

    /// With batches in an order of the program's own, made by a function of the samples or by
    /// [`Stacked`]; `batch_size`, `shuffle` and `drop_last` must not be asked for.
    ///
    /// ```
    /// use plimsoll_data::{
    ///     DataLoader, InMemory, LengthOptions, LengthSampler, LoaderOptions, Stacked,
    /// };
    ///
    /// let order = LengthSampler::new(vec![3, 9, 3, 9], LengthOptions::new().batch_size(2usize))?;
    /// let samples = InMemory(vec![0i64, 1, 2, 3]);
    /// let loader = DataLoader::with_batches(samples, order, Stacked, LoaderOptions::new())?;
    /// let mut batches = loader.epoch()?.map(|b| b.unwrap().to_vec::<i64>().unwrap());
    /// let first = batches.next().unwrap();
    /// assert!(first == [0, 2] || first == [2, 0] || first == [1, 3] || first == [3, 1]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn with_batches<D, C>(
        dataset: D,
        batches: impl Sampler<Item = Vec<usize>>,
        collate: C,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>>
    where
        D: Dataset,
        C: Collate<D::Sample, Batch = B>,
    {
        if options.shuffle || options.drop_last || options.batch_size != 1 {
            return refused(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, and drop_last",
            );
        }
        DataLoader::by_number(Arc::new(dataset), batches, collate, options)
    }

    /// Batches of a stream, in the order in which it is read, made by a function of the samples or
    /// by [`Stacked`].
    ///
    /// ```
    /// # use plimsoll_data::{DataLoader, IterableDataset, LoaderOptions, Samples, Stacked};
    /// # use plimsoll_tensor::Result;
    /// # use std::sync::Arc;
    /// # struct Count(i64);
    /// # impl IterableDataset for Count {
    /// #     type Sample = i64;
    /// #     fn iter(self: Arc<Self>, _: u64) -> Result<Samples<i64>> {
    /// #         Ok(Box::new((0..self.0).map(Ok)))
    /// #     }
    /// # }
    /// let options = LoaderOptions::new().batch_size(2usize);
    /// let loader = DataLoader::over_stream(Arc::new(Count(3)), Stacked, options)?;
    /// let numbers = loader.epoch()?.map(|batch| batch.unwrap().to_vec::<i64>().unwrap());
    /// let batches: Vec<Vec<i64>> = numbers.collect();
    /// assert_eq!(batches, [vec![0, 1], vec![2]]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn over_stream<I, C>(
        stream: Arc<I>,
        collate: C,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>>
    where
        I: IterableDataset,
        C: Collate<I::Sample, Batch = B>,
    {
        if options.shuffle {
            return refused(
                "DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle=True",
            );
        }
        let sizes = (checked_batch_size(options.batch_size)?, options.drop_last);
        let collate = Arc::new(collate);
        let making = making(&options);
        let planner = Box::new(move |at: Position| {
            let samples = stream.clone().iter(at.epoch)?;
            let making = Making { epoch: at.epoch, ..making };
            Ok(plan::by_reading(samples, collate.clone(), sizes, at.batch, making))
        });
        DataLoader::over(planner, None, options)
    }

    fn by_number<D, C>(
        dataset: Arc<D>,
        order: impl Sampler<Item = Vec<usize>>,
        collate: C,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>>
    where
        D: Dataset,
        C: Collate<D::Sample, Batch = B>,
    {
        let batches = order.len();
        let collate = Arc::new(collate);
        let making = making(&options);
        let planner = Box::new(move |at: Position| {
            let order = order.order(at.epoch)?;
            let making = Making { epoch: at.epoch, ..making };
            Ok(plan::by_number(dataset.clone(), collate.clone(), order, at.batch, making))
        });
        DataLoader::over(planner, Some(batches), options)
    }

    fn over(
        planner: Planner<B>,
        batches: Option<usize>,
        options: LoaderOptions,
    ) -> Result<DataLoader<B>> {
        if options.num_workers > 0 && options.prefetch_factor == 0 {
            return refused(
                "prefetch_factor must be at least 1: it is how far a worker may be ahead",
            );
        }
        if options.num_workers == 0 && options.prefetch_bytes.is_some() {
            return refused(
                "prefetch_bytes could only be specified with workers: let num_workers > 0",
            );
        }
        if options.prefetch_bytes == Some(0) {
            return refused("prefetch_bytes must be above 0; leave it out for no bound");
        }
        let workers = match options.num_workers {
            0 => None,
            count => Some(Workers::start(count)?),
        };
        Ok(DataLoader { planner, batches, options, workers, state: Mutex::default() })
    }

    /// Batches in an epoch; `None` for a stream.
    pub fn len(&self) -> Option<usize> {
        self.batches
    }

    /// Whether an epoch is known to have no batch.
    pub fn is_empty(&self) -> bool {
        self.batches == Some(0)
    }

    /// The options that it was made with.
    pub fn options(&self) -> &LoaderOptions {
        &self.options
    }

    /// Begins the next epoch, or goes on with the one that a position was set in. An epoch that
    /// was left early is over: the next call begins another, as in PyTorch.
    ///
    /// # Errors
    /// If an epoch is under way: its iterator has the workers.
    #[track_caller]
    pub fn epoch(&self) -> Result<Epoch<'_, B>> {
        let site = Site::caller();
        let mut state = self.state.lock();
        if state.is_running {
            return refused(
                "an epoch of this loader is under way; drop its iterator before the next one begins, or make a \
                 second loader",
            );
        }
        let at = match state.is_begun {
            true => Position { epoch: state.position.epoch + 1, batch: 0 },
            false => state.position,
        };
        let plan = with_site(site, || (self.planner)(at))?;
        *state = LoaderState { position: at, is_begun: true, is_running: true };
        drop(state);
        let first = first_place(at.epoch, at.batch, site);
        let Some(workers) = &self.workers else {
            return Ok(Epoch::new(self, Some(plan), site));
        };
        let ahead = self.options.num_workers.saturating_mul(self.options.prefetch_factor);
        workers.begin(plan, Gate::new(ahead, self.options.prefetch_bytes), first);
        Ok(Epoch::new(self, None, site))
    }

    /// The batch that comes next: batches that were made ahead and not taken do not count.
    ///
    /// ```
    /// use plimsoll_data::{DataLoader, InMemory, LoaderOptions, Position};
    ///
    /// let options = || LoaderOptions::new().shuffle(true).seed(3u64);
    /// let samples = InMemory((0..5).collect::<Vec<i64>>());
    /// let loader = DataLoader::new(samples.clone(), options())?;
    /// let mut epoch = loader.epoch()?;
    /// let _two = (epoch.next(), epoch.next());
    /// let saved = loader.position();
    /// let rest: Vec<i64> = epoch.map(|b| b.unwrap().item().unwrap()).collect();
    ///
    /// let again = DataLoader::new(samples, options())?;
    /// again.set_position(saved)?;
    /// let resumed: Vec<i64> = again.epoch()?.map(|b| b.unwrap().item().unwrap()).collect();
    /// assert_eq!((saved, resumed), (Position { epoch: 0, batch: 2 }, rest));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn position(&self) -> Position {
        self.state.lock().position
    }

    /// Lets the next epoch begin at a position that was saved.
    ///
    /// # Errors
    /// If an epoch is under way, or the epoch has no such batch.
    pub fn set_position(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_running {
            return refused("an epoch of this loader is under way; drop its iterator first");
        }
        if let Some(batches) = self.batches
            && position.batch > batches as u64
        {
            return refused(format!(
                "batch {} is past the {batches} batches of an epoch: the position is of another dataset or batch size",
                position.batch
            ));
        }
        *state = LoaderState { position, ..LoaderState::default() };
        Ok(())
    }

    /// Bytes of the batches that were made ahead and wait, as the loader counts them against
    /// `prefetch_bytes`.
    pub fn waiting_bytes(&self) -> usize {
        self.workers.as_ref().map_or(0, Workers::waiting_bytes)
    }
}

fn making(options: &LoaderOptions) -> Making {
    Making { seed: options.seed, epoch: 0, pin_memory: options.pin_memory }
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::invalid_argument(why).in_operation("DataLoader"))
}
