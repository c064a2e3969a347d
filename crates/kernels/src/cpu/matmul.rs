//! Matrix products of tensors: batches that broadcast, any layouts. The products themselves are in `gemm/`.

use plimsoll_core::{DType, Dims, Error, Result};
use smallvec::SmallVec;

use super::gemm::{self, BatchDim, Gemm, GemmShape, Strides};
use super::map::operands;
use crate::operand::{CpuLaunch, Meta};

/// Scratch of [`matmul`].
pub fn matmul_workspace_bytes(a: &Meta, b: &Meta, out: &Meta) -> usize {
    match Product::new(a, b, out) {
        Some(product) => gemm::workspace_bytes(&product.shape()),
        None => 0,
    }
}

/// [a, b] of shapes [..., m, k] and [..., k, n] -> [..., m, n]; leading dimensions broadcast.
pub fn matmul(launch: &CpuLaunch<'_>) -> Result<()> {
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
    if plan.workspace_bytes() > launch.workspace.bytes {
        return Err(Error::invalid_argument(format!(
            "the kernel needs {} bytes of workspace, but was launched with {}",
            plan.workspace_bytes(),
            launch.workspace.bytes
        ))
        .in_operation(launch.operation));
    }
    let problem = Gemm {
        shape,
        a: a.first_byte(),
        b: b.first_byte(),
        c: out.first_byte(),
        alpha: 1.0,
        beta: 0.0,
    };
    // SAFETY: sizes and strides are the operands' own; the claim lets the inputs be read and the output be
    // written, and dispatch refuses overlap; the workspace was just measured.
    unsafe { plan.run(&problem, launch.workspace.pointer) };
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
        let metas = [a, b, out];
        let rank = out.shape().len();
        if metas.iter().any(|meta| meta.shape().len() < 2 || meta.dtype != out.dtype) {
            return None;
        }
        let matrix = |meta: &Meta| {
            let at = meta.shape().len() - 2;
            let strides = meta.layout.strides();
            let strides = Strides { row: strides[at] as isize, column: strides[at + 1] as isize };
            ([meta.shape()[at], meta.shape()[at + 1]], strides)
        };
        let [([m, k], a_strides), ([k_b, n], b_strides), (out_sizes, c)] = metas.map(matrix);
        if k != k_b || out_sizes != [m, n] {
            return None;
        }
        let lead = Dims::from(&out.shape()[..rank - 2]);
        let mut batch = SmallVec::new();
        for (d, &size) in lead.iter().enumerate() {
            // Matched from the last batch dimension; missing ones and sizes of 1 stretch.
            let mut strides = [0; 3];
            for (meta, stride) in metas.iter().zip(&mut strides) {
                if let Some(own) = (d + meta.shape().len()).checked_sub(rank) {
                    match meta.shape()[own] {
                        1 => {}
                        own_size if own_size == size => {
                            *stride = meta.layout.strides()[own] as isize
                        }
                        _ => return None,
                    }
                }
            }
            batch.push(BatchDim { size, a: strides[0], b: strides[1], c: strides[2] });
        }
        let strides = [a_strides, b_strides, c];
        Some(Product { dtype: out.dtype, batch, sizes: [m, n, k], strides })
    }

    fn shape(&self) -> GemmShape<'_> {
        let [m, n, k] = self.sizes;
        let [a, b, c] = self.strides;
        GemmShape { dtype: self.dtype, batch: &self.batch, m, n, k, a, b, c }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{
        Held, Lot, NUMBERS, assert_close, launch, launch_all, rounded, tolerance,
    };
    use crate::cpu::{gemm, simd};

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
                    let want: Vec<f64> = wide
                        .iter()
                        .map(|&v| if dtype == DType::U8 { v % 256.0 } else { rounded(dtype, v) })
                        .collect();
                    let mut out = [Held::output(&mut lot, dtype, &with(lead, [m, n]))];
                    let bytes = [1, 2]
                        .map(|threads| {
                            crate::parallel::with_threads(threads, || {
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
