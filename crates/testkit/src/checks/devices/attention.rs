//! Attention of half types, forward and backward: on rows that the GPU's fast kernels take, and on
//! rows that they do not; and on queries, keys and values that are parts of one tensor.

use plimsoll_tensor::{
    BackwardOptions, DType, Device, GradOptions, Result, ScaledDotProductAttentionOptions, Tensor,
    device, grad, memory,
};

use super::{compare, values};

/// Heads of queries and of keys, queries, keys, the width of both and of values.
struct Shape {
    heads: [i64; 2],
    queries: i64,
    keys: i64,
    width: i64,
    values: i64,
    causal: bool,
}

/// Of one tile and of several, square and not, whole tiles and parts of them.
const SHAPES: [Shape; 6] = [
    Shape { heads: [3, 3], queries: 256, keys: 256, width: 64, values: 64, causal: true },
    Shape { heads: [4, 2], queries: 130, keys: 300, width: 40, values: 24, causal: false },
    Shape { heads: [2, 2], queries: 300, keys: 100, width: 128, values: 128, causal: true },
    Shape { heads: [2, 1], queries: 77, keys: 90, width: 72, values: 8, causal: true },
    Shape { heads: [1, 1], queries: 1, keys: 150, width: 64, values: 64, causal: false },
    Shape { heads: [2, 2], queries: 140, keys: 140, width: 20, values: 33, causal: true },
];

/// The result and the gradients of query, key and value, given the result's.
fn step(t: [Tensor; 4], causal: bool) -> Result<Vec<Tensor>> {
    let leaf = |t: &Tensor| t.detach().requires_grad_(true);
    let leaves = [leaf(&t[0])?, leaf(&t[1])?, leaf(&t[2])?];
    let options = ScaledDotProductAttentionOptions::new()
        .is_causal(causal)
        .enable_gqa(t[0].shape()[1] != t[1].shape()[1]);
    let y = leaves[0].scaled_dot_product_attention_with(&leaves[1], &leaves[2], options)?;
    let options = GradOptions { grad_outputs: vec![Some(t[3].clone())], ..GradOptions::default() };
    let found = grad(&[&y], &leaves.each_ref(), options)?;
    Ok([y.detach()].into_iter().chain(found.into_iter().flatten()).collect())
}

/// Results and gradients are the CPU's within the rounding of weights, and the same bits each time.
pub fn attention_of_half_types_agrees_with_the_cpu(device: Device) -> Result<()> {
    for (dtype, tolerance) in [(DType::F16, 5e-3), (DType::BF16, 3e-2)] {
        let made = |sizes: &[i64]| values(sizes.iter().product()).mul(0.3)?.view(sizes)?.to(dtype);
        for shape in &SHAPES {
            let Shape { heads: [heads, key_heads], queries, keys, width, .. } = *shape;
            let inputs = [
                made(&[2, heads, queries, width])?,
                made(&[2, key_heads, keys, width])?,
                made(&[2, key_heads, keys, shape.values])?,
                made(&[2, heads, queries, shape.values])?,
            ];
            compare(device, "attention", &inputs, tolerance, |t| {
                step([0, 1, 2, 3].map(|index| t[index].clone()), shape.causal)
            })?;
        }
        // Heads side by side in one tensor, as a layer makes them, and rows that start anywhere.
        let inputs = [made(&[2, 200, 3 * 2 * 64])?, made(&[2, 200, 2 * 64 + 1])?];
        for start in [0, 1] {
            compare(device, "attention in parts of a tensor", &inputs, tolerance, |t| {
                let part = |x: &Tensor, at: i64| {
                    x.narrow(2, at, 128)?.view(&[2, 200, 2, 64])?.transpose(1, 2)
                };
                let whole = &t[0];
                let [query, key, value] = [part(whole, 0)?, part(whole, 128)?, part(whole, 256)?];
                step([query, key, value, part(&t[1], start)?], true)
            })?;
        }
        let [x, given] = [inputs[0].to(device)?, inputs[1].to(device)?];
        let heads = |x: &Tensor| x.narrow(2, 0, 128)?.view(&[2, 200, 2, 64])?.transpose(1, 2);
        let again = || {
            let results = step([heads(&x)?, heads(&x)?, heads(&x)?, heads(&given)?], true)?;
            results.iter().map(Tensor::to_f64_vec).collect::<Result<Vec<_>>>()
        };
        assert_eq!(again()?, again()?, "attention of {dtype} on {device}");
    }
    Ok(())
}

/// The gradients of queries, keys and values that are parts of one tensor are its gradient as they
/// were written, without a copy, and have the bits of those of three tensors.
pub fn packed_heads_get_their_gradient_without_copies(device: Device) -> Result<()> {
    // Pieces are counted, to which chaos would add its own.
    device::set_chaos(device, None);
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let made = |sizes: &[i64]| {
            values(sizes.iter().product()).mul(0.3)?.view(sizes)?.to(dtype)?.to(device)
        };
        let parts = |x: &Tensor| x.view(&[2, 200, 3, 2, 64])?.permute(&[2, 0, 3, 1, 4])?.unbind(0);
        let x = made(&[2, 200, 3 * 2 * 64])?.requires_grad_(true)?;
        let gradient = made(&[2, 2, 200, 64])?;
        let y = {
            let past = ScaledDotProductAttentionOptions::new().is_causal(true);
            let cut = parts(&x)?;
            cut[0].scaled_dot_product_attention_with(&cut[1], &cut[2], past)?
        };
        let pieces = || memory::memory_stats(device).allocation.all.allocated;
        let before = pieces();
        let options =
            BackwardOptions { gradient: Some(gradient.clone()), ..BackwardOptions::default() };
        y.backward_with(options)?;
        assert_eq!(pieces() - before, 2, "a gradient and a workspace, {dtype} on {device}");
        let Some(found) = x.grad() else { panic!("{device} left no gradient") };
        assert_eq!((found.strides(), found.storage_nbytes()), (x.strides(), x.nbytes()));
        let cut = parts(&x.detach())?;
        let apart = [&cut[0], &cut[1], &cut[2], &gradient].map(Tensor::clone_tensor);
        let [query, key, value, gradient] = apart;
        let expected = step([query?, key?, value?, gradient?], true)?;
        for (found, expected) in parts(&found)?.iter().zip(&expected[1..]) {
            assert_eq!(found.to_f64_vec()?, expected.to_f64_vec()?, "{dtype} on {device}");
        }
    }
    Ok(())
}
