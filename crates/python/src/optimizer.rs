//! One step of an optimizer over all its parameters, as the classes of `plimsoll.optim` ask for it;
//! and the phase of training that its bytes are booked under. `optim.rs` has PyTorch's own fused
//! functions.

use std::cell::RefCell;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{ModulePath, ModuleScope, Phase, PhaseScope, enter_phase, resume_module};
use plimsoll_tensor::optimizers::{
    Adadelta, Adagrad, Adam, Adamax, Lion, NAdam, OptimizerRule, RAdam, RmsProp, Rprop, Sgd,
    StepCounts, StepOptions, StepTensors,
};
use plimsoll_tensor::{Tensor, no_grad};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::call;
use crate::tensor::{PyTensor, TensorObject};

type Objects<'py> = Vec<Bound<'py, PyTensor>>;

fn tensors(objects: &[Bound<'_, PyTensor>]) -> Vec<Tensor> {
    objects.iter().map(|object| object.tensor()).collect()
}

fn borrowed(list: &[Tensor]) -> Vec<&Tensor> {
    list.iter().collect()
}

/// A rule by its name, with its numbers in the order of its fields.
fn rule(name: &str, numbers: &[f64]) -> Option<OptimizerRule> {
    let is = |number: f64| number != 0.0;
    Some(match (name, numbers) {
        ("sgd", &[momentum, dampening, nesterov, first]) => {
            let (nesterov, first) = (is(nesterov), is(first));
            OptimizerRule::Sgd(Sgd { momentum, dampening, nesterov, first })
        }
        ("adam", &[beta1, beta2, eps, amsgrad]) => {
            OptimizerRule::Adam(Adam { beta1, beta2, eps, amsgrad: is(amsgrad) })
        }
        ("nadam", &[beta1, beta2, eps, momentum_decay]) => {
            OptimizerRule::NAdam(NAdam { beta1, beta2, eps, momentum_decay })
        }
        ("radam", &[beta1, beta2, eps]) => OptimizerRule::RAdam(RAdam { beta1, beta2, eps }),
        ("adagrad", &[lr_decay, eps]) => OptimizerRule::Adagrad(Adagrad { lr_decay, eps }),
        ("adadelta", &[rho, eps]) => OptimizerRule::Adadelta(Adadelta { rho, eps }),
        ("rmsprop", &[alpha, eps, momentum, centered]) => {
            OptimizerRule::RmsProp(RmsProp { alpha, eps, momentum, centered: is(centered) })
        }
        ("rprop", &[eta_minus, eta_plus, step_size_min, step_size_max]) => {
            OptimizerRule::Rprop(Rprop { eta_minus, eta_plus, step_size_min, step_size_max })
        }
        ("adamax", &[beta1, beta2, eps]) => OptimizerRule::Adamax(Adamax { beta1, beta2, eps }),
        ("lion", &[beta1, beta2]) => OptimizerRule::Lion(Lion { beta1, beta2 }),
        _ => return None,
    })
}

/// The lists of a step.
struct Lists {
    params: Vec<Tensor>,
    grads: Vec<Tensor>,
    states: Vec<Vec<Tensor>>,
    masters: Vec<Tensor>,
    products: Vec<Tensor>,
    steps: Vec<Tensor>,
}

impl Lists {
    /// The lists of each device's parameters; nearly always one.
    fn by_device(self) -> Vec<Lists> {
        let mut devices: Vec<Device> = Vec::new();
        for param in &self.params {
            if !devices.contains(&param.device()) {
                devices.push(param.device());
            }
        }
        if devices.len() < 2 {
            return vec![self];
        }
        let part = |device: Device| {
            let is_there = |at: &usize| self.params[*at].device() == device;
            let chosen: Vec<usize> = (0..self.params.len()).filter(is_there).collect();
            let some = |list: &Vec<Tensor>| -> Vec<Tensor> {
                chosen.iter().filter_map(|&at| list.get(at).cloned()).collect()
            };
            Lists {
                params: some(&self.params),
                grads: some(&self.grads),
                states: self.states.iter().map(some).collect(),
                masters: some(&self.masters),
                products: some(&self.products),
                steps: some(&self.steps),
            }
        };
        devices.into_iter().map(part).collect()
    }

    fn step(&self, rule: &OptimizerRule, options: StepOptions<'_>) -> Result<()> {
        let states: Vec<Vec<&Tensor>> = self.states.iter().map(|list| borrowed(list)).collect();
        let states: Vec<&[&Tensor]> = states.iter().map(Vec::as_slice).collect();
        let steps = borrowed(&self.steps);
        let tensors = StepTensors {
            params: &borrowed(&self.params),
            grads: &borrowed(&self.grads),
            states: &states,
            masters: &borrowed(&self.masters),
            products: &borrowed(&self.products),
            steps: if steps.is_empty() { StepCounts::At(0.0) } else { StepCounts::Counted(&steps) },
        };
        let _phase = enter_phase(Phase::Optimizer);
        // A step is never recorded.
        no_grad(|| Tensor::optimizer_step_(rule, &tensors, options))
    }
}

/// One step over all parameters at once, in place: the rule's name and its numbers, what is kept
/// beside each parameter, and how far the step goes.
#[pyfunction]
#[pyo3(signature = (name, numbers, params, grads, states, steps, lr, *, weight_decay = 0.0, decoupled_weight_decay = false, maximize = false, masters = vec![], products = vec![], grad_scale = None, found_inf = None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
fn _optimizer_step(
    py: Python<'_>,
    name: &str,
    numbers: Vec<f64>,
    params: Objects<'_>,
    grads: Objects<'_>,
    states: Vec<Objects<'_>>,
    steps: Objects<'_>,
    lr: &Bound<'_, PyAny>,
    weight_decay: f64,
    decoupled_weight_decay: bool,
    maximize: bool,
    masters: Objects<'_>,
    products: Objects<'_>,
    grad_scale: Option<Bound<'_, PyTensor>>,
    found_inf: Option<Bound<'_, PyTensor>>,
) -> PyResult<()> {
    let lists = Lists {
        params: tensors(&params),
        grads: tensors(&grads),
        states: states.iter().map(|list| tensors(list)).collect(),
        masters: tensors(&masters),
        products: tensors(&products),
        steps: tensors(&steps),
    };
    let tensor_lr = lr.cast::<PyTensor>().ok().map(|lr| lr.tensor());
    let lr = if tensor_lr.is_some() { 0.0 } else { lr.extract::<f64>()? };
    let tensor = |object: Option<Bound<'_, PyTensor>>| object.map(|object| object.tensor());
    let (scale, found) = (tensor(grad_scale), tensor(found_inf));
    call(py, || {
        let known = rule(name, &numbers).ok_or_else(|| {
            let why = format!("no rule `{name}` takes {} numbers", numbers.len());
            Error::invalid_argument(why).in_operation("_optimizer_step")
        })?;
        let options = StepOptions::new().lr(lr).tensor_lr(tensor_lr.as_ref());
        let options = options.weight_decay(weight_decay).maximize(maximize);
        let options = options.decoupled_weight_decay(decoupled_weight_decay);
        lists.by_device().iter().try_for_each(|lists| {
            let Some(device) = lists.params.first().map(Tensor::device) else { return Ok(()) };
            let here = |number: &Option<Tensor>| {
                number.as_ref().map(|number| number.to(device)).transpose()
            };
            let (scale, found) = no_grad(|| Ok::<_, Error>((here(&scale)?, here(&found)?)))?;
            let options = options.clone().grad_scale(scale.as_ref()).found_inf(found.as_ref());
            lists.step(&known, options)
        })
    })
}

/// A phase of training, entered by `with`: "forward", "backward", "optimizer", "evaluation" or
/// "other". With a tensor, in the module that it belongs to.
#[pyclass(name = "_Phase", unsendable)]
struct PyPhase {
    phase: Phase,
    module: Option<ModulePath>,
    open: RefCell<Vec<(PhaseScope, Option<ModuleScope>)>>,
}

#[pymethods]
impl PyPhase {
    #[new]
    #[pyo3(signature = (name, of = None))]
    fn new(name: &str, of: Option<Bound<'_, PyTensor>>) -> PyResult<PyPhase> {
        let module = of.map(|of| of.tensor().module());
        match Phase::ALL.into_iter().find(|phase| phase.to_string() == name) {
            Some(phase) => Ok(PyPhase { phase, module, open: RefCell::new(Vec::new()) }),
            None => Err(PyValueError::new_err(format!(
                "`{name}` is no phase of training; use {}",
                Phase::ALL.map(|phase| phase.to_string()).join(", ")
            ))),
        }
    }

    fn __enter__(&self) {
        let module = self.module.map(resume_module);
        self.open.borrow_mut().push((enter_phase(self.phase), module));
    }

    #[pyo3(signature = (*_failure))]
    fn __exit__(&self, _failure: &Bound<'_, PyAny>) {
        self.open.borrow_mut().pop();
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPhase>()?;
    module.add_function(wrap_pyfunction!(_optimizer_step, module)?)
}
