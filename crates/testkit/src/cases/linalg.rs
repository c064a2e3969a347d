//! Matrix products: vectors, matrices, batches, broadcast batches, empty sizes.

use super::input::any;
use super::{Case, NUMBERS};
use crate::layouts::Arrangement::{Contiguous, Stepped, Transposed};
use crate::oracle::linalg;

pub(super) fn cases() -> Vec<Case> {
    let row = |a: &[usize], b: &[usize]| {
        // Sums of k products of numbers up to 3: their size is about 9 sqrt(k), and rounding goes
        // with it.
        let terms = *a.last().expect("matmul takes no zero-dimensional tensors") as f64;
        Case::new("matmul", "torch.matmul(a, b)", [any(a), any(b)])
            .run(|t| t[0].matmul(&t[1]))
            .oracle(|x| linalg::matmul(&x[0], &x[1]))
            .dtypes(&NUMBERS)
            .tolerance(8.0, 9.0 * terms.sqrt().max(1.0))
    };
    // PyTorch multiplies empty matrices of any dtype; that is no promise worth keeping for bool.
    let empty = |a: &[usize], b: &[usize]| row(a, b).plain().taking_only_these();
    vec![
        row(&[3, 4], &[4, 5]).gradient(&[0, 1]),
        row(&[4], &[4]).gradient(&[0, 1]),
        row(&[3, 4], &[4]).gradient(&[0, 1]),
        row(&[4], &[4, 5]).gradient(&[0, 1]),
        row(&[2, 3, 4], &[2, 4, 2]).gradient(&[0, 1]),
        row(&[2, 3, 4], &[4, 2]).gradient(&[0, 1]),
        row(&[3, 4], &[2, 4, 2]).gradient(&[0, 1]),
        row(&[2, 1, 3, 4], &[3, 4, 2]).brief().gradient(&[0, 1]),
        row(&[2, 3, 4], &[4]).brief().gradient(&[0, 1]),
        row(&[4], &[2, 4, 3]).brief().gradient(&[0, 1]),
        row(&[1, 7], &[7, 1]).brief(),
        empty(&[0, 4], &[4, 3]),
        empty(&[3, 0], &[0, 4]),
        empty(&[2, 3, 0], &[2, 0, 2]),
        empty(&[0], &[0]),
        empty(&[0, 3, 4], &[4, 2]),
        row(&[33, 70], &[70, 45]).only(&[Contiguous, Transposed, Stepped]),
        row(&[1, 130], &[130, 67]).brief(),
        row(&[40, 300], &[300, 3]).brief(),
        Case::new(
            "matmul",
            "torch.matmul(a, b, out=c)",
            [any(&[3, 4]), any(&[4, 5]), any(&[3, 5])],
        )
        .writes(2, |t| t[0].matmul_out(&t[1], &t[2]))
        .oracle(|x| linalg::matmul(&x[0], &x[1]))
        .dtypes(&NUMBERS)
        .tolerance(8.0, 18.0)
        .only(&[Contiguous, Transposed, Stepped]),
    ]
}
