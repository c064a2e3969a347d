//! The work of `cargo xtask bench operations`; `torch_operations.py` has PyTorch's under the same
//! names.

use std::hint::black_box;

use plimsoll_tensor::{
    AddcmulOptions, ConvOptions, DType, Device, GradOptions, GroupNormOptions,
    LinalgVectorNormOptions, MaxPoolOptions, Result, ScaledDotProductAttentionOptions, Tensor,
    TopkOptions, grad,
};

use crate::{Work, one};

/// The work of that name, with its inputs made.
pub(crate) fn work(name: &str) -> Result<Option<Work>> {
    let square = || normal(&[4096, 4096]);
    let whole = |limit: i64, sizes: &[i64]| Tensor::randint(0, limit, sizes, DType::I64);
    Ok(Some(match name {
        "conv2d_64_forward" => convolution(32, 64, 64, 56, 1, false)?,
        "conv2d_64" => convolution(32, 64, 64, 56, 1, true)?,
        "conv2d_3_to_16" => convolution(64, 3, 16, 32, 1, true)?,
        "conv2d_16_to_32" => convolution(64, 16, 32, 32, 1, true)?,
        "conv2d_depthwise_96_forward" => convolution(32, 96, 96, 56, 96, false)?,
        "conv2d_depthwise_96" => convolution(32, 96, 96, 56, 96, true)?,
        "max_pool2d_64mb" => step(vec![normal(&[64, 64, 64, 64])?], |x| {
            x[0].max_pool2d_with(2, MaxPoolOptions::new().stride(2))
        })?,
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
        "attention_causal" => {
            let heads = || normal(&[4, 8, 1024, 64]);
            step(vec![heads()?, heads()?, heads()?], |x| {
                let causal = ScaledDotProductAttentionOptions::new().is_causal(true);
                x[0].scaled_dot_product_attention_with(&x[1], &x[2], causal)
            })?
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

fn normal(sizes: &[i64]) -> Result<Tensor> {
    Tensor::randn(sizes, (DType::F32, Device::cpu()))
}

/// A kernel of 3 x 3 over square images.
fn convolution(
    batch: i64,
    from: i64,
    to: i64,
    side: i64,
    groups: i64,
    training: bool,
) -> Result<Work> {
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
