//! Random tensors, from the generator of the device that they are on. `manual_seed` makes them
//! repeat.

use plimsoll_core::{DType, Error, Result, sizes_from_i64};
use plimsoll_memory::{Site, enter_operation};
use smallvec::SmallVec;

use super::options::TensorOptions;
use crate::Tensor;
use crate::default_dtype::default_dtype;
use crate::device::{self, Entry};
use crate::dispatch::{Dest, apply_on, first};
use crate::generator::Drawn;
use crate::ops::random::{Distribution, Formula, Random, Randomize};
use crate::prepare::apply;
use crate::random;
use plimsoll_kernels::Meta;

const UNIT: Distribution = Distribution::Uniform { low: 0.0, high: 1.0 };
const NORMAL: Distribution = Distribution::Normal { mean: 0.0, deviation: 1.0 };

impl Tensor {
    /// Uniform random numbers from 0 to before 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::rand(&[100], DType::F32)?.to_vec::<f32>()?;
    /// assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rand(sizes: &[i64], options: impl Into<TensorOptions>) -> Result<Tensor> {
        new("rand", sizes, UNIT, default_dtype(), options.into(), Site::caller())
    }

    /// Normal random numbers of mean 0 and deviation 1.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::randn(&[10_000], DType::F64)?;
    /// assert!(x.mean()?.item::<f64>()?.abs() < 0.1);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn randn(sizes: &[i64], options: impl Into<TensorOptions>) -> Result<Tensor> {
        new("randn", sizes, NORMAL, default_dtype(), options.into(), Site::caller())
    }

    /// Random whole numbers from `low` to before `high`; int64 unless a dtype is given.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let dice = Tensor::randint(1, 7, &[100], Device::cpu())?;
    /// assert!(dice.to_vec::<i64>()?.iter().all(|eyes| (1..7).contains(eyes)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn randint(
        low: i64,
        high: i64,
        sizes: &[i64],
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let options = options.into();
        check_range(low, high, options.dtype_or(DType::I64))?;
        let distribution = Distribution::Integer { low, high };
        if options.dtype == Some(DType::Bool) {
            // There is no loop that draws bools: bytes are drawn and converted.
            let _named = enter_operation("randint");
            let bytes = TensorOptions { dtype: Some(DType::U8), ..options };
            let drawn = new("randint", sizes, distribution, DType::U8, bytes, Site::caller())?;
            return drawn.to(DType::Bool);
        }
        new("randint", sizes, distribution, DType::I64, options, Site::caller())
    }

    /// [`Tensor::rand`] in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3], DType::F64)?;
    /// assert_eq!(x.rand_like()?.shape(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn rand_like(&self) -> Result<Tensor> {
        let _named = enter_operation("rand_like");
        draw("rand_like", self.entry(), self.dense_meta()?, UNIT, Site::caller())
    }

    /// [`Tensor::rand_like`] with another dtype or device.
    #[track_caller]
    pub fn rand_like_with(&self, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let options = options.into();
        let (entry, meta) = self.like(options)?;
        draw("rand_like", entry, meta, UNIT, Site::caller())?.finished(options)
    }

    /// [`Tensor::randn`] in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2, 3], DType::F64)?;
    /// assert_eq!(x.randn_like()?.dtype(), DType::F64);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn randn_like(&self) -> Result<Tensor> {
        let _named = enter_operation("randn_like");
        draw("randn_like", self.entry(), self.dense_meta()?, NORMAL, Site::caller())
    }

    /// [`Tensor::randn_like`] with another dtype or device.
    #[track_caller]
    pub fn randn_like_with(&self, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let options = options.into();
        let (entry, meta) = self.like(options)?;
        draw("randn_like", entry, meta, NORMAL, Site::caller())?.finished(options)
    }

    /// [`Tensor::randint`] in the shape, dtype and place of this tensor.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[100], DType::I64)?.randint_like(3, 5)?;
    /// assert!(x.to_vec::<i64>()?.iter().all(|value| (3..5).contains(value)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn randint_like(&self, low: i64, high: i64) -> Result<Tensor> {
        let _named = enter_operation("randint_like");
        check_range(low, high, self.dtype())?;
        let distribution = Distribution::Integer { low, high };
        draw("randint_like", self.entry(), self.dense_meta()?, distribution, Site::caller())
    }

    /// [`Tensor::randint_like`] with another dtype or device.
    #[track_caller]
    pub fn randint_like_with(
        &self,
        low: i64,
        high: i64,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("randint_like");
        let options = options.into();
        let (entry, meta) = self.like(options)?;
        check_range(low, high, meta.dtype)?;
        let distribution = Distribution::Integer { low, high };
        if meta.dtype == DType::Bool {
            let bytes = Meta { dtype: DType::U8, ..meta };
            return draw("randint_like", entry, bytes, distribution, Site::caller())?
                .to(DType::Bool);
        }
        draw("randint_like", entry, meta, distribution, Site::caller())?.finished(options)
    }

    /// Overwrites every element with a uniform random number from `low` to before `high`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::F32)?;
    /// x.uniform_(-2.0, -1.0)?;
    /// assert!(x.to_vec::<f32>()?.iter().all(|x| (-2.0..-1.0).contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn uniform_(&self, low: f64, high: f64) -> Result<&Tensor> {
        let _named = enter_operation("uniform_");
        if !(low <= high && (high - low).is_finite()) {
            return Err(Error::invalid_argument(format!(
                "the range from {low} to {high} must be finite and not end before it starts"
            ))
            .in_operation("uniform_"));
        }
        overwrite("uniform_", self, Distribution::Uniform { low, high }, Site::caller())
    }

    /// Overwrites every element with a normal random number.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F64)?;
    /// x.normal_(5.0, 0.0)?; // no deviation
    /// assert_eq!(x.to_vec::<f64>()?, [5.0; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn normal_(&self, mean: f64, deviation: f64) -> Result<&Tensor> {
        let _named = enter_operation("normal_");
        if deviation.is_nan() || deviation < 0.0 {
            return Err(Error::invalid_argument(format!(
                "the standard deviation must not be negative, and is {deviation}"
            ))
            .in_operation("normal_"));
        }
        overwrite("normal_", self, Distribution::Normal { mean, deviation }, Site::caller())
    }
}

fn new(
    op: &'static str,
    sizes: &[i64],
    distribution: Distribution,
    default: DType,
    options: TensorOptions,
    site: Site,
) -> Result<Tensor> {
    let shape = sizes_from_i64(op, sizes)?;
    let meta =
        Meta::contiguous(&shape, options.dtype_or(default)).map_err(|e| e.in_operation(op))?;
    let entry = device::entry(options.device_or_cpu());
    draw(op, entry, meta, distribution, site)?.finished(options)
}

fn draw(
    op: &'static str,
    entry: &'static Entry,
    meta: Meta,
    distribution: Distribution,
    site: Site,
) -> Result<Tensor> {
    check_dtype(op, distribution, meta.dtype)?;
    let Drawn { draws, state } = random::draw(entry, distribution.counters(&meta))?;
    let random = Random { meta, distribution, draws };
    let inputs: SmallVec<[&Tensor; 1]> = state.iter().collect();
    Ok(first(apply_on(entry, &random, &inputs, Dest::New, site)?))
}

pub(super) fn overwrite<'a>(
    op: &'static str,
    x: &'a Tensor,
    distribution: Distribution,
    site: Site,
) -> Result<&'a Tensor> {
    check_dtype(op, distribution, x.dtype())?;
    let Drawn { draws, state } = random::draw(x.entry(), distribution.counters(x.meta()))?;
    let inputs: SmallVec<[&Tensor; 2]> = std::iter::once(x).chain(&state).collect();
    apply(&Randomize { distribution, draws }, &inputs, Dest::InPlace, site)?;
    Ok(x)
}

fn check_dtype(op: &'static str, distribution: Distribution, dtype: DType) -> Result<()> {
    match distribution {
        Distribution::By(Formula::Bernoulli(_)) => Ok(()),
        Distribution::By(Formula::Geometric(_)) if dtype != DType::Bool => Ok(()),
        Distribution::Integer { .. } if dtype != DType::Bool => Ok(()),
        Distribution::Integer { .. } => Err(Error::dtype(
            op,
            "whole numbers cannot be drawn as bool; draw int64 and compare, or convert with `to`",
        )),
        _ if dtype.is_float() => Ok(()),
        _ => Err(Error::dtype(
            op,
            format!("random fractions cannot be {dtype}; use a float dtype, or `randint`"),
        )),
    }
}

/// The range must not be empty, and all of it must fit the dtype.
fn check_range(low: i64, high: i64, dtype: DType) -> Result<()> {
    let refuse = |why: String| {
        Err(Error::invalid_argument(format!("from {low} to before {high}: {why}"))
            .in_operation("randint"))
    };
    if low >= high {
        return refuse("the range is empty; `high` must be above `low`".into());
    }
    // The largest magnitude that floats of a dtype count to without gaps.
    let (least, most) = match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::F16 => (-2048, 2048),
        DType::BF16 => (-256, 256),
        DType::F32 => (-(1 << 24), 1 << 24),
        DType::F64 => (-(1 << 53), 1 << 53),
        DType::Bool => (0, 1),
        DType::I64 => return Ok(()),
    };
    if low < least || high - 1 > most {
        return refuse(format!("{dtype} holds every whole number only from {least} to {most}"));
    }
    Ok(())
}
