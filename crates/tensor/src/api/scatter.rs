//! Reading, writing and combining along one dimension where an index says: `gather`, the scatters,
//! and `index_*`, which take one index for whole slices.

use plimsoll_core::{DType, Error, Result, Scalar, normalize_dim};
use plimsoll_memory::{Site, enter_operation, with_site};
use smallvec::SmallVec;

use super::options::options;
use super::reshape::sizes_of;
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::{Dest, first};
use crate::operation::{OpInfo, Operation};
use crate::ops::index::Reduce;
use crate::ops::index::along::{
    Combine, GATHER, Gather, INDEX_ADD, INDEX_COPY, INDEX_REDUCE, INDEX_SELECT, SCATTER,
    SCATTER_ADD, SCATTER_REDUCE, Scatter,
};
use crate::prepare::{apply, apply_one};
use crate::promotion::Other;

options! {
    /// How [`Tensor::gather_with`] differentiates.
    GatherOptions {
        /// Whether the gradient is sparse, which there is not: it must be false.
        sparse_grad: bool = false,
    }
}

impl GatherOptions {
    fn check(self) -> Result<()> {
        match self.sparse_grad {
            true => Err(Error::unsupported("gather", "sparse gradients do not exist here")),
            false => Ok(()),
        }
    }
}

/// What is done to one tensor: an operation with its index and source. Tensors without dimensions
/// have one here.
struct Plan {
    info: &'static OpInfo,
    dim: usize,
    index: Tensor,
    source: Tensor,
    /// How the source is brought in, after what was there is overwritten if it takes no part.
    combine: Combine,
    /// Stands for what was there, where that takes no part.
    neutral: Option<Scalar>,
    mean: bool,
}

/// Where the result of a plan goes.
#[derive(Clone, Copy)]
enum Form<'a> {
    New,
    InPlace,
    Out(&'a Tensor),
}

impl Plan {
    fn run(&self, x: &Tensor, form: Form<'_>, site: Site) -> Result<Tensor> {
        composed(self.info.name, site, || {
            let wide = with_dimension(x)?;
            let result = match form {
                Form::New => self.steps(&wide, site)?,
                Form::InPlace if self.neutral.is_none() && !self.mean => {
                    apply(&self.operation(), &self.inputs(&wide), Dest::InPlace, site)?;
                    return Ok(x.clone());
                }
                Form::InPlace => {
                    x.copy_(&self.steps(&wide, site)?.reshape(&sizes_of(x))?)?;
                    return Ok(x.clone());
                }
                Form::Out(out) if self.neutral.is_none() && !self.mean && x.rank() > 0 => {
                    let outs = &[out];
                    return apply(&self.operation(), &self.inputs(&wide), Dest::Out(outs), site)
                        .map(first);
                }
                Form::Out(out) => {
                    if out.dtype() != x.dtype() {
                        return Err(Error::dtype(
                            self.info.name,
                            format!("the result is {} and out= is {}", x.dtype(), out.dtype()),
                        ));
                    }
                    let result = self.steps(&wide, site)?;
                    if out.shape() != x.shape() {
                        return Err(Error::target_shape(self.info.name, x.shape(), out.shape()));
                    }
                    out.copy_(&result.reshape(&sizes_of(x))?)?;
                    return Ok(out.clone());
                }
            };
            if x.rank() == 0 { result.squeeze_with(0) } else { Ok(result) }
        })
    }

    fn operation(&self) -> Scatter {
        Scatter { info: self.info, dim: self.dim, combine: self.combine }
    }

    fn inputs<'a>(&'a self, x: &'a Tensor) -> [&'a Tensor; 3] {
        [x, &self.index, &self.source]
    }

    /// A new tensor.
    fn steps(&self, x: &Tensor, site: Site) -> Result<Tensor> {
        let dim = self.dim as i64;
        let base = match self.neutral {
            Some(neutral) => &x.scatter(dim, &self.index, neutral, None)?,
            None => x,
        };
        let result = apply_one(&self.operation(), &self.inputs(base), site)?;
        if !self.mean {
            return Ok(result);
        }
        let start = i64::from(self.neutral.is_none());
        let ones = Tensor::ones(&[], (x.dtype(), x.device()))?.expand(&sizes_of(&self.index))?;
        let counts = x.detach().full_like(start)?.scatter_add(dim, &self.index, &ones)?;
        let counts = counts.masked_fill(&counts.eq(0)?, 1)?;
        if x.dtype().is_float() {
            return result.div(&counts);
        }
        let floor = crate::RoundingMode::Floor;
        result.div_with(&counts, crate::DivOptions::new().rounding_mode(floor))
    }
}

/// With one dimension if it has none.
fn with_dimension(x: &Tensor) -> Result<Tensor> {
    if x.rank() == 0 { x.unsqueeze(0) } else { Ok(x.clone()) }
}

/// Calls what makes a plan; gives its closure the types of its arguments.
fn plan_by(
    make: impl FnOnce(i64, &Tensor) -> Result<Plan>,
    dim: i64,
    index: &Tensor,
) -> Result<Plan> {
    make(dim, index)
}

/// The three forms of a method that makes a plan.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident, $in_place:ident, $out:ident $(<$life:lifetime>)?
        ($self:ident $(, $argument:ident: $type:ty)*) => $plan:expr;)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[track_caller]
                pub fn $name$(<$life>)?(&$self, dim: i64, index: &Tensor $(, $argument: $type)*) -> Result<Tensor> {
                    let site = Site::caller();
                    with_site(site, || plan_by($plan, dim, index))?.run($self, Form::New, site)
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] in place.")]
                #[track_caller]
                pub fn $in_place$(<$life>)?(&$self, dim: i64, index: &Tensor $(, $argument: $type)*) -> Result<&Tensor> {
                    let site = Site::caller();
                    with_site(site, || plan_by($plan, dim, index))?.run($self, Form::InPlace, site)?;
                    Ok($self)
                }

                #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`.")]
                #[track_caller]
                pub fn $out$(<$life>)?(&$self, dim: i64, index: &Tensor $(, $argument: $type)*, out: &Tensor) -> Result<()> {
                    let site = Site::caller();
                    with_site(site, || plan_by($plan, dim, index))?.run($self, Form::Out(out), site).map(drop)
                }
            )*
        }
    };
}

forms! {
    /// A copy with each element of `src`, or one number, where `index` says along `dim`; added to
    /// or multiplied with what is there if `reduce` says so.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[2i64, 0], &[2], Device::cpu())?;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(x.scatter(0, &index, 5, None)?.to_vec::<f32>()?, [5.0, 0.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter, scatter_, scatter_out<'a>(self, src: impl Into<Other<'a>>, reduce: Option<Reduce>) => |dim, index| {
        let source = match src.into() {
            Other::Tensor(tensor) => tensor.clone(),
            Other::Scalar(value) => spread(self, value, index)?,
        };
        let combine = match reduce {
            None => Combine::Replace,
            Some(Reduce::Sum) => Combine::Add,
            Some(Reduce::Prod) => Combine::Multiply,
            Some(other) => {
                let why = format!("{other:?} is none of add and multiply; use `scatter_reduce`");
                return Err(Error::shape("scatter", why));
            }
        };
        scattered(&SCATTER, self, dim, index, &source, combine)
    };
    /// A copy of this tensor with each element of `source` added where `index` says along `dim`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[0i64, 0, 2], &[3], Device::cpu())?;
    /// let counts = Tensor::zeros(&[3], DType::F32)?;
    /// let ones = Tensor::ones(&[3], DType::F32)?;
    /// assert_eq!(counts.scatter_add(0, &index, &ones)?.to_vec::<f32>()?, [2.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter_add, scatter_add_, scatter_add_out(self, source: &Tensor) =>
        |dim, index| scattered(&SCATTER_ADD, self, dim, index, source, Combine::Add);
    /// A copy with the elements of `src` brought together by `reduce` where `index` says along
    /// `dim`; what was there takes part if `include_self`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[0i64, 0, 2], &[3], Device::cpu())?;
    /// let (x, src) = (Tensor::ones(&[3], DType::I64)?, Tensor::arange(2, 5, 1, DType::I64)?);
    /// let y = x.scatter_reduce(0, &index, &src, Reduce::Amax, true)?;
    /// assert_eq!(y.to_vec::<i64>()?, [3, 1, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    scatter_reduce, scatter_reduce_, scatter_reduce_out(self, src: &Tensor, reduce: Reduce, include_self: bool) =>
        |dim, index| {
            let plan = scattered(&SCATTER_REDUCE, self, dim, index, src, Combine::Add)?;
            Ok(plan.reducing(self.dtype(), reduce, include_self))
        };
    /// A copy with `alpha` times each slice of `source` added to the slice that `index` says.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[1i64, 1], &[2], Device::cpu())?;
    /// let (x, rows) = (Tensor::zeros(&[2, 2], DType::F32)?, Tensor::ones(&[2, 2], DType::F32)?);
    /// assert_eq!(x.index_add(0, &index, &rows, 3)?.to_vec::<f32>()?, [0.0, 0.0, 6.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_add, index_add_, index_add_out(self, source: &Tensor, alpha: impl Into<Scalar>) => |dim, index| {
        let alpha = alpha.into();
        let scaled = match alpha {
            Scalar::Int(1) => source.clone(),
            Scalar::Float(1.0) if self.dtype().is_float() => source.clone(),
            alpha => source.mul(alpha)?,
        };
        slices(&INDEX_ADD, self, dim, index, &scaled, Combine::Add)
    };
    /// A copy with the slices that `index` says replaced by those of `source`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[1i64], &[1], Device::cpu())?;
    /// let (x, row) = (Tensor::zeros(&[2, 2], DType::F32)?, Tensor::ones(&[1, 2], DType::F32)?);
    /// assert_eq!(x.index_copy(0, &index, &row)?.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    index_copy, index_copy_, index_copy_out(self, source: &Tensor) =>
        |dim, index| slices(&INDEX_COPY, self, dim, index, source, Combine::Replace);
    /// A copy with the slices of `source` brought together by `reduce` in the slice that `index`
    /// says; what was there takes part if `include_self`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let index = Tensor::from_slice(&[1i64, 1], &[2], Device::cpu())?;
    /// let (x, src) = (Tensor::ones(&[2], DType::I64)?, Tensor::arange(2, 4, 1, DType::I64)?);
    /// let y = x.index_reduce(0, &index, &src, Reduce::Prod, true)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    index_reduce, index_reduce_, index_reduce_out(self, source: &Tensor, reduce: Reduce, include_self: bool) =>
        |dim, index| {
            if reduce == Reduce::Sum {
                return Err(Error::shape("index_reduce", "sum is not among prod, mean, amax and amin; use `index_add`"));
            }
            let plan = slices(&INDEX_REDUCE, self, dim, index, source, Combine::Add)?;
            Ok(plan.reducing(self.dtype(), reduce, include_self))
        };
}

impl Plan {
    fn reducing(mut self, dtype: DType, reduce: Reduce, include_self: bool) -> Plan {
        let (combine, neutral) = match reduce {
            Reduce::Sum | Reduce::Mean => (Combine::Add, Scalar::Int(0)),
            Reduce::Prod => (Combine::Multiply, Scalar::Int(1)),
            Reduce::Amax => (Combine::Greatest, lowest(dtype)),
            Reduce::Amin => (Combine::Least, highest(dtype)),
        };
        self.combine = combine;
        self.neutral = (!include_self).then_some(neutral);
        self.mean = reduce == Reduce::Mean;
        self
    }
}

fn highest(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(true),
        DType::U8 => Scalar::Int(i64::from(u8::MAX)),
        DType::I8 => Scalar::Int(i64::from(i8::MAX)),
        DType::I16 => Scalar::Int(i64::from(i16::MAX)),
        DType::I32 => Scalar::Int(i64::from(i32::MAX)),
        DType::I64 => Scalar::Int(i64::MAX),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Scalar::Float(f64::INFINITY),
    }
}

fn lowest(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(false),
        DType::U8 => Scalar::Int(0),
        DType::I8 => Scalar::Int(i64::from(i8::MIN)),
        DType::I16 => Scalar::Int(i64::from(i16::MIN)),
        DType::I32 => Scalar::Int(i64::from(i32::MIN)),
        DType::I64 => Scalar::Int(i64::MIN),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Scalar::Float(f64::NEG_INFINITY),
    }
}

/// One number in the shape of an index.
fn spread(x: &Tensor, value: Scalar, index: &Tensor) -> Result<Tensor> {
    Tensor::full(&[], value, (x.dtype(), x.device()))?.expand(&sizes_of(index))
}

/// A plan with an index for each element of its source.
fn scattered(
    info: &'static OpInfo,
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    combine: Combine,
) -> Result<Plan> {
    let dim = normalize_dim(info.name, dim, x.rank())?;
    let (index, source) = (with_dimension(index)?, with_dimension(source)?);
    Ok(Plan { info, dim, index, source, combine, neutral: None, mean: false })
}

/// A plan with an index for each slice of its source.
fn slices(
    info: &'static OpInfo,
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    combine: Combine,
) -> Result<Plan> {
    let at = normalize_dim(info.name, dim, x.rank())?;
    let wide = with_dimension(x)?;
    // One element stands for a slice of one.
    let source = match (source.rank(), wide.rank()) {
        (0, 1) => source.unsqueeze(0)?,
        _ => source.clone(),
    };
    let fits = source.rank() == wide.rank()
        && (0..source.rank()).all(|d| match d == at {
            true => source.shape()[d] == index.numel(),
            false => source.shape()[d] == wide.shape()[d],
        });
    if index.rank() > 1 || !fits {
        return Err(Error::index(
            info.name,
            format!(
                "an index of shape {:?} and a source of shape {:?} do not fit shape {:?} along dimension {at}: the index \
                 is a vector, and the source has a slice for each of its elements",
                index.shape(),
                source.shape(),
                x.shape()
            ),
        ));
    }
    let index = along(info, index, wide.shape(), at)?;
    Ok(Plan { info, dim: at, index, source, combine, neutral: None, mean: false })
}

/// A vector of indices as one index for each element of the slices.
fn along(info: &'static OpInfo, index: &Tensor, shape: &[usize], dim: usize) -> Result<Tensor> {
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Err(Error::dtype(
            info.name,
            format!(
                "the index must be int64 or int32, not {}; convert it with `long`",
                index.dtype()
            ),
        ));
    }
    let count = index.numel() as i64;
    let mut wide: SmallVec<[i64; 6]> = smallvec::smallvec![1; shape.len()];
    wide[dim] = count;
    let mut sizes: SmallVec<[i64; 6]> = shape.iter().map(|&size| size as i64).collect();
    sizes[dim] = count;
    // Converted while it is small.
    index.to(DType::I64)?.reshape(&wide)?.expand(&sizes)
}

impl Tensor {
    /// For each element of `index`, the element of this tensor that stands there along `dim`; other
    /// dimensions run along.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// let index = Tensor::from_slice(&[2i64, 0], &[2, 1], Device::cpu())?;
    /// assert_eq!(x.gather(1, &index)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let site = Site::caller();
        let op = Gather { info: &GATHER, dim: normalize_dim("gather", dim, self.rank())? };
        if index.numel() == 0 && index.rank() != self.rank() {
            // PyTorch asks nothing of an index that names nothing.
            let _named = enter_operation("gather");
            let nothing = self.reshape(&[self.numel() as i64])?.narrow(0, 0, 0)?;
            return nothing.reshape(&sizes_of(index));
        }
        if self.rank() > 0 && index.rank() > 0 {
            return apply_one(&op, &[self, index], site);
        }
        // A tensor without dimensions counts as one of one element, as in PyTorch.
        with_site(site, || {
            let found = apply_one(&op, &[&with_dimension(self)?, &with_dimension(index)?], site)?;
            if index.rank() == 0 { found.squeeze_with(0) } else { Ok(found) }
        })
    }

    /// [`Tensor::gather`] with PyTorch's option.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, first) = (Tensor::ones(&[2], DType::F32)?, Tensor::zeros(&[1], DType::I64)?);
    /// let sparse = GatherOptions::new().sparse_grad(true);
    /// assert!(x.gather_with(0, &first, sparse).unwrap_err().is_unsupported());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gather_with(&self, dim: i64, index: &Tensor, options: GatherOptions) -> Result<Tensor> {
        options.check()?;
        self.gather(dim, index)
    }

    /// [`Tensor::gather_with`] into `out`.
    #[track_caller]
    pub fn gather_with_out(
        &self,
        dim: i64,
        index: &Tensor,
        options: GatherOptions,
        out: &Tensor,
    ) -> Result<()> {
        options.check()?;
        self.gather_out(dim, index, out)
    }

    /// [`Tensor::gather`] into `out`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?;
    /// let last = Tensor::full(&[1], 3, DType::I64)?;
    /// let out = Tensor::zeros(&[1], DType::F32)?;
    /// x.gather_out(0, &last, &out)?;
    /// assert_eq!(out.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gather_out(&self, dim: i64, index: &Tensor, out: &Tensor) -> Result<()> {
        let site = Site::caller();
        let op = Gather { info: &GATHER, dim: normalize_dim("gather", dim, self.rank())? };
        if index.numel() == 0 && index.rank() != self.rank() && out.shape() == index.shape() {
            return Ok(());
        }
        into(&op, self, index, index.shape(), out, site)
    }

    /// The slices of a dimension that `index`, a vector, says.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[3, 2])?;
    /// let index = Tensor::from_slice(&[2i64, 0], &[2], Device::cpu())?;
    /// assert_eq!(x.index_select(0, &index)?.to_vec::<f32>()?, [4.0, 5.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Result<Tensor> {
        let site = Site::caller();
        with_site(site, || {
            let (op, x, index) = selecting(self, dim, index)?;
            let found = apply_one(&op, &[&x, &index], site)?;
            if self.rank() == 0 { found.squeeze_with(0) } else { Ok(found) }
        })
    }

    /// [`Tensor::index_select`] into `out`.
    #[track_caller]
    pub fn index_select_out(&self, dim: i64, index: &Tensor, out: &Tensor) -> Result<()> {
        let site = Site::caller();
        let (op, x, index) = with_site(site, || selecting(self, dim, index))?;
        let shape = if self.rank() == 0 { &[] } else { index.shape() };
        into(&op, &x, &index, shape, out, site)
    }
}

fn selecting(x: &Tensor, dim: i64, index: &Tensor) -> Result<(Gather, Tensor, Tensor)> {
    let op = Gather { info: &INDEX_SELECT, dim: normalize_dim(INDEX_SELECT.name, dim, x.rank())? };
    if index.rank() > 1 || x.rank() == 0 && index.numel() != 1 {
        return Err(Error::index(
            INDEX_SELECT.name,
            format!(
                "the index must be a vector (of one element for a number), and has shape {:?}",
                index.shape()
            ),
        ));
    }
    let wide = with_dimension(x)?;
    let index = along(&INDEX_SELECT, index, wide.shape(), op.dim)?;
    Ok((op, wide, index))
}

/// Reads into `out`, which may lack the dimension that a number is given.
fn into(
    op: &dyn Operation,
    x: &Tensor,
    index: &Tensor,
    shape: &[usize],
    out: &Tensor,
    site: Site,
) -> Result<()> {
    if out.shape() != shape {
        return Err(Error::target_shape(op.info().name, shape, out.shape()));
    }
    with_site(site, || {
        let (x, index, out) = (with_dimension(x)?, with_dimension(index)?, with_dimension(out)?);
        apply(op, &[&x, &index], Dest::Out(&[&out]), site).map(drop)
    })
}
