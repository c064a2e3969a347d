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

/// # Safety
/// The elements exist, and nobody writes them meanwhile.
#[inline(always)]
unsafe fn read<'a, T>(first: Shared<T>, row: usize, width: usize) -> &'a [T] {
    // SAFETY: the caller vouches for them.
    unsafe { std::slice::from_raw_parts(first.add(row * width), width) }
}

/// Elements that are computed together, a vector of any machine.
const LANES: usize = 16;

/// `to[..][at] = body(from[..][at])` for `count` elements. They pass through arrays: of so many
/// pointers the compiler does not find out that they are apart, and would compute one by one.
///
/// # Safety
/// The pointers are to `count` elements each; those of `to` are apart from each other, and each of
/// `from` is apart from them or one of them.
#[inline(always)]
unsafe fn each<R: Real, const FROM: usize, const TO: usize>(
    count: usize,
    from: [*const R; FROM],
    to: [*mut R; TO],
    body: impl Fn([R; FROM]) -> [R; TO],
) {
    let whole = count / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let mut results = [[R::ZERO; LANES]; TO];
        // SAFETY: a whole vector below `count`.
        let values = from.map(|from| unsafe { *from.add(start).cast::<[R; LANES]>() });
        for lane in 0..LANES {
            let result = body(std::array::from_fn(|index| values[index][lane]));
            for (results, result) in results.iter_mut().zip(result) {
                results[lane] = result;
            }
        }
        for (to, results) in to.into_iter().zip(results) {
            // SAFETY: as above.
            unsafe { *to.add(start).cast::<[R; LANES]>() = results };
        }
    }
    for at in whole..count {
        // SAFETY: below `count`.
        let result = body(from.map(|from| unsafe { *from.add(at) }));
        for (to, result) in to.into_iter().zip(result) {
            // SAFETY: as above.
            unsafe { *to.add(at) = result };
        }
    }
}

/// Where the `N` blocks of a row of gates start.
#[inline(always)]
fn blocks<R, const N: usize>(row: *mut R, hidden: usize) -> [*mut R; N] {
    std::array::from_fn(|block| row.wrapping_add(block * hidden))
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
        // SAFETY: the caller vouches for the rows.
        over_rows(count, self.hidden, |rows| unsafe { self.run_rows(rows) });
    }

    /// Some rows, on this thread.
    ///
    /// # Safety
    /// As [`Forward::run`], of these rows.
    pub(super) unsafe fn run_rows(self, rows: Range<usize>) {
        simd::dispatch_level(ForwardRows { step: self, rows });
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
                    add_biases(cell, hidden, line, read(input, 0, width), read(own, 0, width));
                }
                let state = row(state, index, hidden);
                match cell {
                    Cell::Lstm => {
                        let Some(memory) = memory else { return };
                        lstm::<L, R>(line, row(memory, index, hidden), state);
                        if let Some(kept) = kept {
                            row(kept, index, hidden).copy_from_slice(read(memory, index, hidden));
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
    let [i, f, g, o] = blocks(gates.as_mut_ptr(), hidden);
    let (c, h) = (memory.as_mut_ptr(), state.as_mut_ptr());
    let body = |[i, f, g, o, c]: [R; 5]| {
        let (i, f) = (sigmoid::<L, R>(i), sigmoid::<L, R>(f));
        let (g, o) = (g.tanh::<L>(), sigmoid::<L, R>(o));
        let c = f * c + i * g;
        [i, f, g, o, c, o * c.tanh::<L>()]
    };
    // SAFETY: four blocks of a row of gates and two more rows, all apart.
    unsafe { each(hidden, [i, f, g, o, c].map(<*mut R>::cast_const), [i, f, g, o, c, h], body) }
}

#[inline(always)]
fn gru<L: Level, R: Real>(gates: &mut [R], state: &mut [R]) {
    let hidden = state.len();
    let [n, r, z, own] = blocks(gates.as_mut_ptr(), hidden);
    let h = state.as_mut_ptr();
    let body = |[n, r, z, own, h]: [R; 5]| {
        let (r, z) = (sigmoid::<L, R>(r), sigmoid::<L, R>(z));
        let n = (n + r * own).tanh::<L>();
        [n, r, z, (h - n) * z + n]
    };
    // SAFETY: four blocks of a row of gates and one more row, all apart.
    unsafe { each(hidden, [n, r, z, own, h].map(<*mut R>::cast_const), [n, r, z, h], body) }
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
        // SAFETY: the caller vouches for the rows.
        over_rows(count, self.hidden, |rows| unsafe { self.run_rows(rows) });
    }

    /// Some rows, on this thread.
    ///
    /// # Safety
    /// As [`Backward::run`], of these rows.
    pub(super) unsafe fn run_rows(self, rows: Range<usize>) {
        simd::dispatch_level(BackwardRows { step: self, rows });
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
                let gates = read(step.gates, index, cell.width() * hidden);
                let slopes = row(step.slopes, index, cell.width() * hidden);
                let state = row(step.state, index, hidden);
                if let Some(grad) = step.grad {
                    for (sum, &grad) in state.iter_mut().zip(read(grad, index, hidden)) {
                        *sum = *sum + grad;
                    }
                }
                let from = if index < step.kept { step.before } else { step.initial };
                match cell {
                    Cell::Lstm => {
                        let (Some(memory), Some(after)) = (step.memory, step.after) else { return };
                        let (before, after) =
                            (read(from, index, hidden), read(after, index, hidden));
                        let memory = row(memory, index, hidden);
                        lstm_backward::<L, R>(gates, slopes, state, memory, before, after);
                    }
                    Cell::Gru => gru_backward(gates, slopes, state, read(from, index, hidden)),
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
    let [i, f, g, o] = blocks(gates.as_ptr().cast_mut(), hidden).map(<*mut R>::cast_const);
    let [to_i, to_f, to_g, to_o] = blocks(slopes.as_mut_ptr(), hidden);
    let to_c = memory.as_mut_ptr();
    let from = [i, f, g, o, state.as_ptr(), to_c.cast_const(), before.as_ptr(), after.as_ptr()];
    let body = |[i, f, g, o, state, memory, before, after]: [R; 8]| {
        let shown = after.tanh::<L>();
        let along = memory + state * o * (R::ONE - shown * shown);
        [
            along * g * i * (R::ONE - i),
            along * before * f * (R::ONE - f),
            along * i * (R::ONE - g * g),
            state * shown * o * (R::ONE - o),
            along * f,
        ]
    };
    // SAFETY: four blocks of a row of gates, four of slopes, and rows of states, all apart.
    unsafe { each(hidden, from, [to_i, to_f, to_g, to_o, to_c], body) }
}

#[inline(always)]
fn gru_backward<R: Real>(gates: &[R], slopes: &mut [R], state: &mut [R], before: &[R]) {
    let hidden = state.len();
    let [n, r, z, own] = blocks(gates.as_ptr().cast_mut(), hidden).map(<*mut R>::cast_const);
    let [to_n, to_r, to_z, to_own] = blocks(slopes.as_mut_ptr(), hidden);
    let to_h = state.as_mut_ptr();
    let from = [n, r, z, own, to_h.cast_const(), before.as_ptr()];
    let body = |[n, r, z, own, state, before]: [R; 6]| {
        let new = state * (R::ONE - z) * (R::ONE - n * n);
        [
            new,
            new * own * r * (R::ONE - r),
            state * (before - n) * z * (R::ONE - z),
            new * r,
            state * z,
        ]
    };
    // SAFETY: four blocks of a row of gates, four of slopes, and rows of states, all apart.
    unsafe { each(hidden, from, [to_n, to_r, to_z, to_own, to_h], body) }
}
