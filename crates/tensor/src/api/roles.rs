//! Saying what a tensor is to the program, so that the ledger counts its bytes under the right
//! kind and module. Gradients and activations are known without being told; these are not. The
//! rules of precedence are in `storage/roles.rs`.

use plimsoll_memory::ModulePath;

use crate::Tensor;
use crate::storage::roles::Role;

impl Tensor {
    /// Counts this tensor's memory as a parameter from now on: a weight that training changes.
    ///
    /// ```
    /// use plimsoll_memory::Kind;
    /// use plimsoll_tensor::{DType, Tensor, device, memory};
    /// let own = device::private_cpu(&Default::default())?;
    /// let weight = Tensor::zeros(&[256], (DType::F32, own))?.mark_parameter();
    /// let row = memory::arena(own).live_by_kind()[0];
    /// assert_eq!((row.kind, row.bytes), (Kind::Parameter, 1024));
    /// # drop(weight);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn mark_parameter(&self) -> Tensor {
        self.storage().take_role(Role::Parameter);
        self.clone()
    }

    /// Counts this tensor's memory as an input: a batch or its targets.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let own = device::private_cpu(&Default::default())?;
    /// let batch = Tensor::zeros(&[256], (DType::F32, own))?.mark_input();
    /// assert_eq!(memory::live_by_kind(own)[0].kind, memory::Kind::Input);
    /// # drop(batch);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn mark_input(&self) -> Tensor {
        self.storage().take_role(Role::Input);
        self.clone()
    }

    /// Counts this tensor's memory as what an optimizer keeps beside a parameter.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let own = device::private_cpu(&Default::default())?;
    /// let momentum = Tensor::zeros(&[256], (DType::F32, own))?.mark_optimizer_state();
    /// assert_eq!(memory::live_by_kind(own)[0].kind, memory::Kind::OptimizerState);
    /// # drop(momentum);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn mark_optimizer_state(&self) -> Tensor {
        self.storage().take_role(Role::OptimizerState);
        self.clone()
    }

    /// Counts this tensor's memory under a module's path from now on, as that of a parameter, which
    /// is made before its module runs. What a module computes is counted there without being told.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// use plimsoll_memory::{current_module, enter_module};
    /// let own = device::private_cpu(&Default::default())?;
    /// let weight = Tensor::zeros(&[256], (DType::F32, own))?;
    /// let encoder = enter_module("encoder");
    /// weight.mark_module(current_module());
    /// assert_eq!(weight.module().to_string(), "encoder");
    /// assert_eq!(memory::live_by_module(own)[0].part, current_module());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn mark_module(&self, module: ModulePath) -> Tensor {
        self.storage().set_module(module);
        self.clone()
    }

    /// The module that this tensor's memory is counted under; the root for memory that is not ours.
    pub fn module(&self) -> ModulePath {
        self.storage().origin().map_or(ModulePath::ROOT, |origin| origin.get().module)
    }
}
