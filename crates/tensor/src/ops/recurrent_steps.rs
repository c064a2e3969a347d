//! A recurrent layer step by step from differentiable operations: what derivatives of derivatives
//! go through. Every gate of every step exists then; the layer itself (`recurrent.rs`) keeps less.

use plimsoll_core::{Error, Result};
use smallvec::SmallVec;

use crate::Tensor;
use crate::autograd::{GradOptions, grad};
use crate::operation::{Backward, Grads};
use plimsoll_kernels::cpu::recurrent::{Cell, Step};

/// What a layer works on, in the order of its inputs.
struct Layer<'a> {
    cell: Cell,
    steps: &'a [Step],
    inputs: &'a [Tensor],
}

impl Layer<'_> {
    fn hidden(&self) -> i64 {
        self.inputs[1].shape()[1] as i64
    }

    /// `x weights^T`, and the bias `behind` the first if there are biases.
    fn product(&self, x: &Tensor, weights: usize, behind: usize) -> Result<Tensor> {
        let product = x.matmul(&self.inputs[weights].t()?)?;
        let first = 4 + usize::from(self.cell == Cell::Lstm);
        match self.inputs.get(first + behind) {
            Some(bias) => product.add(bias),
            None => Ok(product),
        }
    }

    fn gate(&self, gates: &Tensor, index: i64) -> Result<Tensor> {
        gates.narrow(1, index * self.hidden(), self.hidden())
    }

    /// The next state, and the next memory of an LSTM.
    fn step(
        &self,
        of_input: &Tensor,
        state: &Tensor,
        memory: Option<&Tensor>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let of_state = self.product(state, 3, 1)?;
        match self.cell {
            Cell::Tanh => Ok((of_input.add(&of_state)?.tanh()?, None)),
            Cell::Relu => Ok((of_input.add(&of_state)?.relu()?, None)),
            Cell::Gru => {
                let both = |index| self.gate(of_input, index)?.add(&self.gate(&of_state, index)?);
                let (reset, update) = (both(0)?.sigmoid()?, both(1)?.sigmoid()?);
                let own = reset.mul(&self.gate(&of_state, 2)?)?;
                let new = self.gate(of_input, 2)?.add(&own)?.tanh()?;
                Ok((new.add(&update.mul(&state.sub(&new)?)?)?, None))
            }
            Cell::Lstm => {
                let Some(memory) = memory else {
                    return Err(Error::autograd("lstm", "the layer was recorded without a memory"));
                };
                let gates = of_input.add(&of_state)?;
                let opened = |index| self.gate(&gates, index)?.sigmoid();
                let new = opened(0)?.mul(&self.gate(&gates, 2)?.tanh()?)?;
                let memory = opened(1)?.mul(memory)?.add(&new)?;
                Ok((opened(3)?.mul(&memory.tanh()?)?, Some(memory)))
            }
        }
    }

    /// The results of all rows, the last states, and the last memories of an LSTM.
    fn forward(&self) -> Result<SmallVec<[Tensor; 3]>> {
        let of_inputs = self.product(&self.inputs[0], 2, 0)?;
        let mut state = self.inputs[1].clone();
        let mut memory = (self.cell == Cell::Lstm).then(|| self.inputs[4].clone());
        let mut rows: Vec<(usize, Tensor)> = Vec::new();
        for step in self.steps {
            let (start, count) = (step.start as i64, step.count as i64);
            // Sequences that have not begun are still in the state that they begin with.
            let now = |x: &Tensor| x.narrow(0, 0, count);
            let before = memory.as_ref().map(now).transpose()?;
            let of_input = of_inputs.narrow(0, start, count)?;
            let (next, kept) = self.step(&of_input, &now(&state)?, before.as_ref())?;
            let others = |new: &Tensor, old: &Tensor| -> Result<Tensor> {
                let rest = old.shape()[0] as i64 - count;
                match rest {
                    0 => Ok(new.clone()),
                    _ => Tensor::cat(&[new, &old.narrow(0, count, rest)?], 0),
                }
            };
            state = others(&next, &state)?;
            memory = match (kept, memory) {
                (Some(new), Some(old)) => Some(others(&new, &old)?),
                _ => None,
            };
            rows.push((step.start, next));
        }
        rows.sort_by_key(|(start, _)| *start);
        let rows: Vec<&Tensor> = rows.iter().map(|(_, row)| row).collect();
        let all = match rows.is_empty() {
            true => of_inputs.narrow(1, 0, self.hidden())?,
            false => Tensor::cat(&rows, 0)?,
        };
        Ok([Some(all), Some(state), memory].into_iter().flatten().collect())
    }
}

/// The gradients of the layer's inputs, which can be differentiated again.
pub(super) fn gradients(
    cell: Cell,
    steps: &[Step],
    inputs: usize,
    backward: &Backward<'_>,
) -> Result<Grads> {
    // Each input at a place of its own, since one tensor may stand at several.
    let own = |index: usize| -> Result<Tensor> {
        let input = backward.input(index)?;
        let sizes: SmallVec<[i64; 2]> = input.shape().iter().map(|&size| size as i64).collect();
        if backward.needs.has(index) { input.view(&sizes[..]) } else { Ok(input.clone()) }
    };
    let points = (0..inputs).map(own).collect::<Result<Vec<Tensor>>>()?;
    let results = Layer { cell, steps, inputs: &points }.forward()?;
    let given = results.iter().zip(backward.grads.iter());
    let given = given.filter_map(|(result, grad)| grad.as_ref().map(|grad| (result, grad.clone())));
    let (outputs, grad_outputs): (Vec<&Tensor>, Vec<Tensor>) = given.unzip();
    let needed: Vec<usize> = (0..inputs).filter(|&index| backward.needs.has(index)).collect();
    let wanted: Vec<&Tensor> = needed.iter().map(|&index| &points[index]).collect();
    let options = GradOptions {
        grad_outputs: grad_outputs.into_iter().map(Some).collect(),
        create_graph: true,
        allow_unused: true,
        ..GradOptions::default()
    };
    let mut grads: Grads = smallvec::smallvec![None; inputs];
    for (index, found) in needed.iter().zip(grad(&outputs, &wanted, options)?) {
        grads[*index] = found;
    }
    Ok(grads)
}
