//! The derivative of a function by differences of its values at points along some dimensions.

use plimsoll_core::{DType, Error, Result, normalize_dims};
use plimsoll_memory::Site;

use super::options::{DimList, options};
use crate::Tensor;
use crate::api::composed;

options! {
    /// Along what [`Tensor::gradient_with`] goes, and how far apart the points are.
    GradientOptions {
        /// The distance of neighbours.
        spacing: Option<f64> = None,
        /// The dimensions; none means all.
        dim: DimList = DimList::default(),
        /// Whether the ends are met by lines (1) or parabolas (2).
        edge_order: i64 = 1,
    }
}

/// The distances of points along one dimension.
enum Spacing {
    Even(f64),
    At(Tensor),
}

impl Tensor {
    /// The derivative along each dimension, of values whose points are 1 apart.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 4.0, 9.0], &[3], Device::cpu())?;
    /// assert_eq!(x.gradient()?[0].to_vec::<f32>()?, [3.0, 4.0, 5.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gradient(&self) -> Result<Vec<Tensor>> {
        self.gradient_with(GradientOptions::new())
    }

    /// [`Tensor::gradient`] along some dimensions, or with points at other distances.
    #[track_caller]
    pub fn gradient_with(&self, options: GradientOptions) -> Result<Vec<Tensor>> {
        composed("gradient", Site::caller(), || {
            let dims = dims_of(self, &options)?;
            let spacing = options.spacing.unwrap_or(1.0);
            along_all(self, &dims, options.edge_order, |_| Spacing::Even(spacing))
        })
    }

    /// [`Tensor::gradient`] with a distance of neighbours for each dimension.
    #[track_caller]
    pub fn gradient_apart(&self, spacing: &[f64], options: GradientOptions) -> Result<Vec<Tensor>> {
        composed("gradient", Site::caller(), || {
            let dims = dims_of(self, &options)?;
            if spacing.len() != dims.len() {
                return Err(not_as_many(spacing.len(), dims.len()));
            }
            along_all(self, &dims, options.edge_order, |at| Spacing::Even(spacing[at]))
        })
    }

    /// [`Tensor::gradient`] of values at given points, a line of them for each dimension.
    #[track_caller]
    pub fn gradient_at(
        &self,
        spacing: &[&Tensor],
        options: GradientOptions,
    ) -> Result<Vec<Tensor>> {
        composed("gradient", Site::caller(), || {
            let dims = dims_of(self, &options)?;
            if spacing.len() != dims.len() {
                return Err(not_as_many(spacing.len(), dims.len()));
            }
            for (points, &dim) in spacing.iter().zip(&dims) {
                if points.rank() != 1 || points.shape()[0] != self.shape()[dim] {
                    return Err(Error::shape(
                        "gradient",
                        format!(
                            "dimension {dim} of shape {:?} needs a line of as many points, not shape {:?}",
                            self.shape(),
                            points.shape()
                        ),
                    ));
                }
                if points.device() != self.device() {
                    return Err(Error::device("gradient", "points must be where the values are"));
                }
            }
            along_all(self, &dims, options.edge_order, |at| Spacing::At(spacing[at].clone()))
        })
    }
}

fn not_as_many(spacings: usize, dims: usize) -> Error {
    Error::shape("gradient", format!("there are {spacings} distances for {dims} dimensions"))
}

/// Differences below 0 need a dtype that has them.
fn check_dtype(x: &Tensor) -> Result<()> {
    if !matches!(x.dtype(), DType::Bool | DType::U8) {
        return Ok(());
    }
    let why = format!("{} has no numbers below 0; convert with `to` first", x.dtype());
    Err(Error::dtype("gradient", why))
}

fn dims_of(x: &Tensor, options: &GradientOptions) -> Result<Vec<usize>> {
    const OP: &str = "gradient";
    check_dtype(x)?;
    if !matches!(options.edge_order, 1 | 2) {
        let why = format!("the order at the ends is 1 or 2, not {}", options.edge_order);
        return Err(Error::shape(OP, why));
    }
    if matches!(x.dtype(), DType::U8 | DType::Bool) {
        return Err(Error::shape(OP, format!("{} has no differences below 0", x.dtype())));
    }
    let dims = normalize_dims(OP, options.dim.as_slice(), x.rank())?;
    let short = dims.iter().find(|&&dim| x.shape()[dim] as i64 <= options.edge_order);
    match short {
        Some(dim) => Err(Error::shape(
            OP,
            format!(
                "dimension {dim} of shape {:?} needs {} points at least",
                x.shape(),
                options.edge_order + 1
            ),
        )),
        None => Ok(dims.to_vec()),
    }
}

fn along_all(
    x: &Tensor,
    dims: &[usize],
    edge_order: i64,
    spacing: impl Fn(usize) -> Spacing,
) -> Result<Vec<Tensor>> {
    let one = |(at, &dim): (usize, &usize)| along(x, dim, edge_order, &spacing(at));
    dims.iter().enumerate().map(one).collect()
}

/// The derivative along `dim`: inside from both neighbours, at the ends from one side.
fn along(x: &Tensor, dim: usize, edge_order: i64, spacing: &Spacing) -> Result<Tensor> {
    let (axis, len) = (dim as i64, x.shape()[dim] as i64);
    let part = |start: i64, count: i64| x.narrow(axis, start, count);
    let inner = len - 2;
    let (early, here, late) = (part(0, inner)?, part(1, inner)?, part(2, inner)?);
    let (inside, steps) = match spacing {
        Spacing::Even(step) => (late.sub(&early)?.div(2.0 * step)?, None),
        Spacing::At(points) => {
            let steps = points.diff()?;
            let mut sizes = vec![1; x.rank()];
            sizes[dim] = len - 1;
            let steps = steps.reshape(&sizes)?;
            let (before, after) = (steps.narrow(axis, 0, inner)?, steps.narrow(axis, 1, inner)?);
            let both = before.add(&after)?;
            let a = after.neg()?.div(&before.mul(&both)?)?;
            let b = after.sub(&before)?.div(&before.mul(&after)?)?;
            let c = before.div(&after.mul(&both)?)?;
            (a.mul(&early)?.add(&b.mul(&here)?)?.add(&c.mul(&late)?)?, Some(steps))
        }
    };
    let step_at = |at: i64| match (spacing, &steps) {
        (Spacing::At(_), Some(steps)) => steps.narrow(axis, at, 1).map(Some),
        _ => Ok(None),
    };
    let over = |difference: Tensor, step: Option<Tensor>| match (step, spacing) {
        (Some(step), _) => difference.div(&step),
        (None, Spacing::Even(step)) => difference.div(*step),
        (None, Spacing::At(_)) => Ok(difference),
    };
    let (first, last) = if edge_order == 1 {
        let first = over(part(1, 1)?.sub(&part(0, 1)?)?, step_at(0)?)?;
        (first, over(part(len - 1, 1)?.sub(&part(len - 2, 1)?)?, step_at(len - 2)?)?)
    } else {
        let ends = |near: i64, middle: i64, far: i64, steps: [i64; 2], sign: f64| {
            let values = [part(near, 1)?, part(middle, 1)?, part(far, 1)?];
            parabola(&values, [step_at(steps[0])?, step_at(steps[1])?], spacing, sign)
        };
        (ends(0, 1, 2, [0, 1], 1.0)?, ends(len - 1, len - 2, len - 3, [len - 2, len - 3], -1.0)?)
    };
    Tensor::cat(&[&first, &inside, &last], axis)
}

/// The slope at the first of three points of the parabola through them; `sign` is -1 where they
/// are counted from the end.
fn parabola(
    [near, middle, far]: &[Tensor; 3],
    steps: [Option<Tensor>; 2],
    spacing: &Spacing,
    sign: f64,
) -> Result<Tensor> {
    let [Some(first), Some(second)] = steps else {
        let Spacing::Even(step) = spacing else {
            return Err(Error::invalid_argument("points have distances"));
        };
        let sum = near.mul(-1.5)?.add(&middle.mul(2.0)?)?.sub(&far.mul(0.5)?)?;
        return sum.mul(sign / step);
    };
    let both = first.add(&second)?;
    let a = first.mul(2.0)?.add(&second)?.neg()?.div(&first.mul(&both)?)?;
    let b = both.div(&first.mul(&second)?)?;
    let c = first.neg()?.div(&second.mul(&both)?)?;
    a.mul(near)?.add(&b.mul(middle)?)?.add(&c.mul(far)?)?.mul(sign)
}
