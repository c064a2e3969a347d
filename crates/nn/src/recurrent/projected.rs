//! The LSTM whose hidden states are projected to a smaller size, made of smaller operations: the
//! one that runs all steps at once (`Tensor::lstm`) knows no projection. Its calls: `call.rs`.

use plimsoll_tensor::{Error, Result, Tensor};

use crate::linear::linear;

/// Layers and directions whose weights have a projection after the others.
pub(super) struct Projected<'a> {
    pub(super) weights: &'a [Tensor],
    pub(super) has_biases: bool,
    pub(super) num_layers: i64,
    pub(super) directions: i64,
    /// The probability that an element between two layers is zeroed now.
    pub(super) dropout: f64,
}

/// Results of all steps, last hidden and last cell states.
type Results = (Tensor, Tensor, Tensor);

impl Projected<'_> {
    /// Sequences of one length, [steps, batch, elements].
    pub(super) fn padded(&self, input: &Tensor, states: &[&Tensor]) -> Result<Results> {
        let [steps, batch, width] = *input.shape() else {
            let what = format!("the input needs three dimensions, and has {:?}", input.shape());
            return Err(Error::shape("LSTM", what));
        };
        let rows = input.reshape(&[(steps * batch) as i64, width as i64])?;
        let (all, hidden, cell) = self.packed(&rows, &vec![batch as i64; steps], states)?;
        let size = all.size(-1)?;
        Ok((all.view(&[steps as i64, batch as i64, size])?, hidden, cell))
    }

    /// Packed sequences: the rows of each step one after another, as many as `counts` says.
    pub(super) fn packed(
        &self,
        rows: &Tensor,
        counts: &[i64],
        states: &[&Tensor],
    ) -> Result<Results> {
        let [hidden, cell] = states else {
            let what = format!("it needs 2 states, and {} were given", states.len());
            return Err(Error::invalid_argument(what).in_operation("LSTM"));
        };
        let each = if self.has_biases { 5 } else { 3 };
        let mut rows = rows.clone();
        let (mut last_hidden, mut last_cells) = (Vec::new(), Vec::new());
        for layer in 0..self.num_layers {
            let mut results = Vec::new();
            for direction in 0..self.directions {
                let at = layer * self.directions + direction;
                let own = at as usize * each;
                let run = Direction {
                    weights: &self.weights[own..own + each],
                    has_biases: self.has_biases,
                    first: [hidden.select(0, at)?, cell.select(0, at)?],
                };
                let (all, [hidden, cell]) = if direction == 0 {
                    run.forwards(&rows, counts)?
                } else {
                    run.backwards(&rows, counts)?
                };
                results.push(all);
                last_hidden.push(hidden);
                last_cells.push(cell);
            }
            rows = joined(&results, -1)?;
            if self.dropout > 0.0 && layer + 1 < self.num_layers {
                rows = rows.dropout(self.dropout, true)?;
            }
        }
        let stacked = |states: &[Tensor]| Tensor::stack(&states.iter().collect::<Vec<_>>(), 0);
        Ok((rows, stacked(&last_hidden)?, stacked(&last_cells)?))
    }
}

fn joined(parts: &[Tensor], dim: i64) -> Result<Tensor> {
    match parts {
        [one] => Ok(one.clone()),
        many => Tensor::cat(&many.iter().collect::<Vec<_>>(), dim),
    }
}

/// One direction of one layer.
struct Direction<'a> {
    weights: &'a [Tensor],
    has_biases: bool,
    first: [Tensor; 2],
}

impl Direction<'_> {
    fn of_inputs(&self, rows: &Tensor) -> Result<Tensor> {
        linear(rows, &self.weights[0], self.has_biases.then(|| &self.weights[2]))
    }

    /// The hidden and the cell state after one step.
    fn step(&self, of_input: &Tensor, [hidden, cell]: &[Tensor; 2]) -> Result<[Tensor; 2]> {
        let bias = self.has_biases.then(|| &self.weights[3]);
        let gates = of_input.add(&linear(hidden, &self.weights[1], bias)?)?.chunk(4, -1)?;
        let [keep_in, forget, new, keep_out] = &gates[..] else {
            return Err(Error::shape("LSTM", "the weights must have rows for four gates"));
        };
        let kept = forget.sigmoid()?.mul(cell)?;
        let cell = kept.add(&keep_in.sigmoid()?.mul(&new.tanh()?)?)?;
        let wide = keep_out.sigmoid()?.mul(&cell.tanh()?)?;
        let projection = &self.weights[self.weights.len() - 1];
        Ok([linear(&wide, projection, None)?, cell])
    }

    /// From the first step on. Sequences end one after another, the last ones first.
    fn forwards(&self, rows: &Tensor, counts: &[i64]) -> Result<(Tensor, [Tensor; 2])> {
        let of_inputs = self.of_inputs(rows)?;
        let (mut state, mut all, mut at) = (self.first.clone(), Vec::new(), 0);
        let mut ended: [Vec<Tensor>; 2] = Default::default();
        for &count in counts {
            let before = state[0].size(0)?;
            if count < before {
                for (own, ended) in state.iter_mut().zip(&mut ended) {
                    ended.push(own.narrow(0, count, before - count)?);
                    *own = own.narrow(0, 0, count)?;
                }
            }
            state = self.step(&of_inputs.narrow(0, at, count)?, &state)?;
            all.push(state[0].clone());
            at += count;
        }
        let whole = |own: &Tensor, ended: &[Tensor]| {
            let parts: Vec<Tensor> =
                std::iter::once(own).chain(ended.iter().rev()).cloned().collect();
            joined(&parts, 0)
        };
        let last = [whole(&state[0], &ended[0])?, whole(&state[1], &ended[1])?];
        Ok((joined(&all, 0)?, last))
    }

    /// From the last step on. Shorter sequences join in at their ends.
    fn backwards(&self, rows: &Tensor, counts: &[i64]) -> Result<(Tensor, [Tensor; 2])> {
        let of_inputs = self.of_inputs(rows)?;
        let mut end: i64 = counts.iter().sum();
        let mut all = Vec::new();
        let part = |from: i64, count: i64| -> Result<[Tensor; 2]> {
            let [hidden, cell] = &self.first;
            Ok([hidden.narrow(0, from, count)?, cell.narrow(0, from, count)?])
        };
        let mut state = part(0, counts.last().copied().unwrap_or(0))?;
        for &count in counts.iter().rev() {
            let before = state[0].size(0)?;
            if count > before {
                let [hidden, cell] = part(before, count - before)?;
                state =
                    [Tensor::cat(&[&state[0], &hidden], 0)?, Tensor::cat(&[&state[1], &cell], 0)?];
            }
            end -= count;
            state = self.step(&of_inputs.narrow(0, end, count)?, &state)?;
            all.push(state[0].clone());
        }
        all.reverse();
        Ok((joined(&all, 0)?, state))
    }
}
