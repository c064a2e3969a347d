//! A weight divided by its largest singular value, which is estimated by power iterations.

use plimsoll_tensor::{DType, Device, Error, MemoryFormat, NoGrad, Result, Tensor};

use crate::call::at_caller;
use crate::options::positive;
use crate::parametrize::Parametrization;
use crate::{Buffer, Forward, Hooks, Module, Training};

plimsoll_tensor::options! {
    /// How [`spectral_norm_with`](super::spectral_norm_with) norms, and what.
    SpectralNormOptions {
        /// The parameter.
        name: String = "weight".to_string(),
        /// Iterations of each call in training.
        n_power_iterations: i64 = 1,
        /// The least length of a vector.
        eps: f64 = 1e-12,
        /// The dimension of the results; the first, or the second of transposed convolutions.
        dim: Option<i64> = None,
    }
}

/// `original / sigma`. The vectors that belong to the largest singular value are buffers, `_u` and
/// `_v`; each call in training brings them nearer.
#[derive(Debug, Module)]
#[module(builtin, name = "_SpectralNorm")]
pub struct SpectralNorm {
    #[module(skip)]
    dim: usize,
    n_power_iterations: i64,
    eps: f64,
    /// None for a vector, which has one singular value and nothing to search for.
    #[module(rename = "_u")]
    u: Option<Buffer>,
    #[module(rename = "_v")]
    v: Option<Buffer>,
    /// Whether calls bring the vectors nearer.
    pub training: Training,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl SpectralNorm {
    /// For a weight like this one, with fifteen iterations to begin with.
    #[track_caller]
    pub fn new(weight: &Tensor, dim: i64, options: &SpectralNormOptions) -> Result<SpectralNorm> {
        const OP: &str = "spectral_norm";
        let _site = at_caller();
        positive(OP, "n_power_iterations", options.n_power_iterations)?;
        let rank = weight.rank() as i64;
        if !(-rank..rank).contains(&dim) {
            let what =
                format!("there is no dimension {dim} in a weight of shape {:?}", weight.shape());
            return Err(Error::shape(OP, what));
        }
        let mut made = SpectralNorm {
            dim: dim.rem_euclid(rank) as usize,
            n_power_iterations: options.n_power_iterations,
            eps: options.eps,
            u: None,
            v: None,
            training: Training::default(),
            hooks: Hooks::default(),
        };
        if rank > 1 {
            let _plain = NoGrad::enter();
            let matrix = made.matrix(&weight.detach())?;
            let own = (matrix.dtype(), matrix.device());
            made.u = Some(drawn(matrix.size(0)?, own, made.eps)?);
            made.v = Some(drawn(matrix.size(1)?, own, made.eps)?);
            made.iterate(&matrix, 15)?;
        }
        Ok(made)
    }

    /// The dimension of the results as rows, all others as columns.
    fn matrix(&self, weight: &Tensor) -> Result<Tensor> {
        let rows = weight.movedim(&[self.dim as i64], &[0])?;
        rows.reshape(&[rows.size(0)?, -1])
    }

    fn iterate(&self, matrix: &Tensor, count: i64) -> Result<()> {
        let (Some(u), Some(v)) = (&self.u, &self.v) else { return Ok(()) };
        let _plain = NoGrad::enter();
        let (matrix, u, v) = (matrix.detach(), u.tensor(), v.tensor());
        for _ in 0..count {
            u.copy_(&unit(&matrix.matmul(&v)?, self.eps)?)?;
            v.copy_(&unit(&matrix.t()?.matmul(&u)?, self.eps)?)?;
        }
        Ok(())
    }
}

fn drawn(size: i64, own: (DType, Device), eps: f64) -> Result<Buffer> {
    Ok(Buffer::new(&unit(&Tensor::randn(&[size], own)?, eps)?))
}

fn unit(x: &Tensor, eps: f64) -> Result<Tensor> {
    x.div(&x.linalg_vector_norm()?.clamp_min(eps)?)
}

impl Forward<&[Tensor]> for SpectralNorm {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
        let _site = at_caller();
        let [weight] = originals else {
            let what = format!("it is computed of one tensor, not of {}", originals.len());
            return Err(Error::invalid_argument(what).in_operation("spectral_norm"));
        };
        let (Some(u), Some(v)) = (&self.u, &self.v) else { return unit(weight, self.eps) };
        let matrix = self.matrix(weight)?;
        if self.training.get() {
            self.iterate(&matrix, self.n_power_iterations)?;
        }
        // Copies, for the graph of this call must not see what the next one writes.
        let copy = |of: &Buffer| of.tensor().clone_with(MemoryFormat::Contiguous);
        let (u, v) = (copy(u)?, copy(v)?);
        weight.div(&u.mul(&matrix.matmul(&v)?)?.sum()?)
    }
}

impl Parametrization for SpectralNorm {
    /// A weight that is assigned may be anything: the next call norms it.
    fn right_inverse(&self, value: &Tensor) -> Result<Option<Vec<Tensor>>> {
        Ok(Some(vec![value.clone()]))
    }
}
