//! All parameters of a model as one vector, and back.

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::{Error, Parameter, Result, Tensor};

/// All parameters one after the other. Gradients flow through it.
///
/// ```
/// use plimsoll_nn::{Linear, Module, parameters_to_vector, vector_to_parameters};
/// let layer = Linear::new(2, 3)?;
/// let vector = parameters_to_vector(&layer.parameters())?;
/// assert_eq!(vector.shape(), [9]);
/// vector_to_parameters(&vector.zeros_like()?, &layer.parameters())?;
/// assert_eq!(layer.bias.unwrap().tensor().to_vec::<f32>()?, [0.0; 3]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn parameters_to_vector(parameters: &[Parameter]) -> Result<Tensor> {
    with_site(Site::caller(), || {
        let flat = parameters
            .iter()
            .map(|parameter| parameter.tensor().reshape(&[-1]))
            .collect::<Result<Vec<_>>>()?;
        Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
    })
}

/// Gives each parameter its part of a vector, whose memory they then share.
#[track_caller]
pub fn vector_to_parameters(vector: &Tensor, parameters: &[Parameter]) -> Result<()> {
    let wanted: usize = parameters.iter().map(|parameter| parameter.tensor().numel()).sum();
    if vector.rank() != 1 || vector.numel() != wanted {
        let what = format!(
            "the parameters have {wanted} elements, and the vector has the shape {:?}",
            vector.shape()
        );
        return Err(Error::shape("vector_to_parameters", what));
    }
    let vector = vector.detach();
    let mut start = 0;
    for parameter in parameters {
        let tensor = parameter.tensor();
        let sizes: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
        let count = tensor.numel() as i64;
        parameter.set_data(&vector.narrow(0, start, count)?.view(&sizes[..])?)?;
        start += count;
    }
    Ok(())
}
