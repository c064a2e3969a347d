//! What the kernels of attention are told of their operands: the structures of `attention.cuh`.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::{Argument, Words};
use plimsoll_kernels::cpu::attention::AttentionArgs;
use plimsoll_kernels::{Meta, Operand};
use smallvec::smallvec;

use super::CudaLaunch;
use super::strided::Strided;
use super::tail::code;

/// The most dimensions before the last two, after merging.
const RANK: usize = 6;

/// Sizes that all heads share.
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) width: usize,
    pub(super) values: usize,
    pub(super) args: AttentionArgs,
    pub(super) dtype: DType,
}

impl Shape {
    pub(super) fn of(query: &Meta, value: &Meta, args: AttentionArgs) -> Shape {
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
    pub(super) fn argument(&self) -> Argument {
        let AttentionArgs { causal, scale, group, .. } = self.args;
        let sizes = [self.heads, self.queries, self.keys, self.width, self.values, group];
        let mut words: Words = sizes.iter().map(|&size| size as u64).collect();
        words.extend([u64::from(causal), scale.to_bits()]);
        Argument::Words(words)
    }
}

/// The structure `Heads` of the kernels.
pub(super) fn heads(launch: &CudaLaunch<'_>, operand: Option<&Operand<'_>>) -> Result<Argument> {
    let mut words: Words = smallvec![0u64; 5 + 2 * RANK];
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
