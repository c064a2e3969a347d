//! Runs of equal rows of a contiguous matrix, the order of its rows, and the longest run of each
//! sorted line.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};

use super::lines::Lines;
use super::tail::code;
use super::{CudaLaunch, NOTHING, address, whole};

/// Rows that are worth a block.
const PART: usize = 1 << 12;
/// Blocks at most.
const MOST_PARTS: usize = 1 << 12;
const THREADS: u32 = 256;

fn parts(rows: usize) -> usize {
    rows.div_ceil(PART).clamp(1, MOST_PARTS)
}

/// Bytes that counting runs and finding them work in: a count for each part, their sum, and where
/// each run begins.
pub(crate) fn runs_workspace_bytes(matrix: &Meta) -> usize {
    let rows = matrix.shape()[0];
    (parts(rows) + 1 + rows) * size_of::<i64>()
}

/// What the kernels of rows take first.
fn rows_of(launch: &CudaLaunch<'_>, matrix: &Operand<'_>) -> Result<[Argument; 4]> {
    if !matrix.layout().is_contiguous() {
        return Err(launch.unsupported("a matrix that is not contiguous"));
    }
    let (rows, width) = (matrix.shape()[0], matrix.shape()[1]);
    let dtype = Argument::I32(code(matrix.dtype()) as i32);
    Ok([whole(rows), whole(width), dtype, address(matrix)])
}

fn blocks(count: usize) -> Grid {
    Grid { blocks: (count as u32, 1, 1), threads: THREADS, shared_bytes: 0 }
}

/// Leaves in the workspace how many runs begin before each part's rows, and their number.
fn count(launch: &CudaLaunch<'_>, matrix: &Operand<'_>) -> Result<()> {
    let rows = matrix.shape()[0];
    let parts = parts(rows);
    let counts = whole(launch.workspace.pointer().addr());
    let mut arguments = rows_of(launch, matrix)?.to_vec();
    arguments.extend([whole(rows.div_ceil(parts)), counts.clone()]);
    launch.run(&source_files::RUNS, "runs_count", blocks(parts), &arguments)?;
    let grid = Grid { threads: 1024, ..blocks(1) };
    launch.run(&source_files::NONZERO, "nonzero_starts", grid, &[whole(parts), counts])
}

/// How many runs of equal rows the matrix has. Waits.
pub(crate) fn runs_count(launch: &CudaLaunch<'_>) -> Result<usize> {
    let matrix = &launch.inputs[0];
    let rows = matrix.shape()[0];
    if rows == 0 {
        return Ok(0);
    }
    count(launch, matrix)?;
    let sum = launch.workspace.pointer().addr() + parts(rows) * size_of::<i64>();
    let [found] = launch.read_back::<1>(sum)?;
    Ok(found as usize)
}

/// Input [matrix]; outputs [the first row of each run, the run of every row, the runs' lengths], of
/// which the last two may have no elements.
pub(crate) fn runs(launch: &CudaLaunch<'_>) -> Result<()> {
    let (matrix, first) = (&launch.inputs[0], &launch.outputs[0]);
    let (rows, found) = (matrix.shape()[0], first.shape()[0]);
    if rows == 0 {
        return Ok(());
    }
    let wanted = |output: &Operand<'_>| {
        if output.layout().numel() == 0 { NOTHING } else { address(output) }
    };
    count(launch, matrix)?;
    let parts = parts(rows);
    let starts = launch.workspace.pointer().addr();
    let begins = whole(starts + (parts + 1) * size_of::<i64>());
    let shared = rows_of(launch, matrix)?;
    let mut arguments = shared.to_vec();
    let ids = wanted(&launch.outputs[1]);
    arguments.extend([whole(rows.div_ceil(parts)), whole(starts), whole(found), ids]);
    arguments.push(begins.clone());
    launch.run(&source_files::RUNS, "runs_begin", blocks(parts), &arguments)?;
    let mut arguments = shared.to_vec();
    arguments.extend([whole(found), begins, address(first), wanted(&launch.outputs[2])]);
    let grid = launch.grid(found * matrix.shape()[1].max(1), 1);
    launch.run(&source_files::RUNS, "runs_finish", grid, &arguments)
}

/// Bytes of the other list of positions that [`row_order`] merges into.
pub(crate) fn row_order_workspace_bytes(matrix: &Meta) -> usize {
    matrix.shape()[0] * size_of::<i64>()
}

/// Input [matrix], output [positions of its rows in the order of their elements].
pub(crate) fn row_order(launch: &CudaLaunch<'_>) -> Result<()> {
    let (matrix, out) = (&launch.inputs[0], launch.contiguous_output()?);
    let rows = matrix.shape()[0];
    if rows == 0 {
        return Ok(());
    }
    let grid = launch.grid(rows, 1);
    let lists = [address(out), whole(launch.workspace.pointer().addr())];
    let shared = rows_of(launch, matrix)?;
    // As many merges as it takes, the last of them into the output.
    let merges = rows.next_power_of_two().trailing_zeros() as usize;
    let mut from = merges % 2;
    let start = [whole(rows), lists[from].clone()];
    launch.run(&source_files::RUNS, "order_start", grid, &start)?;
    for merge in 0..merges {
        let mut arguments = shared.to_vec();
        arguments.extend([whole(1 << merge), lists[from].clone(), lists[1 - from].clone()]);
        launch.run(&source_files::RUNS, "order_merge", grid, &arguments)?;
        from = 1 - from;
    }
    Ok(())
}

/// Inputs [sorted along `dim`, their positions]; outputs [values, indices], of size 1 along it.
pub(crate) fn mode(launch: &CudaLaunch<'_>, dim: usize) -> Result<()> {
    let ([sorted, places], [values, positions]) = (launch.inputs, launch.outputs) else {
        return Err(launch.unsupported("another number of operands"));
    };
    launch.check_dtypes(sorted.dtype(), &[values])?;
    launch.check_dtypes(DType::I64, &[places, positions])?;
    let lines = Lines::new([sorted, places, values, positions], dim);
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    let arguments = [
        whole(lines.count),
        whole(lines.len),
        lines.outer.argument(launch.operation)?,
        whole(lines.steps[0]),
        whole(lines.steps[1]),
        Argument::I32(code(sorted.dtype()) as i32),
        address(sorted),
        address(places),
        address(values),
        address(positions),
    ];
    launch.run(&source_files::RUNS, "mode", blocks(lines.count.min(1 << 20)), &arguments)
}
