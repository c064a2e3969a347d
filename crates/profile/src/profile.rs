//! What to record: the options of a session (`session.rs`), and the two ways to run one.

use plimsoll_core::Result;
use plimsoll_memory::Site;

use crate::recording::Recording;
use crate::session::Session;

/// What to record. Calls, their times and kernels' times always are.
///
/// ```
/// use plimsoll_profile::Profile;
/// use plimsoll_tensor::{DType, Tensor};
/// let recording = Profile::new().memory(true).run(|| Tensor::ones(&[8], DType::F32).map(drop))?;
/// assert!(recording.events().iter().any(|event| event.name == "aten::ones"));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    pub(crate) shapes: bool,
    pub(crate) memory: bool,
    pub(crate) stacks: bool,
    pub(crate) flops: bool,
    pub(crate) modules: bool,
    pub(crate) frames: Option<fn() -> Vec<Site>>,
}

impl Profile {
    /// Times alone.
    pub fn new() -> Profile {
        Profile::default()
    }

    /// Shapes and dtypes of operands, PyTorch's `record_shapes`.
    #[must_use]
    pub fn shapes(self, shapes: bool) -> Profile {
        Profile { shapes, ..self }
    }

    /// Bytes allocated and freed, PyTorch's `profile_memory`.
    #[must_use]
    pub fn memory(self, memory: bool) -> Profile {
        Profile { memory, ..self }
    }

    /// The line of the program that called, PyTorch's `with_stack`.
    #[must_use]
    pub fn stacks(self, stacks: bool) -> Profile {
        Profile { stacks, ..self }
    }

    /// Floating point operations of products, convolutions and attention, PyTorch's `with_flops`.
    #[must_use]
    pub fn flops(self, flops: bool) -> Profile {
        Profile { flops, ..self }
    }

    /// The path of the module that called, PyTorch's `with_modules`.
    #[must_use]
    pub fn modules(self, modules: bool) -> Profile {
        Profile { modules, ..self }
    }

    /// For bindings: the frames of another language's stack, innermost first, where stacks are
    /// recorded.
    #[doc(hidden)]
    #[must_use]
    pub fn frames(self, frames: fn() -> Vec<Site>) -> Profile {
        Profile { frames: Some(frames), ..self }
    }

    /// Records from now on, until the session is stopped.
    ///
    /// ```
    /// use plimsoll_profile::Profile;
    /// let session = Profile::new().start()?;
    /// assert!(Profile::new().start().is_err()); // one at a time
    /// let recording = session.stop();
    /// assert!(recording.events().is_empty());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn start(self) -> Result<Session> {
        Session::start(self)
    }

    /// Records what `work` does.
    pub fn run(self, work: impl FnOnce() -> Result<()>) -> Result<Recording> {
        let session = self.start()?;
        work()?;
        Ok(session.stop())
    }
}
