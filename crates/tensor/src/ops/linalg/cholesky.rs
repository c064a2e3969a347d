//! Systems with triangular matrices, and Cholesky's factors.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};

use super::matrices::{
    at_top, check_same, column_major, factorization, matrices, of_factorizations, plain, square,
    turned,
};
use crate::operation::{Backward, Grads, Inferred, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::cholesky as cpu;
use plimsoll_kernels::cpu::triangular::{self, Triangle};
use plimsoll_kernels::{CpuLaunch, Meta};

/// `[A, B]` -> `[X]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolveTriangular(pub(crate) Triangle);

impl Operation for SolveTriangular {
    fn info(&self) -> &'static OpInfo {
        &SOLVE_TRIANGULAR
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let op = SOLVE_TRIANGULAR.name;
        let (lead, size) = square(op, inputs[0])?;
        check_same(op, inputs[0], inputs[1])?;
        let (b_lead, rows, columns) = matrices(op, inputs[1])?;
        let fits = if self.0.left { rows == size } else { columns == size };
        if !fits || b_lead != lead {
            return Err(Error::shape(
                op,
                format!(
                    "a matrix of shape {:?} and a right side of shape {:?} do not fit",
                    inputs[0].shape(),
                    inputs[1].shape()
                ),
            ));
        }
        Ok(Inferred::one(column_major(lead, rows, columns, inputs[0].dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(0).and(Saves::output(0).when(needs.has(0)))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        triangular::solve(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, Triangle { upper, left, unit }) = (backward.grad()?, self.0);
        let other = Triangle { upper: !upper, left, unit };
        let for_b = grad.triangular(&turned(backward.input(0)?)?, other)?;
        let for_a = backward.for_input(0, || {
            let xt = turned(backward.output(0)?)?;
            let product = if left { for_b.matmul(&xt)? } else { xt.matmul(&for_b)? };
            let skipped = i64::from(unit);
            let triangle = if upper { product.triu(skipped)? } else { product.tril(-skipped)? };
            triangle.neg()
        })?;
        Ok(smallvec::smallvec![for_a, Some(for_b)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// `[A]` -> `[L, info]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cholesky {
    pub(crate) upper: bool,
    /// Whether a matrix that is not positive-definite is an error.
    pub(crate) strict: bool,
}

impl Operation for Cholesky {
    fn info(&self) -> &'static OpInfo {
        if self.strict { &CHOLESKY } else { &CHOLESKY_EX }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (lead, size) = square(self.info().name, inputs[0])?;
        Ok(Inferred::Exact(smallvec::smallvec![
            column_major(lead, size, size, inputs[0].dtype)?,
            plain(lead, &[], DType::I32)?,
        ]))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(0)
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::factor_workspace_bytes(inputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::factor(launch, self.upper, self.strict)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, factor) = (backward.grad()?, backward.output(0)?);
        let (grad, l) = match self.upper {
            true => (turned(grad)?, turned(factor)?),
            false => (grad.clone(), factor.clone()),
        };
        // Half of the diagonal and what is below, on both sides of it.
        let inner = turned(&l)?.matmul(&grad)?;
        let below = inner.tril(-1)?;
        let symmetric = inner.tril(0)?.add(&turned(&below)?)?.mul(0.5)?;
        let right = Triangle { upper: false, left: false, unit: false };
        let left = Triangle { upper: true, left: true, unit: false };
        let result = symmetric.triangular(&l, right)?.triangular(&turned(&l)?, left)?;
        Ok(smallvec::smallvec![Some(result)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static SOLVE_TRIANGULAR: OpInfo = factorization(
    "linalg_solve_triangular",
    &[
        "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    ],
);
static CHOLESKY: OpInfo =
    factorization("linalg_cholesky", &["linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor"]);
static CHOLESKY_EX: OpInfo = factorization(
    "linalg_cholesky_ex",
    &[
        "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    ],
);
static TOP_CHOLESKY: OpInfo =
    at_top(of_factorizations("cholesky", &["cholesky(Tensor self, bool upper=False) -> Tensor"]));
static CHOLESKY_SOLVE: OpInfo = at_top(of_factorizations(
    "cholesky_solve",
    &["cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"],
));
static CHOLESKY_INVERSE: OpInfo = at_top(of_factorizations(
    "cholesky_inverse",
    &["cholesky_inverse(Tensor self, bool upper=False) -> Tensor"],
));
static TRIANGULAR_SOLVE: OpInfo = at_top(of_factorizations(
    "triangular_solve",
    &[
        "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    ],
));

pub(crate) static OPS: &[&OpInfo] = &[
    &SOLVE_TRIANGULAR,
    &CHOLESKY,
    &CHOLESKY_EX,
    &TOP_CHOLESKY,
    &CHOLESKY_SOLVE,
    &CHOLESKY_INVERSE,
    &TRIANGULAR_SOLVE,
];
