//! The trait of everything that has parameters. A struct derives it: the derive writes the visit of
//! its fields and nothing more, and all that is known of a module comes from that visit. How a
//! module is called is in `call.rs`.

use std::any::Any;

use plimsoll_memory::{Site, SiteScope, enter_module};
use plimsoll_tensor::{DType, Device, Error, Parameter, Result, To};

use crate::state::{self, IncompatibleKeys, LoadOptions, StateDict};
use crate::walk::{self, Own};
use crate::{Buffer, Hooks, Visitor};

/// A part of a model: parameters, buffers, and other modules.
///
/// ```
/// use plimsoll_nn::{Forward, Linear, Module};
/// use plimsoll_tensor::{DType, Result, Tensor};
///
/// #[derive(Module)]
/// struct Net {
///     hidden: Linear,
///     out: Linear,
/// }
///
/// impl Forward<&Tensor> for Net {
///     type Output = Tensor;
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.out.call(&self.hidden.call(x)?.relu()?)
///     }
/// }
///
/// let net = Net { hidden: Linear::new(2, 3)?, out: Linear::new(3, 1)? };
/// assert_eq!(net.call(&Tensor::zeros(&[5, 2], DType::F32)?)?.shape(), [5, 1]);
/// let keys: Vec<String> = net.named_parameters().into_iter().map(|(key, _)| key).collect();
/// assert_eq!(keys, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    note = "write `#[derive(Module)]` on the struct"
)]
pub trait Module: Any + Send + Sync {
    /// Shows the visitor the module's own fields.
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>);

    /// This module, as one of any type; a pointer gives what it points to.
    fn as_dyn(&self) -> &dyn Module;

    /// The name of its type, as it is printed.
    fn type_name(&self) -> &'static str;

    /// What is printed between the parentheses.
    fn extra_repr(&self) -> String {
        String::new()
    }

    /// The hooks, if it has a field for them.
    fn hooks(&self) -> Option<&Hooks> {
        None
    }

    /// Whether it only holds others, which the module around it calls itself: a list, a map.
    #[doc(hidden)]
    fn is_container(&self) -> bool {
        false
    }

    /// Whether its operations are booked at the line that called it, and not at its own.
    #[doc(hidden)]
    fn is_builtin(&self) -> bool {
        false
    }

    /// Whether this is a list or map of plain data, which is nothing to a visitor.
    #[doc(hidden)]
    fn is_data() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// The modules that are fields of this one, by name.
    fn named_children(&self) -> Vec<(String, &dyn Module)> {
        let own = Own::of(self);
        own.modules.into_iter().map(|(name, child)| (name.to_string(), child)).collect()
    }

    /// This module, under the empty path, and all below it; one that several share under its first.
    fn named_modules(&self) -> Vec<(String, &dyn Module)> {
        let mut found = Vec::new();
        walk::each("", self.as_dyn(), &mut |path, module, _| {
            found.push((path.to_string(), module))
        });
        walk::once(found, |a, b| walk::is_same(*a, *b))
    }

    /// The parameters here and below by path; one that several share under its first.
    fn named_parameters(&self) -> Vec<(String, Parameter)> {
        walk::once(walk::parameters(self.as_dyn()), Parameter::is_same)
    }

    /// [`Module::named_parameters`] without the names: what an optimizer takes.
    fn parameters(&self) -> Vec<Parameter> {
        self.named_parameters().into_iter().map(|(_, parameter)| parameter).collect()
    }

    /// The buffers here and below by path; one that several share under its first.
    fn named_buffers(&self) -> Vec<(String, Buffer)> {
        walk::once(walk::buffers(self.as_dyn()), Buffer::is_same)
    }

    /// How many numbers are trained.
    ///
    /// ```
    /// use plimsoll_nn::{Linear, Module};
    /// assert_eq!(Linear::new(2, 3)?.num_parameters(), 9);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|parameter| parameter.tensor().numel()).sum()
    }

    /// The module at a path such as `blocks.3.attention`.
    fn get_submodule(&self, path: &str) -> Option<&dyn Module> {
        let mut at = self.as_dyn();
        for part in path.split('.').filter(|part| !part.is_empty()) {
            let own = Own::of(at);
            at = own.modules.into_iter().find(|(name, _)| name.to_string() == part)?.1;
        }
        Some(at)
    }

    /// Parameters and persistent buffers by PyTorch's keys, outside of any graph. They share the
    /// module's memory.
    fn state_dict(&self) -> StateDict {
        state::of(self.as_dyn())
    }

    /// Copies a state into the module. Entries that are missing, unexpected or of another shape are
    /// an error that lists all of them, and then nothing is changed.
    ///
    /// ```
    /// use plimsoll_nn::{Linear, Module, StateDict};
    /// let (from, to) = (Linear::new(2, 3)?, Linear::new(2, 3)?);
    /// to.load_state_dict(&from.state_dict())?;
    /// let error = to.load_state_dict(&StateDict::new()).unwrap_err().to_string();
    /// assert!(error.contains(r#"Missing key(s) in state_dict: "weight", "bias"."#), "{error}");
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        state::load(self.as_dyn(), state, &LoadOptions::new()).map(drop)
    }

    /// [`Module::load_state_dict`] that may leave entries out, or take the tensors themselves.
    #[track_caller]
    fn load_state_dict_with(
        &self,
        state: &StateDict,
        options: LoadOptions,
    ) -> Result<IncompatibleKeys> {
        state::load(self.as_dyn(), state, &options)
    }

    /// Sets training mode here and below, or evaluation.
    fn set_training(&self, training: bool) {
        walk::each("", self.as_dyn(), &mut |_, _, own| {
            if let Some(flag) = own.training {
                flag.set(training);
            }
        });
    }

    /// Sets training mode here and below.
    fn train(&self) {
        self.set_training(true);
    }

    /// Sets evaluation mode here and below.
    fn eval(&self) {
        self.set_training(false);
    }

    /// Whether it trains, by its own [`Training`](crate::Training) or the first below it; a module
    /// without any behaves the same in both modes, and trains.
    fn is_training(&self) -> bool {
        let mut found = None;
        walk::each("", self.as_dyn(), &mut |_, _, own| found = found.or(own.training));
        found.is_none_or(|flag| flag.get())
    }

    /// Brings parameters and buffers to another device or dtype; see [`Module::to_dtype`].
    ///
    /// ```
    /// use plimsoll_nn::{Linear, Module};
    /// use plimsoll_tensor::DType;
    /// let layer = Linear::new(2, 3)?;
    /// layer.to(DType::F64)?;
    /// assert_eq!(layer.weight.tensor().dtype(), DType::F64);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    fn to(&self, target: impl Into<To>) -> Result<()>
    where
        Self: Sized,
    {
        move_to(self.as_dyn(), &target.into())
    }

    /// Brings parameters, gradients and buffers to a device. Their bytes are booked there under
    /// the paths of their modules.
    #[track_caller]
    fn to_device(&self, device: Device) -> Result<()> {
        move_to(self.as_dyn(), &device.into())
    }

    /// Brings those parameters, gradients and buffers to `dtype` that are floating-point numbers.
    #[track_caller]
    fn to_dtype(&self, dtype: DType) -> Result<()> {
        move_to(self.as_dyn(), &dtype.into())
    }

    /// Frees all gradients.
    fn zero_grad(&self) -> Result<()> {
        self.parameters().iter().try_for_each(|parameter| parameter.tensor().set_grad(None))
    }

    /// Says whether the parameters here and below want gradients: `false` freezes them.
    #[track_caller]
    fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        for parameter in self.parameters() {
            parameter.tensor().requires_grad_(requires_grad)?;
        }
        Ok(())
    }

    /// Calls `function` for every module below this one, children first, then for this one.
    ///
    /// ```
    /// use std::any::Any;
    /// use plimsoll_nn::{init, Linear, Module};
    /// let layer = Linear::new(2, 3)?;
    /// layer.apply(&mut |module| match (module as &dyn Any).downcast_ref::<Linear>() {
    ///     Some(linear) => init::ones_(&linear.weight.tensor()),
    ///     None => Ok(()),
    /// })?;
    /// assert_eq!(layer.weight.tensor().to_vec::<f32>()?, [1.0; 6]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    fn apply(&self, function: &mut dyn FnMut(&dyn Module) -> Result<()>) -> Result<()> {
        for (_, child) in Own::of(self).modules {
            child.apply(function)?;
        }
        function(self.as_dyn())
    }
}

#[track_caller]
fn move_to(module: &dyn Module, target: &To) -> Result<()> {
    if let Some(dtype) = target.dtype.filter(|dtype| !dtype.is_float()) {
        return Err(Error::dtype(
            "to",
            format!("a module's parameters are floating-point numbers and cannot become {dtype}"),
        ));
    }
    let device_only = To { dtype: None, ..target.clone() };
    let mut outcome = Ok(());
    let site = Site::caller();
    walk::each("", module, &mut |path, _, own| {
        if outcome.is_err() {
            return;
        }
        let _site = SiteScope::enter(site);
        let _module = (!path.is_empty()).then(|| enter_module(path));
        outcome = own
            .parameters
            .iter()
            .try_for_each(|(_, parameter)| parameter.to(target.clone()))
            .and_then(|()| {
                own.buffers.iter().try_for_each(|(_, buffer)| {
                    let is_float = buffer.tensor().dtype().is_float();
                    buffer.to(if is_float { target.clone() } else { device_only.clone() })
                })
            });
    });
    outcome
}
