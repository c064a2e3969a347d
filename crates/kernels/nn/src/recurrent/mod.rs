//! Recurrent layers over whole sequences: LSTM, GRU, and plain cells of tanh or relu. The input's
//! side of all steps is one product; each step is one product of the hidden state and one fused
//! loop over the cell (`cells.rs`). Where there are sequences enough, each thread goes through all
//! steps of its own; otherwise the threads share each step.
//!
//! Sequences lie packed: the rows of a step one after another, longer sequences first, so that a
//! step's sequences are the first rows of the state. Sequences of one length are the case where all
//! steps have the same count.

mod backward;
mod cells;
mod forward;

use plimsoll_core::DType;
use plimsoll_engine::pack::Factor;
use plimsoll_engine::parallel;
use plimsoll_engine::real::Real;
use plimsoll_kernels_matmul::gemm::{Kernels, PackedRight};

pub use backward::{recurrent_backward, recurrent_backward_workspace_bytes};
pub use forward::{recurrent, recurrent_workspace_bytes};

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Long short-term memory: gates i, f, g and o, and a cell state.
    Lstm,
    /// A gated recurrent unit: gates r, z and n.
    Gru,
    /// The hyperbolic tangent of a sum.
    Tanh,
    /// The positive part of a sum.
    Relu,
}

impl Cell {
    /// Rows of the weights for each hidden element.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }

    /// Numbers for each hidden element that backward wants beside the result. A GRU's are n, r, z
    /// and the hidden side of n: in this order both sides of the products are in one piece.
    pub fn kept(self) -> usize {
        match self {
            Cell::Lstm | Cell::Gru => 4,
            Cell::Tanh | Cell::Relu => 0,
        }
    }

    /// Numbers for each hidden element of a row of gates; plain cells compute theirs in the result.
    pub fn width(self) -> usize {
        self.kept().max(1)
    }

    /// Where the input's products go: first column, first row of the weights, and how many, in
    /// units of the hidden size.
    pub fn blocks(self) -> &'static [[usize; 3]] {
        match self {
            Cell::Lstm => &[[0, 0, 4]],
            Cell::Gru => &[[0, 2, 1], [1, 0, 2]],
            Cell::Tanh | Cell::Relu => &[[0, 0, 1]],
        }
    }

    /// The first column of the hidden state's product.
    pub fn hidden_column(self) -> usize {
        usize::from(self == Cell::Gru)
    }
}

/// One step, in the order that they are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its first row.
    pub start: usize,
    /// Its rows.
    pub count: usize,
    /// The first row of the step before.
    pub before: usize,
    /// How many of its sequences were in the step before; the others start here.
    pub kept: usize,
}

/// The steps of packed sequences, of which `batch_sizes` says how many are in each.
pub fn steps(batch_sizes: &[usize], reverse: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(batch_sizes.len());
    let mut start = 0;
    for &count in batch_sizes {
        steps.push(Step { start, count, before: 0, kept: 0 });
        start += count;
    }
    if reverse {
        steps.reverse();
    }
    for index in 1..steps.len() {
        let Step { start, count, .. } = steps[index - 1];
        let step = &mut steps[index];
        (step.before, step.kept) = (start, step.count.min(count));
    }
    steps
}

/// What a layer computes in.
trait Number: Real + Factor<Sum = Self> + Kernels {}

impl<T: Real + Factor<Sum = T> + Kernels> Number for T {}

/// Sequences that make a thread's products worth it: fewer use little of each weight that they
/// read.
const SEQUENCES_OF_A_THREAD: usize = 4;
/// Sequences and steps that pay for packing the weights.
const SEQUENCES_OF_PACKED: usize = 8;
const STEPS_OF_PACKED: usize = 4;

/// How many threads go through all steps, each of its own sequences; `None` where the threads share
/// each step instead, because there are few sequences or not all of one length. Which of the two
/// does not depend on the number of threads: they add in another order.
fn apart(args: RecurrentArgs<'_>) -> Option<usize> {
    let whole = args.steps.iter().all(|step| step.count == args.batch);
    let enough =
        args.batch >= SEQUENCES_OF_PACKED && args.steps.len() >= STEPS_OF_PACKED && args.hidden > 0;
    let threads = parallel::threads().min(args.batch / SEQUENCES_OF_A_THREAD);
    (whole && enough).then_some(threads)
}

/// Bytes of hidden weights of `[k, n]`, packed for [`apart`].
fn packed_bytes(dtype: DType, args: RecurrentArgs<'_>, [k, n]: [usize; 2]) -> usize {
    match apart(args) {
        None => 0,
        Some(_) if dtype == DType::F64 => PackedRight::new::<f64>(k, n).len() * size_of::<f64>(),
        Some(_) => PackedRight::new::<f32>(k, n).len() * size_of::<f32>(),
    }
}

/// What the kernels go by.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentArgs<'a> {
    /// What a step computes.
    pub cell: Cell,
    /// Whether there are biases.
    pub biased: bool,
    /// The steps.
    pub steps: &'a [Step],
    /// Rows of all steps.
    pub rows: usize,
    /// Sequences.
    pub batch: usize,
    /// Elements of an input.
    pub inputs: usize,
    /// Elements of the state.
    pub hidden: usize,
}

impl RecurrentArgs<'_> {
    /// Elements of a row of gates.
    pub fn width(&self) -> usize {
        self.cell.width() * self.hidden
    }

    /// Rows of a weight.
    pub fn weights(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Counts of steps, without repeats that follow each other.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let changed =
            |index: &usize| *index == 0 || self.steps[*index].count != self.steps[*index - 1].count;
        (0..self.steps.len()).filter(changed).map(|index| self.steps[index].count)
    }

    /// The rows of gates with the state before them: from the result, or from the initial state.
    /// Pieces that follow each other are one.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let last = self.steps.len().saturating_sub(1);
        let ascending = self.steps.first().is_none_or(|step| step.start == 0);
        for index in 0..self.steps.len() {
            let step = self.steps[if ascending { index } else { last - index }];
            let Step { start, count, before, kept } = step;
            for span in [
                Span { initial: false, row: start, state: before, count: kept },
                Span { initial: true, row: start + kept, state: kept, count: count - kept },
            ] {
                if span.count == 0 {
                    continue;
                }
                match spans.last_mut() {
                    Some(open) if open.meets(&span) => open.count += span.count,
                    _ => spans.push(span),
                }
            }
        }
        spans
    }
}

/// Rows of gates, and the rows of states that they were computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whether the states are the initial ones, and not results.
    pub initial: bool,
    /// The first row of gates.
    pub row: usize,
    /// The first row of states.
    pub state: usize,
    /// How many.
    pub count: usize,
}

impl Span {
    fn meets(&self, next: &Span) -> bool {
        self.initial == next.initial
            && self.row + self.count == next.row
            && self.state + self.count == next.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(cell: Cell, steps: &[Step]) -> RecurrentArgs<'_> {
        let rows = steps.iter().map(|step| step.count).sum();
        RecurrentArgs { cell, biased: true, steps, rows, batch: 3, inputs: 2, hidden: 2 }
    }

    #[test]
    fn steps_follow_each_other_in_both_directions() {
        let forward = steps(&[3, 2], false);
        assert_eq!(forward[1], Step { start: 3, count: 2, before: 0, kept: 2 });
        let back = steps(&[3, 2], true);
        assert_eq!(back[0], Step { start: 3, count: 2, before: 0, kept: 0 });
        assert_eq!(back[1], Step { start: 0, count: 3, before: 3, kept: 2 });
    }

    #[test]
    fn sequences_of_one_length_are_two_spans() {
        for reverse in [false, true] {
            let all = steps(&[3; 5], reverse);
            let spans = args(Cell::Lstm, &all).spans();
            let mut counts: Vec<(bool, usize)> =
                spans.iter().map(|span| (span.initial, span.count)).collect();
            counts.sort_unstable();
            assert_eq!(counts, [(false, 12), (true, 3)]);
        }
    }

    #[test]
    fn every_row_is_in_one_span() {
        for reverse in [false, true] {
            let all = steps(&[3, 3, 2, 1, 1], reverse);
            let mut rows: Vec<usize> = args(Cell::Gru, &all)
                .spans()
                .iter()
                .flat_map(|span| span.row..span.row + span.count)
                .collect();
            rows.sort_unstable();
            assert!(rows.iter().copied().eq(0..10));
        }
    }
}
