//! Convolutions: the product itself (`conv`), its derivative by the input (`conv_input`, which is
//! also what PyTorch calls a transposed convolution) and its derivative by the weight
//! (`conv_weight`).
//!
//! In the order to read: `line` (which inputs an output looks at, along one dimension),
//! `correlate` with its `plan` (blocked implicit products: windows are packed a tile at a time and
//! never exist whole), `windows` and `results` (how a tile is packed, and how sums reach the
//! output), `weight` with `weight_plan` and `weight_copies` (the same for the weight's derivative),
//! `narrow`, `narrow_weight` and `rows` (groups of a few channels, depthwise above all, which are
//! no matrix products worth the name).

mod correlate;
mod line;
mod narrow;
mod narrow_weight;
mod plan;
mod results;
mod rows;
mod weight;
mod weight_copies;
mod weight_plan;
mod windows;

#[cfg(test)]
mod tests;

use half::{bf16, f16};
use plimsoll_core::{DType, Error, Result};

use crate::volume::Volume;
use correlate::Correlation;
use plimsoll_engine::{CpuLaunch, Meta, Operand, wrong_dtype};
use weight::WeightGradient;

/// What a convolution has besides tensors, for depth, height and width; dimensions that there are
/// not have stride 1, padding 0, dilation 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvArgs {
    /// From one window to the next.
    pub stride: [usize; 3],
    /// Zeros before the first element. What is behind the last follows from the sizes.
    pub padding: [usize; 3],
    /// From one element of a window to the next.
    pub dilation: [usize; 3],
    /// Groups that the channels are cut into.
    pub groups: usize,
}

/// Runs `$body` with `$E` as the type of `$dtype`'s elements, for dtypes that have products.
macro_rules! match_factor {
    ($dtype:expr, $E:ident => $body:expr, $other:ident => $otherwise:expr) => {
        match $dtype {
            DType::F32 => {
                type $E = f32;
                $body
            }
            DType::F64 => {
                type $E = f64;
                $body
            }
            DType::F16 => {
                type $E = f16;
                $body
            }
            DType::BF16 => {
                type $E = bf16;
                $body
            }
            DType::I64 => {
                type $E = i64;
                $body
            }
            $other => $otherwise,
        }
    };
}

/// Scratch of [`conv`]: inputs [x, weight, bias?], output y.
pub fn conv_workspace_bytes(inputs: &[&Meta], output: &Meta, args: ConvArgs) -> usize {
    let of = Correlation::forward(inputs[0], inputs[1], output, args);
    match_factor!(output.dtype, E => of.workspace_bytes::<E>(), _other => 0)
}

/// Inputs [x, weight, bias?] -> y: each element of y is the sum of a window of x times the weights
/// of its channel, plus the channel's bias.
pub fn conv(launch: &CpuLaunch<'_>, args: ConvArgs) -> Result<()> {
    let (x, weight, y) = three(launch)?;
    let of = Correlation::forward(x.meta(), weight.meta(), y.meta(), args);
    correlate(launch, &of)
}

/// Scratch of [`conv_input`].
pub fn conv_input_workspace_bytes(inputs: &[&Meta], output: &Meta, args: ConvArgs) -> usize {
    let of = Correlation::backward(inputs[0], inputs[1], output, args);
    match_factor!(output.dtype, E => of.workspace_bytes::<E>(), _other => 0)
}

/// Inputs [grad, weight, bias?] -> x: what comes back to x from the gradient of `conv(x, weight)`,
/// plus a bias by channel.
pub fn conv_input(launch: &CpuLaunch<'_>, args: ConvArgs) -> Result<()> {
    let (grad, weight, x) = three(launch)?;
    let of = Correlation::backward(grad.meta(), weight.meta(), x.meta(), args);
    correlate(launch, &of)
}

fn correlate(launch: &CpuLaunch<'_>, of: &Correlation) -> Result<()> {
    let dtype = launch.outputs[0].dtype();
    match_factor!(dtype, E => {
        check_workspace(launch, of.workspace_bytes::<E>())?;
        // SAFETY: the volumes are the operands' own layouts; the claim lets the inputs be read and
        // the output be written, and dispatch refuses overlap; the workspace was just measured.
        unsafe { of.run::<E>(launch) };
        Ok(())
    }, other => Err(wrong_dtype(launch.operation, other)))
}

/// Scratch of [`conv_weight`].
pub fn conv_weight_workspace_bytes(inputs: &[&Meta], output: &Meta, args: ConvArgs) -> usize {
    let of = WeightGradient::new(inputs[0], inputs[1], output, args);
    match_factor!(output.dtype, E => of.workspace_bytes::<E>(), _other => 0)
}

/// Inputs [x, grad] -> weight: what comes back to the weight from the gradient of `conv(x,
/// weight)`.
pub fn conv_weight(launch: &CpuLaunch<'_>, args: ConvArgs) -> Result<()> {
    let (x, grad, weight) = three(launch)?;
    let of = WeightGradient::new(x.meta(), grad.meta(), weight.meta(), args);
    match_factor!(weight.dtype(), E => {
        check_workspace(launch, of.workspace_bytes::<E>())?;
        // SAFETY: as in `correlate`.
        unsafe { of.run::<E>(launch) };
        Ok(())
    }, other => Err(wrong_dtype(launch.operation, other)))
}

/// The first two inputs and the output, all of one dtype.
fn three<'a>(launch: &CpuLaunch<'a>) -> Result<(Operand<'a>, Operand<'a>, Operand<'a>)> {
    let (Some(out), true) = (launch.outputs.first(), launch.inputs.len() >= 2) else {
        return Err(Error::invalid_argument("the kernel needs two inputs and an output")
            .in_operation(launch.operation));
    };
    match launch.inputs.iter().find(|input| input.dtype() != out.dtype()) {
        Some(other) => Err(wrong_dtype(launch.operation, other.dtype())),
        None => Ok((launch.inputs[0], launch.inputs[1], *out)),
    }
}

fn check_workspace(launch: &CpuLaunch<'_>, bytes: usize) -> Result<()> {
    if launch.workspace.bytes() >= bytes {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "the kernel needs {bytes} bytes of workspace, but was launched with {}",
        launch.workspace.bytes()
    ))
    .in_operation(launch.operation))
}

/// How a weight [dimension 0, dimension 1, kernel] lies, by what its dimensions are to a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Weights {
    kernel: [usize; 3],
    /// From one channel of the result to the next.
    result: usize,
    /// From one channel of the operand to the next.
    operand: usize,
    /// From one group to the next.
    group: usize,
    /// From one element of the kernel to the next.
    strides: [usize; 3],
}

impl Weights {
    /// `transposed`: dimension 0 are the operand's channels instead of the result's.
    fn of(weight: &Volume, groups: usize, transposed: bool) -> Weights {
        let (first, second) = (weight.batch_stride, weight.channel_stride);
        Weights {
            kernel: weight.sizes,
            result: if transposed { second } else { first },
            operand: if transposed { first } else { second },
            group: weight.batch / groups * first,
            strides: weight.strides,
        }
    }

    fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
}
