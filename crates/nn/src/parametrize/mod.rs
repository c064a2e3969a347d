//! Parameters that are computed of others each time their layer is called: PyTorch's
//! `torch.nn.utils.parametrize`. Ready ones are in `parametrizations`.
//!
//! A layer reads its weight from a cell, and knows nothing of where it comes from. A
//! [`Parametrized`] layer computes the weight before the call and lets it stand in that cell while
//! the call runs (`Parameter::stand_in`). The cell itself becomes what is trained, so that nothing
//! lies in memory twice; other originals get cells of their own. The layer is in `layer.rs`, the
//! chain of modules that computes one parameter in `list.rs`.

mod layer;
mod list;

use plimsoll_tensor::{Result, Tensor};

use crate::Forward;

pub use layer::Parametrized;
pub use list::ParametrizationList;

/// A module that computes a tensor of one or several: `forward` sees what is trained.
///
/// ```
/// use plimsoll_nn::parametrize::{Parametrization, Parametrized};
/// use plimsoll_nn::{Forward, Linear, Module};
/// use plimsoll_tensor::{Result, Tensor};
///
/// #[derive(Module)]
/// struct Symmetric;
///
/// impl Forward<&[Tensor]> for Symmetric {
///     type Output = Tensor;
///     fn forward(&self, originals: &[Tensor]) -> Result<Tensor> {
///         let upper = originals[0].triu(0)?;
///         upper.add(&originals[0].triu(1)?.t()?)
///     }
/// }
///
/// impl Parametrization for Symmetric {}
///
/// let layer = Parametrized::new(Linear::new(3, 3)?, "weight", Symmetric)?;
/// let weight = layer.value("weight")?;
/// assert!(weight.allclose(&weight.t()?)?);
/// assert!(layer.state_dict().get("parametrizations.weight.original").is_some());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait Parametrization: for<'a> Forward<&'a [Tensor], Output = Tensor> {
    /// What `forward` must be given to compute `value`: one tensor, or several. Without it the
    /// value itself is what `forward` begins with, and nothing can be assigned.
    fn right_inverse(&self, value: &Tensor) -> Result<Option<Vec<Tensor>>> {
        let _ = value;
        Ok(None)
    }
}
