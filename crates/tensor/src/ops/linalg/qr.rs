//! QR by Householder's reflections, and products with them.

use std::sync::Arc;

use plimsoll_core::{Error, Result};

use super::matrices::{
    at_top, check_same, column_major, factorization, flat, matrices, of_factorizations, plain,
    turned,
};
use crate::Tensor;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::qr as cpu;
use plimsoll_kernels::cpu::triangular::Triangle;
use plimsoll_kernels::{CpuLaunch, Meta};

/// `[A]` -> `[R]` and, if wanted, `[Q]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qr {
    /// A whole basis, and not only one of the columns.
    pub(crate) complete: bool,
    pub(crate) basis: bool,
}

impl Operation for Qr {
    fn info(&self) -> &'static OpInfo {
        &QR
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (lead, rows, columns) = matrices(QR.name, inputs[0])?;
        let inner = if self.complete { rows } else { rows.min(columns) };
        let dtype = inputs[0].dtype;
        let mut metas: Metas = smallvec::smallvec![column_major(lead, inner, columns, dtype)?];
        if self.basis {
            metas.push(column_major(lead, rows, inner, dtype)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        if self.basis { Saves::output(0).and(Saves::output(1)) } else { Saves::NOTHING }
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::decompose_workspace_bytes(inputs[0], self.complete)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::decompose(launch, self.complete)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let refuse = |why: &str| Err(Error::autograd(QR.name, why));
        if !self.basis {
            return refuse("the derivative needs Q, which mode 'r' leaves out; use 'reduced'");
        }
        let (r, q) = (backward.output(0)?, backward.output(1)?);
        let (rows, columns) = (q.shape()[q.rank() - 2], r.shape()[r.rank() - 1]);
        if self.complete && rows > columns {
            return refuse("the basis of a tall matrix in mode 'complete' has no derivative");
        }
        let grad = |index: usize| backward.grads.get(index).and_then(Option::as_ref);
        Ok(smallvec::smallvec![gradient([q, r], grad(1), grad(0))?])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradient of A = Q R.
fn gradient(
    [q, r]: [&Tensor; 2],
    for_q: Option<&Tensor>,
    for_r: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    let (rows, columns) = (q.shape()[q.rank() - 2] as i64, r.shape()[r.rank() - 1] as i64);
    if rows < columns {
        return wide_gradient([q, r], for_q, for_r);
    }
    let turns = for_q.map(|grad| turned(q)?.matmul(grad)).transpose()?;
    let stretches = for_r.map(|grad| grad.matmul(&turned(r)?)).transpose()?;
    let inner = match (stretches, turns) {
        (Some(stretches), Some(turns)) => stretches.sub(&turns)?,
        (Some(stretches), None) => stretches,
        (None, Some(turns)) => turns.neg()?,
        (None, None) => return Ok(None),
    };
    // Its upper triangle on both sides of the diagonal.
    let upper = inner.triu(0)?;
    let mut result = q.matmul(&upper.add(&turned(&inner.triu(1)?)?)?)?;
    if let Some(grad) = for_q {
        result = result.add(grad)?;
    }
    result.triangular(&turned(r)?, Triangle { upper: false, left: false, unit: false }).map(Some)
}

/// The gradient of a matrix with more columns than rows.
fn wide_gradient(
    [q, r]: [&Tensor; 2],
    for_q: Option<&Tensor>,
    for_r: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    let (rows, columns) = (q.shape()[q.rank() - 2] as i64, r.shape()[r.rank() - 1] as i64);
    // A wide matrix: its first columns alone make the basis, on which the others stand.
    let Some(for_r) = for_r else {
        let first = gradient([q, &r.narrow(-1, 0, rows)?], for_q, None)?;
        let zeros = r.narrow(-1, rows, columns - rows)?.zeros_like()?;
        return first.map(|first| Tensor::cat(&[&first, &zeros], -1)).transpose();
    };
    let (others, for_others) =
        (r.narrow(-1, rows, columns - rows)?, for_r.narrow(-1, rows, columns - rows)?);
    let mut by_basis = q.matmul(&others.matmul(&turned(&for_others)?)?)?;
    if let Some(grad) = for_q {
        by_basis = by_basis.add(grad)?;
    }
    let (first, for_first) = (r.narrow(-1, 0, rows)?, for_r.narrow(-1, 0, rows)?);
    let left = gradient([q, &first], Some(&by_basis), Some(&for_first))?;
    let right = q.matmul(&for_others)?;
    left.map(|left| Tensor::cat(&[&left, &right], -1)).transpose()
}

/// `[A]` -> `[a, tau]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reflections;

impl Operation for Reflections {
    fn info(&self) -> &'static OpInfo {
        &GEQRF
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (lead, rows, columns) = matrices(GEQRF.name, inputs[0])?;
        Ok(Inferred::Exact(smallvec::smallvec![
            column_major(lead, rows, columns, inputs[0].dtype)?,
            plain(lead, &[rows.min(columns)], inputs[0].dtype)?,
        ]))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cpu::reflections_workspace_bytes(inputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::reflections(launch)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// `[vectors, tau]` -> the first columns of the product of the reflections, or `[vectors, tau, C]`
/// -> its product with C. Without a derivative: where one is needed, the methods compose it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reflected {
    pub(crate) left: bool,
    pub(crate) transposed: bool,
}

impl Operation for Reflected {
    fn info(&self) -> &'static OpInfo {
        &REFLECTED
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (lead, rows, columns) = matrices(REFLECTED.name, inputs[0])?;
        let Some(other) = inputs.get(2) else {
            return Ok(Inferred::one(column_major(lead, rows, columns, inputs[0].dtype)?));
        };
        let (_, other_rows, other_columns) = matrices(REFLECTED.name, other)?;
        let dtype = inputs[0].dtype;
        Ok(Inferred::one(column_major(lead, other_rows, other_columns, dtype)?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::multiply_workspace_bytes(inputs[1], &outputs[0], self.left)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::multiply(launch, self.left, self.transposed)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Checks vectors of reflections and their factors.
pub(crate) fn check_reflections<'a>(
    op: &'static str,
    vectors: &'a Meta,
    tau: &Meta,
) -> Result<(&'a [usize], usize, usize)> {
    let (lead, rows, columns) = matrices(op, vectors)?;
    check_same(op, vectors, tau)?;
    let fits = tau.shape().split_last();
    if !fits.is_some_and(|(count, before)| *count <= columns && before == lead) || rows < columns {
        return Err(Error::shape(
            op,
            format!(
                "vectors of shape {:?} and factors of shape {:?}: a matrix has no more columns than rows, and there \
                 are no more factors than columns",
                vectors.shape(),
                tau.shape()
            ),
        ));
    }
    Ok((lead, rows, columns))
}

static QR: OpInfo = factorization(
    "linalg_qr",
    &["linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)"],
);
static GEQRF: OpInfo =
    at_top(flat(factorization("geqrf", &["geqrf(Tensor self) -> (Tensor a, Tensor tau)"])));
static REFLECTED: OpInfo = flat(factorization("linalg_reflected", &[]));
static TOP_QR: OpInfo =
    at_top(of_factorizations("qr", &["qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)"]));
static HOUSEHOLDER_PRODUCT: OpInfo = of_factorizations(
    "linalg_householder_product",
    &["linalg_householder_product(Tensor A, Tensor tau) -> Tensor"],
);
static ORGQR: OpInfo =
    at_top(of_factorizations("orgqr", &["orgqr(Tensor self, Tensor input2) -> Tensor"]));
static ORMQR: OpInfo = at_top(of_factorizations(
    "ormqr",
    &[
        "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
    ],
));

pub(crate) static OPS: &[&OpInfo] =
    &[&QR, &GEQRF, &REFLECTED, &TOP_QR, &HOUSEHOLDER_PRODUCT, &ORGQR, &ORMQR];
