//! An optimizer whose step is one operation over all parameters of a group. The options of its
//! rule say what it computes (`rule.rs`, `adam.rs` and its kin), `kept.rs` what lies beside a
//! parameter, `fused_state.rs` how that is saved. Parameters on several devices, or of which only
//! some have float32 copies, are one operation each.

use std::fmt;

use plimsoll_memory::{Phase, Site, enter_phase, resume_module, with_site};
use plimsoll_tensor::optimizers::{StepCounts, StepOptions, StepTensors};
use plimsoll_tensor::{DType, Device, Error, NoGrad, Parameter, Result, Tensor, enable_grad};
use smallvec::SmallVec;

use super::captured::{Captures, write_rates};
use super::fused_state;
use super::group::{GroupedParameter, ParamGroup};
use super::hooks::{StepHook, StepHooks, between_hooks};
use super::kept::{MASTER, PRODUCT, STEP, module_of, wants_copy};
use super::optimizer::{Optimizer, OptimizerId, Scaling, step_range};
use super::rule::FusedRule;
use crate::saved::Value;

/// An optimizer by the options of its rule; [`super::AdamW`] and its kin are names for it.
///
/// ```
/// use plimsoll_nn::{Linear, Module, optim};
/// let (body, head) = (Linear::new(4, 4)?, Linear::new(4, 1)?);
/// let options = optim::SGDOptions::new().lr(0.1).momentum(0.9);
/// let mut optimizer = optim::SGD::new(body.parameters(), options.clone())?;
/// optimizer.add_param_group(head.parameters(), options.lr(1.0))?;
/// optimizer.groups_mut()[0].options.lr = 0.01;
/// let rates: Vec<f64> = optimizer.groups().iter().map(|group| group.options.lr).collect();
/// assert_eq!(rates, [0.01, 1.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct Fused<O> {
    id: OptimizerId,
    pub(super) groups: Vec<ParamGroup<O>>,
    hooks: StepHooks<Fused<O>>,
}

impl<O: FusedRule> Fused<O> {
    /// An optimizer of some parameters: `model.parameters()`, or `model.named_parameters()`.
    #[track_caller]
    pub fn new<P: Into<GroupedParameter>>(
        params: impl IntoIterator<Item = P>,
        options: O,
    ) -> Result<Fused<O>> {
        let mut optimizer =
            Fused { id: OptimizerId::next(), groups: Vec::new(), hooks: StepHooks::default() };
        optimizer.add_param_group(params, options)?;
        Ok(optimizer)
    }

    /// Adds parameters with options of their own.
    #[track_caller]
    pub fn add_param_group<P: Into<GroupedParameter>>(
        &mut self,
        params: impl IntoIterator<Item = P>,
        options: O,
    ) -> Result<()> {
        let mut group = ParamGroup::new(params.into_iter().map(Into::into).collect(), options)?;
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation(O::NAME));
        let known = |param: &Parameter| {
            self.groups.iter().any(|own| own.parameters().any(|other| other.is_same(param)))
        };
        if group.parameters().any(known) {
            return refused("some parameters appear in more than one parameter group".into());
        }
        let is_named = group.names().is_some();
        if self.groups.first().is_some_and(|first| first.names().is_some() != is_named) {
            let which = if is_named { "with names" } else { "without names" };
            return refused(format!(
                "all optimizer param groups should be with/without names. cannot add param group {which} to the optimizer"
            ));
        }
        if O::BEGINS_EARLY {
            with_site(Site::caller(), || {
                let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
                let ParamGroup { options, params, .. } = &mut group;
                params.iter_mut().try_for_each(|GroupedParameter { name, parameter, kept }| {
                    kept.begin(options, &parameter.tensor(), name.as_deref())
                })
            })?;
        }
        self.groups.push(group);
        Ok(())
    }

    /// The groups.
    pub fn groups(&self) -> &[ParamGroup<O>] {
        &self.groups
    }

    /// The groups, to change their options.
    pub fn groups_mut(&mut self) -> &mut [ParamGroup<O>] {
        &mut self.groups
    }

    /// Casts the float32 parameters, and their gradients, of each group with `master_weights` to
    /// `dtype` (float16 or bfloat16), and keeps what they were as their float32 copies. Copies that
    /// a step makes of a model that was cast before start in the middle of what rounds to each
    /// half: at small learning rates the first steps then change no parameter. Parameters of other
    /// dtypes, and those of groups without `master_weights`, stay as they are: norms whose weights
    /// are float32 take rows of halves. A state that was saved is loaded afterwards: casting makes
    /// the copies anew.
    ///
    /// ```
    /// use plimsoll_nn::{Linear, Module, optim};
    /// use plimsoll_tensor::DType;
    /// let layer = Linear::new(2, 2)?;
    /// let options = optim::AdamWOptions::new().master_weights(true);
    /// let mut optimizer = optim::AdamW::new(layer.named_parameters(), options)?;
    /// optimizer.cast_parameters(DType::BF16)?;
    /// assert_eq!(layer.weight.tensor().dtype(), DType::BF16);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn cast_parameters(&mut self, dtype: DType) -> Result<()> {
        let refused = |why: String| Err(Error::invalid_argument(why).in_operation(O::NAME));
        if !matches!(dtype, DType::F16 | DType::BF16) {
            return refused(format!(
                "cast_parameters makes parameters float16 or bfloat16, not {dtype}"
            ));
        }
        let keeps = |group: &ParamGroup<O>| group.options.shared().master_weights;
        if !self.groups.iter().any(keeps) {
            let why = "cast_parameters keeps float32 copies: set `master_weights` in the groups \
                       whose parameters are to be cast";
            return refused(why.to_string());
        }
        with_site(Site::caller(), || {
            let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
            let cast = self.groups.iter_mut().filter(|group| keeps(group));
            let mut params = cast.flat_map(|group| &mut group.params);
            params.try_for_each(|GroupedParameter { name, parameter, kept }| {
                let param = parameter.tensor();
                if param.dtype() != DType::F32 {
                    return Ok(());
                }
                let _module = resume_module(module_of(&param, name.as_deref()));
                // Its own memory: others may share the parameter's.
                let copy = param.detach().clone_tensor()?;
                parameter.to(dtype)?;
                kept.keep_copy(&copy);
                Ok(())
            })
        })
    }

    /// One step of all parameters that have gradients: an operation a group, in place.
    #[track_caller]
    pub fn step(&mut self) -> Result<()> {
        Optimizer::step(self)
    }

    /// Computes the loss anew by `closure`, with gradients recorded, and takes a step; gives the
    /// loss. Hooks before the step run before the closure.
    #[track_caller]
    pub fn step_with(&mut self, closure: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        let site = Site::caller();
        self.stepped(site, |own| {
            let loss = enable_grad(closure)?;
            with_site(site, || own.step_groups(Scaling::default()))?;
            Ok(loss)
        })
    }

    /// A step under its name, between the hooks, which have lines of their own.
    fn stepped<R>(
        &mut self,
        site: Site,
        step: impl FnOnce(&mut Fused<O>) -> Result<R>,
    ) -> Result<R> {
        let _range = step_range(site, O::NAME);
        between_hooks(self, |own| &mut own.hooks, step)
    }

    fn step_groups(&mut self, scaling: Scaling<'_>) -> Result<()> {
        let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
        // All that is allocated, before the first group steps: where memory runs out, none has.
        // (Copies of what parameters share memory with, and of numbers that are on another device,
        // are made when their group steps.)
        let gathered = self.groups.iter_mut().map(|group| Gathered::of(group, None));
        let gathered = gathered.collect::<Result<SmallVec<[Gathered; 2]>>>()?;
        let mut both = self.groups.iter_mut().zip(gathered);
        both.try_for_each(|(group, gathered)| gathered.step(group, scaling))
    }

    /// Frees all gradients.
    #[track_caller]
    pub fn zero_grad(&mut self) -> Result<()> {
        Optimizer::zero_grad(self)
    }

    /// Calls `hook` before each step. It may change the options.
    ///
    /// ```
    /// use plimsoll_nn::{Parameter, optim};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
    /// let mut optimizer = optim::SGD::new([weight.clone()], optim::SGDOptions::new())?;
    /// let hook = optimizer.register_step_pre_hook(|optimizer| {
    ///     optimizer.groups_mut()[0].options.lr = 0.5;
    ///     Ok(())
    /// });
    /// weight.tensor().sum()?.backward()?;
    /// optimizer.step()?;
    /// assert_eq!(weight.tensor().item::<f32>()?, 0.5);
    /// assert!(optimizer.remove_hook(hook));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn register_step_pre_hook(
        &mut self,
        hook: impl FnMut(&mut Fused<O>) -> Result<()> + Send + 'static,
    ) -> StepHook {
        self.hooks.add_before(Box::new(hook))
    }

    /// Calls `hook` after each step.
    pub fn register_step_post_hook(
        &mut self,
        hook: impl FnMut(&mut Fused<O>) -> Result<()> + Send + 'static,
    ) -> StepHook {
        self.hooks.add_after(Box::new(hook))
    }

    /// Takes a hook away; whether it was there.
    pub fn remove_hook(&mut self, hook: StepHook) -> bool {
        self.hooks.remove(hook)
    }

    /// A step of one parameter, for [`super::InBackward`]; hooks do not run.
    pub(super) fn step_one(&mut self, group: usize, param: usize) -> Result<()> {
        let _range = step_range(Site::in_force(), O::NAME);
        let (_plain, _phase) = (NoGrad::enter(), enter_phase(Phase::Optimizer));
        let group = &mut self.groups[group];
        Gathered::of(group, Some(param))?.step(group, Scaling::default())
    }
}

/// What the parameters of one operation have in common.
#[derive(Clone, Copy, PartialEq)]
struct Alike {
    device: Device,
    copied: bool,
    fresh: bool,
}

/// The tensors of one operation.
struct Work {
    alike: Alike,
    places: Vec<usize>,
    params: Vec<Tensor>,
    grads: Vec<Tensor>,
}

/// The work of a group's step, with all that is kept beside its parameters made.
struct Gathered {
    works: SmallVec<[Work; 1]>,
    is_captured: bool,
}

impl Gathered {
    /// Of all parameters that have gradients, or of one parameter.
    fn of<O: FusedRule>(group: &mut ParamGroup<O>, only: Option<usize>) -> Result<Gathered> {
        let mut captures = Captures::default();
        let ParamGroup { options, params, rates, .. } = group;
        let master_weights = options.shared().master_weights;
        let mut works: SmallVec<[Work; 1]> = SmallVec::new();
        let chosen = only.map_or(0..params.len(), |only| only..only + 1);
        for place in chosen {
            let GroupedParameter { name, parameter, kept } = &mut params[place];
            let param = parameter.tensor();
            let Some(grad) = param.grad() else { continue };
            captures.check((options, rates), &param, kept)?;
            kept.begin(options, &param, name.as_deref())?;
            let copied = wants_copy(master_weights, &param);
            let alike = Alike { device: param.device(), copied, fresh: kept.fresh };
            let at = works.iter().position(|work| work.alike == alike).unwrap_or_else(|| {
                let (places, params, grads) = (Vec::new(), Vec::new(), Vec::new());
                works.push(Work { alike, places, params, grads });
                works.len() - 1
            });
            works[at].places.push(place);
            works[at].params.push(param);
            works[at].grads.push(grad);
        }
        Ok(Gathered { works, is_captured: captures.any })
    }

    fn step<O: FusedRule>(&self, group: &mut ParamGroup<O>, scaling: Scaling<'_>) -> Result<()> {
        let ParamGroup { options, params, rates, .. } = group;
        if !self.is_captured {
            write_rates(options, rates)?;
        }
        for work in &self.works {
            let rate = rates.iter().find(|rate| rate.device() == work.alike.device);
            let happened = work.run(options, params, rate, scaling)?;
            if happened && work.alike.fresh {
                work.places.iter().for_each(|&place| params[place].kept.fresh = false);
            }
        }
        Ok(())
    }
}

impl Work {
    /// Whether it happened, as far as the host knows.
    fn run<O: FusedRule>(
        &self,
        options: &O,
        params: &[GroupedParameter],
        rate: Option<&Tensor>,
        scaling: Scaling<'_>,
    ) -> Result<bool> {
        let here =
            |number: Option<&Tensor>| number.map(|number| number.to(self.alike.device)).transpose();
        let (scale, found) = (here(scaling.grad_scale)?, here(scaling.found_inf)?);
        if let Some(found) = found.as_ref().filter(|_| self.alike.fresh) {
            // A buffer without values must not be taken for one that has: the one case in which
            // the host waits.
            if found.to_scalar()?.to_f64() != 0.0 {
                return Ok(false);
            }
        }
        let rule = options.rule(self.alike.fresh);
        let list = |name: &str| -> Result<Vec<&Tensor>> {
            self.places.iter().map(|&place| params[place].kept.need(name)).collect()
        };
        let list_if = |is_kept: bool, name: &str| if is_kept { list(name) } else { Ok(Vec::new()) };
        let names = rule.states().into_iter().flatten();
        let states = names.map(list).collect::<Result<SmallVec<[Vec<&Tensor>; 3]>>>()?;
        let states: SmallVec<[&[&Tensor]; 3]> = states.iter().map(Vec::as_slice).collect();
        let masters = list_if(self.alike.copied, MASTER)?;
        let products = list_if(rule.keeps_product(), PRODUCT)?;
        let steps = list_if(O::COUNTS_STEPS, STEP)?;
        let tensors = StepTensors {
            params: &self.params.iter().collect::<Vec<_>>(),
            grads: &self.grads.iter().collect::<Vec<_>>(),
            states: &states,
            masters: &masters,
            products: &products,
            steps: match O::COUNTS_STEPS {
                true => StepCounts::Counted(&steps),
                false => StepCounts::At(0.0),
            },
        };
        let shared = options.shared();
        let numbers = StepOptions::new()
            .lr(shared.lr)
            .tensor_lr(rate)
            .weight_decay(shared.weight_decay)
            .decoupled_weight_decay(shared.decoupled)
            .maximize(shared.maximize)
            .grad_scale(scale.as_ref())
            .found_inf(found.as_ref());
        Tensor::optimizer_step_(&rule, &tensors, numbers)?;
        Ok(true)
    }
}

impl<O: FusedRule> Optimizer for Fused<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn id(&self) -> OptimizerId {
        self.id
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.groups.iter().flat_map(ParamGroup::parameters).cloned().collect()
    }

    fn num_groups(&self) -> usize {
        self.groups.len()
    }

    fn number(&self, group: usize, key: &str) -> Option<f64> {
        self.groups.get(group)?.number(key)
    }

    fn set_number(&mut self, group: usize, key: &str, value: f64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.set_number(key, value);
        }
    }

    fn momentum(&self, group: usize) -> Option<f64> {
        self.groups.get(group)?.momentum()
    }

    fn set_momentum(&mut self, group: usize, momentum: f64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.set_momentum(momentum);
        }
    }

    #[track_caller]
    fn step_scaled(&mut self, scaling: Scaling<'_>) -> Result<()> {
        let site = Site::caller();
        self.stepped(site, |own| with_site(site, || own.step_groups(scaling)))
    }

    fn state_dict(&self) -> Value {
        fused_state::of(&self.groups)
    }

    #[track_caller]
    fn load_state_dict(&mut self, state: &Value) -> Result<()> {
        with_site(Site::caller(), || fused_state::load(&mut self.groups, state))
    }
}

impl<O: FusedRule> fmt::Debug for Fused<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<&O> = self.groups.iter().map(|group| &group.options).collect();
        f.debug_struct(O::NAME).field("groups", &options).finish_non_exhaustive()
    }
}
