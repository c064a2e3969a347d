//! Scans along a dimension: a team of threads a line, or three runs over the parts of long lines.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::cpu::scan::Scan;
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::lines::Lines;
use super::tail::code;
use super::{Arguments, CudaLaunch, NOTHING, address, whole};

/// Bytes of the widest state.
const STATE_BYTES: usize = 16;
/// Threads of a block.
const THREADS: usize = 256;
/// Threads that keep a GPU busy.
const BUSY: usize = 1 << 17;
/// The most parts of one line.
const MOST_PARTS: usize = 1024;
/// The shortest part: of a line that one thread follows, and of one that a block does.
const SHORTEST: [usize; 2] = [256, 1 << 13];

/// How lines are shared out, by sizes and strides alone.
struct Plan {
    /// Threads that scan one line or one part: 1, a warp or a block.
    team: usize,
    parts: usize,
}

impl Plan {
    fn new<const N: usize>(lines: &Lines<N>) -> Plan {
        let team = match lines.len {
            _ if lines.are_columns() => 1,
            0..=512 => 32,
            _ => THREADS,
        };
        let shortest = SHORTEST[usize::from(team > 1)];
        let wanted = BUSY / (lines.count * team).max(1);
        let parts = wanted.min(lines.len / shortest).clamp(1, MOST_PARTS);
        // So that no part is empty.
        let span = lines.len.div_ceil(parts).max(1);
        Plan { team, parts: lines.len.div_ceil(span).max(1) }
    }
}

/// Bytes of the states of parts.
pub(crate) fn scan_workspace_bytes(x: &Meta, dim: usize) -> usize {
    let lines = Lines::of([x], dim);
    match Plan::new(&lines).parts {
        1 => 0,
        parts => lines.count * parts * STATE_BYTES,
    }
}

/// Input [x]: its scan along `dim`, from the end if `reverse`.
pub(crate) fn scan(launch: &CudaLaunch<'_>, scan: Scan, dim: usize, reverse: bool) -> Result<()> {
    let (mode, real) = match scan {
        Scan::Sum => (0, "scan_real"),
        Scan::Product => (1, "scan_real"),
        Scan::LogSumExp => (2, "scan_logsumexp"),
    };
    let kernel = if launch.inputs[0].dtype().is_float() { real } else { "scan_whole" };
    run(launch, kernel, dim, reverse, mode, None)
}

/// Input [x]; outputs [the largest or smallest so far, where it is].
pub(crate) fn scan_extreme(launch: &CudaLaunch<'_>, dim: usize, max: bool) -> Result<()> {
    let places = &launch.outputs[1];
    launch.check_dtypes(DType::I64, &[places])?;
    let real = launch.inputs[0].dtype().is_float();
    let kernel = if real { "scan_extreme_real" } else { "scan_extreme_whole" };
    run(launch, kernel, dim, false, i32::from(max), Some(places))
}

/// Inputs [g, a]: the linear recurrence along `dim`.
pub(crate) fn recurrence(launch: &CudaLaunch<'_>, dim: usize, reverse: bool) -> Result<()> {
    let factors = &launch.inputs[1];
    launch.check_dtypes(launch.inputs[0].dtype(), &[factors])?;
    run(launch, "scan_linear", dim, reverse, 0, Some(factors))
}

fn run(
    launch: &CudaLaunch<'_>,
    kernel: &'static str,
    dim: usize,
    reverse: bool,
    mode: i32,
    third: Option<&Operand<'_>>,
) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    launch.check_dtypes(x.dtype(), &[out])?;
    let lines = Lines::new([x, out, third.unwrap_or(out)], dim);
    if lines.count == 0 || lines.len == 0 {
        return Ok(());
    }
    let Plan { team, parts } = Plan::new(&Lines::of([x.meta()], dim));
    let outer = lines.outer.argument(launch.operation)?;
    let phase = |phase: i32, team: usize, jobs: usize| {
        let mut arguments: Arguments =
            smallvec![whole(lines.count), whole(lines.len), whole(parts), outer.clone()];
        arguments.extend(lines.steps.map(whole));
        let codes = [team as i32, i32::from(reverse), mode, phase, code(x.dtype()) as i32];
        arguments.extend(codes.map(Argument::I32));
        arguments.extend([address(x), address(out), third.map_or(NOTHING, address)]);
        arguments.push(whole(launch.workspace.pointer().addr()));
        let grid = Grid {
            blocks: (jobs.div_ceil(THREADS / team).clamp(1, 1 << 20) as u32, 1, 1),
            threads: THREADS as u32,
            shared_bytes: 0,
        };
        launch.run(&source_files::SCAN, kernel, grid, &arguments)
    };
    if parts == 1 {
        return phase(0, team, lines.count);
    }
    phase(1, team, lines.count * parts)?;
    phase(2, THREADS, lines.count)?;
    phase(3, team, lines.count * parts)
}
