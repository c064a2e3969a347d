//! LU, Cholesky and triangles, and what is solved with them, on batches that are well conditioned.
//! Other decompositions are in `decompositions.rs`.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{
    CholeskyOptions, LinalgLuSolveOptions, LinalgSolveOptions, LinalgSolveTriangularOptions,
    LuUnpackOptions, Tensor,
};

use super::input::{Input, any, fraction};
use super::{Case, SINGLE_AND_DOUBLE};
use crate::oracle::factors::{
    self, Matrix, all_well, cholesky, definite, each, each_pair, eliminate, flat, inverse, product,
    turned,
};
use crate::oracle::{Array, Number};

pub(super) fn cases() -> Vec<Case> {
    [lu(), solved(), cholesky_cases()].into_iter().flatten().collect()
}

pub(super) const SQUARE: &[usize] = &[2, 3, 3];

/// A row in float32 and float64, to this many units of precision at the size of the numbers.
pub(super) fn case<const N: usize>(op: &'static str, torch: &str, inputs: [Input; N]) -> Case {
    let torch = torch
        .replace("WELL", "(a + 3 * torch.eye(3, dtype=a.dtype))")
        .replace("DEFINITE", "(a @ a.mT + 2 * torch.eye(3, dtype=a.dtype))");
    let case = Case::new(op, torch, inputs).dtypes(&SINGLE_AND_DOUBLE).taking_only_these();
    case.tolerance(32.0, 4.0)
}

/// The matrices with 3 added on their diagonals.
pub(super) fn well(x: &Tensor) -> Result<Tensor> {
    x.add(&Tensor::eye(3, (x.dtype(), x.device()))?.mul(3.0)?)
}

pub(super) fn well_matrix(x: &Matrix) -> Matrix {
    factors::shifted(x, 3.0)
}

/// Symmetric positive-definite matrices.
pub(super) fn positive(x: &Tensor) -> Result<Tensor> {
    x.matmul(&turn(x)?)?.add(&Tensor::eye(3, (x.dtype(), x.device()))?.mul(2.0)?)
}

pub(super) fn turn(x: &Tensor) -> Result<Tensor> {
    x.transpose(-2, -1)
}

pub(super) fn one() -> [Input; 1] {
    [fraction(SQUARE)]
}

/// The array with `f` of each square matrix in place of it.
pub(super) fn map(x: &Array, f: impl Fn(&Matrix) -> Matrix) -> Array {
    let inner = &x.shape()[x.shape().len() - 2..];
    each(x, inner, |matrix| flat(f(matrix)))
}

fn lu() -> Vec<Case> {
    let again = |x: &Array| map(x, well_matrix);
    vec![
        // The factors of a matrix whose diagonal leads need no exchange; its product is the matrix.
        case("linalg_lu", "(lambda p, l, u: p @ l @ u)(*torch.linalg.lu(WELL))", one())
            .run(|t| {
                let (p, l, u) = well(&t[0])?.linalg_lu()?;
                p.matmul(&l)?.matmul(&u)
            })
            .oracle(move |x| again(&x[0]))
            .gradient(&[0]),
        case("linalg_lu_factor", "torch.linalg.lu_factor(WELL)[0].triu()", one())
            .run(|t| well(&t[0])?.linalg_lu_factor()?.0.triu(0))
            .oracle(|x| map(&x[0], |a| upper_factor(&well_matrix(a))))
            .gradient(&[0]),
        case("linalg_lu_factor_ex", "torch.linalg.lu_factor_ex(a)[2]", one())
            .run(|t| Ok(t[0].linalg_lu_factor_ex()?.2))
            .oracle(|x| all_well(&x[0])),
        case("linalg_lu_factor_ex", "torch.linalg.lu_factor_ex(WELL)[0].tril(-1)", one())
            .run(|t| well(&t[0])?.linalg_lu_factor_ex()?.0.tril(-1))
            .oracle(|x| map(&x[0], |a| lower_factor(&well_matrix(a))))
            .gradient(&[0])
            .brief(),
        case("linalg_lu", "(lambda p, l, u: p @ l @ u)(*torch.linalg.lu(a))", [any(&[4, 2])])
            .run(|t| {
                let (p, l, u) = t[0].linalg_lu()?;
                p.matmul(&l)?.matmul(&u)
            })
            .oracle(|x| x[0].clone())
            .gradient(&[0])
            .brief(),
        case("linalg_lu", "(lambda p, l, u: p @ l @ u)(*torch.linalg.lu(a))", [any(&[2, 4])])
            .run(|t| {
                let (p, l, u) = t[0].linalg_lu()?;
                p.matmul(&l)?.matmul(&u)
            })
            .oracle(|x| x[0].clone())
            .gradient(&[0])
            .brief(),
        case("lu_unpack", "torch.lu_unpack(*torch.linalg.lu_factor(WELL))[1]", one())
            .run(|t| {
                let (lu, pivots) = well(&t[0])?.linalg_lu_factor()?;
                Ok(lu.lu_unpack(&pivots)?.1)
            })
            .oracle(|x| map(&x[0], |a| factors::shifted(&lower_factor(&well_matrix(a)), 1.0)))
            .gradient(&[0])
            .brief(),
        Case::new(
            "linalg_row_order",
            "torch.lu_unpack(torch.zeros(2, 3, 3), a.clamp(1, 3), unpack_data=False)[0]",
            [any(&[2, 3])],
        )
        .run(|t| {
            let factors = Tensor::zeros(&[2, 3, 3], (DType::F32, t.device))?;
            let only = LuUnpackOptions::new().unpack_data(false);
            Ok(factors.lu_unpack_with(&t[0].clamp(1, 3)?, only)?.0)
        })
        .oracle(|x| permutations(&x[0]))
        .dtypes(&[DType::I32])
        .taking_only_these(),
        with_factors("linalg_lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(WELL), b)")
            .run(|t| {
                let (lu, pivots) = well(&t[0])?.linalg_lu_factor()?;
                lu.linalg_lu_solve(&pivots, &t[1])
            })
            .oracle(|x| solution(&x[0], &x[1], well_matrix)),
        with_factors(
            "linalg_lu_solve",
            "torch.linalg.lu_solve(*torch.linalg.lu_factor(WELL), b.mT, left=False, adjoint=True)",
        )
        .run(|t| {
            let (lu, pivots) = well(&t[0])?.linalg_lu_factor()?;
            let options = LinalgLuSolveOptions::new().left(false).adjoint(true);
            lu.linalg_lu_solve_with(&pivots, &turn(&t[1])?, options)
        })
        .oracle(|x| {
            each_pair(&x[0], &x[1], &[2, 3], |a, b| flat(turned(&eliminate(&well_matrix(a), b).0)))
        })
        .brief(),
        with_factors("lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(WELL), b)")
            .run(|t| {
                let (lu, pivots) = well(&t[0])?.linalg_lu_factor()?;
                t[1].lu_solve(&lu, &pivots)
            })
            .oracle(|x| solution(&x[0], &x[1], well_matrix))
            .brief(),
    ]
}

/// The permutations that exchanges of rows of 3 by 3 matrices make, pivots brought into range.
fn permutations(pivots: &Array) -> Array {
    let mut values = Vec::new();
    for own in pivots.values().chunks(3) {
        let mut rows = [0, 1, 2];
        for (i, pivot) in own.iter().enumerate() {
            rows.swap(i, pivot.to_i64().clamp(1, 3) as usize - 1);
        }
        let entry = |i: usize| Number::Float(f64::from(u8::from(rows[i % 3] == i / 3)));
        values.extend((0..9).map(entry));
    }
    Array::new(DType::F32, &[2, 3, 3], values)
}

/// U of a matrix that needs no exchange of rows.
fn upper_factor(a: &Matrix) -> Matrix {
    let mut u = a.clone();
    for k in 0..u.len() {
        for row in k + 1..u.len() {
            let (factor, upper) = (u[row][k] / u[k][k], u[k].clone());
            u[row].iter_mut().zip(&upper).for_each(|(x, above)| *x -= factor * above);
            u[row][k] = 0.0;
        }
    }
    u
}

/// L below its diagonal.
fn lower_factor(a: &Matrix) -> Matrix {
    let whole = product(a, &inverse(&upper_factor(a)));
    let size = whole.len();
    let at = |i: usize, j: usize| if j < i { whole[i][j] } else { 0.0 };
    (0..size).map(|i| (0..size).map(|j| at(i, j)).collect()).collect()
}

fn with_factors(op: &'static str, torch: &str) -> Case {
    case(op, torch, [fraction(SQUARE), any(&[2, 3, 2])]).gradient(&[0, 1])
}

fn solution(a: &Array, b: &Array, f: impl Fn(&Matrix) -> Matrix) -> Array {
    let inner = b.shape()[b.shape().len() - 2..].to_vec();
    each_pair(a, b, &inner, |a, b| flat(eliminate(&f(a), b).0))
}

fn solved() -> Vec<Case> {
    let inverted = |x: &Array| map(x, |a| inverse(&well_matrix(a)));
    let determinant =
        |x: &Array| each(x, &[], |a| vec![eliminate(&well_matrix(a), &well_matrix(a)).1]);
    let logarithm = |x: &Array| each(x, &[], |a| vec![eliminate(&well_matrix(a), a).1.abs().ln()]);
    vec![
        with_factors("linalg_solve", "torch.linalg.solve(WELL, b)")
            .run(|t| well(&t[0])?.linalg_solve(&t[1]))
            .oracle(|x| solution(&x[0], &x[1], well_matrix)),
        with_factors("linalg_solve", "torch.linalg.solve(WELL, b.mT, left=False)")
            .run(|t| {
                let options = LinalgSolveOptions::new().left(false);
                well(&t[0])?.linalg_solve_with(&turn(&t[1])?, options)
            })
            .oracle(|x| {
                each_pair(&x[0], &x[1], &[2, 3], |a, b| {
                    flat(turned(&eliminate(&turned(&well_matrix(a)), b).0))
                })
            })
            .brief(),
        with_factors("linalg_solve_ex", "torch.linalg.solve_ex(WELL, b)")
            .run(|t| well(&t[0])?.linalg_solve_ex(&t[1]))
            .oracle(|x| (solution(&x[0], &x[1], well_matrix), all_well(&x[0])))
            .brief(),
        case("linalg_inv", "torch.linalg.inv(WELL)", one())
            .run(|t| well(&t[0])?.linalg_inv())
            .oracle(move |x| inverted(&x[0]))
            .gradient(&[0]),
        case("linalg_inv", "torch.linalg.inv(a)", [any(&[0, 3, 3])])
            .run(|t| t[0].linalg_inv())
            .oracle(|x| x[0].clone())
            .plain(),
        case("linalg_inv_ex", "torch.linalg.inv_ex(WELL)", one())
            .run(|t| well(&t[0])?.linalg_inv_ex())
            .oracle(move |x| (inverted(&x[0]), all_well(&x[0])))
            .gradient(&[0])
            .brief(),
        case("inverse", "torch.inverse(WELL)", one())
            .run(|t| well(&t[0])?.inverse())
            .oracle(move |x| inverted(&x[0]))
            .gradient(&[0])
            .brief(),
        case("linalg_det", "torch.linalg.det(WELL)", one())
            .run(|t| well(&t[0])?.linalg_det())
            .oracle(move |x| determinant(&x[0]))
            .gradient(&[0])
            .tolerance(32.0, 40.0),
        case("det", "torch.det(WELL)", one())
            .run(|t| well(&t[0])?.det())
            .oracle(move |x| determinant(&x[0]))
            .gradient(&[0])
            .tolerance(32.0, 40.0)
            .brief(),
        case("linalg_slogdet", "torch.linalg.slogdet(WELL)[1]", one())
            .run(|t| Ok(well(&t[0])?.linalg_slogdet()?.1))
            .oracle(move |x| logarithm(&x[0]))
            .gradient(&[0]),
        case("slogdet", "torch.slogdet(WELL)[1]", one())
            .run(|t| Ok(well(&t[0])?.slogdet()?.1))
            .oracle(move |x| logarithm(&x[0]))
            .gradient(&[0])
            .brief(),
        case("logdet", "torch.logdet(WELL)", one())
            .run(|t| well(&t[0])?.logdet())
            .oracle(move |x| logarithm(&x[0]))
            .gradient(&[0])
            .brief(),
    ]
}

fn cholesky_cases() -> Vec<Case> {
    let factor = |x: &Array| map(x, |a| cholesky(&definite(a, 2.0)));
    let triangle = |a: &Matrix, upper: bool| -> Matrix {
        let a = well_matrix(a);
        let keep = |i: usize, j: usize| if upper { j >= i } else { j <= i };
        let at = |i: usize, j: usize| if keep(i, j) { a[i][j] } else { 0.0 };
        (0..a.len()).map(|i| (0..a.len()).map(|j| at(i, j)).collect()).collect()
    };
    vec![
        case("linalg_cholesky", "torch.linalg.cholesky(DEFINITE)", one())
            .run(|t| positive(&t[0])?.linalg_cholesky())
            .oracle(move |x| factor(&x[0]))
            .gradient(&[0]),
        case("linalg_cholesky", "torch.linalg.cholesky(DEFINITE, upper=True)", one())
            .run(|t| positive(&t[0])?.linalg_cholesky_with(CholeskyOptions::new().upper(true)))
            .oracle(|x| map(&x[0], |a| turned(&cholesky(&definite(a, 2.0)))))
            .gradient(&[0])
            .brief(),
        case("linalg_cholesky_ex", "torch.linalg.cholesky_ex(DEFINITE)", one())
            .run(|t| positive(&t[0])?.linalg_cholesky_ex())
            .oracle(move |x| (factor(&x[0]), all_well(&x[0])))
            .gradient(&[0])
            .brief(),
        case("cholesky", "torch.linalg.cholesky(DEFINITE)", one())
            .run(|t| positive(&t[0])?.cholesky())
            .oracle(move |x| factor(&x[0]))
            .gradient(&[0])
            .brief(),
        with_factors("cholesky_solve", "torch.cholesky_solve(b, WELL.tril())")
            .run(|t| t[1].cholesky_solve(&well(&t[0])?.tril(0)?))
            .oracle(move |x| {
                let whole = move |a: &Matrix| definite(&triangle(a, false), 0.0);
                solution(&x[0], &x[1], whole)
            }),
        case("cholesky_inverse", "torch.cholesky_inverse(WELL.tril())", one())
            .run(|t| well(&t[0])?.tril(0)?.cholesky_inverse())
            .oracle(move |x| map(&x[0], |a| inverse(&definite(&triangle(a, false), 0.0))))
            .gradient(&[0]),
        with_factors(
            "linalg_solve_triangular",
            "torch.linalg.solve_triangular(WELL, b, upper=True)",
        )
        .run(|t| well(&t[0])?.linalg_solve_triangular(&t[1], true))
        .oracle(move |x| solution(&x[0], &x[1], |a| triangle(a, true))),
        with_factors(
            "linalg_solve_triangular",
            "torch.linalg.solve_triangular(WELL, b.mT, upper=False, left=False, unitriangular=True)",
        )
        .run(|t| {
            let options = LinalgSolveTriangularOptions::new().left(false).unitriangular(true);
            well(&t[0])?.linalg_solve_triangular_with(&turn(&t[1])?, false, options)
        })
        .oracle(move |x| {
            each_pair(&x[0], &x[1], &[2, 3], |a, b| {
                let mut lower = triangle(a, false);
                (0..3).for_each(|i| lower[i][i] = 1.0);
                flat(turned(&eliminate(&turned(&lower), b).0))
            })
        })
        .brief(),
        with_factors("triangular_solve", "torch.triangular_solve(b, WELL)[0]")
            .run(|t| Ok(t[1].triangular_solve(&well(&t[0])?)?.0))
            .oracle(move |x| solution(&x[0], &x[1], |a| triangle(a, true)))
            .brief(),
    ]
}
