//! The layers of `layers.json` whose weights are computed, the LSTM whose states are projected, and
//! calls with packed sequences; and losses and pools that came late.

use plimsoll_nn as nn;
use plimsoll_nn::parametrizations::{
    OrthogonalMap, OrthogonalOptions, SpectralNormOptions, WeightNormOptions, orthogonal,
    orthogonal_with, spectral_norm, spectral_norm_with, weight_norm, weight_norm_with,
};
use plimsoll_nn::rnn::{
    PackOptions, PackedSequence, pack_padded_sequence_with, pad_packed_sequence,
};
use plimsoll_nn::{
    AdaptiveLogSoftmaxOptions, Buffer, Forward, FractionalPoolOptions,
    LinearCrossEntropyLossOptions, Module, RecurrentOptions,
};
use plimsoll_tensor::{DType, Result, Tensor};
use serde_json::Value;

use crate::{check, one, three, two};

/// The lengths of the sequences that the script packs.
const LENGTHS: [i64; 4] = [3, 5, 2, 5];

fn packed(x: &Tensor) -> Result<PackedSequence> {
    pack_padded_sequence_with(x, &LENGTHS, PackOptions::new().enforce_sorted(false))
}

/// Packed results, the same padded, and last states.
fn told(all: &PackedSequence, states: impl IntoIterator<Item = Tensor>) -> Result<Vec<Tensor>> {
    let (padded, lengths) = pad_packed_sequence(all)?;
    assert_eq!(lengths, LENGTHS);
    Ok([all.data.clone(), padded].into_iter().chain(states).collect())
}

fn lstm(m: &nn::LSTM, x: &[Tensor]) -> Result<Vec<Tensor>> {
    m.call(&x[0]).map(|(all, (hidden, cell))| vec![all, hidden, cell])
}

fn packed_lstm(m: &nn::LSTM, x: &[Tensor]) -> Result<Vec<Tensor>> {
    let (all, (hidden, cell)) = m.call(&packed(&x[0])?)?;
    told(&all, [hidden, cell])
}

fn adaptive(m: &nn::AdaptiveLogSoftmaxWithLoss, x: &[Tensor]) -> Result<Vec<Tensor>> {
    let (output, loss) = m.call((&x[0], &x[1]))?;
    // What is asked of one target is what is told of all.
    let all = m.log_prob(&x[0])?.gather(1, &x[1].unsqueeze(1)?)?.squeeze_with(1)?;
    assert!(all.allclose(&output)?);
    Ok(vec![output, loss])
}

fn evaluated<M: Module>(module: M) -> M {
    module.eval();
    module
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
    let by = |map: OrthogonalMap| OrthogonalOptions::new().orthogonal_map(map);
    cases! {
        "utils.parametrizations.weight_norm(nn.Linear(3, 2))" =>
            weight_norm(nn::Linear::new(3, 2)?)?, one;
        "utils.parametrizations.weight_norm(nn.Conv2d(4, 2, 3), dim=None)" => weight_norm_with(
            nn::Conv2d::new(4, 2, 3)?, WeightNormOptions::new().dim(None),
        )?, one;
        "utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 2, 3), dim=1)" => weight_norm_with(
            nn::ConvTranspose1d::new(4, 2, 3)?, WeightNormOptions::new().dim(1),
        )?, one;
        "utils.parametrizations.weight_norm(nn.GRU(3, 4), 'weight_hh_l0')" => weight_norm_with(
            nn::GRU::new(3, 4)?, WeightNormOptions::new().name("weight_hh_l0"),
        )?, |m, x| m.call(&x[0]).map(|(all, last)| vec![all, last]);
        "utils.parametrizations.spectral_norm(nn.Linear(3, 2))" =>
            spectral_norm(nn::Linear::new(3, 2)?)?, one;
        "utils.parametrizations.spectral_norm(nn.ConvTranspose2d(4, 2, 3), n_power_iterations=3)" =>
            spectral_norm_with(
                nn::ConvTranspose2d::new(4, 2, 3)?, SpectralNormOptions::new().n_power_iterations(3),
            )?, one;
        "utils.parametrizations.spectral_norm(nn.Conv1d(4, 2, 3)).eval()" =>
            evaluated(spectral_norm(nn::Conv1d::new(4, 2, 3)?)?), one;
        "utils.parametrizations.orthogonal(nn.Linear(3, 3))" =>
            orthogonal(nn::Linear::new(3, 3)?)?, one;
        "utils.parametrizations.orthogonal(nn.Linear(3, 5), orthogonal_map='cayley')" =>
            orthogonal_with(nn::Linear::new(3, 5)?, by(OrthogonalMap::Cayley))?, one;
        "utils.parametrizations.orthogonal(nn.Linear(5, 3), use_trivialization=False)" =>
            orthogonal_with(
                nn::Linear::new(5, 3)?, OrthogonalOptions::new().use_trivialization(false),
            )?, one;
        "LSTM(3, 4, proj_size=2)" => nn::LSTM::with(3, 4, recurrent().proj_size(2))?, lstm;
        "LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True, batch_first=True)" =>
            nn::LSTM::with(
                3,
                4,
                recurrent().proj_size(2).num_layers(2).bidirectional(true).batch_first(true),
            )?, lstm;
        "LSTM(3, 4, num_layers=2, bidirectional=True) of packed sequences" =>
            nn::LSTM::with(3, 4, recurrent().num_layers(2).bidirectional(true))?, packed_lstm;
        "LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=True) of packed sequences" =>
            nn::LSTM::with(3, 4, recurrent().proj_size(2).num_layers(2).bidirectional(true))?,
            packed_lstm;
        "GRU(3, 4, bidirectional=True) of packed sequences" =>
            nn::GRU::with(3, 4, recurrent().bidirectional(true))?, |m, x| {
                let (all, last) = m.call(&packed(&x[0])?)?;
                told(&all, [last])
            };
        "RNN(3, 4) of packed sequences" => nn::RNN::new(3, 4)?, |m, x| {
            // From given states, in the order of the sequences before packing.
            let (all, last) = m.call((&packed(&x[0])?, &x[1]))?;
            told(&all, [last])
        };
        "AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True)" =>
            nn::AdaptiveLogSoftmaxWithLoss::with(
                8, 20, &[4, 10], AdaptiveLogSoftmaxOptions::new().div_value(2.0).head_bias(true),
            )?, adaptive;
        "LinearCrossEntropyLoss(3, 5)" => nn::LinearCrossEntropyLoss::new(3, 5)?, two;
        "LinearCrossEntropyLoss(3, 5, bias=True, label_smoothing=0.1)" =>
            nn::LinearCrossEntropyLoss::with(
                3, 5, LinearCrossEntropyLossOptions::new().bias(true).label_smoothing(0.1),
            )?, two;
        "MultiLabelMarginLoss()" => nn::MultiLabelMarginLoss::new(), two;
        "TripletMarginWithDistanceLoss(swap=True)" =>
            nn::TripletMarginWithDistanceLoss::new().swap(true), three;
        "UpsamplingNearest2d(scale_factor=2)" =>
            nn::UpsamplingNearest2d::new().scale_factor(vec![2.0]), one;
        "UpsamplingBilinear2d(size=(3, 9))" => nn::UpsamplingBilinear2d::new().size([3, 9]), one;
        "CrossMapLRN2d(9, alpha=0.1, k=2.0)" => nn::CrossMapLRN2d::new(9).alpha(0.1).k(2.0), one;
        "FractionalMaxPool2d(2, output_size=(3, 2), _random_samples=torch.full((2, 4, 2), 0.3))" =>
            nn::FractionalMaxPool2d::new(2, FractionalPoolOptions::new().output_size([3, 2])
                .random_samples(Buffer::new(&Tensor::full(&[2, 4, 2], 0.3, DType::F32)?)))?, one;
        "FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.full((1, 2, 3), 0.6))" =>
            nn::FractionalMaxPool3d::new(2, FractionalPoolOptions::new().output_ratio(vec![0.5])
                .random_samples(Buffer::new(&Tensor::full(&[1, 2, 3], 0.6, DType::F32)?)))?, one;
    }
    Ok(true)
}
