//! Systems of equations, inverses and determinants, by LU.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};

use super::lu::solution;
use super::matrices::{
    at_top, check_same, column_major, diagonal_matrix, factorization, matrices, of_factorizations,
    plain, square, turned,
};
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::lu as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// `[A, B]` -> `[X, info]`, and for backward `[LU, pivots]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solve {
    pub(crate) left: bool,
    /// Whether a singular matrix is an error.
    pub(crate) strict: bool,
}

impl Operation for Solve {
    fn info(&self) -> &'static OpInfo {
        if self.strict { &SOLVE } else { &SOLVE_EX }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        let op = self.info().name;
        let (lead, size) = square(op, inputs[0])?;
        check_same(op, inputs[0], inputs[1])?;
        let (b_lead, rows, columns) = matrices(op, inputs[1])?;
        let fits = if self.left { rows == size } else { columns == size };
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
        let dtype = inputs[0].dtype;
        let mut metas: Metas = smallvec::smallvec![
            solution(lead, rows, columns, dtype, self.left)?,
            plain(lead, &[], DType::I32)?
        ];
        if needs.any() {
            metas.push(column_major(lead, size, size, dtype)?);
            metas.push(plain(lead, &[size], DType::I32)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let factors = Saves::output(2).and(Saves::output(3));
        Saves::input(0).and(factors).and(Saves::output(0).when(needs.has(0)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::solve_workspace_bytes(inputs[0], outputs.len() > 2)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::solve(launch, self.left, self.strict)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, a) = (backward.grad()?, backward.input(0)?);
        // To be differentiated again it must be a function of A.
        let for_b = if is_grad_enabled() {
            turned(a)?.solved(grad, self.left)?
        } else {
            backward.output(2)?.factored_solve(backward.output(3)?, grad, self.left, true)?
        };
        let for_a = backward.for_input(0, || {
            let xt = turned(backward.output(0)?)?;
            let product = if self.left { for_b.matmul(&xt)? } else { xt.matmul(&for_b)? };
            product.neg()
        })?;
        Ok(smallvec::smallvec![for_a, Some(for_b)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// `[A]` -> `[inverse, info]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inverse {
    /// Whether a singular matrix is an error.
    pub(crate) strict: bool,
}

impl Operation for Inverse {
    fn info(&self) -> &'static OpInfo {
        if self.strict { &INV } else { &INV_EX }
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
        cpu::solve_workspace_bytes(inputs[0], false)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::solve(launch, true, self.strict)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let inverse = turned(backward.output(0)?)?;
        let grad = inverse.matmul(&backward.grad()?.matmul(&inverse)?)?.neg()?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// `[A]` -> `[det]`, or `[sign, logarithm of the size]`; and for backward `[LU, pivots]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Determinant {
    pub(crate) logarithm: bool,
}

impl Determinant {
    fn results(self) -> usize {
        if self.logarithm { 2 } else { 1 }
    }
}

impl Operation for Determinant {
    fn info(&self) -> &'static OpInfo {
        if self.logarithm { &SLOGDET } else { &DET }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        let (lead, size) = square(self.info().name, inputs[0])?;
        let dtype = inputs[0].dtype;
        let mut metas = Metas::new();
        for _ in 0..self.results() {
            metas.push(plain(lead, &[], dtype)?);
        }
        if needs.any() {
            metas.push(column_major(lead, size, size, dtype)?);
            metas.push(plain(lead, &[size], DType::I32)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        let first = self.results();
        let factors = Saves::output(first).and(Saves::output(first + 1));
        Saves::input(0).and(factors).and(Saves::output(0).when(!self.logarithm))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::determinant_workspace_bytes(inputs[0], outputs.len() > self.results())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::determinant(launch, self.logarithm)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (a, first) = (backward.input(0)?, self.results());
        // The sign does not change with A.
        let Some(grad) = backward.grads.get(first - 1).and_then(Option::as_ref) else {
            return Ok(smallvec::smallvec![None]);
        };
        if !self.logarithm && a.shape()[a.rank() - 1] == 1 {
            // The element itself.
            return Ok(smallvec::smallvec![Some(grad.unsqueeze(-1)?.unsqueeze(-1)?)]);
        }
        let on_diagonal =
            if self.logarithm { grad.clone() } else { grad.mul(backward.output(0)?)? };
        let sizes: Vec<i64> = a.shape()[..a.rank() - 1].iter().map(|&size| size as i64).collect();
        let right = diagonal_matrix(&on_diagonal.unsqueeze(-1)?.expand(&sizes)?)?;
        // To be differentiated again the factors must be functions of A.
        let (factors, pivots) = if is_grad_enabled() {
            let (factors, pivots, _) = a.linalg_lu_factor_ex()?;
            (factors, pivots)
        } else {
            (backward.output(first)?.clone(), backward.output(first + 1)?.clone())
        };
        let factors = if self.logarithm { factors } else { regular(&factors)? };
        let grad = factors.factored_solve(&pivots, &right, true, true)?;
        Ok(smallvec::smallvec![Some(grad)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The factors with the smallest step from 1 for each pivot that is 0: the determinant has a
/// derivative at singular matrices too, and there it is the nearby matrix's.
fn regular(factors: &Tensor) -> Result<Tensor> {
    let step = if factors.dtype() == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let diagonal = factors.detach().diagonal(0, -2, -1)?;
    let zeros = diagonal.eq(0.0)?;
    let steps = zeros.to(factors.dtype())?.mul(step)?;
    factors.add(&diagonal_matrix(&steps)?)
}

static SOLVE: OpInfo = factorization(
    "linalg_solve",
    &["linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"],
);
static SOLVE_EX: OpInfo = factorization(
    "linalg_solve_ex",
    &[
        "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
    ],
);
static INV: OpInfo = factorization("linalg_inv", &["linalg_inv(Tensor A) -> Tensor"]);
static INV_EX: OpInfo = factorization(
    "linalg_inv_ex",
    &["linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)"],
);
static INVERSE: OpInfo = at_top(of_factorizations("inverse", &["inverse(Tensor self) -> Tensor"]));
static DET: OpInfo = factorization("linalg_det", &["linalg_det(Tensor A) -> Tensor"]);
static SLOGDET: OpInfo = factorization(
    "linalg_slogdet",
    &["linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"],
);
static TOP_DET: OpInfo = at_top(of_factorizations("det", &["det(Tensor self) -> Tensor"]));
static TOP_SLOGDET: OpInfo = at_top(of_factorizations(
    "slogdet",
    &["slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"],
));
static LOGDET: OpInfo = at_top(of_factorizations("logdet", &["logdet(Tensor self) -> Tensor"]));

pub(crate) static OPS: &[&OpInfo] =
    &[&SOLVE, &SOLVE_EX, &INV, &INV_EX, &INVERSE, &DET, &SLOGDET, &TOP_DET, &TOP_SLOGDET, &LOGDET];
