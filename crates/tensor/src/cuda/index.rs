//! Reading where index tensors say: one index for each element along a dimension (`gather`), and
//! lists of index tensors (`index`), which first become one list of offsets in the workspace.

use plimsoll_core::{DType, Dims, Layout, Result, broadcast_shapes};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::{Meta, Operand};
use smallvec::SmallVec;

use super::strided::Strided;
use super::{CudaLaunch, THREADS, address, whole};

/// The widest element that the kernels copy.
const WIDEST: usize = 16;
/// Elements that are worth a warp.
const SHORTEST_RUN: usize = 32;
/// Blocks at most; each takes several runs then.
const MOST_BLOCKS: usize = 1 << 20;

/// A read through an index, dimension by dimension of the result: its size, and the strides of the
/// output, of the index and of x, which stands still where the index moves it.
pub(super) type Dim = (usize, [usize; 3]);

/// Elements as the kernels copy them: the tensor's own, or runs of 16 bytes where every row of the
/// result is whole runs of x.
struct Elements {
    dims: Vec<Dim>,
    /// Of one element that is copied.
    bytes: usize,
    /// How many of the tensor's own elements that is.
    run: usize,
}

impl Elements {
    /// `steps` are the strides by which the index moves x.
    fn new(dims: &[Dim], own_bytes: usize, addresses: [usize; 2], steps: &[usize]) -> Elements {
        let dims: Vec<Dim> = dims.iter().copied().filter(|(size, _)| *size != 1).collect();
        let narrow = |dims| Elements { dims, bytes: own_bytes, run: 1 };
        let run = WIDEST / own_bytes;
        // The innermost dimension of the output, along which one index serves a run of x.
        let Some(inner) = dims.iter().position(|(_, strides)| *strides == [1, 0, 1]) else {
            return narrow(dims);
        };
        let fits = |number: &usize| number.is_multiple_of(run);
        let whole = |(at, &(size, [out, _, x])): (usize, &Dim)| match at == inner {
            true => fits(&size),
            false => fits(&out) && fits(&x),
        };
        let aligned = addresses.iter().all(|address| address.is_multiple_of(WIDEST));
        if !aligned || !steps.iter().all(fits) || !dims.iter().enumerate().all(whole) {
            return narrow(dims);
        }
        let wide = |(at, &(size, [out, index, x])): (usize, &Dim)| match at == inner {
            true => (size / run, [1, 0, 1]),
            false => (size, [out / run, index, x / run]),
        };
        Elements { dims: dims.iter().enumerate().map(wide).collect(), bytes: WIDEST, run }
    }

    /// Queues kernel `name` of the elements' width, or its form for runs that one index moves, with
    /// the arguments that both end with.
    fn read(
        mut self,
        launch: &CudaLaunch<'_>,
        name: &'static str,
        last: &[Argument],
    ) -> Result<()> {
        // So that neighbouring threads write neighbours.
        self.dims.sort_by_key(|(_, strides)| std::cmp::Reverse(strides[0]));
        let (bytes, source) = (self.bytes, &source_files::INDEX);
        let is_run = |(size, strides): &Dim| *size >= SHORTEST_RUN && *strides == [1, 0, 1];
        let run = match self.dims.last().is_some_and(is_run) && matches!(bytes, 4 | 16) {
            true => self.dims.pop(),
            false => None,
        };
        let n = self.dims.iter().map(|(size, _)| size).product();
        if n == 0 {
            return Ok(());
        }
        let strided = Strided::in_order(self.dims.into_iter()).argument(launch.operation)?;
        let Some((columns, _)) = run else {
            let arguments = [&[whole(n), strided], last].concat();
            return launch.run(source, (name, bytes), launch.grid(n, 2), &arguments);
        };
        let lanes = columns.div_ceil(4).next_power_of_two().clamp(32, THREADS as usize);
        let chunks = columns.div_ceil(4 * lanes);
        let blocks = n.div_ceil(THREADS as usize / lanes) * chunks;
        let grid = Grid {
            blocks: (blocks.min(MOST_BLOCKS) as u32, 1, 1),
            threads: THREADS,
            shared_bytes: 0,
        };
        let first = [whole(n), whole(columns), Argument::I32(lanes as i32), strided];
        launch.run(source, (name, "runs", bytes), grid, &[&first, last].concat())
    }
}

/// Reads `x` into `out` over `dims`, where the int64 at `index` moves x by `stride` along its
/// dimension `dim` of `size`.
pub(super) fn read_along(
    launch: &CudaLaunch<'_>,
    dims: &[Dim],
    [out, x, index]: [&Operand<'_>; 3],
    (dim, size, stride): (usize, usize, usize),
) -> Result<()> {
    let places = [out, x].map(|operand| operand.first_byte().addr());
    let elements = Elements::new(dims, x.dtype().size_bytes(), places, &[stride]);
    let arguments = [
        address(x),
        address(index),
        address(out),
        whole(size),
        whole(stride / elements.run),
        whole(dim),
        launch.fault(),
    ];
    elements.read(launch, "gather", &arguments)
}

/// Inputs [x, index]: x at the index along `dim`.
pub(crate) fn gather(launch: &CudaLaunch<'_>, dim: usize) -> Result<()> {
    let (x, index, out) = (&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]);
    launch.check_dtypes(DType::I64, &[index])?;
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let across = |d: usize| if d == dim { 0 } else { x.layout().strides()[d] };
    let dims: Vec<Dim> = (0..index.shape().len())
        .map(|d| {
            let strides = [out.layout().strides()[d], index.layout().strides()[d], across(d)];
            (index.shape()[d], strides)
        })
        .collect();
    // A tensor without dimensions has one element.
    let size = x.shape().get(dim).copied().unwrap_or(1);
    let stride = x.layout().strides().get(dim).copied().unwrap_or(0);
    read_along(launch, &dims, [out, x, index], (dim, size, stride))
}

/// Where index tensors at `dims` of a tensor stand in a result.
pub(super) struct Places {
    /// The index tensors' common shape.
    pub(super) common: Dims,
    /// The dimension of the result where it starts.
    pub(super) start: usize,
    /// The tensor's dimensions that no index tensor names, in order.
    pub(super) rest: Dims,
}

impl Places {
    pub(super) fn new(
        launch: &CudaLaunch<'_>,
        rank: usize,
        dims: &[usize],
        indices: &[Operand<'_>],
    ) -> Result<Places> {
        let shapes: SmallVec<[&[usize]; 4]> = indices.iter().map(|index| index.shape()).collect();
        let common = broadcast_shapes(launch.operation, &shapes)?;
        let adjacent = dims.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let start = if adjacent { dims[0] } else { 0 };
        let rest = (0..rank).filter(|dim| !dims.contains(dim)).collect();
        Ok(Places { common, start, rest })
    }

    /// How many combinations of indices there are.
    pub(super) fn count(&self) -> usize {
        self.common.iter().product()
    }

    /// Whether dimension `dim` of the result is one of the index tensors'.
    fn is_common(&self, dim: usize) -> bool {
        (self.start..self.start + self.common.len()).contains(&dim)
    }

    /// x's dimension that dimension `dim` of the result is.
    fn own(&self, dim: usize) -> usize {
        self.rest[if dim < self.start { dim } else { dim - self.common.len() }]
    }
}

/// Bytes of the list of offsets of index tensors.
pub(super) fn list_bytes(indices: &[&Meta]) -> usize {
    let shapes: SmallVec<[&[usize]; 4]> = indices.iter().map(|meta| meta.shape()).collect();
    let count = broadcast_shapes("index", &shapes).map_or(0, |shape| shape.iter().product());
    (count * size_of::<i64>()).next_multiple_of(super::in_workspace::ALIGNMENT_BYTES)
}

/// Writes to the workspace at `list` where in `x`, in elements, each combination of indices is.
pub(super) fn write_offsets(
    launch: &CudaLaunch<'_>,
    x: &Operand<'_>,
    dims: &[usize],
    indices: &[Operand<'_>],
    places: &Places,
    list: usize,
) -> Result<()> {
    let meta = Meta { layout: Layout::contiguous(&places.common)?, dtype: DType::I64 };
    // SAFETY: the workspace has room for the list, and is this launch's alone.
    let list = unsafe { Operand::new(list as *mut u8, &meta) };
    for (which, (&dim, index)) in dims.iter().zip(indices).enumerate() {
        launch.check_dtypes(DType::I64, &[index])?;
        let arguments = [
            whole(places.count()),
            Strided::broadcast(&[&list, index])?.argument(launch.operation)?,
            address(&list),
            address(index),
            whole(x.shape()[dim]),
            whole(x.layout().strides()[dim]),
            whole(dim),
            Argument::I32(i32::from(which == 0)),
            launch.fault(),
        ];
        let grid = launch.grid(places.count(), 1);
        launch.run(&source_files::INDEX, "index_offsets", grid, &arguments)?;
    }
    Ok(())
}

/// Workspace of [`index`], whose inputs are [x, index tensors...].
pub(crate) fn index_workspace_bytes(inputs: &[&Meta]) -> usize {
    list_bytes(&inputs[1..])
}

/// Inputs [x, index tensors...]: x at every combination of the index tensors, which stand at
/// `dims`, ascending.
pub(crate) fn index(launch: &CudaLaunch<'_>, dims: &[usize]) -> Result<()> {
    let (x, indices, out) = (&launch.inputs[0], &launch.inputs[1..], &launch.outputs[0]);
    let places = Places::new(launch, x.shape().len(), dims, indices)?;
    if out.layout().numel() == 0 {
        return Ok(());
    }
    let list = launch.workspace.pointer().addr();
    write_offsets(launch, x, dims, indices, &places, list)?;
    let in_list = Layout::contiguous(&places.common)?;
    let read: Vec<Dim> = (0..out.shape().len())
        .map(|dim| {
            let to = out.layout().strides()[dim];
            let strides = match places.is_common(dim) {
                true => [to, in_list.strides()[dim - places.start], 0],
                false => [to, 0, x.layout().strides()[places.own(dim)]],
            };
            (out.shape()[dim], strides)
        })
        .collect();
    let steps: SmallVec<[usize; 4]> = dims.iter().map(|&dim| x.layout().strides()[dim]).collect();
    let addresses = [out, x].map(|operand| operand.first_byte().addr());
    let elements = Elements::new(&read, x.dtype().size_bytes(), addresses, &steps);
    let shift = elements.run.trailing_zeros() as usize;
    let arguments = [address(x), Argument::U64(list as u64), whole(shift), address(out)];
    elements.read(launch, "index", &arguments)
}
