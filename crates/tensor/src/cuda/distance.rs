//! Distances of every row of one matrix to every row of another.

use plimsoll_core::Result;
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;

use super::{CudaLaunch, contiguous, type_name};

/// Rows and columns of a block's distances.
const SIDE: usize = 16;

/// [batch, p, r, m] of x and y.
fn sizes(x: &Operand<'_>, y: &Operand<'_>) -> [usize; 4] {
    [x.shape()[0], x.shape()[1], y.shape()[1], x.shape()[2]]
}

fn argument(sizes: [usize; 4]) -> Argument {
    Argument::Words(sizes.iter().map(|&size| size as u64).collect())
}

/// Inputs [x of [batch, p, m], y of [batch, r, m]]; output [batch, p, r].
pub(crate) fn cdist(launch: &CudaLaunch<'_>, order: f64) -> Result<()> {
    let (x, y, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    if out.layout().numel() == 0 {
        return Ok(());
    }
    launch.check_dtypes(x.dtype(), &[y, out])?;
    let sizes = sizes(x, y);
    let blocks = sizes[0] * sizes[1].div_ceil(SIDE) * sizes[2].div_ceil(SIDE);
    let threads = (SIDE * SIDE) as u32;
    let grid = Grid { blocks: (blocks.min(1 << 20) as u32, 1, 1), threads, shared_bytes: 0 };
    let arguments = [
        argument(sizes),
        Argument::F64(order),
        contiguous(launch, x)?,
        contiguous(launch, y)?,
        contiguous(launch, out)?,
    ];
    let kernel = ("cdist", type_name(x.dtype()));
    launch.run(&source_files::DISTANCE, kernel, grid, &arguments)
}

/// Inputs [grad of [batch, p, r], x, y, distances]; output the gradient of x.
pub(crate) fn cdist_backward(launch: &CudaLaunch<'_>, order: f64) -> Result<()> {
    let [grad, x, y, distances] = [0, 1, 2, 3].map(|index| &launch.inputs[index]);
    let out = &launch.outputs[0];
    let n = out.layout().numel();
    if n == 0 {
        return Ok(());
    }
    launch.check_dtypes(x.dtype(), &[grad, y, distances, out])?;
    let arguments = [
        argument(sizes(x, y)),
        Argument::F64(order),
        contiguous(launch, grad)?,
        contiguous(launch, x)?,
        contiguous(launch, y)?,
        contiguous(launch, distances)?,
        contiguous(launch, out)?,
    ];
    let kernel = ("cdist_backward", type_name(x.dtype()));
    launch.run(&source_files::DISTANCE, kernel, launch.grid(n, 1), &arguments)
}
