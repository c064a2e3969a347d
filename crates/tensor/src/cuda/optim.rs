//! A step of AdamW over all parameters: one launch for those whose operands lie alike and densely,
//! which is nearly always all of them, by a table among the kernel's arguments; one launch for each
//! of the others.

use plimsoll_core::{DType, Layout, Result};
use plimsoll_cuda::{Argument, Grid, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::optim::{AdamW, Operands};
use smallvec::SmallVec;

use super::strided::Strided;
use super::{CudaLaunch, NOTHING, address, type_name, whole};

/// Tensors of a launch: mirrors `ENTRIES` in the kernels. Together below the 32,764 bytes that a
/// kernel's arguments may have.
const ENTRIES: usize = 400;

/// Words of an entry.
const ENTRY_WORDS: usize = 8;

/// Elements of a block.
const CHUNK: usize = 1 << 14;

const THREADS: u32 = 512;

/// One parameter with what belongs to it.
struct Group<'a> {
    parameter: &'a Operand<'a>,
    grad: &'a Operand<'a>,
    mean: &'a Operand<'a>,
    square: &'a Operand<'a>,
    largest: Option<&'a Operand<'a>>,
    step: Option<&'a Operand<'a>>,
}

impl<'a> Group<'a> {
    fn operands(&self) -> impl Iterator<Item = &'a Operand<'a>> {
        [self.parameter, self.grad, self.mean, self.square].into_iter().chain(self.largest)
    }

    /// Whether all lie alike and without gaps, so that the order of elements does not matter.
    fn is_dense(&self) -> bool {
        let first = self.parameter.layout();
        let alike = |layout: &Layout| {
            let pairs = layout.strides().iter().zip(first.strides()).zip(first.shape());
            pairs.into_iter().all(|((a, b), &size)| a == b || size == 1)
        };
        self.operands().all(|operand| alike(operand.layout())) && is_gapless(first)
    }

    fn count(&self) -> usize {
        self.parameter.layout().numel()
    }
}

/// Whether the elements fill their memory, in whatever order of dimensions.
fn is_gapless(layout: &Layout) -> bool {
    let pairs = layout.strides().iter().zip(layout.shape());
    let mut dims: SmallVec<[(usize, usize); 6]> =
        pairs.filter(|pair| *pair.1 != 1).map(|(&stride, &size)| (stride, size)).collect();
    dims.sort_unstable();
    let mut reach = 1;
    dims.iter().all(|&(stride, size)| {
        let next = stride == reach;
        reach *= size;
        next
    })
}

/// Mirrors `Numbers` in the kernels.
fn numbers(step: &AdamW, of: &Operands<'_>) -> Vec<u64> {
    let sign = if step.maximize { -1.0 } else { 1.0 };
    let AdamW { beta1, beta2, eps, weight_decay, .. } = *step;
    let [rate, at] = [step.learning_rate, step.step].map(|number| number.unwrap_or(0.0));
    let host = [rate, beta1, beta2, eps, weight_decay, at, sign].map(f64::to_bits);
    let word = |operand: Option<&Operand<'_>>| operand.map_or(0, |o| o.first_byte().addr() as u64);
    let device = [of.learning_rate, of.scale, of.skip].map(word);
    host.into_iter().chain(device).collect()
}

/// Inputs and outputs as the CPU kernel of the same name takes them.
pub(crate) fn adamw(launch: &CudaLaunch<'_>, step: &AdamW) -> Result<()> {
    let of = step.operands(launch.operation, launch.inputs, launch.outputs)?;
    let numbers = numbers(step, &of);
    let mut dense: Vec<Group<'_>> = Vec::new();
    for index in 0..of.parameters.len() {
        let [parameter, grad, mean, square] =
            [of.parameters, of.grads, of.means, of.squares].map(|list| &list[index]);
        let group = Group {
            parameter,
            grad,
            mean,
            square,
            largest: of.largest.map(|list| &list[index]),
            step: of.steps.map(|list| &list[index]),
        };
        let all: SmallVec<[&Operand<'_>; 5]> = group.operands().collect();
        launch.check_dtypes(parameter.dtype(), &all)?;
        if group.count() == 0 {
            continue;
        }
        if group.is_dense() {
            dense.push(group);
        } else {
            over_layout(launch, &numbers, &group)?;
        }
    }
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        let of: Vec<&Group<'_>> =
            dense.iter().filter(|group| group.parameter.dtype() == dtype).collect();
        for groups in of.chunks(ENTRIES) {
            over_table(launch, &numbers, dtype, groups)?;
        }
    }
    Ok(())
}

fn over_table(
    launch: &CudaLaunch<'_>,
    numbers: &[u64],
    dtype: DType,
    groups: &[&Group<'_>],
) -> Result<()> {
    let mut words: Vec<u64> = numbers.to_vec();
    words.extend([groups.len() as u64, CHUNK as u64]);
    let mut chunks = 0;
    for group in groups {
        let word = |operand: &Operand<'_>| operand.first_byte().addr() as u64;
        chunks += group.count().div_ceil(CHUNK);
        words.extend([group.parameter, group.grad, group.mean, group.square].map(word));
        words.extend([group.largest.map_or(0, word), group.step.map_or(0, word)]);
        words.extend([group.count() as u64, chunks as u64]);
    }
    words.resize(numbers.len() + 2 + ENTRIES * ENTRY_WORDS, 0);
    let blocks = u32::try_from(chunks).map_err(|_| launch.unsupported("so many elements"))?;
    let grid = Grid { blocks: (blocks, 1, 1), threads: THREADS, shared_bytes: 0 };
    let kernel = format!("adamw_table_{}", type_name(dtype));
    launch.run(&source_files::OPTIM, &kernel, grid, &[Argument::Words(words)])
}

fn over_layout(launch: &CudaLaunch<'_>, numbers: &[u64], group: &Group<'_>) -> Result<()> {
    let Group { parameter, grad, mean, square, .. } = group;
    let shape = parameter.shape();
    let strides = |operand: &Operand<'_>, dim: usize| operand.layout().strides()[dim];
    let all = Strided::in_order((0..shape.len()).map(|dim| {
        (shape[dim], [parameter, grad, mean, square].map(|operand| strides(operand, dim)))
    }));
    let largest = group.largest.unwrap_or(parameter);
    let last = Strided::in_order((0..shape.len()).map(|dim| (shape[dim], [strides(largest, dim)])));
    let arguments = [
        whole(group.count()),
        Argument::Words(numbers.to_vec()),
        all.argument(launch.operation)?,
        last.argument(launch.operation)?,
        address(parameter),
        address(grad),
        address(mean),
        address(square),
        group.largest.map_or(NOTHING, address),
        group.step.map_or(NOTHING, address),
    ];
    let kernel = format!("adamw_layout_{}", type_name(parameter.dtype()));
    launch.run(&source_files::OPTIM, &kernel, launch.grid(group.count(), 1), &arguments)
}
