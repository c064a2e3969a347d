//! Schedulers of learning rates, by PyTorch's names. A scheduler holds no optimizer: it is made
//! with one, whose first rates it sets, and each `step` is given it, after the optimizer's own.
//!
//! ```
//! use plimsoll_nn::optim::lr_scheduler::{LRScheduler, StepLR};
//! use plimsoll_nn::{Parameter, optim};
//! use plimsoll_tensor::{DType, Tensor};
//!
//! let weight = Parameter::new(&Tensor::ones(&[1], DType::F32)?)?;
//! let mut optimizer = optim::SGD::new([weight], optim::SGDOptions::new().lr(1.0))?;
//! let mut scheduler = StepLR::new(&mut optimizer, 2, 0.5)?;
//! let mut rates = Vec::new();
//! for _ in 0..5 {
//!     rates.push(optimizer.groups()[0].options.lr);
//!     optimizer.step()?;
//!     scheduler.step(&mut optimizer)?;
//! }
//! assert_eq!(rates, [1.0, 1.0, 0.5, 0.5, 0.25]);
//! # Ok::<(), plimsoll_tensor::Error>(())
//! ```

mod by_factor;
mod by_function;
mod combined;
mod cosine;
mod cyclic;
mod momentum;
mod multi_step;
mod one_cycle;
mod plateau;
mod scheduler;

pub use by_factor::{ConstantLR, ExponentialLR, LinearLR, PolynomialLR, StepLR};
pub use by_function::{LambdaLR, MultiplicativeLR, RateFunction};
pub use combined::{ChainedScheduler, SequentialLR};
pub use cosine::{CosineAnnealingLR, CosineAnnealingWarmRestarts};
pub use cyclic::{CyclicLR, CyclicMode, CyclicOptions, ScaleFunction, ScaleMode};
pub use multi_step::MultiStepLR;
pub use one_cycle::{AnnealStrategy, OneCycleLR, OneCycleOptions};
pub use plateau::{PlateauMode, PlateauOptions, ReduceLROnPlateau, ThresholdMode};
pub(super) use scheduler::one_each;
pub use scheduler::{LRScheduler, Progress, Schedule};
