//! The fused loops over a step's cells, forward and backward: what comes between two products.

use std::ops::Range;

use plimsoll_engine::parallel;
use plimsoll_engine::real::Real;
use plimsoll_engine::shared::Shared;
use plimsoll_engine::simd::{self, Level, LevelKernel};

use super::Cell;

/// Elements of a state that are worth another thread.
const GRAIN: usize = 4096;

/// Runs `kernel` over the rows of a step, compiled for the machine.
fn over_rows<K: Fn(Range<usize>) + Sync>(count: usize, hidden: usize, kernel: K) {
    parallel::split(count, (GRAIN / hidden.max(1)).max(1), kernel);
}

/// # Safety
/// The elements exist, and nobody else uses them meanwhile.
#[inline(always)]
unsafe fn row<'a, T>(first: Shared<T>, row: usize, width: usize) -> &'a mut [T] {
    // SAFETY: the caller vouches for them.
    unsafe { std::slice::from_raw_parts_mut(first.add(row * width), width) }
}

/// The rows of one step, forward. Pointers are to the step's first row.
#[derive(Clone, Copy)]
pub(super) struct Forward<R> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    /// Sums of products, which become activated gates.
    pub(super) gates: Shared<R>,
    /// Of the input and of the hidden state.
    pub(super) biases: Option<[Shared<R>; 2]>,
    /// The cell state of an LSTM, before and after.
    pub(super) memory: Option<Shared<R>>,
    /// The hidden state, before and after.
    pub(super) state: Shared<R>,
    /// The hidden state as a result.
    pub(super) out: Shared<R>,
    /// The cell state, if backward wants it.
    pub(super) kept: Option<Shared<R>>,
}

impl<R: Real> Forward<R> {
    /// # Safety
    /// The pointers are to `count` rows and nobody else uses them meanwhile.
    pub(super) unsafe fn run(self, count: usize) {
        over_rows(count, self.hidden, |rows| {
            simd::dispatch_level(ForwardRows { step: self, rows });
        });
    }
}

struct ForwardRows<R> {
    step: Forward<R>,
    rows: Range<usize>,
}

#[inline(always)]
fn sigmoid<L: Level, R: Real>(x: R) -> R {
    R::ONE / (R::ONE + (-x).exp::<L>())
}

impl<R: Real> LevelKernel for ForwardRows<R> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Forward { cell, hidden, gates, biases, memory, state, out, kept } = self.step;
        for index in self.rows {
            // SAFETY: the step's own rows, each of one thread; biases are only read.
            unsafe {
                let line = row(gates, index, cell.width() * hidden);
                if let Some([input, own]) = biases {
                    let width = cell.gates() * hidden;
                    add_biases(cell, hidden, line, row(input, 0, width), row(own, 0, width));
                }
                let state = row(state, index, hidden);
                match cell {
                    Cell::Lstm => {
                        let Some(memory) = memory else { return };
                        lstm::<L, R>(line, row(memory, index, hidden), state);
                        if let Some(kept) = kept {
                            row(kept, index, hidden).copy_from_slice(row(memory, index, hidden));
                        }
                    }
                    Cell::Gru => gru::<L, R>(line, state),
                    Cell::Tanh => {
                        line.iter_mut().for_each(|x| *x = x.tanh::<L>());
                    }
                    Cell::Relu => {
                        let positive = |x: R| if x > R::ZERO || x.is_nan() { x } else { R::ZERO };
                        line.iter_mut().for_each(|x| *x = positive(*x));
                    }
                }
                // The gate of a plain cell lies in the result.
                match cell {
                    Cell::Lstm | Cell::Gru => row(out, index, hidden).copy_from_slice(state),
                    Cell::Tanh | Cell::Relu => state.copy_from_slice(line),
                }
            }
        }
    }
}

#[inline(always)]
fn add_biases<R: Real>(cell: Cell, hidden: usize, line: &mut [R], input: &[R], own: &[R]) {
    let add = |to: &mut [R], bias: &[R]| {
        for (x, &b) in to.iter_mut().zip(bias) {
            *x = *x + b;
        }
    };
    if cell != Cell::Gru {
        add(line, input);
        add(line, own);
        return;
    }
    let (n, rest) = line.split_at_mut(hidden);
    let (gates, hidden_side) = rest.split_at_mut(2 * hidden);
    add(n, &input[2 * hidden..]);
    add(gates, &input[..2 * hidden]);
    add(gates, &own[..2 * hidden]);
    add(hidden_side, &own[2 * hidden..]);
}

#[inline(always)]
fn lstm<L: Level, R: Real>(gates: &mut [R], memory: &mut [R], state: &mut [R]) {
    let hidden = state.len();
    let (i, rest) = gates.split_at_mut(hidden);
    let (f, rest) = rest.split_at_mut(hidden);
    let (g, o) = rest.split_at_mut(hidden);
    let (o, memory) = (&mut o[..hidden], &mut memory[..hidden]);
    for at in 0..hidden {
        i[at] = sigmoid::<L, R>(i[at]);
        f[at] = sigmoid::<L, R>(f[at]);
        g[at] = g[at].tanh::<L>();
        o[at] = sigmoid::<L, R>(o[at]);
        memory[at] = f[at] * memory[at] + i[at] * g[at];
        state[at] = o[at] * memory[at].tanh::<L>();
    }
}

#[inline(always)]
fn gru<L: Level, R: Real>(gates: &mut [R], state: &mut [R]) {
    let hidden = state.len();
    let (n, rest) = gates.split_at_mut(hidden);
    let (r, rest) = rest.split_at_mut(hidden);
    let (z, own) = rest.split_at_mut(hidden);
    let own = &own[..hidden];
    for at in 0..hidden {
        r[at] = sigmoid::<L, R>(r[at]);
        z[at] = sigmoid::<L, R>(z[at]);
        n[at] = (n[at] + r[at] * own[at]).tanh::<L>();
        state[at] = (state[at] - n[at]) * z[at] + n[at];
    }
}

/// The rows of one step, backward. Pointers are to the step's first row, unless they say otherwise.
#[derive(Clone, Copy)]
pub(super) struct Backward<R> {
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    /// The activated gates; of plain cells the result.
    pub(super) gates: Shared<R>,
    /// Becomes the gradient of the sums of products.
    pub(super) slopes: Shared<R>,
    /// The gradient of the result, if there is one.
    pub(super) grad: Option<Shared<R>>,
    /// The gradient of the hidden state after the step; becomes the part that goes past the
    /// products to the one before.
    pub(super) state: Shared<R>,
    /// As `state`, of an LSTM's cell state.
    pub(super) memory: Option<Shared<R>>,
    /// An LSTM's cell state after the step.
    pub(super) after: Option<Shared<R>>,
    /// What `kept` sequences had before the step: an LSTM's cell state, a GRU's hidden state. Its
    /// first row is that of the step before.
    pub(super) before: Shared<R>,
    pub(super) kept: usize,
    /// What the others had: the initial state, from row 0.
    pub(super) initial: Shared<R>,
}

impl<R: Real> Backward<R> {
    /// # Safety
    /// As [`Forward::run`].
    pub(super) unsafe fn run(self, count: usize) {
        over_rows(count, self.hidden, |rows| {
            simd::dispatch_level(BackwardRows { step: self, rows });
        });
    }
}

struct BackwardRows<R> {
    step: Backward<R>,
    rows: Range<usize>,
}

impl<R: Real> LevelKernel for BackwardRows<R> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let step = self.step;
        let (cell, hidden) = (step.cell, step.hidden);
        for index in self.rows {
            // SAFETY: the step's own rows, each of one thread; what was before is only read.
            unsafe {
                let gates = row(step.gates, index, cell.width() * hidden);
                let slopes = row(step.slopes, index, cell.width() * hidden);
                let state = row(step.state, index, hidden);
                if let Some(grad) = step.grad {
                    for (sum, &grad) in state.iter_mut().zip(row(grad, index, hidden).iter()) {
                        *sum = *sum + grad;
                    }
                }
                let from = if index < step.kept { step.before } else { step.initial };
                match cell {
                    Cell::Lstm => {
                        let (Some(memory), Some(after)) = (step.memory, step.after) else { return };
                        let (before, after) = (row(from, index, hidden), row(after, index, hidden));
                        let memory = row(memory, index, hidden);
                        lstm_backward::<L, R>(gates, slopes, state, memory, before, after);
                    }
                    Cell::Gru => gru_backward(gates, slopes, state, row(from, index, hidden)),
                    Cell::Tanh => {
                        for at in 0..hidden {
                            slopes[at] = state[at] * (R::ONE - gates[at] * gates[at]);
                        }
                    }
                    Cell::Relu => {
                        for at in 0..hidden {
                            slopes[at] = if gates[at] > R::ZERO { state[at] } else { R::ZERO };
                        }
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn lstm_backward<L: Level, R: Real>(
    gates: &[R],
    slopes: &mut [R],
    state: &[R],
    memory: &mut [R],
    before: &[R],
    after: &[R],
) {
    let hidden = state.len();
    let (i, rest) = gates.split_at(hidden);
    let (f, rest) = rest.split_at(hidden);
    let (g, o) = rest.split_at(hidden);
    let (to_i, rest) = slopes.split_at_mut(hidden);
    let (to_f, rest) = rest.split_at_mut(hidden);
    let (to_g, to_o) = rest.split_at_mut(hidden);
    let (o, to_o, memory) = (&o[..hidden], &mut to_o[..hidden], &mut memory[..hidden]);
    let (before, after) = (&before[..hidden], &after[..hidden]);
    for at in 0..hidden {
        let shown = after[at].tanh::<L>();
        to_o[at] = state[at] * shown * o[at] * (R::ONE - o[at]);
        let along = memory[at] + state[at] * o[at] * (R::ONE - shown * shown);
        to_i[at] = along * g[at] * i[at] * (R::ONE - i[at]);
        to_g[at] = along * i[at] * (R::ONE - g[at] * g[at]);
        to_f[at] = along * before[at] * f[at] * (R::ONE - f[at]);
        memory[at] = along * f[at];
    }
}

#[inline(always)]
fn gru_backward<R: Real>(gates: &[R], slopes: &mut [R], state: &mut [R], before: &[R]) {
    let hidden = state.len();
    let (n, rest) = gates.split_at(hidden);
    let (r, rest) = rest.split_at(hidden);
    let (z, own) = rest.split_at(hidden);
    let (to_n, rest) = slopes.split_at_mut(hidden);
    let (to_r, rest) = rest.split_at_mut(hidden);
    let (to_z, to_own) = rest.split_at_mut(hidden);
    let (own, to_own, before) = (&own[..hidden], &mut to_own[..hidden], &before[..hidden]);
    for at in 0..hidden {
        let new = state[at] * (R::ONE - z[at]) * (R::ONE - n[at] * n[at]);
        to_n[at] = new;
        to_own[at] = new * r[at];
        to_r[at] = new * own[at] * r[at] * (R::ONE - r[at]);
        to_z[at] = state[at] * (before[at] - n[at]) * z[at] * (R::ONE - z[at]);
        state[at] = state[at] * z[at];
    }
}
