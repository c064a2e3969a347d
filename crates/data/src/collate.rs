//! From samples to a batch: [`Collate`] is any way, [`Stacked`] the usual one, which joins tensors
//! of one shape along a new first dimension and goes into tuples, lists and maps. What a batch is
//! to the loader is `batch.rs`.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_tensor::{DType, Device, Error, Result, Tensor};

use crate::batch::{Batch, ledger_bytes};

/// How samples become a batch. A function of the samples is one:
///
/// ```
/// use plimsoll_data::Collate;
/// use plimsoll_tensor::{Result, Tensor};
///
/// let join = |samples: Vec<Tensor>| -> Result<Tensor> {
///     Tensor::cat(&samples.iter().collect::<Vec<_>>(), 0)
/// };
/// fn is_a_way(_: &impl Collate<Tensor>) {}
/// is_a_way(&join);
/// ```
pub trait Collate<S>: Send + Sync + 'static {
    /// What it makes.
    type Batch: Batch;

    /// The bytes that the batch of these samples will take in the ledger, if that is known before
    /// it is made. A loader with a bound in bytes holds a batch back until there is room; where
    /// this is `None` it takes the largest batch so far for the answer, and a batch that turns out
    /// larger can pass the bound until somebody takes it.
    fn bytes(&self, samples: &[S]) -> Option<usize> {
        let _ = samples;
        None
    }

    /// The batch.
    fn collate(&self, samples: Vec<S>) -> Result<Self::Batch>;

    /// Whether its lines are the program's own, and so the origins of the bytes that it asks for.
    #[doc(hidden)]
    fn is_the_programs(&self) -> bool {
        true
    }
}

impl<S, B, F> Collate<S> for F
where
    B: Batch,
    F: Fn(Vec<S>) -> Result<B> + Send + Sync + 'static,
{
    type Batch = B;

    fn collate(&self, samples: Vec<S>) -> Result<B> {
        self(samples)
    }
}

/// Samples side by side along a new first dimension, by the rules of [`Stack`]; PyTorch's
/// `default_collate`.
///
/// ```
/// use plimsoll_data::{Collate, Stacked};
/// use plimsoll_tensor::{DType, Tensor};
///
/// let row = |value| Tensor::full(&[3], value, DType::F32);
/// let samples = vec![(row(1.0)?, 7i64), (row(0.0)?, 8)];
/// let (x, label) = Stacked.collate(samples)?;
/// assert_eq!((x.shape(), label.to_vec::<i64>()?), (&[2, 3][..], vec![7, 8]));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Stacked;

impl<S: Stack> Collate<S> for Stacked {
    type Batch = S::Stacked;

    fn bytes(&self, samples: &[S]) -> Option<usize> {
        Some(S::stacked_bytes(&samples.iter().collect::<Vec<_>>()))
    }

    fn collate(&self, samples: Vec<S>) -> Result<S::Stacked> {
        S::stack(samples)
    }

    fn is_the_programs(&self) -> bool {
        false
    }
}

/// Samples that can be put side by side.
///
/// Tensors of one shape and dtype become one tensor; integers one of int64, floats one of float64,
/// bools one of bool; texts stay a list. Tuples, lists of one length and maps of the same keys are
/// stacked part by part.
pub trait Stack: Sized + Send + 'static {
    /// What a list of them becomes.
    type Stacked: Batch;

    /// The bytes that the result takes in the ledger; 0 is right for samples that do not fit each
    /// other, which `stack` refuses.
    fn stacked_bytes(samples: &[&Self]) -> usize;

    /// The samples side by side.
    fn stack(samples: Vec<Self>) -> Result<Self::Stacked>;
}

/// A sample that does not fit the first one of its batch; the cause of the error that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Its place in the batch, from 0.
    pub place: usize,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sample {} of the batch does not fit the first", self.place)
    }
}

impl std::error::Error for Misfit {}

const OP: &str = "collate";

fn misfit(place: usize, what: impl fmt::Display, first: impl fmt::Display) -> Error {
    Error::shape(
        OP,
        format!(
            "the samples of a batch must be alike: sample {place} of the batch has {what}, the first one {first}; \
             pad or crop them in the dataset, or give the loader a collate function that does"
        ),
    )
    .because(Misfit { place })
}

impl Stack for Tensor {
    type Stacked = Tensor;

    fn stacked_bytes(samples: &[&Tensor]) -> usize {
        ledger_bytes(samples.iter().map(|sample| sample.nbytes()).sum())
    }

    fn stack(samples: Vec<Tensor>) -> Result<Tensor> {
        let Some(first) = samples.first() else {
            return Err(Error::invalid_argument("there are no samples").in_operation(OP));
        };
        for (place, sample) in samples.iter().enumerate() {
            if sample.shape() != first.shape() {
                let shape = |tensor: &Tensor| format!("shape {:?}", tensor.shape());
                return Err(misfit(place, shape(sample), shape(first)));
            }
            if sample.dtype() != first.dtype() {
                let dtype = |tensor: &Tensor| format!("dtype {}", tensor.dtype());
                return Err(misfit(place, dtype(sample), dtype(first)));
            }
        }
        Tensor::stack(&samples.iter().collect::<Vec<_>>(), 0)
    }
}

/// Numbers become a tensor of one dimension on the CPU.
macro_rules! numbers {
    ($($type:ty => $element:ty),*) => {
        $(
            impl Stack for $type {
                type Stacked = Tensor;

                fn stacked_bytes(samples: &[&$type]) -> usize {
                    ledger_bytes(samples.len() * size_of::<$element>())
                }

                fn stack(samples: Vec<$type>) -> Result<Tensor> {
                    let values: Vec<$element> = samples.into_iter().map(<$element>::from).collect();
                    Tensor::from_slice(&values, &[values.len() as i64], Device::cpu())
                }
            }
        )*
    };
}
numbers!(u8 => i64, i32 => i64, i64 => i64, u32 => i64, f32 => f64, f64 => f64);

impl Stack for bool {
    type Stacked = Tensor;

    fn stacked_bytes(samples: &[&bool]) -> usize {
        ledger_bytes(samples.len() * DType::Bool.size_bytes())
    }

    fn stack(samples: Vec<bool>) -> Result<Tensor> {
        Tensor::from_bools(&samples, &[samples.len() as i64], Device::cpu())
    }
}

impl Stack for String {
    type Stacked = Vec<String>;

    fn stacked_bytes(_: &[&String]) -> usize {
        0
    }

    fn stack(samples: Vec<String>) -> Result<Vec<String>> {
        Ok(samples)
    }
}

impl<A: Stack> Stack for (A,) {
    type Stacked = (A::Stacked,);

    fn stacked_bytes(samples: &[&(A,)]) -> usize {
        A::stacked_bytes(&samples.iter().map(|sample| &sample.0).collect::<Vec<_>>())
    }

    fn stack(samples: Vec<(A,)>) -> Result<(A::Stacked,)> {
        Ok((A::stack(samples.into_iter().map(|sample| sample.0).collect())?,))
    }
}

impl<A: Stack, B: Stack> Stack for (A, B) {
    type Stacked = (A::Stacked, B::Stacked);

    fn stacked_bytes(samples: &[&(A, B)]) -> usize {
        A::stacked_bytes(&samples.iter().map(|sample| &sample.0).collect::<Vec<_>>())
            + B::stacked_bytes(&samples.iter().map(|sample| &sample.1).collect::<Vec<_>>())
    }

    fn stack(samples: Vec<(A, B)>) -> Result<(A::Stacked, B::Stacked)> {
        let (a, b) = samples.into_iter().unzip();
        Ok((A::stack(a)?, B::stack(b)?))
    }
}

impl<A: Stack, B: Stack, C: Stack> Stack for (A, B, C) {
    type Stacked = (A::Stacked, B::Stacked, C::Stacked);

    fn stacked_bytes(samples: &[&(A, B, C)]) -> usize {
        A::stacked_bytes(&samples.iter().map(|sample| &sample.0).collect::<Vec<_>>())
            + B::stacked_bytes(&samples.iter().map(|sample| &sample.1).collect::<Vec<_>>())
            + C::stacked_bytes(&samples.iter().map(|sample| &sample.2).collect::<Vec<_>>())
    }

    fn stack(samples: Vec<(A, B, C)>) -> Result<(A::Stacked, B::Stacked, C::Stacked)> {
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for sample in samples {
            a.push(sample.0);
            b.push(sample.1);
            c.push(sample.2);
        }
        Ok((A::stack(a)?, B::stack(b)?, C::stack(c)?))
    }
}

impl<A: Stack> Stack for Vec<A> {
    type Stacked = Vec<A::Stacked>;

    fn stacked_bytes(samples: &[&Vec<A>]) -> usize {
        let parts = samples.iter().map(|sample| sample.len()).min().unwrap_or(0);
        let part = |at: usize| samples.iter().map(|sample| &sample[at]).collect::<Vec<_>>();
        (0..parts).map(|at| A::stacked_bytes(&part(at))).sum()
    }

    fn stack(samples: Vec<Vec<A>>) -> Result<Vec<A::Stacked>> {
        let length = samples.first().map_or(0, Vec::len);
        let mut parts: Vec<Vec<A>> = (0..length).map(|_| Vec::new()).collect();
        for (place, sample) in samples.into_iter().enumerate() {
            if sample.len() != length {
                let parts = |length: usize| format!("{length} parts");
                return Err(misfit(place, parts(sample.len()), parts(length)));
            }
            parts.iter_mut().zip(sample).for_each(|(part, value)| part.push(value));
        }
        parts.into_iter().map(A::stack).collect()
    }
}

impl<A: Stack> Stack for BTreeMap<String, A> {
    type Stacked = BTreeMap<String, A::Stacked>;

    fn stacked_bytes(samples: &[&BTreeMap<String, A>]) -> usize {
        let Some(first) = samples.first() else { return 0 };
        let of = |key: &String| samples.iter().filter_map(|s| s.get(key)).collect::<Vec<_>>();
        first.keys().map(|key| A::stacked_bytes(&of(key))).sum()
    }

    fn stack(samples: Vec<BTreeMap<String, A>>) -> Result<BTreeMap<String, A::Stacked>> {
        let keys: Vec<String> =
            samples.first().map(|first| first.keys().cloned().collect()).unwrap_or_default();
        let mut parts: Vec<Vec<A>> = keys.iter().map(|_| Vec::new()).collect();
        for (place, sample) in samples.into_iter().enumerate() {
            if !sample.keys().eq(&keys) {
                let names = format!("keys {:?}", sample.keys().collect::<Vec<_>>());
                return Err(misfit(place, names, format!("keys {keys:?}")));
            }
            parts.iter_mut().zip(sample.into_values()).for_each(|(part, value)| part.push(value));
        }
        keys.into_iter().zip(parts).map(|(key, part)| Ok((key, A::stack(part)?))).collect()
    }
}
