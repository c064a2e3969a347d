//! Parts of a dataset: chosen samples of it ([`Subset`]), and all of it in random parts
//! ([`random_split`], by PyTorch's rules).

use std::sync::Arc;

use plimsoll_tensor::{Error, Result};

use crate::dataset::{Dataset, out_of_range};
use crate::drawing::Drawing;

/// Some samples of a dataset.
///
/// ```
/// use plimsoll_data::{Dataset, InMemory, Subset};
/// use std::sync::Arc;
///
/// let letters = Arc::new(InMemory(vec!['a', 'b', 'c']));
/// let some = Subset::new(letters, vec![2, 0])?;
/// assert_eq!((some.len(), some.get(0)?), (2, 'c'));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Subset<D> {
    dataset: Arc<D>,
    indices: Vec<usize>,
}

impl<D: Dataset> Subset<D> {
    /// The samples with these numbers, in this order; a number may come twice.
    pub fn new(dataset: Arc<D>, indices: Vec<usize>) -> Result<Subset<D>> {
        match indices.iter().find(|&&index| index >= dataset.len()) {
            Some(&index) => Err(out_of_range(index, dataset.len())),
            None => Ok(Subset { dataset, indices }),
        }
    }

    /// The numbers of its samples in the whole dataset.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The whole dataset.
    pub fn dataset(&self) -> &Arc<D> {
        &self.dataset
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Sample = D::Sample;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<D::Sample> {
        match self.indices.get(index) {
            Some(&at) => self.dataset.get(at),
            None => Err(out_of_range(index, self.indices.len())),
        }
    }
}

/// How large the parts of [`random_split`] are.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// So many samples each; together all of them.
    Counts(Vec<usize>),
    /// Such shares of the dataset; together 1. What rounding leaves goes to the parts in turn.
    Fractions(Vec<f64>),
}

impl<const N: usize> From<[usize; N]> for Lengths {
    fn from(counts: [usize; N]) -> Lengths {
        Lengths::Counts(counts.into())
    }
}

impl<const N: usize> From<[f64; N]> for Lengths {
    fn from(fractions: [f64; N]) -> Lengths {
        Lengths::Fractions(fractions.into())
    }
}

impl From<Vec<usize>> for Lengths {
    fn from(counts: Vec<usize>) -> Lengths {
        Lengths::Counts(counts)
    }
}

impl From<Vec<f64>> for Lengths {
    fn from(fractions: Vec<f64>) -> Lengths {
        Lengths::Fractions(fractions)
    }
}

impl Lengths {
    /// The sizes for a dataset of `len` samples.
    fn counts(self, len: usize) -> Result<Vec<usize>> {
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation("random_split"));
        let counts = match self {
            Lengths::Counts(counts) => counts,
            Lengths::Fractions(fractions) => {
                if let Some(at) = fractions.iter().position(|f| !(0.0..=1.0).contains(f)) {
                    return refused(format!("Fraction at index {at} is not between 0 and 1"));
                }
                let all: f64 = fractions.iter().sum();
                if !(1.0 - 1e-9..=1.0).contains(&all) {
                    return refused(format!("the fractions add up to {all}, and must to 1"));
                }
                let mut counts: Vec<usize> =
                    fractions.iter().map(|f| (len as f64 * f).floor() as usize).collect();
                let left = len.saturating_sub(counts.iter().sum());
                let parts = counts.len();
                (0..left).for_each(|extra| counts[extra % parts] += 1);
                counts
            }
        };
        let all: usize = counts.iter().sum();
        if all != len {
            return refused(format!(
                "Sum of input lengths does not equal the length of the input dataset: {all} is not {len}"
            ));
        }
        Ok(counts)
    }
}

/// All samples of a dataset in random parts that share none, the same for the same seed.
///
/// ```
/// use plimsoll_data::{Dataset, InMemory, random_split};
/// use std::sync::Arc;
///
/// let all = Arc::new(InMemory((0..10).collect::<Vec<i64>>()));
/// let parts = random_split(all.clone(), [0.7, 0.3], 42)?;
/// assert_eq!((parts[0].len(), parts[1].len()), (7, 3));
/// assert!(random_split(all, [5, 6], 42).is_err());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn random_split<D: Dataset>(
    dataset: Arc<D>,
    lengths: impl Into<Lengths>,
    seed: u64,
) -> Result<Vec<Subset<D>>> {
    let counts = lengths.into().counts(dataset.len())?;
    let mut order = Drawing::new(seed, 0).permutation(dataset.len())?;
    let mut part = |count: usize| {
        let indices = order.by_ref().take(count).collect::<Result<_>>()?;
        Ok(Subset { dataset: dataset.clone(), indices })
    };
    counts.into_iter().map(&mut part).collect()
}
