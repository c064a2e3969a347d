//! Lengths of vectors, and distances between them.

use plimsoll_tensor::{NoGrad, Result, SumOptions, Tensor};

use crate::stateless::layers;

/// The p-norm along a dimension; its gradient at 0 is 0, as PyTorch's.
pub(crate) fn length(x: &Tensor, p: f64, dim: i64, keepdim: bool) -> Result<Tensor> {
    let over = || SumOptions::new().dim(dim).keepdim(keepdim);
    if p == 1.0 {
        return x.abs()?.sum_with(over());
    }
    if p.is_infinite() {
        let over = plimsoll_tensor::ReduceOptions::new().dim(dim).keepdim(keepdim);
        return if p > 0.0 { x.abs()?.amax_with(over) } else { x.abs()?.amin_with(over) };
    }
    if p == 0.0 {
        return x.ne(0.0)?.to(x.dtype())?.sum_with(over());
    }
    let powers = if p == 2.0 { x.mul(x)? } else { x.abs()?.pow(p)? }.sum_with(over())?;
    // The root of 0 has no slope: it is taken of 1 there, and left out.
    let nothing = powers.eq(0.0)?;
    let safe = powers.masked_fill(&nothing, 1.0)?;
    let root = if p == 2.0 { safe.sqrt()? } else { safe.pow(1.0 / p)? };
    root.masked_fill(&nothing, 0.0)
}

/// `x`, or `least` where that is more; the gradient is that of `x` everywhere.
pub(crate) fn raised(x: &Tensor, least: f64) -> Result<Tensor> {
    let plain = NoGrad::enter();
    let missing = x.clamp_min(least)?.sub(x)?;
    drop(plain);
    x.add(&missing)
}

pub(crate) fn pairwise_distance(
    a: &Tensor,
    b: &Tensor,
    p: f64,
    eps: f64,
    keepdim: bool,
) -> Result<Tensor> {
    length(&a.sub(b)?.add(eps)?, p, -1, keepdim)
}

layers! {
    /// The cosine of the angle between vectors along a dimension.
    ///
    /// ```
    /// use plimsoll_nn::{CosineSimilarity, Forward};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::ones(&[2, 3], DType::F64)?;
    /// let cosine = CosineSimilarity::new().call((&x, &x.neg()?))?;
    /// assert!(cosine.allclose(&Tensor::full(&[2], -1.0, DType::F64)?)?);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    CosineSimilarity() {
        /// The dimension.
        dim: i64 = 1,
        /// The least length.
        eps: f64 = 1e-8,
    }
    prints(_of) "";
    computes(this, (a, b) = (&Tensor, &Tensor)) -> Tensor {
        let both = Tensor::broadcast_tensors(&[a, b])?;
        let unit = |x: &Tensor| x.div(&raised(&length(x, 2.0, this.dim, true)?, this.eps)?);
        unit(&both[0])?.mul(&unit(&both[1])?)?.sum_with(this.dim)
    }

    /// The norm of the differences along the last dimension.
    PairwiseDistance() {
        /// The power.
        p: f64 = 2.0,
        /// What is added to each difference.
        eps: f64 = 1e-6,
        /// Whether the dimension stays, with size 1.
        keepdim: bool = false,
    }
    prints(_of) "";
    computes(this, (a, b) = (&Tensor, &Tensor)) -> Tensor {
        pairwise_distance(a, b, this.p, this.eps, this.keepdim)
    }
}
