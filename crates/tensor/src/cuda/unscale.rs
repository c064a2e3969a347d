//! Scaled gradients: one launch for all of a dtype whose elements fill their memory, which is
//! nearly always all of them, by a table among the kernel's arguments; one launch for each of the
//! others. And the scale after a step.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::optim::{UpdateScale, unscale_operands};

use super::strided::Strided;
use super::{CudaLaunch, type_name, whole};

/// Tensors of a launch: mirrors `ENTRIES` in the kernels. Together below the 32,764 bytes that a
/// kernel's arguments may have.
const ENTRIES: usize = 1000;

/// Words of an entry.
const ENTRY_WORDS: usize = 3;

/// Elements of a block.
const CHUNK: usize = 1 << 14;

const THREADS: u32 = 512;

fn address(operand: &Operand<'_>) -> u64 {
    operand.first_byte().addr() as u64
}

/// Inputs and outputs as the CPU kernel of the same name takes them.
pub(crate) fn unscale(launch: &CudaLaunch<'_>) -> Result<()> {
    let (inverse, grads, found) =
        unscale_operands(launch.operation, launch.inputs, launch.outputs)?;
    let mut dense: Vec<&Operand<'_>> = Vec::new();
    for grad in grads.iter().filter(|grad| grad.layout().numel() > 0) {
        let strided = Strided::broadcast(&[grad])?;
        if strided.is_dense() {
            dense.push(grad);
            continue;
        }
        let count = grad.layout().numel();
        let arguments = [
            Argument::U64(address(grad)),
            Argument::U64(address(inverse)),
            Argument::U64(address(found)),
            whole(count),
            strided.argument(launch.operation)?,
        ];
        let kernel = ("unscale_layout", type_name(grad.dtype()));
        launch.run(&source_files::UNSCALE, kernel, launch.grid(count, 1), &arguments)?;
    }
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        let of: Vec<&Operand<'_>> =
            dense.iter().copied().filter(|grad| grad.dtype() == dtype).collect();
        for grads in of.chunks(ENTRIES) {
            over_table(launch, dtype, [inverse, found], grads)?;
        }
    }
    Ok(())
}

fn over_table(
    launch: &CudaLaunch<'_>,
    dtype: DType,
    numbers: [&Operand<'_>; 2],
    grads: &[&Operand<'_>],
) -> Result<()> {
    let mut chunks = 0;
    // Mirrors `Table` in the kernels.
    let mut words: Vec<u64> = numbers.map(address).to_vec();
    words.extend([grads.len() as u64, CHUNK as u64]);
    let length = words.len() + ENTRIES * ENTRY_WORDS;
    for grad in grads {
        let count = grad.layout().numel();
        chunks += count.div_ceil(CHUNK);
        words.extend([address(grad), count as u64, chunks as u64]);
    }
    words.resize(length, 0);
    let blocks = u32::try_from(chunks).map_err(|_| launch.unsupported("so many elements"))?;
    let grid = Grid { blocks: (blocks, 1, 1), threads: THREADS, shared_bytes: 0 };
    let kernel = ("unscale_table", type_name(dtype));
    launch.run(&source_files::UNSCALE, kernel, grid, &[Argument::Words(words.into())])
}

/// As the CPU kernel of the same name.
pub(crate) fn update_scale(launch: &CudaLaunch<'_>, numbers: &UpdateScale) -> Result<()> {
    let (found, [scale, tracker]) = (&launch.inputs[0], [0, 1].map(|at| &launch.outputs[at]));
    let arguments = [
        Argument::U64(address(scale)),
        Argument::U64(address(tracker)),
        Argument::U64(address(found)),
        Argument::F64(numbers.growth_factor),
        Argument::F64(numbers.backoff_factor),
        Argument::U64(i64::from(numbers.growth_interval) as u64),
    ];
    let grid = Grid { blocks: (1, 1, 1), threads: 32, shared_bytes: 0 };
    launch.run(&source_files::UNSCALE, "update_scale", grid, &arguments)
}
