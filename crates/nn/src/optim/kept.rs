//! What an optimizer keeps beside one parameter: tensors by PyTorch's names, made when they are
//! first needed and booked as optimizer state.

use plimsoll_memory::{ModulePath, current_module, resume_module};
use plimsoll_tensor::{DType, Error, Result, Tensor};
use smallvec::SmallVec;

use super::rule::FusedRule;

/// The float32 copy of a half parameter.
pub(super) const MASTER: &str = "master_param";
/// The count of steps.
pub(super) const STEP: &str = "step";
/// NAdam's product of all momenta.
pub(super) const PRODUCT: &str = "mu_product";
/// Of which SGD's first step makes a copy of the gradient.
pub(super) const MOMENTUM: &str = "momentum_buffer";

/// Every name that a rule may use.
const NAMES: [&str; 14] = [
    STEP,
    PRODUCT,
    MASTER,
    MOMENTUM,
    "exp_avg",
    "exp_avg_sq",
    "max_exp_avg_sq",
    "sum",
    "square_avg",
    "acc_delta",
    "grad_avg",
    "prev",
    "step_size",
    "exp_inf",
];

/// The tensors beside one parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    named: SmallVec<[(&'static str, Tensor); 4]>,
    /// Whether the momentum buffer was made and not yet written.
    pub(super) fresh: bool,
}

/// Whether a parameter is to have a float32 copy.
pub(super) fn wants_copy(master_weights: bool, parameter: &Tensor) -> bool {
    master_weights && matches!(parameter.dtype(), DType::F16 | DType::BF16)
}

/// The module that a parameter is booked under, which is the first that read it in a call; before
/// any call the one that the parameter's name says.
pub(super) fn module_of(parameter: &Tensor, name: Option<&str>) -> ModulePath {
    let owner = parameter.module();
    if !owner.is_root() {
        return owner;
    }
    let path = name.and_then(|name| name.rsplit_once('.'));
    path.map_or_else(current_module, |(path, _)| current_module().join(path))
}

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Tensor> {
        self.named.iter().find(|(own, _)| *own == name).map(|(_, tensor)| tensor)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Tensor)> {
        self.named.iter().map(|(name, tensor)| (*name, tensor))
    }

    /// The tensor of a name; an error if a step did not make it.
    pub(super) fn need(&self, name: &str) -> Result<&Tensor> {
        self.get(name).ok_or_else(|| {
            Error::invalid_argument(format!("an optimizer's state has no \"{name}\""))
        })
    }

    fn put(&mut self, name: &'static str, tensor: &Tensor) {
        self.named.push((name, tensor.mark_optimizer_state()));
    }

    /// Keeps `copy` as the float32 copy from now on.
    pub(super) fn keep_copy(&mut self, copy: &Tensor) {
        self.named.retain(|(name, _)| *name != MASTER);
        self.put(MASTER, copy);
    }

    /// Puts a tensor that was loaded in, as it goes with the parameter.
    pub(super) fn load(
        &mut self,
        name: &str,
        given: &Tensor,
        parameter: &Tensor,
        copied: bool,
    ) -> Result<()> {
        let Some(name) = NAMES.into_iter().find(|own| *own == name) else {
            return Err(Error::invalid_argument(format!("no optimizer keeps \"{name}\"")));
        };
        let number = matches!(name, STEP | PRODUCT);
        let fits = if number { given.numel() == 1 } else { given.shape() == parameter.shape() };
        if !fits {
            return Err(Error::shape(
                "load_state_dict",
                format!(
                    "\"{name}\" has the shape {:?} for a parameter of shape {:?}",
                    given.shape(),
                    parameter.shape()
                ),
            ));
        }
        let dtype = if number || copied { DType::F32 } else { parameter.dtype() };
        let placed = given.detach().to(parameter.device())?.to(dtype)?;
        let placed = if number { placed.reshape(&[])? } else { placed };
        let module = parameter.module();
        self.put(name, &if module.is_root() { placed } else { placed.mark_module(module) });
        Ok(())
    }

    /// Whether all that a step needs is there.
    pub(super) fn has_all<O: FusedRule>(&self, options: &O, parameter: &Tensor) -> bool {
        let copied = wants_copy(options.shared().master_weights, parameter);
        let rule = options.rule(false);
        let mut states = rule.states().into_iter().flatten();
        states.all(|state| self.get(state).is_some())
            && (!copied || self.get(MASTER).is_some())
            && (!O::COUNTS_STEPS || self.get(STEP).is_some())
            && (!rule.keeps_product() || self.get(PRODUCT).is_some())
    }

    /// Makes what a step needs and is not there yet. The bytes are booked under the parameter's
    /// module.
    pub(super) fn begin<O: FusedRule>(
        &mut self,
        options: &O,
        parameter: &Tensor,
        name: Option<&str>,
    ) -> Result<()> {
        if self.has_all(options, parameter) {
            return Ok(());
        }
        let copied = wants_copy(options.shared().master_weights, parameter);
        let rule = options.rule(false);
        let _module = resume_module(module_of(parameter, name));
        let number = |value: f64| Tensor::full(&[], value, (DType::F32, parameter.device()));
        let mut like = parameter.detach();
        if copied {
            if self.get(MASTER).is_none() {
                self.put(MASTER, &like.to(DType::F32)?);
            }
            like = self.need(MASTER)?.clone();
        }
        if O::COUNTS_STEPS && self.get(STEP).is_none() {
            self.put(STEP, &number(0.0)?);
        }
        if rule.keeps_product() && self.get(PRODUCT).is_none() {
            self.put(PRODUCT, &number(1.0)?);
        }
        for state in rule.states().into_iter().flatten() {
            if self.get(state).is_none() {
                self.put(state, &like.full_like(options.first_value(state))?);
                self.fresh |= state == MOMENTUM;
            }
        }
        Ok(())
    }
}
