//! The k greatest or least along a dimension: by selection where k is small, of parts of each line
//! and then of what those found; else by sorting.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Meta;
use smallvec::smallvec;

use super::lines::Lines;
use super::sort::{SHORT, lines_of, sort_first, sort_workspace_bytes};
use super::tail::code;
use super::{Arguments, CudaLaunch, NOTHING, address, whole};

/// The largest k that is selected.
const MOST: usize = 1024;
/// Blocks that keep a GPU busy.
const BUSY: usize = 1024;
/// The shortest part of a line.
const PART: usize = 1 << 14;
/// The most candidates of a line, which one block goes through.
const MOST_CANDIDATES: usize = 1 << 16;
const THREADS: u32 = 256;

/// Whether lines are sorted whole.
fn sorts(len: usize, k: usize) -> bool {
    k > MOST || len <= SHORT / 8
}

/// Elements of a part, and parts of each of `rows` lines.
fn parts(rows: usize, len: usize, k: usize) -> (usize, usize) {
    let most = (MOST_CANDIDATES / k.max(1)).min(len / PART.max(4 * k));
    let wanted = (BUSY / rows.max(1)).min(most).max(1);
    let span = len.div_ceil(wanted).max(1);
    (span, len.div_ceil(span))
}

/// Bytes of candidates' keys, and of their positions.
fn candidates_bytes(rows: usize, len: usize, k: usize) -> [usize; 2] {
    match parts(rows, len, k) {
        (_, 1) => [0, 0],
        (_, parts) => [8, 4].map(|bytes| (rows * parts * k * bytes).next_multiple_of(512)),
    }
}

/// Bytes that [`topk`] works in.
pub(crate) fn topk_workspace_bytes(x: &Meta, dim: usize, k: usize) -> usize {
    let (rows, len) = lines_of(x, dim);
    if len == 0 || k == 0 {
        return 0;
    }
    if sorts(len, k) {
        return sort_workspace_bytes(x, dim);
    }
    candidates_bytes(rows, len, k).iter().sum()
}

/// Input [x]; outputs [values, indices], of size `k` along `dim`.
pub(crate) fn topk(launch: &CudaLaunch<'_>, dim: usize, k: usize, largest: bool) -> Result<()> {
    let (x, values, indices) = (&launch.inputs[0], &launch.outputs[0], &launch.outputs[1]);
    let (rows, len) = lines_of(x.meta(), dim);
    if rows == 0 || len == 0 || k == 0 {
        return Ok(());
    }
    if sorts(len, k) {
        return sort_first(launch, dim, largest, k);
    }
    launch.check_dtypes(x.dtype(), &[values])?;
    launch.check_dtypes(DType::I64, &[indices])?;
    if len > u32::MAX as usize {
        return Err(launch.unsupported("choosing from lines of 2^32 elements and more"));
    }
    let lines = Lines::new([x, values, indices], dim);
    let outer = lines.outer.argument(launch.operation)?;
    let (span, parts) = parts(rows, len, k);
    let base = launch.workspace.pointer().addr();
    let candidates = [base, base + candidates_bytes(rows, len, k)[0]].map(whole);
    let run = |length: usize, parts: usize, span: usize, from: [Argument; 2], to: [Argument; 2]| {
        let mut arguments: Arguments =
            smallvec![whole(rows), whole(length), whole(parts), whole(span), outer.clone()];
        arguments.extend(lines.steps.map(whole));
        arguments.extend([
            Argument::I32(k as i32),
            Argument::I32(k.next_power_of_two() as i32),
            Argument::I32(i32::from(largest)),
            Argument::I32(code(x.dtype()) as i32),
            address(x),
        ]);
        arguments.extend(from.into_iter().chain(to));
        arguments.extend([values, indices].map(address));
        let blocks = ((rows * parts).min(1 << 20) as u32, 1, 1);
        let grid = Grid { blocks, threads: THREADS, shared_bytes: 0 };
        launch.run(&source_files::TOPK, "topk", grid, &arguments)
    };
    let nothing = [NOTHING, NOTHING];
    if parts == 1 {
        return run(len, 1, len, nothing.clone(), nothing);
    }
    run(len, parts, span, nothing.clone(), candidates.clone())?;
    run(parts * k, 1, parts * k, candidates, nothing)
}
