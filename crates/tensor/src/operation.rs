//! What an operation is: one value that knows its name, its shape rule, what it saves for backward,
//! its kernels and its derivative. The graph, the recipe of a dropped storage, the profiler and the
//! tests all hold the same value. Operations live in `ops/`, one file a family; `prepare::apply`
//! runs them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::{Error, Result, Scalar};
use plimsoll_cuda::Properties;
use smallvec::SmallVec;

use crate::Tensor;
pub use crate::cuda::CudaLaunch;
pub use crate::op_info::{DTypes, Home, Input, OnCuda, OpInfo, Out, Promotion};
use plimsoll_kernels::{CpuLaunch, Meta};

/// An operation with its arguments other than tensors: `Sum { dims, keepdim }`.
pub trait Operation: fmt::Debug + Send + Sync + 'static {
    /// Name, forms and coverage.
    fn info(&self) -> &'static OpInfo;

    /// PyTorch's name of its node in the graph, where its arguments or operands decide that:
    /// `SumBackward1` of a sum over some dimensions. Other names are made of its own
    /// (`autograd/node_names.rs`).
    fn node_name(&self, _inputs: &[Meta]) -> Option<&'static str> {
        None
    }

    /// The shape rule: checks the operands and says what comes out. `needs` tells which inputs will
    /// get a gradient, so that results only backward wants (a layer norm's mean) exist only then.
    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred>;

    /// The host number among the operands, which takes part in promotion.
    fn number(&self) -> Option<Scalar> {
        None
    }

    /// Which inputs and outputs backward reads, given who needs a gradient. Nothing else is kept
    /// alive.
    fn saves(&self, _needs: Needs) -> Saves {
        Saves::NOTHING
    }

    /// Scratch bytes of a launch: a pure function of layouts, dtypes and the number of kernel
    /// threads, so that a dry run takes the same.
    fn workspace_bytes(&self, _inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        0
    }

    /// For operations whose result size only the data tells ([`Inferred::AtMost`]): looks at it.
    fn measure(&self, launch: &CpuLaunch<'_>) -> Result<Metas> {
        Err(Error::unsupported(launch.operation, "the size of this result does not depend on data"))
    }

    /// Computes on the host (and, on its stream's thread, for the stand-in accelerator).
    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()>;

    /// Scratch bytes of a launch on such a GPU, as [`Operation::workspace_bytes`].
    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        _inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        0
    }

    /// Queues on a CUDA stream.
    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        Err(crate::cuda::no_kernel(launch.operation))
    }

    /// [`Operation::measure`] on a GPU: queues kernels that count, and waits for what they found.
    /// The workspace is what `cuda_workspace_bytes` asks for without outputs.
    fn cuda_measure(&self, launch: &CudaLaunch<'_>) -> Result<Metas> {
        Err(crate::cuda::no_kernel(launch.operation))
    }

    /// The vector-Jacobian product, in tensor operations, so that it can itself be differentiated.
    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        Err(Error::autograd(backward.operation, "this operation has no derivative"))
    }

    /// Whether [`Operation::add_vjp`] is there: the operation has one input and one output, saves
    /// nothing, and adding its derivative to a sum takes less than making it.
    fn adds_vjp(&self) -> bool {
        false
    }

    /// Adds the vector-Jacobian product to `total`, in place: to what has arrived at the input from
    /// others. Nothing is recorded.
    fn add_vjp(&self, _gradient: &Tensor, _total: &Tensor) -> Result<()> {
        Err(Error::autograd(self.info().name, "this operation adds no derivative in place"))
    }

    /// Whether [`Operation::vjp_onto`] is there.
    fn adds_to_input(&self) -> bool {
        false
    }

    /// As [`Operation::vjp`], for input 0 among others, whose gradient is added to `total` in
    /// place: to what has arrived there from others, contiguous and of the input's shape and dtype.
    /// Its own place among the gradients stays empty. Nothing is recorded.
    fn vjp_onto(&self, backward: &Backward<'_>, _total: &Tensor) -> Result<Grads> {
        Err(Error::autograd(backward.operation, "this operation adds no derivative in place"))
    }

    /// For a view that shows consecutive indices of one dimension of `input`, and all of the
    /// others: that dimension and these indices. The gradients of such parts are laid side by side
    /// instead of being added up (`autograd/parts.rs`).
    fn shows(&self, _input: &Meta) -> Option<(usize, Range<usize>)> {
        None
    }

    /// Whether running it again on the same inputs gives the same bytes. One that draws on anything
    /// else (a clock, memory that it does not name) says no, and its results are never dropped to
    /// be computed again.
    fn is_pure(&self) -> bool {
        true
    }

    /// The value behind a shared pointer, as graphs and recipes keep it.
    fn share(&self) -> Arc<dyn Operation>;
}

/// Tensors' metas, inline for the usual one.
pub type Metas = SmallVec<[Meta; 1]>;

/// Tensors that an operation returns.
pub type Outputs = SmallVec<[Tensor; 2]>;

/// Gradients, one place for each input; `None` where none is needed or it is zero.
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// What a shape rule finds.
#[derive(Debug)]
pub enum Inferred {
    /// New tensors of just these metas (their offsets are 0).
    Exact(Metas),
    /// New tensors no larger than these; `measure` finds out.
    AtMost(Metas),
    /// No new memory: input 0's storage under another layout, or read as another dtype.
    View(Meta),
}

impl Inferred {
    /// One new tensor.
    #[inline]
    pub fn one(meta: Meta) -> Inferred {
        Inferred::Exact(Metas::from_buf([meta]))
    }
}

/// A set of inputs, as bits. Inputs past the 63rd share the last bit (`cat` of many tensors).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs(u64);

impl Needs {
    /// No input.
    pub const NONE: Needs = Needs(0);
    /// Every input.
    pub const ALL: Needs = Needs(u64::MAX);

    /// With input `index` in the set.
    #[must_use]
    pub const fn with(self, index: usize) -> Needs {
        Needs(self.0 | 1 << if index < 63 { index } else { 63 })
    }

    /// Whether input `index` is in the set.
    pub const fn has(self, index: usize) -> bool {
        self.0 & (1 << if index < 63 { index } else { 63 }) != 0
    }

    /// Whether the set is not empty.
    pub const fn any(self) -> bool {
        self.0 != 0
    }
}

/// What backward keeps alive: inputs and outputs by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saves {
    /// Inputs, as they were when the operation ran.
    pub inputs: Needs,
    /// Outputs.
    pub outputs: Needs,
}

impl Saves {
    /// Backward needs no values.
    pub const NOTHING: Saves = Saves { inputs: Needs::NONE, outputs: Needs::NONE };

    /// Backward needs input `index`.
    pub const fn input(index: usize) -> Saves {
        Saves { inputs: Needs::NONE.with(index), outputs: Needs::NONE }
    }

    /// Backward needs output `index`.
    pub const fn output(index: usize) -> Saves {
        Saves { inputs: Needs::NONE, outputs: Needs::NONE.with(index) }
    }

    /// Both, added up.
    #[must_use]
    pub const fn and(self, other: Saves) -> Saves {
        Saves {
            inputs: Needs(self.inputs.0 | other.inputs.0),
            outputs: Needs(self.outputs.0 | other.outputs.0),
        }
    }

    /// These if `condition`, else nothing.
    #[must_use]
    pub const fn when(self, condition: bool) -> Saves {
        if condition { self } else { Saves::NOTHING }
    }
}

/// What a derivative works from.
#[derive(Debug)]
pub struct Backward<'a> {
    /// The operation's name.
    pub operation: &'static str,
    /// Layout and dtype of each forward input; shapes are always known, values only if saved.
    pub inputs: &'a [Meta],
    /// Saved inputs by position (`None` if not declared in `saves`).
    pub saved_inputs: &'a [Option<Tensor>],
    /// Saved outputs by position.
    pub saved_outputs: &'a [Option<Tensor>],
    /// Whether hooks gave any of the saved tensors: then their memory may be somebody else's too.
    pub hooked: bool,
    /// Whether hooks look at the gradients of the outputs afterwards: then they are not written.
    pub seen: bool,
    /// The gradient of each output; `None` counts as zeros.
    pub grads: &'a [Option<Tensor>],
    /// Which inputs want a gradient.
    pub needs: Needs,
}

impl<'a> Backward<'a> {
    /// The gradient of the first output, which the engine makes sure exists.
    pub fn grad(&self) -> Result<&'a Tensor> {
        self.grads.first().and_then(Option::as_ref).ok_or_else(|| {
            Error::autograd(self.operation, "the gradient of its first output is missing")
        })
    }

    /// Forward input `index`, declared in `saves`.
    pub fn input(&self, index: usize) -> Result<&'a Tensor> {
        self.saved_inputs.get(index).and_then(Option::as_ref).ok_or_else(|| {
            Error::autograd(self.operation, format!("input {index} was not saved for backward"))
        })
    }

    /// Forward output `index`, declared in `saves`.
    pub fn output(&self, index: usize) -> Result<&'a Tensor> {
        self.saved_outputs.get(index).and_then(Option::as_ref).ok_or_else(|| {
            Error::autograd(self.operation, format!("output {index} was not saved for backward"))
        })
    }

    /// The gradient for input `index` by `make`, or `None` if nobody needs it.
    pub fn for_input(
        &self,
        index: usize,
        make: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        if self.needs.has(index) { make().map(Some) } else { Ok(None) }
    }
}
