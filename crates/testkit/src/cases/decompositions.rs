//! QR, eigenvalues and singular values, and what they tell. Of results that are right in several
//! ways (signs of vectors) the rows compare what all have in common, and so do their gradients.

use plimsoll_core::{DType, Result};
use plimsoll_tensor::{
    EighOptions, LinalgLstsqOptions, LinalgQrOptions, OrmqrOptions, QrMode, Tensor, Uplo,
};

use super::factorizations::{SQUARE, case, map, one, positive, turn, well, well_matrix};
use super::input::{any, fraction};
use super::{Case, SINGLE_AND_DOUBLE};
use crate::oracle::factors::{
    self, Matrix, cholesky, definite, each, each_pair, eigen, eliminate, flat, function, inverse,
    product, singular_values, turned,
};
use crate::oracle::{Array, Number};

pub(super) fn cases() -> Vec<Case> {
    [qr(), spectral(), of_values(), of_tensors()].into_iter().flatten().collect()
}

/// R of a matrix with independent columns, with a positive diagonal.
fn upright(a: &Matrix) -> Matrix {
    turned(&cholesky(&product(&turned(a), a)))
}

fn qr() -> Vec<Case> {
    let tall = || [fraction(&[2, 4, 3])];
    // Above, the tall matrices have ones on their diagonal, so that columns are independent.
    const TALL: &str = "(a + 2 * torch.eye(4, 3, dtype=a.dtype))";
    let tallen = |x: &Tensor| -> Result<Tensor> {
        x.add(&Tensor::eye([4, 3], (x.dtype(), x.device()))?.mul(2.0)?)
    };
    let text = |words: &str| words.replace("TALL", TALL);
    let sizes = |x: &Array| {
        each(x, &[3, 3], |a| {
            flat(upright(&factors::shifted(a, 2.0))).iter().map(|v| v.abs()).collect()
        })
    };
    vec![
        case("linalg_qr", &text("(lambda q, r: (q @ r, r.abs()))(*torch.linalg.qr(TALL))"), tall())
            .run(move |t| {
                let (q, r) = tallen(&t[0])?.linalg_qr()?;
                Ok((q.matmul(&r)?, r.abs()?))
            })
            .oracle(move |x| {
                let again = each(&x[0], &[4, 3], |a| flat(factors::shifted(a, 2.0)));
                (again, sizes(&x[0]))
            })
            .gradient(&[0]),
        case("linalg_qr", "torch.linalg.qr(WELL.mT[..., :2, :], mode='complete')[1].abs()", one())
            .run(|t| {
                let wide = turn(&well(&t[0])?)?.narrow(-2, 0, 2)?;
                let mode = LinalgQrOptions::new().mode(QrMode::Complete);
                wide.linalg_qr_with(mode)?.1.abs()
            })
            .oracle(|x| {
                each(&x[0], &[2, 3], |a| {
                    let wide: Matrix = turned(&well_matrix(a))[..2].to_vec();
                    let left: Matrix = wide.iter().map(|row| row[..2].to_vec()).collect();
                    let basis = product(&left, &inverse(&upright(&left)));
                    flat(product(&turned(&basis), &wide)).iter().map(|v| v.abs()).collect()
                })
            })
            .gradient(&[0])
            .brief(),
        case("qr", &text("torch.linalg.qr(TALL)[1].abs()"), tall())
            .run(move |t| tallen(&t[0])?.qr()?.1.abs())
            .oracle(move |x| sizes(&x[0]))
            .gradient(&[0])
            .brief(),
        case("geqrf", &text("torch.geqrf(TALL)[0].triu()[..., :3, :].abs()"), tall())
            .run(move |t| tallen(&t[0])?.geqrf()?.0.triu(0)?.narrow(-2, 0, 3)?.abs())
            .oracle(move |x| sizes(&x[0])),
        reflected("linalg_householder_product", "torch.linalg.householder_product(a, b)")
            .run(|t| t[0].linalg_householder_product(&t[1]))
            .oracle(|x| {
                reflections(&x[0], &x[1], |q| q.iter().map(|row| row[..3].to_vec()).collect(), 3)
            }),
        reflected("orgqr", "torch.orgqr(a, b)")
            .run(|t| t[0].orgqr(&t[1]))
            .oracle(|x| {
                reflections(&x[0], &x[1], |q| q.iter().map(|row| row[..3].to_vec()).collect(), 3)
            })
            .brief(),
        case(
            "linalg_reflected",
            "torch.linalg.householder_product(a, b)",
            [fraction(&[2, 4, 3]), fraction(&[2, 3])],
        )
        .run(|t| t[0].linalg_householder_product(&t[1]))
        .oracle(|x| {
            reflections(&x[0], &x[1], |q| q.iter().map(|row| row[..3].to_vec()).collect(), 3)
        })
        .brief(),
        reflected(
            "ormqr",
            "torch.ormqr(a, b, torch.eye(4, dtype=a.dtype).expand(2, 4, 4), False, True)",
        )
        .run(|t| {
            let one = Tensor::eye(4, (t[0].dtype(), t[0].device()))?.expand(&[2, 4, 4])?;
            t[0].ormqr_with(&t[1], &one, OrmqrOptions::new().left(false).transpose(true))
        })
        .oracle(|x| reflections(&x[0], &x[1], turned, 4)),
    ]
}

fn reflected(op: &'static str, torch: &str) -> Case {
    case(op, torch, [fraction(&[2, 4, 3]), fraction(&[2, 3])]).gradient(&[0, 1])
}

/// `f` of the product of reflections `I - tau v v'`, of `columns` columns.
fn reflections(
    vectors: &Array,
    taus: &Array,
    f: impl Fn(&Matrix) -> Matrix,
    columns: usize,
) -> Array {
    let taus: Vec<f64> = taus.values().iter().map(|tau| tau.to_f64()).collect();
    let mut values = Vec::new();
    for (at, a) in factors::matrices(vectors).iter().enumerate() {
        let (rows, count) = (a.len(), a[0].len());
        let mut q = factors::identity(rows);
        for k in 0..count {
            let v = |i: usize| {
                if i < k {
                    0.0
                } else if i == k {
                    1.0
                } else {
                    a[i][k]
                }
            };
            let tau = taus[at * count + k];
            let entry = |i: usize, j: usize| f64::from(u8::from(i == j)) - tau * v(i) * v(j);
            let one: Matrix = (0..rows).map(|i| (0..rows).map(|j| entry(i, j)).collect()).collect();
            q = product(&q, &one);
        }
        values.extend(flat(f(&q)).into_iter().map(Number::Float));
    }
    let lead = &vectors.shape()[..vectors.shape().len() - 2];
    let rows = vectors.shape()[vectors.shape().len() - 2];
    Array::new(vectors.dtype(), &[lead, &[rows, columns]].concat(), values)
}

fn spectral() -> Vec<Case> {
    let values = |x: &Array| each(x, &[3], |a| eigen(&definite(a, 2.0)).0);
    let again = |x: &Array| map(x, |a| definite(a, 2.0));
    let singular = |x: &Array| {
        let small = x.shape()[x.shape().len() - 2..].iter().copied().min().unwrap_or(0);
        each(x, &[small], singular_values)
    };
    vec![
        case("linalg_eigvalsh", "torch.linalg.eigvalsh(DEFINITE)", one())
            .run(|t| positive(&t[0])?.linalg_eigvalsh())
            .oracle(move |x| values(&x[0]))
            .gradient(&[0]),
        case(
            "linalg_eigh",
            "(lambda l, v: (l, (v * l.unsqueeze(-2)) @ v.mT))(*torch.linalg.eigh(DEFINITE, UPLO='U'))",
            one(),
        )
        .run(|t| {
            let options = EighOptions::new().uplo(Uplo::U);
            let (values, vectors) = positive(&t[0])?.linalg_eigh_with(options)?;
            let whole = vectors.mul(&values.unsqueeze(-2)?)?.matmul(&turn(&vectors)?)?;
            Ok((values, whole))
        })
        .oracle(move |x| (values(&x[0]), again(&x[0])))
        .gradient(&[0]),
        // Values alone, which refuse other dtypes as PyTorch does.
        Case::new("linalg_svdvals", "torch.linalg.svdvals(a)", [any(&[2, 4, 3])])
            .run(|t| t[0].linalg_svdvals())
            .oracle(move |x| singular(&x[0]))
            .dtypes(&SINGLE_AND_DOUBLE)
            .tolerance(64.0, 8.0)
            .gradient(&[0]),
        case(
            "linalg_svd",
            "(lambda u, s, vh: (u[..., :2] * s.unsqueeze(-2)) @ vh[..., :2, :])(*torch.linalg.svd(a.mT))",
            [any(&[3, 2])],
        )
        .run(|t| {
            let (u, s, vh) = turn(&t[0])?.linalg_svd()?;
            u.narrow(-1, 0, 2)?.mul(&s.unsqueeze(-2)?)?.matmul(&vh.narrow(-2, 0, 2)?)
        })
        .oracle(|x| each(&x[0], &[2, 3], |a| flat(turned(a))))
        .gradient(&[0])
        .once()
        // Expanded it has equal rows, and where a singular value is 0 no gradient.
        .brief(),
        case(
            "svd",
            "(lambda u, s, v: ((u * s.unsqueeze(-2)) @ v.mT, u @ v.mT))(*torch.svd(WELL))",
            one(),
        )
        .run(|t| {
            let (u, s, v) = well(&t[0])?.svd()?;
            let vt = turn(&v)?;
            Ok((u.mul(&s.unsqueeze(-2)?)?.matmul(&vt)?, u.matmul(&vt)?))
        })
        .oracle(|x| {
            let nearest = |a: &Matrix| {
                let a = well_matrix(a);
                product(&a, &function(&product(&turned(&a), &a), |value| 1.0 / value.sqrt()))
            };
            (map(&x[0], well_matrix), map(&x[0], nearest))
        })
        .gradient(&[0]),
        case("linalg_polar", "torch.linalg.polar(WELL)", one())
            .run(|t| well(&t[0])?.linalg_polar())
            .oracle(|x| {
                let square = |a: &Matrix| product(&turned(a), a);
                let u = |a: &Matrix| {
                    let a = well_matrix(a);
                    product(&a, &function(&square(&a), |value| 1.0 / value.sqrt()))
                };
                let h = |a: &Matrix| function(&square(&well_matrix(a)), f64::sqrt);
                (map(&x[0], u), map(&x[0], h))
            })
            .gradient(&[0])
            .brief(),
        case("linalg_matrix_sqrth", "torch.linalg.matrix_sqrth(DEFINITE)", one())
            .run(|t| positive(&t[0])?.linalg_matrix_sqrth())
            .oracle(|x| map(&x[0], |a| function(&definite(a, 2.0), f64::sqrt)))
            .gradient(&[0])
            .brief(),
    ]
}

fn of_values() -> Vec<Case> {
    let tall = || [any(&[2, 4, 3])];
    let inverted = |x: &Array| each(x, &[3, 4], |a| flat(factors::pseudoinverse(a)));
    vec![
        case("linalg_pinv", "torch.linalg.pinv(a)", tall())
            .run(|t| t[0].linalg_pinv())
            .oracle(move |x| inverted(&x[0]))
            .tolerance(512.0, 8.0)
            .gradient(&[0]),
        case("pinverse", "torch.pinverse(a)", tall())
            .run(|t| t[0].pinverse())
            .oracle(move |x| inverted(&x[0]))
            .tolerance(512.0, 8.0)
            .gradient(&[0])
            .brief(),
        case("linalg_matrix_rank", "torch.linalg.matrix_rank(a)", tall())
            .run(|t| t[0].linalg_matrix_rank())
            .oracle(|x| each(&x[0], &[], |_| vec![3.0]).cast(DType::I64)),
        case("linalg_cond", "torch.linalg.cond(WELL)", one())
            .run(|t| well(&t[0])?.linalg_cond())
            .oracle(|x| {
                each(&x[0], &[], |a| {
                    let values = singular_values(&well_matrix(a));
                    vec![values[0] / values[2]]
                })
            })
            .gradient(&[0]),
        case(
            "linalg_lstsq",
            "(lambda x: (x.solution, x.residuals))(torch.linalg.lstsq(a, b, driver='gels'))",
            [any(&[2, 4, 2]), any(&[2, 4, 1])],
        )
        .run(|t| {
            let options = LinalgLstsqOptions::new().driver(plimsoll_tensor::Driver::Gels);
            let (x, residuals, _, _) = t[0].linalg_lstsq_with(&t[1], options)?;
            Ok((x.contiguous()?, residuals))
        })
        .oracle(|x| {
            let best = |a: &Matrix, b: &Matrix| product(&factors::pseudoinverse(a), b);
            let solution = each_pair(&x[0], &x[1], &[2, 1], |a, b| flat(best(a, b)));
            let rest = each_pair(&x[0], &x[1], &[1], |a, b| {
                let made = flat(product(a, &best(a, b)));
                vec![made.iter().zip(flat(b.clone())).map(|(m, b)| (m - b) * (m - b)).sum()]
            });
            (solution, rest)
        })
        .row_major()
        .tolerance(1024.0, 32.0)
        .gradient(&[0, 1]),
    ]
}

fn of_tensors() -> Vec<Case> {
    let exponential = |x: &Array| map(x, factors::exponential);
    vec![
        case(
            "linalg_tensorinv",
            "torch.linalg.tensorinv(WELL.reshape(3, 1, 3), ind=1)",
            [fraction(&[3, 3])],
        )
        .run(|t| {
            let options = plimsoll_tensor::LinalgTensorinvOptions::new().ind(1);
            well(&t[0])?.reshape(&[3, 1, 3])?.linalg_tensorinv_with(options)
        })
        .oracle(|x| {
            let values = flat(inverse(&well_matrix(&factors::matrices(&x[0])[0])));
            Array::new(x[0].dtype(), &[1, 3, 3], values.into_iter().map(Number::Float).collect())
        })
        .gradient(&[0])
        .brief(),
        case(
            "linalg_tensorsolve",
            "torch.linalg.tensorsolve(WELL.reshape(3, 1, 3), b)",
            [fraction(&[3, 3]), any(&[3])],
        )
        .run(|t| well(&t[0])?.reshape(&[3, 1, 3])?.linalg_tensorsolve(&t[1]))
        .oracle(|x| {
            let b: Matrix = x[1].values().iter().map(|value| vec![value.to_f64()]).collect();
            let values = flat(eliminate(&well_matrix(&factors::matrices(&x[0])[0]), &b).0);
            Array::new(x[0].dtype(), &[1, 3], values.into_iter().map(Number::Float).collect())
        })
        .gradient(&[0, 1])
        .brief(),
        Case::new("matrix_exp", "torch.matrix_exp(a)", [fraction(SQUARE)])
            .run(|t| t[0].matrix_exp())
            .oracle(move |x| exponential(&x[0]))
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these()
            .tolerance(64.0, 16.0)
            .gradient(&[0]),
        Case::new("linalg_matrix_exp", "torch.linalg.matrix_exp(a)", [fraction(SQUARE)])
            .run(|t| t[0].linalg_matrix_exp())
            .oracle(move |x| exponential(&x[0]))
            .dtypes(&SINGLE_AND_DOUBLE)
            .taking_only_these()
            .tolerance(64.0, 16.0)
            .gradient(&[0])
            .brief(),
    ]
}
