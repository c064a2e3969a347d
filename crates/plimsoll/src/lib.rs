//! Tensors with PyTorch's semantics in which every byte is accounted for.
//!
//! Plimsoll computes like PyTorch: its names, its rules of broadcasting and promotion, its
//! autograd. And it can always say where memory is, on the CPU too: how much is in use, what the
//! peak was, which line asked for it, what it is for, and why an allocation failed. This crate is
//! all that a program needs; the parts it is made of are the crates `plimsoll-core`,
//! `plimsoll-memory`, `plimsoll-kernels` and `plimsoll-tensor`. The [`guide`] has a page for each
//! task.
//!
//! # Tensors
//!
//! ```
//! use plimsoll::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let x = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
//! let y = (&x.t()? + 1.0)?.matmul(&x)?;
//! assert_eq!(y.shape(), [3, 3]);
//! println!("{y}"); // prints as PyTorch does
//! # Ok(())
//! # }
//! ```
//!
//! Methods have PyTorch's names; a trailing underscore writes in place, `_out` writes into a given
//! tensor. Whatever can fail returns a [`Result`], with an [`Error`] that names the operation, the
//! operands and the remedy. Sizes and dimensions are `i64`, so that -1 can mean "the last". Cloning
//! a [`Tensor`] shares its memory, as in Python; [`Tensor::clone_tensor`] copies. The memory goes
//! back the moment that the last handle is dropped.
//!
//! # Gradients
//!
//! ```
//! use plimsoll::{AddOptions, prelude::*};
//!
//! # fn main() -> Result<()> {
//! let w = Tensor::ones(&[3], DType::F32)?.requires_grad_(true)?;
//! let loss = (&w * &w)?.sum()?;
//! loss.backward()?;
//! assert_eq!(w.grad().expect("a leaf has a gradient").to_vec::<f32>()?, [2.0; 3]);
//!
//! // One step of gradient descent, which is not itself recorded.
//! no_grad(|| w.sub_with_(&w.grad().expect("as above"), AddOptions::new().alpha(0.1)).map(drop))?;
//! # Ok(())
//! # }
//! ```
//!
//! [`autograd`] has more: gradients of gradients, hooks, and a walk over what a live graph holds.
//!
//! # Memory
//!
//! ```
//! use plimsoll::{device, memory, prelude::*};
//!
//! # fn main() -> Result<()> {
//! // A CPU device of its own, so that nobody else's bytes are counted.
//! let cpu = device::private_cpu(&Default::default())?;
//! let scope = memory::peak_scope(cpu);
//! let x = Tensor::zeros(&[1 << 18], (DType::F32, cpu))?; // 1 MiB
//! let y = x.exp()?.sum()?; // another MiB, for a moment
//! assert_eq!(memory::memory_allocated(cpu), (1 << 20) + 512);
//! assert!(scope.allocated_bytes_peak() >= 2 << 20);
//!
//! // Who holds it?
//! let largest = memory::live_by_origin(cpu)[0];
//! assert_eq!(largest.origin.get().operation, "zeros");
//!
//! // Running out is an error with a report, and the program goes on.
//! memory::set_limit(cpu, Some(4 << 20));
//! let error = Tensor::zeros(&[1 << 24], (DType::F32, cpu)).unwrap_err();
//! assert!(error.is_out_of_memory());
//! # drop(y);
//! # Ok(())
//! # }
//! ```
//!
//! # Before there is memory
//!
//! A dry device takes the same path as the real one, without memory: the peak that it reports is
//! the peak that the run will have.
//!
//! ```
//! use plimsoll::{device, memory, prelude::*};
//!
//! # fn main() -> Result<()> {
//! let dry = device::dry(Device::cpu())?;
//! let x = Tensor::zeros(&[1 << 28], (DType::F32, dry))?; // 1 GiB of addresses
//! let _y = x.tanh()?;
//! assert_eq!(memory::max_memory_allocated(dry), 2 << 30);
//! # Ok(())
//! # }
//! ```

pub mod guide;

/// The README's program is a test too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use plimsoll_memory::{Configuration, ConfigurationBuilder};
pub use plimsoll_tensor::{
    AdamWOptions, AddOptions, AddcmulOptions, AminmaxOptions, Approximate, ArgOptions,
    ArgsortOptions, At, AutocastOptions, AutocastRegion, AvgPoolOptions, BagMode, BatchNormOptions,
    BinaryCrossEntropyOptions, BinaryCrossEntropyWithLogitsOptions, BincountOptions,
    BucketizeOptions, CdistOptions, CellOptions, CeluOptions, CholeskyOptions, ClampOptions,
    ComputeMode, ConvOptions, ConvTransposeOptions, CountNonzeroOptions, CovOptions,
    CrossEntropyOptions, CrossOptions, CtcLossOptions, DType, Device, DeviceKind, DiffOptions,
    DimList, DistOptions, DivOptions, Draws, Driver, EighOptions, Element, EluOptions,
    EmbeddingBagOptions, EmbeddingOptions, Error, ErrorKind, ExtremeOptions, EyeSize,
    GatherOptions, GeluOptions, Generator, GluOptions, GradientOptions, Graph, GraphCapture,
    GridMode, GridPadding, GridSampleOptions, GroupNormOptions, HardshrinkOptions, HardtanhOptions,
    HistcOptions, HistogramOptions, HuberLossOptions, Indexing, InplaceOptions, InterpolateMode,
    InterpolateOptions, Interpolation, IscloseOptions, IsinOptions, KthvalueOptions, L1LossOptions,
    LayerNormOptions, LeakyReluOptions, Lent, Limit, LinalgCondOptions, LinalgCrossOptions,
    LinalgInvExOptions, LinalgLstsqOptions, LinalgLuSolveOptions, LinalgMatrixNormOptions,
    LinalgNormOptions, LinalgPinvOptions, LinalgQrOptions, LinalgSolveOptions,
    LinalgSolveTriangularOptions, LinalgSvdOptions, LinalgTensorinvOptions,
    LinalgTensorsolveOptions, LinalgVecdotOptions, LinalgVectorNormOptions,
    LinearCrossEntropyOptions, LogitOptions, LogsumexpOptions, LpPoolOptions, LuOptions,
    LuUnpackOptions, MaxPoolOptions, MaxUnpoolOptions, MedianOptions, MemoryFormat, Mode,
    ModeOptions, MseLossOptions, NanToNumOptions, NllLossOptions, NormOptions, NormOrder,
    OrmqrOptions, Other, Padding, PaddingOption, PdistOptions, PinvTensorOptions, PinverseOptions,
    ProdOptions, ProductOptions, QrMode, QrOptions, QuantileOptions, RecurrentOptions,
    ReduceOptions, Reduction, Result, RoundOptions, RoundingMode, RreluOptions, SafeSoftmaxOptions,
    Scalar, ScaledDotProductAttentionOptions, ScanOptions, SearchsortedOptions, Sections, Side,
    SmoothL1LossOptions, SoftmaxOptions, SoftminOptions, SoftplusOptions, SortOptions, Subscript,
    SumOptions, SvdOptions, Tensor, TensorOptions, ThresholdOptions, To, TopkOptions,
    TrapezoidOptions, TriangularSolveOptions, Truth, TruthOptions, UniqueOptions, Uplo, VarOptions,
    ViewAs, WeakTensor, autocast, autocast_dtype, autocast_with, clear_autocast_cache,
    is_autocast_cache_enabled, is_autocast_enabled, manual_seed, manual_seed_on, ops, result_type,
    set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled,
};

pub use plimsoll_nn::optim;
pub use plimsoll_tensor::assert_no_leak;
pub use plimsoll_tensor::backends;
pub use plimsoll_tensor::device;
pub use plimsoll_tensor::optimizers;

/// What is recorded and how gradients are computed.
///
/// ```
/// use plimsoll::{autograd, prelude::*};
///
/// # fn main() -> Result<()> {
/// let x = Tensor::scalar(3.0, DType::F64)?.requires_grad_(true)?;
/// let cube = x.pow(3)?;
/// let options = autograd::GradOptions { create_graph: true, ..Default::default() };
/// let slope = autograd::grad(&[&cube], &[&x], options)?.remove(0).expect("x is in the graph");
/// assert_eq!(slope.item::<f64>()?, 27.0);
/// let bend = autograd::grad(&[&slope], &[&x], Default::default())?.remove(0);
/// assert_eq!(bend.expect("so is its slope").item::<f64>()?, 18.0);
/// # Ok(())
/// # }
/// ```
pub mod autograd {
    pub use plimsoll_tensor::{
        AllGrads, BackwardContext, BackwardOptions, Context, EnableGrad, FirstGrad, Function,
        GradFn, GradOptions, GradientPlace, GraphInput, GraphNode, HookHandle, InferenceMode,
        MultiGradHandle, MultiGradHook, NoGrad, Packed, SavedTensorsHooks, SavedTensorsScope,
        WeakGradFn, apply_function, backward, backward_between, enable_grad, grad, grad_between,
        graph_dot, graph_text, hessian, hvp, inference_mode, is_anomaly_check_nan_enabled,
        is_anomaly_enabled, is_grad_enabled, is_inference_mode_enabled, jacobian, no_grad,
        register_multi_grad_hook, save_on_host, saved_tensors_hooks, set_detect_anomaly,
        set_grad_enabled, vjp, walk,
    };
    pub use plimsoll_tensor::{
        CheckpointFailure, CheckpointOptions, CheckpointPolicy, CheckpointedOperation,
        GraphExecGroup, RecomputationStopped, SelectiveCheckpoint, SelectiveScope, Stage,
        Surroundings, checkpoint, checkpoint_reentrant, checkpoint_region, checkpoint_sequential,
        checkpoint_with,
    };
}

/// Statistics, peaks, origins, limits, history and snapshots of every device's memory; and the
/// context that origins are made from (modules, phases, training steps).
///
/// ```
/// use plimsoll::{device, memory, prelude::*};
///
/// # fn main() -> Result<()> {
/// let cpu = device::private_cpu(&Default::default())?;
/// let layer = memory::enter_module("encoder.0");
/// let x = Tensor::ones(&[8], (DType::F32, cpu))?;
/// drop(layer);
/// assert_eq!(memory::live_by_origin(cpu)[0].origin.get().module.to_string(), "encoder.0");
/// # drop(x);
/// # Ok(())
/// # }
/// ```
pub mod memory {
    pub use plimsoll_memory::{
        Annotation, AnnotationScope, ModuleScope, PhaseScope, Site, annotate, current_epoch,
        current_step, enter_module, enter_phase, next_epoch, next_step, set_epoch, set_step,
    };
    pub use plimsoll_tensor::memory::*;
}

/// Modules: layers with PyTorch's names, defaults and keys, and `#[derive(Module)]` for your own.
///
/// ```
/// use plimsoll::{nn, prelude::*};
///
/// #[derive(Module)]
/// struct Net {
///     hidden: nn::Linear,
///     out: nn::Linear,
/// }
///
/// impl Forward<&Tensor> for Net {
///     type Output = Tensor;
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.out.call(&self.hidden.call(x)?.relu()?)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let net = Net { hidden: nn::Linear::new(4, 8)?, out: nn::Linear::new(8, 1)? };
/// let loss = net.call(&Tensor::ones(&[2, 4], DType::F32)?)?.sum()?;
/// loss.backward()?;
/// assert_eq!(net.parameters().len(), 4);
/// # Ok(())
/// # }
/// ```
pub mod nn {
    pub use plimsoll_nn::*;
}

/// Files of tensors: PyTorch's `.pt`, safetensors, and checkpoints of training.
///
/// ```
/// use plimsoll::{files, nn, nn::StateDict, prelude::*};
///
/// # fn main() -> Result<()> {
/// # let path = std::env::temp_dir().join(format!("plimsoll-files-{}.pt", std::process::id()));
/// let model = nn::Linear::new(4, 2)?;
/// files::save(&path, &model.state_dict().into())?; // torch.load reads it
/// model.load_state_dict(&StateDict::try_from(&files::load(&path, Device::cpu())?)?)?;
/// # std::fs::remove_file(&path)?;
/// # Ok(())
/// # }
/// ```
pub mod files {
    pub use plimsoll_files::*;
}

/// Data loading: datasets, samplers, loaders whose waiting batches are bounded in bytes,
/// prefetchers to a device, and inputs larger than one in chunks.
///
/// ```
/// use plimsoll::{data, prelude::*};
///
/// # fn main() -> Result<()> {
/// let x = Tensor::arange(0, 10, 1, DType::F32)?.view(&[10, 1])?;
/// let options = data::LoaderOptions::new().batch_size(4usize).shuffle(true).num_workers(1usize);
/// let loader = data::DataLoader::new(data::TensorDataset::new(x)?, options)?;
/// let mut sum = 0.0;
/// for batch in loader.epoch()? {
///     sum += batch?.sum()?.item::<f32>()?;
/// }
/// assert_eq!(sum, 45.0);
/// # Ok(())
/// # }
/// ```
pub mod data {
    pub use plimsoll_data::*;
}

/// The profiler: time on host and device, bytes and floating point operations by operation, line
/// and module, as PyTorch's tables, traces and flame graphs; and why a program is slow, in words.
///
/// ```
/// use plimsoll::{prelude::*, profile::{Profile, TableOptions}};
///
/// # fn main() -> Result<()> {
/// let x = Tensor::ones(&[64, 64], DType::F32)?;
/// let recording = Profile::new().shapes(true).flops(true).run(|| x.mm(&x)?.exp().map(drop))?;
/// println!("{}", recording.report(&TableOptions::new().sort_by("cpu_time_total"))?);
/// let mm = recording.events().iter().find(|event| event.name == "aten::mm").expect("it ran");
/// assert_eq!((mm.flops, &mm.input_shapes[0][..]), (2 * 64 * 64 * 64, &[64, 64][..]));
/// # Ok(())
/// # }
/// ```
pub mod profile {
    pub use plimsoll_profile::*;
}

/// Figures of this program for `plimsoll top`, over a socket that only the same user can open.
///
/// ```
/// use plimsoll::live::{Server, ledger_figures, step_ended};
///
/// // Where no folder for the socket can be made there is no server, and the program goes on.
/// let server = Server::start(ledger_figures("my training"));
/// for _ in 0..3 {
///     // ... a step ...
///     step_ended();
/// }
/// drop(server);
/// ```
pub mod live {
    pub use plimsoll_live::*;
}

/// What most programs import.
pub mod prelude {
    pub use plimsoll_nn::{Forward, Module};
    pub use plimsoll_tensor::{
        DType, Device, Error, Result, Scalar, Tensor, TensorOptions, enable_grad, inference_mode,
        manual_seed, no_grad,
    };
}
