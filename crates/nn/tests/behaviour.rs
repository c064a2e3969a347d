//! What golden values cannot show: first values' distributions, modes, masks, given states, lazily
//! made layers, clipping, and that a training step leaves nothing behind.

use plimsoll_memory::Kind;
use plimsoll_nn::init::{self, FanMode, Nonlinearity};
use plimsoll_nn::{
    AttentionMasks, AttentionWeights, BatchNorm1d, ClipOptions, Conv2d, ConvOptions, Dropout,
    Dropout2d, Embedding, EmbeddingOptions, Forward, GRU, LSTM, LazyBatchNorm1d, LazyConv2d,
    LazyLinear, Linear, LinearOptions, MSELoss, MaxPool2d, MaxUnpool2d, Module, MultiheadAttention,
    MultiheadAttentionOptions, Parameter, ReLU, RecurrentOptions, TransformerEncoderLayer,
    TransformerLayerOptions, clip_grad_norm_with, clip_grad_value_, parameters_to_vector,
    sequential, vector_to_parameters,
};
use plimsoll_tensor::{
    AddOptions, DType, Device, Result, Tensor, device, manual_seed, memory, no_grad,
};

/// Mean and standard deviation.
fn moments(x: &Tensor) -> Result<(f64, f64)> {
    let values = x.to(DType::F64)?.to_vec::<f64>()?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    Ok((mean, (squares / values.len() as f64).sqrt()))
}

fn assert_moments(what: &str, x: &Tensor, mean: f64, deviation: f64) -> Result<()> {
    let (found_mean, found) = moments(x)?;
    assert!((found_mean - mean).abs() < 0.05 * deviation, "{what}: mean {found_mean} for {mean}");
    assert!((found / deviation - 1.0).abs() < 0.05, "{what}: deviation {found} for {deviation}");
    Ok(())
}

#[test]
fn first_values_have_pytorchs_distributions() -> Result<()> {
    manual_seed(1);
    // Formulas of PyTorch's documentation, for a weight of [60, 50] and one of [20, 30, 3, 3].
    let weight = || Tensor::empty(&[60, 50], DType::F64);
    let even = |bound: f64| bound / 3f64.sqrt();
    let x = weight()?;
    init::xavier_uniform_(&x, 2.0)?;
    assert_moments("xavier_uniform_", &x, 0.0, even(2.0 * (6.0f64 / 110.0).sqrt()))?;
    init::xavier_normal_(&x, 1.0)?;
    assert_moments("xavier_normal_", &x, 0.0, (2.0f64 / 110.0).sqrt())?;
    init::kaiming_uniform_(&x, FanMode::FanOut, Nonlinearity::Relu)?;
    assert_moments("kaiming_uniform_", &x, 0.0, (2.0f64 / 60.0).sqrt())?;
    init::kaiming_normal_(&x, FanMode::FanIn, Nonlinearity::LeakyRelu(0.5))?;
    assert_moments("kaiming_normal_", &x, 0.0, (2.0f64 / 1.25 / 50.0).sqrt())?;
    let image = Tensor::empty(&[20, 30, 3, 3], DType::F64)?;
    assert_eq!(init::fan_in_and_fan_out(&image)?, (270, 180));
    init::kaiming_normal_(&image, FanMode::FanIn, Nonlinearity::Linear)?;
    assert_moments("kaiming_normal_ of a convolution", &image, 0.0, (1.0f64 / 270.0).sqrt())?;
    // A standard normal cut at -2 and 2 has this deviation (scipy.stats.truncnorm(-2, 2).std()).
    init::trunc_normal_(&x, 3.0, 0.5, 2.0, 4.0)?;
    assert_moments("trunc_normal_", &x, 3.0, 0.5 * 0.8796256610342398)?;
    init::sparse_(&x, 0.25, 1.0)?;
    for column in 0..50 {
        let zeros = x.select(1, column)?.eq(0.0)?.sum()?.item::<i64>()?;
        assert_eq!(zeros, 15, "a quarter of 60 rows");
    }
    init::eye_(&x)?;
    assert_eq!(x.sum()?.item::<f64>()?, 50.0);
    assert!(
        init::eye_(&image).is_err()
            && init::xavier_normal_(&Tensor::zeros(&[3], DType::F64)?, 1.0).is_err()
    );

    // Layers: a bound of 1 / sqrt(inputs), for weight and bias.
    let linear = Linear::new(400, 30)?;
    assert_moments("Linear.weight", &linear.weight.tensor(), 0.0, even(0.05))?;
    assert!(linear.bias.unwrap().tensor().abs()?.amax()?.item::<f32>()? <= 0.05);
    let conv = Conv2d::new(16, 32, 5)?;
    assert_moments("Conv2d.weight", &conv.weight.tensor(), 0.0, even(0.05))?;
    assert!(conv.bias.unwrap().tensor().abs()?.amax()?.item::<f32>()? <= 0.05);
    let table = Embedding::with(100, 50, EmbeddingOptions::new().padding_idx(3))?;
    assert_moments("Embedding.weight", &table.weight.tensor(), 0.0, 1.0)?;
    assert_eq!(table.weight.tensor().select(0, 3)?.to_vec::<f32>()?, [0.0; 50]);
    let lstm = LSTM::new(10, 100)?;
    for (key, parameter) in lstm.named_parameters() {
        assert_moments(&key, &parameter.tensor(), 0.0, even(0.1))?;
    }
    Ok(())
}

#[test]
fn dropout_drops_in_training_alone() -> Result<()> {
    manual_seed(2);
    let x = Tensor::ones(&[20, 50, 4, 4], DType::F64)?;
    let layer = Dropout2d::new().p(0.25);
    let y = layer.call(&x)?;
    // Whole channels: the mean of each is 0 or 4 / 3.
    let channels = y.mean_with([2, 3])?.to_vec::<f64>()?;
    assert!(channels.iter().all(|x| *x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-12));
    let dropped = channels.iter().filter(|x| **x == 0.0).count();
    assert!((200..300).contains(&dropped), "{dropped} of 1000");
    layer.eval();
    assert!(layer.call(&x)?.shares_storage_with(&x));
    assert!(Dropout::new().p(1.5).call(&x).unwrap_err().is_invalid_argument());
    Ok(())
}

#[test]
fn a_mask_a_flag_and_padding_say_the_same() -> Result<()> {
    manual_seed(3);
    let options = MultiheadAttentionOptions::new().batch_first(true).dtype(DType::F64);
    let attention = MultiheadAttention::with(8, 2, options)?;
    let x = Tensor::randn(&[3, 5, 8], DType::F64)?;
    let later = Tensor::ones(&[5, 5], DType::F64)?.triu(1)?.to(DType::Bool)?;
    let run = |masks: AttentionMasks<'_>, weights| attention.call((&x, &x, &x, masks, weights));
    let flag = AttentionMasks { is_causal: true, ..Default::default() };
    let mask = AttentionMasks { attn_mask: Some(&later), ..Default::default() };
    let (by_flag, none) = run(flag, AttentionWeights::None)?;
    let (by_mask, weights) = run(mask, AttentionWeights::EachHead)?;
    assert!(none.is_none() && by_flag.allclose(&by_mask)?);
    let weights = weights.unwrap();
    assert_eq!(weights.shape(), [3, 2, 5, 5]);
    assert_eq!(weights.select(2, 0)?.narrow(2, 1, 4)?.sum()?.item::<f64>()?, 0.0);

    // The last key hidden is as if it were not there.
    let padding = Tensor::from_bools(&[false, false, false, false, true], &[1, 5], Device::cpu())?;
    let padding = padding.expand(&[3, 5])?.contiguous()?;
    let hidden = AttentionMasks { key_padding_mask: Some(&padding), ..Default::default() };
    let (with, _) = run(hidden, AttentionWeights::None)?;
    let short = x.narrow(1, 0, 4)?;
    assert!(with.allclose(&attention.call((&x, &short, &short))?)?);
    assert!(attention.call((&x, &x.select(0, 0)?, &x)).unwrap_err().is_shape());
    assert!(MultiheadAttention::new(8, 3).unwrap_err().is_invalid_argument());
    Ok(())
}

#[test]
fn recurrent_layers_go_on_from_given_states() -> Result<()> {
    manual_seed(4);
    let options = || RecurrentOptions::new().num_layers(2).dtype(DType::F64);
    let lstm = LSTM::with(3, 4, options())?;
    let x = Tensor::randn(&[6, 2, 3], DType::F64)?;
    let (all, (hidden, cell)) = lstm.call(&x)?;
    let (_, (h, c)) = lstm.call(&x.narrow(0, 0, 2)?)?;
    let rest = x.narrow(0, 2, 4)?;
    let (tail, last) = lstm.call((&rest, (&h, &c)))?;
    assert!(tail.allclose(&all.narrow(0, 2, 4)?)?);
    assert!(last.0.allclose(&hidden)? && last.1.allclose(&cell)?);

    let gru = GRU::with(3, 4, options().batch_first(true))?;
    let (whole, _) = gru.call(&x.transpose(0, 1)?)?;
    assert_eq!(whole.shape(), [2, 6, 4]);
    assert!(gru.call(&Tensor::zeros(&[3], DType::F64)?).unwrap_err().is_shape());
    Ok(())
}

#[test]
fn pooling_with_places_is_undone() -> Result<()> {
    let x = Tensor::arange(0, 16, 1, DType::F32)?.view(&[1, 1, 4, 4])?;
    let (y, places) = MaxPool2d::new(2).with_indices(&x)?;
    let back = MaxUnpool2d::new(2).call((&y, &places))?;
    assert_eq!(back.shape(), x.shape());
    assert_eq!(back.sum()?.item::<f32>()?, 5.0 + 7.0 + 13.0 + 15.0);
    Ok(())
}

#[test]
fn lazy_layers_are_made_by_their_first_call() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let net = sequential![
        LazyConv2d::with(4, 3, ConvOptions::new().padding(1)),
        plimsoll_nn::Flatten::new(),
        LazyLinear::with(6, LinearOptions::new().bias(false)),
        LazyBatchNorm1d::new(),
    ];
    assert!(net.state_dict().is_empty());
    assert!(net.to_string().contains("(2): LazyLinear()"));
    net.eval();
    let y = net.call(&Tensor::ones(&[2, 3, 5, 5], (DType::F64, own))?)?;
    assert_eq!((y.shape(), y.dtype()), (&[2, 6][..], DType::F64));
    let keys: Vec<String> = net.state_dict().keys().map(str::to_string).collect();
    let expected = [
        "0.weight",
        "0.bias",
        "2.weight",
        "3.weight",
        "3.bias",
        "3.running_mean",
        "3.running_var",
        "3.num_batches_tracked",
    ];
    assert_eq!(keys, expected);
    assert_eq!(net.state_dict().get("2.weight").unwrap().shape(), [6, 100]);
    // The mode that was set before holds: no batch was counted.
    let tracked = net.state_dict().get("3.num_batches_tracked").unwrap().item::<i64>()?;
    assert_eq!((tracked, net.is_training()), (0, false));
    let wrong = LazyConv2d::new(4, 3).call(&Tensor::zeros(&[5], DType::F32)?);
    assert!(wrong.unwrap_err().is_shape());
    Ok(())
}

#[test]
fn gradients_are_clipped() -> Result<()> {
    let parameters = [
        Parameter::new(&Tensor::ones(&[3], DType::F64)?)?,
        Parameter::new(&Tensor::ones(&[2, 2], DType::F64)?)?,
        Parameter::new(&Tensor::ones(&[7], DType::F64)?)?, // without a gradient
    ];
    let fill = || -> Result<()> {
        for (parameter, value) in parameters.iter().zip([2.0, -1.0]) {
            let tensor = parameter.tensor();
            tensor.set_grad(Some(&tensor.detach().full_like(value)?))?;
        }
        Ok(())
    };
    let grad = |at: usize| parameters[at].tensor().grad().unwrap().to_vec::<f64>();
    // (order, norm): the norms of [2, 2, 2, -1, -1, -1, -1] by hand.
    for (order, norm) in [(2.0, 4.0), (1.0, 10.0), (f64::INFINITY, 2.0)] {
        fill()?;
        let options = ClipOptions::new().norm_type(order);
        let found = clip_grad_norm_with(&parameters, 0.5, options)?.item::<f64>()?;
        assert!((found - norm).abs() < 1e-12, "order {order}: {found}");
        assert!((grad(0)?[0] - 2.0 * 0.5 / (norm + 1e-6)).abs() < 1e-12);
        assert!((grad(1)?[3] + 0.5 / (norm + 1e-6)).abs() < 1e-12);
    }
    fill()?;
    clip_grad_norm_with(&parameters, 100.0, ClipOptions::new())?;
    assert_eq!(grad(0)?, [2.0; 3]);
    clip_grad_value_(&parameters, 1.5)?;
    assert_eq!((grad(0)?, grad(1)?), (vec![1.5; 3], vec![-1.0; 4]));
    parameters[0].tensor().grad().unwrap().fill_(f64::NAN)?;
    let strict = ClipOptions::new().error_if_nonfinite(true);
    assert!(clip_grad_norm_with(&parameters, 1.0, strict).unwrap_err().is_invalid_argument());
    assert_eq!(clip_grad_norm_with(&[], 1.0, ClipOptions::new())?.item::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn parameters_are_a_vector_and_back() -> Result<()> {
    let (from, to) = (Linear::new(2, 3)?, Linear::new(2, 3)?);
    let vector = parameters_to_vector(&from.parameters())?;
    vector.sum()?.backward()?;
    assert_eq!(from.weight.tensor().grad().unwrap().to_vec::<f32>()?, [1.0; 6]);
    vector_to_parameters(&vector, &to.parameters())?;
    assert!(to.weight.tensor().equal(&from.weight.tensor())?);
    assert!(to.weight.tensor().requires_grad() && to.weight.tensor().is_leaf());
    let short = Tensor::zeros(&[8], DType::F32)?;
    assert!(vector_to_parameters(&short, &to.parameters()).unwrap_err().is_shape());
    Ok(())
}

/// One step of a small network: every byte has its kind, and all are given back.
#[test]
fn a_training_step_leaves_parameters_alone_and_nothing_after_the_drop() -> Result<()> {
    manual_seed(5);
    let own = device::private_cpu(&Default::default())?;
    let net = sequential![
        Linear::with(128, 128, LinearOptions::new().device(own))?,
        ReLU::new(),
        Linear::with(128, 128, LinearOptions::new().device(own))?,
    ];
    let parameters = net.parameters();
    let bytes: usize = parameters.iter().map(|parameter| parameter.tensor().nbytes()).sum();
    let x = Tensor::randn(&[32, 128], (DType::F32, own))?.mark_input();
    let of = |kind: Kind| {
        memory::live_by_kind(own)
            .into_iter()
            .find(|row| row.kind == kind)
            .map_or(0, |row| row.bytes)
    };
    assert_eq!(of(Kind::Parameter), bytes);
    let mut losses = Vec::new();
    for _ in 0..20 {
        let loss = MSELoss::new().call((&net.call(&x)?, &x))?;
        loss.backward()?;
        assert_eq!((of(Kind::Parameter), of(Kind::Gradient)), (bytes, bytes));
        no_grad(|| {
            parameters.iter().try_for_each(|parameter| {
                let tensor = parameter.tensor();
                let grad = tensor.grad().expect("backward left one");
                tensor.sub_with_(&grad, AddOptions::new().alpha(1.0)).map(drop)
            })
        })?;
        net.zero_grad()?;
        assert_eq!(of(Kind::Gradient), 0);
        losses.push(loss.item::<f32>()?);
    }
    assert!(losses[19] < 0.8 * losses[0], "{losses:?}");
    drop((net, parameters, x));
    assert_eq!(memory::memory_allocated(own), 0);
    Ok(())
}

#[test]
fn a_backward_pass_copies_no_gradient_of_a_linear_layer() -> Result<()> {
    let own = device::private_cpu(&Default::default())?;
    let layer = Linear::with(256, 256, LinearOptions::new().bias(false).device(own))?;
    let x = Tensor::ones(&[4, 256], (DType::F32, own))?.mark_input();
    let loss = layer.call(&x)?.sum()?;
    let before = memory::memory_allocated(own);
    let scope = memory::peak_scope(own);
    loss.backward()?;
    // The weight's gradient once, and what is smaller than it by far.
    let above = scope.allocated_bytes_peak() as usize - before as usize;
    assert!((256 * 256 * 4..256 * 256 * 4 + 16384).contains(&above), "{above} bytes");
    Ok(())
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() -> Result<()> {
    let error = Conv2d::with(3, 4, 3, ConvOptions::new().groups(2)).unwrap_err();
    assert!(error.to_string().contains("in_channels must be divisible by groups"), "{error}");
    let error = Conv2d::new(3, 4, [3, 3, 3]).unwrap_err();
    assert!(error.to_string().contains("kernel_size is one number, or 2 of them"), "{error}");
    let error = BatchNorm1d::new(3)?.call(&Tensor::zeros(&[1, 3], DType::F32)?).unwrap_err();
    assert!(error.to_string().contains("Expected more than 1 value per channel"), "{error}");
    let error = BatchNorm1d::new(3)?.call(&Tensor::zeros(&[3], DType::F32)?).unwrap_err();
    assert!(error.to_string().contains("expected 2D or 3D input (got 1D input)"), "{error}");
    let error = Embedding::with(3, 2, EmbeddingOptions::new().padding_idx(3)).unwrap_err();
    assert!(error.to_string().contains("Padding_idx must be within num_embeddings"), "{error}");
    assert!(Linear::new(2, -1).is_err());
    let layer = TransformerEncoderLayer::with(6, 4, TransformerLayerOptions::new());
    assert!(layer.unwrap_err().is_invalid_argument());
    Ok(())
}
