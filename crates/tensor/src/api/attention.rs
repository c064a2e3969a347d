//! Attention.

use plimsoll_core::{DType, Error, Result, broadcast_shapes};
use plimsoll_memory::{Site, enter_operation};
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::ops::attention::Attention;
use crate::prepare::apply;
use plimsoll_kernels::cpu::attention::AttentionArgs;

const NAME: &str = "scaled_dot_product_attention";

options! {
    /// How [`Tensor::scaled_dot_product_attention_with`] computes.
    ScaledDotProductAttentionOptions<'a> {
        /// Which keys each query sees (bool), or what is added to the scores.
        attn_mask: Option<&'a Tensor> = None,
        /// Whether queries see no keys after their own place.
        is_causal: bool = false,
        /// Multiplies the scores; `None` is one over the root of the width.
        scale: Option<f64> = None,
        /// Whether several heads of queries share a head of keys and values.
        enable_gqa: bool = false,
    }
}

impl Tensor {
    /// `softmax(query key^T / sqrt(width)) value` for this query, of shape [.., queries, width];
    /// memory grows with the operands, and not with queries times keys.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1, 3, 2], DType::F32)?;
    /// assert_eq!(x.scaled_dot_product_attention(&x, &x)?.to_vec::<f32>()?, [1.0; 6]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn scaled_dot_product_attention(&self, key: &Tensor, value: &Tensor) -> Result<Tensor> {
        let options = ScaledDotProductAttentionOptions::new();
        self.scaled_dot_product_attention_with(key, value, options)
    }

    /// [`Tensor::scaled_dot_product_attention`] with a mask, of the past alone, with another scale
    /// or with shared heads.
    #[track_caller]
    pub fn scaled_dot_product_attention_with(
        &self,
        key: &Tensor,
        value: &Tensor,
        options: ScaledDotProductAttentionOptions<'_>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        let _named = enter_operation(NAME);
        let ScaledDotProductAttentionOptions { attn_mask, is_causal, scale, enable_gqa } = options;
        if is_causal && attn_mask.is_some() {
            return Err(Error::invalid_argument(
                "is_causal is a mask already; leave attn_mask away, or put the past into it",
            )
            .in_operation(NAME));
        }
        if [self, key, value].iter().any(|tensor| tensor.rank() < 2) {
            return Err(Error::shape(
                NAME,
                format!(
                    "query, key and value need two or more dimensions, and have the shapes {:?}, {:?} and {:?}",
                    self.shape(),
                    key.shape(),
                    value.shape()
                ),
            ));
        }
        let group = if enable_gqa { shared_heads(self, key)? } else { 1 };
        let [query, key, value] = broadcast([self, key, value], group)?;
        let [queries, keys] = [&query, &key].map(|x| x.shape()[x.rank() - 2]);
        let mask = match attn_mask {
            Some(mask) => {
                let mut sizes: SmallVec<[i64; 6]> = sizes(&query.shape()[..query.rank() - 2]);
                sizes.extend([queries as i64, keys as i64]);
                Some(mask_in_dtype_of(&query, mask)?.expand(&sizes)?)
            }
            None => None,
        };
        let width = query.shape()[query.rank() - 1];
        let args = AttentionArgs {
            causal: is_causal,
            // Of no width all scores are 0, whatever they are multiplied by.
            scale: scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt()),
            group,
            mask: mask.is_some(),
        };
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec::smallvec![&query, &key, &value];
        inputs.extend(&mask);
        Ok(first(apply(&Attention(args), &inputs, Dest::New, site)?))
    }
}

/// A mask of float32 in the query's dtype, as PyTorch takes it. What float16 cannot hold becomes
/// the most that it can, and no infinity, which would mask.
fn mask_in_dtype_of(query: &Tensor, mask: &Tensor) -> Result<Tensor> {
    const F16_MAX: f64 = 65_504.0;
    match (mask.dtype(), query.dtype()) {
        (DType::F32, DType::F16) => {
            let held = mask.clamp(-F16_MAX, F16_MAX)?;
            Tensor::where_(&mask.isinf()?, mask, &held)?.to(DType::F16)
        }
        (DType::F32, dtype @ (DType::BF16 | DType::F64)) => mask.to(dtype),
        _ => Ok(mask.clone()),
    }
}

fn sizes(shape: &[usize]) -> SmallVec<[i64; 6]> {
    shape.iter().map(|&size| size as i64).collect()
}

/// Heads of queries to a head of keys.
fn shared_heads(query: &Tensor, key: &Tensor) -> Result<usize> {
    let heads = |x: &Tensor| x.rank().checked_sub(3).map_or(1, |dim| x.shape()[dim]);
    let (queries, keys) = (heads(query), heads(key));
    if keys == 0 || queries % keys != 0 {
        return Err(Error::shape(
            NAME,
            format!("{queries} heads of queries cannot share {keys} heads of keys evenly"),
        ));
    }
    Ok(queries / keys)
}

/// The three with the same dimensions before the last two, heads of keys apart if they are shared.
fn broadcast(tensors: [&Tensor; 3], group: usize) -> Result<[Tensor; 3]> {
    let kept = if group > 1 { 3 } else { 2 };
    let lead = |x: &Tensor| x.rank() - kept.min(x.rank());
    let leads: SmallVec<[&[usize]; 3]> =
        tensors.iter().map(|tensor| &tensor.shape()[..lead(tensor)]).collect();
    let common = broadcast_shapes(NAME, &leads)?;
    let expanded = |x: &Tensor| -> Result<Tensor> {
        let mut whole = sizes(&common);
        whole.extend(sizes(&x.shape()[lead(x)..]));
        if x.shape().len() == whole.len() && sizes(x.shape()) == whole {
            return Ok(x.clone());
        }
        x.expand(&whole)
    };
    Ok([expanded(tensors[0])?, expanded(tensors[1])?, expanded(tensors[2])?])
}
