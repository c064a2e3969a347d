//! Whole dimensions turned around, rolled and repeated. Padding is in `pad.rs`.

use plimsoll_core::{DType, Dims, Error, Result, Scalar, normalize_dim, normalize_dims};
use plimsoll_memory::{Site, enter_operation};
use smallvec::SmallVec;

use super::search::SearchsortedOptions;
use crate::Tensor;
use crate::operation::OpInfo;
use crate::ops::rearrange::{Along, FLIP, REPEAT, REPEAT_INTERLEAVE, ROLL, Rearrange, Ways};
use crate::prepare::apply_one;

impl Tensor {
    /// These dimensions turned around.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// assert_eq!(x.flip(&[0])?.to_vec::<i64>()?, [2, 1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, dims: &[i64]) -> Result<Tensor> {
        let dims =
            if dims.is_empty() { Dims::new() } else { normalize_dims("flip", dims, self.rank())? };
        let way = |dim| if dims.contains(&dim) { Along::Flip } else { Along::Pad(0) };
        let ways = (0..self.rank()).map(way).collect();
        rearranged(&FLIP, self, ways, self.shape().into(), Site::caller())
    }

    /// Columns turned around.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.fliplr()?.to_vec::<i64>()?, [1, 0, 3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fliplr(&self) -> Result<Tensor> {
        let _named = enter_operation("fliplr");
        at_least("fliplr", self, 2)?;
        self.flip(&[1])
    }

    /// Rows turned around.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.flipud()?.to_vec::<i64>()?, [2, 3, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn flipud(&self) -> Result<Tensor> {
        let _named = enter_operation("flipud");
        at_least("flipud", self, 1)?;
        self.flip(&[0])
    }

    /// A plane turned by `k` right angles, from the first of the two dimensions to the second.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.rot90(1, &[0, 1])?.to_vec::<i64>()?, [1, 3, 0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rot90(&self, k: i64, dims: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("rot90");
        let &[from, to] = dims else {
            return Err(Error::shape("rot90", format!("it turns in two dimensions, not {dims:?}")));
        };
        at_least("rot90", self, 2)?;
        let (a, b) =
            (normalize_dim("rot90", from, self.rank())?, normalize_dim("rot90", to, self.rank())?);
        if a == b {
            return Err(Error::shape("rot90", format!("the dimensions of {dims:?} are one")));
        }
        match k.rem_euclid(4) {
            1 => self.flip(&[to])?.transpose(from, to),
            2 => self.flip(dims),
            3 => self.flip(&[from])?.transpose(from, to),
            _ => self.clone_tensor(),
        }
    }

    /// Elements moved on by `shifts` along `dims`, those at the end to the front; of all elements
    /// in one row if no dimension is named.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?;
    /// assert_eq!(x.roll(&[1], &[0])?.to_vec::<i64>()?, [3, 0, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn roll(&self, shifts: &[i64], dims: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("roll");
        if dims.is_empty() && shifts.len() == 1 {
            let flat = self.reshape(&[-1])?.roll(shifts, &[0])?;
            return flat.view(&super::reshape::sizes_of(self));
        }
        if shifts.is_empty() || shifts.len() != dims.len() {
            return Err(Error::shape(
                "roll",
                format!("{shifts:?} must be one shift for each of the dimensions {dims:?}"),
            ));
        }
        if self.rank() == 0 {
            return Err(Error::index("roll", "a tensor without dimensions has none to roll along"));
        }
        let mut by: SmallVec<[i64; 6]> = smallvec::smallvec![0; self.rank().max(1)];
        for (&shift, &dim) in shifts.iter().zip(dims) {
            let dim = normalize_dim("roll", dim, self.rank())?;
            let size = self.shape().get(dim).copied().unwrap_or(1).max(1) as i64;
            by[dim] = (by[dim] + shift.rem_euclid(size)) % size;
        }
        let ways = (0..self.rank()).map(|dim| Along::Wrap(by[dim])).collect();
        rearranged(&ROLL, self, ways, self.shape().into(), Site::caller())
    }

    /// All of it `repeats` times along each dimension; more numbers than dimensions make new ones
    /// in front.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// assert_eq!(x.repeat(&[2, 2])?.to_vec::<i64>()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn repeat(&self, repeats: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("repeat");
        let Some(lead) = repeats.len().checked_sub(self.rank()) else {
            return Err(Error::shape(
                "repeat",
                format!("{repeats:?} must be a number for each dimension of {:?}", self.shape()),
            ));
        };
        let mut shape = Dims::from_elem(1, lead);
        shape.extend_from_slice(self.shape());
        let wide: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
        for (size, &times) in shape.iter_mut().zip(repeats) {
            let times = usize::try_from(times).map_err(|_| {
                Error::shape("repeat", format!("{repeats:?}: nothing repeats {times} times"))
            })?;
            *size = size
                .checked_mul(times)
                .ok_or_else(|| Error::shape("repeat", format!("{repeats:?} is too much")))?;
        }
        let ways = shape.iter().map(|_| Along::Wrap(0)).collect();
        let source = if lead > 0 { self.reshape(&wide)? } else { self.clone() };
        rearranged(&REPEAT, &source, ways, shape, Site::caller())
    }

    /// [`Tensor::repeat`] with missing numbers taken as 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.tile(&[2])?.shape(), [2, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, dims: &[i64]) -> Result<Tensor> {
        let _named = enter_operation("tile");
        let missing = self.rank().saturating_sub(dims.len());
        let mut repeats: SmallVec<[i64; 6]> = smallvec::smallvec![1; missing];
        repeats.extend_from_slice(dims);
        self.repeat(&repeats)
    }

    /// Each element `repeats` times in a row, along `dim` or of all elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 2, 1, DType::I64)?;
    /// assert_eq!(x.repeat_interleave(2, None)?.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: i64, dim: Option<i64>) -> Result<Tensor> {
        let _named = enter_operation("repeat_interleave");
        let Some(dim) = dim else {
            return self.reshape(&[-1])?.repeat_interleave(repeats, Some(0));
        };
        if self.rank() == 0 {
            return self.unsqueeze(0)?.repeat_interleave(repeats, Some(dim));
        }
        let dim = normalize_dim("repeat_interleave", dim, self.rank())?;
        let times = usize::try_from(repeats).map_err(|_| {
            Error::shape("repeat_interleave", format!("nothing repeats {repeats} times"))
        })?;
        let mut shape = Dims::from(self.shape());
        shape[dim] = shape[dim]
            .checked_mul(times)
            .ok_or_else(|| Error::shape("repeat_interleave", "the repeated size overflows"))?;
        let way = |at| if at == dim { Along::Each(times) } else { Along::Pad(0) };
        let ways = (0..self.rank()).map(way).collect();
        rearranged(&REPEAT_INTERLEAVE, self, ways, shape, Site::caller())
    }

    /// Each element as often as `repeats` says for its index along `dim`, or for all elements in
    /// one row.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 3, 1, DType::I64)?;
    /// let times = Tensor::from_slice(&[0i64, 2, 1], &[3], Device::cpu())?;
    /// assert_eq!(x.repeat_interleave_by(&times, Some(0))?.to_vec::<i64>()?, [1, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave_by(&self, repeats: &Tensor, dim: Option<i64>) -> Result<Tensor> {
        let _named = enter_operation("repeat_interleave");
        let Some(dim) = dim else {
            return self.reshape(&[-1])?.repeat_interleave_by(repeats, Some(0));
        };
        if self.rank() == 0 {
            return self.unsqueeze(0)?.repeat_interleave_by(repeats, Some(dim));
        }
        let at = normalize_dim("repeat_interleave", dim, self.rank())?;
        let size = self.shape()[at];
        let counts = if repeats.numel() == 1 {
            repeats.reshape(&[1])?.expand(&[size as i64])?
        } else {
            repeats.clone()
        };
        if counts.shape() != [size] {
            return Err(Error::shape(
                "repeat_interleave",
                format!(
                    "repeats of shape {:?} must be one number, or one for each of the {size} along dimension {at}",
                    repeats.shape()
                ),
            ));
        }
        self.index_select(at as i64, &Tensor::interleaved(&counts)?)
    }

    /// The index of each number of `repeats`, that many times: what
    /// [`Tensor::repeat_interleave_by`] selects.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let times = Tensor::from_slice(&[0i64, 2, 1], &[3], Device::cpu())?;
    /// assert_eq!(Tensor::interleaved(&times)?.to_vec::<i64>()?, [1, 1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn interleaved(repeats: &Tensor) -> Result<Tensor> {
        let _named = enter_operation("repeat_interleave");
        const OP: &str = "repeat_interleave";
        if repeats.rank() != 1 || !matches!(repeats.dtype(), DType::I64 | DType::I32) {
            return Err(Error::shape(
                OP,
                format!(
                    "repeats must be int64 or int32 in one dimension, and are {} of shape {:?}",
                    repeats.dtype(),
                    repeats.shape()
                ),
            ));
        }
        let counts = repeats.detach().to(DType::I64)?;
        if counts.numel() == 0 {
            return repeats.zeros_like();
        }
        let least = counts.amin()?.item::<i64>()?;
        if least < 0 {
            return Err(Error::shape(OP, format!("nothing repeats {least} times")));
        }
        // The size of the result is in the data, so it comes to the host, as a float64: a sum of
        // integers that is too large says so and does not wrap, and is exact up to 2^53.
        let total = counts.double()?.sum()?.item::<f64>()?;
        if total > (1u64 << 53) as f64 {
            return Err(Error::shape(OP, format!("{total:e} elements are too many")));
        }
        let ends = counts.cumsum(0)?;
        let places = Tensor::arange(0, total as i64, 1, (DType::I64, repeats.device()))?;
        let options = SearchsortedOptions::new().right(true);
        ends.searchsorted_with(&places, options)?.to(repeats.dtype())
    }
}

fn at_least(op: &'static str, x: &Tensor, rank: usize) -> Result<()> {
    if x.rank() >= rank {
        return Ok(());
    }
    let why = format!("it needs {rank} dimensions or more, and shape {:?} has not", x.shape());
    Err(Error::shape(op, why))
}

pub(super) fn rearranged(
    info: &'static OpInfo,
    x: &Tensor,
    along: Ways,
    shape: Dims,
    site: Site,
) -> Result<Tensor> {
    apply_one(&Rearrange { info, along, shape, value: Scalar::Int(0) }, &[x], site)
}
