//! Matrix products by cuBLASLt, with a workspace from the arena. The library takes matrices whose
//! rows or columns are runs of elements, with even steps from one of a batch to the next. What lies
//! otherwise is copied to the workspace first, a target that does is written through it. Products
//! of integers are a kernel of our own, which takes any steps; those of floats too if results are
//! to be the same on every GPU.

use plimsoll_core::{DType, Dims, Layout, Result, Scalar};
use plimsoll_cuda::{
    Argument, BlasType, Grid, Matmul, MatmulMemory, Properties, Words, source_files,
};
use plimsoll_kernels::{Meta, Operand};

use super::in_workspace::{Space, copy_bytes};
use super::strided::Strided;
use super::tail::{code, computed_in};
use super::{CudaLaunch, address, copy, fill};
use crate::backends;

/// The sizes of `batch` products of m x k by k x n. A vector is a row on the left and a column on
/// the right, and the result lacks that dimension.
struct Sizes {
    batch: Dims,
    m: usize,
    n: usize,
    k: usize,
    left_is_vector: bool,
    right_is_vector: bool,
}

impl Sizes {
    fn of(a: &Layout, b: &Layout, out: &Layout) -> Sizes {
        let (left_is_vector, right_is_vector) = (a.rank() == 1, b.rank() == 1);
        let k = a.shape()[a.rank() - 1];
        let m = if left_is_vector { 1 } else { a.shape()[a.rank() - 2] };
        let n = if right_is_vector { 1 } else { b.shape()[b.rank() - 1] };
        let matrix_dims = usize::from(!left_is_vector) + usize::from(!right_is_vector);
        let batch = Dims::from(&out.shape()[..out.rank() - matrix_dims]);
        Sizes { batch, m, n, k, left_is_vector, right_is_vector }
    }

    /// Whether there is nothing to multiply: no result, or one of zeros.
    fn is_empty(&self) -> bool {
        self.m == 0 || self.n == 0 || self.k == 0 || self.batch.contains(&0)
    }
}

/// One of the three matrices: its sizes, and the steps between its rows, columns and batches.
struct Matrix {
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    batch_steps: Dims,
}

impl Matrix {
    fn left(sizes: &Sizes, layout: &Layout) -> Matrix {
        let steps = layout.strides();
        let (row_step, column_step) =
            if sizes.left_is_vector { (0, steps[0]) } else { last_two(steps) };
        let batch_steps = batch_steps(sizes, layout, if sizes.left_is_vector { 1 } else { 2 });
        Matrix { rows: sizes.m, columns: sizes.k, row_step, column_step, batch_steps }
    }

    fn right(sizes: &Sizes, layout: &Layout) -> Matrix {
        let steps = layout.strides();
        let (row_step, column_step) =
            if sizes.right_is_vector { (steps[0], 0) } else { last_two(steps) };
        let batch_steps = batch_steps(sizes, layout, if sizes.right_is_vector { 1 } else { 2 });
        Matrix { rows: sizes.k, columns: sizes.n, row_step, column_step, batch_steps }
    }

    fn result(sizes: &Sizes, layout: &Layout) -> Matrix {
        let (batch_steps, rest) = layout.strides().split_at(sizes.batch.len());
        let (row_step, column_step) = match (sizes.left_is_vector, sizes.right_is_vector) {
            (false, false) => (rest[0], rest[1]),
            (true, false) => (0, rest[0]),
            (false, true) => (rest[0], 0),
            (true, true) => (0, 0),
        };
        let batch_steps = Dims::from(batch_steps);
        Matrix { rows: sizes.m, columns: sizes.n, row_step, column_step, batch_steps }
    }

    /// As the library takes it, if it can.
    fn side(&self, sizes: &Sizes) -> Option<Side> {
        let (rows, columns) = (self.rows, self.columns);
        let batch = even_step(&sizes.batch, &self.batch_steps)?;
        let run = |step: usize, size: usize| step == 1 || size == 1;
        if run(self.column_step, columns) && (rows == 1 || self.row_step >= columns) {
            // A single row has no step of its own; the library wants one that its length fits in.
            let stride = if rows == 1 { columns } else { self.row_step };
            Some(Side { stride, transposed: false, batch })
        } else if run(self.row_step, rows) && (columns == 1 || self.column_step >= rows) {
            let stride = if columns == 1 { rows } else { self.column_step };
            Some(Side { stride, transposed: true, batch })
        } else {
            None
        }
    }
}

/// How a matrix lies, in the library's terms.
#[derive(Clone, Copy)]
struct Side {
    stride: usize,
    transposed: bool,
    batch: usize,
}

fn last_two(steps: &[usize]) -> (usize, usize) {
    (steps[steps.len() - 2], steps[steps.len() - 1])
}

/// The steps of an operand's leading dimensions, as they are broadcast to the batch.
fn batch_steps(sizes: &Sizes, layout: &Layout, matrix_dims: usize) -> Dims {
    let own = layout.rank() - matrix_dims;
    let missing = sizes.batch.len() - own;
    let step = |dim: usize| match dim.checked_sub(missing) {
        Some(dim) if layout.shape()[dim] != 1 => layout.strides()[dim],
        _ => 0,
    };
    (0..sizes.batch.len()).map(step).collect()
}

/// The one step between neighbours of all batch dimensions taken together; 0 where there is one.
fn even_step(sizes: &[usize], steps: &[usize]) -> Option<usize> {
    let mut even = None;
    let mut expected = 0;
    for (&size, &step) in sizes.iter().zip(steps).rev().filter(|(size, _)| **size != 1) {
        match even {
            None => even = Some(step),
            Some(_) if step == expected => {}
            Some(_) => return None,
        }
        expected = step * size;
    }
    Some(even.unwrap_or(0))
}

/// How an operand is taken: as it lies, or through a contiguous copy.
struct Taken {
    side: Side,
    copy: Option<Meta>,
}

type MatrixOf = fn(&Sizes, &Layout) -> Matrix;

impl Taken {
    /// A factor. Its copy has its own shape if that is enough, else that of the whole batch.
    fn factor(sizes: &Sizes, meta: &Meta, of: MatrixOf) -> Result<Taken> {
        if let Some(side) = of(sizes, &meta.layout).side(sizes) {
            return Ok(Taken { side, copy: None });
        }
        let own = Meta::contiguous(meta.shape(), meta.dtype)?;
        if let Some(side) = of(sizes, &own.layout).side(sizes) {
            return Ok(Taken { side, copy: Some(own) });
        }
        let matrix = of(sizes, &meta.layout);
        let mut shape = sizes.batch.clone();
        shape.extend([matrix.rows, matrix.columns]);
        let whole = Meta::contiguous(&shape, meta.dtype)?;
        let stride = matrix.columns;
        let side = Side { stride, transposed: false, batch: matrix.rows * matrix.columns };
        Ok(Taken { side, copy: Some(whole) })
    }

    /// The target, which the library writes row by row.
    fn target(sizes: &Sizes, meta: &Meta) -> Result<Taken> {
        let rows = |side: &Side| !side.transposed;
        match Matrix::result(sizes, &meta.layout).side(sizes).filter(rows) {
            Some(side) => Ok(Taken { side, copy: None }),
            None => {
                let copy = Meta::contiguous(meta.shape(), meta.dtype)?;
                let batch = sizes.m * sizes.n;
                let side = Side { stride: sizes.n, transposed: false, batch };
                Ok(Taken { side, copy: Some(copy) })
            }
        }
    }

    fn copy_bytes(&self) -> usize {
        self.copy.as_ref().map_or(0, copy_bytes)
    }
}

/// Both factors and the target.
fn taken(sizes: &Sizes, a: &Meta, b: &Meta, out: &Meta) -> Result<[Taken; 3]> {
    Ok([
        Taken::factor(sizes, a, Matrix::left)?,
        Taken::factor(sizes, b, Matrix::right)?,
        Taken::target(sizes, out)?,
    ])
}

/// The library's workspace, and copies of operands that it cannot take as they lie.
pub(crate) fn workspace_bytes(gpu: &Properties, a: &Meta, b: &Meta, out: &Meta) -> usize {
    let sizes = Sizes::of(&a.layout, &b.layout, &out.layout);
    if sizes.is_empty() || !is_by_library(out.dtype) {
        return 0;
    }
    let copies = taken(&sizes, a, b, out);
    let copies = copies.map_or(0, |taken| taken.iter().map(Taken::copy_bytes).sum());
    gpu.matmul_workspace_bytes() + copies
}

/// Whether cuBLASLt multiplies; what it takes for a product is the GPU's and its version's choice.
pub(super) fn is_by_library(dtype: DType) -> bool {
    dtype.is_float() && !backends::DETERMINISTIC_ALGORITHMS.is_on()
}

/// What the library asks of a row that it adds.
const ROW_ALIGNMENT_BYTES: usize = 16;

/// What a product is scaled by and added to.
#[derive(Clone, Copy)]
pub(crate) struct Scale<'a> {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    /// What `beta` times is added; nothing if it is 0. It may be the target itself.
    pub(crate) input: Option<&'a Operand<'a>>,
}

/// Inputs [a, b] of shapes [..., m, k] and [..., k, n], or a vector in place of either.
pub(crate) fn matmul(launch: &CudaLaunch<'_>) -> Result<()> {
    let scale = Scale { alpha: 1.0, beta: 0.0, input: None };
    scaled(launch, [&launch.inputs[0], &launch.inputs[1]], scale)
}

/// The library's workspace and copies of one product of a batch's.
pub(crate) fn summed_workspace_bytes(gpu: &Properties, a: &Meta, b: &Meta, out: &Meta) -> usize {
    match (one(a, 0), one(b, 0)) {
        (Some(a), Some(b)) => workspace_bytes(gpu, &a, &b, out),
        _ => 0,
    }
}

/// Matrix `index` of a batch.
fn one(batch: &Meta, index: usize) -> Option<Meta> {
    let layout = batch.layout.select(0, index as i64).ok()?;
    Some(Meta { layout, dtype: batch.dtype })
}

/// The products of two batches, added up.
pub(crate) fn summed(
    launch: &CudaLaunch<'_>,
    [a, b]: [&Operand<'_>; 2],
    scale: Scale<'_>,
) -> Result<()> {
    let out = &launch.outputs[0];
    let count = a.shape()[0];
    if count == 0 {
        return only_input(launch, scale);
    }
    for index in 0..count {
        let (Some(a_meta), Some(b_meta)) = (one(a.meta(), index), one(b.meta(), index)) else {
            return Err(launch.unsupported("a batch of this layout".to_string()));
        };
        // SAFETY: the matrices lie inside this launch's operands, which start where these do.
        let (a, b) =
            unsafe { (Operand::new(a.storage(), &a_meta), Operand::new(b.storage(), &b_meta)) };
        let rest = Scale { alpha: scale.alpha, beta: 1.0, input: Some(out) };
        scaled(launch, [&a, &b], if index == 0 { scale } else { rest })?;
    }
    Ok(())
}

/// `beta` times the input where there is no product: of matrices without columns.
fn only_input(launch: &CudaLaunch<'_>, scale: Scale<'_>) -> Result<()> {
    let Some(input) = scale.input else { return fill(launch, Scalar::Int(0)) };
    let out = &launch.outputs[0];
    if !is_same(input, out) {
        copy(launch, input, out)?;
    }
    if scale.beta == 1.0 { Ok(()) } else { super::scale_in_place(launch, out, scale.beta) }
}

fn is_same(input: &Operand<'_>, out: &Operand<'_>) -> bool {
    input.first_byte() == out.first_byte() && input.meta().is_same_view(out.meta())
}

/// Whether an input is one row that is added to every row of a matrix, and lies as the library
/// reads it.
fn is_row_for_all(input: &Operand<'_>, out: &Operand<'_>) -> bool {
    let shape = out.shape();
    let Ok(broadcast) = input.layout().broadcast_to(shape) else { return false };
    let [rest @ .., last] = broadcast.strides() else { return false };
    input.dtype() == out.dtype()
        && shape.len() >= 2
        && *last == 1
        && rest.iter().zip(shape).all(|(step, size)| *step == 0 || *size == 1)
        && input.first_byte().addr().is_multiple_of(ROW_ALIGNMENT_BYTES)
}

/// A scaled product, added to the scaled input. The result may be float32 though its factors are
/// halves.
pub(crate) fn scaled(
    launch: &CudaLaunch<'_>,
    [a, b]: [&Operand<'_>; 2],
    scale: Scale<'_>,
) -> Result<()> {
    let out = &launch.outputs[0];
    let dtype = match a.dtype() {
        dtype if !is_by_library(dtype) => None,
        DType::F32 => Some(BlasType::F32),
        DType::F64 => Some(BlasType::F64),
        DType::F16 => Some(BlasType::F16),
        DType::BF16 => Some(BlasType::BF16),
        _ => None,
    };
    let Some(dtype) = dtype else {
        return in_order(launch, [a, b], scale);
    };
    launch.check_dtypes(a.dtype(), &[b])?;
    let is_half = matches!(a.dtype(), DType::F16 | DType::BF16);
    let is_widened = is_half && out.dtype() == DType::F32;
    if !is_widened {
        launch.check_dtypes(out.dtype(), &[a])?;
    }
    let sizes = Sizes::of(a.layout(), b.layout(), out.layout());
    if sizes.is_empty() {
        return only_input(launch, scale);
    }
    let taken = taken(&sizes, a.meta(), b.meta(), out.meta())?;
    let mut space = Space::new(&launch.workspace);
    let workspace_bytes = launch.context.properties().matmul_workspace_bytes();
    let workspace = space.take(workspace_bytes);
    let mut factor = |operand: &Operand<'_>, taken: &Taken| match &taken.copy {
        Some(target) => space.copied(launch, operand, target),
        None => Ok(operand.first_byte().addr()),
    };
    let (a_at, b_at) = (factor(a, &taken[0])?, factor(b, &taken[1])?);
    let c_at = match &taken[2].copy {
        Some(target) => space.take(copy_bytes(target)),
        None => out.first_byte().addr(),
    };
    // The library adds a row to all rows as it writes them.
    let bias = scale
        .input
        .filter(|input| scale.beta == 1.0 && taken[2].copy.is_none() && is_row_for_all(input, out));
    let added = scale.input.filter(|_| bias.is_none());
    if let Some(input) = added {
        match &taken[2].copy {
            None if is_same(input, out) => {}
            None => copy(launch, input, out)?,
            Some(target) => {
                // SAFETY: the place was just taken from this launch's workspace, of the target's
                // size.
                let target = unsafe { Operand::new(c_at as *mut u8, target) };
                copy(launch, input, &target)?;
            }
        }
    }
    let [a_side, b_side, c_side] = [&taken[0], &taken[1], &taken[2]].map(|taken| taken.side);
    let matmul = Matmul {
        dtype,
        is_widened,
        adds_row: bias.is_some(),
        m: sizes.m,
        n: sizes.n,
        k: sizes.k,
        batch: sizes.batch.iter().product(),
        a_stride: a_side.stride,
        a_transposed: a_side.transposed,
        a_batch: a_side.batch,
        b_stride: b_side.stride,
        b_transposed: b_side.transposed,
        b_batch: b_side.batch,
        c_stride: c_side.stride,
        c_batch: c_side.batch,
        allow_tf32: dtype == BlasType::F32 && backends::matmul::ALLOW_TF32.is_on(),
    };
    let row = bias.map_or(0, |row| row.first_byte().addr());
    let memory = MatmulMemory { a: a_at, b: b_at, c: c_at, row, workspace, workspace_bytes };
    let factors = [scale.alpha, if added.is_some() { scale.beta } else { 0.0 }];
    // SAFETY: the addresses are this launch's operands and workspace, laid out as `matmul` says.
    unsafe { launch.context.matmul(launch.stream, &matmul, factors, memory) }
        .map_err(|e| e.in_operation(launch.operation))?;
    match &taken[2].copy {
        None => Ok(()),
        Some(written) => {
            // SAFETY: the product was just queued to be written there, before this copy.
            let written = unsafe { Operand::new(c_at as *mut u8, written) };
            copy(launch, &written, out)
        }
    }
}

/// [`scaled`] by a kernel that adds up in the order of the columns. Factors of integers are whole.
fn in_order(launch: &CudaLaunch<'_>, [a, b]: [&Operand<'_>; 2], scale: Scale<'_>) -> Result<()> {
    const SIDE: usize = 64;
    let out = &launch.outputs[0];
    launch.check_dtypes(out.dtype(), &[a, b])?;
    let sizes = Sizes::of(a.layout(), b.layout(), out.layout());
    if sizes.is_empty() {
        return only_input(launch, scale);
    }
    if let Some(input) = scale.input.filter(|input| !is_same(input, out)) {
        copy(launch, input, out)?;
    }
    let left = Matrix::left(&sizes, a.layout());
    let right = Matrix::right(&sizes, b.layout());
    let result = Matrix::result(&sizes, out.layout());
    let steps = |dim: usize| [&left, &right, &result].map(|matrix| matrix.batch_steps[dim]);
    let dims = (0..sizes.batch.len()).map(|dim| (sizes.batch[dim], steps(dim)));
    let batch: usize = sizes.batch.iter().product();
    let mut words: Words =
        [batch, sizes.m, sizes.n, sizes.k].iter().map(|&size| size as u64).collect();
    for matrix in [&left, &right, &result] {
        words.extend([matrix.row_step as u64, matrix.column_step as u64]);
    }
    let beta = if scale.input.is_some() { scale.beta } else { 0.0 };
    let factor = |factor: f64| match out.dtype().is_float() {
        true => factor.to_bits(),
        false => factor as i64 as u64,
    };
    words.extend([code(out.dtype()), factor(scale.alpha), factor(beta)]);
    let arguments = [
        Argument::Words(words),
        Strided::in_order(dims).argument(launch.operation)?,
        address(a),
        address(b),
        address(out),
    ];
    let tiles = batch * sizes.m.div_ceil(SIDE) * sizes.n.div_ceil(SIDE);
    let grid = Grid { blocks: (tiles.min(1 << 20) as u32, 1, 1), threads: 256, shared_bytes: 0 };
    let kernel = ("product", computed_in(out.dtype()));
    launch.run(&source_files::MATMUL, kernel, grid, &arguments)
}
