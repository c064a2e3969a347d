//! One call of a recurrent layer: what its operation is given, and its results as they are asked
//! for, with or without a batch or in the order that sequences had before they were packed.

use plimsoll_tensor::{Error, RecurrentOptions as Arguments, Result, Tensor};

use super::projected::Projected;
use super::weights::{RecurrentOptions, Weights};
use crate::rnn::PackedSequence;

/// What a layer is called with.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    Padded(&'a Tensor),
    Packed(&'a PackedSequence),
}

/// One call of a layer: what its operation is given.
pub(super) struct Call<'a> {
    pub(super) input: Tensor,
    /// Whether the input came without a batch.
    single: bool,
    pub(super) packed: Option<&'a PackedSequence>,
    states: Vec<Tensor>,
    weights: Vec<Tensor>,
    pub(super) arguments: Arguments,
    proj_size: i64,
    name: &'a str,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        name: &'a str,
        input: Input<'a>,
        states: Option<&[&Tensor]>,
        (weights, hidden_size, count): (&Weights, i64, usize),
        (options, training): (&RecurrentOptions, bool),
    ) -> Result<Call<'a>> {
        let (single, packed) = match input {
            Input::Padded(input) => (input.rank() == 2, None),
            Input::Packed(packed) => (false, Some(packed)),
        };
        let (input, batch) = match input {
            Input::Packed(packed) => {
                let counts = packed.counts()?;
                (packed.data.clone(), counts.first().copied().unwrap_or(0))
            }
            Input::Padded(input) if !single && input.rank() != 3 => {
                let what = format!("Expected input to be 2D or 3D, got {}D instead", input.rank());
                return Err(Error::shape(name, what));
            }
            Input::Padded(input) if single => (input.unsqueeze(1)?, 1),
            Input::Padded(input) => {
                (input.clone(), input.size(if options.batch_first { 0 } else { 1 })?)
            }
        };
        let states = match states {
            Some(given) => given_states(given, single, packed)?,
            None => first_states(&input, batch, (options, hidden_size, count))?,
        };
        let arguments = Arguments::new()
            .has_biases(options.bias)
            .num_layers(options.num_layers)
            .dropout(options.dropout)
            .train(training)
            .bidirectional(options.bidirectional)
            .batch_first(options.batch_first && !single && packed.is_none());
        let weights = weights.0.iter().map(|(_, parameter)| parameter.tensor()).collect();
        let proj_size = options.proj_size;
        Ok(Call { input, single, packed, states, weights, arguments, proj_size, name })
    }

    pub(super) fn lists(&self) -> (Vec<&Tensor>, Vec<&Tensor>) {
        (self.states.iter().collect(), self.weights.iter().collect())
    }

    /// All results without the batch, if there was none.
    pub(super) fn all(&self, result: Tensor) -> Result<Tensor> {
        if self.single { result.squeeze_with(1) } else { Ok(result) }
    }

    /// A last state without the batch if there was none, or in the order that sequences had before
    /// they were packed.
    pub(super) fn last(&self, state: Tensor) -> Result<Tensor> {
        match self.packed.and_then(|packed| packed.unsorted_indices.as_ref()) {
            Some(order) => state.index_select(1, order),
            None => self.all(state),
        }
    }

    pub(super) fn state(&self) -> Result<&Tensor> {
        self.states
            .first()
            .ok_or_else(|| Error::invalid_argument(format!("{} needs a state", self.name)))
    }

    /// An LSTM, with a projection or without.
    pub(super) fn lstm(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let (states, weights) = self.lists();
        let arguments = self.arguments.clone();
        if self.proj_size > 0 {
            return self.projected(&states);
        }
        match self.packed {
            Some(packed) => {
                self.input.lstm_packed(&packed.batch_sizes, &states, &weights, arguments)
            }
            None => self.input.lstm_with(&states, &weights, arguments),
        }
    }

    fn projected(&self, states: &[&Tensor]) -> Result<(Tensor, Tensor, Tensor)> {
        let Arguments { has_biases, num_layers, dropout, train, bidirectional, batch_first } =
            self.arguments;
        let layers = Projected {
            weights: &self.weights,
            has_biases,
            num_layers,
            directions: 1 + i64::from(bidirectional),
            dropout: if train { dropout } else { 0.0 },
        };
        if let Some(packed) = self.packed {
            return layers.packed(&self.input, &packed.counts()?, states);
        }
        if !batch_first {
            return layers.padded(&self.input, states);
        }
        let (all, hidden, cell) = layers.padded(&self.input.transpose(0, 1)?, states)?;
        Ok((all.transpose(0, 1)?, hidden, cell))
    }
}

/// States as the operation takes them: with a batch, and in the order of packed sequences.
fn given_states(
    given: &[&Tensor],
    single: bool,
    packed: Option<&PackedSequence>,
) -> Result<Vec<Tensor>> {
    let order = packed.and_then(|packed| packed.sorted_indices.as_ref());
    let state = |state: &&Tensor| match order {
        Some(order) => state.index_select(1, order),
        None if single => state.unsqueeze(1),
        None => Ok((*state).clone()),
    };
    given.iter().map(state).collect()
}

/// Zeros; hidden states may be smaller than those of cells.
fn first_states(
    input: &Tensor,
    batch: i64,
    (options, hidden_size, count): (&RecurrentOptions, i64, usize),
) -> Result<Vec<Tensor>> {
    let zeros = |size: i64| {
        let layers = options.num_layers * options.directions();
        Tensor::zeros(&[layers, batch, size], (input.dtype(), input.device()))
    };
    if options.proj_size > 0 {
        return Ok(vec![zeros(options.proj_size)?, zeros(hidden_size)?]);
    }
    Ok(vec![zeros(hidden_size)?; count])
}
