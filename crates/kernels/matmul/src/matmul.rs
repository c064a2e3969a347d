//! Matrix products of tensors: batches that broadcast, any layouts. The products themselves are in
//! `gemm/`.

use plimsoll_core::{DType, Error, Result};
use smallvec::SmallVec;

use crate::gemm::{self, BatchDim, Gemm, GemmShape, Strides};
use plimsoll_engine::map::operands;
use plimsoll_engine::{CpuLaunch, Meta};

/// Scratch of [`matmul`].
pub fn matmul_workspace_bytes(a: &Meta, b: &Meta, out: &Meta) -> usize {
    match Product::new(a, b, out) {
        Some(product) => gemm::workspace_bytes(&product.shape()),
        None => 0,
    }
}

/// [a, b] of shapes [..., m, k] and [..., k, n] -> [..., m, n]; leading dimensions broadcast, and a
/// vector `[k]` on either side takes its dimension out of the result.
pub fn matmul(launch: &CpuLaunch<'_>) -> Result<()> {
    scaled(launch, 1.0, 0.0)
}

/// `alpha` times the product of [`matmul`], plus `beta` times what the output holds; with `beta` 0
/// that is not read.
pub fn scaled(launch: &CpuLaunch<'_>, alpha: f64, beta: f64) -> Result<()> {
    let [out, a, b] = operands::<3>(launch)?;
    let Some(product) = Product::new(a.meta(), b.meta(), out.meta()) else {
        return Err(Error::shape(
            launch.operation,
            format!(
                "{} {:?} times {} {:?} does not give {} {:?}",
                a.dtype(),
                a.shape(),
                b.dtype(),
                b.shape(),
                out.dtype(),
                out.shape()
            ),
        ));
    };
    let shape = product.shape();
    let plan = gemm::Plan::new(&shape);
    check_workspace(launch, &plan)?;
    let problem =
        Gemm { shape, a: a.first_byte(), b: b.first_byte(), c: out.first_byte(), alpha, beta };
    // SAFETY: sizes and strides are the operands' own; the claim lets the inputs be read and the
    // output be written, and dispatch refuses overlap; the workspace was just measured.
    unsafe { plan.run(&problem, launch.workspace.pointer()) };
    Ok(())
}

fn check_workspace(launch: &CpuLaunch<'_>, plan: &gemm::Plan) -> Result<()> {
    if plan.workspace_bytes() <= launch.workspace.bytes() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "the kernel needs {} bytes of workspace, but was launched with {}",
        plan.workspace_bytes(),
        launch.workspace.bytes()
    ))
    .in_operation(launch.operation))
}

/// Scratch of [`summed`].
pub fn summed_workspace_bytes(a: &Meta, b: &Meta, out: &Meta) -> usize {
    match Product::one_of_batch(a, b, out) {
        Some(product) => gemm::workspace_bytes(&product.shape()),
        None => 0,
    }
}

/// [a, b] of shapes [batch, m, k] and [batch, k, n] -> [m, n]: `alpha` times the sum of the
/// batch's products, plus `beta` times what the output holds. One product after another is added,
/// so that no memory of the batch's size is needed.
pub fn summed(launch: &CpuLaunch<'_>, alpha: f64, beta: f64) -> Result<()> {
    let [out, a, b] = operands::<3>(launch)?;
    let Some(product) = Product::one_of_batch(a.meta(), b.meta(), out.meta()) else {
        let (a, b, out) = (a.shape(), b.shape(), out.shape());
        let why = format!("the sum of {a:?} times {b:?} is not of shape {out:?}");
        return Err(Error::shape(launch.operation, why));
    };
    let shape = product.shape();
    let plan = gemm::Plan::new(&shape);
    check_workspace(launch, &plan)?;
    let step = |operand: &plimsoll_engine::Operand<'_>| {
        operand.layout().strides()[0] * operand.dtype().size_bytes()
    };
    // Of no products only the scaling is left, which a product without columns is.
    for index in 0..a.shape()[0].max(1) {
        let problem = Gemm {
            shape,
            a: a.first_byte().wrapping_add(index * step(&a)),
            b: b.first_byte().wrapping_add(index * step(&b)),
            c: out.first_byte(),
            alpha,
            beta: if index == 0 { beta } else { 1.0 },
        };
        // SAFETY: sizes and strides are those of one matrix of each batch, of which this is the
        // `index`-th; the rest as in `scaled`.
        unsafe { plan.run(&problem, launch.workspace.pointer()) };
    }
    Ok(())
}

/// The geometry of a product of tensors.
struct Product {
    dtype: DType,
    batch: SmallVec<[BatchDim; 4]>,
    sizes: [usize; 3],
    strides: [Strides; 3],
}

impl Product {
    /// `None` if the shapes do not fit or the dtypes differ.
    fn new(a: &Meta, b: &Meta, out: &Meta) -> Option<Product> {
        if a.dtype != out.dtype || b.dtype != out.dtype {
            return None;
        }
        // A vector is one row on the left, one column on the right; the result lacks that
        // dimension.
        let (a_sizes, a_strides, is_row) = matrix(a, true)?;
        let (b_sizes, b_strides, is_column) = matrix(b, false)?;
        let ([m, k], [k_b, n]) = (a_sizes, b_sizes);
        let tail: SmallVec<[usize; 2]> =
            [(m, is_row), (n, is_column)].iter().filter(|(_, gone)| !gone).map(|t| t.0).collect();
        let lead = out.shape().len().checked_sub(tail.len())?;
        if k != k_b || out.shape()[lead..] != tail[..] {
            return None;
        }
        let mut strides = out.layout.strides()[lead..].iter().map(|&stride| stride as isize);
        let row = if is_row { 0 } else { strides.next()? };
        let column = if is_column { 0 } else { strides.next()? };
        let strides = [a_strides, b_strides, Strides { row, column }];
        let batch = batch(&[a, b, out], lead)?;
        let mut product = Product { dtype: out.dtype, batch, sizes: [m, n, k], strides };
        product.fold_batch_into_rows();
        Some(product)
    }

    /// One product of a batch `[batch, m, k]` times `[batch, k, n]`; without columns if the batch
    /// is empty. `None` as in [`Product::new`].
    fn one_of_batch(a: &Meta, b: &Meta, out: &Meta) -> Option<Product> {
        let (&[batch, m, k], &[batch_b, k_b, n]) = (a.shape(), b.shape()) else { return None };
        let same = a.dtype == out.dtype && b.dtype == out.dtype && batch == batch_b && k == k_b;
        if !same || *out.shape() != [m, n] {
            return None;
        }
        let last_two = |meta: &Meta| {
            let strides = meta.layout.strides();
            let at = strides.len() - 2;
            Strides { row: strides[at] as isize, column: strides[at + 1] as isize }
        };
        let k = if batch == 0 { 0 } else { k };
        let strides = [last_two(a), last_two(b), last_two(out)];
        Some(Product { dtype: out.dtype, batch: SmallVec::new(), sizes: [m, n, k], strides })
    }

    fn shape(&self) -> GemmShape<'_> {
        let [m, n, k] = self.sizes;
        let [a, b, c] = self.strides;
        GemmShape { dtype: self.dtype, batch: &self.batch, m, n, k, a, b, c }
    }

    /// `[batch, m, k]` times one `[k, n]` is a single product of `batch * m` rows, which packs B
    /// once.
    fn fold_batch_into_rows(&mut self) {
        while let Some(&inner) = self.batch.last() {
            let [a, _, c] = &mut self.strides;
            let rows = self.sizes[0] as isize;
            let follows = rows == 1 || (inner.a == rows * a.row && inner.c == rows * c.row);
            if inner.b != 0 || !follows {
                return;
            }
            if rows == 1 {
                (a.row, c.row) = (inner.a, inner.c);
            }
            self.sizes[0] *= inner.size;
            self.batch.pop();
        }
    }
}

/// The last two sizes and strides, and whether the tensor is a vector that stands for a matrix.
fn matrix(meta: &Meta, is_left: bool) -> Option<([usize; 2], Strides, bool)> {
    let stride = |from_end: usize| {
        let strides = meta.layout.strides();
        strides[strides.len() - from_end] as isize
    };
    match *meta.shape() {
        [] => None,
        [size] if is_left => Some(([1, size], Strides { row: 0, column: stride(1) }, true)),
        [size] => Some(([size, 1], Strides { row: stride(1), column: 0 }, true)),
        [.., rows, columns] => {
            Some(([rows, columns], Strides { row: stride(2), column: stride(1) }, false))
        }
    }
}

/// The leading dimensions of [a, b, out], without those of size 1, neighbours merged where all
/// three step evenly over both. `None` if they do not broadcast to the output's.
fn batch(metas: &[&Meta; 3], lead: usize) -> Option<SmallVec<[BatchDim; 4]>> {
    let [_, _, out] = metas;
    let mut dims: SmallVec<[BatchDim; 4]> = SmallVec::new();
    for (d, &size) in out.shape()[..lead].iter().enumerate() {
        // Matched from the last batch dimension; missing ones and sizes of 1 stretch.
        let mut strides = [0; 3];
        for (meta, stride) in metas[..2].iter().zip(&mut strides) {
            let own_lead = meta.shape().len().saturating_sub(2);
            if own_lead > lead {
                return None;
            }
            if let Some(own) = (d + own_lead).checked_sub(lead) {
                match meta.shape()[own] {
                    1 => {}
                    own_size if own_size == size => *stride = meta.layout.strides()[own] as isize,
                    _ => return None,
                }
            }
        }
        strides[2] = out.layout.strides()[d] as isize;
        let inner = BatchDim { size, a: strides[0], b: strides[1], c: strides[2] };
        let steps = size as isize;
        let follows =
            |outer: &BatchDim| [outer.a, outer.b, outer.c] == strides.map(|stride| stride * steps);
        match dims.last_mut() {
            _ if size == 1 => {}
            Some(outer) if follows(outer) => {
                *outer = BatchDim { size: outer.size * size, ..inner };
            }
            _ => dims.push(inner),
        }
    }
    Some(dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm;
    use plimsoll_engine::simd;
    use plimsoll_engine::testing::{
        Held, Lot, NUMBERS, assert_close, launch, launch_all, rounded, tolerance,
    };

    /// The naive product of broadcast batches, in f64.
    fn naive(a: &Held, b: &Held, batch: &[usize], [m, n, k]: [usize; 3]) -> Vec<f64> {
        let stretch = |held: &Held, rows: usize, columns: usize| {
            let shape: Vec<usize> = batch.iter().copied().chain([rows, columns]).collect();
            let layout = held.meta.layout.broadcast_to(&shape).unwrap();
            held.with_layout(layout).values()
        };
        let (a, b) = (stretch(a, m, k), stretch(b, k, n));
        let mut out = Vec::new();
        for p in 0..batch.iter().product() {
            for i in 0..m {
                for j in 0..n {
                    out.push((0..k).map(|l| a[(p * m + i) * k + l] * b[(p * k + l) * n + j]).sum());
                }
            }
        }
        out
    }

    #[test]
    fn products_of_broadcast_batches() {
        let mut lot = Lot(81);
        let cases: [(&[usize], &[usize], &[usize]); 5] = [
            (&[], &[], &[]),
            (&[3], &[3], &[3]),
            (&[2, 1], &[1, 3], &[2, 3]),
            (&[], &[4], &[4]),
            (&[0], &[1], &[0]),
        ];
        for dtype in NUMBERS {
            for (a_lead, b_lead, lead) in cases {
                for sizes in [[1, 1, 1], [3, 4, 5], [17, 33, 20], [2, 3, 0], [1, 40, 30], [0, 2, 2]]
                {
                    let [m, n, k] = sizes;
                    let with = |lead: &[usize], tail: [usize; 2]| [lead, &tail].concat();
                    let a = Held::random(&mut lot, dtype, &with(a_lead, [m, k]), false);
                    let b = Held::random(&mut lot, dtype, &with(b_lead, [k, n]), false);
                    let wide = naive(&a, &b, lead, sizes);
                    let want: Vec<f64> = wide.iter().map(|&v| rounded(dtype, v)).collect();
                    let mut out = [Held::output(&mut lot, dtype, &with(lead, [m, n]))];
                    let bytes = [1, 2]
                        .map(|threads| {
                            plimsoll_engine::parallel::with_threads(threads, || {
                                largest_workspace(&a.meta, &b.meta, &out[0].meta)
                            })
                        })
                        .into_iter()
                        .max()
                        .unwrap_or(0);
                    let error = 900.0 * k as f64 * 2e-7;
                    launch_all(&[&a, &b], &mut out, bytes, matmul, |out| {
                        let got = out[0].values();
                        assert_close(&got, &want, 2.0 * tolerance(dtype), error, "matmul");
                    });
                }
            }
        }
    }

    #[test]
    fn vectors_lose_their_dimension() {
        let vector = Held::of(DType::F64, &[2], &[3.0, 5.0]);
        let matrices = Held::of(DType::F64, &[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let product = |a: &Held, b: &Held, shape: &[usize]| {
            let mut out = [Held::of(DType::F64, shape, &vec![0.0; shape.iter().product()])];
            let bytes = matmul_workspace_bytes(&a.meta, &b.meta, &out[0].meta);
            launch(&[a, b], &mut out, bytes, matmul).unwrap();
            out[0].values()
        };
        assert_eq!(product(&vector, &vector, &[]), [34.0]);
        assert_eq!(product(&matrices, &vector, &[2, 2]), [13.0, 29.0, 45.0, 61.0]);
        assert_eq!(product(&vector, &matrices, &[2, 2]), [18.0, 26.0, 50.0, 58.0]);
    }

    #[test]
    fn a_batch_against_one_matrix_is_one_product() {
        let meta = |shape: &[usize]| Meta::contiguous(shape, DType::F32).unwrap();
        let folded = |a: &[usize], b: &[usize], out: &[usize]| {
            let product = Product::new(&meta(a), &meta(b), &meta(out)).unwrap();
            (product.sizes, product.batch.len())
        };
        assert_eq!(folded(&[2, 3, 4, 5], &[5, 6], &[2, 3, 4, 6]), ([24, 6, 5], 0));
        assert_eq!(folded(&[2, 3, 4, 5], &[2, 3, 5, 6], &[2, 3, 4, 6]), ([4, 6, 5], 1));
        assert_eq!(folded(&[4, 5], &[2, 5, 6], &[2, 4, 6]), ([4, 6, 5], 1));
    }

    /// The most that any level asks for.
    fn largest_workspace(a: &Meta, b: &Meta, out: &Meta) -> usize {
        let product = Product::new(a, b, out).unwrap();
        simd::Isa::available()
            .map(|isa| gemm::Plan::with_isa(&product.shape(), isa).workspace_bytes())
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let a = Held::of(DType::F32, &[2, 3], &[0.0; 6]);
        let b = Held::of(DType::F32, &[2, 3], &[0.0; 6]);
        let mut out = [Held::of(DType::F32, &[2, 3], &[0.0; 6])];
        assert!(launch(&[&a, &b], &mut out, 0, matmul).unwrap_err().is_shape());
    }
}
