//! Writing where index tensors say: the scatters, with one index for each element along a
//! dimension, and `index_put`, with lists of index tensors. Values for one place are brought
//! together in their order (see the kernels' source).

use plimsoll_core::{DType, Dims, Layout, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::cpu::index::Combine;
use plimsoll_kernels::{Meta, Operand};
use smallvec::{SmallVec, smallvec};

use super::in_workspace::{ALIGNMENT_BYTES, Space};
use super::index::{Places, list_bytes, write_offsets};
use super::order::Order;
use super::strided::Strided;
use super::tail::{code, computed_in};
use super::{CudaLaunch, address, copy, type_name, whole};

/// Indices along a dimension that one thread goes through by itself.
const SHORT_LINE: usize = 32;

/// Indices and places of a line that a block holds; mirrors the kernels.
const TABLE: usize = 4096;

/// Equal indices whose slices one warp adds up, and the threads that add up more; mirrors the
/// kernels.
const LONG_RUN: usize = 64;
const LONG_RUN_THREADS: u32 = 512;

/// Sorted keys that a warp adds up where slices are packs of 16 bytes side by side; mirrors the
/// kernels.
const SEGMENT: usize = 32;

/// Elements of a pack, for dtypes whose slices are added by segments.
fn pack(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Some(16 / dtype.size_bytes()),
        _ => None,
    }
}

/// Bytes of what segments leave of runs that go beyond them, for `count` keys; 0 where slices of so
/// many columns are added otherwise.
pub(super) fn parts_bytes(dtype: DType, count: usize, columns: usize) -> usize {
    let whole = pack(dtype).is_some_and(|wide| columns.is_multiple_of(wide));
    let segments = if whole { count.div_ceil(SEGMENT) } else { 0 };
    (segments * 2 * columns * size_of::<f32>()).next_multiple_of(ALIGNMENT_BYTES)
}

/// How a scatter is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A thread for each line along the dimension.
    Lines,
    /// A block for each line.
    Table,
    /// One index a slice: indices are sorted.
    Slices,
    /// One index an element: elements are sorted.
    Elements,
}

fn way(index: &Meta, target: &Layout, dim: usize) -> Way {
    let (shape, strides) = (index.shape(), index.layout.strides());
    let size = |sizes: &[usize]| sizes.get(dim).copied().unwrap_or(1);
    let (length, places) = (size(shape), size(target.shape()));
    let mut others = (0..shape.len()).filter(|&d| d != dim && shape[d] > 1).peekable();
    let is_slices = others.peek().is_some() && others.all(|d| strides[d] == 0);
    match () {
        () if length <= SHORT_LINE => Way::Lines,
        () if is_slices => Way::Slices,
        () if length <= TABLE && places <= TABLE => Way::Table,
        () => Way::Elements,
    }
}

/// Past the last element of a layout, counted from its first.
fn span(layout: &Layout) -> usize {
    let dims = layout.shape().iter().zip(layout.strides());
    1 + dims.map(|(&size, &stride)| size.saturating_sub(1) * stride).sum::<usize>()
}

/// The sort of a scatter; keys are slices along `dim`, or elements of the target.
fn order(way: Way, index: &Meta, target: &Layout, dim: usize) -> Option<Order> {
    match way {
        Way::Lines | Way::Table => None,
        Way::Slices => Some(Order { count: index.shape()[dim], highest: target.shape()[dim] }),
        Way::Elements => Some(Order { count: index.layout.numel(), highest: span(target) }),
    }
}

/// Workspace of [`scatter`], whose inputs are [x, index, source].
pub(crate) fn scatter_workspace_bytes(
    inputs: &[&Meta],
    outputs: &[Meta],
    dim: usize,
    combine: Combine,
) -> usize {
    let (index, target) = (inputs[1], outputs.first().unwrap_or(inputs[0]));
    if index.layout.numel() == 0 {
        return 0;
    }
    let way = way(index, &target.layout, dim);
    let order = order(way, index, &target.layout, dim);
    let parts = match way {
        Way::Slices if combine == Combine::Add => {
            parts_bytes(target.dtype, index.shape()[dim], slice_columns(index, dim))
        }
        _ => 0,
    };
    parts + order.map_or(0, Order::workspace_bytes)
}

/// Elements of one of the slices along `dim` that an index says the places of.
fn slice_columns(index: &Meta, dim: usize) -> usize {
    (0..index.shape().len()).filter(|&d| d != dim).map(|d| index.shape()[d]).product()
}

fn is_same(x: &Operand<'_>, out: &Operand<'_>) -> bool {
    out.first_byte() == x.first_byte() && out.layout() == x.layout()
}

/// Makes the output a copy of `x`, unless it is x.
fn begin(launch: &CudaLaunch<'_>, x: &Operand<'_>, out: &Operand<'_>) -> Result<()> {
    if is_same(x, out) { Ok(()) } else { copy(launch, x, out) }
}

/// Inputs [x, index, source]: the output becomes x with the source, as far as the index goes,
/// combined in at the index along `dim`.
pub(crate) fn scatter(launch: &CudaLaunch<'_>, dim: usize, combine: Combine) -> Result<()> {
    let (x, index, source) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2]);
    let out = &launch.outputs[0];
    launch.check_dtypes(DType::I64, &[index])?;
    launch.check_dtypes(out.dtype(), &[x, source])?;
    if index.layout().numel() == 0 {
        return begin(launch, x, out);
    }
    let way = way(index.meta(), out.layout(), dim);
    if way == Way::Table {
        return table(launch, dim, combine);
    }
    begin(launch, x, out)?;
    let Some(order) = order(way, index.meta(), out.layout(), dim) else {
        return lines(launch, dim, combine);
    };
    let mut space = Space::new(&launch.workspace);
    let keys = order.keys_in(&mut space);
    // Where the source's values are, by their positions in the index, in order.
    let (sizes, strides) = (index.shape(), source.layout().strides());
    let (out_strides, index_strides) = (out.layout().strides(), index.layout().strides());
    let rank = sizes.len();
    let is_slices = way == Way::Slices;
    let sorted = (0..rank).filter(|&d| !is_slices || d == dim);
    let across = |d: usize| if d == dim { 0 } else { out_strides[d] };
    let keyed =
        Strided::in_order(sorted.clone().map(|d| (sizes[d], [index_strides[d], across(d)])));
    let target = Target {
        dim,
        size: out.shape().get(dim).copied().unwrap_or(1),
        stride: if is_slices { 1 } else { out_strides.get(dim).copied().unwrap_or(0) },
        skipped: None,
    };
    target.write_keys(launch, order, keys, index, &keyed)?;
    let places = Strided::in_order(sorted.map(|d| (sizes[d], [strides[d]])));
    let sorted = Sorted { order, found: order.run(launch, keys)?, places };
    if !is_slices {
        return sorted.combine_elements(launch, combine, source, out);
    }
    let rest = (0..rank).filter(|&d| d != dim);
    let columns = slice_columns(index.meta(), dim);
    let parts = match combine {
        Combine::Add => space.take(parts_bytes(out.dtype(), order.count, columns)),
        _ => 0,
    };
    let slice = Slice {
        columns,
        strided: Strided::in_order(rest.map(|d| (sizes[d], [out_strides[d], strides[d]]))),
        unit: out_strides[dim],
        steps: &[out_strides[dim]],
        is_fresh: false,
        mean: false,
        parts,
    };
    sorted.combine_slices(launch, combine, &slice, source, out)
}

/// A thread for each line.
fn lines(launch: &CudaLaunch<'_>, dim: usize, combine: Combine) -> Result<()> {
    let (index, source, out) = (&launch.inputs[1], &launch.inputs[2], &launch.outputs[0]);
    let all = [out, index, source].map(|operand| operand.layout().strides());
    let sizes = index.shape();
    let across = (0..sizes.len()).filter(|&d| d != dim);
    let count: usize = across.clone().map(|d| sizes[d]).product();
    let strided = Strided::in_order(across.map(|d| (sizes[d], all.map(|strides| strides[d]))));
    let along = all.map(|strides| strides.get(dim).copied().unwrap_or(0));
    let arguments = [
        whole(count),
        strided.argument(launch.operation)?,
        whole(sizes.get(dim).copied().unwrap_or(1)),
        whole(along[1]),
        whole(along[2]),
        whole(out.shape().get(dim).copied().unwrap_or(1)),
        whole(along[0]),
        whole(dim),
        Argument::I32(combine as i32),
        Argument::I32(code(out.dtype()) as i32),
        address(index),
        address(source),
        address(out),
        launch.fault(),
    ];
    let kernel = ("scatter_lines", computed_in(out.dtype()));
    launch.run(&source_files::SCATTER, kernel, launch.grid(count, 1), &arguments)
}

/// A block for each line. Where the index reaches every line the output need not be a copy of x
/// before.
fn table(launch: &CudaLaunch<'_>, dim: usize, combine: Combine) -> Result<()> {
    let (mut x, index, source) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2]);
    let (out, sizes) = (&launch.outputs[0], index.shape());
    let across = (0..sizes.len()).filter(|&d| d != dim);
    let fresh = across.clone().all(|d| sizes[d] == out.shape()[d]) && !is_same(x, out);
    if !fresh {
        begin(launch, x, out)?;
        x = out;
    }
    let all = [out, index, source, x].map(|operand| operand.layout().strides());
    let count: usize = across.clone().map(|d| sizes[d]).product();
    let strided = Strided::in_order(across.map(|d| (sizes[d], all.map(|s| s[d]))));
    let along = all.map(|strides| strides[dim]);
    let arguments = [
        whole(count),
        strided.argument(launch.operation)?,
        Argument::I32(sizes[dim] as i32),
        Argument::I32(out.shape()[dim] as i32),
        whole(along[1]),
        whole(along[2]),
        whole(along[0]),
        whole(along[3]),
        whole(dim),
        Argument::I32(combine as i32),
        Argument::I32(code(out.dtype()) as i32),
        Argument::I32(i32::from(fresh)),
        address(index),
        address(source),
        address(x),
        address(out),
        launch.fault(),
    ];
    let kernel = ("scatter_table", computed_in(out.dtype()));
    let blocks = count.min(1 << 20) as u32;
    let grid = Grid { blocks: (blocks, 1, 1), threads: 256, shared_bytes: 0 };
    launch.run(&source_files::SCATTER, kernel, grid, &arguments)
}

/// What indices point into.
pub(super) struct Target {
    pub(super) dim: usize,
    pub(super) size: usize,
    /// What one more in the index adds to the key.
    pub(super) stride: usize,
    /// An index that counts for nothing.
    pub(super) skipped: Option<i64>,
}

impl Target {
    /// Writes the key of every index to `keys`. Operands of `keyed`: the index, and what its place
    /// adds to the key.
    pub(super) fn write_keys(
        &self,
        launch: &CudaLaunch<'_>,
        order: Order,
        keys: usize,
        index: &Operand<'_>,
        keyed: &Strided,
    ) -> Result<()> {
        let arguments = [
            whole(order.count),
            keyed.argument(launch.operation)?,
            address(index),
            whole(keys),
            whole(self.size),
            whole(self.stride),
            whole(self.dim),
            Argument::I32(i32::from(self.skipped.is_some())),
            Argument::U64(self.skipped.unwrap_or(0) as u64),
            whole(order.highest),
            launch.fault(),
        ];
        let kernel = ("scatter_targets", order.key_type());
        launch.run(&source_files::SCATTER, kernel, launch.grid(order.count, 1), &arguments)
    }
}

/// Values in the order of the places that they go to.
pub(super) struct Sorted {
    pub(super) order: Order,
    /// Addresses of the keys and of the positions.
    pub(super) found: [usize; 2],
    /// Where in the source the value of a position is.
    pub(super) places: Strided,
}

/// What one key stands for.
pub(super) struct Slice<'a> {
    pub(super) columns: usize,
    /// Operands: the target and the source.
    pub(super) strided: Strided,
    /// What a key is multiplied by to give the place in the target.
    pub(super) unit: usize,
    /// What places in the target are sums of multiples of.
    pub(super) steps: &'a [usize],
    /// Whether the target is 0.
    pub(super) is_fresh: bool,
    /// Whether the sum is divided by the number of values; the target was 0.
    pub(super) mean: bool,
    /// Where segments leave their parts, of [`parts_bytes`] bytes.
    pub(super) parts: usize,
}

impl Slice<'_> {
    /// Whether sums can be made by segments: slices are packs of 16 bytes side by side, there and
    /// in a source that begins at multiples of these `places`.
    fn is_packed(&self, places: &[usize], source: &Operand<'_>, out: &Operand<'_>) -> bool {
        let Some(wide) = pack(out.dtype()) else { return false };
        let steps = self.steps.iter().chain(places).chain([&self.columns]);
        let aligned = |operand: &Operand<'_>| operand.first_byte().addr().is_multiple_of(16);
        !self.mean
            && self.strided.is_dense()
            && steps.into_iter().all(|step| step.is_multiple_of(wide))
            && aligned(source)
            && aligned(out)
    }
}

impl Sorted {
    /// Mirrors `Keys` in the kernels.
    pub(super) fn keys(&self) -> Argument {
        let Order { count, highest } = self.order;
        let wide = u64::from(self.order.is_wide());
        Argument::Words(smallvec![self.found[0] as u64, count as u64, highest as u64, wide])
    }

    pub(super) fn combine_elements(
        &self,
        launch: &CudaLaunch<'_>,
        combine: Combine,
        source: &Operand<'_>,
        out: &Operand<'_>,
    ) -> Result<()> {
        let arguments = [
            self.keys(),
            whole(self.found[1]),
            self.places.argument(launch.operation)?,
            Argument::I32(combine as i32),
            Argument::I32(code(out.dtype()) as i32),
            address(source),
            address(out),
        ];
        let kernel = ("combine_elements", computed_in(out.dtype()));
        let grid = launch.grid(self.order.count, 1);
        launch.run(&source_files::SCATTER, kernel, grid, &arguments)
    }

    pub(super) fn combine_slices(
        &self,
        launch: &CudaLaunch<'_>,
        combine: Combine,
        slice: &Slice<'_>,
        source: &Operand<'_>,
        out: &Operand<'_>,
    ) -> Result<()> {
        let is_sum = combine == Combine::Add;
        if is_sum && slice.is_packed(self.places.strides(0), source, out) {
            return self.add_segments(launch, slice, source, out);
        }
        let shared = [
            self.keys(),
            whole(self.found[1]),
            whole(slice.unit),
            whole(slice.columns),
            slice.strided.argument(launch.operation)?,
            self.places.argument(launch.operation)?,
        ];
        let rest = [
            Argument::I32(i32::from(slice.mean)),
            Argument::I32(code(out.dtype()) as i32),
            address(source),
            address(out),
        ];
        let number = computed_in(out.dtype());
        let combine = std::iter::once(Argument::I32(combine as i32));
        let arguments: SmallVec<[Argument; 11]> =
            shared.iter().cloned().chain(combine).chain(rest.iter().cloned()).collect();
        let chunks = slice.columns.div_ceil(128);
        // A warp for each key and 128 columns.
        let grid = launch.grid(self.order.count * chunks * 32, 1);
        launch.run(&source_files::SCATTER, ("combine_slices", number), grid, &arguments)?;
        if !is_sum || self.order.count <= LONG_RUN {
            return Ok(());
        }
        let blocks = (self.order.count.div_ceil(LONG_RUN) * chunks).min(1 << 20) as u32;
        let grid = Grid { blocks: (blocks, 1, 1), threads: LONG_RUN_THREADS, shared_bytes: 0 };
        let arguments: SmallVec<[Argument; 10]> = shared.into_iter().chain(rest).collect();
        launch.run(&source_files::SCATTER, ("add_long_runs", number), grid, &arguments)
    }

    /// Sums of slices that [`Slice::is_packed`] holds for: every segment of sorted keys is as much
    /// work, however often a key occurs.
    fn add_segments(
        &self,
        launch: &CudaLaunch<'_>,
        slice: &Slice<'_>,
        source: &Operand<'_>,
        out: &Operand<'_>,
    ) -> Result<()> {
        let (dtype, fresh) = (type_name(out.dtype()), Argument::I32(i32::from(slice.is_fresh)));
        let (keys, unit, columns) = (self.keys(), whole(slice.unit), whole(slice.columns));
        let segments = self.order.count.div_ceil(SEGMENT);
        let grid = |blocks: usize| Grid {
            blocks: (blocks.clamp(1, 1 << 20) as u32, 1, 1),
            threads: 256,
            shared_bytes: 0,
        };
        let arguments = [
            keys.clone(),
            whole(self.found[1]),
            unit.clone(),
            columns.clone(),
            self.places.argument(launch.operation)?,
            fresh.clone(),
            address(source),
            address(out),
            whole(slice.parts),
        ];
        let packs = slice.columns * out.dtype().size_bytes() / 16;
        let blocks = (segments * packs.div_ceil(32)).div_ceil(8);
        launch.run(&source_files::SCATTER, ("add_segments", dtype), grid(blocks), &arguments)?;
        let arguments = [keys, unit, columns, fresh, whole(slice.parts), address(out)];
        let blocks = segments * slice.columns.div_ceil(128);
        launch.run(&source_files::SCATTER, ("add_parts", dtype), grid(blocks), &arguments)
    }
}

/// The sort of an `index_put`: keys are elements of the target.
fn put_order(indices: &[&Meta], target: &Layout) -> Order {
    Order { count: list_count(indices), highest: span(target) }
}

fn list_count(indices: &[&Meta]) -> usize {
    let shapes: Vec<&[usize]> = indices.iter().map(|meta| meta.shape()).collect();
    let common = plimsoll_core::broadcast_shapes("index_put", &shapes);
    common.map_or(0, |shape| shape.iter().product())
}

/// Workspace of [`index_put`], whose inputs are [x, values, index tensors...].
pub(crate) fn index_put_workspace_bytes(
    inputs: &[&Meta],
    outputs: &[Meta],
    dims: &[usize],
    accumulate: bool,
) -> usize {
    let (indices, target) = (&inputs[2..], outputs.first().unwrap_or(inputs[0]));
    if list_count(indices) == 0 {
        return 0;
    }
    let order = put_order(indices, &target.layout);
    let parts = match accumulate {
        true => parts_bytes(target.dtype, order.count, put_columns(target.shape(), dims)),
        false => 0,
    };
    list_bytes(indices) + order.workspace_bytes() + parts
}

/// Elements that one combination of indices at `dims` stands for.
fn put_columns(shape: &[usize], dims: &[usize]) -> usize {
    (0..shape.len()).filter(|dim| !dims.contains(dim)).map(|dim| shape[dim]).product()
}

/// Inputs [x, values, index tensors...]: the output becomes x with the values, which broadcast,
/// written or added at every combination of the index tensors, which stand at `dims`.
pub(crate) fn index_put(launch: &CudaLaunch<'_>, dims: &[usize], accumulate: bool) -> Result<()> {
    let (x, values, indices) = (&launch.inputs[0], &launch.inputs[1], &launch.inputs[2..]);
    let out = &launch.outputs[0];
    launch.check_dtypes(out.dtype(), &[x, values])?;
    begin(launch, x, out)?;
    let places = Places::new(launch, x.shape().len(), dims, indices)?;
    let slice_sizes: Dims = places.rest.iter().map(|&d| x.shape()[d]).collect();
    let columns: usize = slice_sizes.iter().product();
    if places.count() == 0 || columns == 0 {
        return Ok(());
    }
    let metas: Vec<&Meta> = indices.iter().map(Operand::meta).collect();
    let order = put_order(&metas, out.layout());
    let mut space = Space::new(&launch.workspace);
    let list = space.take(list_bytes(&metas));
    let keys = order.keys_in(&mut space);
    let parts = match accumulate {
        true => space.take(parts_bytes(out.dtype(), order.count, columns)),
        false => 0,
    };
    write_offsets(launch, out, dims, indices, &places, list)?;
    let arguments = [whole(order.count), whole(list), whole(keys), whole(order.highest)];
    let kernel = ("offset_targets", order.key_type());
    launch.run(&source_files::SCATTER, kernel, launch.grid(order.count, 1), &arguments)?;

    let mut shape = slice_sizes.clone();
    shape.insert_from_slice(places.start, &places.common);
    let spread = values.layout().broadcast_to(&shape)?;
    let common = places.start..places.start + places.common.len();
    let own = (0..shape.len()).filter(|dim| !common.contains(dim));
    let slice = own
        .zip(&places.rest)
        .map(|(dim, &to)| (shape[dim], [out.layout().strides()[to], spread.strides()[dim]]));
    let slice: Vec<(usize, [usize; 2])> = slice.collect();
    let positions = common.map(|dim| (shape[dim], [spread.strides()[dim]]));
    let sorted =
        Sorted { order, found: order.run(launch, keys)?, places: Strided::in_order(positions) };
    let combine = if accumulate { Combine::Add } else { Combine::Replace };
    if columns == 1 {
        return sorted.combine_elements(launch, combine, values, out);
    }
    let strided = Strided::in_order(slice.into_iter());
    let steps: Dims = dims.iter().map(|&dim| out.layout().strides()[dim]).collect();
    let slice =
        Slice { columns, strided, unit: 1, steps: &steps, is_fresh: false, mean: false, parts };
    sorted.combine_slices(launch, combine, &slice, values, out)
}
