//! Sorting, and what is found by it.

use plimsoll_core::{DType, Error, MemoryFormat, Result, normalize_dim};
use plimsoll_memory::Site;

use super::norm::without;
use super::options::options;
use super::scan::two;
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::Dest;
use crate::ops::sort::{Mode, Sort, TopK};
use crate::prepare::apply;

options! {
    /// How [`Tensor::sort_with`] sorts.
    SortOptions {
        /// Along which dimension.
        dim: i64 = -1,
        /// Largest first.
        descending: bool = false,
        /// Whether equal elements keep their order; they always do.
        stable: bool = false,
    }
}

impl Tensor {
    /// The elements in order along a dimension (the last), and the index that each had before.
    /// Equal elements keep their order; NaN counts as the largest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (values, indices) = x.sort()?;
    /// assert_eq!(values.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self) -> Result<(Tensor, Tensor)> {
        self.sort_with(SortOptions::new())
    }

    /// [`Tensor::sort`] along another dimension, or largest first.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (values, _) = x.sort_with(SortOptions::new().descending(true))?;
    /// assert_eq!(values.to_vec::<f32>()?, [3.0, 2.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sort_with(&self, options: SortOptions) -> Result<(Tensor, Tensor)> {
        let mut outputs = apply(&operation(self, &options)?, &[self], Dest::New, Site::caller())?;
        match (outputs.pop(), outputs.pop()) {
            (Some(indices), Some(values)) => Ok((values, indices)),
            _ => Err(plimsoll_core::Error::invalid_argument("a sort gives two tensors")
                .in_operation("sort")),
        }
    }

    /// [`Tensor::sort_with`] into `values` and `indices`.
    #[track_caller]
    pub fn sort_with_out(
        &self,
        options: SortOptions,
        values: &Tensor,
        indices: &Tensor,
    ) -> Result<()> {
        let dest = Dest::Out(&[values, indices]);
        apply(&operation(self, &options)?, &[self], dest, Site::caller()).map(drop)
    }
}

fn operation(x: &Tensor, options: &SortOptions) -> Result<Sort> {
    let dim = normalize_dim("sort", options.dim, x.rank())?;
    Ok(Sort { dim, descending: options.descending })
}

options! {
    /// Which elements [`Tensor::topk_with`] takes.
    TopkOptions {
        /// Along which dimension.
        dim: i64 = -1,
        /// The greatest, or else the least.
        largest: bool = true,
        /// Whether they come in order; they always do.
        sorted: bool = true,
    }
}

options! {
    /// Along what [`Tensor::kthvalue_with`] looks.
    KthvalueOptions {
        /// The dimension.
        dim: i64 = -1,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Along what [`Tensor::mode_with`] looks.
    ModeOptions {
        /// The dimension.
        dim: i64 = -1,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// How [`Tensor::argsort_with`] sorts.
    ArgsortOptions {
        /// Along which dimension.
        dim: i64 = -1,
        /// Largest first.
        descending: bool = false,
        /// Whether equal elements keep their order; they always do.
        stable: bool = false,
    }
}

impl Tensor {
    /// The `k` greatest elements along the last dimension in order, and where they are; NaN counts
    /// as the largest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 9.0, 4.0], &[3], Device::cpu())?;
    /// let (values, indices) = x.topk(2)?;
    /// assert_eq!(values.to_vec::<f32>()?, [9.0, 4.0]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn topk(&self, k: i64) -> Result<(Tensor, Tensor)> {
        self.topk_with(k, TopkOptions::new())
    }

    /// [`Tensor::topk`] along another dimension, or the least.
    #[track_caller]
    pub fn topk_with(&self, k: i64, options: TopkOptions) -> Result<(Tensor, Tensor)> {
        let dim = normalize_dim("topk", options.dim, self.rank())?;
        let len = self.shape().get(dim).copied().unwrap_or(1);
        if k < 0 || k as usize > len {
            return Err(Error::shape(
                "topk",
                format!("{k} elements cannot be taken of {len} along dimension {dim}"),
            ));
        }
        // Of a tensor without dimensions there is its number, even if none is asked for.
        let k = if self.rank() == 0 { 1 } else { k as usize };
        let op = TopK { k, dim, largest: options.largest };
        two(apply(&op, &[self], Dest::New, Site::caller())?)
    }

    /// The `k`-th smallest element along the last dimension, counted from 1, and where it is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 9.0, 4.0], &[3], Device::cpu())?;
    /// let (value, index) = x.kthvalue(2)?;
    /// assert_eq!((value.item::<f32>()?, index.item::<i64>()?), (4.0, 2));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn kthvalue(&self, k: i64) -> Result<(Tensor, Tensor)> {
        self.kthvalue_with(k, KthvalueOptions::new())
    }

    /// [`Tensor::kthvalue`] along another dimension.
    #[track_caller]
    pub fn kthvalue_with(&self, k: i64, options: KthvalueOptions) -> Result<(Tensor, Tensor)> {
        let KthvalueOptions { dim, keepdim } = options;
        composed("kthvalue", Site::caller(), || {
            let along = normalize_dim("kthvalue", dim, self.rank())?;
            let len = self.shape().get(along).copied().unwrap_or(1);
            if len == 0 {
                return Err(Error::index("kthvalue", "the dimension has no elements"));
            }
            if k < 1 || k as usize > len {
                return Err(Error::shape(
                    "kthvalue",
                    format!("there is no element {k} of {len}; they are counted from 1"),
                ));
            }
            if self.rank() == 0 {
                let zero = Tensor::zeros(&[], (DType::I64, self.device()))?;
                return Ok((self.clone_tensor()?, zero));
            }
            let (_, order) = self.detach().sort_with(SortOptions::new().dim(dim))?;
            let indices = order.narrow(dim, k - 1, 1)?.clone_with(MemoryFormat::Contiguous)?;
            let values = self.gather(dim, &indices)?;
            Ok((without(&values, &[along], keepdim)?, without(&indices, &[along], keepdim)?))
        })
    }

    /// The most frequent element along the last dimension (the least of several), and where it is.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[2i64, 7, 7, 2, 7], &[5], Device::cpu())?;
    /// assert_eq!(x.mode()?.0.item::<i64>()?, 7);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn mode(&self) -> Result<(Tensor, Tensor)> {
        self.mode_with(ModeOptions::new())
    }

    /// [`Tensor::mode`] along another dimension.
    #[track_caller]
    pub fn mode_with(&self, options: ModeOptions) -> Result<(Tensor, Tensor)> {
        let ModeOptions { dim, keepdim } = options;
        let site = Site::caller();
        composed("mode", site, || {
            let along = normalize_dim("mode", dim, self.rank())?;
            if self.rank() == 0 {
                let zero = Tensor::zeros(&[], (DType::I64, self.device()))?;
                return Ok((self.clone_tensor()?, zero));
            }
            if self.shape()[along] == 0 {
                return Err(Error::index("mode", "the dimension has no elements"));
            }
            let (sorted, order) = self.detach().sort_with(SortOptions::new().dim(dim))?;
            let (_, indices) =
                two(apply(&Mode { dim: along }, &[&sorted, &order], Dest::New, site)?)?;
            let values = self.gather(dim, &indices)?;
            Ok((without(&values, &[along], keepdim)?, without(&indices, &[along], keepdim)?))
        })
    }

    /// The elements in order along the first dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0], &[2], Device::cpu())?;
    /// assert_eq!(x.msort()?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn msort(&self) -> Result<Tensor> {
        composed("msort", Site::caller(), || Ok(self.sort_with(SortOptions::new().dim(0))?.0))
    }

    /// The indices that put the elements in order along the last dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// assert_eq!(x.argsort()?.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn argsort(&self) -> Result<Tensor> {
        self.argsort_with(ArgsortOptions::new())
    }

    /// [`Tensor::argsort`] along another dimension, or largest first.
    #[track_caller]
    pub fn argsort_with(&self, options: ArgsortOptions) -> Result<Tensor> {
        composed("argsort", Site::caller(), || {
            let how = SortOptions::new().dim(options.dim).descending(options.descending);
            Ok(self.detach().sort_with(how)?.1)
        })
    }
}
