//! A recurrent layer backward: step by step from the last, then one product for each weight and for
//! the inputs.

use plimsoll_core::{DType, Result};

use plimsoll_engine::real::Real;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Element, input_dtype, parallel, wrong_dtype};
use plimsoll_kernels_matmul::gemm::{GemmShape, PackedRight, Rows, Strides};

use super::{Cell, Number, RecurrentArgs, Span, Step, apart, cells, packed_bytes};
use crate::products::{check_workspace, product, product_bytes, shape};
use crate::rows::{operand, row_major};

/// [x, state, input weights, hidden weights, result, memory of an LSTM, gates, memories of an LSTM,
/// and what there is of the gradients of the result, of the last state and of the last memory] ->
/// the gradients of [state, input weights, hidden weights, memory of an LSTM, two biases if there
/// are, x if it is wanted]. `given` says which gradients there are.
pub fn recurrent_backward(
    launch: &CpuLaunch<'_>,
    args: RecurrentArgs<'_>,
    given: [bool; 3],
) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => backward::<f32>(launch, args, given),
        DType::F64 => backward::<f64>(launch, args, given),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

fn step_shape(dtype: DType, args: RecurrentArgs<'_>, count: usize) -> GemmShape<'static> {
    let hidden = Strides::row_major(args.hidden);
    let strides = [Strides::row_major(args.width()), hidden, hidden];
    shape(dtype, [count, args.hidden, args.weights()], strides)
}

/// Slopes turned, times `columns` wide rows.
fn weight_shape(
    dtype: DType,
    args: RecurrentArgs<'_>,
    [rows, columns, count]: [usize; 3],
) -> GemmShape<'static> {
    let wide = Strides::row_major(columns);
    let strides = [Strides::column_major(args.width()), wide, wide];
    shape(dtype, [rows, columns, count], strides)
}

fn input_shape(dtype: DType, args: RecurrentArgs<'_>, rows: usize) -> GemmShape<'static> {
    let wide = Strides::row_major(args.inputs);
    let strides = [Strides::row_major(args.width()), wide, wide];
    shape(dtype, [args.rows, args.inputs, rows * args.hidden], strides)
}

fn slopes_bytes(dtype: DType, args: RecurrentArgs<'_>) -> usize {
    (args.rows * args.width() * dtype.size_bytes()).next_multiple_of(64)
}

/// Scratch of [`recurrent_backward`].
pub fn recurrent_backward_workspace_bytes(dtype: DType, args: RecurrentArgs<'_>) -> usize {
    let steps = args.counts().map(|count| step_shape(dtype, args, count));
    let steps = steps.filter(|_| apart(args).is_none());
    let blocks = args.cell.blocks().iter().flat_map(|&[_, _, rows]| {
        let sizes = [rows * args.hidden, args.inputs, args.rows];
        [weight_shape(dtype, args, sizes), input_shape(dtype, args, rows)]
    });
    let spans = args.spans();
    let spans = spans
        .iter()
        .map(|span| weight_shape(dtype, args, [args.weights(), args.hidden, span.count]));
    let shapes = steps.chain(blocks).chain(spans);
    let products = shapes.map(|shape| product_bytes(&shape)).max().unwrap_or(0);
    let packed = packed_bytes(dtype, args, [args.weights(), args.hidden]);
    slopes_bytes(dtype, args) + products.max(packed)
}

/// The tensors of a launch.
struct Job<R> {
    x: Shared<R>,
    initial: Shared<R>,
    weights: [Shared<R>; 2],
    result: Shared<R>,
    /// Initial, and after each step.
    memories: Option<[Shared<R>; 2]>,
    gates: Shared<R>,
    grad: Option<Shared<R>>,
    state: Shared<R>,
    to_weights: [Shared<R>; 2],
    memory: Option<Shared<R>>,
    to_biases: Option<[Shared<R>; 2]>,
    to_x: Option<Shared<R>>,
    slopes: Shared<R>,
    workspace: Shared<u8>,
}

/// Hands out a launch's operands in order.
struct InOrder<'a, 'b> {
    launch: &'a CpuLaunch<'b>,
    next: usize,
    outputs: bool,
}

impl InOrder<'_, '_> {
    fn take<R: Element>(&mut self) -> Result<Shared<R>> {
        let launch = self.launch;
        let all = if self.outputs { launch.outputs } else { launch.inputs };
        let found = operand(launch, all, self.next)?;
        self.next += 1;
        row_major::<R>(launch, &found)
    }

    fn take_if<R: Element>(&mut self, there: bool) -> Result<Option<Shared<R>>> {
        if there { self.take().map(Some) } else { Ok(None) }
    }
}

impl<R: Real> Job<R> {
    /// Finds the operands, and puts the gradients of the last states where the running ones are.
    fn new(launch: &CpuLaunch<'_>, args: RecurrentArgs<'_>, given: [bool; 3]) -> Result<Job<R>> {
        check_workspace(launch, recurrent_backward_workspace_bytes(R::DTYPE, args))?;
        let lstm = args.cell == Cell::Lstm;
        let mut inputs = InOrder { launch, next: 0, outputs: false };
        let (x, initial) = (inputs.take()?, inputs.take()?);
        let weights = [inputs.take()?, inputs.take()?];
        let result = inputs.take()?;
        let memory = inputs.take_if(lstm)?;
        let gates = inputs.take_if(args.cell.kept() > 0)?.unwrap_or(result);
        let memories = match (memory, inputs.take_if(lstm)?) {
            (Some(initial), Some(after)) => Some([initial, after]),
            _ => None,
        };
        let grad = inputs.take_if(given[0])?;
        let last = [inputs.take_if::<R>(given[1])?, inputs.take_if::<R>(given[2])?];
        let mut outputs = InOrder { launch, next: 0, outputs: true };
        let state = outputs.take()?;
        let to_weights = [outputs.take()?, outputs.take()?];
        let memory = outputs.take_if(lstm)?;
        let to_biases = match (outputs.take_if(args.biased)?, outputs.take_if(args.biased)?) {
            (Some(input), Some(hidden)) => Some([input, hidden]),
            _ => None,
        };
        let to_x = outputs.take_if(outputs.next < launch.outputs.len())?;
        for (running, last) in [(Some(state), last[0]), (memory, last[1])] {
            let Some(Shared(to)) = running else { continue };
            let count = args.batch * args.hidden;
            // SAFETY: the gradient of a state has its shape.
            unsafe {
                match last {
                    Some(Shared(from)) => std::ptr::copy_nonoverlapping(from, to, count),
                    None => std::slice::from_raw_parts_mut(to, count).fill(R::ZERO),
                }
            }
        }
        let start = launch.workspace.pointer();
        Ok(Job {
            x,
            initial,
            weights,
            result,
            memories,
            gates,
            grad,
            state,
            to_weights,
            memory,
            to_biases,
            to_x,
            slopes: Shared(start.cast()),
            workspace: Shared(start.wrapping_add(slopes_bytes(R::DTYPE, args))),
        })
    }

    /// What comes before a step's product.
    ///
    /// # Safety
    /// The operands are as `args` says.
    unsafe fn cells(&self, args: RecurrentArgs<'_>, step: Step) -> cells::Backward<R> {
        let (hidden, width) = (args.hidden, args.width());
        let Step { start, before, kept, .. } = step;
        let [first, earlier] = self.memories.unwrap_or([self.initial, self.result]);
        // SAFETY: the step's rows.
        unsafe {
            cells::Backward {
                cell: args.cell,
                hidden,
                gates: Shared(self.gates.add(start * width)),
                slopes: Shared(self.slopes.add(start * width)),
                grad: self.grad.map(|grad| Shared(grad.add(start * hidden))),
                state: self.state,
                memory: self.memory,
                after: self.memories.map(|[_, after]| Shared(after.add(start * hidden))),
                before: Shared(earlier.add(before * hidden)),
                kept,
                initial: first,
            }
        }
    }

    /// The slopes of a step's first row that its product reads.
    ///
    /// # Safety
    /// As [`Job::cells`].
    unsafe fn read_by_product(&self, args: RecurrentArgs<'_>, step: Step) -> *mut R {
        // SAFETY: a column of the step's first row.
        unsafe {
            self.slopes.add(step.start * args.width() + args.cell.hidden_column() * args.hidden)
        }
    }

    /// All threads at each step.
    ///
    /// # Safety
    /// As [`Job::cells`].
    unsafe fn together(&self, args: RecurrentArgs<'_>) {
        for &step in args.steps.iter().rev() {
            // SAFETY: the step's rows, and the first rows of the states.
            unsafe {
                self.cells(args, step).run(step.count);
                let from = self.read_by_product(args, step);
                let shape = step_shape(R::DTYPE, args, step.count);
                let (weights, beta) = (self.weights[1].0, past_products(args.cell));
                product(shape, from, weights, self.state.0, beta, self.workspace.0);
            }
        }
    }

    /// The gradients of both weights.
    ///
    /// # Safety
    /// As [`Job::cells`], after all steps.
    unsafe fn weights(&self, args: RecurrentArgs<'_>) {
        let (hidden, width) = (args.hidden, args.width());
        for &[column, row, rows] in args.cell.blocks() {
            // SAFETY: columns of the slopes, and rows of the gradient.
            unsafe {
                let from = self.slopes.add(column * hidden);
                let to = self.to_weights[0].add(row * hidden * args.inputs);
                let sizes = [rows * hidden, args.inputs, args.rows];
                let shape = weight_shape(R::DTYPE, args, sizes);
                product(shape, from, self.x.0, to, 0.0, self.workspace.0);
            }
        }
        let column = args.cell.hidden_column() * hidden;
        let mut spans = args.spans();
        if spans.is_empty() {
            // The product of no rows is zeros.
            spans.push(Span { initial: true, row: 0, state: 0, count: 0 });
        }
        for (index, span) in spans.into_iter().enumerate() {
            let Span { initial, row, state, count } = span;
            let states = if initial { self.initial } else { self.result };
            let beta = if index == 0 { 0.0 } else { 1.0 };
            // SAFETY: rows of the slopes and of the states.
            unsafe {
                let from = self.slopes.add(row * width + column);
                let states = states.add(state * hidden);
                let shape = weight_shape(R::DTYPE, args, [args.weights(), hidden, count]);
                product(shape, from, states, self.to_weights[1].0, beta, self.workspace.0);
            }
        }
    }

    /// The gradient of the inputs, if it is wanted.
    ///
    /// # Safety
    /// As [`Job::weights`].
    unsafe fn inputs(&self, args: RecurrentArgs<'_>) {
        let Some(Shared(to)) = self.to_x else { return };
        for (index, &[column, row, rows]) in args.cell.blocks().iter().enumerate() {
            let beta = if index == 0 { 0.0 } else { 1.0 };
            // SAFETY: columns of the slopes, and rows of the weights.
            unsafe {
                let from = self.slopes.add(column * args.hidden);
                let weights = self.weights[0].add(row * args.hidden * args.inputs);
                let shape = input_shape(R::DTYPE, args, rows);
                product(shape, from, weights, to, beta, self.workspace.0);
            }
        }
    }

    /// The gradients of the biases: sums of the slopes over all rows.
    fn biases(&self, args: RecurrentArgs<'_>) {
        /// Columns that are added up at a time.
        const COLUMNS: usize = 64;
        let Some([of_input, of_hidden]) = self.to_biases else { return };
        let (hidden, width) = (args.hidden, args.width());
        parallel::split(width.div_ceil(COLUMNS), 1, |blocks| {
            for block in blocks {
                let columns = block * COLUMNS..width.min((block + 1) * COLUMNS);
                let mut sums = [0.0f64; COLUMNS];
                for row in 0..args.rows {
                    for (sum, column) in sums.iter_mut().zip(columns.clone()) {
                        // SAFETY: an element of the slopes.
                        *sum += unsafe { *self.slopes.add(row * width + column) }.to_f64();
                    }
                }
                for (&sum, column) in sums.iter().zip(columns) {
                    let [input, own] = bias_places(args.cell, column, hidden);
                    for (to, place) in [(of_input, input), (of_hidden, own)] {
                        if let Some(place) = place {
                            // SAFETY: an element of the bias, which no other column is for.
                            unsafe { *to.add(place) = R::of(sum) };
                        }
                    }
                }
            }
        });
    }
}

impl<R: Number> Job<R> {
    /// Each thread all steps of its own sequences.
    ///
    /// # Safety
    /// As [`Job::cells`]; all steps have all sequences.
    unsafe fn apart(&self, args: RecurrentArgs<'_>, threads: usize) {
        let hidden = args.hidden;
        let right = PackedRight::new::<R>(args.weights(), hidden);
        let packed = Shared(self.workspace.0.cast::<R>());
        // SAFETY: the workspace is large enough, and nobody uses it yet.
        unsafe { right.pack(self.weights[1].0, Strides::row_major(hidden), packed.0) };
        let beta = R::of(past_products(args.cell));
        parallel::fork(threads, |thread| {
            let own = parallel::part_range(args.batch, threads, thread);
            for &step in args.steps.iter().rev() {
                // SAFETY: rows of this thread alone.
                unsafe {
                    self.cells(args, step).run_rows(own.clone());
                    let from = self.read_by_product(args, step).add(own.start * args.width());
                    let rows = Rows {
                        count: own.len(),
                        a: from.cast_const(),
                        a_row: args.width(),
                        c: self.state.add(own.start * hidden),
                        c_row: hidden,
                    };
                    right.multiply(rows, packed.add(0).cast_const(), beta);
                }
            }
        });
    }
}

/// The factor of what the cells left in the state: what goes past a GRU's products is there.
fn past_products(cell: Cell) -> f64 {
    if cell == Cell::Gru { 1.0 } else { 0.0 }
}

/// Where a column of the slopes belongs in the bias of the input and of the hidden state.
fn bias_places(cell: Cell, column: usize, hidden: usize) -> [Option<usize>; 2] {
    if cell != Cell::Gru {
        return [Some(column); 2];
    }
    match column / hidden {
        0 => [Some(column + 2 * hidden), None],
        1 | 2 => [Some(column - hidden); 2],
        _ => [None, Some(column - hidden)],
    }
}

fn backward<R: Number>(
    launch: &CpuLaunch<'_>,
    args: RecurrentArgs<'_>,
    given: [bool; 3],
) -> Result<()> {
    let job = Job::<R>::new(launch, args, given)?;
    // SAFETY: the shape rule made the outputs as `args` says; the inputs are the forward pass's.
    unsafe {
        match apart(args) {
            Some(threads) => job.apart(args, threads),
            None => job.together(args),
        }
        job.weights(args);
        job.inputs(args);
    }
    job.biases(args);
    Ok(())
}
