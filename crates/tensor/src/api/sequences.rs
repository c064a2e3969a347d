//! Tensors that count: evenly spaced numbers, powers, indices of triangles; and memory in a given
//! order.

use plimsoll_core::{DType, Device, Error, Layout, Result, Scalar, normalize_dims, sizes_from_i64};
use plimsoll_memory::enter_operation;

use super::options::TensorOptions;
use crate::Tensor;
use crate::default_dtype::default_dtype;

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
        spaced("linspace", start.into(), end.into(), steps, options.into(), None)
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
        if steps == 1 && options.dtype_or(default_dtype()).is_float() {
            // A single power is that of the number itself, not of the number in the dtype.
            let made = Tensor::full(
                &[1],
                base.powf(start.to_f64()),
                (DType::F64, options.device_or_cpu()),
            )?;
            return made.to(options.dtype_or(default_dtype()))?.finished(options);
        }
        spaced("logspace", start, end.into(), steps, options, Some(base))
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
        let count = below(rows, columns, offset);
        let within = offset.saturating_neg().clamp(0, rows.max(0))..rows;
        triangle("tril_indices", [rows, columns], options.into(), count, within, |row| {
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
        let all = i128::from(rows) * i128::from(columns);
        let count = all - below(rows, columns, offset.saturating_sub(1));
        let within = 0..columns.saturating_sub(offset).clamp(0, rows.max(0));
        triangle("triu_indices", [rows, columns], options.into(), count, within, |row| {
            row.saturating_add(offset).clamp(0, columns)..columns
        })
    }
}

/// Evenly spaced numbers, or powers of `base`, counted from both ends so that both are exact.
#[track_caller]
fn spaced(
    op: &'static str,
    start: Scalar,
    end: Scalar,
    steps: i64,
    options: TensorOptions,
    base: Option<f64>,
) -> Result<Tensor> {
    let count = usize::try_from(steps)
        .map_err(|_| Error::shape(op, format!("there are no {steps} numbers")))?;
    let dtype = options.dtype_or(default_dtype());
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
    let options64 = (DType::F64, options.device_or_cpu());
    let half = if steps == 1 { 1 } else { steps / 2 };
    let up = Tensor::arange(0, half, 1, options64)?;
    up.mul_(step)?.add_(start)?;
    let down = Tensor::arange(steps - 1 - half, -1, -1, options64)?;
    down.mul_(-step)?.add_(end)?;
    let made = Tensor::cat(&[&up, &down], 0)?;
    let made = if let Some(base) = base { made.rpow(base)? } else { made };
    made.to(dtype)?.finished(options)
}

/// Elements that are listed on the host at a time.
const PIECE: usize = 1 << 16;

/// The indices of a triangle: of which rows, and of which columns of each row.
#[track_caller]
fn triangle(
    op: &'static str,
    [rows, columns]: [i64; 2],
    options: TensorOptions,
    count: i128,
    within: std::ops::Range<i64>,
    of_row: impl Fn(i64) -> std::ops::Range<i64>,
) -> Result<Tensor> {
    if rows < 0 || columns < 0 {
        return Err(Error::shape(op, format!("no matrix has sizes {:?}", [rows, columns])));
    }
    let too_many = |_| Error::shape(op, format!("{count} indices are too many"));
    let count = i64::try_from(count).map_err(too_many)?;
    let made = Tensor::empty(&[2, count], (DType::I64, options.device_or_cpu()))?;
    let mut pairs = within.flat_map(|row| of_row(row).map(move |column| [row, column]));
    let mut start = 0;
    while start < count {
        let piece: Vec<[i64; 2]> = pairs.by_ref().take(PIECE).collect();
        let length = piece.len() as i64;
        for side in 0..2 {
            let list: Vec<i64> = piece.iter().map(|pair| pair[side]).collect();
            let part = Tensor::from_slice(&list, &[length], Device::cpu())?;
            made.select(0, side as i64)?.narrow(0, start, length)?.copy_(&part)?;
        }
        start += length;
    }
    made.to(options.dtype_or(DType::I64))?.finished(options)
}

/// How many elements of a matrix are on and below a diagonal.
fn below(rows: i64, columns: i64, offset: i64) -> i128 {
    let [rows, columns, offset] =
        [rows, columns, offset].map(|size| i128::from(size.max(-i64::MAX)));
    // Of row r there are r + offset + 1, from none to all.
    let first = (-offset).clamp(0, rows.max(0));
    let full = (columns - offset - 1).clamp(first, rows.max(first));
    let growing = full - first;
    let (least, rest) = (first + offset + 1, rows.max(full) - full);
    growing * least + growing * (growing - 1) / 2 + rest * columns
}
