//! Convolutions by cuDNN beside those by kernels of our own: forward and all three gradients,
//! within the rounding of their factors, and the same bits each time.

use plimsoll_cuda::cudnn_convolutions;
use plimsoll_tensor::backends::cudnn;
use plimsoll_tensor::{
    ConvOptions, DType, Device, GradOptions, MemoryFormat, Result, Tensor, To, grad,
};

use super::{Kept, values};

/// Sizes of input and weight, stride, padding, dilation, groups.
struct Shape {
    x: &'static [i64],
    weight: &'static [i64],
    stride: i64,
    padding: i64,
    dilation: i64,
    groups: i64,
}

const fn shape(x: &'static [i64], weight: &'static [i64], numbers: [i64; 4]) -> Shape {
    let [stride, padding, dilation, groups] = numbers;
    Shape { x, weight, stride, padding, dilation, groups }
}

/// Of one, two and three dimensions, plain and with everything.
const SHAPES: [Shape; 6] = [
    shape(&[4, 16, 12, 12], &[24, 16, 3, 3], [1, 1, 1, 1]),
    shape(&[3, 5, 9, 11], &[7, 5, 3, 2], [2, 1, 1, 1]),
    shape(&[2, 8, 13, 10], &[12, 4, 3, 3], [1, 2, 2, 2]),
    shape(&[5, 6, 40], &[9, 6, 5], [3, 2, 1, 1]),
    shape(&[2, 8, 6, 7, 8], &[16, 8, 3, 3, 3], [1, 1, 1, 1]),
    shape(&[2, 96, 9, 9], &[96, 1, 3, 3], [1, 1, 1, 96]),
];

impl Shape {
    fn convolve(&self, x: &Tensor, weight: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let options = ConvOptions::new()
            .bias(bias)
            .stride(self.stride)
            .padding(self.padding)
            .dilation(self.dilation)
            .groups(self.groups);
        match self.x.len() {
            3 => x.conv1d_with(weight, options),
            4 => x.conv2d_with(weight, options),
            _ => x.conv3d_with(weight, options),
        }
    }

    /// The result and the gradients of [x, weight, bias], given the result's.
    fn step(&self, [x, weight, bias, given]: &[Tensor; 4]) -> Result<Vec<Tensor>> {
        let leaf = |t: &Tensor| t.detach().requires_grad_(true);
        let leaves = [leaf(x)?, leaf(weight)?, leaf(bias)?];
        let y = self.convolve(&leaves[0], &leaves[1], &leaves[2])?;
        let grad_outputs = vec![Some(given.clone())];
        let options = GradOptions { grad_outputs, ..GradOptions::default() };
        let found = grad(&[&y], &leaves.each_ref(), options)?;
        Ok([y.detach()].into_iter().chain(found.into_iter().flatten()).collect())
    }

    /// [x, weight, bias, the result's gradient], as numbers of `dtype`.
    fn inputs(&self, dtype: DType) -> Result<[Tensor; 4]> {
        let made = |sizes: &[i64], factor: f64| {
            values(sizes.iter().product()).mul(factor)?.view(sizes)?.to(dtype)
        };
        let (x, weight) = (made(self.x, 0.3)?, made(self.weight, 0.2)?);
        let bias = made(&self.weight[..1], 0.5)?;
        let sizes = self.convolve(&x, &weight, &bias)?;
        let sizes: Vec<i64> = sizes.shape().iter().map(|&size| size as i64).collect();
        let given = made(&sizes, 0.4)?;
        Ok([x, weight, bias, given])
    }
}

/// Compares with the same in float64 on the CPU: `error` for each product, as a part of it.
fn assert_close(
    what: &str,
    found: &[Tensor],
    right: &[Tensor],
    sizes: &[Tensor],
    error: f64,
) -> Result<()> {
    for (at, ((found, right), sizes)) in found.iter().zip(right).zip(sizes).enumerate() {
        let (found, right, sizes) = (found.to_f64_vec()?, right.to_f64_vec()?, sizes.to_f64_vec()?);
        for ((found, right), size) in found.iter().zip(&right).zip(&sizes) {
            let close = (found - right).abs() <= error * size + 1e-30;
            assert!(close, "{what}, result {at}: {found} instead of {right}");
        }
    }
    Ok(())
}

/// The same for each of the tensors of a step.
fn each(of: &[Tensor; 4], convert: impl Fn(&Tensor) -> Result<Tensor>) -> Result<[Tensor; 4]> {
    let [x, weight, bias, given] = of;
    Ok([convert(x)?, convert(weight)?, convert(bias)?, convert(given)?])
}

/// By cuDNN with and without TF32 and by our own kernels, row by row and with channels last.
pub fn convolutions_by_cudnn_agree_with_our_own(cuda: Device) -> Result<()> {
    for (number, shape) in SHAPES.iter().enumerate() {
        for (dtype, error) in
            [(DType::F32, 1e-5), (DType::F64, 1e-13), (DType::F16, 2e-3), (DType::BF16, 1.6e-2)]
        {
            let inputs = shape.inputs(dtype)?;
            let exact = each(&inputs, |t| t.to(DType::F64))?;
            let right = Right {
                what: format!("convolution {number} of {dtype}"),
                results: shape.step(&exact)?,
                sizes: shape.step(&each(&exact, Tensor::abs)?)?,
                error,
                is_plain: number == 0 && dtype == DType::F32,
            };
            let there = each(&inputs, |t| t.to(cuda))?;
            right.is_found(shape, &there)?;
            if shape.x.len() == 4 {
                let channels_last = To::new().memory_format(MemoryFormat::ChannelsLast);
                let is_plain = false;
                let what = format!("{}, channels last", right.what);
                let right = Right { what, is_plain, ..right };
                let last = |t: &Tensor| match t.rank() {
                    4 => t.to(channels_last.clone()),
                    _ => Ok(t.clone()),
                };
                right.is_found(shape, &each(&there, last)?)?;
            }
        }
    }
    Ok(())
}

/// A step in float64, and what one of less precision may differ.
struct Right {
    what: String,
    results: Vec<Tensor>,
    /// The step with absolute values alone: what errors are parts of.
    sizes: Vec<Tensor>,
    error: f64,
    /// Whether cuDNN must take it.
    is_plain: bool,
}

impl Right {
    /// Takes the step on a GPU, in each way that there is.
    fn is_found(&self, shape: &Shape, inputs: &[Tensor; 4]) -> Result<()> {
        // TF32 keeps 10 bits of each factor.
        let rounded = if inputs[0].dtype() == DType::F32 { 1.0 / 512.0 } else { self.error };
        let ways = [(false, false, self.error), (true, false, self.error), (true, true, rounded)];
        for (enabled, tf32, error) in ways {
            let what = format!("{}, cuDNN {enabled}, TF32 {tf32}", self.what);
            let _enabled = Kept::set(&cudnn::ENABLED, enabled);
            let _tf32 = Kept::set(&cudnn::ALLOW_TF32, tf32);
            let before = cudnn_convolutions();
            let found = shape.step(inputs)?;
            let by_cudnn = cudnn_convolutions() - before;
            assert_close(&what, &found, &self.results, &self.sizes, error)?;
            for (first, second) in found.iter().zip(shape.step(inputs)?) {
                assert_eq!(first.to_f64_vec()?, second.to_f64_vec()?, "{what}: the same bits");
            }
            if !enabled {
                assert_eq!(by_cudnn, 0, "{what}");
            } else if self.is_plain && cudnn::is_available() {
                assert_eq!(by_cudnn, 3, "{what}: cuDNN takes the plainest convolution");
            }
        }
        Ok(())
    }
}
