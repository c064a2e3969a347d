//! Attention of half types whose rows are packed, without a mask: which operands the kernels of
//! `attention_packed.cu` take, and how they are launched. All other operands are `attention.rs`'s.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Grid, KernelSource, source_files};
use plimsoll_kernels::Operand;

use super::attention_operands::{Shape, heads};
use super::{CudaLaunch, NOTHING, contiguous, type_name, whole};

/// Elements of 16 bytes, which a thread copies at once.
const CHUNK: usize = 8;
/// Threads of a block.
const THREADS: u32 = 128;
/// The most blocks in a grid's second dimension.
const GRID_ROWS: usize = 65_535;

/// A source with what its `Tiling` says of blocks.
struct Kernels {
    source: &'static KernelSource,
    /// The longest rows.
    width: usize,
    /// Rows of a block of forward and of the queries' gradients. One of the keys' has 64.
    query_rows: usize,
    /// Dynamic shared memory of a block of the keys' gradients: two stages of two tiles of 8 KiB,
    /// 1 KiB to align them, and for groups of warps a tile of keys and one of values.
    key_bytes: u32,
}

/// Groups of warps where the GPU has them, warps elsewhere.
fn kernels(dtype: DType, longest: usize, capability: u32) -> Option<Kernels> {
    let half = dtype == DType::F16;
    if capability < 80 || !matches!(dtype, DType::F16 | DType::BF16) {
        return None;
    }
    let groups = [&source_files::ATTENTION_GROUPS_BF16_64, &source_files::ATTENTION_GROUPS_F16_64];
    let source = groups[usize::from(half)];
    if longest <= 64 && source.runs_on(capability) {
        return Some(Kernels { source, width: 64, query_rows: 64, key_bytes: 49 << 10 });
    }
    let (sources, width, query_rows) = match longest {
        ..=64 => {
            let sources =
                [&source_files::ATTENTION_PACKED_BF16_64, &source_files::ATTENTION_PACKED_F16_64];
            (sources, 64, 128)
        }
        65..=128 => {
            let sources =
                [&source_files::ATTENTION_PACKED_BF16_128, &source_files::ATTENTION_PACKED_F16_128];
            (sources, 128, 64)
        }
        _ => return None,
    };
    Some(Kernels { source: sources[usize::from(half)], width, query_rows, key_bytes: 33 << 10 })
}

/// Attention by these kernels, forward or backward.
pub(super) struct Packed<'a> {
    launch: &'a CudaLaunch<'a>,
    shape: &'a Shape,
    kernels: Kernels,
}

impl<'a> Packed<'a> {
    /// `None` where an input or output is not for these kernels.
    pub(super) fn of(launch: &'a CudaLaunch<'a>, shape: &'a Shape) -> Option<Packed<'a>> {
        let capability = launch.context.properties().capability;
        let kernels = kernels(shape.dtype, shape.width.max(shape.values), capability)?;
        // The largest score is looked for before scores are scaled; positions have 32 bits.
        let is_scaled_up = (shape.args.scale as f32).is_normal() && shape.args.scale > 0.0;
        let is_small =
            shape.queries.max(shape.keys).div_ceil(64) <= GRID_ROWS && shape.heads < 1 << 31;
        // Other operands are logarithms of sums, which are f32.
        let halves = |operand: &&Operand<'_>| operand.dtype() == shape.dtype;
        let mut operands = launch.inputs.iter().chain(launch.outputs).filter(halves);
        let is_fit = !shape.args.mask && is_scaled_up && is_small && operands.all(has_packed_rows);
        is_fit.then_some(Packed { launch, shape, kernels })
    }

    /// Blocks in the order of `unit_of` of the kernels.
    fn run(
        &self,
        part: &'static str,
        (heads, tiles): (usize, usize),
        shared_bytes: u32,
        arguments: &[Argument],
    ) -> Result<()> {
        let heads_first = self.shape.args.causal || heads > GRID_ROWS;
        let (first, second) = if heads_first { (heads, tiles) } else { (tiles, heads) };
        if first == 0 || second == 0 {
            return Ok(());
        }
        let blocks = (first as u32, second as u32, 1);
        let grid = Grid { blocks, threads: THREADS, shared_bytes };
        let Kernels { source, width, .. } = self.kernels;
        let kernel = ("attention_packed", part, type_name(self.shape.dtype), width);
        self.launch.run(source, kernel, grid, arguments)
    }

    fn query_units(&self) -> (usize, usize) {
        (self.shape.heads, self.shape.queries.div_ceil(self.kernels.query_rows))
    }

    fn key_units(&self) -> (usize, usize) {
        (self.shape.heads / self.shape.args.group.max(1), self.shape.keys.div_ceil(64))
    }

    fn input(&self, index: usize) -> Result<Argument> {
        heads(self.launch, Some(&self.launch.inputs[index]))
    }

    fn output(&self, index: usize) -> Result<Argument> {
        heads(self.launch, Some(&self.launch.outputs[index]))
    }

    /// Operands as `attention` has them.
    pub(super) fn forward(&self) -> Result<()> {
        let sums = self.launch.outputs.get(1);
        let arguments = [
            self.shape.argument(),
            self.input(0)?,
            self.input(1)?,
            self.input(2)?,
            self.output(0)?,
            sums.map_or(Ok(NOTHING), |sums| contiguous(self.launch, sums))?,
        ];
        self.run("", self.query_units(), 0, &arguments)
    }

    /// Operands as `attention_backward` has them. The kernel of the queries writes the workspace,
    /// which that of the keys reads.
    pub(super) fn backward(&self) -> Result<()> {
        let [grad, result] = [self.input(0)?, self.input(4)?];
        let read = [self.shape.argument(), self.input(1)?, self.input(2)?, self.input(3)?];
        let sums = contiguous(self.launch, &self.launch.inputs[5])?;
        let numbers = [sums, whole(self.launch.workspace.pointer().addr())];
        let of_queries = [result, grad.clone()];
        let arguments = [&read[..], &of_queries[..], &numbers[..], &[self.output(0)?][..]].concat();
        self.run("queries", self.query_units(), 0, &arguments)?;
        let written = [self.output(1)?, self.output(2)?];
        let arguments = [&read[..], &[grad][..], &numbers[..], &written[..]].concat();
        self.run("keys", self.key_units(), self.kernels.key_bytes, &arguments)
    }
}

/// Whether rows are as `Rows` in `attention_packed.cuh` wants them.
fn has_packed_rows(operand: &Operand<'_>) -> bool {
    let (shape, strides) = (operand.shape(), operand.layout().strides());
    let ([.., width], [outer @ .., column]) = (shape, strides) else { return false };
    let starts_chunks =
        shape.iter().zip(outer).all(|(&size, &stride)| size == 1 || stride.is_multiple_of(CHUNK));
    *column == 1
        && width.is_multiple_of(CHUNK)
        && starts_chunks
        && operand.first_byte().addr().is_multiple_of(16)
}
