//! Eigenvalues of symmetric matrices, and singular values.

use std::sync::Arc;

use plimsoll_core::Result;

use super::matrices::{
    at_top, column_major, diagonal_matrix, factorization, matrices, of_factorizations, plain,
    square, turned,
};
use crate::Tensor;
use crate::operation::{Backward, Grads, Inferred, Metas, Needs, OpInfo, Operation, Saves};
use plimsoll_kernels::cpu::svd::Vectors;
use plimsoll_kernels::cpu::{eigen, svd};
use plimsoll_kernels::{CpuLaunch, Meta};

/// `[A]` -> `[eigenvalues]` and, if wanted or for backward, `[eigenvectors]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eigen {
    /// Whether the upper triangle is read, and not the lower.
    pub(crate) upper: bool,
    pub(crate) vectors: bool,
}

impl Operation for Eigen {
    fn info(&self) -> &'static OpInfo {
        if self.vectors { &EIGH } else { &EIGVALSH }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        let (lead, size) = square(self.info().name, inputs[0])?;
        let mut metas: Metas = smallvec::smallvec![plain(lead, &[size], inputs[0].dtype)?];
        if self.vectors || needs.any() {
            metas.push(column_major(lead, size, size, inputs[0].dtype)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(0).and(Saves::output(1))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        eigen::symmetric_workspace_bytes(inputs[0], outputs.len() > 1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        eigen::symmetric(launch, self.upper)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (values, vectors) = (backward.output(0)?, backward.output(1)?);
        let grad = |index: usize| backward.grads.get(index).and_then(Option::as_ref);
        let inner = match (grad(0), grad(1)) {
            (None, None) => return Ok(smallvec::smallvec![None]),
            (Some(grad), None) => grad.unsqueeze(-1)?.mul(&turned(vectors)?)?,
            (for_values, Some(for_vectors)) => {
                let apart = differences(values)?;
                let product = turned(vectors)?.matmul(for_vectors)?;
                // Orthonormal vectors can only turn among themselves.
                let turns = product.sub(&turned(&product)?)?.mul(0.5)?;
                let mut inner = turns.div(&apart)?;
                if let Some(grad) = for_values {
                    inner = inner.add(&diagonal_matrix(grad)?)?;
                }
                inner.matmul(&turned(vectors)?)?
            }
        };
        Ok(smallvec::smallvec![Some(vectors.matmul(&inner)?)])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Element `i, j` is value `j` less value `i`, and 1 on the diagonal.
fn differences(values: &Tensor) -> Result<Tensor> {
    let apart = values.unsqueeze(-2)?.sub(&values.unsqueeze(-1)?)?;
    apart.add(&diagonal_matrix(&values.ones_like()?)?)
}

/// `[A]` -> `[S]` and, if wanted or for backward, `[U, Vh]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Svd {
    pub(crate) vectors: Vectors,
}

impl Svd {
    /// Of values alone, backward needs the vectors.
    fn made(self, needed: bool) -> Vectors {
        match self.vectors {
            Vectors::None if needed => Vectors::Thin,
            vectors => vectors,
        }
    }
}

impl Operation for Svd {
    fn info(&self) -> &'static OpInfo {
        if self.vectors == Vectors::None { &SVDVALS } else { &SVD }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        let (lead, rows, columns) = matrices(self.info().name, inputs[0])?;
        let (small, dtype) = (rows.min(columns), inputs[0].dtype);
        let mut metas: Metas = smallvec::smallvec![plain(lead, &[small], dtype)?];
        let (left, right) = match self.made(needs.any()) {
            Vectors::None => return Ok(Inferred::Exact(metas)),
            Vectors::Thin => (small, small),
            Vectors::Full => (rows, columns),
        };
        metas.push(column_major(lead, rows, left, dtype)?);
        metas.push(column_major(lead, right, columns, dtype)?);
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(0).and(Saves::output(1)).and(Saves::output(2))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        svd::decompose_workspace_bytes(inputs[0], self.made(outputs.len() > 1))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        svd::decompose(launch, self.made(launch.outputs.len() > 1))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let small = backward.output(0)?.shape().last().copied().unwrap_or(0) as i64;
        let grad = |index: usize| backward.grads.get(index).and_then(Option::as_ref);
        let thin = |x: &Tensor, dim: i64| x.narrow(dim, 0, small);
        let parts = Parts {
            s: backward.output(0)?.clone(),
            u: thin(backward.output(1)?, -1)?,
            vh: thin(backward.output(2)?, -2)?,
        };
        // Vectors past the values are any basis of what is left, and have no gradient.
        let for_u = grad(1).map(|grad| thin(grad, -1)).transpose()?;
        let for_vh = grad(2).map(|grad| thin(grad, -2)).transpose()?;
        Ok(smallvec::smallvec![parts.gradient(grad(0), for_u.as_ref(), for_vh.as_ref())?])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The thin factors of a matrix.
struct Parts {
    s: Tensor,
    u: Tensor,
    vh: Tensor,
}

impl Parts {
    /// The gradient of the matrix.
    fn gradient(
        &self,
        for_s: Option<&Tensor>,
        for_u: Option<&Tensor>,
        for_vh: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let Parts { s, u, vh } = self;
        let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
        if for_u.is_none() && for_vh.is_none() {
            let Some(for_s) = for_s else { return Ok(None) };
            let scaled = u.mul(&for_s.unsqueeze(-2)?)?;
            return Ok(Some(scaled.matmul(vh)?));
        }
        let mut inner = self.rotation(for_u, for_vh)?;
        if let Some(for_s) = for_s {
            inner = inner.add(&diagonal_matrix(for_s)?)?;
        }
        let (rows, columns) = (u.shape()[u.rank() - 2], vh.shape()[vh.rank() - 1]);
        let (rows_more, columns_more) = (rows > columns, columns > rows);
        // What turns the columns out of their space, and then the rows out of theirs.
        if let (Some(for_u), true) = (for_u, rows_more) {
            let out = for_u.div(&row)?;
            let out = out.sub(&u.matmul(&turned(u)?.matmul(&out)?)?)?;
            return Ok(Some(u.matmul(&inner)?.add(&out)?.matmul(vh)?));
        }
        if let (Some(for_vh), true) = (for_vh, columns_more) {
            let out = for_vh.div(&column)?;
            let out = out.sub(&out.matmul(&turned(vh)?)?.matmul(vh)?)?;
            return Ok(Some(u.matmul(&inner.matmul(vh)?.add(&out)?)?));
        }
        Ok(Some(u.matmul(&inner)?.matmul(vh)?))
    }

    /// What turns the vectors among themselves.
    fn rotation(&self, for_u: Option<&Tensor>, for_vh: Option<&Tensor>) -> Result<Tensor> {
        let Parts { s, u, vh } = self;
        let (row, column) = (s.unsqueeze(-2)?, s.unsqueeze(-1)?);
        let squares = s.mul(s)?;
        let apart = differences(&squares)?;
        let skew = |x: Tensor| x.sub(&turned(&x)?);
        let left = for_u.map(|grad| skew(turned(u)?.matmul(grad)?)).transpose()?;
        let right = for_vh.map(|grad| skew(vh.matmul(&turned(grad)?)?)).transpose()?;
        let sum = match (left, right) {
            (Some(left), Some(right)) => left.mul(&row)?.add(&column.mul(&right)?)?,
            (Some(left), None) => left.mul(&row)?,
            (None, Some(right)) => column.mul(&right)?,
            (None, None) => return apart.zeros_like(),
        };
        sum.div(&apart)
    }
}

static EIGH: OpInfo = factorization(
    "linalg_eigh",
    &["linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)"],
);
static EIGVALSH: OpInfo =
    factorization("linalg_eigvalsh", &["linalg_eigvalsh(Tensor A, str UPLO='L') -> Tensor"]);
static SVD: OpInfo = factorization(
    "linalg_svd",
    &[
        "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    ],
);
static SVDVALS: OpInfo =
    factorization("linalg_svdvals", &["linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor"]);
static TOP_SVD: OpInfo = at_top(of_factorizations(
    "svd",
    &["svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)"],
));

pub(crate) static OPS: &[&OpInfo] = &[&EIGH, &EIGVALSH, &SVD, &SVDVALS, &TOP_SVD];
