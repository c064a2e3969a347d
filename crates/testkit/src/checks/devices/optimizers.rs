//! Steps of every optimizer on a device, against the oracle: each rule in its variants, every
//! dtype, float32 copies of halves, any layout, scaled gradients, steps that are skipped.

use plimsoll_tensor::optimizers::{
    Adadelta, Adagrad, Adam, Adamax, Lion, NAdam, OptimizerRule, RAdam, RmsProp, Rprop, Sgd,
    StepCounts, StepOptions, StepTensors,
};
use plimsoll_tensor::{DType, Device, Result, Tensor, memory};

use super::values;
use crate::failing::Tap;
use crate::oracle::optim::Element;

/// Every rule, with the numbers that change what it keeps or does.
pub fn rules() -> Vec<OptimizerRule> {
    let sgd = |momentum: f64, dampening: f64, nesterov: bool, first: bool| {
        OptimizerRule::Sgd(Sgd { momentum, dampening, nesterov, first })
    };
    let rms = |momentum: f64, centered: bool| {
        OptimizerRule::RmsProp(RmsProp { alpha: 0.9, eps: 1e-8, momentum, centered })
    };
    let (beta1, beta2, eps) = (0.8, 0.6, 1e-6);
    vec![
        sgd(0.0, 0.0, false, false),
        sgd(0.9, 0.25, false, false),
        sgd(0.9, 0.0, true, false),
        sgd(0.9, 0.5, false, true),
        OptimizerRule::Adam(Adam { beta1, beta2, eps, amsgrad: false }),
        OptimizerRule::Adam(Adam { beta1, beta2, eps, amsgrad: true }),
        OptimizerRule::NAdam(NAdam { beta1, beta2, eps, momentum_decay: 4e-3 }),
        OptimizerRule::RAdam(RAdam { beta1, beta2, eps }),
        // Rectified from the sixth step on.
        OptimizerRule::RAdam(RAdam { beta1, beta2: 0.99, eps }),
        OptimizerRule::Adagrad(Adagrad { lr_decay: 0.1, eps: 1e-10 }),
        OptimizerRule::Adadelta(Adadelta { rho: 0.9, eps: 1e-3 }),
        rms(0.0, false),
        rms(0.9, false),
        rms(0.9, true),
        OptimizerRule::Rprop(Rprop {
            eta_minus: 0.5,
            eta_plus: 1.2,
            step_size_min: 0.03,
            step_size_max: 0.06,
        }),
        OptimizerRule::Adamax(Adamax { beta1, beta2, eps }),
        OptimizerRule::Lion(Lion { beta1: 0.9, beta2: 0.99 }),
    ]
}

/// Steps that every element takes.
const STEPS: i32 = 8;

/// What the gradient at a step is, in units of the first.
fn slope(step: i32) -> f64 {
    [1.0, 0.5, -0.25, 2.0][step as usize % 4]
}

/// The tensors of one optimizer.
struct Training {
    rule: OptimizerRule,
    params: Vec<Tensor>,
    first_grads: Vec<Tensor>,
    masters: Vec<Tensor>,
    states: Vec<Vec<Tensor>>,
    products: Vec<Tensor>,
    steps: Vec<Tensor>,
    elements: Vec<Vec<Element>>,
}

fn borrowed(list: &[Tensor]) -> Vec<&Tensor> {
    list.iter().collect()
}

/// Parameters of odd sizes: dense, transposed, with gaps, single and empty.
fn params(dtype: DType, device: Device) -> Result<Vec<Tensor>> {
    let flat = values(40_000).to(dtype)?.to(device)?;
    let inputs = [
        flat.narrow(0, 3, 37)?,
        flat.narrow(0, 100, 33_000)?,
        flat.narrow(0, 1, 600)?.view(&[20, 30])?.t()?,
        flat.narrow(0, 5, 600)?.view(&[20, 30])?.slice(1, 0, 30, 4)?,
        flat.narrow(0, 7, 1)?,
        flat.narrow(0, 0, 0)?,
    ];
    let last = |x: &Tensor| x.shape().last().is_some_and(|&size| size == 8);
    let own = inputs.iter().map(|x| if last(x) { with_gaps(x) } else { x.clone_tensor() });
    own.collect()
}

/// A copy of a matrix with gaps between its elements.
fn with_gaps(x: &Tensor) -> Result<Tensor> {
    let (rows, columns) = (x.shape()[0] as i64, x.shape()[1] as i64);
    let wide = Tensor::zeros(&[rows, 2 * columns], (x.dtype(), x.device()))?;
    let copy = wide.slice(1, 0, 2 * columns, 2)?;
    copy.copy_(x)?;
    Ok(copy)
}

impl Training {
    fn new(rule: OptimizerRule, dtype: DType, device: Device, copies: bool) -> Result<Training> {
        let params = params(dtype, device)?;
        // Away from 0, where the squares of halves would underflow.
        let away = |p: &Tensor| p.mul(0.5)?.add(4.0);
        let first_grads = params.iter().map(away).collect::<Result<Vec<_>>>()?;
        let kept = if copies { DType::F32 } else { dtype };
        let copied = || params.iter().map(|p| p.to(kept)).collect::<Result<Vec<_>>>();
        // Rprop's first steps are 0.05 long; all else begins with 0.
        let first = |name: &str| if name == "step_size" { 0.05 } else { 0.0 };
        let list = |name: &str| params.iter().map(|p| p.to(kept)?.full_like(first(name))).collect();
        let states = rule.states().into_iter().flatten().map(list).collect::<Result<Vec<_>>>()?;
        let number = |value: f64| Tensor::full(&[], value, (DType::F32, device));
        let numbers = |value: f64| params.iter().map(|_| number(value)).collect::<Result<Vec<_>>>();
        let start = rule.states().map(|name| first(name.unwrap_or("")));
        // Stored as the dtype has it.
        let start =
            start.map(|value| if kept == DType::F64 { value } else { f64::from(value as f32) });
        let of = |p: &Tensor| -> Result<Vec<Element>> {
            if device.is_dry() {
                return Ok(Vec::new());
            }
            let element = |&param: &f64| Element { param, kept: start, product: 1.0 };
            Ok(p.to_f64_vec()?.iter().map(element).collect())
        };
        Ok(Training {
            rule,
            masters: if copies { copied()? } else { Vec::new() },
            states,
            products: if rule.keeps_product() { numbers(1.0)? } else { Vec::new() },
            steps: numbers(0.0)?,
            elements: params.iter().map(of).collect::<Result<_>>()?,
            first_grads,
            params,
        })
    }

    fn grads(&self, step: i32, scale: f64) -> Result<Vec<Tensor>> {
        self.first_grads.iter().map(|grad| grad.mul(slope(step) * scale)).collect()
    }

    fn run(&self, grads: &[Tensor], options: StepOptions<'_>) -> Result<()> {
        let states: Vec<Vec<&Tensor>> = self.states.iter().map(|list| borrowed(list)).collect();
        let tensors = StepTensors {
            params: &borrowed(&self.params),
            grads: &borrowed(grads),
            states: &states.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            masters: &borrowed(&self.masters),
            products: &borrowed(&self.products),
            steps: StepCounts::Counted(&borrowed(&self.steps)),
        };
        Tensor::optimizer_step_(&self.rule, &tensors, options)
    }

    /// One step here and in the oracle.
    fn step(&mut self, step: i32, options: &StepOptions<'_>, scale: Option<f64>) -> Result<()> {
        let grads = self.grads(step, scale.unwrap_or(1.0))?;
        let plain = self.grads(step, 1.0)?;
        self.run(&grads, options.clone())?;
        for (elements, grad) in self.elements.iter_mut().zip(&plain) {
            for (element, g) in elements.iter_mut().zip(grad.to_f64_vec()?) {
                element.step(&self.rule, options, step, g);
            }
        }
        if scale.is_some() {
            for (found, expected) in grads.iter().zip(&plain) {
                assert_eq!(found.to_f64_vec()?, expected.to_f64_vec()?, "unscaled in place");
            }
        }
        Ok(())
    }

    fn check(&self, what: &str, tolerance: f64) -> Result<()> {
        let near = |found: &Tensor, expected: &[f64], part: &str| -> Result<()> {
            for (at, (f, e)) in found.to_f64_vec()?.iter().zip(expected).enumerate() {
                let close = (f - e).abs() <= tolerance * e.abs().max(1.0);
                assert!(close, "{what}: {part}, element {at} is {f}, and the oracle's {e}");
            }
            Ok(())
        };
        let exact = if self.masters.is_empty() { &self.params } else { &self.masters };
        for (at, (param, elements)) in exact.iter().zip(&self.elements).enumerate() {
            near(param, &elements.iter().map(|e| e.param).collect::<Vec<_>>(), "a parameter")?;
            let named = self.rule.states().into_iter().enumerate();
            let named = named.filter_map(|(slot, name)| name.map(|name| (slot, name)));
            for (list, (slot, name)) in self.states.iter().zip(named) {
                let kept: Vec<f64> = elements.iter().map(|e| e.kept[slot]).collect();
                near(&list[at], &kept, name)?;
            }
        }
        for (master, param) in self.masters.iter().zip(&self.params) {
            let rounded = master.to(param.dtype())?.to_f64_vec()?;
            assert_eq!(param.to_f64_vec()?, rounded, "{what}: a parameter is its copy's rounding");
        }
        for count in &self.steps {
            assert_eq!(count.to_f64_vec()?, [f64::from(STEPS)], "{what}: steps are counted");
        }
        Ok(())
    }
}

/// All values, for what must not change.
fn all_values(training: &Training) -> Result<Vec<Vec<f64>>> {
    let states = training.states.iter().flatten();
    let all = training.params.iter().chain(&training.masters).chain(states);
    all.chain(&training.products).chain(&training.steps).map(Tensor::to_f64_vec).collect()
}

fn trains(rule: OptimizerRule, dtype: DType, device: Device, copies: bool) -> Result<()> {
    let what = format!("{rule:?} of {dtype} on {device}, copies {copies}");
    let tolerance = match dtype {
        // The product of momenta is a float32.
        DType::F64 if rule.keeps_product() => 1e-6,
        DType::F64 => 1e-11,
        _ if copies => 1e-4,
        DType::F32 => 1e-4,
        DType::F16 => 2e-2,
        _ => 0.15,
    };
    let mut training = Training::new(rule, dtype, device, copies)?;
    let number = |value: f64| Tensor::full(&[], value, (DType::F32, device));
    let (scale, fine, infinite) = (number(4.0)?, number(0.0)?, number(1.0)?);
    let rate = number(0.03125)?;
    let options = StepOptions::new().lr(0.03125).weight_decay(0.125);
    for step in 1..=STEPS {
        let options = options.clone().maximize(step % 3 == 0).decoupled_weight_decay(step % 2 == 0);
        match step % 4 {
            1 => {
                let options = options.grad_scale(&scale).found_inf(&fine);
                training.step(step, &options, Some(4.0))?;
            }
            2 => training.step(step, &options.tensor_lr(&rate), None)?,
            _ => training.step(step, &options, None)?,
        }
    }
    training.check(&what, tolerance)?;
    let (before, grads) = (all_values(&training)?, training.grads(1, 4.0)?);
    training.run(&grads, options.grad_scale(&scale).found_inf(&infinite))?;
    assert_eq!(
        all_values(&training)?,
        before,
        "{what}: nothing happens where a gradient is infinite"
    );
    Ok(())
}

/// Every rule in every dtype, with and without float32 copies of halves.
pub fn steps_of_every_optimizer_agree_with_the_oracle(device: Device) -> Result<()> {
    for rule in rules() {
        for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16] {
            trains(rule, dtype, device, false)?;
        }
        for dtype in [DType::BF16, DType::F16] {
            trains(rule, dtype, device, true)?;
        }
    }
    Ok(())
}

/// A step takes no memory, not even for a moment.
pub fn steps_allocate_nothing(device: Device) -> Result<()> {
    for rule in rules() {
        for (dtype, copies) in [(DType::F32, false), (DType::BF16, true)] {
            let training = Training::new(rule, dtype, device, copies)?;
            let grads = training.grads(1, 1.0)?;
            let before = memory::memory_allocated(device);
            memory::reset_peak_memory_stats(device);
            training.run(&grads, StepOptions::new().weight_decay(0.1))?;
            assert_eq!(memory::max_memory_allocated(device), before, "{rule:?}: no temporaries");
            assert_eq!(memory::memory_allocated(device), before, "{rule:?}");
        }
    }
    Ok(())
}

/// A step runs where its device gives no memory any more.
pub fn steps_run_on_a_closed_source(device: Device, tap: &Tap) -> Result<()> {
    for rule in rules() {
        let training = Training::new(rule, DType::F32, device, false)?;
        let grads = training.grads(1, 1.0)?;
        tap.fail_from(1);
        let outcome = training.run(&grads, StepOptions::new());
        assert_eq!(tap.open(), 0, "{rule:?} asked for memory");
        outcome?;
    }
    Ok(())
}
