//! The layers of `layers.json` that are called with tensors alone, each made as its name says.

use plimsoll_nn as nn;
use plimsoll_nn::{
    AttentionMasks, AttentionWeights, BatchNormOptions, Buffer, ConvOptions, ConvTransposeOptions,
    Forward, LinearOptions, Module, MultiheadAttentionOptions, RecurrentNonlinearity,
    RecurrentOptions, TransformerActivation, TransformerLayerOptions,
};
use plimsoll_tensor::{
    Approximate, BagMode, Device, InterpolateMode, Mode, Padding, Reduction, Result, Tensor,
};
use serde_json::Value;

use crate::{check, one, three, two};

fn evaluated<M: Module>(module: M) -> M {
    module.eval();
    module
}

fn attention(m: &nn::MultiheadAttention, x: &[Tensor]) -> Result<Vec<Tensor>> {
    let (masks, mean) = (AttentionMasks::default(), AttentionWeights::Mean);
    let (output, weights) = m.call((&x[0], &x[1], &x[2], masks, mean))?;
    // Without weights the same comes from the other path.
    let plain = m.call((&x[0], &x[1], &x[2]))?;
    assert!(plain.allclose(&output)?);
    Ok([output].into_iter().chain(weights).collect())
}

/// Runs the case of a name; whether there is one.
pub(crate) fn run(case: &Value) -> Result<bool> {
    let name = case["name"].as_str().unwrap();
    macro_rules! cases {
        ($($expected:literal => $module:expr, $call:expr;)*) => {
            match name {
                $($expected => check(case, $module, $call)?,)*
                _ => return Ok(false),
            }
        };
    }
    let recurrent = RecurrentOptions::new;
    let layer = || TransformerLayerOptions::new().dim_feedforward(16).dropout(0.0);
    let buffer = |values: &[f64]| {
        let tensor = Tensor::from_slice(values, &[values.len() as i64], Device::cpu());
        tensor.map(|tensor| Buffer::new(&tensor))
    };
    cases! {
        "Linear(3, 2)" => nn::Linear::new(3, 2)?, one;
        "Linear(3, 2, bias=False)" => nn::Linear::with(3, 2, LinearOptions::new().bias(false))?, one;
        "Linear(6, 2)" => nn::Linear::new(6, 2)?, one;
        "Bilinear(3, 4, 2)" => nn::Bilinear::new(3, 4, 2)?, two;
        "Identity()" => nn::Identity::new(), one;
        "ReLU()" => nn::ReLU::new(), one;
        "ReLU6()" => nn::ReLU6::new(), one;
        "Hardtanh()" => nn::Hardtanh::new(), one;
        "Sigmoid()" => nn::Sigmoid::new(), one;
        "Hardsigmoid()" => nn::Hardsigmoid::new(), one;
        "Tanh()" => nn::Tanh::new(), one;
        "SiLU()" => nn::SiLU::new(), one;
        "Mish()" => nn::Mish::new(), one;
        "Hardswish()" => nn::Hardswish::new(), one;
        "ELU()" => nn::ELU::new(), one;
        "CELU()" => nn::CELU::new(), one;
        "SELU()" => nn::SELU::new(), one;
        "GLU()" => nn::GLU::new(), one;
        "GELU()" => nn::GELU::new(), one;
        "GELU('tanh')" => nn::GELU::new().approximate(Approximate::Tanh), one;
        "Hardshrink()" => nn::Hardshrink::new(), one;
        "Softshrink()" => nn::Softshrink::new(), one;
        "LeakyReLU()" => nn::LeakyReLU::new(), one;
        "LogSigmoid()" => nn::LogSigmoid::new(), one;
        "Softplus()" => nn::Softplus::new(), one;
        "Softsign()" => nn::Softsign::new(), one;
        "Tanhshrink()" => nn::Tanhshrink::new(), one;
        "PReLU()" => nn::PReLU::new()?, one;
        "PReLU(4)" => nn::PReLU::with(nn::PReLUOptions::new().num_parameters(4))?, one;
        "Threshold(0.1, 20.0)" => nn::Threshold::new(0.1, 20.0), one;
        "RReLU().eval()" => evaluated(nn::RReLU::new()), one;
        "Softmin(1)" => nn::Softmin::new(1), one;
        "Softmax(1)" => nn::Softmax::new(1), one;
        "LogSoftmax(-1)" => nn::LogSoftmax::new(-1), one;
        "Softmax2d()" => nn::Softmax2d::new(), one;
        "Conv1d(4, 6, 3, padding=1, groups=2)" =>
            nn::Conv1d::with(4, 6, 3, ConvOptions::new().padding(1).groups(2))?, one;
        "Conv2d(4, 6, (3, 2), stride=2, padding='valid', dilation=(1, 2))" => nn::Conv2d::with(
            4, 6, [3, 2], ConvOptions::new().stride(2).padding(Padding::Valid).dilation([1, 2]),
        )?, one;
        "Conv2d(4, 2, 3, padding=1, padding_mode='reflect', bias=False)" => nn::Conv2d::with(
            4, 2, 3, ConvOptions::new().padding(1).padding_mode(Mode::Reflect).bias(false),
        )?, one;
        "Conv2d(4, 2, 3, padding='same', padding_mode='circular')" => nn::Conv2d::with(
            4, 2, 3, ConvOptions::new().padding(Padding::Same).padding_mode(Mode::Circular),
        )?, one;
        "Conv3d(2, 2, 2)" => nn::Conv3d::new(2, 2, 2)?, one;
        "ConvTranspose1d(4, 2, 3, stride=2, output_padding=1)" => nn::ConvTranspose1d::with(
            4, 2, 3, ConvTransposeOptions::new().stride(2).output_padding(1),
        )?, one;
        "ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)" => nn::ConvTranspose2d::with(
            4, 6, 3, ConvTransposeOptions::new().stride(2).padding(1).groups(2),
        )?, one;
        "ConvTranspose3d(2, 2, 2)" => nn::ConvTranspose3d::new(2, 2, 2)?, one;
        "LayerNorm(6)" => nn::LayerNorm::new(6)?, one;
        "LayerNorm((4, 6), eps=1e-3, bias=False)" =>
            nn::LayerNorm::with([4, 6], nn::LayerNormOptions::new().eps(1e-3).bias(false))?, one;
        "RMSNorm(6)" => nn::RMSNorm::new(6)?, one;
        "RMSNorm((4, 6), eps=1e-3, elementwise_affine=False)" => nn::RMSNorm::with(
            [4, 6], nn::RMSNormOptions::new().eps(1e-3).elementwise_affine(false),
        )?, one;
        "GroupNorm(2, 4)" => nn::GroupNorm::new(2, 4)?, one;
        "LocalResponseNorm(3)" => nn::LocalResponseNorm::new(3), one;
        "BatchNorm1d(4)" => nn::BatchNorm1d::new(4)?, one;
        "BatchNorm1d(4, momentum=None)" =>
            nn::BatchNorm1d::with(4, BatchNormOptions::new().momentum(None))?, one;
        "BatchNorm2d(4, affine=False)" =>
            nn::BatchNorm2d::with(4, BatchNormOptions::new().affine(false))?, one;
        "BatchNorm2d(4).eval()" => evaluated(nn::BatchNorm2d::new(4)?), one;
        "BatchNorm3d(2, track_running_stats=False)" =>
            nn::BatchNorm3d::with(2, BatchNormOptions::new().track_running_stats(false))?, one;
        "InstanceNorm1d(4)" => nn::InstanceNorm1d::new(4)?, one;
        "InstanceNorm2d(4, affine=True, track_running_stats=True)" =>
            nn::InstanceNorm2d::with(4, BatchNormOptions::new())?, one;
        "InstanceNorm3d(2)" => nn::InstanceNorm3d::new(2)?, one;
        "Embedding(7, 3, padding_idx=-2)" =>
            nn::Embedding::with(7, 3, nn::EmbeddingOptions::new().padding_idx(-2))?, one;
        "EmbeddingBag(7, 3)" => nn::EmbeddingBag::new(7, 3)?, one;
        "EmbeddingBag(7, 3, mode='sum', padding_idx=1)" => nn::EmbeddingBag::with(
            7, 3, nn::EmbeddingBagOptions::new().mode(BagMode::Sum).padding_idx(1),
        )?, one;
        "Dropout(0.3).eval()" => evaluated(nn::Dropout::new().p(0.3)), one;
        "MaxPool1d(2)" => nn::MaxPool1d::new(2), one;
        "MaxPool2d(3, stride=2, padding=1)" => nn::MaxPool2d::new(3).stride(2).padding(1), one;
        "MaxPool3d((2, 3, 2))" => nn::MaxPool3d::new([2, 3, 2]), one;
        "AvgPool1d(2, padding=1)" => nn::AvgPool1d::new(2).padding(1), one;
        "AvgPool2d(3, stride=2, padding=1, count_include_pad=False)" =>
            nn::AvgPool2d::new(3).stride(2).padding(1).count_include_pad(false), one;
        "AvgPool3d(2)" => nn::AvgPool3d::new(2), one;
        "LPPool1d(2.0, 2)" => nn::LPPool1d::new(2.0, 2), one;
        "LPPool2d(2.0, 3, stride=1)" => nn::LPPool2d::new(2.0, 3).stride(1), one;
        "AdaptiveAvgPool1d(4)" => nn::AdaptiveAvgPool1d::new(4), one;
        "AdaptiveAvgPool2d((3, 2))" => nn::AdaptiveAvgPool2d::new([3, 2]), one;
        "AdaptiveAvgPool3d(2)" => nn::AdaptiveAvgPool3d::new(2), one;
        "AdaptiveMaxPool1d(4)" => nn::AdaptiveMaxPool1d::new(4), one;
        "AdaptiveMaxPool2d(3)" => nn::AdaptiveMaxPool2d::new(3), one;
        "AdaptiveMaxPool3d(2)" => nn::AdaptiveMaxPool3d::new(2), one;
        "ZeroPad1d(2)" => nn::ZeroPad1d::new(2), one;
        "ZeroPad2d((1, 2, 0, 3))" => nn::ZeroPad2d::new([1, 2, 0, 3]), one;
        "ReflectionPad1d(2)" => nn::ReflectionPad1d::new(2), one;
        "ReflectionPad2d((1, 2, 0, 3))" => nn::ReflectionPad2d::new([1, 2, 0, 3]), one;
        "ReplicationPad2d(1)" => nn::ReplicationPad2d::new(1), one;
        "ReplicationPad3d(1)" => nn::ReplicationPad3d::new(1), one;
        "CircularPad2d(2)" => nn::CircularPad2d::new(2), one;
        "ConstantPad2d(1, 3.5)" => nn::ConstantPad2d::new(1, 3.5), one;
        "Flatten()" => nn::Flatten::new(), one;
        "Unflatten(1, (2, 2))" => nn::Unflatten::new(1, [2, 2]), one;
        "PixelShuffle(2)" => nn::PixelShuffle::new(2), one;
        "PixelUnshuffle(2)" => nn::PixelUnshuffle::new(2), one;
        "ChannelShuffle(2)" => nn::ChannelShuffle::new(2), one;
        "Unfold((2, 3), padding=1, stride=2)" =>
            nn::Unfold::new([2, 3]).padding(1).stride(2), one;
        "Fold((4, 5), (2, 2))" => nn::Fold::new([4, 5], [2, 2]), one;
        "Upsample(scale_factor=2)" => nn::Upsample::new().scale_factor(vec![2.0]), one;
        "Upsample(size=(3, 9), mode='bilinear', align_corners=True)" =>
            nn::Upsample::new().size([3, 9]).mode(InterpolateMode::Linear).align_corners(true), one;
        "CosineSimilarity()" => nn::CosineSimilarity::new(), two;
        "PairwiseDistance(p=3.0)" => nn::PairwiseDistance::new().p(3.0), two;
        "MSELoss()" => nn::MSELoss::new(), two;
        "L1Loss(reduction='sum')" => nn::L1Loss::new().reduction(Reduction::Sum), two;
        "SmoothL1Loss(beta=0.5)" => nn::SmoothL1Loss::new().beta(0.5), two;
        "HuberLoss(delta=0.5)" => nn::HuberLoss::new().delta(0.5), two;
        "BCELoss()" => nn::BCELoss::new(), two;
        "BCEWithLogitsLoss(pos_weight=torch.tensor([0.5, 1, 2, 3, 4, 5]))" =>
            nn::BCEWithLogitsLoss::new().pos_weight(buffer(&[0.5, 1.0, 2.0, 3.0, 4.0, 5.0])?), two;
        "NLLLoss(reduction='none')" => nn::NLLLoss::new().reduction(Reduction::None), two;
        "CrossEntropyLoss()" => nn::CrossEntropyLoss::new(), two;
        "CrossEntropyLoss(weight=torch.tensor([1.0, 2, 3]), label_smoothing=0.1, ignore_index=1)" =>
            nn::CrossEntropyLoss::new()
                .weight(buffer(&[1.0, 2.0, 3.0])?)
                .label_smoothing(0.1)
                .ignore_index(1), two;
        "KLDivLoss(reduction='batchmean')" => nn::KLDivLoss::new().batchmean(true), two;
        "KLDivLoss(reduction='sum', log_target=True)" =>
            nn::KLDivLoss::new().reduction(Reduction::Sum).log_target(true), two;
        "PoissonNLLLoss(full=True)" => nn::PoissonNLLLoss::new().full(true), two;
        "GaussianNLLLoss(full=True)" => nn::GaussianNLLLoss::new().full(true), three;
        "SoftMarginLoss()" => nn::SoftMarginLoss::new(), two;
        "HingeEmbeddingLoss(margin=0.5)" => nn::HingeEmbeddingLoss::new().margin(0.5), two;
        "MarginRankingLoss(margin=0.1)" => nn::MarginRankingLoss::new().margin(0.1), three;
        "CosineEmbeddingLoss(margin=0.1)" => nn::CosineEmbeddingLoss::new().margin(0.1), three;
        "TripletMarginLoss(swap=True)" => nn::TripletMarginLoss::new().swap(true), three;
        "MultiLabelSoftMarginLoss()" => nn::MultiLabelSoftMarginLoss::new(), two;
        "MultiMarginLoss(p=2)" => nn::MultiMarginLoss::new().p(2), two;
        "RNN(3, 4, nonlinearity='relu')" =>
            nn::RNN::with(3, 4, recurrent().nonlinearity(RecurrentNonlinearity::Relu))?,
            |m, x| m.call(&x[0]).map(|(all, last)| vec![all, last]);
        "RNN(3, 4, bidirectional=True, batch_first=True)" =>
            nn::RNN::with(3, 4, recurrent().bidirectional(true).batch_first(true))?,
            |m, x| m.call(&x[0]).map(|(all, last)| vec![all, last]);
        "GRU(3, 4, num_layers=2)" => nn::GRU::with(3, 4, recurrent().num_layers(2))?,
            |m, x| m.call(&x[0]).map(|(all, last)| vec![all, last]);
        "LSTM(3, 4, num_layers=2, bidirectional=True)" =>
            nn::LSTM::with(3, 4, recurrent().num_layers(2).bidirectional(true))?,
            |m, x| m.call(&x[0]).map(|(all, (hidden, cell))| vec![all, hidden, cell]);
        "LSTM(3, 4, bias=False)" => nn::LSTM::with(3, 4, recurrent().bias(false))?,
            |m, x| m.call(&x[0]).map(|(all, (hidden, cell))| vec![all, hidden, cell]);
        "RNNCell(3, 4)" => nn::RNNCell::new(3, 4)?, one;
        "GRUCell(3, 4)" => nn::GRUCell::new(3, 4)?, one;
        "LSTMCell(3, 4)" => nn::LSTMCell::new(3, 4)?,
            |m, x| m.call(&x[0]).map(|(hidden, cell)| vec![hidden, cell]);
        "MultiheadAttention(8, 2)" => nn::MultiheadAttention::new(8, 2)?, attention;
        "MultiheadAttention(8, 2, kdim=6, vdim=5, add_bias_kv=True, add_zero_attn=True, batch_first=True)" =>
            nn::MultiheadAttention::with(
                8,
                2,
                MultiheadAttentionOptions::new()
                    .kdim(6)
                    .vdim(5)
                    .add_bias_kv(true)
                    .add_zero_attn(true)
                    .batch_first(true),
            )?, attention;
        "TransformerEncoderLayer(8, 2, 16, dropout=0.0)" =>
            nn::TransformerEncoderLayer::with(8, 2, layer())?, one;
        "TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation='gelu', batch_first=True, norm_first=True)" =>
            nn::TransformerEncoderLayer::with(
                8,
                2,
                layer().activation(TransformerActivation::Gelu).batch_first(true).norm_first(true),
            )?, one;
        "TransformerDecoderLayer(8, 2, 16, dropout=0.0)" =>
            nn::TransformerDecoderLayer::with(8, 2, layer())?, two;
        "Transformer(8, 2, 1, 2, 16, dropout=0.0)" =>
            nn::Transformer::new([8, 2], [1, 2], layer())?, two;
    }
    Ok(true)
}
