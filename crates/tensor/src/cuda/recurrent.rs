//! A recurrent layer: one product for the inputs of all steps, then for each step a product of the
//! hidden state and a kernel over the cells. Backward goes from the last step to the first, then
//! makes one product for each weight and for the inputs.

use plimsoll_core::{DType, Layout, Result, Scalar};
use plimsoll_cuda::{Argument, Grid, Properties, source_files};
use plimsoll_kernels::cpu::recurrent::{Cell, RecurrentArgs, Span, Step};
use plimsoll_kernels::{Meta, Operand, Workspace};

use super::fill::fill_operand;
use super::products::{Matrix, product};
use super::recurrent_products::{Pass, most};
use super::{CudaLaunch, contiguous, copy, type_name, whole};

/// Parts of the workspace start on multiples of this.
const ALIGNMENT: usize = 512;

fn cell(args: RecurrentArgs<'_>) -> Argument {
    whole(match args.cell {
        Cell::Lstm => 0,
        Cell::Gru => 1,
        Cell::Tanh => 2,
        Cell::Relu => 3,
    })
}

/// Hands out contiguous operands in order; 0 for one that is not there.
struct InOrder<'a> {
    launch: &'a CudaLaunch<'a>,
    operands: std::slice::Iter<'a, Operand<'a>>,
}

impl<'a> InOrder<'a> {
    fn new(launch: &'a CudaLaunch<'a>, operands: &'a [Operand<'a>]) -> InOrder<'a> {
        InOrder { launch, operands: operands.iter() }
    }

    fn take(&mut self, there: bool) -> Result<usize> {
        match if there { self.operands.next() } else { None } {
            Some(operand) => contiguous(self.launch, operand).map(|_| operand.first_byte().addr()),
            None => Ok(0),
        }
    }
}

fn gates_bytes(args: RecurrentArgs<'_>, dtype: DType, saving: bool) -> usize {
    let kept = if saving { 0 } else { args.cell.kept() };
    (args.rows * kept * args.hidden * dtype.size_bytes()).next_multiple_of(ALIGNMENT)
}

/// Gates that nobody keeps, and the products'.
pub(crate) fn recurrent_workspace_bytes(
    gpu: &Properties,
    dtype: DType,
    args: RecurrentArgs<'_>,
    saving: bool,
) -> usize {
    let pass = Pass { args, dtype };
    let blocks = args.cell.blocks().iter().map(|&block| pass.input_side([0; 3], block));
    let steps = args.counts().map(|count| pass.hidden_side([0; 3], count));
    gates_bytes(args, dtype, saving) + most(gpu, blocks.chain(steps))
}

/// What is left of a workspace after `used` bytes.
fn rest(workspace: Workspace, used: usize) -> Workspace {
    // SAFETY: a part of this launch's workspace, which only the products use.
    unsafe {
        Workspace::new(
            workspace.pointer().wrapping_add(used),
            workspace.bytes().saturating_sub(used),
        )
    }
}

fn multiply(
    launch: &CudaLaunch<'_>,
    [a, b, c]: [Matrix; 3],
    beta: f64,
    workspace: Workspace,
) -> Result<()> {
    // SAFETY: parts of the operands and of the workspace before `workspace`, each result apart from
    // its factors.
    unsafe { product(launch, [&a, &b, &c], beta, workspace) }
}

/// Inputs [x, state, input weights, hidden weights, memory of an LSTM, two biases if there are];
/// outputs [result, last state, last memory of an LSTM], and [gates, memories of an LSTM] if
/// backward wants them; plain cells have none.
pub(crate) fn recurrent(launch: &CudaLaunch<'_>, args: RecurrentArgs<'_>) -> Result<()> {
    let (lstm, dtype) = (args.cell == Cell::Lstm, launch.inputs[0].dtype());
    let saving = launch.outputs.len() > if lstm { 3 } else { 2 };
    let pass = Pass { args, dtype };
    let mut inputs = InOrder::new(launch, launch.inputs);
    let (x, _initial) = (inputs.take(true)?, inputs.take(true)?);
    let weights = [inputs.take(true)?, inputs.take(true)?];
    inputs.take(lstm)?;
    let biases = [inputs.take(args.biased)?, inputs.take(args.biased)?];
    let mut outputs = InOrder::new(launch, launch.outputs);
    let (out, state) = (outputs.take(true)?, outputs.take(true)?);
    let memory = outputs.take(lstm)?;
    let start = launch.workspace.pointer().addr();
    let gates = match args.cell {
        Cell::Tanh | Cell::Relu => out,
        _ if saving => outputs.take(true)?,
        _ => start,
    };
    let kept = outputs.take(lstm && saving)?;
    let workspace = rest(launch.workspace, gates_bytes(args, dtype, saving));
    copy(launch, &launch.inputs[1], &launch.outputs[1])?;
    if lstm {
        copy(launch, &launch.inputs[4], &launch.outputs[2])?;
    }
    for &block in args.cell.blocks() {
        multiply(launch, pass.input_side([x, weights[0], gates], block)?, 0.0, workspace)?;
    }
    if args.cell == Cell::Gru {
        // The hidden side of n is added up from nothing.
        let layout = Layout::strided(&[args.rows, args.hidden], &[args.width(), 1], 0)?;
        let meta = Meta { layout, dtype };
        let first = gates + pass.bytes(3 * args.hidden);
        // SAFETY: the last columns of the gates.
        let own = unsafe { Operand::new(first as *mut u8, &meta) };
        fill_operand(launch, &own, Scalar::Int(0))?;
    }
    let kernel = ("recurrent", type_name(dtype));
    for &Step { start, count, .. } in args.steps {
        let own = gates + pass.bytes(start * args.width());
        multiply(launch, pass.hidden_side([state, weights[1], own], count)?, 1.0, workspace)?;
        let skipped = pass.bytes(start * args.hidden);
        let arguments = [
            cell(args),
            whole(count),
            whole(args.hidden),
            whole(own),
            whole(biases[0]),
            whole(biases[1]),
            whole(memory),
            whole(state),
            whole(out + skipped),
            whole(if kept == 0 { 0 } else { kept + skipped }),
        ];
        if count * args.hidden > 0 {
            let grid = launch.grid(count * args.hidden, 1);
            launch.run(&source_files::RECURRENT, kernel, grid, &arguments)?;
        }
    }
    Ok(())
}

fn slopes_bytes(args: RecurrentArgs<'_>, dtype: DType) -> usize {
    (args.rows * args.width() * dtype.size_bytes()).next_multiple_of(ALIGNMENT)
}

/// The gradients of all sums of products, and the products'.
pub(crate) fn recurrent_backward_workspace_bytes(
    gpu: &Properties,
    dtype: DType,
    args: RecurrentArgs<'_>,
) -> usize {
    let pass = Pass { args, dtype };
    let steps = args.counts().map(|count| pass.through_step([0; 3], count));
    let blocks = args.cell.blocks();
    let blocks = blocks
        .iter()
        .flat_map(|&block| [pass.input_weights([0; 3], block), pass.inputs([0; 3], block)]);
    let spans = spans(args);
    let spans = spans.iter().map(|span| pass.hidden_weights([0; 3], span.count));
    slopes_bytes(args, dtype) + most(gpu, steps.chain(blocks).chain(spans))
}

/// The rows of slopes with the states that they go with; the product of no rows is zeros.
fn spans(args: RecurrentArgs<'_>) -> Vec<Span> {
    let mut spans = args.spans();
    if spans.is_empty() {
        spans.push(Span { initial: true, row: 0, state: 0, count: 0 });
    }
    spans
}

/// The operands of the backward pass; 0 for those that are not there.
struct Backward<'a> {
    launch: &'a CudaLaunch<'a>,
    pass: Pass<'a>,
    x: usize,
    initial: usize,
    weights: [usize; 2],
    result: usize,
    /// An LSTM's cell states: initial, and after each step.
    memories: [usize; 2],
    gates: usize,
    grad: usize,
    state: usize,
    to_weights: [usize; 2],
    memory: usize,
    to_biases: [usize; 2],
    to_x: usize,
    slopes: usize,
    workspace: Workspace,
}

/// Inputs [x, state, input weights, hidden weights, result, memory of an LSTM, gates, memories of
/// an LSTM, and what there is of the gradients of the result, the last state and the last memory];
/// outputs the gradients of [state, input weights, hidden weights, memory of an LSTM, two biases if
/// there are, x if it is wanted].
pub(crate) fn recurrent_backward(
    launch: &CudaLaunch<'_>,
    args: RecurrentArgs<'_>,
    given: [bool; 3],
) -> Result<()> {
    let backward = Backward::new(launch, args, given)?;
    for &step in args.steps.iter().rev() {
        backward.step(step)?;
    }
    backward.weights()?;
    backward.inputs_and_biases()
}

impl<'a> Backward<'a> {
    /// Finds the operands, and puts the gradients of the last states where the running ones are.
    fn new(
        launch: &'a CudaLaunch<'a>,
        args: RecurrentArgs<'a>,
        given: [bool; 3],
    ) -> Result<Backward<'a>> {
        let (lstm, dtype) = (args.cell == Cell::Lstm, launch.inputs[0].dtype());
        let mut inputs = InOrder::new(launch, launch.inputs);
        let (x, initial) = (inputs.take(true)?, inputs.take(true)?);
        let weights = [inputs.take(true)?, inputs.take(true)?];
        let result = inputs.take(true)?;
        let first_memory = inputs.take(lstm)?;
        let plain = args.cell.kept() == 0;
        let kept_gates = inputs.take(!plain)?;
        let memories = [first_memory, inputs.take(lstm)?];
        let grad = inputs.take(given[0])?;
        let mut last = inputs.operands;
        let last = [given[1], given[2]].map(|given| if given { last.next() } else { None });
        let mut outputs = InOrder::new(launch, launch.outputs);
        let state = outputs.take(true)?;
        let to_weights = [outputs.take(true)?, outputs.take(true)?];
        let memory = outputs.take(lstm)?;
        let to_biases = [outputs.take(args.biased)?, outputs.take(args.biased)?];
        let to_x = outputs.take(true)?;
        let running = [launch.outputs.first(), launch.outputs.get(3).filter(|_| lstm)];
        for (to, last) in running.into_iter().zip(last) {
            match (to, last) {
                (Some(to), Some(last)) => copy(launch, last, to)?,
                (Some(to), None) => fill_operand(launch, to, Scalar::Int(0))?,
                (None, _) => {}
            }
        }
        Ok(Backward {
            launch,
            pass: Pass { args, dtype },
            x,
            initial,
            weights,
            result,
            memories,
            gates: if plain { result } else { kept_gates },
            grad,
            state,
            to_weights,
            memory,
            to_biases,
            to_x,
            slopes: launch.workspace.pointer().addr(),
            workspace: rest(launch.workspace, slopes_bytes(args, dtype)),
        })
    }

    fn step(&self, step: Step) -> Result<()> {
        let Backward { launch, pass, .. } = *self;
        let args = pass.args;
        let Step { start, count, before, kept } = step;
        if count * args.hidden == 0 {
            return Ok(());
        }
        let (wide, narrow) = (pass.bytes(start * args.width()), pass.bytes(start * args.hidden));
        let slopes = self.slopes + wide;
        let after =
            |address: usize, skipped: usize| if address == 0 { 0 } else { address + skipped };
        let [first, earlier] = match args.cell {
            Cell::Lstm => self.memories,
            _ => [self.initial, self.result],
        };
        let arguments = [
            cell(args),
            whole(count),
            whole(args.hidden),
            whole(kept),
            whole(self.gates + wide),
            whole(slopes),
            whole(after(self.grad, narrow)),
            whole(self.state),
            whole(self.memory),
            whole(after(self.memories[1], narrow)),
            whole(earlier + pass.bytes(before * args.hidden)),
            whole(first),
        ];
        let kernel = ("recurrent_backward", type_name(pass.dtype));
        let grid = launch.grid(count * args.hidden, 1);
        launch.run(&source_files::RECURRENT, kernel, grid, &arguments)?;
        // What goes past a GRU's products is in the state already.
        let beta = if args.cell == Cell::Gru { 1.0 } else { 0.0 };
        let through = pass.through_step([slopes, self.weights[1], self.state], count)?;
        multiply(launch, through, beta, self.workspace)
    }

    /// The gradients of both weights.
    fn weights(&self) -> Result<()> {
        let Backward { launch, pass, workspace, .. } = *self;
        for &block in pass.args.cell.blocks() {
            let places = [self.slopes, self.x, self.to_weights[0]];
            multiply(launch, pass.input_weights(places, block)?, 0.0, workspace)?;
        }
        for (index, span) in spans(pass.args).into_iter().enumerate() {
            let Span { initial, row, state, count } = span;
            let states = if initial { self.initial } else { self.result };
            let places = [
                self.slopes + pass.bytes(row * pass.args.width()),
                states + pass.bytes(state * pass.args.hidden),
                self.to_weights[1],
            ];
            let beta = if index == 0 { 0.0 } else { 1.0 };
            multiply(launch, pass.hidden_weights(places, count)?, beta, workspace)?;
        }
        Ok(())
    }

    fn inputs_and_biases(&self) -> Result<()> {
        let Backward { launch, pass, workspace, .. } = *self;
        let args = pass.args;
        if self.to_x != 0 {
            for (index, &block) in args.cell.blocks().iter().enumerate() {
                let places = [self.slopes, self.weights[0], self.to_x];
                let beta = if index == 0 { 0.0 } else { 1.0 };
                multiply(launch, pass.inputs(places, block)?, beta, workspace)?;
            }
        }
        if !args.biased || args.hidden == 0 {
            return Ok(());
        }
        let arguments = [
            cell(args),
            whole(args.rows),
            whole(args.hidden),
            whole(self.slopes),
            whole(self.to_biases[0]),
            whole(self.to_biases[1]),
        ];
        let blocks = args.width().div_ceil(32) as u32;
        let grid = Grid { blocks: (blocks, 1, 1), threads: 256, shared_bytes: 0 };
        let kernel = ("recurrent_biases", type_name(pass.dtype));
        launch.run(&source_files::RECURRENT, kernel, grid, &arguments)
    }
}
