//! Attention in tiles of queries and keys, on operands of any strides: half types by tensor cores
//! where rows are short enough, faster where rows are packed and no mask is given
//! (`attention_packed.rs`), all else by plain products.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, KernelName, KernelSource, source_files};
use plimsoll_kernels::Meta;
use plimsoll_kernels::cpu::attention::AttentionArgs;

use super::attention_operands::{Shape, heads};
use super::attention_packed::Packed;
use super::tail::computed_in;
use super::{CudaLaunch, NOTHING, contiguous, type_name, whole};

/// Columns of a result that one block makes.
const COLUMNS: usize = 64;

impl Shape {
    /// Queries or keys of a tile.
    fn side(&self) -> usize {
        if self.dtype == DType::F64 { 32 } else { 64 }
    }

    fn forward_units(&self) -> usize {
        let chunks = self.values.div_ceil(COLUMNS).max(1);
        self.heads * chunks * self.queries.div_ceil(self.side())
    }

    fn backward_units(&self) -> usize {
        let chunks = self.width.max(self.values).div_ceil(COLUMNS);
        let keys = self.heads / self.args.group.max(1) * chunks * self.keys.div_ceil(self.side());
        let queries = self.width.div_ceil(COLUMNS) * self.queries.div_ceil(self.side());
        keys + self.heads * queries
    }
}

/// What the names of kernels end in: what is computed in, and the longest row that they take.
type Ending = (&'static str, Option<usize>);

fn named(kernel: &'static str, (computed, longest): Ending) -> KernelName {
    match longest {
        Some(longest) => KernelName::from((kernel, computed, longest)),
        None => KernelName::from((kernel, computed)),
    }
}

/// The tensor cores' kernels for these operands, and what their names end in; `None` where they
/// have none.
fn halves(launch: &CudaLaunch<'_>, shape: &Shape) -> Option<(&'static KernelSource, Ending)> {
    let (longest, capability) =
        (shape.width.max(shape.values), launch.context.properties().capability);
    let (source, width) = match (shape.dtype, longest) {
        (DType::F16, ..=64) => (&source_files::ATTENTION_F16_64, 64),
        (DType::F16, ..=128) => (&source_files::ATTENTION_F16_128, 128),
        (DType::BF16, ..=64) => (&source_files::ATTENTION_BF16_64, 64),
        (DType::BF16, ..=128) => (&source_files::ATTENTION_BF16_128, 128),
        _ => return None,
    };
    (capability >= 80).then_some((source, (type_name(shape.dtype), Some(width))))
}

fn grid(units: usize) -> Grid {
    Grid { blocks: (units.min(1 << 20) as u32, 1, 1), threads: 256, shared_bytes: 0 }
}

/// Blocks of the tensor cores' kernels.
fn four_warps(units: usize) -> Grid {
    Grid { threads: 128, ..grid(units) }
}

/// Inputs [query, key, value, mask?]; outputs [result] or [result, logarithms of sums].
pub(crate) fn attention(launch: &CudaLaunch<'_>, args: AttentionArgs) -> Result<()> {
    let [query, key, value] = [0, 1, 2].map(|index| &launch.inputs[index]);
    let shape = Shape::of(query.meta(), value.meta(), args);
    let units = shape.forward_units();
    if units == 0 {
        return Ok(());
    }
    if let Some(packed) = Packed::of(launch, &shape) {
        return packed.forward();
    }
    let arguments = [
        shape.argument(),
        heads(launch, Some(query))?,
        heads(launch, Some(key))?,
        heads(launch, Some(value))?,
        heads(launch, launch.inputs.get(3).filter(|_| args.mask))?,
        heads(launch, Some(&launch.outputs[0]))?,
        launch.outputs.get(1).map_or(Ok(NOTHING), |sums| contiguous(launch, sums))?,
    ];
    if let Some((source, ending)) = halves(launch, &shape) {
        let units = four_warps(shape.heads * shape.queries.div_ceil(64));
        return launch.run(source, named("attention", ending), units, &arguments);
    }
    let kernel = ("attention", computed_in(query.dtype()));
    launch.run(&source_files::ATTENTION, kernel, grid(units), &arguments)
}

/// Bytes of one number a query.
pub(crate) fn attention_backward_workspace_bytes(query: &Meta) -> usize {
    let shape = query.shape();
    let wide = if query.dtype == DType::F64 { 8 } else { 4 };
    shape[..shape.len() - 1].iter().product::<usize>() * wide
}

/// Inputs [grad, query, key, value, result, logarithms of sums, mask?]; outputs the gradients of
/// query, key and value.
pub(crate) fn attention_backward(launch: &CudaLaunch<'_>, args: AttentionArgs) -> Result<()> {
    let [grad, query, key, value, result, sums] =
        [0, 1, 2, 3, 4, 5].map(|index| &launch.inputs[index]);
    let shape = Shape::of(query.meta(), value.meta(), args);
    if let Some(packed) = Packed::of(launch, &shape) {
        return packed.backward();
    }
    let by_cores = halves(launch, &shape);
    let is_plain = by_cores.is_none();
    let (source, ending) =
        by_cores.unwrap_or_else(|| (&source_files::ATTENTION, (computed_in(query.dtype()), None)));
    let along = whole(launch.workspace.pointer().addr());
    let rows = shape.heads * shape.queries;
    if rows > 0 {
        let arguments = [
            shape.argument(),
            heads(launch, Some(grad))?,
            heads(launch, Some(result))?,
            along.clone(),
        ];
        let kernel = named("attention_products", ending);
        launch.run(source, kernel, grid(rows.div_ceil(8)), &arguments)?;
    }
    let read = [
        shape.argument(),
        heads(launch, Some(query))?,
        heads(launch, Some(key))?,
        heads(launch, Some(value))?,
        heads(launch, launch.inputs.get(6).filter(|_| args.mask))?,
        heads(launch, Some(grad))?,
        contiguous(launch, sums)?,
        along,
    ];
    let [to_query, to_key, to_value] =
        [0, 1, 2].map(|index| heads(launch, Some(&launch.outputs[index])));
    let (to_query, to_key, to_value) = (to_query?, to_key?, to_value?);
    let with = |written: &[Argument]| [&read[..], written].concat();
    if !is_plain {
        let keys = shape.heads / args.group.max(1) * shape.keys.div_ceil(64);
        if keys > 0 {
            let arguments = with(&[to_key, to_value]);
            let kernel = named("attention_keys", ending);
            launch.run(source, kernel, four_warps(keys), &arguments)?;
        }
        let queries = shape.heads * shape.queries.div_ceil(64);
        if queries == 0 {
            return Ok(());
        }
        let kernel = named("attention_queries", ending);
        return launch.run(source, kernel, four_warps(queries), &with(&[to_query]));
    }
    let units = shape.backward_units();
    if units == 0 {
        return Ok(());
    }
    let kernel = named("attention_backward", ending);
    launch.run(source, kernel, grid(units), &with(&[to_query, to_key, to_value]))
}
