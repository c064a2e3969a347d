//! Pruning: weights that are set to zero and stay so while the rest is trained.
//!
//! A pruned parameter keeps its memory and its key; its mask, a byte for each element, is applied
//! to the weights once and to every gradient. PyTorch keeps a second copy of the weights
//! (`weight_orig`) and a mask of floats, and multiplies them in every call: three times the bytes.
//! Masks are chosen as PyTorch's methods of the same names choose them.

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{DType, Error, HookHandle, NoGrad, Parameter, Result, Tensor, TopkOptions};

use crate::distance::length;

/// How much is pruned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A part of all, from 0 to 1.
    Fraction(f64),
    /// So many.
    Count(usize),
}

impl Amount {
    /// How many of `size`.
    fn of(self, size: usize) -> Result<i64> {
        let count = match self {
            Amount::Fraction(part) if (0.0..=1.0).contains(&part) => {
                (part * size as f64).round_ties_even() as usize
            }
            Amount::Count(count) if count <= size => count,
            _ => {
                return Err(Error::invalid_argument(format!(
                    "{self:?} should be a fraction from 0 to 1, or a count of at most {size}"
                ))
                .in_operation("prune"));
            }
        };
        Ok(count as i64)
    }
}

/// A parameter some of whose elements are zero and stay so.
///
/// ```
/// use plimsoll_nn::prune::{Amount, l1_unstructured};
/// use plimsoll_nn::Linear;
/// let layer = Linear::new(10, 10)?;
/// let pruned = l1_unstructured(&layer.weight, Amount::Fraction(0.3))?;
/// assert_eq!(pruned.count()?, 30);
/// assert_eq!(layer.weight.tensor().eq(0.0)?.sum()?.item::<i64>()?, 30);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Pruned {
    parameter: Parameter,
    mask: Tensor,
    hook: HookHandle,
}

impl Pruned {
    /// Prunes by a mask of one's own: what is false or zero goes.
    #[track_caller]
    pub fn custom(parameter: &Parameter, mask: &Tensor) -> Result<Pruned> {
        let tensor = parameter.tensor();
        if mask.shape() != tensor.shape() {
            let (mask, own) = (mask.shape(), tensor.shape());
            let what = format!("the mask has the shape {mask:?}, and the parameter {own:?}");
            return Err(Error::shape("prune", what));
        }
        with_site(Site::caller(), || {
            let plain = NoGrad::enter();
            let mask = mask.detach().to(DType::Bool)?;
            let gone = mask.logical_not()?.to(tensor.device())?;
            tensor.masked_fill_(&gone, 0.0)?;
            drop(plain);
            let hook = tensor.register_hook(move |grad| {
                grad.masked_fill(&gone.to(grad.device())?, 0.0).map(Some)
            })?;
            Ok(Pruned { parameter: parameter.clone(), mask, hook })
        })
    }

    /// What is kept.
    pub fn mask(&self) -> &Tensor {
        &self.mask
    }

    /// The parameter.
    pub fn parameter(&self) -> &Parameter {
        &self.parameter
    }

    /// How many elements are pruned.
    pub fn count(&self) -> Result<usize> {
        let kept = self.mask.sum()?.to_scalar()?.to_i64();
        Ok(self.mask.numel() - kept as usize)
    }

    /// Lets the elements be trained again. They are zero until then.
    pub fn remove(self) {
        self.hook.remove();
    }
}

/// A mask of the parameter's shape without the elements of the least scores.
fn without_least(scores: &Tensor, count: i64) -> Result<Tensor> {
    let flat = scores.reshape(&[-1])?;
    let mask = flat.ones_like_with(DType::Bool)?;
    if count > 0 {
        let (_, least) = flat.topk_with(count, TopkOptions::new().largest(false))?;
        mask.index_fill_(0, &least, 0)?;
    }
    let sizes: Vec<i64> = scores.shape().iter().map(|&size| size as i64).collect();
    mask.view(&sizes[..])
}

/// Prunes the elements that are nearest to zero.
#[track_caller]
pub fn l1_unstructured(parameter: &Parameter, amount: Amount) -> Result<Pruned> {
    let scores = parameter.tensor().detach().abs()?;
    Pruned::custom(parameter, &without_least(&scores, amount.of(scores.numel())?)?)
}

/// Prunes elements at random.
#[track_caller]
pub fn random_unstructured(parameter: &Parameter, amount: Amount) -> Result<Pruned> {
    let scores = parameter.tensor().detach().rand_like()?;
    Pruned::custom(parameter, &without_least(&scores, amount.of(scores.numel())?)?)
}

/// A mask without the slices of the least scores along a dimension.
fn without_slices(
    parameter: &Parameter,
    scores: &Tensor,
    amount: Amount,
    dim: i64,
) -> Result<Tensor> {
    let tensor = parameter.tensor();
    let kept = without_least(scores, amount.of(scores.numel())?)?;
    let rank = tensor.rank();
    let dim = if dim < 0 { dim + rank as i64 } else { dim } as usize;
    let shape: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
    let broad: Vec<i64> = (0..rank).map(|at| if at == dim { shape[at] } else { 1 }).collect();
    kept.view(&broad[..])?.expand(&shape)?.contiguous()
}

/// Prunes the slices along `dim` of the least norm of order `n`: whole rows, columns or channels.
#[track_caller]
pub fn ln_structured(parameter: &Parameter, amount: Amount, n: f64, dim: i64) -> Result<Pruned> {
    let tensor = parameter.tensor().detach();
    let slices = tensor.size(dim)?;
    let rows = tensor.movedim(&[dim], &[0])?.reshape(&[slices, -1])?;
    let scores = length(&rows, n, 1, false)?;
    Pruned::custom(parameter, &without_slices(parameter, &scores, amount, dim)?)
}

/// Prunes slices along `dim` at random.
#[track_caller]
pub fn random_structured(parameter: &Parameter, amount: Amount, dim: i64) -> Result<Pruned> {
    let tensor = parameter.tensor().detach();
    let scores = Tensor::rand(&[tensor.size(dim)?], (DType::F32, tensor.device()))?;
    Pruned::custom(parameter, &without_slices(parameter, &scores, amount, dim)?)
}

/// Prunes the elements of all parameters together that are nearest to zero.
#[track_caller]
pub fn global_l1_unstructured(parameters: &[Parameter], amount: Amount) -> Result<Vec<Pruned>> {
    let scores = parameters
        .iter()
        .map(|parameter| parameter.tensor().detach().abs()?.reshape(&[-1]))
        .collect::<Result<Vec<_>>>()?;
    let all = Tensor::cat(&scores.iter().collect::<Vec<_>>(), 0)?;
    let mask = without_least(&all, amount.of(all.numel())?)?;
    let mut start = 0;
    let mut pruned = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let tensor = parameter.tensor();
        let sizes: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
        let own = mask.narrow(0, start, tensor.numel() as i64)?.reshape(&sizes)?;
        pruned.push(Pruned::custom(parameter, &own)?);
        start += tensor.numel() as i64;
    }
    Ok(pruned)
}
