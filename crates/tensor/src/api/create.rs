//! New tensors. All start here: `empty` takes memory from the arena, everything else fills it by an
//! operation.

use plimsoll_core::{DType, Device, Error, Layout, MemoryFormat, Result, Scalar, sizes_from_i64};
use plimsoll_memory::{Kind, OriginId, Site, enter_operation, with_site};
use smallvec::SmallVec;

use super::options::TensorOptions;
use crate::Tensor;
use crate::default_dtype::default_dtype;
use crate::device::{self, Entry};
use crate::dispatch::{Dest, apply_on, first};
use crate::ops::create::{Content, Create, Fill};
use crate::ops::elementwise::output_layout;
use crate::prepare::apply;
use crate::promotion::Other;
use crate::storage::Storage;
use plimsoll_kernels::Element;
use plimsoll_kernels::Meta;

/// Rows and columns of [`Tensor::eye`]: `3`, or `[3, 4]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EyeSize {
    /// Rows.
    pub n: i64,
    /// Columns.
    pub m: i64,
}

impl From<i64> for EyeSize {
    fn from(n: i64) -> EyeSize {
        EyeSize { n, m: n }
    }
}

impl From<[i64; 2]> for EyeSize {
    fn from([n, m]: [i64; 2]) -> EyeSize {
        EyeSize { n, m }
    }
}

impl Tensor {
    /// Memory as it comes, with whatever it held before.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::empty(&[2, 3], DType::F32)?;
    /// assert_eq!((x.shape(), x.nbytes()), (&[2, 3][..], 24));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn empty(sizes: &[i64], options: impl Into<TensorOptions>) -> Result<Tensor> {
        let options = options.into();
        let shape = sizes_from_i64("empty", sizes)?;
        let format = options.memory_format.unwrap_or(MemoryFormat::Contiguous);
        let layout = format.layout(&shape).map_err(|e| e.in_operation("empty"))?;
        let layout = layout.ok_or_else(|| {
            Error::shape("empty", "there is no order to preserve; ask for contiguous_format")
        })?;
        let meta = Meta { layout, dtype: options.dtype_or(default_dtype()) };
        let entry = device::entry(options.device_or_cpu());
        allocate("empty", entry, meta, Site::caller())?.finished(options)
    }

    /// As [`Tensor::empty`], with given strides.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::empty_strided(&[2, 3], &[1, 2], DType::F32)?;
    /// assert_eq!((x.strides(), x.storage_nbytes()), (&[1, 2][..], 24));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn empty_strided(
        sizes: &[i64],
        strides: &[i64],
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let options = options.into();
        let layout = Layout::as_strided(sizes, strides, 0, usize::MAX)
            .map_err(|e| e.in_operation("empty_strided"))?;
        let meta = Meta { layout, dtype: options.dtype_or(default_dtype()) };
        let entry = device::entry(options.device_or_cpu());
        allocate("empty_strided", entry, meta, Site::caller())?.finished(options)
    }

    /// Zeros.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 2], DType::I32)?.to_vec::<i32>()?, [0; 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn zeros(sizes: &[i64], options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("zeros");
        full(sizes, Scalar::Int(0), default_dtype(), options.into(), Site::caller())
    }

    /// Ones.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2], DType::F32)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ones(sizes: &[i64], options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("ones");
        full(sizes, Scalar::Int(1), default_dtype(), options.into(), Site::caller())
    }

    /// One value everywhere; without a dtype the value's own (bool, int64 or float32).
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::full(&[2], 7, DType::F64)?.to_vec::<f64>()?, [7.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn full(
        sizes: &[i64],
        value: impl Into<Scalar>,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let value = value.into();
        full(sizes, value, dtype_of_number(value), options.into(), Site::caller())
    }

    /// A zero-dimensional tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::scalar(2.5, DType::F64)?;
    /// assert_eq!((x.rank(), x.item::<f64>()?), (0, 2.5));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn scalar(value: impl Into<Scalar>, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("scalar");
        Tensor::full(&[], value, options)
    }

    /// `start`, `start + step`, ... to before `end`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 1, 0.25, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.25, 0.5, 0.75]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn arange(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        step: impl Into<Scalar>,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let site = Site::caller();
        let (start, end, step) = (start.into(), end.into(), step.into());
        let options = options.into();
        let highest = [start, end, step].into_iter().max_by_key(|s| s.class()).unwrap_or(start);
        let dtype = options.dtype_or(dtype_of_number(highest));
        if dtype == DType::Bool {
            return Err(Error::dtype("arange", "bools do not count; ask for an integer dtype"));
        }
        let length = arange_length(start, end, step)?;
        let meta = Meta::contiguous(&[length], dtype).map_err(|e| e.in_operation("arange"))?;
        // PyTorch counts in whole numbers then, though the length is that of the fractions.
        let cut = |scalar: Scalar| match scalar {
            Scalar::Float(_) if !dtype.is_float() => Scalar::Int(scalar.to_i64()),
            scalar => scalar,
        };
        let content = Content::Arange { start: cut(start), step: cut(step) };
        create(meta, content, options, site)
    }

    /// The identity matrix, of one size or of rows and columns.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::eye(2, DType::I32)?.to_vec::<i32>()?, [1, 0, 0, 1]);
    /// assert_eq!(Tensor::eye([1, 2], DType::I32)?.to_vec::<i32>()?, [1, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn eye(size: impl Into<EyeSize>, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let options = options.into();
        let EyeSize { n, m } = size.into();
        let shape = sizes_from_i64("eye", &[n, m])?;
        let meta = Meta::contiguous(&shape, options.dtype_or(default_dtype()))
            .map_err(|e| e.in_operation("eye"))?;
        create(meta, Content::Eye, options, Site::caller())
    }

    /// A tensor on `device` with a copy of `values` in row-major order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1i64, 2, 3, 4], &[2, 2], Device::cpu())?;
    /// assert_eq!(x.select(0, 1)?.to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice<T: Element>(values: &[T], sizes: &[i64], device: Device) -> Result<Tensor> {
        let _named = enter_operation("from_slice");
        const OP: &str = "from_slice";
        let site = Site::caller();
        let shape = sizes_from_i64(OP, sizes)?;
        let meta = Meta::contiguous(&shape, T::DTYPE).map_err(|e| e.in_operation(OP))?;
        if meta.layout.numel() != values.len() {
            return Err(Error::shape(
                OP,
                format!(
                    "shape {sizes:?} holds {} elements, but {} values were given",
                    meta.layout.numel(),
                    values.len()
                ),
            ));
        }
        let host = if device.is_cpu() { device } else { Device::CPU };
        let tensor = allocate(OP, device::entry(host), meta, site)?;
        tensor.write_from(values)?;
        tensor.to_device(device, site)
    }

    /// As [`Tensor::from_slice`], from bools.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let mask = Tensor::from_bools(&[true, false], &[2], Device::cpu())?;
    /// assert_eq!(mask.dtype(), DType::Bool);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn from_bools(values: &[bool], sizes: &[i64], device: Device) -> Result<Tensor> {
        let _named = enter_operation("from_bools");
        let bytes: Vec<crate::Truth> =
            values.iter().map(|&value| crate::Truth::new(value)).collect();
        Tensor::from_slice(&bytes, sizes, device)
    }

    /// Memory for a tensor like this one.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F64)?;
    /// assert_eq!(x.empty_like()?.nbytes(), 48);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        allocate("empty_like", self.entry(), self.dense_meta()?, Site::caller())
    }

    /// [`Tensor::empty_like`] with another dtype or device.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2, 3], DType::F64)?;
    /// assert_eq!(x.empty_like_with(DType::F32)?.nbytes(), 24);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn empty_like_with(&self, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let options = options.into();
        let (entry, meta) = self.like(options)?;
        allocate("empty_like", entry, meta, Site::caller())?.finished(options)
    }

    /// Zeros in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::ones(&[2], DType::I64)?.zeros_like()?.to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        let _named = enter_operation("zeros_like");
        self.filled_like(Scalar::Int(0), TensorOptions::default(), Site::caller())
    }

    /// [`Tensor::zeros_like`] with another dtype or device.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::I64)?;
    /// assert_eq!(x.zeros_like_with(DType::F32)?.dtype(), DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn zeros_like_with(&self, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("zeros_like");
        self.filled_like(Scalar::Int(0), options.into(), Site::caller())
    }

    /// Ones in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2], DType::I64)?.ones_like()?.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        let _named = enter_operation("ones_like");
        self.filled_like(Scalar::Int(1), TensorOptions::default(), Site::caller())
    }

    /// [`Tensor::ones_like`] with another dtype or device.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::I64)?;
    /// assert_eq!(x.ones_like_with(DType::F32)?.dtype(), DType::F32);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn ones_like_with(&self, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("ones_like");
        self.filled_like(Scalar::Int(1), options.into(), Site::caller())
    }

    /// One value in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2], DType::I64)?.full_like(5)?.to_vec::<i64>()?, [5, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn full_like(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        let _named = enter_operation("full_like");
        self.filled_like(value.into(), TensorOptions::default(), Site::caller())
    }

    /// [`Tensor::full_like`] with another dtype or device.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[1], DType::I64)?;
    /// assert_eq!(x.full_like_with(0.5, DType::F32)?.item::<f32>()?, 0.5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn full_like_with(
        &self,
        value: impl Into<Scalar>,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("full_like");
        self.filled_like(value.into(), options.into(), Site::caller())
    }

    /// Overwrites every element with `value`, a number or a tensor without dimensions.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 2], DType::F32)?;
    /// x.select(0, 1)?.fill_(3)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.0, 3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fill_<'a>(&self, value: impl Into<Other<'a>>) -> Result<&Tensor> {
        match value.into() {
            Other::Scalar(value) => {
                check_fits("fill_", value, self.dtype())?;
                self.fill_once(value, Site::caller())
            }
            Other::Tensor(value) if value.rank() == 0 => {
                let _named = enter_operation("fill_");
                self.copy_(value)
            }
            Other::Tensor(value) => Err(Error::shape(
                "fill_",
                format!("the value has no dimensions, and this has shape {:?}", value.shape()),
            )),
        }
    }

    /// A tensor like this one with `value` everywhere; in its graph, with a derivative of zero.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// assert_eq!(x.fill(3)?.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn fill<'a>(&self, value: impl Into<Other<'a>>) -> Result<Tensor> {
        let _named = enter_operation("fill");
        let copy = self.clone_tensor()?;
        copy.fill_(value)?;
        Ok(copy)
    }

    /// Overwrites every element with 0. The memory stays; only dropping the tensor frees it.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?;
    /// assert_eq!(x.zero_()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn zero_(&self) -> Result<&Tensor> {
        self.fill_once(Scalar::Int(0), Site::caller())
    }

    /// Fills, an expanded tensor too: what it shows many times is written once.
    fn fill_once(&self, value: Scalar, site: Site) -> Result<&Tensor> {
        let sizes = self.shape().iter().zip(self.strides());
        let repeats = |(dim, (&size, &stride))| (size > 1 && stride == 0).then_some(dim as i64);
        let repeated: SmallVec<[i64; 6]> = sizes.enumerate().filter_map(repeats).collect();
        if repeated.is_empty() {
            apply(&Fill(value), &[self], Dest::InPlace, site)?;
            return Ok(self);
        }
        with_site(site, || {
            let shown_once =
                repeated.iter().try_fold(self.clone(), |x, &dim| x.narrow(dim, 0, 1))?;
            apply(&Fill(value), &[&shown_once], Dest::InPlace, site)
        })?;
        Ok(self)
    }

    fn filled_like(&self, value: Scalar, options: TensorOptions, site: Site) -> Result<Tensor> {
        let (entry, meta) = self.like(options)?;
        check_fits("full_like", value, meta.dtype)?;
        let op = Create { meta, content: Content::Full(value) };
        first(apply_on(entry, &op, &[], Dest::New, site)?).finished(options)
    }

    /// Where a tensor like this one lies, and how, unless `options` say otherwise.
    pub(super) fn like(&self, options: TensorOptions) -> Result<(&'static Entry, Meta)> {
        let entry = options.device.map_or(self.entry(), device::entry);
        let dtype = options.dtype_or(self.dtype());
        let asked = options.memory_format.map(|format| format.layout(self.shape())).transpose()?;
        match asked.flatten() {
            Some(layout) => Ok((entry, Meta { layout, dtype })),
            None => Ok((entry, Meta { dtype, ..self.dense_meta()? })),
        }
    }

    /// The meta of a dense tensor in this one's order of dimensions.
    pub(super) fn dense_meta(&self) -> Result<Meta> {
        let layout = output_layout("empty_like", &[self.meta()])?;
        Ok(Meta { layout, dtype: self.dtype() })
    }

    /// Zeros for the engine, where an output got no gradient.
    #[track_caller]
    pub(crate) fn zeros_on(entry: &'static Entry, meta: &Meta) -> Result<Tensor> {
        let meta = Meta::contiguous(meta.shape(), meta.dtype)?;
        let op = Create { meta, content: Content::Full(Scalar::Int(0)) };
        Ok(first(apply_on(entry, &op, &[], Dest::New, Site::caller())?))
    }

    /// Memory for results that an operation is told to write into, laid out as `meta`.
    #[track_caller]
    pub(crate) fn empty_on(op: &'static str, entry: &'static Entry, meta: Meta) -> Result<Tensor> {
        allocate(op, entry, meta, Site::caller())
    }

    pub(super) fn finished(self, options: TensorOptions) -> Result<Tensor> {
        if options.requires_grad { self.requires_grad_(true) } else { Ok(self) }
    }
}

/// A tensor over fresh memory.
pub(crate) fn allocate(
    op: &'static str,
    entry: &'static Entry,
    meta: Meta,
    site: Site,
) -> Result<Tensor> {
    let storage =
        Storage::allocate(entry, meta.span_bytes(), OriginId::intern(op, site), Kind::Temporary)
            .map_err(|e| e.in_operation(op))?;
    Ok(Tensor::new(storage, meta))
}

fn full(
    sizes: &[i64],
    value: Scalar,
    dtype: DType,
    options: TensorOptions,
    site: Site,
) -> Result<Tensor> {
    check_fits("full", value, options.dtype_or(dtype))?;
    let shape = sizes_from_i64("full", sizes)?;
    let meta =
        Meta::contiguous(&shape, options.dtype_or(dtype)).map_err(|e| e.in_operation("full"))?;
    create(meta, Content::Full(value), options, site)
}

fn create(meta: Meta, content: Content, options: TensorOptions, site: Site) -> Result<Tensor> {
    let entry = device::entry(options.device_or_cpu());
    let outputs = apply_on(entry, &Create { meta, content }, &[], Dest::New, site)?;
    first(outputs).finished(options)
}

fn dtype_of_number(value: Scalar) -> DType {
    match value {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::I64,
        Scalar::Float(_) => default_dtype(),
    }
}

/// How many numbers there are; exact for whole numbers of any size.
fn arange_length(start: Scalar, end: Scalar, step: Scalar) -> Result<usize> {
    let refuse = |why: &str| {
        let why = format!("from {start} to {end} by {step}: {why}");
        Error::invalid_argument(why).in_operation("arange")
    };
    const NO_WAY: &str = "the step must lead from start to end";
    const TOO_MANY: &str = "too many numbers";
    let whole = |scalar: Scalar| match scalar {
        Scalar::Float(_) => None,
        Scalar::Bool(_) | Scalar::Int(_) => Some(i128::from(scalar.to_i64())),
    };
    if let (Some(from), Some(to), Some(by)) = (whole(start), whole(end), whole(step)) {
        if by == 0 || (to - from) * by.signum() < 0 {
            return Err(refuse(NO_WAY));
        }
        let length = ((to - from).unsigned_abs()).div_ceil(by.unsigned_abs());
        return usize::try_from(length).map_err(|_| refuse(TOO_MANY));
    }
    let (from, to, by) = (start.to_f64(), end.to_f64(), step.to_f64());
    if !(from.is_finite() && to.is_finite() && by.is_finite()) {
        return Err(refuse("the bounds and the step must be finite"));
    }
    if by == 0.0 || (to - from) * by < 0.0 {
        return Err(refuse(NO_WAY));
    }
    let length = ((to - from) / by).ceil();
    // Past 2^53 the count itself would not be exact.
    if length > 9_007_199_254_740_992.0 {
        return Err(refuse(TOO_MANY));
    }
    Ok(length as usize)
}

/// Whether an element of `dtype` can hold a number. As in PyTorch, fractions are cut off, a
/// negative whole number wraps once in uint8, and bools and floats take everything.
///
/// ```
/// # use plimsoll_tensor::*;
/// assert!(fits(Scalar::Int(-1), DType::U8) && fits(Scalar::Float(2.5), DType::I32));
/// assert!(!fits(Scalar::Int(300), DType::U8) && !fits(Scalar::Float(1e30), DType::I64));
/// ```
pub fn fits(value: Scalar, dtype: DType) -> bool {
    let (low, high) = match dtype {
        DType::U8 if matches!(value, Scalar::Float(_)) => (0, 255),
        DType::U8 => (-255, 255),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::I64 => (i64::MIN, i64::MAX),
        DType::Bool | DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return true,
    };
    match value {
        Scalar::Bool(_) => true,
        Scalar::Int(value) => (low..=high).contains(&value),
        // As a double the highest int64 is 2^63, which is one too many.
        Scalar::Float(value) if high == i64::MAX => value >= low as f64 && value < high as f64,
        Scalar::Float(value) => value >= low as f64 && value <= high as f64,
    }
}

fn check_fits(op: &'static str, value: Scalar, dtype: DType) -> Result<()> {
    if fits(value, dtype) {
        return Ok(());
    }
    let why = format!("{value} does not fit {dtype}; choose a wider dtype or another value");
    Err(Error::invalid_argument(why).in_operation(op))
}
