//! What is done with gradients between backward and the optimizer's step: norms and clipping.

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{
    ClampOptions, DType, Error, LinalgVectorNormOptions, NoGrad, Parameter, Result, Scalar, Tensor,
};

plimsoll_tensor::options! {
    /// How [`clip_grad_norm_with`] measures.
    ClipOptions {
        /// The power of the norm; it may be infinite.
        norm_type: f64 = 2.0,
        /// Whether a norm that is NaN or infinite is an error. It makes the host wait.
        error_if_nonfinite: bool = false,
    }
}

fn gradients(parameters: &[Parameter]) -> Vec<Tensor> {
    parameters.iter().filter_map(|parameter| parameter.tensor().grad()).collect()
}

/// Tensors of one dtype and device together, in the order in which each kind comes first.
fn alike(tensors: &[Tensor]) -> Vec<Vec<&Tensor>> {
    let mut groups: Vec<Vec<&Tensor>> = Vec::new();
    for tensor in tensors {
        let same = |group: &&mut Vec<&Tensor>| {
            group[0].dtype() == tensor.dtype() && group[0].device() == tensor.device()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(tensor),
            None => groups.push(vec![tensor]),
        }
    }
    groups
}

/// Whether such a group is one operation's work: of floats, on a device where a launch costs more
/// than a small tensor.
fn is_one_operation(group: &[&Tensor]) -> bool {
    !group[0].device().is_cpu() && group[0].dtype().is_float()
}

/// The norm of all tensors as if they were one vector. It has no gradient.
///
/// ```
/// use plimsoll_nn::total_norm;
/// use plimsoll_tensor::{DType, Tensor};
/// let parts = [Tensor::full(&[2], 3.0, DType::F32)?, Tensor::full(&[1], 4.0, DType::F32)?];
/// assert!((total_norm(&parts, 2.0)?.item::<f32>()? - 34f32.sqrt()).abs() < 1e-6);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn total_norm(tensors: &[Tensor], norm_type: f64) -> Result<Tensor> {
    let Some(first) = tensors.first() else { return Tensor::zeros(&[], DType::F32) };
    let _plain = NoGrad::enter();
    with_site(Site::caller(), || {
        let options = || LinalgVectorNormOptions::new().ord(norm_type);
        let norms_of = |group: &[&Tensor]| -> Result<Tensor> {
            if norm_type == 2.0 && is_one_operation(group) {
                return Tensor::foreach_norm(group)?.to(first.device());
            }
            let norms = group
                .iter()
                .map(|tensor| tensor.linalg_vector_norm_with(options())?.to(first.device()))
                .collect::<Result<Vec<_>>>()?;
            Tensor::stack(&norms.iter().collect::<Vec<_>>(), 0)
        };
        let norms =
            alike(tensors).iter().map(|group| norms_of(group)).collect::<Result<Vec<_>>>()?;
        let all = match norms.as_slice() {
            [norms] => norms.clone(),
            _ => Tensor::cat(&norms.iter().collect::<Vec<_>>(), 0)?,
        };
        all.linalg_vector_norm_with(options())
    })
}

/// Scales all gradients so that together their norm is at most `max_norm`, and gives the norm that
/// they had. The host does not wait for it.
///
/// ```
/// use plimsoll_nn::{Parameter, clip_grad_norm_};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[4], DType::F32)?)?;
/// weight.tensor().mul(2.0)?.sum()?.backward()?;
/// assert_eq!(clip_grad_norm_(&[weight.clone()], 1.0)?.item::<f32>()?, 4.0);
/// let clipped = weight.tensor().grad().unwrap().to_vec::<f32>()?;
/// assert!(clipped.iter().all(|x| (x - 0.5).abs() < 1e-6));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_norm_(parameters: &[Parameter], max_norm: f64) -> Result<Tensor> {
    clip_grad_norm_with(parameters, max_norm, ClipOptions::new())
}

/// [`clip_grad_norm_`] by another norm, or with an error where it is not finite.
#[track_caller]
pub fn clip_grad_norm_with(
    parameters: &[Parameter],
    max_norm: f64,
    options: ClipOptions,
) -> Result<Tensor> {
    let _plain = NoGrad::enter();
    let gradients = gradients(parameters);
    let total = total_norm(&gradients, options.norm_type)?;
    if options.error_if_nonfinite && !total.to_scalar()?.to_f64().is_finite() {
        return Err(Error::invalid_argument(format!(
            "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be clipped.",
            options.norm_type
        ))
        .in_operation("clip_grad_norm_"));
    }
    with_site(Site::caller(), || {
        // Multiplied by even if it is 1, so that nobody has to wait for the norm.
        let factor = total.add(1e-6)?.reciprocal()?.mul(max_norm)?;
        let factor = factor.clamp_with(ClampOptions::new().max(Scalar::from(1.0)))?;
        scale(&gradients, &factor)?;
        Ok(total)
    })
}

/// The norm of all gradients, and the float32 that they are to be divided by for it to be at most
/// `max_norm`.
pub(crate) fn norm_and_excess(parameters: &[Parameter], max_norm: f64) -> Result<(Tensor, Tensor)> {
    let _plain = NoGrad::enter();
    let total = total_norm(&gradients(parameters), 2.0)?;
    let excess = total.to(DType::F32)?.add(1e-6)?.div(max_norm)?;
    Ok((total, excess.clamp_with(ClampOptions::new().min(Scalar::from(1.0)))?))
}

/// Multiplies all gradients by a number of their device.
fn scale(gradients: &[Tensor], factor: &Tensor) -> Result<()> {
    alike(gradients).iter().try_for_each(|group| {
        let factor = factor.to(group[0].device())?;
        // float32 holds the factors of all dtypes but its double.
        if is_one_operation(group) && factor.dtype() != DType::F64 {
            let ignored = Tensor::zeros(&[], (DType::F32, factor.device()))?;
            let factor = factor.to(DType::F32)?;
            return Tensor::amp_foreach_non_finite_check_and_unscale_(group, &ignored, &factor);
        }
        group.iter().try_for_each(|gradient| gradient.mul_(&factor).map(drop))
    })
}

/// Brings every element of the gradients to between `-clip_value` and `clip_value`.
///
/// ```
/// use plimsoll_nn::{Parameter, clip_grad_value_};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
/// weight.tensor().mul(-7.0)?.sum()?.backward()?;
/// clip_grad_value_(&[weight.clone()], 2.0)?;
/// assert_eq!(weight.tensor().grad().unwrap().item::<f32>()?, -2.0);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_value_(parameters: &[Parameter], clip_value: f64) -> Result<()> {
    let _plain = NoGrad::enter();
    with_site(Site::caller(), || {
        for gradient in gradients(parameters) {
            let bounds =
                ClampOptions::new().min(Scalar::from(-clip_value)).max(Scalar::from(clip_value));
            gradient.clamp_with_(bounds)?;
        }
        Ok(())
    })
}
