//! Steps of optimizers over many parameters at once, and what a scaler does with their gradients,
//! as PyTorch's optimizers and its scaler call them.

use plimsoll_core::{Error, Result};
use plimsoll_tensor::{AdamWOptions, Tensor, no_grad};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bound_arguments::Arguments;
use crate::call::{call, fresh};
use crate::function::{Function, New, Out, Overload, Results};
use crate::tensor::{PyTensor, TensorObject};

static FUSED_ADAMW_: Function = Function::new(
    "_fused_adamw_",
    &[
        Overload {
            signature: "_fused_adamw_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
            new: New::Tensors(|a| {
                fused_adamw_(a, AdamWOptions::new().tensor_lr(a.tensor(6)?))
                    .map(|()| Results::new())
            }),
            in_place: None,
            out: Out::None,
        },
        Overload {
            signature: "_fused_adamw_(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
            new: New::Tensors(|a| {
                fused_adamw_(a, AdamWOptions::new().lr(a.float(6)?)).map(|()| Results::new())
            }),
            in_place: None,
            out: Out::None,
        },
    ],
);

fn fused_adamw_(a: &Arguments, options: AdamWOptions<'_>) -> Result<()> {
    let (params, largest, amsgrad) = (a.tensors(0)?, a.tensors(4)?, a.bool(11)?);
    if amsgrad && largest.len() != params.len() {
        let why = format!(
            "amsgrad needs max_exp_avg_sqs for each of {} parameters, not {}",
            params.len(),
            largest.len()
        );
        return Err(Error::invalid_argument(why).in_operation("_fused_adamw_"));
    }
    let largest = if amsgrad { largest } else { Vec::new() };
    let options = options.grad_scale(a.optional_tensor(13)).found_inf(a.optional_tensor(14));
    let options = options.beta1(a.float(7)?).beta2(a.float(8)?);
    let options = options.weight_decay(a.float(9)?).eps(a.float(10)?).maximize(a.bool(12)?);
    // PyTorch's does not ask whether its parameters are leaves: a step is never recorded.
    no_grad(|| {
        Tensor::fused_adamw_from_(
            &params,
            &a.tensors(1)?,
            &a.tensors(2)?,
            &a.tensors(3)?,
            &largest,
            &a.tensors(5)?,
            options,
        )
    })
}

/// One step of AdamW over all parameters at once, in place.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn _fused_adamw_(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    FUSED_ADAMW_.function(args, kwargs).map(drop)
}

/// Multiplies all gradients by `inv_scale`, in place; where one is not finite, `found_inf` is 1.
#[pyfunction]
fn _amp_foreach_non_finite_check_and_unscale_(
    py: Python<'_>,
    grads: Vec<Bound<'_, PyTensor>>,
    found_inf: &Bound<'_, PyTensor>,
    inv_scale: &Bound<'_, PyTensor>,
) -> PyResult<()> {
    let grads: Vec<Tensor> = grads.iter().map(|grad| grad.tensor()).collect();
    let (found, inverse) = (found_inf.tensor(), inv_scale.tensor());
    call(py, || {
        let grads: Vec<&Tensor> = grads.iter().collect();
        no_grad(|| Tensor::amp_foreach_non_finite_check_and_unscale_(&grads, &found, &inverse))
    })
}

/// The norm of each tensor, as a vector: one operation over all of them.
#[pyfunction]
fn _norms<'py>(
    py: Python<'py>,
    tensors: Vec<Bound<'py, PyTensor>>,
) -> PyResult<Bound<'py, PyTensor>> {
    let tensors: Vec<Tensor> = tensors.iter().map(|tensor| tensor.tensor()).collect();
    fresh(py, || Tensor::foreach_norm(&tensors.iter().collect::<Vec<_>>()))
}

/// The scale of gradients and the steps since it changed, after a step.
#[pyfunction]
fn _amp_update_scale_<'py>(
    py: Python<'py>,
    current_scale: Bound<'py, PyTensor>,
    growth_tracker: &Bound<'py, PyTensor>,
    found_inf: &Bound<'py, PyTensor>,
    scale_growth_factor: f64,
    scale_backoff_factor: f64,
    growth_interval: i32,
) -> PyResult<Bound<'py, PyTensor>> {
    let (scale, tracker) = (current_scale.tensor(), growth_tracker.tensor());
    let found = found_inf.tensor();
    let factors = (scale_growth_factor, scale_backoff_factor);
    call(py, || {
        no_grad(|| {
            scale
                .amp_update_scale_(&tracker, &found, factors.0, factors.1, growth_interval)
                .map(drop)
        })
    })?;
    Ok(current_scale)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_amp_foreach_non_finite_check_and_unscale_, module)?)?;
    module.add_function(wrap_pyfunction!(_amp_update_scale_, module)?)?;
    module.add_function(wrap_pyfunction!(_norms, module)?)?;
    module.add_function(wrap_pyfunction!(_fused_adamw_, module)?)
}
