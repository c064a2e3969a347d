//! Elementwise kernels of the long tail: one kernel for each function and each type that is
//! computed in (f32, f64 or i64), which loads and stores every dtype. The twin of `chunked.rs` on
//! the CPU.

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_cuda::{Argument as Word, source_files};
use plimsoll_kernels::{Argument, Operand, Second};
use smallvec::SmallVec;

use super::strided::Strided;
use super::{CudaLaunch, NOTHING, address, type_name, whole};
use crate::op_info::{OnCuda, OpInfo};

/// The kernel of `info` over all inputs, or over one and a number on the side that `second` says,
/// with host numbers beside them.
pub(crate) fn tail(
    launch: &CudaLaunch<'_>,
    info: &OpInfo,
    second: Option<Second>,
    numbers: [f64; 3],
) -> Result<()> {
    match second {
        Some(second) => tail_of(launch, info, &Argument::pair(second), numbers),
        None => {
            let inputs = 0..launch.inputs.len();
            let arguments: SmallVec<[Argument; 3]> = inputs.map(Argument::Input).collect();
            tail_of(launch, info, &arguments, numbers)
        }
    }
}

/// The kernel of `info` over `arguments`.
pub(crate) fn tail_of(
    launch: &CudaLaunch<'_>,
    info: &OpInfo,
    arguments: &[Argument],
    numbers: [f64; 3],
) -> Result<()> {
    let OnCuda::Kernels(source) = info.cuda else {
        return Err(super::no_kernel(launch.operation));
    };
    let out = &launch.outputs[0];
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    if arguments.len() > 3 {
        return Err(Error::unsupported(launch.operation, "kernels here take three operands"));
    }
    // Operands in the order of the kernel's; a number's place is taken by the output, unread.
    let operand = |index: usize| match arguments.get(index) {
        Some(Argument::Input(input)) => Some(&launch.inputs[*input]),
        _ => None,
    };
    let operands: [Option<&Operand<'_>>; 3] = std::array::from_fn(operand);
    let all: SmallVec<[&Operand<'_>; 4]> =
        std::iter::once(out).chain(operands.map(|operand| operand.unwrap_or(out))).collect();
    let strided = Strided::broadcast(&all)?;
    let scalar = |index: usize| match arguments.get(index) {
        Some(Argument::Number(number)) => *number,
        _ => Scalar::Int(0),
    };
    let codes = (0..4).fold(0, |codes, index| codes | code(all[index].dtype()) << (8 * index));
    let place = |operand: Option<&Operand<'_>>| operand.map_or(NOTHING, address);
    let words = [
        whole(n),
        strided.argument(launch.operation)?,
        Word::I32(i32::from(strided.is_dense())),
        Word::U64(codes),
        address(out),
        place(operands[0]),
        place(operands[1]),
        place(operands[2]),
        Word::F64(scalar(0).to_f64()),
        Word::F64(scalar(1).to_f64()),
        Word::F64(scalar(2).to_f64()),
        Word::U64(scalar(0).to_i64() as u64),
        Word::U64(scalar(1).to_i64() as u64),
        Word::U64(scalar(2).to_i64() as u64),
        Word::F64(numbers[0]),
        Word::F64(numbers[1]),
        Word::F64(numbers[2]),
    ];
    // Special functions of all floats are computed in f64.
    let computed = match std::ptr::eq(source, &raw const source_files::SPECIAL) {
        true => "f64",
        false => computed_in(launch.inputs[0].dtype()),
    };
    let kernel = (info.name, computed);
    launch.run(source, kernel, launch.once_grid(n, 4, strided.is_dense()), &words)
}

/// The number of a dtype in `tail.cuh`.
pub(super) fn code(dtype: DType) -> u64 {
    const ORDER: [&str; 10] =
        ["truth", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"];
    ORDER.iter().position(|&name| name == type_name(dtype)).unwrap_or(ORDER.len()) as u64
}

/// The type that operands of `dtype` are computed in.
pub(super) fn computed_in(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "f64",
        DType::F16 | DType::BF16 | DType::F32 => "f32",
        _ => "i64",
    }
}

/// The float dtype that elements of a float dtype are computed and summed in: `Compute` of
/// `prelude.cuh`.
pub(super) fn sum_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// What `halves.cuh` knows a dtype by that is computed in f32.
pub(super) fn half_width(dtype: DType) -> usize {
    match dtype {
        DType::F16 => 1,
        DType::BF16 => 2,
        _ => 0,
    }
}
