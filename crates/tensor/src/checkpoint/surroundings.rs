//! What a part of a program ran in, so that it can be run again in the same: where its random
//! numbers came from, its mixed precision, its module and its lines.

use plimsoll_memory::{ModulePath, SiteScope, current_module, resume_module};

use crate::autocast::AutocastState;
use crate::random::Drawing;

/// What was in force on a thread when it was noted.
///
/// ```
/// use plimsoll_tensor::{DType, Surroundings, Tensor};
/// let here = Surroundings::current(true);
/// let first = Tensor::rand(&[3], DType::F32)?;
/// let again = here.resume(|| Tensor::rand(&[3], DType::F32))?;
/// assert_eq!(first.to_vec::<f32>()?, again.to_vec::<f32>()?);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Surroundings {
    /// None if random numbers need not be the same.
    drawing: Option<Drawing>,
    autocast: AutocastState,
    module: ModulePath,
}

impl Surroundings {
    /// Notes what is in force, the state of every device's random numbers only if asked to.
    pub fn current(preserve_rng_state: bool) -> Surroundings {
        Surroundings {
            drawing: preserve_rng_state.then(Drawing::current),
            autocast: AutocastState::current(),
            module: current_module(),
        }
    }

    /// Runs `body` with all of it in force again. Lines are its own: the engine runs in the name of
    /// the operation whose derivative it computes.
    pub fn resume<R>(&self, body: impl FnOnce() -> R) -> R {
        let _drawing = self.drawing.as_ref().map(Drawing::resume);
        let _autocast = self.autocast.resume();
        let _module = resume_module(self.module);
        let _lines = SiteScope::lift();
        body()
    }
}
