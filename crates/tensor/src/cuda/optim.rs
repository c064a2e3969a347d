//! A step of an optimizer over all parameters: one launch for those whose operands lie alike and
//! densely, which is nearly always all of them, by a table among the kernel's arguments; one launch
//! for each of the others. Where steps are counted, a launch before counts them.

use plimsoll_core::{DType, Layout, Result};
use plimsoll_cuda::{Argument, Grid, KernelName, Words, source_files};
use plimsoll_kernels::Operand;
use plimsoll_kernels::cpu::optim::{MOST_STATES, Operands, Rule, Step, Steps};
use smallvec::SmallVec;

use super::strided::Strided;
use super::{CudaLaunch, type_name, whole};

/// Tensors of a launch: mirrors `ENTRIES` in the kernels. Together below the 32,764 bytes that a
/// kernel's arguments may have.
const ENTRIES: usize = 400;

/// Words of an entry.
const ENTRY_WORDS: usize = 10;

/// Elements of a block.
const CHUNK: usize = 1 << 14;

const THREADS: u32 = 512;

/// One parameter with what belongs to it.
struct Group<'a> {
    parameter: &'a Operand<'a>,
    grad: &'a Operand<'a>,
    master: Option<&'a Operand<'a>>,
    states: [Option<&'a Operand<'a>>; MOST_STATES],
    step: Option<&'a Operand<'a>>,
    product: Option<&'a Operand<'a>>,
}

impl<'a> Group<'a> {
    fn of(all: &Operands<'a>, index: usize) -> Group<'a> {
        let at = |list: Option<&'a [Operand<'a>]>| list.map(|list| &list[index]);
        Group {
            parameter: &all.parameters[index],
            grad: &all.grads[index],
            master: at(all.masters),
            states: all.states.map(at),
            step: at(all.steps),
            product: at(all.products),
        }
    }

    fn operands(&self) -> impl Iterator<Item = &'a Operand<'a>> {
        let states = self.states.into_iter().flatten();
        [self.parameter, self.grad].into_iter().chain(self.master).chain(states)
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

    /// Mirrors `Entry` in the kernels.
    fn entry(&self, chunks: usize) -> [u64; ENTRY_WORDS] {
        let [first, second, third] = self.states.map(word);
        let [parameter, grad] = [self.parameter, self.grad].map(|operand| word(Some(operand)));
        let [master, step, product] = [self.master, self.step, self.product].map(word);
        let count = self.count() as u64;
        [parameter, grad, master, first, second, third, step, product, count, chunks as u64]
    }
}

/// Where an operand's elements begin; 0 if it is not there.
fn word(operand: Option<&Operand<'_>>) -> u64 {
    operand.map_or(0, |operand| operand.first_byte().addr() as u64)
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
fn numbers(step: &Step, of: &Operands<'_>) -> Vec<u64> {
    let sign = if step.maximize { -1.0 } else { 1.0 };
    let at = if let Steps::At(step) = step.steps { step } else { 0.0 };
    let rate = step.learning_rate.unwrap_or(0.0);
    let shared = [rate, step.weight_decay, f64::from(step.decoupled), sign, at];
    let host = shared.into_iter().chain(step.rule.numbers()).map(f64::to_bits);
    host.chain([of.learning_rate, of.scale, of.skip].map(word)).collect()
}

/// What the kernels of a rule begin with.
fn rule_name(rule: &Rule) -> &'static str {
    match rule {
        Rule::Sgd(_) => "sgd",
        Rule::Adam(_) => "adam",
        Rule::NAdam(_) => "nadam",
        Rule::RAdam(_) => "radam",
        Rule::Adagrad(_) => "adagrad",
        Rule::Adadelta(_) => "adadelta",
        Rule::RmsProp(_) => "rmsprop",
        Rule::Rprop(_) => "rprop",
        Rule::Adamax(_) => "adamax",
        Rule::Lion(_) => "lion",
    }
}

/// Inputs and outputs as the CPU kernel of the same name takes them.
pub(crate) fn optimizer_step(launch: &CudaLaunch<'_>, step: &Step) -> Result<()> {
    let of = step.operands(launch.operation, launch.inputs, launch.outputs)?;
    of.check(launch.operation)?;
    let call = Call { launch, step, numbers: numbers(step, &of) };
    let groups: Vec<Group<'_>> =
        (0..of.parameters.len()).map(|index| Group::of(&of, index)).collect();
    if step.steps == Steps::Counted || step.rule.keeps_product() {
        for groups in groups.chunks(ENTRIES) {
            call.advance(groups)?;
        }
    }
    let groups = groups.into_iter().filter(|group| group.count() > 0);
    let (dense, others): (Vec<Group<'_>>, Vec<Group<'_>>) = groups.partition(Group::is_dense);
    others.iter().try_for_each(|group| call.over_layout(group))?;
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        let of: Vec<&Group<'_>> =
            dense.iter().filter(|group| group.parameter.dtype() == dtype).collect();
        of.chunks(ENTRIES).try_for_each(|groups| call.over_table(dtype, groups))?;
    }
    Ok(())
}

/// A step that is being launched.
struct Call<'a> {
    launch: &'a CudaLaunch<'a>,
    step: &'a Step,
    numbers: Vec<u64>,
}

impl Call<'_> {
    /// Mirrors `Table` in the kernels.
    fn table(&self, entries: &[[u64; ENTRY_WORDS]]) -> Argument {
        let mut words = self.numbers.clone();
        let counted = u64::from(self.step.steps == Steps::Counted);
        words.extend([entries.len() as u64, CHUNK as u64, counted]);
        words.extend(entries.iter().flatten());
        words.resize(self.numbers.len() + 3 + ENTRIES * ENTRY_WORDS, 0);
        Argument::Words(words.into())
    }

    fn run(
        &self,
        kernel: impl Into<KernelName>,
        blocks: u32,
        arguments: &[Argument],
    ) -> Result<()> {
        let grid = Grid { blocks: (blocks, 1, 1), threads: THREADS, shared_bytes: 0 };
        self.launch.run(&source_files::OPTIM, kernel, grid, arguments)
    }

    fn advance(&self, groups: &[Group<'_>]) -> Result<()> {
        let entries: Vec<_> = groups.iter().map(|group| group.entry(0)).collect();
        self.run("advance", 1, &[self.table(&entries)])
    }

    fn over_table(&self, dtype: DType, groups: &[&Group<'_>]) -> Result<()> {
        let mut chunks = 0;
        let entries: Vec<_> = groups
            .iter()
            .map(|group| {
                chunks += group.count().div_ceil(CHUNK);
                group.entry(chunks)
            })
            .collect();
        let blocks =
            u32::try_from(chunks).map_err(|_| self.launch.unsupported("so many elements"))?;
        let form = if self.step.masters { "master" } else { "" };
        let kernel = (rule_name(&self.step.rule), "table", type_name(dtype), form);
        self.run(kernel, blocks, &[self.table(&entries)])
    }

    fn over_layout(&self, group: &Group<'_>) -> Result<()> {
        let (parameter, shape) = (group.parameter, group.parameter.shape());
        let located = |operands: [&Operand<'_>; 3]| {
            let strides = |dim: usize| operands.map(|operand| operand.layout().strides()[dim]);
            let dims = (0..shape.len()).map(|dim| (shape[dim], strides(dim)));
            Strided::in_order(dims).argument(self.launch.operation)
        };
        let states = group.states.map(|state| state.unwrap_or(parameter));
        let first = [parameter, group.grad, group.master.unwrap_or(parameter)];
        let kind = match parameter.dtype() {
            DType::F16 => 2,
            DType::BF16 => 3,
            _ => 1,
        };
        let kept = if self.step.masters { 1 } else { kind };
        let computed = if parameter.dtype() == DType::F64 { "f64" } else { "f32" };
        let arguments = [
            Argument::Words(Words::from_slice(&self.numbers)),
            Argument::Words(Words::from_slice(&group.entry(0))),
            located(first)?,
            located(states)?,
            whole(kind),
            whole(kept),
        ];
        let kernel = (rule_name(&self.step.rule), "layout", computed);
        let grid = self.launch.grid(group.count(), 1);
        self.launch.run(&source_files::OPTIM, kernel, grid, &arguments)
    }
}
