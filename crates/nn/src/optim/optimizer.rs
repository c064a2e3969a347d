//! What every optimizer can do, whatever its rule: what schedulers, scalers and checkpoints ask of
//! it. The optimizers themselves are in `fused.rs` and `lbfgs.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{Site, with_site};
use plimsoll_tensor::observe::{Range, range};
use plimsoll_tensor::{Parameter, Result, Tensor};

use crate::gradients::norm_and_excess;
use crate::saved::Value;

/// Tells optimizers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptimizerId(u64);

impl OptimizerId {
    /// One that no other optimizer has.
    pub(super) fn next() -> OptimizerId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        OptimizerId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A step as profilers show it, by PyTorch's name.
pub(super) fn step_range(site: Site, optimizer: &'static str) -> Range {
    range(site, || format!("Optimizer.step#{optimizer}.step").into())
}

/// What of a step only the device knows: see [`crate::amp::GradScaler`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Scaling<'a> {
    /// What the gradients were multiplied by, one float32; the step divides them by it, in place.
    pub grad_scale: Option<&'a Tensor>,
    /// One float32 that is 1 if a gradient was infinite or NaN; then the step does nothing.
    pub found_inf: Option<&'a Tensor>,
}

/// Changes parameters by their gradients. Groups of parameters are counted from 0; their numbers
/// have PyTorch's names.
pub trait Optimizer: Send {
    /// Its name, as PyTorch's class has it.
    fn name(&self) -> &'static str;

    /// Which one it is.
    fn id(&self) -> OptimizerId;

    /// All parameters, group by group.
    fn parameters(&self) -> Vec<Parameter>;

    /// How many groups there are.
    fn num_groups(&self) -> usize;

    /// A number of a group: `lr`, `weight_decay`, or what a scheduler put there.
    fn number(&self, group: usize, key: &str) -> Option<f64>;

    /// Changes a number of a group, or adds it.
    fn set_number(&mut self, group: usize, key: &str, value: f64);

    /// The momentum of a group: `momentum`, or the first of `betas`.
    fn momentum(&self, group: usize) -> Option<f64>;

    /// Changes the momentum of a group that has one.
    fn set_momentum(&mut self, group: usize, momentum: f64);

    /// One step, unless the device knows better.
    #[track_caller]
    fn step_scaled(&mut self, scaling: Scaling<'_>) -> Result<()>;

    /// One step.
    #[track_caller]
    fn step(&mut self) -> Result<()> {
        self.step_scaled(Scaling::default())
    }

    /// One step by gradients whose norm is bounded: [`clip_grad_norm_`](crate::clip_grad_norm_) and
    /// [`Optimizer::step`], which read the gradients once less together. Gives the norm that the
    /// gradients had. What they are divided by is a float32, for float64 too; an optimizer whose
    /// steps need a closure refuses.
    ///
    /// ```
    /// use plimsoll_nn::{Parameter, optim, optim::Optimizer};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let weight = Parameter::new(&Tensor::ones(&[4], DType::F32)?)?;
    /// let options = optim::SGDOptions::new().lr(1.0);
    /// let mut optimizer = optim::SGD::new(vec![weight.clone()], options)?;
    /// weight.tensor().mul(2.0)?.sum()?.backward()?;
    /// assert_eq!(optimizer.step_clipped(1.0)?.item::<f32>()?, 4.0);
    /// assert!(weight.tensor().to_vec::<f32>()?.iter().all(|x| (x - 0.5).abs() < 1e-6));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    fn step_clipped(&mut self, max_norm: f64) -> Result<Tensor> {
        let (norm, excess) =
            with_site(Site::caller(), || norm_and_excess(&self.parameters(), max_norm))?;
        self.step_scaled(Scaling { grad_scale: Some(&excess), found_inf: None })?;
        Ok(norm)
    }

    /// What it keeps and its groups, in PyTorch's layout: `state` by the numbers of the parameters,
    /// and `param_groups`. The tensors are those of the optimizer.
    fn state_dict(&self) -> Value;

    /// Takes over what [`Optimizer::state_dict`] gave, from here or from PyTorch. Tensors that have
    /// their parameter's dtype and device are taken themselves, not copied.
    #[track_caller]
    fn load_state_dict(&mut self, state: &Value) -> Result<()>;

    /// The learning rate of a group; 0 of one that is not there.
    fn lr(&self, group: usize) -> f64 {
        self.number(group, "lr").unwrap_or(0.0)
    }

    /// Changes the learning rate of a group.
    fn set_lr(&mut self, group: usize, lr: f64) {
        self.set_number(group, "lr", lr);
    }

    /// Frees all gradients.
    #[track_caller]
    fn zero_grad(&mut self) -> Result<()> {
        self.zero_grad_with(true)
    }

    /// Frees all gradients, or fills them with zeros and keeps their memory.
    #[track_caller]
    fn zero_grad_with(&mut self, set_to_none: bool) -> Result<()> {
        let name = self.name();
        let _range =
            range(Site::caller(), || format!("Optimizer.zero_grad#{name}.zero_grad").into());
        for parameter in self.parameters() {
            let tensor = parameter.tensor();
            match tensor.grad() {
                None => {}
                Some(_) if set_to_none => tensor.set_grad(None)?,
                // A gradient with a graph is cut off from it.
                Some(grad) if grad.requires_grad() => {
                    let plain = grad.detach();
                    plain.zero_()?;
                    tensor.set_grad(Some(&plain))?;
                }
                Some(grad) => {
                    grad.zero_()?;
                }
            }
        }
        Ok(())
    }
}
