//! Rows of a table by index, one an index or several a bag, and the gradients. Those of the table
//! are added up after the indices were sorted, so that every run gives the same bits.

use plimsoll_core::{DType, Result, Scalar};
use plimsoll_cuda::{Argument, KernelName, source_files};
use plimsoll_kernels::cpu::embedding_bag::{BagArgs, BagMode};
use plimsoll_kernels::cpu::index::Combine;
use plimsoll_kernels::{Meta, Operand};

use super::fill::fill_operand;
use super::in_workspace::{ALIGNMENT_BYTES, Space};
use super::index::{Dim, read_along};
use super::order::Order;
use super::scatter::{Slice, Sorted, Target, parts_bytes};
use super::strided::Strided;
use super::tail::{code, computed_in};
use super::{CudaLaunch, NOTHING, address, whole};

/// Inputs [table, indices], output [rows].
pub(crate) fn embedding(launch: &CudaLaunch<'_>) -> Result<()> {
    let (table, indices, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    launch.check_dtypes(DType::I64, &[indices])?;
    let (to, strides) = (out.layout().strides(), table.layout().strides());
    let rank = indices.shape().len();
    let each = (0..rank).map(|d| (indices.shape()[d], [to[d], indices.layout().strides()[d], 0]));
    let mut dims: Vec<Dim> = each.collect();
    dims.push((table.shape()[1], [to[rank], 0, strides[1]]));
    read_along(launch, &dims, [out, table, indices], (0, table.shape()[0], strides[0]))
}

/// The sort of indices into a table.
fn order(indices: &Meta, rows: usize) -> Order {
    Order { count: indices.layout.numel(), highest: rows }
}

/// Workspace of [`embedding_backward`], whose inputs are these.
pub(crate) fn embedding_backward_workspace_bytes(inputs: &[&Meta], rows: usize) -> usize {
    let (grad, indices) = (inputs[0], inputs[1]);
    let [count, width] = [indices.layout.numel(), grad.shape().last().copied().unwrap_or(0)];
    match count {
        0 => 0,
        _ => order(indices, rows).workspace_bytes() + parts_bytes(grad.dtype, count, width),
    }
}

/// Writes the rows that `indices` name as keys; `padding` counts for nothing.
fn write_row_keys(
    launch: &CudaLaunch<'_>,
    order: Order,
    keys: usize,
    indices: &Operand<'_>,
    padding: Option<usize>,
) -> Result<()> {
    let dims = indices.shape().iter().zip(indices.layout().strides());
    let keyed = Strided::in_order(dims.map(|(&size, &stride)| (size, [stride, 0])));
    let skipped = padding.map(|padding| padding as i64);
    let target = Target { dim: 0, size: order.highest, stride: 1, skipped };
    target.write_keys(launch, order, keys, indices, &keyed)
}

/// Inputs [grad, indices], output [gradient of the table]; `added` to what it holds, which cannot
/// be for gradients divided by frequency.
pub(crate) fn embedding_backward(
    launch: &CudaLaunch<'_>,
    padding: Option<usize>,
    by_frequency: bool,
    added: bool,
) -> Result<()> {
    let (grad, indices, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    launch.check_dtypes(DType::I64, &[indices])?;
    if !added {
        fill_operand(launch, out, Scalar::Int(0))?;
    }
    let (rank, width) = (indices.shape().len(), out.shape()[1]);
    if indices.layout().numel() == 0 || width == 0 {
        return Ok(());
    }
    let order = order(indices.meta(), out.shape()[0]);
    let mut space = Space::new(&launch.workspace);
    let keys = order.keys_in(&mut space);
    write_row_keys(launch, order, keys, indices, padding)?;
    let (from, to) = (grad.layout().strides(), out.layout().strides());
    let sorted = Sorted {
        order,
        found: order.run(launch, keys)?,
        places: Strided::in_order((0..rank).map(|d| (indices.shape()[d], [from[d]]))),
    };
    let slice = Slice {
        columns: width,
        strided: Strided::in_order(std::iter::once((width, [to[1], from[rank]]))),
        unit: to[0],
        steps: &[to[0]],
        is_fresh: !added,
        mean: by_frequency,
        parts: space.take(parts_bytes(out.dtype(), order.count, width)),
    };
    sorted.combine_slices(launch, Combine::Add, &slice, grad, out)
}

/// Mirrors `Bags` in the kernels; `indices` and `offsets` have one dimension.
fn bags(indices: &Operand<'_>, offsets: &Operand<'_>, rows: usize, args: BagArgs) -> Argument {
    let place = |operand: &Operand<'_>| operand.first_byte().addr();
    let step = |operand: &Operand<'_>| operand.layout().strides()[0];
    let count = offsets.shape()[0];
    let words = [
        place(indices),
        step(indices),
        place(offsets),
        step(offsets),
        count - usize::from(args.include_last_offset && count > 0),
        count,
        indices.shape()[0],
        rows,
    ];
    let padding = args.padding.map_or(-1, |padding| padding as i64) as u64;
    Argument::Words(words.iter().map(|&word| word as u64).chain([padding]).collect())
}

/// Mirrors `Table` in the kernels.
fn table(operand: Option<&Operand<'_>>) -> Argument {
    let words = operand.map_or([0; 3], |operand| {
        let strides = operand.layout().strides();
        [operand.first_byte().addr(), strides[0], strides[1]]
    });
    Argument::Words(words.iter().map(|&word| word as u64).collect())
}

/// The address and step of the samples' weights, if there are any.
fn weights(operand: Option<&Operand<'_>>) -> [Argument; 2] {
    match operand {
        Some(operand) => [address(operand), whole(operand.layout().strides()[0])],
        None => [NOTHING, whole(0)],
    }
}

fn mode(args: BagArgs) -> Argument {
    Argument::I32(match args.mode {
        BagMode::Sum => 0,
        BagMode::Mean => 1,
        BagMode::Max => 2,
    })
}

/// Queues a kernel of the bags' with `threads` threads.
fn run(
    launch: &CudaLaunch<'_>,
    name: impl Into<KernelName>,
    threads: usize,
    arguments: &[Argument],
) -> Result<()> {
    if threads == 0 {
        return Ok(());
    }
    launch.run(&source_files::EMBEDDING_BAG, name, launch.grid(threads, 1), arguments)
}

/// Tells of indices and offsets that are wrong.
fn check(launch: &CudaLaunch<'_>, bags: &Argument, counts: [usize; 2]) -> Result<()> {
    run(launch, "bag_check", counts[0].max(counts[1]), &[bags.clone(), launch.fault()])
}

/// Inputs [table, indices, offsets, weights?]; outputs [a row a bag], and of maxima [the row that
/// each element is from].
pub(crate) fn embedding_bag(launch: &CudaLaunch<'_>, args: BagArgs) -> Result<()> {
    let (rows, out) = (&launch.inputs[0], &launch.outputs[0]);
    let (indices, offsets) = (&launch.inputs[1], &launch.inputs[2]);
    launch.check_dtypes(DType::I64, &[indices, offsets])?;
    let bags = bags(indices, offsets, rows.shape()[0], args);
    check(launch, &bags, [indices.shape()[0], offsets.shape()[0]])?;
    let width = rows.shape()[1];
    let [weights, step] = weights(launch.inputs.get(3).filter(|_| args.weighted));
    let arguments = [
        bags,
        whole(width),
        mode(args),
        Argument::I32(code(out.dtype()) as i32),
        table(Some(rows)),
        weights,
        step,
        table(Some(out)),
        table(launch.outputs.get(1)),
    ];
    let threads = out.shape()[0] * width.div_ceil(32) * 32;
    run(launch, ("bag", computed_in(out.dtype())), threads, &arguments)
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT_BYTES)
}

/// Workspace of [`embedding_bag_backward`], whose inputs are [grad, indices, offsets, ...].
pub(crate) fn embedding_bag_backward_workspace_bytes(
    inputs: &[&Meta],
    args: BagArgs,
    rows: usize,
) -> usize {
    let samples = inputs[1].layout.numel();
    match args.mode {
        BagMode::Max if inputs[0].layout.numel() == 0 => 0,
        BagMode::Max => largest_order(inputs[0], rows).workspace_bytes(),
        _ if samples == 0 => 0,
        _ => {
            let bags = aligned(inputs[2].layout.numel() * size_of::<i64>());
            order(inputs[1], rows).workspace_bytes() + bags + 2 * aligned(samples * 8)
        }
    }
}

/// The sort of maxima: keys are elements of the table's gradient, which is contiguous.
fn largest_order(grad: &Meta, rows: usize) -> Order {
    let [count, highest] = [grad.layout.numel(), rows * grad.shape()[1]];
    Order { count, highest }
}

/// Inputs [grad, indices, offsets, weights or rows of maxima]; output [gradient of the table].
pub(crate) fn embedding_bag_backward(
    launch: &CudaLaunch<'_>,
    args: BagArgs,
    by_frequency: bool,
) -> Result<()> {
    let (grad, out) = (&launch.inputs[0], launch.contiguous_output()?);
    fill_operand(launch, out, Scalar::Int(0))?;
    if grad.layout().numel() == 0 {
        return Ok(());
    }
    if args.mode == BagMode::Max {
        return largest_backward(launch, out);
    }
    let (indices, offsets) = (&launch.inputs[1], &launch.inputs[2]);
    launch.check_dtypes(DType::I64, &[indices, offsets])?;
    let (samples, rows, width) = (indices.shape()[0], out.shape()[0], out.shape()[1]);
    if samples == 0 {
        return Ok(());
    }
    let order = order(indices.meta(), rows);
    let mut space = Space::new(&launch.workspace);
    let counts = space.take(aligned(offsets.shape()[0] * size_of::<i64>()));
    let [owners, shares] = [(); 2].map(|()| space.take(aligned(samples * 8)));
    let keys = order.keys_in(&mut space);
    let bags = bags(indices, offsets, rows, args);
    let code = Argument::I32(code(out.dtype()) as i32);
    run(launch, "bag_counts", offsets.shape()[0] * 32, &[bags.clone(), whole(counts)])?;
    let [weights, step] = weights(launch.inputs.get(3).filter(|_| args.weighted));
    let arguments = [
        bags,
        mode(args),
        code.clone(),
        weights,
        step,
        whole(counts),
        whole(owners),
        whole(shares),
    ];
    run(launch, "bag_shares", samples, &arguments)?;
    write_row_keys(launch, order, keys, indices, args.padding)?;
    let found = order.run(launch, keys)?;
    let sorted = Sorted { order, found, places: Strided::in_order(std::iter::empty::<Keyed>()) };
    let arguments = [
        sorted.keys(),
        whole(found[1]),
        whole(owners),
        whole(shares),
        Argument::I32(i32::from(by_frequency)),
        whole(width),
        code,
        table(Some(grad)),
        table(Some(out)),
    ];
    let threads = samples * width.div_ceil(32) * 32;
    run(launch, ("bag_backward", computed_in(out.dtype())), threads, &arguments)
}

/// A dimension of keys: its size and stride.
type Keyed = (usize, [usize; 1]);

/// Each element of the gradient goes to the row that the maximum was from, in its column.
fn largest_backward(launch: &CudaLaunch<'_>, out: &Operand<'_>) -> Result<()> {
    let (grad, from) = (&launch.inputs[0], &launch.inputs[3]);
    launch.check_dtypes(DType::I64, &[from])?;
    let order = largest_order(grad.meta(), out.shape()[0]);
    let keys = order.keys_in(&mut Space::new(&launch.workspace));
    let (whose, given) = (from.layout().strides(), grad.layout().strides());
    let shape = grad.shape();
    let keyed = [(shape[0], [whose[0], 0]), (shape[1], [whose[1], 1])];
    // An empty bag's maximum is from nowhere.
    let target = Target { dim: 0, size: out.shape()[0], stride: shape[1], skipped: Some(-1) };
    target.write_keys(launch, order, keys, from, &Strided::in_order(keyed.into_iter()))?;
    let places = [(shape[0], [given[0]]), (shape[1], [given[1]])];
    let places = Strided::in_order(places.into_iter());
    let sorted = Sorted { order, found: order.run(launch, keys)?, places };
    sorted.combine_elements(launch, Combine::Add, grad, out)
}

/// Inputs [grad, indices, offsets, table]; output [gradient of the samples' weights].
pub(crate) fn embedding_bag_weights_backward(launch: &CudaLaunch<'_>, args: BagArgs) -> Result<()> {
    let (grad, rows, out) = (&launch.inputs[0], &launch.inputs[3], &launch.outputs[0]);
    let (indices, offsets) = (&launch.inputs[1], &launch.inputs[2]);
    launch.check_dtypes(DType::I64, &[indices, offsets])?;
    let arguments = [
        bags(indices, offsets, rows.shape()[0], args),
        whole(rows.shape()[1]),
        Argument::I32(code(out.dtype()) as i32),
        table(Some(grad)),
        table(Some(rows)),
        address(out),
        whole(out.layout().strides()[0]),
    ];
    run(launch, "bag_weights_backward", indices.shape()[0] * 32, &arguments)
}
