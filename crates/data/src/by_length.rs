//! Batches of samples of similar length, so that little is padded. Samples are shuffled, cut into
//! buckets of several batches, sorted by length inside each, and the batches of a bucket come in
//! random order: samples meet others of their length, and yet other ones each epoch.

use std::sync::Arc;

use plimsoll_tensor::{Error, Result};

use crate::drawing::{Drawing, Numbers};
use crate::sampler::{Order, Sampler, checked_batch_size};

plimsoll_tensor::options! {
    /// How [`LengthSampler`] makes batches.
    LengthOptions {
        /// Samples in a batch.
        batch_size: usize = 1,
        /// Batches that are sorted together. More give less padding and less chance.
        bucket_batches: usize = 100,
        /// Whether a last batch that is not full is left out.
        drop_last: bool = false,
        /// Where random numbers start from.
        seed: u64 = 0,
    }
}

/// Batches of samples of similar length.
///
/// ```
/// use plimsoll_data::{LengthOptions, LengthSampler, Sampler};
/// let lengths: Vec<usize> = (0..64).map(|n| n * 7 % 64).collect();
/// let options = LengthOptions::new().batch_size(8usize).bucket_batches(8usize);
/// let sampler = LengthSampler::new(lengths.clone(), options)?;
/// for batch in sampler.order(0)? {
///     let sizes: Vec<usize> = batch?.iter().map(|&at| lengths[at]).collect();
///     // All 64 samples are one bucket, so that a batch spans eight lengths.
///     assert_eq!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap(), 7);
/// }
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LengthSampler {
    lengths: Arc<[usize]>,
    options: LengthOptions,
}

impl LengthSampler {
    /// For samples of these lengths.
    pub fn new(lengths: Vec<usize>, options: LengthOptions) -> Result<LengthSampler> {
        checked_batch_size(options.batch_size)?;
        if options.bucket_batches == 0 {
            let why =
                "bucket_batches must be at least 1: it is how many batches are sorted together";
            return Err(Error::invalid_argument(why).in_operation("LengthSampler"));
        }
        Ok(LengthSampler { lengths: lengths.into(), options })
    }
}

impl Sampler for LengthSampler {
    type Item = Vec<usize>;

    fn len(&self) -> usize {
        match self.options.drop_last {
            true => self.lengths.len() / self.options.batch_size,
            false => self.lengths.len().div_ceil(self.options.batch_size),
        }
    }

    fn order(&self, epoch: u64) -> Result<Order<Vec<usize>>> {
        let drawing = Drawing::new(self.options.seed, epoch);
        let samples = drawing.permutation(self.lengths.len())?;
        let mut buckets = Buckets {
            lengths: self.lengths.clone(),
            options: self.options.clone(),
            drawing,
            samples,
        };
        let buckets = std::iter::from_fn(move || buckets.next_bucket().transpose());
        Ok(Box::new(buckets.flat_map(|bucket| match bucket {
            Ok(batches) => batches.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })))
    }
}

/// What is left of an epoch.
struct Buckets {
    lengths: Arc<[usize]>,
    options: LengthOptions,
    drawing: Drawing,
    samples: Numbers,
}

impl Buckets {
    /// The next bucket's batches in random order; `None` after the last.
    fn next_bucket(&mut self) -> Result<Option<Vec<Vec<usize>>>> {
        let LengthOptions { batch_size, bucket_batches, drop_last, .. } = self.options;
        let count = batch_size.saturating_mul(bucket_batches);
        let mut bucket: Vec<usize> = self.samples.by_ref().take(count).collect::<Result<_>>()?;
        if bucket.is_empty() {
            return Ok(None);
        }
        // Equal lengths stay in their random order: the sort is stable.
        bucket.sort_by_key(|&at| self.lengths[at]);
        let mut batches: Vec<Vec<usize>> = bucket.chunks(batch_size).map(Vec::from).collect();
        if drop_last {
            batches.retain(|batch| batch.len() == batch_size);
        }
        let order = self.drawing.permutation(batches.len())?;
        order.map(|at| Ok(std::mem::take(&mut batches[at?]))).collect::<Result<_>>().map(Some)
    }
}
