//! Plimsoll's modules: layers with PyTorch's names, defaults and `state_dict` keys, and what is
//! done with their parameters and gradients.
//!
//! A model is a plain struct that derives [`Module`]; its fields are found by their types. What it
//! computes is [`Forward::forward`]; it is called by [`Forward::call`], which runs hooks and puts
//! the module's path into the origin of every byte. Read `module.rs` first, then `call.rs`.

// The derive names this crate from outside.
extern crate self as plimsoll_nn;

mod activation;
mod adaptive_softmax;
pub mod amp;
mod attention;
mod batch_norm;
mod buffer;
mod call;
mod checkpoint;
mod conv;
mod device_consistency;
mod display;
mod distance;
mod dropout;
mod embedding;
mod field;
mod fractional_pooling;
mod frames;
mod gradients;
mod hooks;
pub mod init;
mod lazy;
mod linear;
mod linear_cross_entropy;
mod locate;
mod loss;
mod margin_loss;
mod module;
mod name;
mod normalization;
pub mod optim;
mod options;
mod padding;
pub mod parametrizations;
pub mod parametrize;
mod pooling;
pub mod prune;
mod rearranging;
mod recurrent;
mod recurrent_cell;
pub mod rnn;
pub mod saved;
mod sequential;
mod state;
mod state_slot;
mod stateless;
mod training;
mod transformer;
mod triplet_loss;
mod values;
mod vector;
mod visit;
mod walk;

pub use activation::{
    CELU, ELU, GELU, GLU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid,
    LogSoftmax, Mish, PReLU, PReLUOptions, RReLU, ReLU, ReLU6, SELU, SiLU, Sigmoid, Softmax,
    Softmax2d, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink, Threshold,
};
pub use adaptive_softmax::{AdaptiveLogSoftmaxOptions, AdaptiveLogSoftmaxWithLoss};
pub use attention::{
    AttentionMasks, AttentionWeights, MultiheadAttention, MultiheadAttentionOptions,
    NonDynamicallyQuantizableLinear,
};
pub use batch_norm::{
    BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormOptions, InstanceNorm1d, InstanceNorm2d,
    InstanceNorm3d,
};
pub use buffer::Buffer;
pub use call::{Forward, Layer};
pub use checkpoint::{checkpoint, checkpoint_with};
pub use conv::{
    Conv1d, Conv2d, Conv3d, ConvOptions, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
    ConvTransposeOptions,
};
pub use device_consistency::check_device_consistency;
pub use display::write_tree;
pub use distance::{CosineSimilarity, PairwiseDistance};
pub use dropout::{AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout};
pub use embedding::{Embedding, EmbeddingBag, EmbeddingBagOptions, EmbeddingOptions};
pub use field::Field;
pub use fractional_pooling::{FractionalMaxPool2d, FractionalMaxPool3d, FractionalPoolOptions};
pub use gradients::{
    ClipOptions, clip_grad_norm_, clip_grad_norm_with, clip_grad_value_, total_norm,
};
pub use hooks::{Hooks, ModuleHook};
pub use lazy::{
    Lazy, LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyConv1d, LazyConv2d, LazyConv3d,
    LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyInstanceNorm1d,
    LazyInstanceNorm2d, LazyInstanceNorm3d, LazyLinear,
};
pub use linear::{Bilinear, Identity, Linear, LinearOptions};
pub use linear_cross_entropy::{LinearCrossEntropyLoss, LinearCrossEntropyLossOptions};
pub use loss::{
    BCELoss, BCEWithLogitsLoss, CTCLoss, CrossEntropyLoss, GaussianNLLLoss, HuberLoss, KLDivLoss,
    L1Loss, Lengths, MSELoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss,
};
pub use margin_loss::{
    CosineEmbeddingLoss, HingeEmbeddingLoss, MarginRankingLoss, MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss, MultiMarginLoss, SoftMarginLoss, TripletMarginLoss,
};
pub use module::Module;
pub use name::Name;
pub use normalization::{
    CrossMapLRN2d, GroupNorm, GroupNormOptions, LayerNorm, LayerNormOptions, LocalResponseNorm,
    RMSNorm, RMSNormOptions,
};
pub use padding::{
    CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d,
    ReplicationPad3d, ZeroPad1d, ZeroPad2d, ZeroPad3d,
};
pub use plimsoll_nn_derive::Module;
pub use plimsoll_tensor::Parameter;
pub use pooling::{
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d, MaxPool1d,
    MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d,
};
pub use rearranging::{
    ChannelShuffle, Flatten, Fold, PixelShuffle, PixelUnshuffle, Unflatten, Unfold, Upsample,
    UpsamplingBilinear2d, UpsamplingNearest2d,
};
pub use recurrent::{GRU, LSTM, RNN, RecurrentNonlinearity, RecurrentOptions};
pub use recurrent_cell::{GRUCell, LSTMCell, RNNCell, RecurrentCellOptions};
pub use sequential::Sequential;
pub use state::{IncompatibleKeys, LoadOptions, StateDict};
pub use state_slot::StateSlot;
pub use training::Training;
pub use transformer::{
    Transformer, TransformerActivation, TransformerDecoder, TransformerDecoderLayer,
    TransformerEncoder, TransformerEncoderLayer, TransformerLayerOptions,
};
pub use triplet_loss::TripletMarginWithDistanceLoss;
pub use values::Values;
pub use vector::{parameters_to_vector, vector_to_parameters};
pub use visit::{Elements, Visitor};
