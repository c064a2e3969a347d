//! `x[i, :, j]` and `x[i, :, j] = values` with index tensors. The index tensors, which broadcast to
//! one shape, are first turned into one list of byte offsets in the workspace (and checked on the
//! way, so that nothing is written when one is out of range); then offsets are all that the loops
//! need.
//!
//! Negative indices count from the end.

use plimsoll_core::{Dims, Error, Layout, Result, broadcast_shapes};

use super::out_of_range;
use plimsoll_engine::generate::Walk;
use plimsoll_engine::iterate::{self, GRAIN, Tile};
use plimsoll_engine::map::{check, operands};
use plimsoll_engine::match_dtype;
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::{CpuLaunch, Meta, Operand};
use plimsoll_kernels_copy::copy::copy_between;

/// Bytes of offsets for index tensors that broadcast to `shape`.
fn offset_bytes(shape: &[usize]) -> usize {
    (shape.iter().product::<usize>() * size_of::<i64>()).next_multiple_of(64)
}

/// Scratch of [`index`], whose inputs are [x, index tensors...].
pub fn index_workspace_bytes(inputs: &[&Meta]) -> usize {
    indices_bytes(inputs.get(1..).unwrap_or(&[]))
}

/// Scratch of [`index_put`], whose inputs are [x, values, index tensors...].
pub fn index_put_workspace_bytes(inputs: &[&Meta]) -> usize {
    indices_bytes(inputs.get(2..).unwrap_or(&[]))
}

fn indices_bytes(indices: &[&Meta]) -> usize {
    let shapes: Vec<&[usize]> = indices.iter().map(|meta| meta.shape()).collect();
    broadcast_shapes("index", &shapes).map_or(0, |shape| offset_bytes(&shape))
}

/// Which dimensions of a result are x's own, and which the index tensors'.
struct Places {
    /// The index tensors' common shape.
    common: Dims,
    /// The dimension of the result where it starts.
    start: usize,
    /// x's dimensions that no index tensor names, in order.
    rest: Dims,
}

impl Places {
    fn new(
        launch: &CpuLaunch<'_>,
        x: &Operand<'_>,
        dims: &[usize],
        indices: &[Operand<'_>],
    ) -> Result<Places> {
        let rank = x.shape().len();
        if dims.len() != indices.len()
            || dims.is_empty()
            || dims.iter().any(|&d| d >= rank)
            || dims.windows(2).any(|pair| pair[0] >= pair[1])
        {
            return Err(Error::invalid_argument(format!(
                "{} index tensors at dimensions {dims:?} do not fit shape {:?}",
                indices.len(),
                x.shape()
            ))
            .in_operation(launch.operation));
        }
        let shapes: Vec<&[usize]> = indices.iter().map(|index| index.shape()).collect();
        let common = broadcast_shapes(launch.operation, &shapes)?;
        // NumPy's rule, PyTorch's too: in the place of adjacent indexed dimensions, else in front.
        let adjacent = dims.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let start = if adjacent { dims[0] } else { 0 };
        let rest = (0..rank).filter(|d| !dims.contains(d)).collect();
        Ok(Places { common, start, rest })
    }

    /// The result's shape.
    fn shape(&self, x: &Operand<'_>) -> Dims {
        let mut shape: Dims = self.rest.iter().map(|&d| x.shape()[d]).collect();
        shape.insert_from_slice(self.start, &self.common);
        shape
    }

    /// x's addresses in the result's shape, the same wherever an offset will be added.
    fn addresses(&self, x: &Operand<'_>) -> Result<Meta> {
        let mut strides: Dims = self.rest.iter().map(|&d| x.layout().strides()[d]).collect();
        strides.insert_many(self.start, self.common.iter().map(|_| 0));
        Ok(Meta { layout: Layout::strided(&self.shape(x), &strides, 0)?, dtype: x.dtype() })
    }

    /// The list of offsets in the result's shape: row-major over the common dimensions.
    fn offsets_meta(&self, x: &Operand<'_>) -> Result<Meta> {
        let list = Layout::contiguous(&self.common)?;
        let mut strides = Dims::from_elem(0, self.rest.len());
        strides.insert_from_slice(self.start, list.strides());
        let layout = Layout::strided(&self.shape(x), &strides, 0)?;
        Ok(Meta { layout, dtype: plimsoll_core::DType::I64 })
    }
}

/// Writes the byte offset into `x` of every combination of indices to the workspace.
fn offsets(
    launch: &CpuLaunch<'_>,
    x: &Operand<'_>,
    dims: &[usize],
    indices: &[Operand<'_>],
    common: &[usize],
) -> Result<*mut i64> {
    let count: usize = common.iter().product();
    if launch.workspace.bytes() < count * size_of::<i64>() {
        return Err(Error::invalid_argument(format!(
            "the kernel needs {} bytes of workspace, but was launched with {}",
            offset_bytes(common),
            launch.workspace.bytes()
        ))
        .in_operation(launch.operation));
    }
    let list = launch.workspace.pointer().cast::<i64>();
    for (which, (&dim, index)) in dims.iter().zip(indices).enumerate() {
        check::<i64>(launch, index)?;
        let layout = index.layout().broadcast_to(common)?;
        let size = x.shape()[dim] as i64;
        let stride = (x.layout().strides()[dim] * x.dtype().size_bytes()) as i64;
        for (i, position) in Walk::new(&layout, 0).take(count).enumerate() {
            // SAFETY: the layout reaches the index's own elements, counted from its first; the
            // workspace has room for `count` offsets, and each was written for the first index
            // tensor before it is read.
            unsafe {
                let at = *index.first::<i64>().add(position);
                if at < -size || at >= size {
                    return Err(out_of_range(launch.operation, at, dim, size as usize));
                }
                let offset = (if at < 0 { at + size } else { at }) * stride;
                *list.add(i) = if which == 0 { offset } else { *list.add(i) + offset };
            }
        }
    }
    Ok(list)
}

/// [x, index tensors...] -> x at every combination of the index tensors, which stand at `dims`
/// (ascending).
pub fn index(launch: &CpuLaunch<'_>, dims: &[usize]) -> Result<()> {
    let [out, x] = operands::<2>(launch)?;
    let indices = &launch.inputs[1..];
    let places = Places::new(launch, &x, dims, indices)?;
    if out.shape() != places.shape(&x).as_slice() || out.dtype() != x.dtype() {
        return Err(misfit(launch, &out, &places.shape(&x)));
    }
    let list = offsets(launch, &x, dims, indices, &places.common)?;
    let (base, list_meta) = (places.addresses(&x)?, places.offsets_meta(&x)?);
    // SAFETY: an address of `base` plus one of the checked offsets is an element of x; the list was
    // just written, as long as its layout says.
    let operands = unsafe {
        [out, Operand::new(list.cast(), &list_meta), Operand::new(x.first_byte(), &base)]
    };
    match x.dtype().size_bytes() {
        1 => iterate::run_addresses(operands, read_tile::<u8>),
        2 => iterate::run_addresses(operands, read_tile::<u16>),
        4 => iterate::run_addresses(operands, read_tile::<u32>),
        _ => iterate::run_addresses(operands, read_tile::<u64>),
    }
    Ok(())
}

fn misfit(launch: &CpuLaunch<'_>, operand: &Operand<'_>, shape: &[usize]) -> Error {
    Error::shape(
        launch.operation,
        format!(
            "indexing gives {shape:?}, which does not fit {} {:?}",
            operand.dtype(),
            operand.shape()
        ),
    )
}

fn read_tile<T: Copy>(tile: &Tile<3>) {
    let [to, step, across] = tile.inner;
    for row in 0..tile.rows {
        let [out, list, base] = tile.row(row);
        // SAFETY: the tile covers elements of the output and of the list (the engine's promise);
        // addresses plus offsets are elements of x (`index`).
        unsafe {
            if step == 0 && to == size_of::<T>() && across == size_of::<T>() {
                let from = base.byte_offset(*list.cast::<i64>() as isize).cast::<T>();
                out.cast::<T>().copy_from_nonoverlapping(from, tile.len);
                continue;
            }
            for i in 0..tile.len {
                let offset = *list.byte_add(i * step).cast::<i64>() as isize;
                let from = base.byte_add(i * across).byte_offset(offset);
                *out.byte_add(i * to).cast::<T>() = *from.cast::<T>();
            }
        }
    }
}

/// [x, values, index tensors...] -> x with `values` (which broadcast) written, or added, at every
/// combination of the index tensors. The output is x itself (in place) or becomes a copy of it.
/// Where a place comes up twice, the last value stays, or both are added in order.
pub fn index_put(launch: &CpuLaunch<'_>, dims: &[usize], accumulate: bool) -> Result<()> {
    let [out, x, values] = operands::<3>(launch)?;
    let indices = &launch.inputs[2..];
    let places = Places::new(launch, &x, dims, indices)?;
    let shape = places.shape(&x);
    if values.dtype() != x.dtype() || out.dtype() != x.dtype() || out.shape() != x.shape() {
        return Err(misfit(launch, &values, &shape));
    }
    let from = values.layout().broadcast_to(&shape).map_err(|_| misfit(launch, &values, &shape))?;
    let list = offsets(launch, &out, dims, indices, &places.common)?;
    let same = out.first_byte() == x.first_byte() && out.layout() == x.layout();
    if !same {
        copy_between(launch.operation, out, x)?;
    }
    let write = Write {
        list: List(list),
        count: places.common.iter().product(),
        common: Layout::strided(
            &places.common,
            &from.strides()[places.start..places.start + places.common.len()],
            0,
        )?,
        slice: places.rest.iter().map(|&d| out.shape()[d]).collect(),
        to: places.rest.iter().map(|&d| out.layout().strides()[d]).collect(),
        from: {
            let mut strides = Dims::from(from.strides());
            strides.drain(places.start..places.start + places.common.len());
            strides
        },
    };
    match_dtype!(x.dtype(), T => write.run::<T>(out, values, accumulate));
    Ok(())
}

/// The offsets, which the threads of one launch read.
struct List(*const i64);

// SAFETY: only read from.
unsafe impl Sync for List {}

impl List {
    fn at(&self, i: usize) -> isize {
        // SAFETY: `Write` asks for its own `count` offsets only, which `offsets` wrote.
        unsafe { *self.0.add(i) as isize }
    }
}

/// One `index_put`: for every offset, a slice of the output is written from a slice of the values.
struct Write {
    list: List,
    count: usize,
    /// Where each offset's values start.
    common: Layout,
    slice: Dims,
    to: Dims,
    from: Dims,
}

impl Write {
    /// Threads share out the elements of a slice, so that each place is written by one thread, in
    /// order.
    fn run<T: Number>(&self, out: Operand<'_>, values: Operand<'_>, accumulate: bool) {
        let elements: usize = self.slice.iter().product();
        let (Ok(to), Ok(from)) = (
            Layout::strided(&self.slice, &self.to, 0),
            Layout::strided(&self.slice, &self.from, 0),
        ) else {
            return;
        };
        parallel::split(elements, (GRAIN / self.count.max(1)).max(16), |range| {
            for (i, value_at) in Walk::new(&self.common, 0).take(self.count).enumerate() {
                let target = out.first::<T>().wrapping_byte_offset(self.list.at(i));
                let source = values.first::<T>().wrapping_add(value_at);
                let places = Walk::new(&to, range.start).zip(Walk::new(&from, range.start));
                for (to, from) in places.take(range.len()) {
                    // SAFETY: an offset plus a position of the slice is an element of the output,
                    // and the value's position one of the (broadcast) values.
                    unsafe {
                        let (target, value) = (target.add(to), *source.add(from));
                        *target = if accumulate { (*target).plus(value) } else { value };
                    }
                }
            }
        });
    }
}
