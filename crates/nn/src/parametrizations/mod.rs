//! Ready parametrizations, as PyTorch's `torch.nn.utils.parametrizations`: weights by length and
//! direction, by their largest singular value, and orthogonal ones. How a parameter is computed of
//! others at all is in `parametrize`.

mod orthogonal;
mod spectral_norm;
mod weight_norm;

use std::any::Any;

use plimsoll_tensor::{Error, Parameter, Result, Tensor};

use crate::call::at_caller;
use crate::parametrize::Parametrized;
use crate::walk::Own;
use crate::{ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Module};

pub use orthogonal::{Orthogonal, OrthogonalMap, OrthogonalOptions};
pub use spectral_norm::{SpectralNorm, SpectralNormOptions};
pub use weight_norm::{WeightNorm, WeightNormOptions};

/// The parameter of a layer that is to be computed.
fn weight_of(layer: &dyn Module, name: &str) -> Result<Tensor> {
    let own = Own::of(layer).parameters;
    let found = own.into_iter().find(|(own, _)| own.to_string() == name);
    found.map(|(_, parameter): (_, &Parameter)| parameter.tensor().detach()).ok_or_else(|| {
        let kind = layer.type_name();
        Error::invalid_argument(format!("{kind} has no parameter with name '{name}'"))
    })
}

/// Trains the lengths and the directions of the rows of a layer's weight apart.
///
/// ```
/// use plimsoll_nn::parametrizations::weight_norm;
/// use plimsoll_nn::{Linear, Module};
/// let layer = weight_norm(Linear::new(20, 40)?)?;
/// let state = layer.state_dict();
/// assert_eq!(state.get("parametrizations.weight.original0").unwrap().shape(), [40, 1]);
/// assert_eq!(state.get("parametrizations.weight.original1").unwrap().shape(), [40, 20]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn weight_norm<L: Module>(layer: L) -> Result<Parametrized<L>> {
    weight_norm_with(layer, WeightNormOptions::new())
}

/// [`weight_norm`] of another parameter, or of lengths along another dimension.
#[track_caller]
pub fn weight_norm_with<L: Module>(
    layer: L,
    options: WeightNormOptions,
) -> Result<Parametrized<L>> {
    let _site = at_caller();
    Parametrized::new(layer, &options.name, WeightNorm::new(options.dim))
}

/// Divides a layer's weight by its largest singular value, which each call in training estimates
/// anew.
///
/// ```
/// use plimsoll_nn::parametrizations::spectral_norm;
/// use plimsoll_nn::Linear;
/// let layer = spectral_norm(Linear::new(20, 40)?)?;
/// for _ in 0..100 {
///     layer.value("weight")?; // each time a little nearer
/// }
/// let largest = layer.value("weight")?.linalg_svdvals()?.amax()?.item::<f32>()?;
/// assert!((largest - 1.0).abs() < 0.1, "{largest}");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn spectral_norm<L: Module>(layer: L) -> Result<Parametrized<L>> {
    spectral_norm_with(layer, SpectralNormOptions::new())
}

/// [`spectral_norm`] of another parameter, or with more iterations.
#[track_caller]
pub fn spectral_norm_with<L: Module>(
    layer: L,
    options: SpectralNormOptions,
) -> Result<Parametrized<L>> {
    let _site = at_caller();
    let module = layer.as_dyn() as &dyn Any;
    let is_transposed = module.is::<ConvTranspose1d>()
        || module.is::<ConvTranspose2d>()
        || module.is::<ConvTranspose3d>();
    let dim = options.dim.unwrap_or(i64::from(is_transposed));
    let norm = SpectralNorm::new(&weight_of(&layer, &options.name)?, dim, &options)?;
    Parametrized::new(layer, &options.name, norm)
}

/// Keeps a layer's weight orthogonal: its columns, or its rows if it is wide, are of length 1 and
/// stand at right angles.
///
/// ```
/// use plimsoll_nn::parametrizations::orthogonal;
/// use plimsoll_nn::Linear;
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = orthogonal(Linear::new(3, 5)?)?.value("weight")?;
/// let one = Tensor::eye([3, 3], DType::F32)?;
/// assert!(weight.t()?.matmul(&weight)?.sub(&one)?.abs()?.amax()?.item::<f32>()? < 1e-5);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn orthogonal<L: Module>(layer: L) -> Result<Parametrized<L>> {
    orthogonal_with(layer, OrthogonalOptions::new())
}

/// [`orthogonal`] by a given map, of another parameter, or without a base.
#[track_caller]
pub fn orthogonal_with<L: Module>(layer: L, options: OrthogonalOptions) -> Result<Parametrized<L>> {
    let _site = at_caller();
    let orthogonal = Orthogonal::new(&weight_of(&layer, &options.name)?, &options)?;
    Parametrized::new(layer, &options.name, orthogonal)
}
