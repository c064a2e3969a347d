//! What a program loads from: samples by number ([`Dataset`]) or one after the other
//! ([`IterableDataset`]), and datasets made of others. Tensors and files as datasets are
//! `tensor_dataset.rs` and `mapped.rs`; parts of one are `subset.rs`.

use std::fmt;
use std::sync::Arc;

use plimsoll_tensor::{Error, Result};

/// Samples by number. Several threads ask at once.
///
/// ```
/// use plimsoll_data::Dataset;
/// use plimsoll_tensor::Result;
///
/// struct Squares(usize);
///
/// impl Dataset for Squares {
///     type Sample = i64;
///     fn len(&self) -> usize {
///         self.0
///     }
///     fn get(&self, index: usize) -> Result<i64> {
///         Ok((index * index) as i64)
///     }
/// }
///
/// assert_eq!(Squares(4).get(3)?, 9);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait Dataset: Send + Sync + 'static {
    /// One sample.
    type Sample: Send + 'static;

    /// How many samples there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sample with this number, below [`Dataset::len`].
    fn get(&self, index: usize) -> Result<Self::Sample>;
}

impl<D: Dataset + ?Sized> Dataset for Arc<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        (**self).get(index)
    }
}

impl<D: Dataset + ?Sized> Dataset for Box<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        (**self).len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        (**self).get(index)
    }
}

/// Samples that are there already. (A `Vec` is no dataset by itself: its own `get` would be hidden
/// wherever this trait is imported.)
///
/// ```
/// use plimsoll_data::{Dataset, InMemory};
/// assert_eq!(InMemory(vec!['a', 'b']).get(1)?, 'b');
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemory<S>(pub Vec<S>);

impl<S: Clone + Send + Sync + 'static> Dataset for InMemory<S> {
    type Sample = S;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<S> {
        self.0.get(index).cloned().ok_or_else(|| out_of_range(index, self.0.len()))
    }
}

/// The error of a sample that is not there.
pub(crate) fn out_of_range(index: usize, len: usize) -> Error {
    Error::index("get", format!("sample {index} is out of range for a dataset of {len}"))
}

/// The samples of one pass over a stream.
pub type Samples<S> = Box<dyn Iterator<Item = Result<S>> + Send>;

/// Samples one after the other, from a stream that cannot be asked for the n-th: a log, a socket, a
/// generator.
///
/// A loader reads it in order, on one worker at a time, so that its batches are the same for any
/// number of workers; what can be done beside the reading belongs in the collate function. (In
/// PyTorch each worker has a copy of the stream, and the program keeps them apart.)
///
/// ```
/// use plimsoll_data::{IterableDataset, Samples};
/// use plimsoll_tensor::Result;
/// use std::sync::Arc;
///
/// struct Countdown(i64);
///
/// impl IterableDataset for Countdown {
///     type Sample = i64;
///     fn iter(self: Arc<Self>, _epoch: u64) -> Result<Samples<i64>> {
///         Ok(Box::new((0..self.0).rev().map(Ok)))
///     }
/// }
///
/// let all: Vec<i64> = Arc::new(Countdown(3)).iter(0)?.collect::<Result<_>>()?;
/// assert_eq!(all, [2, 1, 0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait IterableDataset: Send + Sync + 'static {
    /// One sample.
    type Sample: Send + 'static;

    /// The samples of a pass; `epoch` counts passes from 0.
    fn iter(self: Arc<Self>, epoch: u64) -> Result<Samples<Self::Sample>>;
}

/// Several datasets one after the other, as if they were one.
///
/// ```
/// use plimsoll_data::{ConcatDataset, Dataset, InMemory};
///
/// let all = ConcatDataset::new(vec![InMemory(vec![1, 2]), InMemory(vec![3])])?;
/// assert_eq!((all.len(), all.get(2)?), (3, 3));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct ConcatDataset<D> {
    parts: Vec<D>,
    /// The number after each part's last sample.
    ends: Vec<usize>,
}

impl<D: Dataset> ConcatDataset<D> {
    /// The datasets in this order; parts of several types go in as `Box<dyn Dataset<Sample = _>>`.
    pub fn new(parts: Vec<D>) -> Result<ConcatDataset<D>> {
        if parts.is_empty() {
            let why = "datasets should not be an empty iterable: give at least one";
            return Err(Error::invalid_argument(why).in_operation("ConcatDataset"));
        }
        let ends = parts.iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        });
        Ok(ConcatDataset { ends: ends.collect(), parts })
    }
}

impl<D: Dataset> Dataset for ConcatDataset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        let part = self.ends.partition_point(|&end| end <= index);
        let begins = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        match self.parts.get(part) {
            Some(dataset) => dataset.get(index - begins),
            None => Err(out_of_range(index, self.len())),
        }
    }
}

/// Several streams one after the other, as if they were one.
///
/// ```
/// use plimsoll_data::{ChainDataset, IterableDataset, Samples};
/// use plimsoll_tensor::Result;
/// use std::sync::Arc;
///
/// struct Count(i64);
/// impl IterableDataset for Count {
///     type Sample = i64;
///     fn iter(self: Arc<Self>, _: u64) -> Result<Samples<i64>> {
///         Ok(Box::new((0..self.0).map(Ok)))
///     }
/// }
/// let chain = Arc::new(ChainDataset::new(vec![Arc::new(Count(2)), Arc::new(Count(1))]));
/// assert_eq!(chain.iter(0)?.collect::<Result<Vec<_>>>()?, [0, 1, 0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct ChainDataset<S> {
    parts: Vec<Arc<dyn IterableDataset<Sample = S>>>,
}

impl<S> fmt::Debug for ChainDataset<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChainDataset({} parts)", self.parts.len())
    }
}

impl<S: Send + 'static> ChainDataset<S> {
    /// The streams in this order.
    pub fn new<I: IterableDataset<Sample = S>>(parts: Vec<Arc<I>>) -> ChainDataset<S> {
        let erased = |part: Arc<I>| -> Arc<dyn IterableDataset<Sample = S>> { part };
        ChainDataset { parts: parts.into_iter().map(erased).collect() }
    }

    /// The same with one more stream at the end, perhaps of another type.
    #[must_use]
    pub fn then<I: IterableDataset<Sample = S>>(mut self, part: Arc<I>) -> ChainDataset<S> {
        self.parts.push(part);
        self
    }
}

impl<S: Send + 'static> IterableDataset for ChainDataset<S> {
    type Sample = S;

    fn iter(self: Arc<Self>, epoch: u64) -> Result<Samples<S>> {
        let parts = (0..self.parts.len()).map(move |at| self.parts[at].clone());
        Ok(Box::new(parts.flat_map(move |part| match part.iter(epoch) {
            Ok(samples) => samples,
            Err(error) => Box::new(std::iter::once(Err(error))),
        })))
    }
}
