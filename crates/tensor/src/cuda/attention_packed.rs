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

/// Attention by these kernels, forward or backward.
pub(super) struct Packed<'a> {
    launch: &'a CudaLaunch<'a>,
    shape: &'a Shape,
    source: &'static KernelSource,
    /// What the kernels' names end in.
    ending: String,
    /// Blocks of forward and of the queries' gradients, and of the keys' gradients.
    query_units: usize,
    key_units: usize,
}

impl<'a> Packed<'a> {
    /// `None` where an input or output is not for these kernels.
    pub(super) fn of(launch: &'a CudaLaunch<'a>, shape: &'a Shape) -> Option<Packed<'a>> {
        let (source, width) = match (shape.dtype, shape.width.max(shape.values)) {
            (DType::F16, ..=64) => (&source_files::ATTENTION_PACKED_F16_64, 64),
            (DType::F16, ..=128) => (&source_files::ATTENTION_PACKED_F16_128, 128),
            (DType::BF16, ..=64) => (&source_files::ATTENTION_PACKED_BF16_64, 64),
            (DType::BF16, ..=128) => (&source_files::ATTENTION_PACKED_BF16_128, 128),
            _ => return None,
        };
        // Rows of a block, by `Tiling` of the kernels.
        let query_rows = if width == 64 { 128 } else { 64 };
        let query_units = shape.heads * shape.queries.div_ceil(query_rows);
        let key_units = shape.heads / shape.args.group.max(1) * shape.keys.div_ceil(64);
        // The largest score is looked for before scores are scaled; positions have 32 bits.
        let is_scaled_up = (shape.args.scale as f32).is_normal() && shape.args.scale > 0.0;
        let is_small =
            shape.queries.max(shape.keys) < 1 << 30 && query_units.max(key_units) < 1 << 31;
        // Other operands are logarithms of sums, which are f32.
        let halves = |operand: &&Operand<'_>| operand.dtype() == shape.dtype;
        let mut operands = launch.inputs.iter().chain(launch.outputs).filter(halves);
        let is_fit = launch.context.properties().capability >= 80
            && !shape.args.mask
            && is_scaled_up
            && is_small
            && operands.all(has_packed_rows);
        let ending = format!("{}_{width}", type_name(shape.dtype));
        is_fit.then_some(Packed { launch, shape, source, ending, query_units, key_units })
    }

    fn run(&self, part: &str, units: usize, arguments: &[Argument]) -> Result<()> {
        if units == 0 {
            return Ok(());
        }
        let grid = Grid { blocks: (units as u32, 1, 1), threads: THREADS, shared_bytes: 0 };
        let kernel = format!("attention_packed_{part}{}", self.ending);
        self.launch.run(self.source, &kernel, grid, arguments)
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
        self.run("", self.query_units, &arguments)
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
        self.run("queries_", self.query_units, &arguments)?;
        let written = [self.output(1)?, self.output(2)?];
        let arguments = [&read[..], &[grad][..], &numbers[..], &written[..]].concat();
        self.run("keys_", self.key_units, &arguments)
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
