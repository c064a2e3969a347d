//! Operations that PyTorch keeps for its own compositions (`torch.ops.aten`), some of them with an
//! underscore before their names; made of others here.

use plimsoll_core::{DType, Error, Result, Scalar, normalize_dim};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use super::reduce::{SumOptions, TruthOptions};
use crate::Tensor;
use crate::api::composed;

options! {
    /// How [`Tensor::safe_softmax_with`] computes.
    SafeSoftmaxOptions {
        /// The dtype to compute in, and of the result.
        dtype: Option<DType> = None,
    }
}

impl Tensor {
    /// The derivative of softmax: the gradient of its input from that of `output`, its result.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let grad = Tensor::arange(0, 2, 1, DType::F32)?;
    /// let y = Tensor::full(&[2], 0.5, DType::F32)?;
    /// let x = Tensor::softmax_backward_data(&grad, &y, 0, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [-0.25, 0.25]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_backward_data(
        grad_output: &Tensor,
        output: &Tensor,
        dim: i64,
        input_dtype: DType,
    ) -> Result<Tensor> {
        const OP: &str = "_softmax_backward_data";
        composed(OP, Site::caller(), || {
            if grad_output.dtype() != output.dtype() {
                let why = format!(
                    "the gradient is {} and the output {}; convert one with `to`",
                    grad_output.dtype(),
                    output.dtype()
                );
                return Err(Error::dtype(OP, why));
            }
            // Halves are rounded once.
            let half = matches!(output.dtype(), DType::F16 | DType::BF16);
            let wide = |x: &Tensor| if half { x.float() } else { Ok(x.clone()) };
            let output = wide(output)?;
            let weighted = wide(grad_output)?.mul(&output)?;
            let sum = weighted.sum_with(SumOptions::from(dim).keepdim(true))?;
            weighted.sub(&output.mul(&sum)?)?.to(input_dtype)
        })
    }

    /// The softmax along `dim`, and zeros where all elements are minus infinity.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::full(&[2], f64::NEG_INFINITY, DType::F32)?;
    /// assert_eq!(x.safe_softmax(0)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn safe_softmax(&self, dim: i64) -> Result<Tensor> {
        self.safe_softmax_with(dim, SafeSoftmaxOptions::new())
    }

    /// [`Tensor::safe_softmax`] in another dtype.
    #[track_caller]
    pub fn safe_softmax_with(&self, dim: i64, options: SafeSoftmaxOptions) -> Result<Tensor> {
        composed("_safe_softmax", Site::caller(), || {
            let x = self.to(options.dtype.unwrap_or(self.dtype()))?;
            if x.numel() == 0 {
                return x.softmax(dim);
            }
            let lowest = x.detach().eq(f64::NEG_INFINITY)?;
            let none = lowest.all_with(TruthOptions::from(dim).keepdim(true))?;
            // Zeros go in too where zeros come out, so that the derivative is no NaN.
            Tensor::where_(&none, 0.0, &Tensor::where_(&none, 0.0, &x)?.softmax(dim)?)
        })
    }

    /// The gradient of dropout's input: that of its result times the mask and the scale.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (grad, mask) = (Tensor::ones(&[2], DType::F32)?, Tensor::ones(&[2], DType::Bool)?);
    /// let x = Tensor::native_dropout_backward(&grad, &mask, 2.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn native_dropout_backward(
        grad_output: &Tensor,
        mask: &Tensor,
        scale: f64,
    ) -> Result<Tensor> {
        const OP: &str = "native_dropout_backward";
        if mask.dtype() != DType::Bool {
            return Err(Error::dtype(OP, format!("the mask is bool, not {}", mask.dtype())));
        }
        composed(OP, Site::caller(), || grad_output.mul(mask)?.mul(scale))
    }

    /// Tensors cut into as many chunks along `dim`, the last filled up with zeros, and the chunks
    /// of all joined side by side.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (a, b) = (Tensor::ones(&[3], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// let y = Tensor::chunk_cat(&[&a, &b], 0, 2)?;
    /// assert_eq!((y.shape(), y.to_vec::<i64>()?), (&[2, 3][..], vec![1, 1, 1, 1, 0, 1]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn chunk_cat(tensors: &[&Tensor], dim: i64, num_chunks: i64) -> Result<Tensor> {
        const OP: &str = "_chunk_cat";
        composed(OP, Site::caller(), || {
            let wrong = |why: String| Err(Error::shape(OP, why));
            let Some(first) = tensors.first() else {
                return wrong("there must be a tensor at least".to_string());
            };
            if num_chunks < 1 {
                return wrong(format!("there must be a chunk at least, not {num_chunks}"));
            }
            let along = normalize_dim(OP, dim, first.rank())?;
            let mut parts = Vec::with_capacity(tensors.len());
            for tensor in tensors {
                let fits = tensor.rank() > along
                    && tensor.numel() > 0
                    && tensor.dtype() == first.dtype()
                    && tensor.shape()[..along] == first.shape()[..along];
                if !fits {
                    return wrong(format!(
                        "a tensor of shape {:?} ({}) does not fit one of shape {:?} ({})",
                        tensor.shape(),
                        tensor.dtype(),
                        first.shape(),
                        first.dtype()
                    ));
                }
                parts.push(chunked(tensor, along, num_chunks)?);
            }
            let parts: SmallVec<[&Tensor; 4]> = parts.iter().collect();
            Tensor::cat(&parts, along as i64 + 1)
        })
    }

    /// The elements at some places as [`Tensor::index`] gives them, and `fill` where the mask does
    /// not hold: places there may lie outside.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// let places = Tensor::from_slice(&[2i64, 9], &[2], Device::cpu())?;
    /// let y = x.unsafe_masked_index(&places.lt(3)?, &[Some(&places)], 7)?;
    /// assert_eq!(y.to_vec::<i64>()?, [2, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsafe_masked_index(
        &self,
        mask: &Tensor,
        indices: &[Option<&Tensor>],
        fill: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let fill = fill.into();
        composed("_unsafe_masked_index", Site::caller(), || {
            let inside = inside(self, indices)?;
            let inside: Vec<Option<&Tensor>> = inside.iter().map(Option::as_ref).collect();
            self.index(&inside)?.masked_fill(&mask.logical_not()?, fill)
        })
    }

    /// A copy with values added at some places where the mask holds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, one) = (Tensor::zeros(&[3], DType::I64)?, Tensor::ones(&[2], DType::I64)?);
    /// let places = Tensor::from_slice(&[2i64, 9], &[2], Device::cpu())?;
    /// let y = x.unsafe_masked_index_put_accumulate(&places.lt(3)?, &[Some(&places)], &one)?;
    /// assert_eq!(y.to_vec::<i64>()?, [0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsafe_masked_index_put_accumulate(
        &self,
        mask: &Tensor,
        indices: &[Option<&Tensor>],
        values: &Tensor,
    ) -> Result<Tensor> {
        composed("_unsafe_masked_index_put_accumulate", Site::caller(), || {
            let inside = inside(self, indices)?;
            let inside: Vec<Option<&Tensor>> = inside.iter().map(Option::as_ref).collect();
            let values = values.masked_fill(&mask.logical_not()?, 0)?;
            self.index_put(&inside, &values, true)
        })
    }
}

/// Places brought into the tensor.
fn inside(x: &Tensor, indices: &[Option<&Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let one = |(dim, index): (usize, &Option<&Tensor>)| {
        let Some(index) = index else { return Ok(None) };
        let size = x.shape().get(dim).copied().unwrap_or(1) as i64;
        index.clamp(-size, size - 1).map(Some)
    };
    indices.iter().enumerate().map(one).collect()
}

/// `x` filled up to whole chunks along `dim`, each a line.
fn chunked(x: &Tensor, dim: usize, chunks: i64) -> Result<Tensor> {
    let len = x.shape()[dim] as i64;
    let missing = (chunks - len % chunks) % chunks;
    let mut padding = vec![0; 2 * (x.rank() - dim)];
    if let Some(last) = padding.last_mut() {
        *last = missing;
    }
    let whole = if missing > 0 { x.constant_pad_nd(&padding, 0)? } else { x.clone() };
    let mut sizes: Vec<i64> = x.shape()[..dim].iter().map(|&size| size as i64).collect();
    sizes.extend([chunks, -1]);
    whole.reshape(&sizes)
}
