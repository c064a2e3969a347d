//! Reductions over all or some dimensions.

use plimsoll_core::{DType, Error, Result, normalize_dims, sizes_from_i64};
use plimsoll_memory::{Site, enter_operation};

use smallvec::SmallVec;

use super::options::{DimList, options};
use crate::Tensor;
use crate::api::composed;
use crate::dispatch::Dest;
use crate::ops::reduce::{Reduce, Reduction};
use crate::prepare::{apply, apply_one};

options! {
    /// Over what [`Tensor::sum_with`] and [`Tensor::mean_with`] go, and in which dtype. A dimension
    /// or a list of them will do: `x.sum_with([0, 1])`.
    SumOptions {
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
        /// The dtype to add up in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Over what a reduction goes. A dimension or a list of them will do: `x.amax_with(-1)`.
    ReduceOptions {
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether they stay, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Over what [`Tensor::any_with`] and [`Tensor::all_with`] look. A dimension or a list of them
    /// will do.
    TruthOptions {
        /// The dimensions; an empty list means every element by itself, and nothing means all.
        dim: Option<DimList> = None,
        /// Whether they stay, with size 1.
        keepdim: bool = false,
    }
}

options! {
    /// Over what [`Tensor::prod_with`] goes, and in which dtype. A dimension will do.
    ProdOptions {
        /// The dimension; none means all.
        dim: Option<i64> = None,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
        /// The dtype to multiply in, and of the result.
        dtype: Option<DType> = None,
    }
}

options! {
    /// Over what [`Tensor::count_nonzero_with`] counts. A dimension or a list of them will do.
    CountNonzeroOptions {
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
    }
}

options! {
    /// Along what [`Tensor::argmax_with`] looks. A dimension will do: `x.argmax_with(-1)`.
    ArgOptions {
        /// The dimension; none means all elements in row-major order.
        dim: Option<i64> = None,
        /// Whether it stays, with size 1.
        keepdim: bool = false,
    }
}

impl<T: Into<DimList>> From<T> for SumOptions {
    fn from(dims: T) -> SumOptions {
        SumOptions::new().dim(dims)
    }
}

impl<T: Into<DimList>> From<T> for ReduceOptions {
    fn from(dims: T) -> ReduceOptions {
        ReduceOptions::new().dim(dims)
    }
}

impl<T: Into<DimList>> From<T> for TruthOptions {
    fn from(dims: T) -> TruthOptions {
        TruthOptions::new().dim(dims.into())
    }
}

impl<T: Into<DimList>> From<T> for CountNonzeroOptions {
    fn from(dims: T) -> CountNonzeroOptions {
        CountNonzeroOptions::new().dim(dims)
    }
}

impl From<i64> for ProdOptions {
    fn from(dim: i64) -> ProdOptions {
        ProdOptions::new().dim(dim)
    }
}

impl From<i64> for ArgOptions {
    fn from(dim: i64) -> ArgOptions {
        ArgOptions::new().dim(dim)
    }
}

impl Tensor {
    /// The sum over `dims`, for derivatives.
    pub(crate) fn sum_over(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        self.sum_with(SumOptions::from(dims).keepdim(keepdim))
    }

    /// The mean over `dims`, for derivatives.
    pub(crate) fn mean_over(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        self.mean_with(SumOptions::from(dims).keepdim(keepdim))
    }

    /// The gradient of an operand of `shape` that was broadcast to this one: the sum over the
    /// stretched dimensions.
    pub(crate) fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let lead = self.rank() - shape.len();
        let leading: SmallVec<[i64; 6]> = (0..lead as i64).collect();
        let stretched: SmallVec<[i64; 6]> = (0..shape.len())
            .filter(|&dim| shape[dim] == 1 && self.shape()[dim + lead] != 1)
            .map(|dim| dim as i64)
            .collect();
        // No view at the end: a gradient that is nobody else's memory can be taken over by a leaf
        // without a copy.
        let sum = if leading.is_empty() { self.clone() } else { self.sum_over(&leading, false)? };
        if stretched.is_empty() { Ok(sum) } else { sum.sum_over(&stretched, true) }
    }
}

impl Tensor {
    /// The mean of the elements that are not NaN.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 3.0], &[3], Device::cpu())?;
    /// assert_eq!(x.nanmean()?.item::<f32>()?, 2.0);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn nanmean(&self) -> Result<Tensor> {
        self.nanmean_with(SumOptions::new())
    }

    /// The mean over some dimensions of what is not NaN.
    #[track_caller]
    pub fn nanmean_with(&self, options: impl Into<SumOptions>) -> Result<Tensor> {
        let options = options.into();
        if !self.dtype().is_float() {
            return Err(Error::dtype(
                "nanmean",
                "the mean of integers is not defined; convert first",
            ));
        }
        composed("nanmean", Site::caller(), || {
            let plain = self.detach();
            let over = SumOptions { dtype: None, ..options.clone() };
            let count = plain.eq(&plain)?.sum_with(over)?;
            self.nansum_with(options)?.div(&count)
        })
    }

    /// The sum over dimensions so that `size`, which broadcasts to the shape, is left.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F32)?;
    /// assert_eq!(x.sum_to_size(&[1, 3])?.to_vec::<f32>()?, [2.0, 2.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn sum_to_size(&self, size: &[i64]) -> Result<Tensor> {
        let shape = sizes_from_i64("sum_to_size", size)?;
        let own = self.shape();
        let fits = shape.len() <= own.len()
            && shape.iter().rev().zip(own.iter().rev()).all(|(&a, &b)| a == b || a == 1);
        if !fits {
            return Err(Error::shape(
                "sum_to_size",
                format!("shape {:?} does not broadcast to {own:?}", shape.as_slice()),
            ));
        }
        composed("sum_to_size", Site::caller(), || match shape.as_slice() {
            // PyTorch's own sum of all elements, which is never the tensor itself.
            [] => self.sum(),
            shape => self.sum_to(shape),
        })
    }
}

/// The forms of one reduction: over all dimensions, with options, and with options into a given
/// tensor.
macro_rules! reduce {
    (
        $(#[$doc:meta])* $name:ident,
        $(#[$with_doc:meta])* $with:ident,
        $into:ident => $reduction:path, $options:ty
    ) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                reduce($reduction, self, Over::default(), Site::caller())
            }

            $(#[$with_doc])*
            #[track_caller]
            pub fn $with(&self, options: impl Into<$options>) -> Result<Tensor> {
                reduce($reduction, self, options.into().into(), Site::caller())
            }

            #[doc = concat!("[`Tensor::", stringify!($with), "`] into `out`.")]
            #[track_caller]
            pub fn $into(&self, options: impl Into<$options>, out: &Tensor) -> Result<()> {
                reduce_into($reduction, self, options.into().into(), out, Site::caller())
            }
        }
    };
}

reduce! {
    /// The sum of the elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 5, 1, DType::I64)?.sum()?.item::<i64>()?, 10);
    /// # Ok::<(), Error>(())
    /// ```
    sum,
    /// The sum over some dimensions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// assert_eq!(x.sum_with(0)?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// let wide = x.sum_with(SumOptions::new().dim([-1]).keepdim(true).dtype(DType::F64))?;
    /// assert_eq!((wide.shape(), wide.dtype()), (&[2, 1][..], DType::F64));
    /// # Ok::<(), Error>(())
    /// ```
    sum_with,
    sum_with_out => Reduction::Sum, SumOptions
}
reduce! {
    /// The sum of the elements that are not NaN.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, f32::NAN, 2.0], &[3], Device::cpu())?;
    /// assert_eq!(x.nansum()?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    nansum,
    /// The sum over some dimensions of what is not NaN.
    nansum_with,
    nansum_with_out => Reduction::NanSum, SumOptions
}
reduce! {
    /// The product of the elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(1, 5, 1, DType::I64)?.prod()?.item::<i64>()?, 24);
    /// # Ok::<(), Error>(())
    /// ```
    prod,
    /// The product over a dimension.
    prod_with,
    prod_with_out => Reduction::Prod, ProdOptions
}
reduce! {
    /// How many elements are not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 3, 1, DType::F32)?.count_nonzero()?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    count_nonzero,
    /// How many elements over some dimensions are not zero.
    count_nonzero_with,
    count_nonzero_with_out => Reduction::CountNonzero, CountNonzeroOptions
}
reduce! {
    /// The mean of the elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.mean()?.item::<f32>()?, 1.5);
    /// # Ok::<(), Error>(())
    /// ```
    mean,
    /// The mean over some dimensions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.mean_with(1)?.to_vec::<f32>()?, [0.5, 2.5]);
    /// # Ok::<(), Error>(())
    /// ```
    mean_with,
    mean_with_out => Reduction::Mean, SumOptions
}
reduce! {
    /// The largest element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.amax()?.item::<f32>()?, 3.0);
    /// # Ok::<(), Error>(())
    /// ```
    amax,
    /// The largest element over some dimensions; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.amax_with(0)?.to_vec::<f32>()?, [2.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    amax_with,
    amax_with_out => Reduction::Amax, ReduceOptions
}
reduce! {
    /// The smallest element; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 4, 1, DType::F32)?.amin()?.item::<f32>()?, 0.0);
    /// # Ok::<(), Error>(())
    /// ```
    amin,
    /// The smallest element over some dimensions; NaN wins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::F32)?.view(&[2, 2])?;
    /// assert_eq!(x.amin_with(1)?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    amin_with,
    amin_with_out => Reduction::Amin, ReduceOptions
}
reduce! {
    /// The index of the first largest element, in row-major order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 9.0, 2.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.argmax()?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    argmax,
    /// The index of the first largest element along a dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[3.0f32, 1.0, 9.0, 2.0], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.argmax_with(1)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    argmax_with,
    argmax_with_out => Reduction::Argmax, ArgOptions
}
reduce! {
    /// The index of the first smallest element, in row-major order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(3, 0, -1, DType::F32)?.argmin()?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    argmin,
    /// The index of the first smallest element along a dimension.
    argmin_with,
    argmin_with_out => Reduction::Argmin, ArgOptions
}
reduce! {
    /// Whether any element is not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 2, 1, DType::I64)?.any()?.to_bools()?, [true]);
    /// # Ok::<(), Error>(())
    /// ```
    any,
    /// Whether any element over some dimensions is not zero.
    any_with,
    any_with_out => Reduction::Any, TruthOptions
}
reduce! {
    /// Whether all elements are not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::arange(0, 2, 1, DType::I64)?.all()?.to_bools()?, [false]);
    /// # Ok::<(), Error>(())
    /// ```
    all,
    /// Whether all elements over some dimensions are not zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?;
    /// assert_eq!(x.all_with(1)?.to_bools()?, [false, true]);
    /// # Ok::<(), Error>(())
    /// ```
    all_with,
    all_with_out => Reduction::All, TruthOptions
}

/// Dimensions of a reduction's operand: PyTorch's bound.
const MOST_DIMS: usize = 64;

/// What all options say.
#[derive(Default)]
struct Over {
    dims: DimList,
    /// Whether an empty list is meant, and not all dimensions.
    each: bool,
    keepdim: bool,
    dtype: Option<DType>,
}

impl From<SumOptions> for Over {
    fn from(options: SumOptions) -> Over {
        let SumOptions { dim, keepdim, dtype } = options;
        Over { dims: dim, keepdim, dtype, each: false }
    }
}

impl From<ReduceOptions> for Over {
    fn from(options: ReduceOptions) -> Over {
        let ReduceOptions { dim, keepdim } = options;
        Over { dims: dim, keepdim, dtype: None, each: false }
    }
}

impl From<ArgOptions> for Over {
    fn from(options: ArgOptions) -> Over {
        let ArgOptions { dim, keepdim } = options;
        Over { dims: dim.map(DimList::from).unwrap_or_default(), keepdim, ..Over::default() }
    }
}

impl From<TruthOptions> for Over {
    fn from(options: TruthOptions) -> Over {
        let TruthOptions { dim, keepdim } = options;
        let each = dim.as_ref().is_some_and(|dims| dims.as_slice().is_empty());
        Over { dims: dim.unwrap_or_default(), each, keepdim, dtype: None }
    }
}

impl From<ProdOptions> for Over {
    fn from(options: ProdOptions) -> Over {
        let ProdOptions { dim, keepdim, dtype } = options;
        Over { dims: dim.map(DimList::from).unwrap_or_default(), each: false, keepdim, dtype }
    }
}

impl From<CountNonzeroOptions> for Over {
    fn from(options: CountNonzeroOptions) -> Over {
        Over { dims: options.dim, ..Over::default() }
    }
}

fn reduce(reduction: Reduction, x: &Tensor, over: Over, site: Site) -> Result<Tensor> {
    let x = in_dtype(x, &over, site)?;
    let result = apply_one(&operation(reduction, &x, &over)?, &[&x], site)?;
    // PyTorch answers any and all of uint8, its bool of old, in uint8.
    match reduction {
        Reduction::Any | Reduction::All if x.dtype() == DType::U8 => {
            let _named = enter_operation(if reduction == Reduction::Any { "any" } else { "all" });
            result.to_dtype(DType::U8, site)
        }
        _ => Ok(result),
    }
}

fn reduce_into(
    reduction: Reduction,
    x: &Tensor,
    over: Over,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    let mut over = over;
    use Reduction::{Mean, NanSum, Prod, Sum};
    if matches!(reduction, Sum | NanSum | Mean | Prod) {
        // As in PyTorch, the target chooses the dtype to add up in.
        over.dtype = over.dtype.or(Some(out.dtype()));
    }
    if reduction == NanSum && x.dtype().is_float() && !over.dtype.is_some_and(DType::is_float) {
        let why = format!("floats are not added up as {}; give a float target", out.dtype());
        return Err(Error::dtype("nansum", why));
    }
    let is_truth = matches!(reduction, Reduction::Any | Reduction::All);
    if is_truth && out.dtype() == DType::U8 {
        let result = reduce(reduction, x, over, site)?;
        let name = if reduction == Reduction::Any { "any" } else { "all" };
        if out.shape() != result.shape() {
            return Err(Error::target_shape(name, result.shape(), out.shape()));
        }
        let _named = enter_operation(name);
        return out.copy_from(&result.to_dtype(DType::U8, site)?, site).map(drop);
    }
    let x = in_dtype(x, &over, site)?;
    apply(&operation(reduction, &x, &over)?, &[&x], Dest::Out(&[out]), site).map(drop)
}

/// The elements in the dtype to add up in.
fn in_dtype(x: &Tensor, over: &Over, site: Site) -> Result<Tensor> {
    match over.dtype {
        Some(dtype) => x.to_dtype(dtype, site),
        None => Ok(x.clone()),
    }
}

fn operation(reduction: Reduction, x: &Tensor, over: &Over) -> Result<Reduce> {
    let dtype = match reduction {
        Reduction::Sum | Reduction::NanSum | Reduction::Prod if !x.dtype().is_float() => {
            over.dtype.unwrap_or(DType::I64)
        }
        Reduction::Argmax | Reduction::Argmin if x.dtype() != DType::Bool => DType::I64,
        Reduction::Argmax | Reduction::Argmin => {
            let name = if reduction == Reduction::Argmax { "argmax" } else { "argmin" };
            return Err(Error::dtype(
                name,
                "bools have no order to speak of; convert with `to` to an integer first",
            ));
        }
        Reduction::Any | Reduction::All => DType::Bool,
        Reduction::CountNonzero => DType::I64,
        Reduction::Mean if !x.dtype().is_float() => {
            return Err(Error::dtype(
                "mean",
                format!(
                    "the mean of {} is not defined; give a float `dtype`, or convert with `to` first",
                    x.dtype()
                ),
            ));
        }
        _ => x.dtype(),
    };
    let mut op = Reduce { reduction, dims: Default::default(), keepdim: over.keepdim, dtype };
    if x.rank() > MOST_DIMS {
        let why = format!("at most {MOST_DIMS} dimensions can be reduced, not {}", x.rank());
        return Err(Error::shape(op.name(), why));
    }
    if !over.each {
        op.dims = normalize_dims(op.name(), over.dims.as_slice(), x.rank())?;
    }
    Ok(op)
}
