//! LU with partial pivoting, systems solved with its factors, and the order of rows that its pivots
//! stand for.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};

use super::matrices::{
    at_top, check_float, check_same, column_major, factorization, flat, matrices,
    of_factorizations, plain, square, turned,
};
use crate::Tensor;
use crate::operation::{Backward, DTypes, Grads, Inferred, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::lu as cpu;
use plimsoll_kernels::cpu::triangular::Triangle;
use plimsoll_kernels::{CpuLaunch, Meta};

/// `[A]` -> `[LU, pivots, info]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LuFactor {
    /// Whether a pivot that is 0 is an error.
    pub(crate) strict: bool,
}

impl Operation for LuFactor {
    fn info(&self) -> &'static OpInfo {
        if self.strict { &LU_FACTOR } else { &LU_FACTOR_EX }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (lead, rows, columns) = matrices(self.info().name, inputs[0])?;
        Ok(Inferred::Exact(smallvec::smallvec![
            column_major(lead, rows, columns, inputs[0].dtype)?,
            plain(lead, &[rows.min(columns)], DType::I32)?,
            plain(lead, &[], DType::I32)?,
        ]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(0).and(Saves::output(1))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::factor_workspace_bytes(inputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::factor(launch, self.strict)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let (p, l, u) = backward.output(0)?.lu_unpack(backward.output(1)?)?;
        let small = l.shape()[l.rank() - 1] as i64;
        let (lower, upper) = (grad.narrow(-1, 0, small)?, grad.narrow(-2, 0, small)?);
        Ok(smallvec::smallvec![Some(lu_gradient([&p, &l, &u], &lower, &upper)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const UPPER_LEFT_UNIT: Triangle = Triangle { upper: true, left: true, unit: true };
const LOWER_RIGHT: Triangle = Triangle { upper: false, left: false, unit: false };

/// The gradient of A = P L U from those of L (below its diagonal) and U (on and above).
fn lu_gradient([p, l, u]: [&Tensor; 3], grad_l: &Tensor, grad_u: &Tensor) -> Result<Tensor> {
    let (rows, columns) = (l.shape()[l.rank() - 2] as i64, u.shape()[u.rank() - 1] as i64);
    let small = rows.min(columns);
    let first = |x: &Tensor, dim: i64| x.narrow(dim, 0, small);
    let rest = |x: &Tensor, dim: i64| x.narrow(dim, small, rows.max(columns) - small);
    // With the square parts L1 of L and U1 of U: what the products L1 U1 ask for, and what the rest
    // of a wide or a tall matrix takes from it.
    let (l1, u1) = (first(l, -2)?, first(u, -1)?);
    let (g_l1, g_u1) = (first(grad_l, -2)?, first(grad_u, -1)?);
    let mut below = turned(&l1)?.matmul(&g_l1.tril(-1)?)?;
    let mut above = g_u1.triu(0)?.matmul(&turned(&u1)?)?;
    if columns > rows {
        below = below.sub(&rest(grad_u, -1)?.matmul(&turned(&rest(u, -1)?)?)?)?;
    }
    if rows > columns {
        above = above.sub(&turned(&rest(l, -2)?)?.matmul(&rest(grad_l, -2)?)?)?;
    }
    let inner = below.tril(-1)?.add(&above.triu(0)?)?;
    let inner = inner.triangular(&turned(&u1)?, LOWER_RIGHT)?;
    let mut whole = inner.triangular(&turned(&l1)?, UPPER_LEFT_UNIT)?;
    if columns > rows {
        let right = rest(grad_u, -1)?.triangular(&turned(&l1)?, UPPER_LEFT_UNIT)?;
        whole = Tensor::cat(&[&whole, &right], -1)?;
    }
    if rows > columns {
        let under = rest(grad_l, -2)?.triangular(&turned(&u1)?, LOWER_RIGHT)?;
        whole = Tensor::cat(&[&whole, &under], -2)?;
    }
    p.matmul(&whole)
}

/// `[LU, pivots, B]` -> `[X]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LuSolve {
    pub(crate) left: bool,
    pub(crate) adjoint: bool,
}

impl Operation for LuSolve {
    fn info(&self) -> &'static OpInfo {
        &LU_SOLVE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let op = LU_SOLVE.name;
        let (lead, size) = square(op, inputs[0])?;
        check_same(op, inputs[0], inputs[2])?;
        let (b_lead, rows, columns) = matrices(op, inputs[2])?;
        let fits = if self.left { rows == size } else { columns == size };
        let pivots = inputs[1].shape().split_last();
        let pivots = pivots.is_some_and(|(last, before)| *last == size && before == lead);
        if !fits || b_lead != lead || !pivots || inputs[1].dtype != DType::I32 {
            return Err(Error::shape(
                op,
                format!(
                    "factors of shape {:?}, pivots of shape {:?} and {}, and a right side of shape {:?} do not fit",
                    inputs[0].shape(),
                    inputs[1].shape(),
                    inputs[1].dtype,
                    inputs[2].shape()
                ),
            ));
        }
        Ok(Inferred::one(solution(lead, rows, columns, inputs[0].dtype, self.left)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let factors = Saves::input(0).and(Saves::input(1));
        factors.and(Saves::output(0).when(needs.has(0)))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::solve_factored(launch, self.left, self.adjoint)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, factors, pivots) = (backward.grad()?, backward.input(0)?, backward.input(1)?);
        let for_factors = backward.for_input(0, || {
            let x = backward.output(0)?;
            factors_gradient(self, factors, pivots, x, grad)
        })?;
        let other = LuSolve { left: self.left, adjoint: !self.adjoint };
        let for_b = backward.for_input(2, || other.run(factors, pivots, grad))?;
        Ok(smallvec::smallvec![for_factors, None, for_b])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl LuSolve {
    fn run(self, factors: &Tensor, pivots: &Tensor, b: &Tensor) -> Result<Tensor> {
        factors.factored_solve(pivots, b, self.left, self.adjoint)
    }
}

/// Column-major, or row-major where the unknown stands on the left.
pub(super) fn solution(
    lead: &[usize],
    rows: usize,
    columns: usize,
    dtype: DType,
    left: bool,
) -> Result<Meta> {
    if left {
        column_major(lead, rows, columns, dtype)
    } else {
        plain(lead, &[rows, columns], dtype)
    }
}

/// The gradient of both factors in one matrix.
fn factors_gradient(
    op: &LuSolve,
    factors: &Tensor,
    pivots: &Tensor,
    x: &Tensor,
    grad: &Tensor,
) -> Result<Tensor> {
    let (p, l, u) = factors.lu_unpack(pivots)?;
    let (lt, ut) = (turned(&l)?, turned(&u)?);
    let (x, grad) = if op.left { (x.clone(), grad.clone()) } else { (turned(x)?, turned(grad)?) };
    if op.left != op.adjoint {
        // P L U X = B.
        let lower = Triangle { upper: false, left: true, unit: false };
        let inner = grad.matmul(&turned(&x)?)?.neg()?.triangular(&ut, lower)?;
        let below = inner.matmul(&ut)?.triangular(&lt, UPPER_LEFT_UNIT)?;
        return below.tril(-1)?.add(&inner.triu(0)?);
    }
    // The same of the transpose.
    let inner = turned(&p)?.matmul(&x)?.matmul(&turned(&grad)?)?.matmul(&p)?.neg()?;
    let inner = inner.triangular(&lt, Triangle { upper: true, left: false, unit: true })?;
    let above = lt.matmul(&inner)?.triangular(&ut, LOWER_RIGHT)?;
    inner.tril(-1)?.add(&above.triu(0)?)
}

/// `[pivots]` -> `[rows]`: which row of A each row of the factors is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowOrder {
    pub(crate) rows: usize,
}

impl Operation for RowOrder {
    fn info(&self) -> &'static OpInfo {
        &ROW_ORDER
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let Some((count, lead)) = inputs[0].shape().split_last() else {
            return Err(Error::shape("lu_unpack", "pivots have a dimension"));
        };
        if inputs[0].dtype != DType::I32 {
            let why = format!("pivots are int32, not {}", inputs[0].dtype);
            return Err(Error::dtype("lu_unpack", why));
        }
        if *count > self.rows {
            let why = format!("{count} pivots are too many for {} rows", self.rows);
            return Err(Error::shape("lu_unpack", why));
        }
        Ok(Inferred::one(plain(lead, &[self.rows], DType::I64)?))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::row_order(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Checks factors and pivots of `lu_unpack` and gives their sizes before the last two.
pub(crate) fn check_unpack(factors: &Meta, pivots: &Meta) -> Result<(Dims, usize, usize)> {
    const OP: &str = "lu_unpack";
    let (lead, rows, columns) = matrices(OP, factors)?;
    check_float(OP, factors.dtype)?;
    let fits = pivots.shape().split_last();
    if !fits.is_some_and(|(count, before)| *count == rows.min(columns) && before == lead) {
        return Err(Error::shape(
            OP,
            format!(
                "factors of shape {:?} have {} pivots each, and not shape {:?}",
                factors.shape(),
                rows.min(columns),
                pivots.shape()
            ),
        ));
    }
    Ok((lead.into(), rows, columns))
}

static LU_FACTOR: OpInfo = factorization(
    "linalg_lu_factor",
    &["linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)"],
);
static LU_FACTOR_EX: OpInfo = factorization(
    "linalg_lu_factor_ex",
    &[
        "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
    ],
);
static LU_SOLVE: OpInfo = factorization(
    "linalg_lu_solve",
    &[
        "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    ],
);
static ROW_ORDER: OpInfo =
    OpInfo { dtypes: DTypes::of(&[DType::I32]), ..flat(factorization("linalg_row_order", &[])) };
static LU: OpInfo = of_factorizations(
    "linalg_lu",
    &["linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)"],
);
static LU_UNPACK: OpInfo = at_top(of_factorizations(
    "lu_unpack",
    &[
        "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    ],
));
static OLD_LU_SOLVE: OpInfo = at_top(of_factorizations(
    "lu_solve",
    &["lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"],
));

pub(crate) static OPS: &[&OpInfo] =
    &[&LU_FACTOR, &LU_FACTOR_EX, &LU_SOLVE, &ROW_ORDER, &LU, &LU_UNPACK, &OLD_LU_SOLVE];
