//! Rows of a table by index.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::composed;
use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, first};
use crate::ops::embedding::{Embedding, EmbeddingBag};
use crate::prepare::{apply, apply_one};
use plimsoll_kernels::cpu::embedding_bag::BagArgs;
pub use plimsoll_kernels::cpu::embedding_bag::BagMode;

options! {
    /// What [`Tensor::embedding_with`] does with gradients.
    EmbeddingOptions {
        /// The index whose row gets none; negative ones count from the end.
        padding_idx: Option<i64> = None,
        /// Whether each row's is divided by how often it was taken.
        scale_grad_by_freq: bool = false,
    }
}

options! {
    /// How [`Tensor::embedding_bag_with`] computes.
    EmbeddingBagOptions<'a> {
        /// What becomes of a bag's rows.
        bag_mode: BagMode = BagMode::Mean,
        /// Whether each row's gradient is divided by how often it was taken.
        scale_grad_by_freq: bool = false,
        /// Multiplies the row of each index; for sums.
        per_sample_weights: Option<&'a Tensor> = None,
        /// Whether the last offset is where the last bag ends.
        include_last_offset: bool = false,
        /// The index that counts for nothing; negative ones count from the end.
        padding_idx: Option<i64> = None,
    }
}

impl Tensor {
    /// The rows of this table at `indices`: one more dimension than they have.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2], Device::cpu())?;
    /// let indices = Tensor::from_slice(&[1i64, 1, 0], &[3], Device::cpu())?;
    /// assert_eq!(table.embedding(&indices)?.to_vec::<f32>()?, [3.0, 4.0, 3.0, 4.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn embedding(&self, indices: &Tensor) -> Result<Tensor> {
        self.embedding_with(indices, EmbeddingOptions::new())
    }

    /// [`Tensor::embedding`], with a row that learns nothing, or gradients by frequency.
    #[track_caller]
    pub fn embedding_with(&self, indices: &Tensor, options: EmbeddingOptions) -> Result<Tensor> {
        let EmbeddingOptions { padding_idx, scale_grad_by_freq } = options;
        // Of no index too, unlike other operations.
        if !matches!(indices.dtype(), DType::I64 | DType::I32) {
            let why = "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; \
                       but got";
            return Err(Error::dtype("embedding", format!("{why} {}", indices.dtype())));
        }
        let padding = padding("embedding", self, padding_idx)?;
        let op = Embedding { padding, by_frequency: scale_grad_by_freq };
        let site = Site::caller();
        composed("embedding", site, || {
            apply_one(&op, &[&self.in_rows()?, &indices.contiguous()?], site)
        })
    }

    /// The mean of the rows of this table in each bag of `indices`; bags start at `offsets`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3, 1], Device::cpu())?;
    /// let indices = Tensor::from_slice(&[0i64, 1, 2], &[3], Device::cpu())?;
    /// let offsets = Tensor::from_slice(&[0i64, 1], &[2], Device::cpu())?;
    /// assert_eq!(table.embedding_bag(&indices, &offsets)?.to_vec::<f32>()?, [1.0, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn embedding_bag(&self, indices: &Tensor, offsets: &Tensor) -> Result<Tensor> {
        self.embedding_bag_with(indices, offsets, EmbeddingBagOptions::new())
    }

    /// [`Tensor::embedding_bag`], as a sum, mean or maximum, with weights or without a padding
    /// index.
    #[track_caller]
    pub fn embedding_bag_with(
        &self,
        indices: &Tensor,
        offsets: &Tensor,
        options: EmbeddingBagOptions<'_>,
    ) -> Result<Tensor> {
        let weights = options.per_sample_weights;
        if weights.is_some() && options.bag_mode != BagMode::Sum {
            return Err(Error::unsupported(
                "embedding_bag",
                "weights of samples are for sums; use the mode \"sum\", or leave them away",
            ));
        }
        let op = EmbeddingBag {
            args: BagArgs {
                mode: options.bag_mode,
                padding: padding("embedding_bag", self, options.padding_idx)?,
                include_last_offset: options.include_last_offset,
                weighted: weights.is_some(),
            },
            by_frequency: options.scale_grad_by_freq,
        };
        let site = Site::caller();
        let (table, indices, offsets, weights) = composed("embedding_bag", site, || {
            let weights = weights.map(Tensor::contiguous).transpose()?;
            Ok::<_, Error>((self.in_rows()?, indices.contiguous()?, offsets.contiguous()?, weights))
        })?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec::smallvec![&table, &indices, &offsets];
        inputs.extend(&weights);
        Ok(first(apply(&op, &inputs, Dest::New, site)?))
    }

    /// Itself, or a copy whose rows are contiguous.
    fn in_rows(&self) -> Result<Tensor> {
        match self.layout().strides() {
            [_, 1] => Ok(self.clone()),
            _ => self.contiguous(),
        }
    }
}

fn padding(name: &'static str, table: &Tensor, index: Option<i64>) -> Result<Option<usize>> {
    let Some(index) = index else { return Ok(None) };
    let rows = table.shape().first().copied().unwrap_or(0) as i64;
    if !(-rows..rows).contains(&index) {
        return Err(Error::index(
            name,
            format!("padding_idx {index} is out of range: the table has {rows} rows"),
        ));
    }
    Ok(Some(index.rem_euclid(rows) as usize))
}
