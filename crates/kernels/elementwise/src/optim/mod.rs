//! Steps of optimizers over many parameters at once, in place, without temporaries: what a step is,
//! and which operand is what. `rules.rs` has what each optimizer does to an element, `blocks.rs`
//! the one loop under all of them, `unscale.rs` what comes before a step with scaled gradients,
//! `norms.rs` what comes before one with clipped gradients.

mod blocks;
mod norms;
mod rules;
#[cfg(test)]
mod tests;
mod unscale;

use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::generate::load_real;
use plimsoll_engine::{CpuLaunch, Operand};

pub use norms::norms;
pub use rules::{
    Adadelta, Adagrad, Adam, Adamax, Lion, MOST_NUMBERS, MOST_STATES, NAdam, RAdam, RmsProp, Rprop,
    Sgd,
};
pub use unscale::{UpdateScale, unscale, unscale_operands, update_scale};

use blocks::{Parameter, Steppers};
use rules::At;

/// An optimizer's rule with its numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Stochastic gradient descent, with momentum or without.
    Sgd(Sgd),
    /// Adam and AdamW.
    Adam(Adam),
    /// Adam with Nesterov's momentum.
    NAdam(NAdam),
    /// Rectified Adam.
    RAdam(RAdam),
    /// Adagrad.
    Adagrad(Adagrad),
    /// Adadelta.
    Adadelta(Adadelta),
    /// RMSprop.
    RmsProp(RmsProp),
    /// Resilient backpropagation.
    Rprop(Rprop),
    /// Adamax.
    Adamax(Adamax),
    /// Lion.
    Lion(Lion),
}

impl Rule {
    /// The names of the tensors that the rule keeps beside a parameter, each in its place; `None`
    /// where these numbers need none.
    pub fn states(&self) -> [Option<&'static str>; MOST_STATES] {
        let means = [Some("exp_avg"), Some("exp_avg_sq"), None];
        match self {
            Rule::Sgd(rule) => [(rule.momentum != 0.0).then_some("momentum_buffer"), None, None],
            Rule::Adam(rule) => [means[0], means[1], rule.amsgrad.then_some("max_exp_avg_sq")],
            Rule::NAdam(_) | Rule::RAdam(_) => means,
            Rule::Adagrad(_) => [Some("sum"), None, None],
            Rule::Adadelta(_) => [Some("square_avg"), Some("acc_delta"), None],
            Rule::RmsProp(rule) => [
                Some("square_avg"),
                (rule.momentum != 0.0).then_some("momentum_buffer"),
                rule.centered.then_some("grad_avg"),
            ],
            Rule::Rprop(_) => [Some("prev"), Some("step_size"), None],
            Rule::Adamax(_) => [Some("exp_avg"), Some("exp_inf"), None],
            Rule::Lion(_) => [Some("exp_avg"), None, None],
        }
    }

    /// Whether a step depends on how many there were.
    pub fn counts_steps(&self) -> bool {
        use Rule::{Adagrad, Adam, Adamax, NAdam, RAdam};
        matches!(self, Adam(_) | NAdam(_) | RAdam(_) | Adagrad(_) | Adamax(_))
    }

    /// Whether a product of momenta is kept beside each parameter, one number.
    pub fn keeps_product(&self) -> bool {
        matches!(self, Rule::NAdam(_))
    }

    /// The numbers, in the order of the rule's fields: what CUDA's twin reads them in.
    pub fn numbers(&self) -> [f64; MOST_NUMBERS] {
        let mut all = [0.0; MOST_NUMBERS];
        let mut put = |numbers: &[f64]| all[..numbers.len()].copy_from_slice(numbers);
        match *self {
            Rule::Sgd(Sgd { momentum, dampening, nesterov, first }) => {
                put(&[momentum, dampening, f64::from(nesterov), f64::from(first)]);
            }
            Rule::Adam(Adam { beta1, beta2, eps, amsgrad }) => {
                put(&[beta1, beta2, eps, f64::from(amsgrad)]);
            }
            Rule::NAdam(NAdam { beta1, beta2, eps, momentum_decay }) => {
                put(&[beta1, beta2, eps, momentum_decay]);
            }
            Rule::RAdam(RAdam { beta1, beta2, eps })
            | Rule::Adamax(Adamax { beta1, beta2, eps }) => put(&[beta1, beta2, eps]),
            Rule::Adagrad(Adagrad { lr_decay, eps }) => put(&[lr_decay, eps]),
            Rule::Adadelta(Adadelta { rho, eps }) => put(&[rho, eps]),
            Rule::RmsProp(RmsProp { alpha, eps, momentum, centered }) => {
                put(&[alpha, eps, momentum, f64::from(centered)]);
            }
            Rule::Rprop(Rprop { eta_minus, eta_plus, step_size_min, step_size_max }) => {
                put(&[eta_minus, eta_plus, step_size_min, step_size_max]);
            }
            Rule::Lion(Lion { beta1, beta2 }) => put(&[beta1, beta2]),
        }
        all
    }
}

/// Which step each parameter is at, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steps {
    /// All at this one.
    At(f64),
    /// Each has an input that says it.
    Given,
    /// Each has an output that counts them: this step adds 1 to it.
    Counted,
}

/// One step of an optimizer: its rule, and what is the same for all rules and parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// How far a step goes; `None` if that is an input.
    pub learning_rate: Option<f64>,
    /// How much of a parameter goes with each step.
    pub weight_decay: f64,
    /// Whether that is taken from the parameter itself, and not added to its gradient.
    pub decoupled: bool,
    /// Up instead of down.
    pub maximize: bool,
    /// Which step it is.
    pub steps: Steps,
    /// Whether each parameter has a float32 copy, which is what the step changes; the parameter
    /// becomes its rounding. States are float32 then.
    pub masters: bool,
    /// Whether an input says what the gradients were multiplied by. They are divided by it, in
    /// place.
    pub scaled: bool,
    /// Whether an input says that nothing is to happen: it is 1 then.
    pub skips: bool,
}

impl Step {
    /// Tensors that are written for each parameter.
    fn written(&self) -> usize {
        let states = self.rule.states().iter().flatten().count();
        let rest =
            [self.masters, self.rule.keeps_product(), self.steps == Steps::Counted, self.scaled];
        1 + states + rest.map(usize::from).iter().sum::<usize>()
    }

    /// Tensors that are read for each parameter.
    fn read(&self) -> usize {
        usize::from(!self.scaled) + usize::from(self.steps == Steps::Given)
    }

    /// Tensors that are read for all parameters together.
    fn shared(&self) -> usize {
        let all = [self.learning_rate.is_none(), self.scaled, self.skips];
        all.map(usize::from).iter().sum()
    }

    /// What each operand of a step is. Inputs are the gradients, if they are not written; each
    /// parameter's step, if it is given; the learning rate, the factor of the gradients and whether
    /// to skip, if there are such. Outputs, which are read too, are the parameters, their float32
    /// copies, their states one list after another, the products of momenta, the counts of steps,
    /// and the gradients, each if there are such.
    pub fn operands<'a>(
        &self,
        operation: &'static str,
        inputs: &'a [Operand<'a>],
        outputs: &'a [Operand<'a>],
    ) -> Result<Operands<'a>> {
        let count = outputs.len() / self.written();
        if inputs.len() != count * self.read() + self.shared()
            || outputs.len() != count * self.written()
        {
            return Err(Error::invalid_argument(format!(
                "a step takes {} tensors to read and {} to write for each parameter, and {} to read for all",
                self.read(),
                self.written(),
                self.shared()
            ))
            .in_operation(operation));
        }
        let (mut read, mut written) = (Lists(inputs, count), Lists(outputs, count));
        let mut grads = read.next_if(!self.scaled);
        let given = read.next_if(self.steps == Steps::Given);
        let parameters = written.next();
        let masters = written.next_if(self.masters);
        let states = self.rule.states().map(|state| written.next_if(state.is_some()));
        let products = written.next_if(self.rule.keeps_product());
        let counted = written.next_if(self.steps == Steps::Counted);
        grads = grads.or(written.next_if(self.scaled));
        let mut shared = read.0.iter();
        let mut next = |is_there: bool| if is_there { shared.next() } else { None };
        Ok(Operands {
            parameters,
            grads: grads.unwrap_or(&[]),
            masters,
            states,
            products,
            steps: given.or(counted),
            learning_rate: next(self.learning_rate.is_none()),
            scale: next(self.scaled),
            skip: next(self.skips),
        })
    }
}

/// What is left of a launch's operands, and how many a list has.
struct Lists<'a>(&'a [Operand<'a>], usize);

impl<'a> Lists<'a> {
    fn next(&mut self) -> &'a [Operand<'a>] {
        let (first, rest) = self.0.split_at(self.1);
        self.0 = rest;
        first
    }

    fn next_if(&mut self, is_there: bool) -> Option<&'a [Operand<'a>]> {
        is_there.then(|| self.next())
    }
}

/// The operands of a step by what they are; see [`Step::operands`]. Lists have one for each
/// parameter, the others are one number each.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The parameters.
    pub parameters: &'a [Operand<'a>],
    /// Their gradients.
    pub grads: &'a [Operand<'a>],
    /// Their float32 copies.
    pub masters: Option<&'a [Operand<'a>]>,
    /// What the rule keeps, as [`Rule::states`] names it.
    pub states: [Option<&'a [Operand<'a>]>; MOST_STATES],
    /// The products of all momenta.
    pub products: Option<&'a [Operand<'a>]>,
    /// Which step each parameter is at, or was at before if steps are counted.
    pub steps: Option<&'a [Operand<'a>]>,
    /// How far the step goes.
    pub learning_rate: Option<&'a Operand<'a>>,
    /// What the gradients were multiplied by.
    pub scale: Option<&'a Operand<'a>>,
    /// Whether nothing is to happen.
    pub skip: Option<&'a Operand<'a>>,
}

impl Operands<'_> {
    /// Refuses what does not have the dtypes that go together.
    pub fn check(&self, operation: &'static str) -> Result<()> {
        let numbers = self.products.into_iter().chain(self.steps).flatten();
        if let Some(wrong) = numbers.into_iter().find(|number| !is_number(number)) {
            let (dtype, shape) = (wrong.dtype(), wrong.shape());
            let why = format!("expected one float32, not a tensor of {dtype} and shape {shape:?}");
            return Err(Error::shape(operation, why));
        }
        let with_masters = self.masters.is_some();
        for (index, parameter) in self.parameters.iter().enumerate() {
            let own = parameter.dtype();
            let kept = if with_masters { DType::F32 } else { own };
            let states = self.states.iter().flatten().chain(&self.masters);
            let wrong = states.map(|list| list[index].dtype()).find(|&dtype| dtype != kept);
            let wrong = wrong.or(Some(self.grads[index].dtype()).filter(|&dtype| dtype != own));
            let wide = with_masters && !matches!(own, DType::F16 | DType::BF16);
            if let Some(wrong) = wrong.or(wide.then_some(own)) {
                return Err(plimsoll_engine::wrong_dtype(operation, wrong));
            }
        }
        Ok(())
    }
}

/// Whether an operand is one float32.
fn is_number(operand: &Operand<'_>) -> bool {
    operand.layout().numel() == 1 && operand.dtype() == DType::F32
}

/// One step; see [`Step::operands`] for what it takes.
pub fn step(launch: &CpuLaunch<'_>, step: &Step) -> Result<()> {
    let of = step.operands(launch.operation, launch.inputs, launch.outputs)?;
    of.check(launch.operation)?;
    let given = |operand: Option<&Operand<'_>>| operand.map(|o| number(launch, o)).transpose();
    if given(of.skip)? == Some(1.0) {
        return Ok(());
    }
    let rate = given(of.learning_rate)?.or(step.learning_rate).unwrap_or(0.0);
    let mut steppers = Steppers::new(step, given(of.scale)?);
    for index in 0..of.parameters.len() {
        let at = advance(&of, index, step, rate);
        let parameter = Parameter::new(&of, index);
        match of.parameters[index].dtype() {
            DType::F64 => steppers.wide.push(parameter, &at),
            DType::F32 | DType::BF16 | DType::F16 => steppers.narrow.push(parameter, &at),
            other => return Err(plimsoll_engine::wrong_dtype(launch.operation, other)),
        }
    }
    steppers.run();
    Ok(())
}

/// Where parameter `index` is with this step; counts it where that is this step's to do.
fn advance(of: &Operands<'_>, index: usize, step: &Step, rate: f64) -> At {
    let mut at = At { step: 0.0, rate, product: 1.0 };
    at.step = match (step.steps, of.steps) {
        (Steps::At(step), _) => step,
        (Steps::Given, Some(steps)) => change(&steps[index], |step| step),
        (_, Some(steps)) => change(&steps[index], |step| step + 1.0),
        (_, None) => 0.0,
    };
    if let (Some(products), Rule::NAdam(rule)) = (of.products, step.rule) {
        // In float32, as PyTorch multiplies.
        at.product = change(&products[index], |old| old * rule.momentum(at.step) as f32);
    }
    at
}

/// The one element of an operand of any dtype.
fn number(launch: &CpuLaunch<'_>, operand: &Operand<'_>) -> Result<f64> {
    if operand.layout().numel() != 1 {
        let why = format!("expected one number, not a tensor of shape {:?}", operand.shape());
        return Err(Error::shape(launch.operation, why));
    }
    // SAFETY: it has an element 0.
    Ok(unsafe { load_real(operand, 0) })
}

/// Changes the number of an operand that [`is_number`], and returns what it became.
fn change(operand: &Operand<'_>, to: impl Fn(f32) -> f32) -> f64 {
    let at = operand.first::<f32>();
    // SAFETY: `Operands::check` saw that it has one float32; the launch may read it, and write it
    // if it is an output, which this thread has for itself.
    unsafe {
        let (before, after) = (*at, to(*at));
        if before.to_bits() != after.to_bits() {
            *at = after;
        }
        f64::from(after)
    }
}
