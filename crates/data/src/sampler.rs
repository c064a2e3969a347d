//! In which order samples are taken. A sampler is a function of the epoch: asked twice for the same
//! epoch it gives the same order, which is what lets a loader go on from a position that was saved.
//! Batches of similar lengths are `by_length.rs`; how random numbers are drawn is `drawing.rs`.

use std::fmt;

use plimsoll_tensor::{DType, Device, Error, Result, Tensor};

use crate::drawing::{Drawing, PIECE};

/// The numbers of one epoch, or lists of them.
pub type Order<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// An order of samples: of their numbers (`Item` is `usize`), or of batches of numbers
/// (`Vec<usize>`).
///
/// ```
/// use plimsoll_data::{Order, Sampler};
/// use plimsoll_tensor::Result;
///
/// /// From the last to the first.
/// struct Backwards(usize);
///
/// impl Sampler for Backwards {
///     type Item = usize;
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn order(&self, _epoch: u64) -> Result<Order<usize>> {
///         Ok(Box::new((0..self.0).rev().map(Ok)))
///     }
/// }
/// assert_eq!(Backwards(3).order(0)?.collect::<Result<Vec<_>>>()?, [2, 1, 0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait Sampler: Send + Sync + 'static {
    /// A sample's number, or the numbers of a batch.
    type Item: Send + 'static;

    /// How many items an epoch has.
    fn len(&self) -> usize;

    /// Whether an epoch has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of an epoch, counted from 0: the same for the same epoch.
    fn order(&self, epoch: u64) -> Result<Order<Self::Item>>;
}

impl<T: Send + 'static> Sampler for Box<dyn Sampler<Item = T>> {
    type Item = T;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn order(&self, epoch: u64) -> Result<Order<T>> {
        (**self).order(epoch)
    }
}

/// From the first sample to the last.
///
/// ```
/// use plimsoll_data::{Sampler, SequentialSampler};
/// let order: Vec<_> = SequentialSampler::new(3).order(0)?.map(Result::unwrap).collect();
/// assert_eq!(order, [0, 1, 2]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SequentialSampler {
    samples: usize,
}

impl SequentialSampler {
    /// For a dataset of so many samples.
    pub fn new(samples: usize) -> SequentialSampler {
        SequentialSampler { samples }
    }
}

impl Sampler for SequentialSampler {
    type Item = usize;

    fn len(&self) -> usize {
        self.samples
    }

    fn order(&self, _epoch: u64) -> Result<Order<usize>> {
        Ok(Box::new((0..self.samples).map(Ok)))
    }
}

/// Samples in random order, another one each epoch: every sample once, or (with replacement) each
/// draw independent of the others.
///
/// ```
/// use plimsoll_data::{RandomSampler, Sampler};
/// let sampler = RandomSampler::new(100, 7)?;
/// let order = |epoch| sampler.order(epoch).unwrap().map(Result::unwrap).collect::<Vec<_>>();
/// assert_eq!(order(3), order(3));
/// assert_ne!(order(3), order(4));
/// let mut all = order(3);
/// all.sort();
/// assert_eq!(all, (0..100).collect::<Vec<_>>());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RandomSampler {
    samples: usize,
    seed: u64,
    replacement: bool,
    num_samples: usize,
}

impl RandomSampler {
    /// Every one of so many samples once.
    pub fn new(samples: usize, seed: u64) -> Result<RandomSampler> {
        RandomSampler { samples, seed, replacement: false, num_samples: samples }.checked()
    }

    /// Draws with replacement: a sample may come again at once.
    #[must_use]
    pub fn replacement(self, replacement: bool) -> RandomSampler {
        RandomSampler { replacement, ..self }
    }

    /// How many are drawn in an epoch. Without replacement every sample comes once before any comes
    /// twice.
    pub fn num_samples(self, num_samples: usize) -> Result<RandomSampler> {
        RandomSampler { num_samples, ..self }.checked()
    }

    fn checked(self) -> Result<RandomSampler> {
        if self.num_samples == 0 || self.samples == 0 {
            return Err(Error::invalid_argument(format!(
                "num_samples should be a positive integer value, but got num_samples={} of {} samples",
                self.num_samples, self.samples
            ))
            .in_operation("RandomSampler"));
        }
        Ok(self)
    }
}

impl Sampler for RandomSampler {
    type Item = usize;

    fn len(&self) -> usize {
        self.num_samples
    }

    fn order(&self, epoch: u64) -> Result<Order<usize>> {
        let drawing = Drawing::new(self.seed, epoch);
        let samples = self.samples;
        if self.replacement {
            // A piece at a time, as in PyTorch: an epoch of any length takes no more memory.
            let piece = PIECE.min(self.num_samples);
            let pieces = std::iter::repeat_with(move || drawing.uniform(samples, piece));
            return Ok(Box::new(pieces.flat_map(flat).take(self.num_samples)));
        }
        let first = drawing.permutation(samples)?;
        // Further passes are drawn when the one before them is used up.
        let later = std::iter::repeat_with(move || drawing.permutation(samples)).flat_map(flat);
        Ok(Box::new(first.chain(later).take(self.num_samples)))
    }
}

/// Numbers that could perhaps not be drawn, as an iterator.
fn flat(drawn: Result<crate::drawing::Numbers>) -> Order<usize> {
    match drawn {
        Ok(numbers) => Box::new(numbers),
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

/// Chosen samples in random order, another one each epoch.
///
/// ```
/// use plimsoll_data::{Sampler, SubsetRandomSampler};
/// let sampler = SubsetRandomSampler::new(vec![5, 7, 9], 1);
/// let mut order: Vec<_> = sampler.order(0)?.map(Result::unwrap).collect();
/// order.sort();
/// assert_eq!(order, [5, 7, 9]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SubsetRandomSampler {
    indices: std::sync::Arc<[usize]>,
    seed: u64,
}

impl SubsetRandomSampler {
    /// The samples with these numbers.
    pub fn new(indices: Vec<usize>, seed: u64) -> SubsetRandomSampler {
        SubsetRandomSampler { indices: indices.into(), seed }
    }
}

impl Sampler for SubsetRandomSampler {
    type Item = usize;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn order(&self, epoch: u64) -> Result<Order<usize>> {
        let indices = self.indices.clone();
        let order = Drawing::new(self.seed, epoch).permutation(indices.len())?;
        Ok(Box::new(order.map(move |at| Ok(indices[at?]))))
    }
}

/// Samples drawn as often as their weights say: with replacement each draw is independent; without,
/// none comes twice in an epoch.
///
/// ```
/// use plimsoll_data::{Sampler, WeightedRandomSampler};
/// // Sample 1 three times as often as sample 0, sample 2 never.
/// let sampler = WeightedRandomSampler::new(&[1.0, 3.0, 0.0], 1000, true, 7)?;
/// let drawn: Vec<_> = sampler.order(0)?.map(Result::unwrap).collect();
/// assert!(drawn.iter().filter(|&&at| at == 1).count() > 700);
/// assert!(!drawn.contains(&2));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeightedRandomSampler {
    weights: Tensor,
    num_samples: usize,
    replacement: bool,
    seed: u64,
}

impl WeightedRandomSampler {
    /// Draws `num_samples` an epoch by these weights, which need not add up to 1.
    #[track_caller]
    pub fn new(
        weights: &[f64],
        num_samples: usize,
        replacement: bool,
        seed: u64,
    ) -> Result<WeightedRandomSampler> {
        let refused =
            |why: String| Err(Error::invalid_argument(why).in_operation("WeightedRandomSampler"));
        if num_samples == 0 {
            let why = "num_samples should be a positive integer value, but got num_samples=0";
            return refused(why.to_string());
        }
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
            return refused(format!(
                "weight {at} is {}; weights must be finite and not negative",
                weights[at]
            ));
        }
        let possible = weights.iter().filter(|&&weight| weight > 0.0).count();
        if possible == 0 || (!replacement && possible < num_samples) {
            return refused(format!(
                "{num_samples} samples cannot be drawn from {possible} weights above 0; draw fewer, or with \
                 replacement"
            ));
        }
        let weights = Tensor::from_slice(weights, &[weights.len() as i64], Device::cpu())?;
        debug_assert_eq!(weights.dtype(), DType::F64);
        Ok(WeightedRandomSampler { weights, num_samples, replacement, seed })
    }
}

impl Sampler for WeightedRandomSampler {
    type Item = usize;

    fn len(&self) -> usize {
        self.num_samples
    }

    fn order(&self, epoch: u64) -> Result<Order<usize>> {
        let drawing = Drawing::new(self.seed, epoch);
        Ok(Box::new(drawing.weighted(&self.weights, self.num_samples, self.replacement)?))
    }
}

/// Another sampler's numbers in batches of one size.
///
/// ```
/// use plimsoll_data::{BatchSampler, Sampler, SequentialSampler};
/// let batches = |drop_last| {
///     let sampler = BatchSampler::new(SequentialSampler::new(5), 2, drop_last).unwrap();
///     sampler.order(0).unwrap().map(Result::unwrap).collect::<Vec<_>>()
/// };
/// assert_eq!(batches(false), [vec![0, 1], vec![2, 3], vec![4]]);
/// assert_eq!(batches(true), [vec![0, 1], vec![2, 3]]);
/// ```
pub struct BatchSampler {
    sampler: Box<dyn Sampler<Item = usize>>,
    batch_size: usize,
    drop_last: bool,
}

impl fmt::Debug for BatchSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchSampler { sampler, batch_size, drop_last } = self;
        write!(f, "BatchSampler({} samples, {batch_size}, {drop_last})", sampler.len())
    }
}

impl BatchSampler {
    /// Batches of `batch_size`; the last one may be smaller, or is left out with `drop_last`.
    pub fn new(
        sampler: impl Sampler<Item = usize>,
        batch_size: usize,
        drop_last: bool,
    ) -> Result<BatchSampler> {
        let batch_size = checked_batch_size(batch_size)?;
        Ok(BatchSampler { sampler: Box::new(sampler), batch_size, drop_last })
    }
}

pub(crate) fn checked_batch_size(batch_size: usize) -> Result<usize> {
    if batch_size == 0 {
        let why = "batch_size should be a positive integer value, but got batch_size=0";
        return Err(Error::invalid_argument(why).in_operation("BatchSampler"));
    }
    Ok(batch_size)
}

impl Sampler for BatchSampler {
    type Item = Vec<usize>;

    fn len(&self) -> usize {
        match self.drop_last {
            true => self.sampler.len() / self.batch_size,
            false => self.sampler.len().div_ceil(self.batch_size),
        }
    }

    fn order(&self, epoch: u64) -> Result<Order<Vec<usize>>> {
        let mut samples = self.sampler.order(epoch)?;
        let (size, drop_last) = (self.batch_size, self.drop_last);
        Ok(Box::new(std::iter::from_fn(move || {
            let batch: Result<Vec<usize>> = samples.by_ref().take(size).collect();
            match batch {
                Ok(batch) if batch.is_empty() || (drop_last && batch.len() < size) => None,
                batch => Some(batch),
            }
        })))
    }
}
