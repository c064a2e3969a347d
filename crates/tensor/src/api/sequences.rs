//! Tensors that count: evenly spaced numbers, powers, indices of triangles; and memory in a given
//! order.

use plimsoll_core::{DType, Error, Layout, Result, Scalar, normalize_dims, sizes_from_i64};
use plimsoll_memory::enter_operation;

use super::options::TensorOptions;
use crate::Tensor;

impl Tensor {
    /// Memory as it comes, with dimension `order[0]` outermost, `order[1]` inside it, and so on.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::empty_permuted(&[2, 3], &[1, 0], DType::F32)?;
    /// assert_eq!(x.strides(), [1, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn empty_permuted(
        sizes: &[i64],
        order: &[i64],
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        const OP: &str = "empty_permuted";
        let _named = enter_operation(OP);
        let shape = sizes_from_i64(OP, sizes)?;
        if order.len() != sizes.len() || order.iter().any(|&dim| dim < 0) {
            return Err(Error::shape(
                OP,
                format!("{order:?} must name each of the {} dimensions once", sizes.len()),
            ));
        }
        let order =
            if order.is_empty() { shape.clone() } else { normalize_dims(OP, order, shape.len())? };
        let sorted: Vec<usize> = order.iter().map(|&dim| shape[dim]).collect();
        let dense = Layout::contiguous(&sorted)?;
        let mut strides = vec![0; shape.len()];
        for (place, &dim) in order.iter().enumerate() {
            strides[dim] = dense.strides()[place] as i64;
        }
        Tensor::empty_strided(sizes, &strides, options)
    }

    /// `steps` numbers from `start` to `end`, both included, evenly spaced.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::linspace(0, 1, 3, DType::F32)?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn linspace(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        steps: i64,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("linspace");
        spaced("linspace", start.into(), end.into(), steps, options.into(), |x| x)
    }

    /// `steps` powers of `base`, their exponents evenly spaced from `start` to `end`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::logspace(0, 2, 3, 10.0, DType::F64)?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 10.0, 100.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn logspace(
        start: impl Into<Scalar>,
        end: impl Into<Scalar>,
        steps: i64,
        base: f64,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("logspace");
        let (start, options) = (start.into(), options.into());
        let power = |x: f64| base.powf(x);
        if steps == 1 && options.dtype_or(DType::F32).is_float() {
            // A single power is that of the number itself, not of the number in the dtype.
            let made =
                Tensor::full(&[1], power(start.to_f64()), (DType::F64, options.device_or_cpu()))?;
            return made.to(options.dtype_or(DType::F32))?.finished(options);
        }
        spaced("logspace", start, end.into(), steps, options, power)
    }

    /// Rows and columns of the elements of a matrix on and below a diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::tril_indices(2, 2, 0, DType::I64)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tril_indices(
        rows: i64,
        columns: i64,
        offset: i64,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("tril_indices");
        triangle("tril_indices", [rows, columns], options.into(), |row| {
            0..row.saturating_add(offset).saturating_add(1).clamp(0, columns)
        })
    }

    /// Rows and columns of the elements of a matrix on and above a diagonal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::triu_indices(2, 2, 1, DType::I64)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn triu_indices(
        rows: i64,
        columns: i64,
        offset: i64,
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("triu_indices");
        triangle("triu_indices", [rows, columns], options.into(), |row| {
            row.saturating_add(offset).clamp(0, columns)..columns
        })
    }
}

/// Evenly spaced numbers, counted from both ends so that both are exact, as `each` makes them.
#[track_caller]
fn spaced(
    op: &'static str,
    start: Scalar,
    end: Scalar,
    steps: i64,
    options: TensorOptions,
    each: impl Fn(f64) -> f64,
) -> Result<Tensor> {
    let count = usize::try_from(steps)
        .map_err(|_| Error::shape(op, format!("there are no {steps} numbers")))?;
    let dtype = options.dtype_or(DType::F32);
    if dtype == DType::Bool {
        return Err(Error::dtype(op, "bools do not count; ask for another dtype"));
    }
    // Whole numbers are counted in whole steps from bounds that were cut, as in PyTorch.
    let bound = |bound: Scalar| -> Result<f64> {
        match dtype {
            DType::F64 => Ok(bound.to_f64()),
            // Rounded to the dtype before they are used, as in PyTorch.
            _ => {
                Ok(Tensor::full(&[], bound.to_f64(), DType::F64)?.to(dtype)?.to_scalar()?.to_f64())
            }
        }
    };
    let (start, end) = (bound(start)?, bound(end)?);
    let step = if count > 1 { (end - start) / (count - 1) as f64 } else { 0.0 };
    let value = |i: usize| match i < count / 2 || count == 1 {
        true => start + step * i as f64,
        false => end - step * (count - 1 - i) as f64,
    };
    let values: Vec<f64> = (0..count).map(|i| each(value(i))).collect();
    let made = Tensor::from_slice(&values, &[steps], options.device_or_cpu())?;
    made.to(dtype)?.finished(options)
}

/// The indices of a triangle, whose columns of each row `of_row` says.
#[track_caller]
fn triangle(
    op: &'static str,
    size: [i64; 2],
    options: TensorOptions,
    of_row: impl Fn(i64) -> std::ops::Range<i64>,
) -> Result<Tensor> {
    if size.iter().any(|&size| size < 0) {
        return Err(Error::shape(op, format!("no matrix has sizes {size:?}")));
    }
    let pairs: Vec<(i64, i64)> =
        (0..size[0]).flat_map(|row| of_row(row).map(move |column| (row, column))).collect();
    let rows = pairs.iter().map(|pair| pair.0);
    let list: Vec<i64> = rows.chain(pairs.iter().map(|pair| pair.1)).collect();
    let made = Tensor::from_slice(&list, &[2, pairs.len() as i64], options.device_or_cpu())?;
    made.to(options.dtype_or(DType::I64))?.finished(options)
}
