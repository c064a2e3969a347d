//! Steps of optimizers over many parameters at once: one operation a step, in place. `adamw.rs` has
//! the forms that PyTorch's own fused AdamW takes.

use plimsoll_core::{DType, Device, DeviceKind, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::options::options;
use crate::Tensor;
use crate::dispatch::{Dest, SharedMemory, check_mutated};
use crate::operation::Needs;
use crate::ops::optim::Step;
use crate::prepare::apply;
use plimsoll_kernels::cpu::optim::{MOST_STATES, Rule, Step as Numbers, Steps};

options! {
    /// The numbers of an optimizer's step that are the same for every rule.
    StepOptions<'a> {
        /// How far a step goes.
        lr: f64 = 1e-3,
        /// How far a step goes, if that is in a tensor of one number.
        tensor_lr: Option<&'a Tensor> = None,
        /// How much of a parameter goes with each step.
        weight_decay: f64 = 0.0,
        /// Whether that is taken from the parameter itself, and not added to its gradient.
        decoupled_weight_decay: bool = false,
        /// Up instead of down.
        maximize: bool = false,
        /// What the gradients were multiplied by, one float32; they are divided by it, in place.
        grad_scale: Option<&'a Tensor> = None,
        /// One float32 that is 1 if nothing is to happen, because a gradient is infinite.
        found_inf: Option<&'a Tensor> = None,
    }
}

/// Which step each parameter is at, counted from 1.
#[derive(Clone, Copy, Debug)]
pub enum StepCounts<'a> {
    /// All at this one; of no consequence to rules that do not depend on it.
    At(f64),
    /// Each has a tensor of one number that says it.
    Given(&'a [&'a Tensor]),
    /// Each has a tensor of one float32 that counts them: the step adds 1 to it, unless it does
    /// nothing because of `found_inf`.
    Counted(&'a [&'a Tensor]),
}

/// The tensors of an optimizer's step: lists with one for each parameter.
#[derive(Clone, Copy, Debug)]
pub struct StepTensors<'a> {
    /// The parameters. All lists are written but the gradients, unless those are scaled.
    pub params: &'a [&'a Tensor],
    /// Their gradients.
    pub grads: &'a [&'a Tensor],
    /// What the rule keeps beside them, in the order of `OptimizerRule::states`; lists that it does
    /// not keep are left out.
    pub states: &'a [&'a [&'a Tensor]],
    /// Float32 copies of float16 or bfloat16 parameters, or nothing. The step changes the copies,
    /// and a parameter becomes its copy's rounding; states are float32 then.
    pub masters: &'a [&'a Tensor],
    /// The products of all momenta, for the rule that keeps them: one float32 each, 1 at first.
    pub products: &'a [&'a Tensor],
    /// Which step it is.
    pub steps: StepCounts<'a>,
}

impl Tensor {
    /// One step of an optimizer over all its parameters: one operation, in place, without
    /// temporaries. Of parameters that share memory it is one operation each, in their order.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// # use plimsoll_tensor::optimizers::*;
    /// let param = Tensor::ones(&[2], DType::F64)?;
    /// let (grad, buffer) = (param.ones_like()?, param.zeros_like()?);
    /// let rule = Sgd { momentum: 0.9, dampening: 0.0, nesterov: false, first: false };
    /// let tensors = StepTensors {
    ///     params: &[&param],
    ///     grads: &[&grad],
    ///     states: &[&[&buffer]],
    ///     masters: &[],
    ///     products: &[],
    ///     steps: StepCounts::At(1.0),
    /// };
    /// let options = StepOptions::new().lr(0.5);
    /// Tensor::optimizer_step_(&OptimizerRule::Sgd(rule), &tensors, options)?;
    /// assert_eq!(param.to_vec::<f64>()?, [0.5, 0.5]);
    /// assert_eq!(buffer.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn optimizer_step_(
        rule: &Rule,
        tensors: &StepTensors<'_>,
        options: StepOptions<'_>,
    ) -> Result<()> {
        let site = Site::caller();
        match step_at_once(rule, tensors, &options, site) {
            Err(error) if error.detail::<SharedMemory>().is_some() => {
                one_by_one(rule, tensors, &options, site, error)
            }
            done => done,
        }
    }
}

/// The step as one operation.
fn step_at_once(
    rule: &Rule,
    tensors: &StepTensors<'_>,
    options: &StepOptions<'_>,
    site: Site,
) -> Result<()> {
    let mut step = Step(options.numbers(*rule, tensors));
    tensors.check(&step)?;
    let Some(first) = tensors.params.first() else { return Ok(()) };
    let rate = options.learning_rate(first.device(), &mut step, site)?;
    let given = tensors.given_steps(step.name(), site)?;
    let read = tensors.read(&step).iter().copied().chain(&given).chain(&rate);
    let read = read.chain(options.others(step.name())?);
    let read: SmallVec<[&Tensor; 8]> = read.collect();
    apply(&step, &read, Dest::Mutating(&tensors.written(&step)), site).map(drop)
}

/// What a step reads, beside what the same step writes.
struct Read<'a> {
    tensor: &'a Tensor,
    /// Where it is copied to before the step that writes its memory.
    copy: Option<Tensor>,
}

impl<'a> Read<'a> {
    fn beside(tensor: &'a Tensor, written: &[&Tensor]) -> Result<Read<'a>> {
        let is_written = written.iter().any(|written| overlap(written, tensor));
        let copy = is_written.then(|| tensor.detach().clone_tensor()).transpose()?;
        Ok(Read { tensor, copy })
    }

    /// As it is now.
    fn renewed(&self) -> Result<&Tensor> {
        match &self.copy {
            Some(copy) => copy.copy_(&self.tensor.detach()).map(|_| copy),
            None => Ok(self.tensor),
        }
    }
}

fn overlap(a: &Tensor, b: &Tensor) -> bool {
    a.shares_storage_with(b) && a.meta().overlaps(b.meta())
}

/// A step of parameters that share memory with each other (tied weights, views of one base), with
/// their gradients or with the numbers of the step: one after the other in their order, as
/// PyTorch's loop over them. Nothing is written before all are known to go.
///
/// What a parameter's step reads of its own memory is copied before it, and all copies have their
/// memory before the first step.
#[cold]
fn one_by_one(
    rule: &Rule,
    tensors: &StepTensors<'_>,
    options: &StepOptions<'_>,
    site: Site,
    shared: Error,
) -> Result<()> {
    let step = Step(options.numbers(*rule, tensors));
    let mut grads = Vec::new();
    for (param, grad) in tensors.params.iter().zip(tensors.grads) {
        // Gradients that are unscaled are written, and there is one memory for both values; and
        // where a gradient is another part of that memory, PyTorch refuses.
        if overlap(param, grad) && (step.0.scaled || param.meta() != grad.meta()) {
            return Err(shared);
        }
        let own = if step.0.scaled { None } else { Some(*param) };
        grads.push(Read::beside(grad, own.as_slice())?);
    }
    let written = tensors.written(&step);
    let beside = |&number: &_| Read::beside(number, &written);
    let rate = options.tensor_lr.as_ref().map(beside).transpose()?;
    let scale = options.grad_scale.as_ref().map(beside).transpose()?;
    let found = options.found_inf.as_ref().map(beside).transpose()?;
    let given = match tensors.steps {
        StepCounts::Given(steps) => steps.iter().map(beside).collect::<Result<Vec<_>>>()?,
        _ => Vec::new(),
    };
    for (at, grad) in grads.iter().enumerate() {
        let grad = grad.copy.as_ref().unwrap_or(grad.tensor);
        tensors.only(at, |one| {
            let one = StepTensors { grads: &[grad], ..*one };
            check_mutated(step.name(), one.read(&step), &one.written(&step), Needs::NONE)
        })?;
    }
    for (at, grad) in grads.iter().enumerate() {
        let grad = [grad.renewed()?];
        let step = given.get(at).map(Read::renewed).transpose()?;
        let options = StepOptions {
            tensor_lr: rate.as_ref().map(Read::renewed).transpose()?,
            grad_scale: scale.as_ref().map(Read::renewed).transpose()?,
            found_inf: found.as_ref().map(Read::renewed).transpose()?,
            ..options.clone()
        };
        tensors.only(at, |one| {
            let step = step.map(|step| [step]);
            let steps = step.as_ref().map_or(one.steps, |step| StepCounts::Given(step));
            step_at_once(rule, &StepTensors { grads: &grad, steps, ..*one }, &options, site)
        })?;
    }
    Ok(())
}

impl StepOptions<'_> {
    fn numbers(&self, rule: Rule, tensors: &StepTensors<'_>) -> Numbers {
        let &StepOptions { lr, weight_decay, decoupled_weight_decay, maximize, .. } = self;
        Numbers {
            rule,
            learning_rate: Some(lr),
            weight_decay,
            decoupled: decoupled_weight_decay,
            maximize,
            steps: match tensors.steps {
                StepCounts::At(step) => Steps::At(step),
                StepCounts::Given(_) => Steps::Given,
                StepCounts::Counted(_) => Steps::Counted,
            },
            masters: !tensors.masters.is_empty(),
            scaled: self.grad_scale.is_some(),
            skips: self.found_inf.is_some(),
        }
    }

    /// The learning rate as an operand, if it is in a tensor; one that is elsewhere than the
    /// parameters is read now.
    fn learning_rate(&self, device: Device, step: &mut Step, site: Site) -> Result<Option<Tensor>> {
        let Some(lr) = self.tensor_lr else { return Ok(None) };
        check_number(step.name(), "lr", lr)?;
        let lr = lr.detach();
        if lr.device() != device {
            step.0.learning_rate = Some(lr.to_scalar()?.to_f64());
            return Ok(None);
        }
        step.0.learning_rate = None;
        // The CPU's kernel reads any dtype; CUDA's float32, as PyTorch's.
        match device.kind() {
            DeviceKind::Cpu => Ok(Some(lr)),
            _ => lr.to_dtype(DType::F32, site).map(Some),
        }
    }

    /// The other numbers that are in tensors, in the kernel's order.
    fn others(&self, name: &'static str) -> Result<impl Iterator<Item = &Tensor>> {
        for (what, number) in [("grad_scale", self.grad_scale), ("found_inf", self.found_inf)] {
            let Some(number) = number else { continue };
            check_number(name, what, number)?;
            check_float32(name, what, number)?;
        }
        Ok(self.grad_scale.into_iter().chain(self.found_inf))
    }
}

impl<'a> StepTensors<'a> {
    /// The gradients, if they are only read.
    fn read(&self, step: &Step) -> &'a [&'a Tensor] {
        if step.0.scaled { &[] } else { self.grads }
    }

    /// All that is written, in the kernel's order.
    fn written(&self, step: &Step) -> SmallVec<[&'a Tensor; 16]> {
        let none: &[&Tensor] = &[];
        let scaled = if step.0.scaled { self.grads } else { none };
        let counted = if let StepCounts::Counted(steps) = self.steps { steps } else { none };
        let written = self.params.iter().chain(self.masters);
        let written = written.chain(self.states.iter().copied().flatten());
        written.chain(self.products).chain(counted).chain(scaled).copied().collect()
    }

    /// Shows `look` the tensors of the parameter `at` alone.
    fn only<R>(&self, at: usize, look: impl FnOnce(&StepTensors<'_>) -> R) -> R {
        fn one<'a>(list: &'a [&'a Tensor], at: usize) -> &'a [&'a Tensor] {
            list.get(at..=at).unwrap_or(&[])
        }
        let states: SmallVec<[&[&Tensor]; MOST_STATES]> =
            self.states.iter().map(|list| one(list, at)).collect();
        look(&StepTensors {
            params: one(self.params, at),
            grads: one(self.grads, at),
            states: &states,
            masters: one(self.masters, at),
            products: one(self.products, at),
            steps: match self.steps {
                StepCounts::At(step) => StepCounts::At(step),
                StepCounts::Given(steps) => StepCounts::Given(one(steps, at)),
                StepCounts::Counted(steps) => StepCounts::Counted(one(steps, at)),
            },
        })
    }

    /// Steps that are given, in the dtype that kernels read.
    fn given_steps(&self, name: &'static str, site: Site) -> Result<Vec<Tensor>> {
        let StepCounts::Given(steps) = self.steps else { return Ok(Vec::new()) };
        steps.iter().try_for_each(|step| check_number(name, "a step", step))?;
        steps.iter().map(|step| step.to_dtype(DType::F32, site)).collect()
    }

    /// Refuses lists that do not go with the rule and with the parameters one by one.
    fn check(&self, step: &Step) -> Result<()> {
        let name = step.name();
        let states: SmallVec<[&str; MOST_STATES]> =
            step.0.rule.states().into_iter().flatten().collect();
        if states.len() != self.states.len() {
            let (has, keeps) = (self.states.len(), states.join(", "));
            let why = format!("{has} lists of states for a rule that keeps [{keeps}]");
            return Err(Error::invalid_argument(why).in_operation(name));
        }
        self.check_alike(name, "gradients", self.grads, None)?;
        let kept = step.0.masters.then_some(DType::F32);
        for (what, list) in states.iter().zip(self.states) {
            self.check_alike(name, what, list, kept)?;
        }
        if step.0.masters {
            self.check_alike(name, "masters", self.masters, kept)?;
            let halves = |param: &&&Tensor| !matches!(param.dtype(), DType::F16 | DType::BF16);
            if let Some(wide) = self.params.iter().find(halves) {
                let why = "float32 copies are for float16 and bfloat16 parameters, not for";
                return Err(Error::dtype(name, format!("{why} {}", wide.dtype())));
            }
        }
        if step.0.rule.keeps_product() || !self.products.is_empty() {
            self.check_numbers(name, "products", self.products)?;
        }
        match self.steps {
            StepCounts::At(_) => Ok(()),
            StepCounts::Given(steps) => self.check_count(name, "state_steps", steps),
            StepCounts::Counted(steps) => self.check_numbers(name, "state_steps", steps),
        }
    }

    fn check_count(&self, name: &'static str, what: &str, list: &[&Tensor]) -> Result<()> {
        if list.len() == self.params.len() {
            return Ok(());
        }
        let why = format!("{} parameters and {} {what}", self.params.len(), list.len());
        Err(Error::invalid_argument(why).in_operation(name))
    }

    /// Refuses a list that has not one float32 for each parameter.
    fn check_numbers(&self, name: &'static str, what: &str, list: &[&Tensor]) -> Result<()> {
        self.check_count(name, what, list)?;
        list.iter().try_for_each(|number| {
            check_number(name, what, number)?;
            check_float32(name, what, number)
        })
    }

    /// Refuses a list that has not a tensor of each parameter's shape and dtype, or of `dtype`.
    fn check_alike(
        &self,
        name: &'static str,
        what: &str,
        list: &[&Tensor],
        dtype: Option<DType>,
    ) -> Result<()> {
        self.check_count(name, what, list)?;
        let wanted = |param: &Tensor| dtype.unwrap_or(param.dtype());
        let differ = |(param, other): &(&&Tensor, &&Tensor)| {
            param.shape() != other.shape() || wanted(param) != other.dtype()
        };
        match self.params.iter().zip(list).find(differ) {
            None => Ok(()),
            Some((param, other)) => Err(Error::shape(
                name,
                format!(
                    "a parameter of shape {:?} and {} goes with {what} of shape {:?} and {}, not of shape {:?} and {}",
                    param.shape(),
                    param.dtype(),
                    param.shape(),
                    wanted(param),
                    other.shape(),
                    other.dtype()
                ),
            )),
        }
    }
}

/// Refuses what is not one number.
fn check_number(name: &'static str, what: &str, number: &Tensor) -> Result<()> {
    if number.numel() == 1 {
        return Ok(());
    }
    let why = format!("{what} is one number, not a tensor of shape {:?}", number.shape());
    Err(Error::shape(name, why))
}

fn check_float32(name: &'static str, what: &str, number: &Tensor) -> Result<()> {
    if number.dtype() == DType::F32 {
        return Ok(());
    }
    Err(Error::dtype(name, format!("{what} must be float32, not {}", number.dtype())))
}
