//! A layer some of whose parameters are computed. What computes one of them: `list.rs`.

use std::fmt;
use std::ops::Range;

use parking_lot::Mutex;
use plimsoll_tensor::{Error, NoGrad, Parameter, Result, StandIn, Tensor};
use smallvec::SmallVec;

use super::{Parametrization, ParametrizationList};
use crate::call::at_caller;
use crate::walk::Own;
use crate::{Buffer, Elements, Forward, Hooks, Module, Name, Training, Values, Visitor};

/// One parameter of a layer that is computed.
struct Computed {
    name: String,
    /// Where the layer reads it.
    cell: Parameter,
    list: ParametrizationList,
}

/// All that are computed, as PyTorch's `ModuleDict` of that name.
struct Parametrizations(Vec<Computed>);

impl Module for Parametrizations {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for computed in &self.0 {
            visitor.module(Name::Key(&computed.name), &computed.list);
        }
    }

    fn as_dyn(&self) -> &dyn Module {
        self
    }

    fn type_name(&self) -> &'static str {
        "ModuleDict"
    }

    fn is_container(&self) -> bool {
        true
    }
}

/// A layer some of whose parameters are computed of others. It is called as the layer itself, and
/// has its hooks; what is trained is below `parametrizations`, with PyTorch's keys. Make an
/// optimizer after it.
///
/// ```
/// use plimsoll_nn::parametrizations::weight_norm;
/// use plimsoll_nn::parametrize::Parametrized;
/// use plimsoll_nn::{Forward, Linear, Module};
/// use plimsoll_tensor::{DType, Tensor};
///
/// #[derive(Module)]
/// struct Net {
///     hidden: Parametrized<Linear>,
/// }
///
/// let net = Net { hidden: weight_norm(Linear::new(3, 2)?)? };
/// let state = net.state_dict();
/// assert_eq!(
///     state.keys().collect::<Vec<_>>(),
///     [
///         "hidden.bias",
///         "hidden.parametrizations.weight.original0",
///         "hidden.parametrizations.weight.original1",
///     ]
/// );
/// assert_eq!(net.hidden.call(&Tensor::ones(&[4, 3], DType::F32)?)?.shape(), [4, 2]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub struct Parametrized<L> {
    layer: L,
    parametrizations: Parametrizations,
    name: &'static str,
}

impl<L: Module> Parametrized<L> {
    /// Computes the parameter `name` of a layer by a module from now on.
    #[track_caller]
    pub fn new(
        layer: L,
        name: &str,
        parametrization: impl Parametrization,
    ) -> Result<Parametrized<L>> {
        let _site = at_caller();
        let own = parametrized_name(layer.type_name());
        let none =
            Parametrized { layer, parametrizations: Parametrizations(Vec::new()), name: own };
        none.register(name, parametrization)
    }

    /// Computes one more parameter, or by one more module one that is computed already. The module
    /// may change neither shape nor dtype.
    #[track_caller]
    pub fn register(
        mut self,
        name: &str,
        parametrization: impl Parametrization,
    ) -> Result<Parametrized<L>> {
        let _site = at_caller();
        parametrization.set_training(self.layer.is_training());
        let first: Box<dyn Parametrization> = Box::new(parametrization);
        let plain = NoGrad::enter();
        if let Some(computed) = self.parametrizations.0.iter_mut().find(|own| own.name == name) {
            // What the chain begins with stays: the value changes, as in PyTorch.
            let before = computed.list.call(())?;
            let after = (*first).call(&[before.clone()][..])?;
            check_unchanged(first.type_name(), &before, &after)?;
            computed.list.chain.push(first);
        } else {
            let cell =
                own_parameter(&self.layer, name).ok_or_else(|| missing(&self.layer, name))?;
            let kind = first.type_name();
            let before = cell.tensor().detach();
            let list = ParametrizationList::new(first, &cell)?;
            let after = list.call(())?;
            if let Err(error) = check_unchanged(kind, &before, &after) {
                cell.set_data(&before)?;
                return Err(error);
            }
            self.parametrizations.0.push(Computed { name: name.to_string(), cell, list });
        }
        drop(plain);
        Ok(self)
    }

    /// The layer. Where it reads a computed parameter lies, between calls, what is trained:
    /// [`Parametrized::value`] gives what it is computed to.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// What computes a parameter.
    pub fn parametrization(&self, name: &str) -> Option<&ParametrizationList> {
        self.parametrizations.0.iter().find(|own| own.name == name).map(|own| &own.list)
    }

    /// A computed parameter as the next call would see it.
    #[track_caller]
    pub fn value(&self, name: &str) -> Result<Tensor> {
        let _site = at_caller();
        let list = self.parametrization(name).ok_or_else(|| missing(&self.layer, name))?;
        list.call(())
    }

    /// Sets what is trained so that the parameter becomes `value`.
    #[track_caller]
    pub fn assign(&self, name: &str, value: &Tensor) -> Result<()> {
        let _site = at_caller();
        self.parametrization(name).ok_or_else(|| missing(&self.layer, name))?.assign(value)
    }

    /// Makes a computed parameter an ordinary one again: of the value that it has now, or, unless
    /// it has several originals, of what it was computed of.
    #[track_caller]
    pub fn remove(&mut self, name: &str, leave_parametrized: bool) -> Result<()> {
        let _site = at_caller();
        let found = self.parametrizations.0.iter().position(|own| own.name == name);
        let at = found.ok_or_else(|| missing(&self.layer, name))?;
        let computed = &self.parametrizations.0[at];
        if leave_parametrized {
            let _plain = NoGrad::enter();
            let value = computed.list.call(())?;
            computed.cell.set_data(&value)?;
        } else if computed.list.originals.len() > 1 {
            let what = "a parameter that is computed of several tensors can only be left as it is computed";
            return Err(Error::invalid_argument(what).in_operation("remove"));
        }
        let gone = self.parametrizations.0.remove(at);
        drop(gone);
        Ok(())
    }

    /// The layer as an ordinary one, all parameters of the values that they have now.
    #[track_caller]
    pub fn into_layer(mut self) -> Result<L> {
        let _site = at_caller();
        while let Some(name) = self.parametrizations.0.last().map(|own| own.name.clone()) {
            self.remove(&name, true)?;
        }
        Ok(self.layer)
    }

    /// Computes all, and lets them stand for the parameters until the guards drop.
    #[track_caller]
    fn stand_ins(&self) -> Result<SmallVec<[StandIn; 2]>> {
        let _site = at_caller();
        let computed = self.parametrizations.0.iter();
        computed.map(|own| Ok(own.cell.stand_in(&own.list.call(())?))).collect()
    }
}

fn own_parameter(layer: &dyn Module, name: &str) -> Option<Parameter> {
    let own = Own::of(layer).parameters;
    own.into_iter().find(|(own, _)| own.to_string() == name).map(|(_, cell)| cell.clone())
}

fn missing(layer: &dyn Module, name: &str) -> Error {
    Error::invalid_argument(format!(
        "{} does not have a parameter or a parametrized element with name '{name}'",
        layer.type_name()
    ))
}

fn check_unchanged(kind: &'static str, before: &Tensor, after: &Tensor) -> Result<()> {
    if before.shape() != after.shape() {
        let what = format!(
            "registering a parametrization may not change the shape of the tensor: it had {:?}, and would have {:?}",
            before.shape(),
            after.shape()
        );
        return Err(Error::shape(kind, what));
    }
    if before.dtype() != after.dtype() {
        let what = format!(
            "registering a parametrization may not change the dtype of the tensor: it was {}, and would be {}",
            before.dtype(),
            after.dtype()
        );
        return Err(Error::dtype(kind, what));
    }
    Ok(())
}

/// `ParametrizedLinear` for `Linear`, once for each type of layer.
fn parametrized_name(layer: &'static str) -> &'static str {
    static KNOWN: Mutex<Vec<(&str, &str)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock();
    if let Some((_, name)) = known.iter().find(|(plain, _)| *plain == layer) {
        return name;
    }
    let name: &'static str = Box::leak(format!("Parametrized{layer}").into_boxed_str());
    known.push((layer, name));
    name
}

/// Hides what is computed from a visitor of the layer: its cell is seen as an original.
struct WithoutComputed<'v, 'm> {
    visitor: &'v mut dyn Visitor<'m>,
    computed: &'m [Computed],
}

impl<'m> Visitor<'m> for WithoutComputed<'_, 'm> {
    fn module(&mut self, name: Name<'m>, module: &'m dyn Module) {
        self.visitor.module(name, module);
    }

    fn parameter(&mut self, name: Name<'m>, parameter: &'m Parameter) {
        if !self.computed.iter().any(|own| own.cell.is_same(parameter)) {
            self.visitor.parameter(name, parameter);
        }
    }

    fn buffer(&mut self, name: Name<'m>, buffer: &'m Buffer) {
        self.visitor.buffer(name, buffer);
    }

    fn training(&mut self, training: &'m Training) {
        self.visitor.training(training);
    }

    fn elements(&mut self, elements: Elements) -> Range<usize> {
        self.visitor.elements(elements)
    }
}

impl<L: Module> Module for Parametrized<L> {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        let computed = &self.parametrizations.0[..];
        self.layer.visit(&mut WithoutComputed { visitor, computed });
        if !computed.is_empty() {
            visitor.module(Name::Field("parametrizations"), &self.parametrizations);
        }
    }

    fn as_dyn(&self) -> &dyn Module {
        self
    }

    fn type_name(&self) -> &'static str {
        if self.parametrizations.0.is_empty() { self.layer.type_name() } else { self.name }
    }

    fn extra_repr(&self) -> String {
        self.layer.extra_repr()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.layer.hooks()
    }

    fn is_builtin(&self) -> bool {
        self.layer.is_builtin()
    }
}

impl<Input: Values, L: Forward<Input>> Forward<Input> for Parametrized<L> {
    type Output = L::Output;

    #[track_caller]
    fn forward(&self, input: Input) -> Result<Self::Output> {
        let _computed = self.stand_ins()?;
        self.layer.forward(input)
    }
}

impl<L: Module> fmt::Display for Parametrized<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::write_tree(self, f)
    }
}

impl<L: Module> fmt::Debug for Parametrized<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
