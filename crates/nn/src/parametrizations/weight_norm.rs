//! A weight of lengths and directions that are trained apart.

use plimsoll_tensor::{DimList, Error, LinalgVectorNormOptions, Result, Tensor};

use crate::call::at_caller;
use crate::parametrize::Parametrization;
use crate::{Forward, Hooks, Module};

plimsoll_tensor::options! {
    /// What [`weight_norm_with`](super::weight_norm_with) norms.
    WeightNormOptions {
        /// The parameter.
        name: String = "weight".to_string(),
        /// The dimension that has a length for each of its elements; `None` means one for all.
        dim: Option<i64> = Some(0),
    }
}

/// `original1 * (original0 / |original1|)`: lengths of shape `[n, 1, ..]` and directions.
///
/// ```
/// use plimsoll_nn::parametrizations::WeightNorm;
/// use plimsoll_nn::parametrize::Parametrized;
/// use plimsoll_nn::{LSTM, Module};
/// let layer = Parametrized::new(LSTM::new(3, 4)?, "weight_ih_l0", WeightNorm::new(0))?;
/// let layer = layer.register("weight_hh_l0", WeightNorm::new(0))?;
/// assert!(layer.state_dict().get("parametrizations.weight_hh_l0.original0").is_some());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin, name = "_WeightNorm")]
pub struct WeightNorm {
    dim: Option<i64>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl WeightNorm {
    /// With a length for each element of a dimension, or one for all.
    pub fn new(dim: impl Into<Option<i64>>) -> WeightNorm {
        // PyTorch takes -1 for all, too.
        let dim = dim.into().filter(|dim| *dim != -1);
        WeightNorm { dim, hooks: Hooks::default() }
    }

    fn lengths(&self, weight: &Tensor) -> Result<Tensor> {
        let Some(dim) = self.dim else { return weight.linalg_vector_norm() };
        let rank = weight.rank() as i64;
        if !(-rank..rank).contains(&dim) {
            let what =
                format!("there is no dimension {dim} in a weight of shape {:?}", weight.shape());
            return Err(Error::shape("weight_norm", what));
        }
        let others: Vec<i64> = (0..rank).filter(|at| *at != dim.rem_euclid(rank)).collect();
        if others.is_empty() {
            return weight.abs();
        }
        let over = LinalgVectorNormOptions::new().dim(DimList::from(&others[..])).keepdim(true);
        weight.linalg_vector_norm_with(over)
    }
}

impl Forward<&[Tensor]> for WeightNorm {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
        let _site = at_caller();
        let [length, direction] = originals else {
            let what =
                format!("it is computed of lengths and directions, not of {}", originals.len());
            return Err(Error::invalid_argument(what).in_operation("weight_norm"));
        };
        direction.mul(&length.div(&self.lengths(direction)?)?)
    }
}

impl Parametrization for WeightNorm {
    fn right_inverse(&self, value: &Tensor) -> Result<Option<Vec<Tensor>>> {
        Ok(Some(vec![self.lengths(value)?, value.clone()]))
    }
}
