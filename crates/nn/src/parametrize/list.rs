//! What computes one parameter: a chain of modules, and the originals that it begins with.

use std::fmt;

use plimsoll_tensor::{Error, MemoryFormat, NoGrad, Parameter, Result, Tensor};

use super::Parametrization;
use crate::call::site_for;
use crate::{Forward, Module, Name, Visitor};

/// What computes one parameter: modules one after another, and what the first of them is given.
pub struct ParametrizationList {
    pub(super) chain: Vec<Box<dyn Parametrization>>,
    pub(super) originals: Vec<(String, Parameter)>,
}

impl ParametrizationList {
    /// Begins a chain for what is in `cell`, which becomes one of the originals: that which shares
    /// its memory, or the first.
    pub(super) fn new(
        first: Box<dyn Parametrization>,
        cell: &Parameter,
    ) -> Result<ParametrizationList> {
        let tensor = cell.tensor();
        let plain = NoGrad::enter();
        let begun = first.right_inverse(&tensor.detach())?.unwrap_or_else(|| vec![tensor.detach()]);
        drop(plain);
        if begun.is_empty() {
            let what = "right_inverse must give one tensor or several, and gave none";
            return Err(Error::invalid_argument(what).in_operation(first.type_name()));
        }
        let own = begun.iter().position(|part| part.shares_storage_with(&tensor)).unwrap_or(0);
        let mut originals = Vec::with_capacity(begun.len());
        for (at, part) in begun.iter().enumerate() {
            let parameter = if at == own { cell.clone() } else { Parameter::new(part)? };
            parameter.tensor().requires_grad_(tensor.requires_grad())?;
            let name = if begun.len() == 1 { "original".into() } else { format!("original{at}") };
            originals.push((name, parameter));
        }
        let list = ParametrizationList { chain: vec![first], originals };
        if !begun[own].shares_storage_with(&tensor) {
            cell.set_data(&begun[own])?;
        }
        Ok(list)
    }

    /// What is trained, with its name: `original`, or `original0`, `original1` and so on.
    pub fn originals(&self) -> impl Iterator<Item = (&str, &Parameter)> {
        self.originals.iter().map(|(name, parameter)| (name.as_str(), parameter))
    }

    /// How many modules are in the chain.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether there are none, which never is.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Sets the originals so that the chain gives `value`.
    pub(super) fn assign(&self, value: &Tensor) -> Result<()> {
        let _plain = NoGrad::enter();
        let mut parts = vec![value.detach()];
        for parametrization in self.chain.iter().rev() {
            let [one] = parts.as_slice() else {
                let what = "only the first of a chain may have several originals";
                return Err(Error::invalid_argument(what).in_operation(parametrization.type_name()));
            };
            parts = parametrization.right_inverse(one)?.ok_or_else(|| {
                let kind = parametrization.type_name();
                let what = format!("parametrization {kind} does not implement right_inverse");
                Error::invalid_argument(what)
            })?;
        }
        if parts.len() != self.originals.len() {
            let what = format!(
                "right_inverse must give {} tensors, and gave {}",
                self.originals.len(),
                parts.len()
            );
            return Err(Error::invalid_argument(what));
        }
        for ((name, parameter), part) in self.originals.iter().zip(&parts) {
            let old = parameter.tensor();
            if old.dtype() != part.dtype() {
                let what =
                    format!("right_inverse gave {} for {name} of {}", part.dtype(), old.dtype());
                return Err(Error::dtype("right_inverse", what));
            }
            // A copy: what was given stays its owner's.
            parameter.set_data(&part.clone_with(MemoryFormat::Preserve)?)?;
        }
        Ok(())
    }
}

impl Module for ParametrizationList {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for (name, parameter) in &self.originals {
            visitor.parameter(Name::Key(name), parameter);
        }
        for (index, parametrization) in self.chain.iter().enumerate() {
            visitor.module(Name::Index(index), parametrization.as_dyn());
        }
    }

    fn as_dyn(&self) -> &dyn Module {
        self
    }

    fn type_name(&self) -> &'static str {
        "ParametrizationList"
    }

    fn is_builtin(&self) -> bool {
        true
    }
}

impl Forward<()> for ParametrizationList {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (): ()) -> Result<Tensor> {
        let mut values: Vec<Tensor> =
            self.originals.iter().map(|(_, parameter)| parameter.tensor()).collect();
        for parametrization in &self.chain {
            let _site = site_for(parametrization.as_dyn());
            values = vec![(**parametrization).call(&values[..])?];
        }
        Ok(values.swap_remove(0))
    }
}

impl fmt::Debug for ParametrizationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::write_tree(self, f)
    }
}
