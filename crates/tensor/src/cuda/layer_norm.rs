//! Layer normalisation over contiguous rows; operands that are not contiguous are copied first.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::SmallVec;

use super::fill::fill_operand;
use super::in_workspace::{ALIGNMENT_BYTES, Space, copies_bytes};
use super::tail::sum_dtype;
use super::{CudaLaunch, NOTHING, address, type_name, whole};

fn or_nothing(operand: Option<&Operand<'_>>) -> Argument {
    operand.map_or(NOTHING, address)
}

/// Packs of 16 bytes that a thread of the packed kernels holds of a row, at most.
const KEPT_PACKS: usize = 4;
/// Packs that it holds of a row of halves where a block takes a row backward, if that is enough.
const KEPT_HALF_PACKS: usize = 2;
/// Threads of a block that take a row together, at most.
const MOST_THREADS: usize = 512;
/// Warps of a block in which each warp takes a row, forward and backward: with four, each has the
/// registers to hold all of its sums.
const WARPS: [usize; 2] = [8, 4];
/// Rows that are on their way to shared memory or worked on, forward and backward.
const ROWS_AT_ONCE: [usize; 2] = [2, 3];
/// Shared memory that the kernels declare themselves, at most.
const DECLARED_BYTES: usize = 1024;
/// Parts that sums over rows are made in where a warp takes a row. As many on every GPU whose
/// shared memory holds the rows, so that all give the same bits; about as many as fill an H200.
const PARTS_BY_WARP: usize = 384;
/// Threads that all parts have together, for the same, where a block takes a row.
const THREADS_OF_PARTS: usize = 132 * 512;
/// Parts where a block takes a row: more of them cost more to add up than they save.
const PARTS_BY_BLOCK: std::ops::RangeInclusive<usize> = 132..=768;
/// Threads that a forward kernel whose rows are fetched ahead has in all: six blocks of 256 on each
/// multiprocessor of an H200.
const THREADS_AHEAD: usize = 132 * 6 * 256;

/// How rows are taken by packs of 16 bytes.
#[derive(Clone, Copy)]
enum Packed {
    /// A warp a row.
    ByWarp,
    /// A block of so many threads a row, each with so many packs.
    ByBlock { threads: usize, kept: usize },
}

impl Packed {
    /// How rows of `length` elements are taken, if they are whole packs and a block's threads can
    /// hold them with one of these numbers of packs each.
    fn of_length(dtype: DType, length: usize, kept: &[usize]) -> Option<Packed> {
        let bytes = length * dtype.size_bytes();
        let packs = bytes / 16;
        let threads = |kept: usize| packs.div_ceil(kept).next_multiple_of(32);
        let by_block = |&kept: &usize| Packed::ByBlock { threads: threads(kept), kept };
        match () {
            () if !bytes.is_multiple_of(16) => None,
            () if packs <= 32 * KEPT_PACKS => Some(Packed::ByWarp),
            () => kept.iter().find(|&&kept| threads(kept) <= MOST_THREADS).map(by_block),
        }
    }

    /// The same forward, of rows at these addresses.
    fn forward(dtype: DType, length: usize, addresses: &[usize]) -> Option<Packed> {
        let packed = Packed::of_length(dtype, length, &[KEPT_PACKS]);
        packed.filter(|_| addresses.iter().all(|at| at.is_multiple_of(16)))
    }

    /// The same backward.
    fn backward(dtype: DType, length: usize) -> Option<Packed> {
        match dtype {
            DType::F16 | DType::BF16 => {
                Packed::of_length(dtype, length, &[KEPT_HALF_PACKS, KEPT_PACKS])
            }
            _ => Packed::of_length(dtype, length, &[KEPT_PACKS]),
        }
    }

    /// The launch, with so many warps in a block where a warp takes a row.
    fn grid(self, rows: usize, warps: usize, most_blocks: usize) -> Grid {
        let (rows_of_block, threads) = match self {
            Packed::ByWarp => (warps, 32 * warps),
            Packed::ByBlock { threads, .. } => (1, threads),
        };
        let blocks = rows.div_ceil(rows_of_block).clamp(1, most_blocks);
        Grid { blocks: (blocks as u32, 1, 1), threads: threads as u32, shared_bytes: 0 }
    }

    /// The launch with shared memory for `operands` operands of `rows_at_once` rows, if they can be
    /// fetched while it computes.
    fn ahead(
        self,
        launch: &CudaLaunch<'_>,
        grid: Grid,
        rows_at_once: usize,
        operands: usize,
    ) -> Option<Grid> {
        let kept = match self {
            Packed::ByWarp => KEPT_PACKS,
            Packed::ByBlock { kept, .. } => kept,
        };
        let bytes = rows_at_once * operands * kept * grid.threads as usize * 16;
        launch.fetching(grid, bytes, DECLARED_BYTES)
    }
}

/// How many parts sums over rows are made in, at most.
fn most_parts(dtype: DType, length: usize) -> usize {
    match Packed::backward(dtype, length) {
        Some(Packed::ByBlock { threads, .. }) => {
            (THREADS_OF_PARTS / threads).clamp(*PARTS_BY_BLOCK.start(), *PARTS_BY_BLOCK.end())
        }
        _ => PARTS_BY_WARP,
    }
}

/// Bytes of the sums for weight and bias, in parts.
fn parts_bytes(dtype: DType, length: usize) -> usize {
    (most_parts(dtype, length) * 2 * length * sum_dtype(dtype).size_bytes())
        .next_multiple_of(ALIGNMENT_BYTES)
}

/// Bytes of workspace: copies of what is not contiguous, and sums in parts if they are wanted.
pub(crate) fn layer_norm_backward_workspace_bytes(
    inputs: &[&Meta],
    length: usize,
    sums: bool,
) -> usize {
    copies_bytes(inputs) + if sums { parts_bytes(inputs[1].dtype, length) } else { 0 }
}

fn rows_grid(rows: usize, length: usize) -> Grid {
    let threads = if length >= 1024 { 512 } else { 128 };
    Grid { blocks: (rows.clamp(1, 1 << 20) as u32, 1, 1), threads, shared_bytes: 0 }
}

/// The addresses of inputs as contiguous rows; 0 for one that is not there.
fn rows_of<const N: usize>(
    launch: &CudaLaunch<'_>,
    space: &mut Space,
    operands: [Option<&Operand<'_>>; N],
) -> Result<[usize; N]> {
    let mut addresses = [0; N];
    for (place, operand) in addresses.iter_mut().zip(operands) {
        if let Some(operand) = operand {
            *place = space.contiguous(launch, operand)?;
        }
    }
    Ok(addresses)
}

/// What the kernels of rows and parameters of these dtypes are called by: parameters have the rows'
/// dtype, or are float32 beside halves. So do their gradients.
fn dtypes_name<const N: usize>(
    launch: &CudaLaunch<'_>,
    rows: DType,
    parameters: [Option<&Operand<'_>>; N],
) -> Result<&'static str> {
    let given: SmallVec<[&Operand<'_>; N]> = parameters.into_iter().flatten().collect();
    let (of_parameters, name) = match (rows, given.first().map(|first| first.dtype())) {
        (DType::F16, Some(DType::F32)) => (DType::F32, "f16_by_f32"),
        (DType::BF16, Some(DType::F32)) => (DType::F32, "bf16_by_f32"),
        _ => (rows, type_name(rows)),
    };
    launch.check_dtypes(of_parameters, &given).map(|()| name)
}

/// Inputs [x, other?, weight?, bias?]; outputs [out, sum?] or [out, sum?, mean, rstd]. Rows of
/// `length` elements, of x or, if `adds`, of its sum with `other`.
pub(crate) fn layer_norm(
    launch: &CudaLaunch<'_>,
    length: usize,
    eps: f64,
    weight: Option<&Operand<'_>>,
    bias: Option<&Operand<'_>>,
    adds: bool,
) -> Result<()> {
    let x = &launch.inputs[0];
    let out = launch.contiguous_output()?;
    if x.layout().numel() == 0 {
        return Ok(());
    }
    let other = launch.inputs.get(1).filter(|_| adds);
    let sum = launch.outputs.get(1).filter(|_| adds);
    let given: Vec<&Operand<'_>> = [out].into_iter().chain(other).chain(sum).collect();
    launch.check_dtypes(x.dtype(), &given)?;
    let dtypes = dtypes_name(launch, x.dtype(), [weight, bias])?;
    let rows = x.layout().numel() / length;
    let mut space = Space::new(&launch.workspace);
    let taken = rows_of(launch, &mut space, [Some(x), other, weight, bias])?;
    let [x_rows, other, weight, bias] = taken;
    let [out_rows, sum] = [Some(out), sum].map(|out| out.map_or(0, |out| out.first_byte().addr()));
    let moments = &launch.outputs[1 + usize::from(adds)..];
    let arguments = [
        whole(rows),
        whole(length),
        Argument::F64(eps),
        whole(x_rows),
        whole(weight),
        whole(bias),
        whole(out_rows),
        or_nothing(moments.first()),
        or_nothing(moments.get(1)),
        whole(other),
        whole(sum),
    ];
    let addresses = [x_rows, other, sum, out_rows, weight, bias];
    let (kernel, grid) = match Packed::forward(x.dtype(), length, &addresses) {
        Some(Packed::ByWarp) => ("by_warp", Packed::ByWarp.grid(rows, WARPS[0], 1 << 20)),
        Some(packed @ Packed::ByBlock { threads, .. }) => {
            let ahead = packed.grid(rows, 1, THREADS_AHEAD / threads);
            match packed.ahead(launch, ahead, ROWS_AT_ONCE[0], 1) {
                Some(grid) if x.dtype().size_bytes() == 2 && !adds => ("ahead", grid),
                _ => ("", packed.grid(rows, 1, 1 << 20)),
            }
        }
        None => ("", rows_grid(rows, length)),
    };
    // Without a sum there are two parameters less.
    let (name, arguments) = match adds {
        true => ("add_layer_norm", &arguments[..]),
        false => ("layer_norm", &arguments[..9]),
    };
    launch.run(&source_files::LAYER_NORM, (name, kernel, dtypes), grid, arguments)
}

/// Inputs [grad, x, mean, rstd, weight?]; outputs are given apart, each if it is wanted. They are
/// contiguous. The gradient of the input is added to what its output holds if `added`.
pub(crate) fn layer_norm_backward(
    launch: &CudaLaunch<'_>,
    length: usize,
    weight: Option<&Operand<'_>>,
    outputs: [Option<&Operand<'_>>; 3],
    added: bool,
) -> Result<()> {
    let [grad, x, mean, rstd] = [0, 1, 2, 3].map(|index| &launch.inputs[index]);
    let [input, weight_out, bias_out] = outputs;
    if x.layout().numel() == 0 {
        // No row adds anything to the gradients of the parameters.
        let parameters = [weight_out, bias_out].into_iter().flatten();
        return parameters
            .into_iter()
            .try_for_each(|out| fill_operand(launch, out, Scalar::Int(0)));
    }
    launch.check_dtypes(x.dtype(), &[grad])?;
    let (rows, dtype) = (x.layout().numel() / length, x.dtype());
    let name = dtypes_name(launch, dtype, [weight, weight_out, bias_out])?;
    let mut space = Space::new(&launch.workspace);
    let addresses =
        rows_of(launch, &mut space, [Some(grad), Some(x), Some(mean), Some(rstd), weight])?;
    let [grad, x, mean, rstd, weight] = addresses;
    let wants_sums = weight_out.is_some() || bias_out.is_some();
    let parts = if wants_sums { space.take(parts_bytes(dtype, length)) } else { 0 };
    let shared = [rows, length, grad, x, mean, rstd].map(whole);
    let run = |kernel: &'static str, grid: Grid, rest: &[usize]| {
        let rest = rest.iter().map(|at| whole(*at));
        let arguments: SmallVec<[Argument; 10]> = shared.iter().cloned().chain(rest).collect();
        launch.run(&source_files::LAYER_NORM, (kernel, name), grid, &arguments)
    };
    let out = input.map_or(0, |out| out.first_byte().addr());
    let most = most_parts(dtype, length);
    let aligned = [grad, x, weight, out].iter().all(|at| at.is_multiple_of(16));
    let packed = Packed::backward(dtype, length).filter(|_| aligned);
    let ahead = packed.and_then(|packed| {
        let grid = packed.grid(rows, WARPS[1], if wants_sums { most } else { 1 << 20 });
        let grid = packed.ahead(launch, grid, ROWS_AT_ONCE[1], 2)?;
        let kernel = match packed {
            Packed::ByWarp => "layer_norm_backward_by_warp",
            Packed::ByBlock { kept, .. } if kept < KEPT_PACKS => {
                "layer_norm_backward_by_wide_block"
            }
            Packed::ByBlock { .. } => "layer_norm_backward_by_block",
        };
        Some((kernel, grid))
    });
    let count = match ahead {
        Some((kernel, grid)) => {
            run(kernel, grid, &[weight, out, usize::from(added), parts])?;
            grid.blocks.0 as usize
        }
        None => {
            if input.is_some() {
                let rest = [weight, out, usize::from(added)];
                run("layer_norm_backward", rows_grid(rows, length), &rest)?;
            }
            let count = rows.min(most);
            let blocks = (length.div_ceil(128) as u32, count as u32, 1);
            if wants_sums {
                run(
                    "layer_norm_parameters",
                    Grid { blocks, threads: 128, shared_bytes: 0 },
                    &[parts],
                )?;
            }
            count
        }
    };
    if !wants_sums {
        return Ok(());
    }
    let arguments =
        [whole(count), whole(length), whole(parts), or_nothing(weight_out), or_nothing(bias_out)];
    let blocks = (length.div_ceil(32) as u32, 1, 1);
    let grid = Grid { blocks, threads: 1024, shared_bytes: 0 };
    launch.run(&source_files::LAYER_NORM, ("layer_norm_parts", name), grid, &arguments)
}
