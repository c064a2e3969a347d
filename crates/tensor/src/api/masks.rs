//! Elements chosen by masks and by positions in the flat tensor. All are made of `index`,
//! `index_put`, `gather` and `nonzero`, but for `masked_fill`.

use plimsoll_core::{DType, Error, Result, broadcast_shapes, normalize_dim};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use super::reshape::sizes_of;
use crate::Tensor;
use crate::dispatch::Dest;
use crate::ops::select::MaskedFill;
use crate::prepare::{apply, apply_one};
use crate::promotion::Other;

impl Tensor {
    /// The elements where `mask` holds, in row-major order; both broadcast.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.masked_select(&x.ge(2)?)?.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("masked_select");
        const OP: &str = "masked_select";
        check_mask(OP, mask)?;
        let shape = broadcast_shapes(OP, &[self.shape(), mask.shape()])?;
        let mut sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        if sizes.is_empty() {
            // A mask needs a dimension to select from.
            sizes.push(1);
        }
        self.expand(&sizes)?.index(&[Some(&mask.expand(&sizes)?)])
    }

    /// A copy with `value`, a number or a tensor without dimensions, where `mask` holds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// assert_eq!(x.masked_fill(&x.gt(0)?, -1)?.to_vec::<f32>()?, [0.0, -1.0, -1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Other<'a>>) -> Result<Tensor> {
        let site = Site::caller();
        let value = with_site(site, || fill_value(self, mask, value.into()))?;
        apply_one(&MaskedFill, &[self, mask, &value], site)
    }

    /// [`Tensor::masked_fill`] in place.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// x.masked_fill_(&x.gt(1)?, 9)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 9.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill_<'a>(&self, mask: &Tensor, value: impl Into<Other<'a>>) -> Result<&Tensor> {
        let site = Site::caller();
        let value = with_site(site, || fill_value(self, mask, value.into()))?;
        apply(&MaskedFill, &[self, mask, &value], Dest::InPlace, site)?;
        Ok(self)
    }

    /// A copy with one number in the slices of a dimension that `index`, a vector, says.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[1i64], &[1], Device::cpu())?;
    /// let x = Tensor::zeros(&[2, 2], DType::F32)?;
    /// assert_eq!(x.index_fill(0, &index, 7)?.to_vec::<f32>()?, [0.0, 0.0, 7.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn index_fill<'a>(
        &self,
        dim: i64,
        index: &Tensor,
        value: impl Into<Other<'a>>,
    ) -> Result<Tensor> {
        let _named = enter_operation("index_fill");
        let mask = with_site(Site::caller(), || named_slices(self, dim, index))?;
        let copy = self.clone_tensor()?;
        copy.masked_fill_(&mask, value)?;
        Ok(copy)
    }

    /// [`Tensor::index_fill`] in place.
    #[track_caller]
    pub fn index_fill_<'a>(
        &self,
        dim: i64,
        index: &Tensor,
        value: impl Into<Other<'a>>,
    ) -> Result<&Tensor> {
        let _named = enter_operation("index_fill");
        let mask = with_site(Site::caller(), || named_slices(self, dim, index))?;
        self.masked_fill_(&mask, value)
    }

    /// A copy with the elements of `source`, in order, where `mask`, which broadcasts, holds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::F32)?;
    /// let source = Tensor::full(&[2], 7, DType::F32)?;
    /// assert_eq!(x.masked_scatter(&x.gt(0)?, &source)?.to_vec::<f32>()?, [0.0, 7.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        const OP: &str = "masked_scatter";
        let _named = enter_operation(OP);
        check_mask(OP, mask)?;
        if source.dtype() != self.dtype() {
            return Err(Error::shape(
                OP,
                format!("the source is {} and the target {}", source.dtype(), self.dtype()),
            ));
        }
        let shape = broadcast_shapes(OP, &[self.shape(), mask.shape()])?;
        let sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        let (wide, mask) = (self.expand(&sizes)?, mask.expand(&sizes)?);
        let (wide, mask) = (wide.reshape(&[-1])?, mask.reshape(&[-1])?);
        let places = mask.nonzero()?.select(1, 0)?;
        let count = places.numel() as i64;
        if count > source.numel() as i64 {
            return Err(Error::shape(
                OP,
                format!(
                    "the mask holds {count} times, and the source has {} elements",
                    source.numel()
                ),
            ));
        }
        let values = source.reshape(&[-1])?.narrow(0, 0, count)?;
        wide.index_put(&[Some(&places)], &values, false)?.view(&sizes)
    }

    /// The elements at positions in the flat tensor, in the shape of `index`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(5, 9, 1, DType::I64)?.view(&[2, 2])?;
    /// let index = Tensor::from_slice(&[3i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.take(&index)?.to_vec::<i64>()?, [8, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("take");
        check_long("take", index)?;
        if self.numel() == 0 && index.numel() > 0 {
            return Err(Error::index("take", "a tensor without elements has none to take"));
        }
        self.reshape(&[self.numel() as i64])?.index(&[Some(&index.contiguous()?)])
    }

    /// A copy with the elements of `source` at positions in the flat tensor; added to what is there
    /// if `accumulate`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 2], DType::I64)?;
    /// let (index, one) = (Tensor::full(&[1], 3, DType::I64)?, Tensor::ones(&[1], DType::I64)?);
    /// assert_eq!(x.put(&index, &one, false)?.to_vec::<i64>()?, [0, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn put(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        let _named = enter_operation("put");
        check_long("put", index)?;
        if index.numel() != source.numel() || source.dtype() != self.dtype() {
            return Err(Error::shape(
                "put",
                format!(
                    "a source of {} elements of {} for {} positions in a tensor of {}; they must be as many, and of \
                     one dtype",
                    source.numel(),
                    source.dtype(),
                    index.numel(),
                    self.dtype()
                ),
            ));
        }
        if index.numel() == 0 {
            return self.clone_tensor();
        }
        if self.numel() == 0 {
            return Err(Error::index("put", "a tensor without elements has no place to put one"));
        }
        let flat = self.reshape(&[-1])?;
        let (index, source) = (index.reshape(&[-1])?, source.reshape(&[-1])?);
        flat.index_put(&[Some(&index)], &source, accumulate)?.view(&sizes_of(self))
    }

    /// [`Tensor::gather`] with both tensors broadcast in the other dimensions; without a dimension,
    /// of the flat tensors.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// let index = Tensor::from_slice(&[1i64], &[1, 1], Device::cpu())?;
    /// assert_eq!(x.take_along_dim(&index, Some(0))?.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_dim(&self, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
        const OP: &str = "take_along_dim";
        let _named = enter_operation(OP);
        check_long(OP, indices)?;
        let size = match dim {
            Some(dim) => self.size(dim)?,
            None => self.numel() as i64,
        };
        // Negative ones count from the end.
        let indices = &Tensor::where_(&indices.lt(0)?, &indices.add(size)?, indices)?;
        let Some(dim) = dim else {
            return self.reshape(&[-1])?.gather(0, &indices.reshape(&[-1])?);
        };
        if self.rank() != indices.rank() {
            return Err(Error::shape(
                OP,
                format!(
                    "input and indices should have the same number of dimensions, and these are of shape {:?} and {:?}",
                    self.shape(),
                    indices.shape()
                ),
            ));
        }
        let dim = normalize_dim(OP, dim, self.rank())?;
        let (mut own, mut theirs) = (sizes_of(self), sizes_of(indices));
        let (length, count) = (own.get(dim).copied(), theirs.get(dim).copied());
        if let (Some(length), Some(count)) = (length, count) {
            (own[dim], theirs[dim]) = (1, 1);
            let unsigned = |sizes: &[i64]| sizes.iter().map(|&size| size as usize).collect();
            let (a, b): (SmallVec<[usize; 6]>, SmallVec<[usize; 6]>) =
                (unsigned(&own), unsigned(&theirs));
            let shape = broadcast_shapes(OP, &[&a, &b])?;
            own = shape.iter().map(|&size| size as i64).collect();
            theirs = own.clone();
            (own[dim], theirs[dim]) = (length, count);
        }
        self.expand(&own)?.gather(dim as i64, &indices.expand(&theirs)?)
    }

    /// [`Tensor::nonzero`] by NumPy's name.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::eye(2, DType::F32)?.argwhere()?.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn argwhere(&self) -> Result<Tensor> {
        self.nonzero()
    }

    /// The first `size` rows of [`Tensor::nonzero`], `fill_value` in those that it does not have.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F32)?;
    /// assert_eq!(x.nonzero_static(2, -1)?.to_vec::<i64>()?, [0, -1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero_static(&self, size: i64, fill_value: i64) -> Result<Tensor> {
        let _named = enter_operation("nonzero_static");
        if size < 0 {
            return Err(Error::shape("nonzero_static", format!("there are no {size} rows")));
        }
        let found = self.nonzero()?;
        let missing = size - found.shape()[0] as i64;
        found.constant_pad_nd(&[0, 0, 0, missing], fill_value)
    }
}

/// Which slices of a dimension an index names, as a mask that broadcasts to x. A slice that is
/// named twice is filled once, and counts once in the gradient.
fn named_slices(x: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
    const OP: &str = "index_fill";
    let dim = normalize_dim(OP, dim, x.rank())?;
    if index.rank() > 1 {
        return Err(Error::index(
            OP,
            format!("the index must be a vector, and has shape {:?}", index.shape()),
        ));
    }
    check_long(OP, index)?;
    let size = x.shape().get(dim).copied().unwrap_or(1) as i64;
    let mask = Tensor::zeros(&[size], (DType::Bool, x.device()))?;
    // Unlike those of scatters, these count from the end if they are negative.
    let truth = Tensor::full(&[], true, (DType::Bool, x.device()))?;
    mask.index_put_(&[Some(&index.reshape(&[-1])?)], &truth, false)?;
    if x.rank() == 0 {
        return mask.squeeze_with(0);
    }
    let mut sizes: SmallVec<[i64; 6]> = smallvec::smallvec![1; x.rank()];
    sizes[dim] = size;
    mask.view(&sizes)
}

/// The value as a tensor of x's dtype without dimensions, if it is one.
fn fill_value(x: &Tensor, mask: &Tensor, value: Other<'_>) -> Result<Tensor> {
    const OP: &str = "masked_fill";
    check_mask(OP, mask)?;
    let refuse = |why: String| Err(Error::shape(OP, why));
    match value {
        Other::Tensor(tensor) if tensor.rank() > 0 => refuse(format!(
            "the value must have no dimensions, and has shape {:?}; use `where_`",
            tensor.shape()
        )),
        Other::Tensor(tensor) => tensor.to((x.dtype(), x.device())),
        Other::Scalar(value) => Tensor::full(&[], value, (x.dtype(), x.device())),
    }
}

fn check_mask(op: &'static str, mask: &Tensor) -> Result<()> {
    match mask.dtype() {
        DType::Bool => Ok(()),
        other => Err(Error::dtype(
            op,
            format!("the mask must be bool, not {other}; compare it with 0 first"),
        )),
    }
}

fn check_long(op: &'static str, index: &Tensor) -> Result<()> {
    match index.dtype() {
        DType::I64 => Ok(()),
        other => Err(Error::dtype(
            op,
            format!("dtype of indices should be Long, and is {other}; convert it with `long`"),
        )),
    }
}
