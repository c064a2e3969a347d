//! Layers and directions of recurrent networks, put together from single ones.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::Site;
use smallvec::SmallVec;

use super::{CellOptions, RecurrentOptions};
use crate::Tensor;
use crate::autocast;
use crate::dispatch::Dest;
use crate::operation::Operation;
use crate::ops::recurrent::Recurrent;
use crate::prepare::apply;
use plimsoll_kernels::cpu::recurrent::{Cell, steps};

/// Last states: hidden ones, and an LSTM's cell states.
pub(super) type States = SmallVec<[Tensor; 2]>;

pub(super) fn two(all: Tensor, mut last: States) -> (Tensor, Tensor) {
    (all, last.swap_remove(0))
}

pub(super) fn three(all: Tensor, mut last: States) -> (Tensor, Tensor, Tensor) {
    let memory = last.swap_remove(1);
    (all, last.swap_remove(0), memory)
}

fn wrong<T>(name: &'static str, what: String) -> Result<T> {
    Err(Error::invalid_argument(what).in_operation(name))
}

/// One direction of one layer: the result of all steps, and the last states. There are no kernels
/// of halves: they are computed in float32, and rounded at the end.
fn direction(op: &Recurrent, inputs: &[&Tensor]) -> Result<(Tensor, States)> {
    let site = Site::in_force();
    let given = inputs.iter().copied();
    let cast = autocast::target(op.info().name, inputs[0].device().kind(), given)?;
    let is_half = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16);
    let dtype = cast.unwrap_or(inputs[0].dtype());
    let half = is_half(dtype).then_some(dtype);
    let prepared = inputs.iter().map(|input| {
        let input = match cast {
            Some(dtype) if autocast::is_eligible(input.dtype()) => {
                autocast::cast(input, dtype, site)?
            }
            _ => (*input).clone(),
        };
        let wide = if half == Some(input.dtype()) { DType::F32 } else { input.dtype() };
        input.to_dtype(wide, site)?.contiguous()
    });
    let prepared = prepared.collect::<Result<SmallVec<[Tensor; 7]>>>()?;
    let inputs: SmallVec<[&Tensor; 7]> = prepared.iter().collect();
    let mut results = autocast::as_given(|| apply(op, &inputs, Dest::New, site))?.into_iter();
    let rounded = |result: Tensor| match half {
        Some(dtype) => result.to_dtype(dtype, site),
        None => Ok(result),
    };
    let missing = || Error::invalid_argument("the layer gave too few results");
    let all = rounded(results.next().ok_or_else(missing)?)?;
    let states = if op.cell == Cell::Lstm { 2 } else { 1 };
    Ok((all, results.take(states).map(rounded).collect::<Result<_>>()?))
}

/// One step.
pub(super) fn step(
    name: &'static str,
    cell: Cell,
    x: &Tensor,
    hx: &[&Tensor],
    weights: [&Tensor; 2],
    biases: &CellOptions<'_>,
) -> Result<States> {
    check_states(name, cell, hx)?;
    if x.rank() != 2 {
        return wrong(
            name,
            format!("the input needs the shape [batch, elements], and has {:?}", x.shape()),
        );
    }
    let mut inputs: SmallVec<[&Tensor; 7]> = smallvec::smallvec![x, hx[0], weights[0], weights[1]];
    inputs.extend(hx.get(1).copied());
    match (biases.b_ih, biases.b_hh) {
        (Some(input), Some(hidden)) => inputs.extend([input, hidden]),
        (None, None) => {}
        _ => return wrong(name, "give both biases, or none".to_string()),
    }
    let steps: Arc<[_]> = steps(&[x.shape()[0]], false).into();
    let op = Recurrent { cell, biased: biases.b_ih.is_some(), steps };
    Ok(direction(&op, &inputs)?.1)
}

fn check_states(name: &'static str, cell: Cell, hx: &[&Tensor]) -> Result<()> {
    let expected = if cell == Cell::Lstm { 2 } else { 1 };
    if hx.len() != expected {
        return wrong(name, format!("it needs {expected} states, and {} were given", hx.len()));
    }
    Ok(())
}

/// Layers and directions.
pub(super) struct Network {
    pub(super) name: &'static str,
    pub(super) cell: Cell,
    pub(super) options: RecurrentOptions,
}

impl Network {
    /// Sequences in each step, by a tensor.
    pub(super) fn read(&self, batch_sizes: &Tensor) -> Result<Vec<usize>> {
        if batch_sizes.dtype() != DType::I64 || batch_sizes.rank() != 1 {
            return wrong(
                self.name,
                format!(
                    "batch_sizes must be int64 of one dimension, and is {} of shape {:?}",
                    batch_sizes.dtype(),
                    batch_sizes.shape()
                ),
            );
        }
        let given = batch_sizes.to_vec::<i64>()?;
        let falls = given.windows(2).all(|pair| pair[0] >= pair[1]);
        if !falls || given.last().is_none_or(|&last| last < 1) {
            return wrong(
                self.name,
                format!("batch_sizes must be above 0 and never rise, and are {given:?}"),
            );
        }
        Ok(given.into_iter().map(|size| size as usize).collect())
    }

    /// Sequences of one length.
    pub(super) fn padded(
        &self,
        x: &Tensor,
        hx: &[&Tensor],
        params: &[&Tensor],
    ) -> Result<(Tensor, States)> {
        let batch_first = self.options.batch_first;
        let x = if batch_first && x.rank() == 3 { &x.transpose(0, 1)? } else { x };
        let &[length, batch, width] = x.shape() else {
            return wrong(
                self.name,
                format!("the input needs three dimensions, and has the shape {:?}", x.shape()),
            );
        };
        if length == 0 {
            return wrong(self.name, "the sequences must have one or more steps".to_string());
        }
        let rows = x.reshape(&[(length * batch) as i64, width as i64])?;
        let (all, last) = self.run(&rows, &vec![batch; length], hx, params)?;
        let all = all.view([length as i64, batch as i64, all.shape()[1] as i64].as_slice())?;
        Ok((if batch_first { all.transpose(0, 1)? } else { all }, last))
    }

    /// Packed sequences.
    pub(super) fn run(
        &self,
        x: &Tensor,
        batch_sizes: &[usize],
        hx: &[&Tensor],
        params: &[&Tensor],
    ) -> Result<(Tensor, States)> {
        let RecurrentOptions { has_biases, num_layers, dropout, train, bidirectional, .. } =
            self.options;
        let directions = if bidirectional { 2 } else { 1 };
        let each = if has_biases { 4 } else { 2 };
        self.check(hx, params, directions, each)?;
        let orders: SmallVec<[Arc<[_]>; 2]> =
            (0..directions).map(|index| steps(batch_sizes, index == 1).into()).collect();
        let mut last: SmallVec<[Vec<Tensor>; 2]> = smallvec::smallvec![Vec::new(); hx.len()];
        let mut x = x.clone();
        for layer in 0..num_layers as usize {
            if layer > 0 {
                x = x.dropout(dropout, train)?;
            }
            let mut results: SmallVec<[Tensor; 2]> = SmallVec::new();
            for (index, order) in orders.iter().enumerate() {
                let at = layer * directions + index;
                let states: Result<States> =
                    hx.iter().map(|state| state.select(0, at as i64)).collect();
                let (states, own) = (states?, &params[at * each..(at + 1) * each]);
                let mut inputs: SmallVec<[&Tensor; 7]> =
                    smallvec::smallvec![&x, &states[0], own[0], own[1]];
                inputs.extend(states.get(1));
                inputs.extend(own[2..].iter().copied());
                let op = Recurrent { cell: self.cell, biased: has_biases, steps: order.clone() };
                let (all, ends) = direction(&op, &inputs)?;
                results.push(all);
                last.iter_mut().zip(ends).for_each(|(list, end)| list.push(end));
            }
            x = match results.as_slice() {
                [only] => only.clone(),
                both => Tensor::cat(&both.iter().collect::<SmallVec<[&Tensor; 2]>>(), 1)?,
            };
        }
        let stacked = |ends: &Vec<Tensor>| match ends.as_slice() {
            [only] => only.unsqueeze(0),
            ends => Tensor::stack(&ends.iter().collect::<SmallVec<[&Tensor; 4]>>(), 0),
        };
        let last: Result<States> = last.iter().map(stacked).collect();
        Ok((x, last?))
    }

    fn check(
        &self,
        hx: &[&Tensor],
        params: &[&Tensor],
        directions: usize,
        each: usize,
    ) -> Result<()> {
        let (name, layers) = (self.name, self.options.num_layers);
        check_states(name, self.cell, hx)?;
        if layers < 1 {
            return wrong(name, format!("there must be one or more layers, and not {layers}"));
        }
        let places = layers as usize * directions;
        if params.len() == places * (each + 1) && self.cell == Cell::Lstm {
            return Err(Error::unsupported(
                name,
                "projections of the hidden state are not there; multiply the results by the projection instead",
            ));
        }
        if params.len() != places * each {
            return wrong(
                name,
                format!(
                    "{layers} layers of {directions} directions need {} parameters, and {} were given",
                    places * each,
                    params.len()
                ),
            );
        }
        match hx.iter().find(|state| state.rank() != 3 || state.shape()[0] != places) {
            Some(state) => wrong(
                name,
                format!(
                    "states need the shape [{places}, batch, hidden], and one has {:?}",
                    state.shape()
                ),
            ),
            None => Ok(()),
        }
    }
}
