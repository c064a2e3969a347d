//! L-BFGS: steps along a direction that is made from the differences of the last gradients. It is
//! not fused: a step evaluates the loss several times, through a closure. The search along a
//! direction is in `line_search.rs`, its state in `lbfgs_state.rs`.

use plimsoll_memory::{Phase, Site, enter_phase, with_site};
use plimsoll_tensor::{AddOptions, Error, NoGrad, Parameter, Result, Scalar, Tensor, enable_grad};

use super::checks::check_number;
use super::line_search::{LineSearch, Point};
use super::optimizer::{Optimizer, OptimizerId, Scaling, step_range};
use crate::StateSlot;
use crate::saved::Value;

/// How [`LBFGS`] looks for the length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSearchFn {
    /// By the strong Wolfe conditions.
    StrongWolfe,
}

plimsoll_tensor::options! {
    /// The options of [`LBFGS`].
    LBFGSOptions {
        /// How far a step goes.
        lr: f64 = 1.0,
        /// Iterations of a step.
        max_iter: i64 = 20,
        /// Evaluations of a step; `None` is five quarters of the iterations.
        max_eval: Option<i64> = None,
        /// A step ends where no gradient is larger.
        tolerance_grad: f64 = 1e-7,
        /// A step ends where neither parameters nor loss change by more.
        tolerance_change: f64 = 1e-9,
        /// How many differences are kept.
        history_size: i64 = 100,
        /// How the length of a step is found; `None` takes the learning rate.
        line_search_fn: Option<LineSearchFn> = None,
        /// Up instead of down.
        maximize: bool = false,
    }
}

impl LBFGSOptions {
    pub(super) fn max_evaluations(&self) -> i64 {
        self.max_eval.unwrap_or(self.max_iter * 5 / 4)
    }

    pub(super) fn slots(&mut self) -> Vec<(&'static str, StateSlot<'_>)> {
        vec![
            ("lr", StateSlot::Float(&mut self.lr)),
            ("max_iter", StateSlot::Int(&mut self.max_iter)),
            ("max_eval", StateSlot::MaybeInt(&mut self.max_eval)),
            ("tolerance_grad", StateSlot::Float(&mut self.tolerance_grad)),
            ("tolerance_change", StateSlot::Float(&mut self.tolerance_change)),
            ("history_size", StateSlot::Int(&mut self.history_size)),
            ("maximize", StateSlot::Bool(&mut self.maximize)),
        ]
    }
}

/// L-BFGS over one group of parameters. It keeps up to `2 * history_size` vectors as long as all
/// parameters together.
///
/// ```
/// use plimsoll_nn::{Parameter, optim};
/// use plimsoll_tensor::{DType, Tensor};
/// let weight = Parameter::new(&Tensor::full(&[2], 3.0, DType::F64)?)?;
/// let options = optim::LBFGSOptions::new().line_search_fn(optim::LineSearchFn::StrongWolfe);
/// let mut optimizer = optim::LBFGS::new([weight.clone()], options)?;
/// optimizer.step_with(|| {
///     weight.tensor().set_grad(None)?;
///     let loss = weight.tensor().sub(1.0)?.square()?.sum()?;
///     loss.backward()?;
///     Ok(loss)
/// })?;
/// assert!((weight.tensor().to_vec::<f64>()?[0] - 1.0).abs() < 1e-6);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct LBFGS {
    id: OptimizerId,
    /// The options; they may change between steps.
    pub options: LBFGSOptions,
    pub(super) params: Vec<Parameter>,
    pub(super) kept: Kept,
    /// What schedulers put beside the options.
    pub(super) extra: Vec<(String, f64)>,
}

/// What is kept from step to step.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    pub(super) evaluations: i64,
    pub(super) iterations: i64,
    pub(super) direction: Option<Tensor>,
    pub(super) length: f64,
    /// Of gradients, and of parameters.
    pub(super) differences: Vec<Tensor>,
    pub(super) moves: Vec<Tensor>,
    /// One over the products of both.
    pub(super) inverses: Vec<Tensor>,
    /// What the middle of the product is multiplied by; nothing is 1.
    pub(super) diagonal: Option<Tensor>,
    pub(super) before: Option<Tensor>,
    pub(super) loss_before: Option<f64>,
}

fn number(tensor: &Tensor) -> Result<f64> {
    Ok(tensor.to_scalar()?.to_f64())
}

fn largest(tensor: &Tensor) -> Result<f64> {
    number(&tensor.abs()?.amax()?)
}

impl LBFGS {
    /// An optimizer of some parameters.
    pub fn new(
        params: impl IntoIterator<Item = Parameter>,
        options: LBFGSOptions,
    ) -> Result<LBFGS> {
        check_number("LBFGS", "learning rate", options.lr)?;
        let params: Vec<Parameter> = params.into_iter().collect();
        if params.is_empty() {
            let why = "optimizer got an empty parameter list";
            return Err(Error::invalid_argument(why).in_operation("LBFGS"));
        }
        let (id, kept) = (OptimizerId::next(), Kept::default());
        Ok(LBFGS { id, options, params, kept, extra: Vec::new() })
    }

    /// One step of up to `max_iter` iterations. `closure` clears the gradients, computes the loss
    /// and its gradients, and gives the loss; that of its first run is given back.
    #[track_caller]
    pub fn step_with(&mut self, mut closure: impl FnMut() -> Result<Tensor>) -> Result<Tensor> {
        let site = Site::caller();
        let _range = step_range(site, self.name());
        with_site(site, || {
            let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
            let (first, loss) = self.evaluated(&mut closure)?;
            self.kept.evaluations += 1;
            let grad = self.flat_grad()?;
            if largest(&grad)? > self.options.tolerance_grad {
                self.iterate(&mut closure, loss, grad)?;
            }
            let Kept { direction, before, differences, moves, .. } = &self.kept;
            for kept in direction.iter().chain(before).chain(differences).chain(moves) {
                kept.mark_optimizer_state();
            }
            Ok(first)
        })
    }

    /// All gradients as one vector, in the direction that the loss rises, or falls if it is to
    /// rise.
    fn flat_grad(&self) -> Result<Tensor> {
        let flat = |parameter: &Parameter| {
            let tensor = parameter.tensor();
            tensor.grad().map_or_else(|| tensor.detach().zeros_like(), Ok)?.reshape(&[-1])
        };
        let flat = self.params.iter().map(flat).collect::<Result<Vec<_>>>()?;
        let flat = Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)?;
        if self.options.maximize {
            flat.neg_()?;
        }
        Ok(flat)
    }

    fn go(&self, step: f64, direction: &Tensor) -> Result<()> {
        let mut at = 0;
        for parameter in &self.params {
            let tensor = parameter.tensor();
            let sizes: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
            let count = tensor.numel() as i64;
            let part = direction.narrow(0, at, count)?.view(&sizes[..])?;
            tensor.add_with_(&part, AddOptions::new().alpha(Scalar::from(step)))?;
            at += count;
        }
        Ok(())
    }

    /// The loss as the closure gave it, and as a number that is to fall.
    fn evaluated(&self, closure: &mut dyn FnMut() -> Result<Tensor>) -> Result<(Tensor, f64)> {
        let _phase = enter_phase(Phase::Forward);
        let loss = enable_grad(closure)?;
        let value = number(&loss)?;
        Ok((loss, if self.options.maximize { -value } else { value }))
    }

    fn iterate(
        &mut self,
        closure: &mut dyn FnMut() -> Result<Tensor>,
        mut loss: f64,
        mut grad: Tensor,
    ) -> Result<()> {
        let mut evaluations = 1;
        for iteration in 1..=self.options.max_iter {
            self.kept.iterations += 1;
            let direction = self.turned(&grad)?;
            match &self.kept.before {
                None => self.kept.before = Some(grad.clone_tensor()?),
                Some(before) => {
                    before.copy_(&grad)?;
                }
            }
            self.kept.loss_before = Some(loss);
            self.kept.direction = Some(direction.clone());
            self.kept.length = self.options.lr;
            if self.kept.iterations == 1 {
                self.kept.length *= (1.0 / number(&grad.abs()?.sum()?)?).min(1.0);
            }
            let slope = number(&grad.dot(&direction)?)?;
            if slope > -self.options.tolerance_change {
                break;
            }
            let is_last = iteration == self.options.max_iter;
            let start = Point { step: 0.0, loss, grad, slope };
            let left = self.options.max_evaluations() - evaluations;
            let (loss_before, used) = (loss, &mut 0);
            (loss, grad) = self.moved(closure, &direction, start, left, is_last, used)?;
            evaluations += *used;
            self.kept.evaluations += *used;
            if is_last
                || evaluations >= self.options.max_evaluations()
                || self.is_done(&grad, &direction, loss - loss_before)?
            {
                break;
            }
        }
        Ok(())
    }

    fn is_done(&self, grad: &Tensor, direction: &Tensor, change: f64) -> Result<bool> {
        let tolerance = self.options.tolerance_change;
        Ok(largest(grad)? <= self.options.tolerance_grad
            || largest(direction)? * self.kept.length <= tolerance
            || change.abs() < tolerance)
    }

    /// The direction of this iteration.
    fn turned(&mut self, grad: &Tensor) -> Result<Tensor> {
        let kept = &mut self.kept;
        let (Some(before), Some(last)) = (&kept.before, &kept.direction) else {
            return grad.neg();
        };
        let (difference, way) = (grad.sub(before)?, last.mul(kept.length)?);
        let product = difference.dot(&way)?;
        if number(&product)? > 1e-10 {
            if kept.differences.len() as i64 >= self.options.history_size.max(1) {
                kept.differences.remove(0);
                kept.moves.remove(0);
                kept.inverses.remove(0);
            }
            kept.diagonal = Some(product.div(&difference.dot(&difference)?)?);
            kept.inverses.push(product.reciprocal()?);
            kept.differences.push(difference);
            kept.moves.push(way);
        }
        let turned = grad.neg()?;
        let by = |share: f64| AddOptions::new().alpha(Scalar::from(share));
        let mut shares = vec![0.0; kept.differences.len()];
        for at in (0..shares.len()).rev() {
            shares[at] = number(&kept.moves[at].dot(&turned)?.mul(&kept.inverses[at])?)?;
            turned.add_with_(&kept.differences[at], by(-shares[at]))?;
        }
        if let Some(diagonal) = &kept.diagonal {
            turned.mul_(diagonal)?;
        }
        for (at, before) in shares.into_iter().enumerate() {
            let share = number(&kept.differences[at].dot(&turned)?.mul(&kept.inverses[at])?)?;
            turned.add_with_(&kept.moves[at], by(before - share))?;
        }
        Ok(turned)
    }

    /// Moves the parameters. Gives loss and gradient there; `used` is how many evaluations it took.
    fn moved(
        &mut self,
        closure: &mut dyn FnMut() -> Result<Tensor>,
        direction: &Tensor,
        start: Point,
        left: i64,
        is_last: bool,
        used: &mut i64,
    ) -> Result<(f64, Tensor)> {
        if self.options.line_search_fn.is_none() {
            self.go(self.kept.length, direction)?;
            if is_last {
                return Ok((start.loss, start.grad));
            }
            let loss = self.evaluated(closure)?.1;
            *used = 1;
            return Ok((loss, self.flat_grad()?));
        }
        let origin = self.params.iter().map(|parameter| parameter.tensor().clone_tensor());
        let origin = origin.collect::<Result<Vec<_>>>()?;
        let mut evaluate = |step: f64| -> Result<(f64, Tensor)> {
            self.go(step, direction)?;
            let loss = self.evaluated(closure)?.1;
            let grad = self.flat_grad()?;
            for (parameter, value) in self.params.iter().zip(&origin) {
                parameter.tensor().copy_(value)?;
            }
            Ok((loss, grad))
        };
        let mut search = LineSearch { evaluate: &mut evaluate, direction, start, evaluations: 0 };
        let found = search.run(self.kept.length, 1e-9, left)?;
        *used = search.evaluations;
        self.kept.length = found.step;
        self.go(found.step, direction)?;
        Ok((found.loss, found.grad))
    }
}

impl Optimizer for LBFGS {
    fn name(&self) -> &'static str {
        "LBFGS"
    }

    fn id(&self) -> OptimizerId {
        self.id
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.params.clone()
    }

    fn num_groups(&self) -> usize {
        1
    }

    fn number(&self, group: usize, key: &str) -> Option<f64> {
        if group != 0 {
            return None;
        }
        let mut options = self.options.clone();
        let slot = options.slots().into_iter().find(|(own, _)| *own == key);
        if let Some((_, slot)) = slot {
            return slot.value().to_f64();
        }
        self.extra.iter().find(|(own, _)| own == key).map(|(_, value)| *value)
    }

    fn set_number(&mut self, group: usize, key: &str, value: f64) {
        if group != 0 {
            return;
        }
        match self.options.slots().into_iter().find(|(own, _)| *own == key) {
            Some((_, StateSlot::Float(own))) => *own = value,
            Some(_) => {}
            None => match self.extra.iter_mut().find(|(own, _)| own == key) {
                Some((_, own)) => *own = value,
                None => self.extra.push((key.to_string(), value)),
            },
        }
    }

    fn momentum(&self, _group: usize) -> Option<f64> {
        None
    }

    fn set_momentum(&mut self, _group: usize, _momentum: f64) {}

    fn step_scaled(&mut self, _scaling: Scaling<'_>) -> Result<()> {
        Err(Error::invalid_argument(
            "a step computes the loss several times; call `step_with` and give it a closure",
        )
        .in_operation("LBFGS"))
    }

    fn state_dict(&self) -> Value {
        self.state()
    }

    fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        self.load(state)
    }
}
