//! Recurrent layers and their single steps.

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::{CellOptions, RecurrentOptions as Options, Tensor};

use super::input::any;
use super::{Arrays, Case, Input, Inputs};
use crate::oracle::Array;
use crate::oracle::recurrent::{Cell, Layer, State, network};

const INPUTS: usize = 3;
const HIDDEN: usize = 2;
/// Sequences in each step of packed data.
const PACKED: [i64; 3] = [3, 2, 1];

type States = Vec<Tensor>;

/// Runs a network over data that is packed or not: the results, and the last states.
fn run(
    cell: Cell,
    x: &Tensor,
    hx: &[&Tensor],
    params: &[&Tensor],
    options: Options,
    packed: Option<&Tensor>,
) -> Result<States> {
    let two = |(a, b): (Tensor, Tensor)| vec![a, b];
    let three = |(a, b, c): (Tensor, Tensor, Tensor)| vec![a, b, c];
    match (cell, packed) {
        (Cell::Lstm, None) => x.lstm_with(hx, params, options).map(three),
        (Cell::Lstm, Some(sizes)) => x.lstm_packed(sizes, hx, params, options).map(three),
        (Cell::Gru, None) => x.gru_with(hx[0], params, options).map(two),
        (Cell::Gru, Some(sizes)) => x.gru_packed(sizes, hx[0], params, options).map(two),
        (Cell::Tanh, None) => x.rnn_tanh_with(hx[0], params, options).map(two),
        (Cell::Tanh, Some(sizes)) => x.rnn_tanh_packed(sizes, hx[0], params, options).map(two),
        (Cell::Relu, None) => x.rnn_relu_with(hx[0], params, options).map(two),
        (Cell::Relu, Some(sizes)) => x.rnn_relu_packed(sizes, hx[0], params, options).map(two),
    }
}

fn gates(cell: Cell) -> usize {
    match cell {
        Cell::Lstm => 4,
        Cell::Gru => 3,
        Cell::Tanh | Cell::Relu => 1,
    }
}

fn states(cell: Cell) -> usize {
    if cell == Cell::Lstm { 2 } else { 1 }
}

/// What a row runs.
#[derive(Clone, Copy)]
struct Shape {
    cell: Cell,
    batch: usize,
    hidden: usize,
    layers: usize,
    directions: usize,
    biased: bool,
    batch_first: bool,
    packed: bool,
}

impl Shape {
    fn params(self) -> Vec<Input> {
        let (hidden, rows) = (self.hidden, gates(self.cell) * self.hidden);
        let mut all = Vec::new();
        for layer in 0..self.layers {
            for _ in 0..self.directions {
                let width = if layer == 0 { INPUTS } else { hidden * self.directions };
                all.extend([any(&[rows, width]), any(&[rows, hidden])]);
                if self.biased {
                    all.extend([any(&[rows]), any(&[rows])]);
                }
            }
        }
        all
    }

    fn each(self) -> usize {
        if self.biased { 4 } else { 2 }
    }

    fn options(self) -> Options {
        Options::new()
            .has_biases(self.biased)
            .num_layers(self.layers as i64)
            .bidirectional(self.directions == 2)
            .batch_first(self.batch_first)
    }

    /// Sequences of the input, and where each step of each lies in it.
    fn place(self, x: &Array, sequence: usize, step: usize) -> Option<Vec<usize>> {
        if !self.packed {
            let steps = x.shape()[usize::from(self.batch_first)];
            let at = if self.batch_first { vec![sequence, step] } else { vec![step, sequence] };
            return (step < steps).then_some(at);
        }
        let counts = PACKED.map(|count| count as usize);
        let inside = step < counts.len() && sequence < counts[step];
        inside.then(|| vec![counts[..step].iter().sum::<usize>() + sequence])
    }

    fn expected(self, x: &Arrays) -> Vec<Array> {
        let count = states(self.cell);
        let initial = &x.arrays[1..1 + count];
        let input = &x[0];
        let batch = initial[0].shape()[1];
        let sequences: Vec<Vec<Vec<f64>>> = (0..batch)
            .map(|sequence| {
                let places = (0..).map_while(|step| self.place(input, sequence, step));
                let row = |place: Vec<usize>| {
                    let at = |unit| input.at(&[place.as_slice(), &[unit]].concat()).to_f64();
                    (0..INPUTS).map(at).collect()
                };
                places.map(row).collect()
            })
            .collect();
        let params = &x.arrays[1 + count..];
        let (results, last) =
            network(self.cell, &sequences, initial, params, self.each(), self.directions);
        let mut shape = input.shape().to_vec();
        if let Some(width) = shape.last_mut() {
            *width = self.hidden * self.directions;
        }
        let mut all = Array::zeros(input.dtype(), &shape);
        for (sequence, steps) in results.iter().enumerate() {
            for (step, row) in steps.iter().enumerate() {
                let place = self.place(input, sequence, step).expect("the step exists");
                for (unit, &value) in row.iter().enumerate() {
                    all.set(&[place.as_slice(), &[unit]].concat(), value);
                }
            }
        }
        let state = |pick: fn(&State) -> &Vec<f64>| {
            Array::build(input.dtype(), initial[0].shape(), |i| pick(&last[i[0]][i[1]])[i[2]])
        };
        let mut outputs = vec![all, state(|(h, _)| h)];
        if count == 2 {
            outputs.push(state(|(_, c)| c));
        }
        outputs
    }

    fn run(self, t: &Inputs) -> Result<States> {
        let count = states(self.cell);
        let all: Vec<&Tensor> = t.tensors.iter().collect();
        let sizes = match self.packed {
            true => Some(Tensor::from_slice(&PACKED, &[3], Device::cpu())?),
            false => None,
        };
        let (hx, params) = (&all[1..1 + count], &all[1 + count..]);
        run(self.cell, all[0], hx, params, self.options(), sizes.as_ref())
    }

    fn case(self, name: &'static str) -> Case {
        let (batch, hidden) = (self.batch, self.hidden);
        let x = match (self.packed, self.batch_first) {
            (true, _) => any(&[6, INPUTS]),
            (false, true) => any(&[batch, 4, INPUTS]),
            (false, false) => any(&[4, batch, INPUTS]),
        };
        let count = states(self.cell);
        let places = self.layers * self.directions;
        let mut inputs = vec![x];
        inputs.extend((0..count).map(|_| any(&[places, batch, hidden])));
        inputs.extend(self.params());
        let letters: Vec<String> =
            (0..inputs.len()).map(|i| char::from(b'a' + i as u8).to_string()).collect();
        let hx = match count {
            2 => format!("({})", letters[1..3].join(", ")),
            _ => letters[1].clone(),
        };
        let python = |truth: bool| if truth { "True" } else { "False" };
        let mut more = format!(
            "{}, {}, 0.0, False, {}",
            python(self.biased),
            self.layers,
            python(self.directions == 2)
        );
        let mut first = "a".to_string();
        if self.packed {
            first = format!("a, torch.tensor({PACKED:?})");
        } else {
            more += &format!(", {}", python(self.batch_first));
        }
        let params = letters[1 + count..].join(", ");
        let torch = format!("torch.{name}({first}, {hx}, [{params}], {more})");
        let gradients: Vec<usize> = (0..inputs.len()).collect();
        let mut case = Case::new(name, torch, []);
        case.inputs = inputs;
        case.run(move |t| self.run(t))
            .oracle(move |x| self.expected(x))
            .dtypes(&[DType::F32, DType::F64])
            .taking_only_these()
            .tolerance(256.0, 8.0)
            .gradient(&gradients)
    }
}

const NETWORKS: [(&str, Cell); 4] =
    [("lstm", Cell::Lstm), ("gru", Cell::Gru), ("rnn_tanh", Cell::Tanh), ("rnn_relu", Cell::Relu)];

pub(super) fn cases() -> Vec<Case> {
    let mut rows = Vec::new();
    for (name, cell) in NETWORKS {
        let plain = Shape {
            cell,
            batch: 3,
            hidden: HIDDEN,
            layers: 1,
            directions: 1,
            biased: true,
            batch_first: false,
            packed: false,
        };
        rows.push(plain.case(name));
        rows.push(Shape { layers: 2, directions: 2, biased: false, ..plain }.case(name).brief());
        rows.push(Shape { directions: 2, packed: true, ..plain }.case(name).brief());
        rows.push(Shape { batch_first: true, ..plain }.case(name).brief());
        if matches!(cell, Cell::Lstm | Cell::Gru) {
            // Sequences enough that each thread has its own, and states longer than a vector. Plain
            // cells of that size are too badly conditioned to compare.
            rows.push(Shape { batch: 9, hidden: 18, ..plain }.case(name).brief());
        }
    }
    rows.extend(cells());
    rows
}

/// Single steps, with biases and without.
fn cells() -> Vec<Case> {
    let names = ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"];
    let mut rows = Vec::new();
    for (name, (_, cell)) in names.into_iter().zip(NETWORKS) {
        for biased in [true, false] {
            let (count, gates) = (states(cell), gates(cell) * HIDDEN);
            let mut inputs = vec![any(&[4, INPUTS])];
            inputs.extend((0..count).map(|_| any(&[4, HIDDEN])));
            inputs.extend([any(&[gates, INPUTS]), any(&[gates, HIDDEN])]);
            if biased {
                inputs.extend([any(&[gates]), any(&[gates])]);
            }
            let letters: Vec<String> =
                (0..inputs.len()).map(|i| char::from(b'a' + i as u8).to_string()).collect();
            let hx = match count {
                2 => "(b, c)".to_string(),
                _ => "b".to_string(),
            };
            let torch = format!("torch.{name}(a, {hx}, {})", letters[1 + count..].join(", "));
            let gradients: Vec<usize> = (0..inputs.len()).collect();
            let mut case = Case::new(name, torch, []);
            case.inputs = inputs;
            rows.push(
                case.run(move |t| step(cell, t, biased))
                    .oracle(move |x| stepped(cell, x))
                    .dtypes(&[DType::F32, DType::F64])
                    .taking_only_these()
                    .row_major()
                    .tolerance(256.0, 8.0)
                    .brief()
                    .gradient(&gradients),
            );
        }
    }
    rows
}

fn step(cell: Cell, t: &Inputs, biased: bool) -> Result<States> {
    let all: Vec<&Tensor> = t.tensors.iter().collect();
    let count = states(cell);
    let (x, hx, params) = (all[0], &all[1..1 + count], &all[1 + count..]);
    let mut options = CellOptions::new();
    if biased {
        options = options.b_ih(params[2]).b_hh(params[3]);
    }
    let one = |state: Tensor| vec![state];
    let (w, u) = (params[0], params[1]);
    match cell {
        Cell::Lstm => x.lstm_cell_with(hx, w, u, options).map(|(h, c)| vec![h, c]),
        Cell::Gru => x.gru_cell_with(hx[0], w, u, options).map(one),
        Cell::Tanh => x.rnn_tanh_cell_with(hx[0], w, u, options).map(one),
        Cell::Relu => x.rnn_relu_cell_with(hx[0], w, u, options).map(one),
    }
}

fn stepped(cell: Cell, x: &Arrays) -> Vec<Array> {
    let count = states(cell);
    let layer = Layer { cell, params: &x.arrays[1 + count..] };
    let row = |array: &Array, row: usize| -> Vec<f64> {
        (0..array.shape()[1]).map(|unit| array.at(&[row, unit]).to_f64()).collect()
    };
    let ends: Vec<State> = (0..x[0].shape()[0])
        .map(|index| layer.step(&row(&x[0], index), &row(&x[1], index), &row(&x[count], index)))
        .collect();
    let state = |pick: fn(&State) -> &Vec<f64>| {
        Array::build(x[0].dtype(), x[1].shape(), |i| pick(&ends[i[0]])[i[1]])
    };
    let mut outputs = vec![state(|(h, _)| h)];
    if count == 2 {
        outputs.push(state(|(_, c)| c));
    }
    outputs
}
