//! The work of `cargo xtask bench operations` on any device; `xtask/bench/torch_operations.py` has
//! PyTorch's under the same names. The processor's worker (`bin/bench_worker`) and the GPU bundle
//! serve it.

use std::hint::black_box;

use plimsoll_tensor::device::synchronize;
use plimsoll_tensor::{
    AddcmulOptions, BatchNormOptions, ConvOptions, DType, Device, GradOptions, GroupNormOptions,
    LinalgVectorNormOptions, MaxPoolOptions, RecurrentOptions, Result,
    ScaledDotProductAttentionOptions, Tensor, TopkOptions, grad, memory,
};

/// Something to run again and again.
pub type Work = Box<dyn FnMut() -> Result<()>>;

/// Work whose peak of memory is looked at, forward and backward.
pub const PEAKS: [&str; 4] =
    ["attention_8192", "conv2d_batch_256", "linear_cross_entropy_16384", "lstm_512"];

/// The most bytes that were allocated on `device` while the work's inputs were made and it ran
/// once; nothing if there is no such work.
pub fn peak_bytes(name: &str, device: Device) -> Result<Option<usize>> {
    memory::empty_cache(device);
    memory::reset_peak_memory_stats(device);
    let Some(mut work) = work(name, device)? else { return Ok(None) };
    work()?;
    synchronize(device)?;
    Ok(Some(memory::memory_stats(device).allocated_bytes.all.peak as usize))
}

/// The work of that name on `device`, with its inputs made; nothing if there is none.
pub fn work(name: &str, device: Device) -> Result<Option<Work>> {
    let normal = |sizes: &[i64]| Tensor::randn(sizes, (DType::F32, device));
    let square = || normal(&[4096, 4096]);
    let whole = |limit: i64, sizes: &[i64]| Tensor::randint(0, limit, sizes, (DType::I64, device));
    let convolution = |sizes: [i64; 5], training| convolution(sizes, training, device);
    Ok(Some(match name {
        "conv2d_64_forward" => convolution([32, 64, 64, 56, 1], false)?,
        "conv2d_64" => convolution([32, 64, 64, 56, 1], true)?,
        "conv2d_3_to_16" => convolution([64, 3, 16, 32, 1], true)?,
        "conv2d_16_to_32" => convolution([64, 16, 32, 32, 1], true)?,
        "conv2d_depthwise_96_forward" => convolution([32, 96, 96, 56, 96], false)?,
        "conv2d_depthwise_96" => convolution([32, 96, 96, 56, 96], true)?,
        "max_pool2d_64mb" => step(vec![normal(&[64, 64, 64, 64])?], |x| {
            x[0].max_pool2d_with(2, MaxPoolOptions::new().stride(2))
        })?,
        "batch_norm_64mb" => batch_norm(normal(&[64, 64, 64, 64])?)?,
        "group_norm_64mb" => {
            let (weight, bias) = (normal(&[64])?, normal(&[64])?);
            step(vec![normal(&[64, 64, 64, 64])?, weight, bias], |x| {
                x[0].group_norm_with(8, GroupNormOptions::new().weight(&x[1]).bias(&x[2]))
            })?
        }
        "cross_entropy_4096x32768" => {
            let target = whole(32_768, &[4096])?;
            step(vec![normal(&[4096, 32_768])?], move |x| x[0].cross_entropy(&target))?
        }
        "linear_cross_entropy_50304" => linear_cross_entropy(4096, device)?,
        "linear_cross_entropy_16384" => linear_cross_entropy(16_384, device)?,
        "lstm" => lstm(64, device)?,
        "lstm_512" => lstm(512, device)?,
        "conv2d_batch_256" => convolution([256, 64, 64, 56, 1], true)?,
        "attention_8192" => {
            let heads = || normal(&[1, 8, 8192, 64]);
            step(vec![heads()?, heads()?, heads()?], attend)?
        }
        "attention_causal" => {
            // A GPU is not busy with what a processor has enough of.
            let heads = || match device.is_cpu() {
                true => normal(&[4, 8, 1024, 64]),
                false => normal(&[16, 12, 1024, 64])?.to(DType::BF16),
            };
            step(vec![heads()?, heads()?, heads()?], attend)?
        }
        "embedding_50000x512" => {
            let rows = whole(50_000, &[16_384])?;
            step(vec![normal(&[50_000, 512])?], move |x| x[0].embedding(&rows))?
        }
        "cumsum_64mb" => one(square()?, |x| x.cumsum(-1)),
        "topk_64mb" => one(square()?, |x| Ok(x.topk_with(50, TopkOptions::new())?.0)),
        "index_select_64mb" => {
            let rows = whole(4096, &[4096])?;
            one(square()?, move |x| x.index_select(0, &rows))
        }
        "scatter_add_64mb" => {
            let (index, source) = (whole(4096, &[4096, 4096])?, square()?);
            one(square()?, move |x| x.scatter_add(1, &index, &source))
        }
        "unique_64mb" => one(whole(1_000_000, &[8_388_608])?, Tensor::unique),
        "argmax_64mb" => one(square()?, |x| x.argmax_with(-1)),
        "where_64mb" => {
            let (condition, other) = (square()?.gt(0.0)?, square()?);
            one(square()?, move |x| Tensor::where_(&condition, x, &other))
        }
        "clamp_64mb" => one(square()?, |x| x.clamp(-0.5, 0.5)),
        "lerp_64mb" => {
            let end = square()?;
            one(square()?, move |x| x.lerp(&end, 0.3))
        }
        "addcmul_64mb" => {
            let (a, b) = (square()?, square()?);
            one(square()?, move |x| x.addcmul_with(&a, &b, AddcmulOptions::new().value(0.5)))
        }
        "var_64mb" => one(square()?, |x| x.var_with(-1)),
        "logsumexp_64mb" => one(square()?, |x| x.logsumexp(&[-1])),
        "norm_64mb" => {
            one(square()?, |x| x.linalg_vector_norm_with(LinalgVectorNormOptions::new().dim(-1)))
        }
        _ => return Ok(None),
    }))
}

/// A function of one tensor; its result is dropped at once.
pub fn one(x: Tensor, function: impl Fn(&Tensor) -> Result<Tensor> + 'static) -> Work {
    Box::new(move || function(&x).map(|result| drop(black_box(result))))
}

/// A kernel of 3 x 3 over square images: batch, channels from and to, side, groups.
fn convolution(
    [batch, from, to, side, groups]: [i64; 5],
    training: bool,
    device: Device,
) -> Result<Work> {
    let normal = |sizes: &[i64]| Tensor::randn(sizes, (DType::F32, device));
    let x = normal(&[batch, from, side, side])?;
    let (weight, bias) = (normal(&[to, from / groups, 3, 3])?, normal(&[to])?);
    let convolve = move |x: &Tensor, weight: &Tensor, bias: &Tensor| {
        let options = ConvOptions::new().bias(bias).padding(1).groups(groups);
        x.conv2d_with(weight, options)
    };
    if training {
        return step(vec![x, weight, bias], move |x| convolve(&x[0], &x[1], &x[2]));
    }
    Ok(one(x, move |x| convolve(x, &weight, &bias)))
}

/// Queries, keys and values; no query sees later keys.
fn attend(x: &[Tensor]) -> Result<Tensor> {
    let causal = ScaledDotProductAttentionOptions::new().is_causal(true);
    x[0].scaled_dot_product_attention_with(&x[1], &x[2], causal)
}

/// The loss of `rows` predictions over a vocabulary of 50,304 words.
fn linear_cross_entropy(rows: i64, device: Device) -> Result<Work> {
    let options = (DType::F32, device);
    let target = Tensor::randint(0, 50_304, &[rows], (DType::I64, device))?;
    let weight = Tensor::randn(&[50_304, 768], options)?.mul(0.02)?;
    step(vec![Tensor::randn(&[rows, 768], options)?, weight], move |x| {
        x[0].linear_cross_entropy(&x[1], &target)
    })
}

/// Two layers, 256 wide, over some steps of 32 sequences.
fn lstm(steps: i64, device: Device) -> Result<Work> {
    let options = (DType::F32, device);
    let state = Tensor::zeros(&[2, 32, 256], options)?;
    let mut leaves = vec![Tensor::randn(&[steps, 32, 256], options)?];
    for sizes in [&[1024, 256][..], &[1024, 256], &[1024], &[1024]].repeat(2) {
        leaves.push(Tensor::randn(sizes, options)?.mul(0.05)?);
    }
    step(leaves, move |x| {
        let params: Vec<&Tensor> = x[1..].iter().collect();
        let options = RecurrentOptions::new().num_layers(2).train(true);
        Ok(x[0].lstm_with(&[&state, &state], &params, options)?.0)
    })
}

/// Normalises by channels, in training: forward and backward.
pub fn batch_norm(x: Tensor) -> Result<Work> {
    let (channels, options) = ([x.shape()[1] as i64], (DType::F32, x.device()));
    let (mean, var) = (Tensor::zeros(&channels, options)?, Tensor::ones(&channels, options)?);
    let leaves = vec![x, Tensor::ones(&channels, options)?, Tensor::zeros(&channels, options)?];
    step(leaves, move |x| {
        let options = BatchNormOptions::new().weight(&x[1]).bias(&x[2]).training(true);
        x[0].batch_norm_with(&mean, &var, options)
    })
}

/// A step of training: forward and backward.
fn step(
    leaves: Vec<Tensor>,
    forward: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Result<Work> {
    let leaves: Vec<Tensor> =
        leaves.into_iter().map(|leaf| leaf.requires_grad_(true)).collect::<Result<_>>()?;
    let given = forward(&leaves)?.detach().clone_tensor()?;
    Ok(Box::new(move || {
        let y = forward(&leaves)?;
        let options =
            GradOptions { grad_outputs: vec![Some(given.clone())], ..GradOptions::default() };
        let leaves: Vec<&Tensor> = leaves.iter().collect();
        grad(&[&y], &leaves, options).map(|grads| drop(black_box(grads)))
    }))
}
