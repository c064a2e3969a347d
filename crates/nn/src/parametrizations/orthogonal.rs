//! A weight that stays orthogonal: a map from all matrices to orthogonal ones, of which the trained
//! tensor is the argument.

use std::sync::OnceLock;

use plimsoll_tensor::{DType, Error, NoGrad, Result, Tensor};

use crate::call::at_caller;
use crate::parametrize::Parametrization;
use crate::{Buffer, Forward, Hooks, Module};

/// How an orthogonal matrix is made of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrthogonalMap {
    /// The exponential of a skew-symmetric matrix.
    MatrixExp,
    /// Cayley's: `(I + A / 2) (I - A / 2)^-1` of a skew-symmetric matrix.
    Cayley,
    /// A product of reflections; the least work for matrices that are far from square.
    Householder,
}

plimsoll_tensor::options! {
    /// What [`orthogonal_with`](super::orthogonal_with) keeps orthogonal, and how.
    OrthogonalOptions {
        /// The parameter.
        name: String = "weight".to_string(),
        /// The map; the exponential for square matrices, reflections for others.
        orthogonal_map: Option<OrthogonalMap> = None,
        /// Whether the map is multiplied by a base, a buffer: the weight then begins with the value
        /// that the layer had, and training converges better.
        use_trivialization: bool = true,
    }
}

/// A matrix, or each of a batch of matrices, made orthogonal.
#[derive(Debug, Module)]
#[module(builtin, name = "_Orthogonal")]
pub struct Orthogonal {
    base: OnceLock<Buffer>,
    #[module(skip)]
    map: OrthogonalMap,
    has_base: bool,
    shape: Vec<usize>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

const OP: &str = "orthogonal";

impl Orthogonal {
    /// For a weight like this one.
    pub fn new(weight: &Tensor, options: &OrthogonalOptions) -> Result<Orthogonal> {
        let [.., rows, columns] = *weight.shape() else {
            let rank = weight.rank();
            let what = format!(
                "Expected a matrix or batch of matrices. Got a tensor of {rank} dimensions."
            );
            return Err(Error::shape(OP, what));
        };
        let usual =
            if rows == columns { OrthogonalMap::MatrixExp } else { OrthogonalMap::Householder };
        Ok(Orthogonal {
            base: OnceLock::new(),
            map: options.orthogonal_map.unwrap_or(usual),
            has_base: options.use_trivialization,
            shape: weight.shape().to_vec(),
            hooks: Hooks::default(),
        })
    }

    /// The map of a matrix that is not wide.
    fn mapped(&self, x: &Tensor) -> Result<Tensor> {
        let (rows, columns) = (x.size(-2)?, x.size(-1)?);
        if self.map == OrthogonalMap::Householder {
            let vectors = x.tril(-1)?;
            let tau = vectors.mul(&vectors)?.sum_with([-2])?.add(1.0)?.reciprocal()?.mul(2.0)?;
            let product = vectors.linalg_householder_product(&tau)?;
            // Ones and minus ones, which are not trained.
            let signs = x.detach().diagonal(0, -2, -1)?.trunc()?.unsqueeze(-2)?;
            return product.mul(&signs);
        }
        let mut lower = x.tril(0)?;
        if rows != columns {
            let mut sizes: Vec<i64> = x.shape().iter().map(|&size| size as i64).collect();
            if let Some(last) = sizes.last_mut() {
                *last = rows - columns;
            }
            let rest = Tensor::zeros(&sizes, (x.dtype(), x.device()))?;
            lower = Tensor::cat(&[&lower, &rest], -1)?;
        }
        let skew = lower.sub(&lower.transpose(-2, -1)?)?;
        let square = if self.map == OrthogonalMap::MatrixExp {
            skew.matrix_exp()?
        } else {
            let one = Tensor::eye([rows, rows], (x.dtype(), x.device()))?;
            let half = skew.mul(0.5)?;
            one.sub(&half)?.linalg_solve(&one.add(&half)?)?
        };
        if rows == columns { Ok(square) } else { square.narrow(-1, 0, columns) }
    }

    /// A base of which `value`, a matrix that is not wide, is the first columns.
    fn completed(&self, value: &Tensor) -> Result<Tensor> {
        let (rows, columns) = (value.size(-2)?, value.size(-1)?);
        if rows == columns {
            return if is_orthogonal(value)? { value.mul(1.0) } else { made_orthogonal(value) };
        }
        let mut sizes: Vec<i64> = value.shape().iter().map(|&size| size as i64).collect();
        if let Some(last) = sizes.last_mut() {
            *last = rows - columns;
        }
        let rest = Tensor::randn(&sizes, (value.dtype(), value.device()))?;
        made_orthogonal(&Tensor::cat(&[value, &rest], -1)?)
    }
}

fn is_orthogonal(square: &Tensor) -> Result<bool> {
    let size = square.size(-1)?;
    let one = Tensor::eye([size, size], (square.dtype(), square.device()))?;
    let off = square.transpose(-2, -1)?.matmul(square)?.sub(&one)?.abs()?.amax()?;
    let rounding =
        if square.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    Ok(off.to(DType::F64)?.item::<f64>()? <= 10.0 * size as f64 * rounding)
}

/// Q of `value = Q R` with no negative number on R's diagonal.
fn made_orthogonal(value: &Tensor) -> Result<Tensor> {
    let (packed, tau) = value.geqrf()?;
    let signs = packed.diagonal(0, -2, -1)?.sgn()?.unsqueeze(-2)?;
    packed.linalg_householder_product(&tau)?.mul(&signs)
}

/// The reflections of a matrix, their signs on the diagonal.
fn reflections(value: &Tensor) -> Result<Tensor> {
    let (packed, tau) = value.geqrf()?;
    let diagonal = packed.diagonal(0, -2, -1)?;
    // A factor of exactly 0 says that a reflection was left out.
    let signs = diagonal.sgn()?;
    diagonal.copy_(&Tensor::where_(&tau.ne(0.0)?, &signs, &signs.neg()?)?)?;
    Ok(packed)
}

impl Forward<&[Tensor]> for Orthogonal {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
        let _site = at_caller();
        let [x] = originals else {
            let what = format!("it is computed of one tensor, not of {}", originals.len());
            return Err(Error::invalid_argument(what).in_operation(OP));
        };
        let is_wide = x.size(-2)? < x.size(-1)?;
        let tall = if is_wide { x.transpose(-2, -1)? } else { x.clone() };
        let mut q = self.mapped(&tall)?;
        if let Some(base) = self.base.get() {
            q = base.tensor().matmul(&q)?;
        }
        if is_wide { q.transpose(-2, -1) } else { Ok(q) }
    }
}

impl Parametrization for Orthogonal {
    fn right_inverse(&self, value: &Tensor) -> Result<Option<Vec<Tensor>>> {
        let _plain = NoGrad::enter();
        if value.shape() != self.shape {
            let what = format!(
                "Expected a matrix or batch of matrices of shape {:?}. Got a tensor of shape {:?}.",
                self.shape,
                value.shape()
            );
            return Err(Error::shape(OP, what));
        }
        let is_wide = value.size(-2)? < value.size(-1)?;
        let tall = if is_wide { value.transpose(-2, -1)? } else { value.clone() };
        if self.has_base {
            let base = self.completed(&tall)?;
            self.base.get_or_init(|| Buffer::new(&base)).set(&base);
            // The map of this is one: the base alone is the value.
            let begun = value.zeros_like()?;
            begun.diagonal(0, -2, -1)?.fill_(-1.0)?;
            return Ok(Some(vec![begun]));
        }
        if self.map != OrthogonalMap::Householder {
            // Nobody knows what these maps would have to begin with.
            return Ok(None);
        }
        let found = reflections(&tall.contiguous()?)?;
        Ok(Some(vec![if is_wide { found.transpose(-2, -1)?.contiguous()? } else { found }]))
    }
}
