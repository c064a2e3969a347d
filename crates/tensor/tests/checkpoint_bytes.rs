//! The bytes of checkpointed functions, by hand and to the byte, on the CPU, on the stand-in and in
//! dry runs of both: a multilayer perceptron and a transformer's block.

use plimsoll_tensor::device::StandIn;
use plimsoll_tensor::*;

/// A tensor of one element.
const LOSS: usize = 512;

/// Peaks of forward and of forward with backward, above what the parameters and inputs take; and
/// what is left between the two.
#[derive(Debug, PartialEq, Eq)]
struct Bytes {
    forward: usize,
    between: usize,
    whole: usize,
}

fn devices() -> [Device; 4] {
    let stand_in = StandIn { configuration: Some(Default::default()), ..StandIn::default() };
    let cpu = device::private_cpu(&Default::default()).unwrap();
    let stand_in = device::stand_in(stand_in).unwrap();
    [cpu, stand_in, device::dry(cpu).unwrap(), device::dry(stand_in).unwrap()]
}

fn measure(device: Device, forward: impl FnOnce() -> Result<Tensor>) -> Result<Bytes> {
    device::synchronize(device)?;
    memory::reset_peak_memory_stats(device);
    let before = memory::memory_allocated(device);
    let loss = forward()?;
    device::synchronize(device)?;
    let forward = memory::max_memory_allocated(device) - before;
    let between = memory::memory_allocated(device) - before;
    loss.backward()?;
    device::synchronize(device)?;
    Ok(Bytes { forward, between, whole: memory::max_memory_allocated(device) - before })
}

/// Bytes that a product of this device takes beside its result.
fn workspace(device: Device, a: &[i64], b: &[i64]) -> Result<usize> {
    let a = Tensor::full(a, 0.5, (DType::F32, device))?;
    let b = Tensor::full(b, 0.5, (DType::F32, device))?;
    device::synchronize(device)?;
    memory::reset_peak_memory_stats(device);
    let before = memory::memory_allocated(device);
    let product = a.matmul(&b)?;
    device::synchronize(device)?;
    Ok(memory::max_memory_allocated(device) - before - product.nbytes())
}

fn parameter(sizes: &[i64], device: Device) -> Result<Tensor> {
    Tensor::full(sizes, 0.01, (DType::F32, device))?.requires_grad_(true)
}

fn layer(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    x.matmul(weight)?.relu()
}

#[test]
fn a_multilayer_perceptron() -> Result<()> {
    for device in devices() {
        let x = Tensor::full(&[512, 64], 0.5, (DType::F32, device))?;
        let w = (0..6).map(|_| parameter(&[64, 64], device)).collect::<Result<Vec<_>>>()?;
        let (t, g) = (x.nbytes(), w[0].nbytes()); // an activation, a weight's gradient
        let product = workspace(device, &[512, 64], &[64, 64])?;
        let weights = workspace(device, &[64, 512], &[512, 64])?;
        // Of each layer the result of `relu` is kept, which is the next one's input.
        let plain = measure(device, || w.iter().try_fold(x.clone(), |x, w| layer(&x, w))?.sum())?;
        let expected = Bytes {
            // In the last layer: five results, its product and the sixth.
            forward: (6 * t + product).max(7 * t),
            between: 6 * t + LOSS,
            // In the last layer too: five results, the gradients of its product and of its input,
            // that of its weight and what computing it takes.
            whole: 7 * t + g + weights + LOSS,
        };
        assert_eq!(plain, expected, "{device}");
        w.iter().try_for_each(|w| w.set_grad(None))?;
        let checkpointed = measure(device, || {
            let two = |x: Tensor, w: &[Tensor]| {
                let w = w.to_vec();
                checkpoint(&[&x], move |inputs| layer(&layer(&inputs[0], &w[0])?, &w[1]))
            };
            w.chunks(2).try_fold(x.clone(), two)?.sum()
        })?;
        let expected = Bytes {
            // The inputs of the second and third pair, and within the third what a layer needs.
            forward: (4 * t + product).max(5 * t),
            between: 2 * t + LOSS,
            // The same two, the result of the fifth layer made again, and as above.
            whole: 5 * t + g + weights + LOSS,
        };
        assert_eq!(checkpointed, expected, "{device}");
    }
    Ok(())
}

/// Attention and a perceptron, each behind a normalization.
fn block(x: &Tensor, w: &[Tensor]) -> Result<Tensor> {
    let [batch, length, width] = [2i64, 64, 64];
    let heads = |x: &Tensor| x.reshape(&[batch, length, 2, width / 2])?.transpose(1, 2);
    let normal = x.layer_norm(&[width])?;
    let [q, k, v] = [0, 1, 2].map(|index| normal.matmul(&w[index]).and_then(|x| heads(&x)));
    let mixed = q?.scaled_dot_product_attention(&k?, &v?)?;
    let mixed = mixed.transpose(1, 2)?.reshape(&[batch, length, width])?.matmul(&w[3])?;
    let x = x.add(&mixed)?;
    x.add(&x.layer_norm(&[width])?.matmul(&w[4])?.gelu()?.matmul(&w[5])?)
}

#[test]
fn blocks_of_a_transformer() -> Result<()> {
    for device in devices() {
        let x = Tensor::full(&[2, 64, 64], 0.5, (DType::F32, device))?.requires_grad_(true)?;
        let sizes = [[64, 64], [64, 64], [64, 64], [64, 64], [64, 256], [256, 64]];
        let w = sizes.iter().map(|sizes| parameter(sizes, device)).collect::<Result<Vec<_>>>()?;
        let forget = || w.iter().chain([&x]).try_for_each(|w| w.set_grad(None));
        let plain = |blocks: usize| {
            let run = || (0..blocks).try_fold(x.clone(), |x, _| block(&x, &w))?.sum();
            let bytes = measure(device, run)?;
            forget().map(|()| bytes)
        };
        let checkpointed = |blocks: usize| {
            let whole = |x: Tensor, _| {
                let w = w.clone();
                checkpoint(&[&x], move |inputs| block(&inputs[0], &w))
            };
            let bytes = measure(device, || (0..blocks).try_fold(x.clone(), whole)?.sum())?;
            forget().map(|()| bytes)
        };
        let (t, g) = (x.nbytes(), w[0].nbytes());
        // Both normalizations' results; queries, keys, values; what attention gives; the sum behind
        // it; and, four times as wide, what `gelu` takes and gives.
        let wide = 15 * t;
        // A mean and a deviation for each of 128 rows, twice; a number for each row of both heads.
        let kept = wide + 4 * 512 + 1024;
        let (one, again) = (plain(1)?, checkpointed(1)?);
        assert_eq!(one.between, kept + LOSS, "{device}");
        for blocks in 2..4 {
            let before = blocks - 1;
            // Backward begins with the last block, and the others are kept with their results.
            let expected = Bytes {
                forward: one.forward + before * (kept + t),
                between: one.between + before * (kept + t),
                whole: one.whole + before * (kept + t),
            };
            assert_eq!(plain(blocks)?, expected, "{device}");
            // Of the others only the results are kept. The most is held in the block before the
            // last: one result less, its gradient, and a weight's gradient that is added to
            // another.
            let expected = Bytes {
                forward: again.forward + before * t,
                between: before * t + LOSS,
                whole: one.whole + before * t + g,
            };
            assert_eq!(checkpointed(blocks)?, expected, "{device}");
        }
        assert_eq!((again.between, again.whole), (LOSS, one.whole), "{device}");
    }
    Ok(())
}
