//! Recurrent layers, a number at a time.

use super::Array;

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// Gates i, f, g and o, and a cell state.
    Lstm,
    /// Gates r, z and n.
    Gru,
    /// tanh of a sum.
    Tanh,
    /// The positive part of a sum.
    Relu,
}

/// A hidden and a cell state.
pub type State = (Vec<f64>, Vec<f64>);

/// States after each step.
pub type States = Vec<Vec<f64>>;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One direction of one layer: two weights, and two biases or none.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// What a step computes.
    pub cell: Cell,
    /// Weights of the input and of the state, and their biases.
    pub params: &'a [Array],
}

impl Layer<'_> {
    /// Row `gate * hidden + unit` of one side's product.
    fn side(&self, side: usize, gate: usize, unit: usize, hidden: usize, x: &[f64]) -> f64 {
        let row = gate * hidden + unit;
        let bias = self.params.get(2 + side).map_or(0.0, |bias| bias.at(&[row]).to_f64());
        let weight = |column: usize| self.params[side].at(&[row, column]).to_f64();
        x.iter().enumerate().map(|(column, x)| weight(column) * x).sum::<f64>() + bias
    }

    /// The states after a step: hidden, and a cell state that only LSTMs change.
    pub fn step(&self, x: &[f64], h: &[f64], c: &[f64]) -> State {
        let hidden = h.len();
        let input = |gate: usize, unit: usize| self.side(0, gate, unit, hidden, x);
        let own = |gate: usize, unit: usize| self.side(1, gate, unit, hidden, h);
        let both = |gate: usize, unit: usize| input(gate, unit) + own(gate, unit);
        let mut cells = c.to_vec();
        let next = (0..hidden).map(|unit| match self.cell {
            Cell::Lstm => {
                let kept = sigmoid(both(1, unit)) * c[unit];
                cells[unit] = kept + sigmoid(both(0, unit)) * both(2, unit).tanh();
                sigmoid(both(3, unit)) * cells[unit].tanh()
            }
            Cell::Gru => {
                let (r, z) = (sigmoid(both(0, unit)), sigmoid(both(1, unit)));
                let n = (input(2, unit) + r * own(2, unit)).tanh();
                (1.0 - z) * n + z * h[unit]
            }
            Cell::Tanh => both(0, unit).tanh(),
            Cell::Relu => both(0, unit).max(0.0),
        });
        let next: Vec<f64> = next.collect();
        (next, cells)
    }
}

/// One sequence through one direction: a state after each step, in the order of the steps, and the
/// last states.
fn direction(
    layer: Layer<'_>,
    sequence: &[Vec<f64>],
    reverse: bool,
    (h, c): State,
) -> (States, State) {
    let mut order: Vec<usize> = (0..sequence.len()).collect();
    if reverse {
        order.reverse();
    }
    let mut states = vec![Vec::new(); sequence.len()];
    let (mut h, mut c) = (h, c);
    for step in order {
        (h, c) = layer.step(&sequence[step], &h, &c);
        states[step] = h.clone();
    }
    (states, (h, c))
}

/// A whole network over sequences that may differ in length: results by sequence and step, and the
/// last states by layer and direction, then sequence.
pub fn network(
    cell: Cell,
    sequences: &[Vec<Vec<f64>>],
    initial: &[Array],
    params: &[Array],
    each: usize,
    directions: usize,
) -> (Vec<States>, Vec<Vec<State>>) {
    let places = params.len() / each;
    let hidden = initial[0].shape()[2];
    let state = |array: &Array, place: usize, sequence: usize| -> Vec<f64> {
        (0..hidden).map(|unit| array.at(&[place, sequence, unit]).to_f64()).collect()
    };
    let mut results = sequences.to_vec();
    let mut last = vec![Vec::new(); places];
    for first in (0..places).step_by(directions) {
        for (index, sequence) in results.iter_mut().enumerate() {
            let mut joined = vec![Vec::new(); sequence.len()];
            for place in first..first + directions {
                let layer = Layer { cell, params: &params[place * each..(place + 1) * each] };
                let h = state(&initial[0], place, index);
                let c = initial.get(1).map_or(h.clone(), |c| state(c, place, index));
                let (states, end) = direction(layer, sequence, place > first, (h, c));
                joined.iter_mut().zip(states).for_each(|(row, state)| row.extend(state));
                last[place].push(end);
            }
            *sequence = joined;
        }
    }
    (results, last)
}
