//! Folds of the long tail over some dimensions: one kernel a fold, which loads and stores every
//! dtype. Sums, means and extremes of rows have kernels of their own in `reduce.rs`.

use plimsoll_core::{DType, Dims, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Meta;

use super::reduce::layouts;
use super::tail::code;
use super::{CudaLaunch, address, whole};

/// Which fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TailFold {
    Sum,
    Mean,
    NanSum,
    Product,
    CountNonzero,
    Any,
    All,
    Argmax,
    Argmin,
    /// The norm of this order.
    Norm(f64),
    Variance {
        correction: f64,
        root: bool,
    },
    LogSumExp,
}

impl TailFold {
    /// The kernel's name for elements of `dtype`, its mode and its two numbers.
    fn kernel(self, dtype: DType, count: usize) -> (String, i32, [f64; 2]) {
        let real = dtype.is_float();
        let (name, mode, numbers) = match self {
            TailFold::Sum | TailFold::NanSum if !real => ("sum", 0, [0.0, 1.0]),
            TailFold::Sum => ("terms", 0, [0.0, 1.0]),
            TailFold::Mean => ("terms", 0, [0.0, count as f64]),
            TailFold::NanSum => ("terms", 1, [0.0, 1.0]),
            TailFold::Norm(1.0) => ("terms", 2, [0.0, 1.0]),
            TailFold::Norm(2.0) => ("terms", 4, [0.0, 1.0]),
            TailFold::Norm(0.0) => ("terms", 5, [0.0, 1.0]),
            TailFold::Norm(f64::INFINITY) => ("terms", 6, [0.0, 1.0]),
            TailFold::Norm(f64::NEG_INFINITY) => ("terms", 7, [0.0, 1.0]),
            TailFold::Norm(order) => ("terms", 3, [order, 1.0]),
            TailFold::CountNonzero => ("nonzero", 0, [0.0; 2]),
            TailFold::Any => ("nonzero", 1, [0.0; 2]),
            TailFold::All => ("nonzero", 2, [0.0; 2]),
            TailFold::Product => ("product", 0, [0.0; 2]),
            TailFold::Variance { correction, root } => {
                ("moments", i32::from(root), [correction, 0.0])
            }
            TailFold::LogSumExp => ("logsumexp", 0, [0.0; 2]),
            TailFold::Argmin => ("place", 0, [0.0; 2]),
            TailFold::Argmax => ("place", 1, [0.0; 2]),
        };
        (format!("{name}_{}", if real { "real" } else { "whole" }), mode, numbers)
    }
}

/// Bytes of the widest state.
const STATE_BYTES: usize = 32;
/// Threads that keep a GPU busy.
const BUSY: usize = 1 << 18;
/// Elements that a thread folds at least before outputs are cut into parts.
const SHARE: usize = 32;
/// The most parts of one output.
const MOST_PARTS: usize = 1024;
/// Threads of a block.
const THREADS: usize = 256;

/// How the work is shared out, by sizes and strides alone.
struct Plan {
    outputs: usize,
    count: usize,
    /// Threads that fold one output or one part: 1, a warp or a block.
    team: usize,
    parts: usize,
}

impl Plan {
    fn new(x: &Meta, reduced: &[usize]) -> Plan {
        let (sizes, steps) = (x.shape(), x.layout.strides());
        let is_reduced = |dim: &usize| reduced.contains(dim);
        let dims: Dims = (0..sizes.len()).filter(is_reduced).collect();
        let kept: Dims = (0..sizes.len()).filter(|dim| !is_reduced(dim)).collect();
        let numel = |dims: &Dims| dims.iter().map(|&dim| sizes[dim]).product::<usize>();
        let (outputs, count) = (numel(&kept), numel(&dims));
        let nearest =
            |dims: &Dims| dims.iter().filter(|&&dim| sizes[dim] > 1).map(|&dim| steps[dim]).min();
        let columns = match (nearest(&kept), nearest(&dims)) {
            (Some(across), Some(along)) => across < along,
            _ => false,
        };
        let team = match count {
            _ if columns => 1,
            0..=8 => 1,
            9..1024 => 32,
            _ => THREADS,
        };
        let wanted = BUSY / (outputs * team).max(1);
        let parts = wanted.min(count / (team * SHARE)).clamp(1, MOST_PARTS);
        Plan { outputs, count, team, parts }
    }
}

/// Whether outputs are neighbours in memory and folded elements are not, so that a thread an output
/// reads it best.
pub(super) fn folds_columns(x: &Meta, reduced: &[usize]) -> bool {
    let plan = Plan::new(x, reduced);
    plan.team == 1 && plan.count > 8
}

/// Bytes of states of parts.
pub(crate) fn tail_fold_workspace_bytes(x: &Meta, reduced: &[usize]) -> usize {
    match Plan::new(x, reduced) {
        Plan { parts: 1, .. } => 0,
        plan => plan.outputs * plan.parts * STATE_BYTES,
    }
}

/// Folds the dimensions `reduced` of the input.
pub(crate) fn tail_fold(launch: &CudaLaunch<'_>, fold: TailFold, reduced: &[usize]) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let Plan { outputs, count, team, parts } = Plan::new(x.meta(), reduced);
    if outputs == 0 {
        return Ok(());
    }
    let (outer, inner) = layouts(x, out, reduced);
    let outer = outer.argument(launch.operation)?;
    let step = match inner.sizes() {
        [] => 0,
        [_] => inner.strides(0)[0] as u64,
        _ => u64::MAX,
    };
    let (kernel, mode, [a, b]) = fold.kernel(x.dtype(), count);
    let ask = [Argument::I32(mode), Argument::F64(a), Argument::F64(b)];
    let codes = [x, out].map(|operand| Argument::I32(code(operand.dtype()) as i32));
    let partial = Argument::U64(launch.workspace.pointer().addr() as u64);
    let grid = |teams: usize, in_block: usize| Grid {
        blocks: (teams.div_ceil(in_block).clamp(1, 1 << 20) as u32, 1, 1),
        threads: THREADS as u32,
        shared_bytes: 0,
    };
    let mut arguments = vec![
        whole(outputs),
        whole(parts),
        whole(count),
        outer.clone(),
        inner.argument(launch.operation)?,
        Argument::U64(step),
        Argument::I32(team as i32),
    ];
    arguments.extend(ask.iter().chain(&codes).cloned());
    arguments.extend([address(x), address(out), partial.clone()]);
    launch.run(&source_files::FOLDS, &kernel, grid(outputs * parts, THREADS / team), &arguments)?;
    if parts == 1 {
        return Ok(());
    }
    let mut arguments = vec![whole(outputs), whole(parts), whole(count), outer];
    arguments.extend(ask.into_iter().chain(codes));
    arguments.extend([address(out), partial]);
    let kernel = format!("{kernel}_finish");
    launch.run(&source_files::FOLDS, &kernel, grid(outputs, THREADS / 32), &arguments)
}
