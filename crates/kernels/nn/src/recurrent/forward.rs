//! A recurrent layer forward: one product for all inputs, then step by step.

use plimsoll_core::{DType, Result};

use plimsoll_engine::real::Real;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::{CpuLaunch, Operand, input_dtype, parallel, wrong_dtype};
use plimsoll_kernels_matmul::gemm::{GemmShape, PackedRight, Rows, Strides};

use super::{Cell, Number, RecurrentArgs, Step, apart, cells, packed_bytes};
use crate::products::{check_workspace, product, product_bytes, shape};
use crate::rows::{operand, row_major};

/// [x, state, input weights, hidden weights, memory of an LSTM, two biases if there are] ->
/// [result, last state, last memory of an LSTM], and [gates, memories of an LSTM] if backward wants
/// them; plain cells have none.
pub fn recurrent(launch: &CpuLaunch<'_>, args: RecurrentArgs<'_>) -> Result<()> {
    match input_dtype(launch)? {
        DType::F32 => forward::<f32>(launch, args),
        DType::F64 => forward::<f64>(launch, args),
        other => Err(wrong_dtype(launch.operation, other)),
    }
}

fn input_shape(dtype: DType, args: RecurrentArgs<'_>, rows: usize) -> GemmShape<'static> {
    let inputs = args.inputs;
    let strides = [
        Strides::row_major(inputs),
        Strides::column_major(inputs),
        Strides::row_major(args.width()),
    ];
    shape(dtype, [args.rows, rows * args.hidden, inputs], strides)
}

fn hidden_shape(dtype: DType, args: RecurrentArgs<'_>, count: usize) -> GemmShape<'static> {
    let hidden = args.hidden;
    let strides = [
        Strides::row_major(hidden),
        Strides::column_major(hidden),
        Strides::row_major(args.width()),
    ];
    shape(dtype, [count, args.weights(), hidden], strides)
}

/// Gates that nobody keeps.
fn gates_bytes(dtype: DType, args: RecurrentArgs<'_>, saving: bool) -> usize {
    let kept = if saving { 0 } else { args.cell.kept() };
    (args.rows * kept * args.hidden * dtype.size_bytes()).next_multiple_of(64)
}

/// Scratch of [`recurrent`].
pub fn recurrent_workspace_bytes(dtype: DType, args: RecurrentArgs<'_>, saving: bool) -> usize {
    let inputs = args.cell.blocks().iter().map(|&[_, _, rows]| input_shape(dtype, args, rows));
    let steps = args.counts().map(|count| hidden_shape(dtype, args, count));
    let steps = steps.filter(|_| apart(args).is_none());
    let products = inputs.chain(steps).map(|shape| product_bytes(&shape)).max().unwrap_or(0);
    let packed = packed_bytes(dtype, args, [args.hidden, args.weights()]);
    gates_bytes(dtype, args, saving) + products.max(packed)
}

/// The tensors of a launch.
struct Job<R> {
    x: Shared<R>,
    weights: [Shared<R>; 2],
    biases: Option<[Shared<R>; 2]>,
    out: Shared<R>,
    state: Shared<R>,
    memory: Option<Shared<R>>,
    gates: Shared<R>,
    kept: Option<Shared<R>>,
    workspace: Shared<u8>,
}

impl<R: Real> Job<R> {
    /// Finds the operands, and puts the initial states where the running ones are.
    fn new(launch: &CpuLaunch<'_>, args: RecurrentArgs<'_>) -> Result<Job<R>> {
        let input = |at| row_major::<R>(launch, &operand(launch, launch.inputs, at)?);
        let output = |at| row_major::<R>(launch, &operand(launch, launch.outputs, at)?);
        let lstm = args.cell == Cell::Lstm;
        let first_bias = if lstm { 5 } else { 4 };
        let biases =
            if args.biased { Some([input(first_bias)?, input(first_bias + 1)?]) } else { None };
        let results = if lstm { 3 } else { 2 };
        let saving = launch.outputs.len() > results;
        check_workspace(launch, recurrent_workspace_bytes(R::DTYPE, args, saving))?;
        let start = launch.workspace.pointer();
        let (out, state) = (output(0)?, output(1)?);
        let gates = match args.cell {
            Cell::Tanh | Cell::Relu => out,
            _ if saving => output(results)?,
            _ => Shared(start.cast()),
        };
        let memory = if lstm { Some(output(2)?) } else { None };
        let whole = |operand: &Operand<'_>| operand.layout().numel();
        let initial = operand(launch, launch.inputs, 1)?;
        // SAFETY: both are row-major, of one shape, and apart.
        unsafe { std::ptr::copy_nonoverlapping(input(1)?.0, state.0, whole(&initial)) };
        if let Some(memory) = memory {
            // SAFETY: as above.
            unsafe { std::ptr::copy_nonoverlapping(input(4)?.0, memory.0, whole(&initial)) };
        }
        Ok(Job {
            x: input(0)?,
            weights: [input(2)?, input(3)?],
            biases,
            out,
            state,
            memory,
            gates,
            kept: if lstm && saving { Some(output(4)?) } else { None },
            workspace: Shared(start.wrapping_add(gates_bytes(R::DTYPE, args, saving))),
        })
    }

    /// The input's side of all steps, and zeros where a GRU's hidden side of n is added up.
    ///
    /// # Safety
    /// The operands are as `args` says.
    unsafe fn inputs(&self, args: RecurrentArgs<'_>) {
        let (hidden, width) = (args.hidden, args.width());
        for &[column, row, rows] in args.cell.blocks() {
            // SAFETY: columns of the gates and rows of the weights.
            unsafe {
                let weights = self.weights[0].add(row * hidden * args.inputs);
                let to = self.gates.add(column * hidden);
                let shape = input_shape(R::DTYPE, args, rows);
                product(shape, self.x.0, weights, to, 0.0, self.workspace.0);
            }
        }
        if args.cell == Cell::Gru {
            for row in 0..args.rows {
                // SAFETY: the last columns of a row.
                let own = unsafe { self.gates.add(row * width + 3 * hidden) };
                // SAFETY: as many as a state has.
                unsafe { std::slice::from_raw_parts_mut(own, hidden) }.fill(R::ZERO);
            }
        }
    }

    /// What comes after a step's product.
    ///
    /// # Safety
    /// As [`Job::inputs`].
    unsafe fn cells(&self, args: RecurrentArgs<'_>, step: Step) -> cells::Forward<R> {
        let (hidden, start) = (args.hidden, step.start);
        // SAFETY: the step's rows.
        unsafe {
            cells::Forward {
                cell: args.cell,
                hidden,
                gates: Shared(self.gates.add(start * args.width())),
                biases: self.biases,
                memory: self.memory,
                state: self.state,
                out: Shared(self.out.add(start * hidden)),
                kept: self.kept.map(|kept| Shared(kept.add(start * hidden))),
            }
        }
    }

    /// Where the product of a step's first row goes.
    ///
    /// # Safety
    /// As [`Job::inputs`].
    unsafe fn sums(&self, args: RecurrentArgs<'_>, step: Step) -> *mut R {
        // SAFETY: a column of the step's first row.
        unsafe {
            self.gates.add(step.start * args.width() + args.cell.hidden_column() * args.hidden)
        }
    }

    /// All threads at each step.
    ///
    /// # Safety
    /// As [`Job::inputs`].
    unsafe fn together(&self, args: RecurrentArgs<'_>) {
        for &step in args.steps {
            // SAFETY: the step's rows of the gates, and the first rows of the states.
            unsafe {
                let shape = hidden_shape(R::DTYPE, args, step.count);
                let (to, weights) = (self.sums(args, step), self.weights[1].0);
                product(shape, self.state.0, weights, to, 1.0, self.workspace.0);
                self.cells(args, step).run(step.count);
            }
        }
    }
}

impl<R: Number> Job<R> {
    /// Each thread all steps of its own sequences.
    ///
    /// # Safety
    /// As [`Job::inputs`]; all steps have all sequences.
    unsafe fn apart(&self, args: RecurrentArgs<'_>, threads: usize) {
        let hidden = args.hidden;
        let right = PackedRight::new::<R>(hidden, args.weights());
        let packed = Shared(self.workspace.0.cast::<R>());
        // SAFETY: the workspace is large enough, and free after the inputs' products.
        unsafe { right.pack(self.weights[1].0, Strides::column_major(hidden), packed.0) };
        parallel::fork(threads, |thread| {
            let own = parallel::part_range(args.batch, threads, thread);
            for &step in args.steps {
                // SAFETY: rows of this thread alone.
                unsafe {
                    let rows = Rows {
                        count: own.len(),
                        a: self.state.add(own.start * hidden).cast_const(),
                        a_row: hidden,
                        c: self.sums(args, step).add(own.start * args.width()),
                        c_row: args.width(),
                    };
                    right.multiply(rows, packed.add(0).cast_const(), R::of(1.0));
                    self.cells(args, step).run_rows(own.clone());
                }
            }
        });
    }
}

fn forward<R: Number>(launch: &CpuLaunch<'_>, args: RecurrentArgs<'_>) -> Result<()> {
    let job = Job::<R>::new(launch, args)?;
    // SAFETY: the shape rule made the outputs as `args` says, and checked the inputs.
    unsafe {
        job.inputs(args);
        match apart(args) {
            Some(threads) => job.apart(args, threads),
            None => job.together(args),
        }
    }
    Ok(())
}
