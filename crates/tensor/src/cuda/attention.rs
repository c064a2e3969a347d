//! Attention in tiles of queries and keys, on operands of any strides.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::cpu::attention::AttentionArgs;
use plimsoll_kernels::{Meta, Operand};

use super::strided::Strided;
use super::tail::{code, computed_in};
use super::{CudaLaunch, NOTHING, contiguous, whole};

/// Columns of a result that one block makes.
const COLUMNS: usize = 64;
/// The most dimensions before the last two, after merging.
const RANK: usize = 6;

/// Sizes that all heads share.
struct Shape {
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    values: usize,
    args: AttentionArgs,
    dtype: DType,
}

impl Shape {
    fn of(query: &Meta, value: &Meta, args: AttentionArgs) -> Shape {
        let (query_shape, value_shape) = (query.shape(), value.shape());
        let rank = query_shape.len();
        Shape {
            heads: query_shape[..rank - 2].iter().product(),
            queries: query_shape[rank - 2],
            width: query_shape[rank - 1],
            keys: value_shape[value_shape.len() - 2],
            values: value_shape[value_shape.len() - 1],
            args,
            dtype: query.dtype,
        }
    }

    /// The structure `Shape` of the kernels.
    fn argument(&self) -> Argument {
        let AttentionArgs { causal, scale, group, .. } = self.args;
        let sizes = [self.heads, self.queries, self.keys, self.width, self.values, group];
        let mut words: Vec<u64> = sizes.map(|size| size as u64).to_vec();
        words.extend([u64::from(causal), scale.to_bits(), code(self.dtype)]);
        Argument::Words(words)
    }

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

/// The structure `Heads` of the kernels.
fn heads(launch: &CudaLaunch<'_>, operand: Option<&Operand<'_>>) -> Result<Argument> {
    let mut words = vec![0u64; 5 + 2 * RANK];
    let Some(operand) = operand else { return Ok(Argument::Words(words)) };
    let (shape, strides) = (operand.shape(), operand.layout().strides());
    let lead = shape.len() - 2;
    let merged = Strided::in_order((0..lead).map(|dim| (shape[dim], [strides[dim]])));
    let rank = merged.sizes().len();
    if rank > RANK {
        return Err(launch.unsupported(format!("an operand with {rank} dimensions of heads")));
    }
    words[0] = operand.first_byte().addr() as u64;
    words[1] = code(operand.dtype());
    words[2] = rank as u64;
    for dim in 0..rank {
        words[3 + dim] = merged.sizes()[dim] as u64;
        words[3 + RANK + dim] = merged.strides(0)[dim] as u64;
    }
    words[3 + 2 * RANK] = strides[lead] as u64;
    words[4 + 2 * RANK] = strides[lead + 1] as u64;
    Ok(Argument::Words(words))
}

fn grid(units: usize) -> Grid {
    Grid { blocks: (units.min(1 << 20) as u32, 1, 1), threads: 256, shared_bytes: 0 }
}

/// Inputs [query, key, value, mask?]; outputs [result] or [result, logarithms of sums].
pub(crate) fn attention(launch: &CudaLaunch<'_>, args: AttentionArgs) -> Result<()> {
    let [query, key, value] = [0, 1, 2].map(|index| &launch.inputs[index]);
    let shape = Shape::of(query.meta(), value.meta(), args);
    let units = shape.forward_units();
    if units == 0 {
        return Ok(());
    }
    let arguments = [
        shape.argument(),
        heads(launch, Some(query))?,
        heads(launch, Some(key))?,
        heads(launch, Some(value))?,
        heads(launch, launch.inputs.get(3).filter(|_| args.mask))?,
        contiguous(launch, &launch.outputs[0])?,
        launch.outputs.get(1).map_or(Ok(NOTHING), |sums| contiguous(launch, sums))?,
    ];
    let kernel = format!("attention_{}", computed_in(query.dtype()));
    launch.run(&source_files::ATTENTION, &kernel, grid(units), &arguments)
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
    let computed = computed_in(query.dtype());
    let along = whole(launch.workspace.pointer().addr());
    let rows = shape.heads * shape.queries;
    if rows > 0 {
        let arguments = [
            shape.argument(),
            heads(launch, Some(grad))?,
            heads(launch, Some(result))?,
            along.clone(),
        ];
        let kernel = format!("attention_products_{computed}");
        launch.run(&source_files::ATTENTION, &kernel, grid(rows.div_ceil(8)), &arguments)?;
    }
    let units = shape.backward_units();
    if units == 0 {
        return Ok(());
    }
    let arguments = [
        shape.argument(),
        heads(launch, Some(query))?,
        heads(launch, Some(key))?,
        heads(launch, Some(value))?,
        heads(launch, launch.inputs.get(6).filter(|_| args.mask))?,
        heads(launch, Some(grad))?,
        contiguous(launch, sums)?,
        along,
        contiguous(launch, &launch.outputs[0])?,
        contiguous(launch, &launch.outputs[1])?,
        contiguous(launch, &launch.outputs[2])?,
    ];
    let kernel = format!("attention_backward_{computed}");
    launch.run(&source_files::ATTENTION, &kernel, grid(units), &arguments)
}
