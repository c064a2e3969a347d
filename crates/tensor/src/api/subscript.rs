//! `x[...]` in Rust: [`Tensor::at`] reads it, [`Tensor::set_at_`] writes it. Positions, ranges and
//! new dimensions make views; tensors of indices or bools gather elements into new memory. The same
//! parts and rules serve Python's `x[...]`.

use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use crate::Tensor;
use crate::promotion::Other;

/// One part of an index. Positions, ranges, `..` (a whole dimension) and tensors convert to it.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    /// One position of a dimension, which goes away; negative ones count from the end.
    Index(i64),
    /// Every `step`-th position, clamped as in Python.
    Range {
        /// The first position; negative ones count from the end.
        start: Option<i64>,
        /// The first position that is left out.
        end: Option<i64>,
        /// At least 1.
        step: i64,
    },
    /// Every dimension that the other parts leave: Python's `...`.
    Rest,
    /// A new dimension of size 1: Python's `None`.
    NewAxis,
    /// A new dimension of size 1, or of size 0 if it does not hold.
    Truth(bool),
    /// The elements at a tensor's indices, or where a tensor of bools holds; a tensor without
    /// dimensions stands for its number.
    Tensor(&'a Tensor),
}

impl<'a> At<'a> {
    /// Every `step`-th position of a range: `start:end:step`.
    ///
    /// ```
    /// use plimsoll_tensor::{At, DType, Tensor};
    /// let x = Tensor::arange(0, 6, 1, DType::I64)?;
    /// assert_eq!(x.at(At::step(1..5, 2))?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn step(range: impl Into<At<'a>>, step: i64) -> At<'a> {
        match range.into() {
            At::Range { start, end, .. } => At::Range { start, end, step },
            other => other,
        }
    }

    /// How many dimensions it takes.
    fn dimensions(&self) -> usize {
        match self {
            At::Index(_) | At::Range { .. } => 1,
            At::Rest | At::NewAxis | At::Truth(_) => 0,
            At::Tensor(tensor) if is_mask(tensor) => tensor.rank(),
            At::Tensor(_) => 1,
        }
    }
}

macro_rules! at_from_integers {
    ($($type:ty),*) => {$(
        impl From<$type> for At<'_> {
            fn from(index: $type) -> Self {
                At::Index(i64::from(index))
            }
        }
        impl From<Range<$type>> for At<'_> {
            fn from(range: Range<$type>) -> Self {
                let (start, end) = (Some(range.start.into()), Some(range.end.into()));
                At::Range { start, end, step: 1 }
            }
        }
        impl From<RangeInclusive<$type>> for At<'_> {
            fn from(range: RangeInclusive<$type>) -> Self {
                // Up to -1 is up to the end.
                let end = i64::from(*range.end()).checked_add(1).filter(|&end| end != 0);
                At::Range { start: Some((*range.start()).into()), end, step: 1 }
            }
        }
        impl From<RangeFrom<$type>> for At<'_> {
            fn from(range: RangeFrom<$type>) -> Self {
                At::Range { start: Some(range.start.into()), end: None, step: 1 }
            }
        }
        impl From<RangeTo<$type>> for At<'_> {
            fn from(range: RangeTo<$type>) -> Self {
                At::Range { start: None, end: Some(range.end.into()), step: 1 }
            }
        }
    )*};
}
at_from_integers!(i32, i64);

impl From<RangeFull> for At<'_> {
    fn from(_: RangeFull) -> Self {
        At::Range { start: None, end: None, step: 1 }
    }
}

impl From<bool> for At<'_> {
    fn from(holds: bool) -> Self {
        At::Truth(holds)
    }
}

impl<'a> From<&'a Tensor> for At<'a> {
    fn from(tensor: &'a Tensor) -> At<'a> {
        At::Tensor(tensor)
    }
}

/// What stands in the brackets: one part, a tuple of up to six, or a list of them.
pub trait Subscript<'a> {
    /// The parts in order.
    fn parts(self) -> SmallVec<[At<'a>; 4]>;
}

macro_rules! one_part {
    ($($type:ty),*) => {$(
        impl<'a> Subscript<'a> for $type {
            fn parts(self) -> SmallVec<[At<'a>; 4]> {
                smallvec::smallvec![self.into()]
            }
        }
    )*};
}
one_part!(
    At<'a>,
    i32,
    i64,
    bool,
    &'a Tensor,
    RangeFull,
    Range<i32>,
    Range<i64>,
    RangeInclusive<i32>,
    RangeInclusive<i64>,
    RangeFrom<i32>,
    RangeFrom<i64>,
    RangeTo<i32>,
    RangeTo<i64>
);

impl<'a> Subscript<'a> for &[At<'a>] {
    fn parts(self) -> SmallVec<[At<'a>; 4]> {
        self.into()
    }
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => {$(
        impl<'a, $($name: Into<At<'a>>),*> Subscript<'a> for ($($name,)*) {
            #[allow(non_snake_case)]
            fn parts(self) -> SmallVec<[At<'a>; 4]> {
                let ($($name,)*) = self;
                SmallVec::from_iter([$($name.into()),*])
            }
        }
    )*};
}
tuples!((A)(A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));

impl Tensor {
    /// `x[...]`: a view where all parts are positions, ranges and new dimensions; new memory where
    /// one is a tensor with dimensions.
    ///
    /// ```
    /// use plimsoll_tensor::{At, DType, Device, Tensor};
    /// let x = Tensor::arange(0, 24, 1, DType::I64)?.view(&[2, 3, 4])?;
    /// assert_eq!(x.at((1, .., -1))?.to_vec::<i64>()?, [15, 19, 23]);
    /// assert_eq!(x.at((At::Rest, 1..3))?.shape(), [2, 3, 2]);
    /// assert_eq!(x.at((0, At::NewAxis, 0))?.shape(), [1, 4]);
    /// let columns = Tensor::from_slice(&[3i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.at((0, 0, &columns))?.to_vec::<i64>()?, [3, 0]);
    /// assert_eq!(x.at(&x.gt(21)?)?.to_vec::<i64>()?, [22, 23]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn at<'a>(&self, index: impl Subscript<'a>) -> Result<Tensor> {
        with_site(Site::caller(), || {
            let found = self.find("at", &index.parts())?;
            // `x[:]` and `x[...]` are tensors of their own too.
            let whole = found.view.is(self) && found.indices().is_none();
            if whole { self.alias_whole() } else { found.read() }
        })
    }

    /// `x[...] = value`: the value broadcasts to what [`Tensor::at`] gives, without leading
    /// dimensions of size 1 that are too many.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::zeros(&[2, 3], DType::F32)?;
    /// x.set_at_((.., 0), 1.0)?;
    /// x.set_at_((1, 1..), &Tensor::full(&[1, 2], 7.0, DType::F32)?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0, 7.0, 7.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn set_at_<'a, 'b>(
        &self,
        index: impl Subscript<'a>,
        value: impl Into<Other<'b>>,
    ) -> Result<&Tensor> {
        let value = value.into();
        with_site(Site::caller(), || self.find("set_at_", &index.parts())?.write(value))?;
        Ok(self)
    }

    /// What an index names.
    fn find(&self, op: &'static str, parts: &[At<'_>]) -> Result<Found<'_>> {
        let _named = enter_operation(op);
        let taken: usize = parts.iter().map(At::dimensions).sum();
        if taken > self.rank() {
            let why = match self.rank() {
                0 => {
                    "invalid index of a 0-dim tensor: it has one element, which `item` reads".into()
                }
                rank => {
                    format!("too many indices for tensor of dimension {rank}: there are {taken}")
                }
            };
            return Err(Error::index(op, why));
        }
        let mut found = Found { view: Cow::Borrowed(self), gathers: SmallVec::new() };
        let (mut dim, mut own) = (0, 0);
        for part in parts {
            // A second `...` stands for what is left.
            let rest = (self.rank() - taken).min(found.view.rank() - dim as usize);
            check_position(op, *part, own, self.shape())?;
            dim += found.apply(op, *part, dim, rest)?;
            own += if matches!(part, At::Rest) { rest } else { part.dimensions() };
        }
        if parts.is_empty() {
            // Of nothing: still a tensor of its own, like every other view.
            found.view = Cow::Owned(self.alias_whole()?);
        }
        Ok(found)
    }

    fn alias_whole(&self) -> Result<Tensor> {
        if self.rank() > 0 {
            return self.slice(0, 0, i64::MAX, 1);
        }
        let as_i64 = |sizes: &[usize]| -> SmallVec<[i64; 6]> {
            sizes.iter().map(|&size| size as i64).collect()
        };
        let offset = self.storage_offset() as i64;
        self.as_strided(&as_i64(self.shape()), &as_i64(self.strides()), offset)
    }
}

/// Refuses a position that dimension `own` of the indexed tensor does not have.
fn check_position(op: &'static str, part: At<'_>, own: usize, shape: &[usize]) -> Result<()> {
    let (At::Index(index), Some(&size)) = (part, shape.get(own)) else { return Ok(()) };
    let size = size as i64;
    if (-size..size).contains(&index) {
        return Ok(());
    }
    let why = format!("index {index} is out of bounds for dimension {own} with size {size}");
    Err(Error::index(op, why))
}

/// The view that the plain parts of an index make, and the index tensors of its dimensions.
struct Found<'a> {
    /// The indexed tensor itself, until a part makes a view of it.
    view: Cow<'a, Tensor>,
    gathers: SmallVec<[Option<Tensor>; 4]>,
}

impl Found<'_> {
    /// Applies one part to dimension `dim` of the view so far; gives back how many dimensions of
    /// the result it stands for. `rest` is how many `...` does.
    fn apply(&mut self, op: &'static str, part: At<'_>, dim: i64, rest: usize) -> Result<i64> {
        match part {
            At::Index(index) => {
                self.view = Cow::Owned(self.view.select(dim, index)?);
                return Ok(0);
            }
            At::Range { start: None, end: None, step: 1 } => self.gathers.push(None),
            At::Range { step, .. } if step < 1 => {
                return Err(Error::invalid_argument("the step of a range must be positive")
                    .in_operation(op));
            }
            At::Range { start, end, step } => {
                let (start, end) = (start.unwrap_or(0), end.unwrap_or(i64::MAX));
                self.view = Cow::Owned(self.view.slice(dim, start, end, step)?);
                self.gathers.push(None);
            }
            At::Rest => {
                self.gathers.extend(std::iter::repeat_n(None, rest));
                return Ok(rest as i64);
            }
            At::NewAxis => {
                self.view = Cow::Owned(self.view.unsqueeze(dim)?);
                self.gathers.push(None);
            }
            At::Tensor(mask) if is_mask(mask) && mask.rank() == 0 => {
                return self.apply(op, At::Truth(mask.to_scalar()?.to_i64() != 0), dim, rest);
            }
            At::Tensor(index) if is_position(index) => {
                return self.apply(op, At::Index(index.to_scalar()?.to_i64()), dim, rest);
            }
            At::Truth(holds) => {
                self.view = Cow::Owned(self.view.unsqueeze(dim)?);
                let mask = Tensor::full(&[1], holds, (DType::Bool, self.view.device()))?;
                self.gathers.push(Some(mask));
            }
            At::Tensor(index) => {
                self.gathers.push(Some(index.clone()));
                if is_mask(index) {
                    return Ok(index.rank() as i64);
                }
            }
        }
        Ok(1)
    }

    fn indices(&self) -> Option<SmallVec<[Option<&Tensor>; 4]>> {
        let indices = || self.gathers.iter().map(Option::as_ref).collect();
        self.gathers.iter().any(Option::is_some).then(indices)
    }

    fn read(self) -> Result<Tensor> {
        if let Some(indices) = self.indices() {
            return self.view.index(&indices);
        }
        Ok(self.view.into_owned())
    }

    fn write(self, value: Other<'_>) -> Result<()> {
        let Some(indices) = self.indices() else {
            return match value {
                Other::Tensor(value) => {
                    let value = without_leading_ones(value)?;
                    self.view.copy_(&value).map(drop)
                }
                Other::Scalar(value) => self.view.fill_(value).map(drop),
            };
        };
        match value {
            Other::Tensor(value) => {
                let value = without_leading_ones(value)?;
                self.view.index_put_(&indices, &value, false).map(drop)
            }
            Other::Scalar(value) => {
                let value = Tensor::scalar(value, (self.view.dtype(), self.view.device()))?;
                self.view.index_put_(&indices, &value, false).map(drop)
            }
        }
    }
}

/// Whether a tensor stands for one position, whose view it makes, as in PyTorch. A dry run does not
/// know which: there it is gathered, which takes more bytes than a view.
fn is_position(index: &Tensor) -> bool {
    index.rank() == 0 && !index.dtype().is_float() && !index.device().is_dry()
}

/// Whether a tensor says of each element if it is meant; uint8 is PyTorch's bool of old.
fn is_mask(tensor: &Tensor) -> bool {
    matches!(tensor.dtype(), DType::Bool | DType::U8)
}

/// `value` without the dimensions of size 1 at its front, as PyTorch takes it.
fn without_leading_ones(value: &Tensor) -> Result<Tensor> {
    let mut value = value.clone();
    while value.shape().first() == Some(&1) {
        value = value.select(0, 0)?;
    }
    Ok(value)
}
