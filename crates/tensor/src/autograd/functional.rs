//! Derivatives of functions: products of a vector and a Jacobian, Jacobians, Hessians and their
//! products with a vector, made of `grad` alone. The function gets leaves of its own, so that its
//! inputs are told from the same tensors where it captured them.

use plimsoll_core::{Error, Result};

use super::{GradOptions, enable_grad, grad};
use crate::Tensor;

/// Leaves with the values of `inputs`.
fn apart(inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    inputs.iter().map(|input| input.detach().requires_grad_(true)).collect()
}

/// The gradients of `output` by `inputs`, zeros where it does not depend on one.
fn gradients(
    outputs: &[&Tensor],
    inputs: &[Tensor],
    starts: Vec<Option<Tensor>>,
    create_graph: bool,
) -> Result<Vec<Tensor>> {
    let tracked = outputs.iter().zip(starts).filter(|(output, _)| output.requires_grad());
    let (outputs, grad_outputs): (Vec<&Tensor>, Vec<Option<Tensor>>) =
        tracked.map(|(&output, start)| (output, start)).unzip();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    let options =
        GradOptions { grad_outputs, retain_graph: true, create_graph, allow_unused: true };
    let found = match outputs.is_empty() {
        true => vec![None; inputs.len()],
        false => grad(&outputs, &inputs, options)?,
    };
    let filled = found.into_iter().zip(inputs);
    filled.map(|(found, input)| found.map_or_else(|| input.zeros_like(), Ok)).collect()
}

/// The results of `function`, and for each input the product of `v` and the Jacobian. `v` has a
/// tensor like each result.
///
/// ```
/// use plimsoll_tensor::{Device, Tensor, vjp};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], &[2], Device::cpu())?;
/// let v = Tensor::from_slice(&[1.0f64, -1.0], &[2], Device::cpu())?;
/// let (results, products) = vjp(|inputs| Ok(vec![inputs[0].pow(3)?]), &[&x], &[&v])?;
/// assert_eq!(results[0].to_vec::<f64>()?, [1.0, 8.0]);
/// assert_eq!(products[0].to_vec::<f64>()?, [3.0, -12.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn vjp(
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[&Tensor],
    v: &[&Tensor],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let inputs = apart(inputs)?;
    let results = enable_grad(|| function(&inputs))?;
    if results.len() != v.len() {
        let why = format!("{} results need as many vectors, not {}", results.len(), v.len());
        return Err(Error::autograd("vjp", why));
    }
    let starts = v.iter().map(|&v| Some(v.clone())).collect();
    let outputs: Vec<&Tensor> = results.iter().collect();
    let products = gradients(&outputs, &inputs, starts, false)?;
    Ok((results.iter().map(Tensor::detach).collect(), products))
}

/// For each input the Jacobian of `function`: a tensor with the sizes of the result and of the
/// input, one gradient for each element of the result.
///
/// ```
/// use plimsoll_tensor::{Device, Tensor, jacobian};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], &[2], Device::cpu())?;
/// let found = jacobian(|inputs| inputs[0].pow(2), &[&x])?;
/// assert_eq!(found[0].shape(), [2, 2]);
/// assert_eq!(found[0].to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn jacobian(
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let inputs = apart(inputs)?;
    let result = enable_grad(|| function(&inputs))?;
    rows(&result, &inputs)
}

/// The Jacobian of `result` by each input.
fn rows(result: &Tensor, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let flat = enable_grad(|| result.reshape(&[-1]))?;
    let mut rows: Vec<Vec<Tensor>> = vec![Vec::new(); inputs.len()];
    for element in 0..result.numel() {
        let element = enable_grad(|| flat.select(0, element as i64))?;
        let found = gradients(&[&element], inputs, vec![None], false)?;
        rows.iter_mut().zip(found).for_each(|(row, found)| row.push(found));
    }
    let whole = |(rows, input): (Vec<Tensor>, &Tensor)| {
        let sizes = result.shape().iter().chain(input.shape()).map(|&size| size as i64);
        let sizes: Vec<i64> = sizes.collect();
        if rows.is_empty() {
            return Tensor::zeros(&sizes, (input.dtype(), input.device()));
        }
        Tensor::stack(&rows.iter().collect::<Vec<_>>(), 0)?.reshape(&sizes)
    };
    rows.into_iter().zip(inputs).map(whole).collect()
}

/// The one element that a function returned, and its gradients, recorded.
fn slopes(
    op: &'static str,
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    inputs: &[Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    let result = enable_grad(|| function(inputs))?;
    if result.numel() != 1 {
        let shape = result.shape();
        let why = format!("the function must return a single element, and returned {shape:?}");
        return Err(Error::autograd(op, why));
    }
    let start = Some(result.detach().ones_like()?);
    let slopes = gradients(&[&result], inputs, vec![start], true)?;
    Ok((result.detach(), slopes))
}

/// The Hessian of a function of one element: for each pair of inputs a tensor with the sizes of
/// both.
///
/// ```
/// use plimsoll_tensor::{Device, Tensor, hessian};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], &[2], Device::cpu())?;
/// let found = hessian(|inputs| inputs[0].pow(3)?.sum(), &[&x])?;
/// assert_eq!(found[0][0].to_vec::<f64>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn hessian(
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
) -> Result<Vec<Vec<Tensor>>> {
    let inputs = apart(inputs)?;
    let (_, slopes) = slopes("hessian", function, &inputs)?;
    slopes.iter().map(|slope| rows(slope, &inputs)).collect()
}

/// The result of a function of one element, and for each input the product of its Hessian and `v`,
/// which has a tensor like each input.
///
/// ```
/// use plimsoll_tensor::{Device, Tensor, hvp};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], &[2], Device::cpu())?;
/// let v = Tensor::from_slice(&[1.0f64, -1.0], &[2], Device::cpu())?;
/// let (result, products) = hvp(|inputs| inputs[0].pow(3)?.sum(), &[&x], &[&v])?;
/// assert_eq!(result.item::<f64>()?, 9.0);
/// assert_eq!(products[0].to_vec::<f64>()?, [6.0, -12.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn hvp(
    function: impl FnOnce(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    v: &[&Tensor],
) -> Result<(Tensor, Vec<Tensor>)> {
    if inputs.len() != v.len() {
        let why = format!("{} inputs need as many vectors, not {}", inputs.len(), v.len());
        return Err(Error::autograd("hvp", why));
    }
    let inputs = apart(inputs)?;
    let (result, slopes) = slopes("hvp", function, &inputs)?;
    // A Hessian is symmetric where it is continuous: `v` times it is it times `v`.
    let starts = v.iter().map(|&v| Some(v.clone())).collect();
    let slopes: Vec<&Tensor> = slopes.iter().collect();
    Ok((result, gradients(&slopes, &inputs, starts, false)?))
}
