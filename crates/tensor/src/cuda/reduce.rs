//! Reductions over some dimensions: one kernel a fold, which loads and stores every dtype. A team
//! of threads folds one output, or a part of a long one; a second run joins the parts, those of
//! columns a kernel of its own.

use plimsoll_core::{DType, Dims, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::{SmallVec, smallvec};

use super::strided::Strided;
use super::tail::code;
use super::{Arguments, CudaLaunch, address, type_name, whole};

/// Which fold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fold {
    Sum,
    Mean,
    NanSum,
    Product,
    CountNonzero,
    Any,
    All,
    Argmax,
    Argmin,
    Amax,
    Amin,
    /// The norm of this order.
    Norm(f64),
    Variance {
        correction: f64,
        root: bool,
    },
    LogSumExp,
}

impl Fold {
    /// What the kernel's name starts with for elements of `dtype`, its mode and its two numbers.
    fn kernel(self, dtype: DType, count: usize) -> (&'static str, i32, [f64; 2]) {
        let real = dtype.is_float();
        match self {
            Fold::Sum | Fold::NanSum if !real => ("sums", 0, [0.0, 1.0]),
            Fold::Sum => ("sums", 0, [0.0, 1.0]),
            Fold::Mean => ("sums", 0, [0.0, count as f64]),
            Fold::NanSum => ("terms", 0, [0.0; 2]),
            Fold::Norm(1.0) => ("terms", 1, [0.0; 2]),
            Fold::Norm(2.0) => ("squares", 0, [0.0; 2]),
            Fold::Norm(0.0) => ("terms", 3, [0.0; 2]),
            Fold::Norm(f64::INFINITY) => ("terms", 4, [0.0; 2]),
            Fold::Norm(f64::NEG_INFINITY) => ("terms", 5, [0.0; 2]),
            Fold::Norm(order) => ("terms", 2, [order, 0.0]),
            Fold::CountNonzero => ("nonzero", 0, [0.0; 2]),
            Fold::Any => ("nonzero", 1, [0.0; 2]),
            Fold::All => ("nonzero", 2, [0.0; 2]),
            Fold::Product => ("product", 0, [0.0; 2]),
            Fold::Variance { correction, root } => ("moments", i32::from(root), [correction, 0.0]),
            Fold::LogSumExp => ("logsumexp", 0, [0.0; 2]),
            Fold::Argmin => ("place", 0, [0.0; 2]),
            Fold::Argmax => ("place", 1, [0.0; 2]),
            Fold::Amin => ("place", 2, [0.0; 2]),
            Fold::Amax => ("place", 3, [0.0; 2]),
        }
    }
}

/// Bytes of the widest state.
const STATE_BYTES: usize = 32;
/// Threads that keep a GPU busy.
const BUSY: usize = 1 << 18;
/// Outputs whose warps keep a GPU busy.
const MANY: usize = 1 << 12;
/// Columns that keep a GPU busy by packs, without parts.
const MANY_COLUMNS: usize = 1 << 16;
/// Elements that a thread folds at least before outputs are cut into parts.
const SHARE: usize = 32;
/// The most parts of one output.
const MOST_PARTS: usize = 1024;
/// The widest load.
const PACK_BYTES: usize = 16;
/// Threads of a block.
const THREADS: usize = 256;
/// Blocks that keep a GPU busy while each of their threads has several loads on their way: three on
/// each multiprocessor of an H200.
const BLOCKS: usize = 132 * 3;

/// Whether there are kernels for elements of `dtype` alone.
fn is_common(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Columns that a warp takes by packs.
fn tile(dtype: DType) -> usize {
    32 * PACK_BYTES / dtype.size_bytes()
}

/// How the work is shared out, by sizes and strides alone.
struct Plan {
    outputs: usize,
    count: usize,
    /// Threads that fold one output or one part: 1, a warp or a block.
    team: usize,
    parts: usize,
}

impl Plan {
    fn new(x: &Meta, fold: Fold, reduced: &[usize]) -> Plan {
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
        let pack = PACK_BYTES / x.dtype.size_bytes();
        let packed = columns
            && is_common(x.dtype)
            && fold.kernel(x.dtype, count).0 == "sums"
            && outputs.is_multiple_of(pack)
            && nearest(&dims).is_some_and(|step| step.is_multiple_of(pack));
        let team = match count {
            _ if columns => 1,
            0..=8 => 1,
            9..1024 => 32,
            // Warps suffice if there are many.
            _ if outputs >= MANY => 32,
            _ => THREADS,
        };
        let wanted = match team {
            32 if outputs >= MANY => 1,
            // Each thread takes a pack of columns: few parts fill the GPU, and are soon joined.
            1 if packed && outputs >= tile(x.dtype) => {
                (BLOCKS / outputs.div_ceil(tile(x.dtype))).max(2)
            }
            _ => BUSY / (outputs * team).max(1),
        };
        let parts = wanted.min(count / (team * SHARE)).clamp(1, MOST_PARTS);
        Plan { outputs, count, team, parts }
    }
}

/// Where each output's first input element lies and where the output does, then where the elements
/// that are folded into it lie.
fn layouts(x: &Operand<'_>, out: &Operand<'_>, reduced: &[usize]) -> (Strided, Strided) {
    let (sizes, steps) = (x.shape(), x.layout().strides());
    let kept: Dims = (0..sizes.len()).filter(|dim| !reduced.contains(dim)).collect();
    let folded = (0..sizes.len()).filter(|dim| reduced.contains(dim));
    // Dimensions that were reduced and kept have size 1 in the output.
    let keeps_dims = out.shape().len() == sizes.len();
    let out_step =
        |place: usize, dim: usize| out.layout().strides()[if keeps_dims { dim } else { place }];
    let outer = kept.iter().enumerate();
    let mut outer: SmallVec<[(usize, [usize; 2]); 6]> =
        outer.map(|(place, &dim)| (sizes[dim], [steps[dim], out_step(place, dim)])).collect();
    // Neighbouring outputs read neighbouring elements.
    outer.sort_by_key(|&(_, [step, _])| std::cmp::Reverse(step));
    let inner = folded.map(|dim| (sizes[dim], [steps[dim]]));
    (Strided::in_order(outer.into_iter()), Strided::in_order(inner))
}

/// Bytes of states of parts.
pub(crate) fn reduce_workspace_bytes(x: &Meta, fold: Fold, reduced: &[usize]) -> usize {
    match Plan::new(x, fold, reduced) {
        Plan { parts: 1, .. } => 0,
        plan => plan.outputs * plan.parts * STATE_BYTES,
    }
}

/// Whether rows `step` elements apart, of `columns` each, are read by packs of 16 bytes.
fn is_packed(x: &Operand<'_>, step: u64, columns: usize) -> bool {
    let pack = PACK_BYTES / x.dtype().size_bytes();
    step.is_multiple_of(pack as u64)
        && columns.is_multiple_of(pack)
        && x.first_byte().addr().is_multiple_of(PACK_BYTES)
}

/// Joins the sums of so many parts of so many columns, which lie in the workspace, over `divisor`.
fn join_columns(
    launch: &CudaLaunch<'_>,
    (columns, parts): (usize, usize),
    divisor: f64,
) -> Result<()> {
    let out = &launch.outputs[0];
    let arguments = [
        whole(columns),
        whole(parts),
        Argument::F64(divisor),
        Argument::I32(code(out.dtype()) as i32),
        whole(launch.workspace.pointer().addr()),
        address(out),
    ];
    let grid = Grid { blocks: (columns.div_ceil(32) as u32, 1, 1), threads: 512, shared_bytes: 0 };
    launch.run(&source_files::REDUCE, "sums_columns_join", grid, &arguments)
}

/// Folds the dimensions `reduced` of the input.
pub(crate) fn reduce(launch: &CudaLaunch<'_>, fold: Fold, reduced: &[usize]) -> Result<()> {
    let (x, out) = (&launch.inputs[0], &launch.outputs[0]);
    let Plan { outputs, count, team, parts } = Plan::new(x.meta(), fold, reduced);
    if outputs == 0 {
        return Ok(());
    }
    let (outer, inner) = layouts(x, out, reduced);
    let is_dense = outer.sizes().len() == 1 && outer.strides(0)[0] == 1;
    let writes_side_by_side = is_dense && outer.strides(1)[0] == 1;
    let outer = outer.argument(launch.operation)?;
    let step = match inner.sizes() {
        [] => 0,
        [_] => inner.strides(0)[0] as u64,
        _ => u64::MAX,
    };
    let (name, mode, [a, b]) = fold.kernel(x.dtype(), count);
    let kernel = (name, if x.dtype().is_float() { "real" } else { "whole" });
    let ask = [Argument::I32(mode), Argument::F64(a), Argument::F64(b)];
    let codes = [x, out].map(|operand| Argument::I32(code(operand.dtype()) as i32));
    let states = whole(launch.workspace.pointer().addr());
    let inner = inner.argument(launch.operation)?;
    let grid = |teams: usize, team: usize| Grid {
        blocks: (teams.div_ceil(THREADS / team).clamp(1, 1 << 20) as u32, 1, 1),
        threads: THREADS as u32,
        shared_bytes: 0,
    };
    let run = |team: usize, joins: bool, teams: usize| {
        let mut arguments: Arguments = smallvec![
            whole(outputs),
            whole(parts),
            whole(count),
            outer.clone(),
            inner.clone(),
            Argument::U64(step),
            Argument::I32(team as i32),
            Argument::I32(i32::from(joins)),
        ];
        arguments.extend(ask.iter().chain(&codes).cloned());
        arguments.extend([address(x), address(out), states.clone()]);
        launch.run(&source_files::REDUCE, kernel, grid(teams, team), &arguments)
    };
    let common = is_common(x.dtype()) && matches!(name, "sums" | "squares" | "moments" | "place");
    if common && step == 1 && team > 1 && count.div_ceil(parts) < 1 << 31 {
        let mut arguments: Arguments =
            smallvec![whole(outputs), whole(parts), whole(count), outer.clone()];
        arguments.push(Argument::I32(team as i32));
        arguments.extend(ask.iter().chain([&codes[1]]).cloned());
        arguments.extend([address(x), address(out), states.clone()]);
        let kernel = (name, "rows", type_name(x.dtype()));
        let grid = grid(outputs * parts, team);
        launch.run(&source_files::REDUCE, kernel, grid, &arguments)?;
    } else if common
        && name == "sums"
        && team == 1
        && is_dense
        && is_packed(x, step, outputs)
        && (parts > 1 || (writes_side_by_side && outputs >= MANY_COLUMNS))
    {
        let mut arguments: Arguments =
            smallvec![whole(outputs), whole(count), Argument::U64(step), whole(parts)];
        arguments.extend(ask.iter().chain([&codes[1]]).cloned());
        arguments.extend([address(x), address(out), states.clone()]);
        let kernel = ("sums_columns", type_name(x.dtype()));
        let blocks = (outputs.div_ceil(tile(x.dtype())) as u32, parts as u32, 1);
        let grid = Grid { blocks, threads: THREADS as u32, shared_bytes: 0 };
        launch.run(&source_files::REDUCE, kernel, grid, &arguments)?;
        if parts > 1 && writes_side_by_side {
            return join_columns(launch, (outputs, parts), b);
        }
    } else {
        run(team, false, outputs * parts)?;
    }
    match parts {
        1 => Ok(()),
        2..=64 => run(32, true, outputs),
        // A warp would wait for one state after the other.
        _ => run(THREADS, true, outputs),
    }
}
