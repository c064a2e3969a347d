//! Whether a model and what it is to be called with are on one device, checked before the first
//! step. Moving them is `Module::to` and `Tensor::to`.

use std::fmt::Write;

use plimsoll_tensor::{Device, Error, Result};

use crate::{Module, Values, values};

/// The one device of all parameters and buffers of a model and of all tensors among the inputs.
/// Where there are several, an error that lists every tensor with its device and says what to move.
/// `None` if there is no tensor at all.
///
/// Call it after building a model, after loading a checkpoint, and before training starts.
///
/// ```
/// use plimsoll_nn::{Linear, check_device_consistency};
/// use plimsoll_tensor::{DType, Device, Tensor, device};
/// let (model, x) = (Linear::new(2, 3)?, Tensor::ones(&[1, 2], DType::F32)?);
/// assert_eq!(check_device_consistency(&model, &(&x, 1))?, Some(Device::cpu()));
/// let elsewhere = x.to(device::stand_in(Default::default())?)?;
/// let error = check_device_consistency(&model, &elsewhere).unwrap_err().to_string();
/// assert!(error.contains("on 2 devices") && error.contains("parameter weight"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn check_device_consistency(
    model: &dyn Module,
    inputs: &impl Values,
) -> Result<Option<Device>> {
    let parameters = model.named_parameters().into_iter();
    let parameters =
        parameters.map(|(name, own)| (format!("parameter {name}"), own.tensor().device()));
    let buffers = model.named_buffers().into_iter();
    let buffers = buffers.map(|(name, own)| (format!("buffer {name}"), own.tensor().device()));
    let inputs = values::tensors(inputs).into_iter().enumerate();
    let inputs = inputs.map(|(at, tensor)| (format!("input {at}"), tensor.device()));
    let found: Vec<(String, Device)> = parameters.chain(buffers).chain(inputs).collect();

    let mut counts: Vec<(Device, usize)> = Vec::new();
    for (_, device) in &found {
        match counts.iter_mut().find(|(known, _)| known == device) {
            Some((_, count)) => *count += 1,
            None => counts.push((*device, 1)),
        }
    }
    // The commonest first; of those that are equally common, the one that came first.
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match counts.as_slice() {
        [] => Ok(None),
        [(device, _)] => Ok(Some(*device)),
        _ => Err(Error::device("check_device_consistency", told(&found, &counts))),
    }
}

/// Every tensor with its device, and what to do.
fn told(found: &[(String, Device)], counts: &[(Device, usize)]) -> String {
    let width = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let devices: Vec<String> =
        counts.iter().map(|(device, count)| format!("{count} on {device}")).collect();
    let mut said = format!("the tensors are on {} devices ({}):", counts.len(), devices.join(", "));
    for (name, device) in found {
        let _ = write!(said, "\n  {name:<width$}  {device}");
    }
    let _ = write!(
        said,
        "\nMove the model with `model.to(device)`, which works in place, and tensors with `x.to(device)`, which does \
         not; most are on {}.",
        counts[0].0
    );
    said
}
