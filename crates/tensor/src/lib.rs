//! Plimsoll's tensors: storage, dispatch, operations and autograd.
//!
//! Read `dispatch` first: every operation takes that one path. `api` is what users call, `ops` what
//! operations are (their loops are in the `kernels` crate), `storage` whose bytes they are,
//! `autograd` what is remembered, `device` where it all happens.

mod api;
mod autocast;
mod autograd;
pub mod backends;
mod checkpoint;
mod companion;
mod cuda;
mod default_dtype;
pub mod device;
mod dispatch;
mod display;
mod drop_iteratively;
mod generator;
mod graph;
mod launch;
mod lock;
pub mod memory;
pub mod observe;
mod op_info;
pub mod operation;
mod ops;
mod prepare;
mod promotion;
mod random;
#[doc(hidden)]
pub mod signature;
mod storage;
mod summaries;
mod tensor;

pub use api::activation::{
    CeluOptions, EluOptions, GluOptions, HardshrinkOptions, HardtanhOptions, InplaceOptions,
    LeakyReluOptions, RreluOptions, SoftminOptions, SoftplusOptions, ThresholdOptions,
};
pub use api::adamw::AdamWOptions;
pub use api::aten::SafeSoftmaxOptions;
pub use api::attention::ScaledDotProductAttentionOptions;
pub use api::batch_norm::BatchNormOptions;
pub use api::binary::{AddOptions, DivOptions, RoundingMode};
pub use api::clamp::{ClampOptions, Limit};
pub use api::conv::{ConvOptions, ConvTransposeOptions, Padding, PaddingOption};
pub use api::copy::{CopyOptions, To};
pub use api::create::{EyeSize, fits};
pub use api::ctc::CtcLossOptions;
pub use api::derived::IscloseOptions;
pub use api::distance::{CdistOptions, ComputeMode, PdistOptions};
pub use api::embedding::{BagMode, EmbeddingBagOptions, EmbeddingOptions};
pub use api::extremes::{AminmaxOptions, ExtremeOptions};
pub use api::finite_differences::GradientOptions;
pub use api::foreign::Lent;
pub use api::grid::{GridMode, GridPadding, GridSampleOptions};
pub use api::group_norm::GroupNormOptions;
pub use api::interpolate::{InterpolateMode, InterpolateOptions};
pub use api::linalg::{
    CholeskyOptions, CrossOptions, Driver, EighOptions, LinalgCondOptions, LinalgCrossOptions,
    LinalgInvExOptions, LinalgLstsqOptions, LinalgLuSolveOptions, LinalgPinvOptions,
    LinalgQrOptions, LinalgSolveOptions, LinalgSolveTriangularOptions, LinalgSvdOptions,
    LinalgTensorinvOptions, LinalgTensorsolveOptions, LinalgVecdotOptions, LuOptions,
    LuUnpackOptions, OrmqrOptions, PinvTensorOptions, PinverseOptions, ProductOptions, QrMode,
    QrOptions, SvdOptions, TriangularSolveOptions, Uplo,
};
pub use api::linear_cross_entropy::LinearCrossEntropyOptions;
pub use api::loss::{
    BinaryCrossEntropyOptions, BinaryCrossEntropyWithLogitsOptions, CrossEntropyOptions,
    HuberLossOptions, L1LossOptions, MseLossOptions, NllLossOptions, Reduction,
    SmoothL1LossOptions,
};
pub use api::lp_pool::LpPoolOptions;
pub use api::membership::IsinOptions;
pub use api::nn::{LayerNormOptions, SoftmaxOptions};
pub use api::norm::{
    DistOptions, LinalgMatrixNormOptions, LinalgNormOptions, LinalgVectorNormOptions,
    LogsumexpOptions, NormOptions, NormOrder,
};
pub use api::numeric::{LogitOptions, NanToNumOptions, RoundOptions};
pub use api::options::{DimList, TensorOptions};
pub use api::pad::Mode;
pub use api::parameter::{Parameter, StandIn};
pub use api::pool::{AvgPoolOptions, MaxPoolOptions};
pub use api::recurrent::{CellOptions, RecurrentOptions};
pub use api::reduce::{
    ArgOptions, CountNonzeroOptions, ProdOptions, ReduceOptions, SumOptions, TruthOptions,
};
pub use api::scan::{DiffOptions, ScanOptions, TrapezoidOptions};
pub use api::scatter::GatherOptions;
pub use api::search::{
    BincountOptions, BucketizeOptions, HistcOptions, HistogramOptions, SearchsortedOptions, Side,
};
pub use api::sort::{ArgsortOptions, KthvalueOptions, ModeOptions, SortOptions, TopkOptions};
pub use api::split::Sections;
pub use api::stacks::Indexing;
pub use api::statistics::{CovOptions, Interpolation, MedianOptions, QuantileOptions, VarOptions};
pub use api::subscript::{At, Subscript};
pub use api::ternary::AddcmulOptions;
pub use api::unary::{Approximate, GeluOptions};
pub use api::unique::UniqueOptions;
pub use api::unpool::MaxUnpoolOptions;
pub use api::views::ViewAs;
pub use autocast::{
    AutocastOptions, AutocastRegion, ListedCall, autocast, autocast_dtype, autocast_with,
    clear_autocast_cache, is_autocast_cache_enabled, is_autocast_enabled,
    set_autocast_cache_enabled, set_autocast_dtype, set_autocast_enabled,
};
pub use autograd::{
    AllGrads, BackwardOptions, EnableGrad, FirstGrad, GradFn, GradOptions, GradientPlace,
    GraphInput, GraphNode, Hook, HookHandle, InferenceMode, MultiGradHandle, MultiGradHook, NoGrad,
    WeakGradFn, backward, backward_between, enable_grad, grad, grad_between, graph_dot, graph_text,
    hessian, hvp, inference_mode, is_anomaly_check_nan_enabled, is_anomaly_enabled,
    is_grad_enabled, is_inference_mode_enabled, jacobian, no_grad, queue_callback,
    register_multi_grad_hook, set_detect_anomaly, set_grad_enabled, vjp, walk,
};
pub use autograd::{
    BackwardContext, Context, Function, Packed, SavedTensorsHooks, SavedTensorsScope,
    apply_function, save_on_host, saved_tensors_hooks,
};
pub use checkpoint::{
    CheckpointFailure, CheckpointOptions, CheckpointPolicy, CheckpointedOperation, GraphExecGroup,
    RecomputationStopped, SelectiveCheckpoint, SelectiveScope, Stage, Surroundings, checkpoint,
    checkpoint_apart, checkpoint_reentrant, checkpoint_region, checkpoint_sequential,
    checkpoint_with, is_checkpoint_valid,
};
pub use default_dtype::{default_dtype, dtype_beside_number, set_default_dtype};
pub use device::{Event, Stream, StreamScope, with_stream};
pub use dispatch::calls_foreign_code;
pub use display::{PrintOptions, print_options, set_print_options};
pub use generator::{Draws, Generator, RngState};
pub use graph::{Graph, GraphCapture};
pub use ops::index::Reduce;
pub use ops::{OPS, ops};
pub use plimsoll_core::{
    DType, Device, DeviceKind, Error, ErrorKind, MemoryFormat, Result, Scalar,
};
pub use plimsoll_kernels::{CpuLaunch, Element, Meta, Operand, Truth, Workspace, parallel};
pub use promotion::{Other, result_type};
pub use random::{
    RngCapture, RngFork, RngReplay, fork_rng, get_rng_state, manual_seed, manual_seed_on,
    set_rng_state, with_generator,
};
pub use storage::Storage;
pub use tensor::{Tensor, WeakTensor};

/// What a fused step of an optimizer takes: rules, tensors and numbers; see
/// [`Tensor::optimizer_step_`].
pub mod optimizers {
    pub use crate::api::optim::{StepCounts, StepOptions, StepTensors};
    pub use plimsoll_kernels::cpu::optim::{
        Adadelta, Adagrad, Adam, Adamax, Lion, NAdam, RAdam, RmsProp, Rprop, Rule as OptimizerRule,
        Sgd,
    };
}
