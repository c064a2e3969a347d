//! How recurrent layers are made: their options, and the parameters of all layers and directions.

use plimsoll_tensor::{Error, Parameter, Result, TensorOptions};

use crate::options::{layer_options, number, parameter, positive};
use crate::{Name, Visitor, init};

/// What a plain recurrent layer bends its sums with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecurrentNonlinearity {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// `max(0, x)`.
    Relu,
}

layer_options! {
    /// How [`LSTM::with`], [`GRU::with`] and [`RNN::with`] are made.
    RecurrentOptions {
        /// Layers, each over the results of the one before.
        num_layers: i64 = 1,
        /// Whether there are biases.
        bias: bool = true,
        /// Whether the batch is the first dimension, and not the steps.
        batch_first: bool = false,
        /// Probability that an element between two layers is zeroed in training.
        dropout: f64 = 0.0,
        /// Whether each layer also runs from the last step to the first.
        bidirectional: bool = false,
        /// What an [`RNN`] bends its sums with.
        nonlinearity: RecurrentNonlinearity = RecurrentNonlinearity::Tanh,
        /// The size that an [`LSTM`] projects its hidden states to; 0 means that it does not.
        proj_size: i64 = 0,
    }
}

impl RecurrentOptions {
    pub(super) fn directions(&self) -> i64 {
        1 + i64::from(self.bidirectional)
    }

    /// Elements of a hidden state.
    fn state_size(&self, hidden_size: i64) -> i64 {
        if self.proj_size > 0 { self.proj_size } else { hidden_size }
    }

    fn check(&self, layer: &str, gates: i64, hidden_size: i64) -> Result<()> {
        positive(layer, "hidden_size", hidden_size)?;
        positive(layer, "num_layers", self.num_layers)?;
        let wrong = |what: &str| Err(Error::invalid_argument(what).in_operation(layer));
        match self.proj_size {
            0 => Ok(()),
            _ if gates != 4 => {
                wrong("proj_size argument is only supported for LSTM, not RNN or GRU")
            }
            ..0 => wrong("proj_size should be a positive integer or zero to disable projections"),
            size if size >= hidden_size => wrong("proj_size has to be smaller than hidden_size"),
            _ => Ok(()),
        }
    }
}

/// The parameters of all layers and directions in PyTorch's order, with their names.
#[derive(Debug)]
pub(super) struct Weights(pub(super) Vec<(String, Parameter)>);

impl Weights {
    /// `gates` is how many of the hidden size each matrix has: 4 for an LSTM, 3 for a GRU.
    #[track_caller]
    pub(super) fn new(
        layer: &str,
        gates: i64,
        [input_size, hidden_size]: [i64; 2],
        options: &RecurrentOptions,
    ) -> Result<Weights> {
        options.check(layer, gates, hidden_size)?;
        let directions = options.directions();
        let state = options.state_size(hidden_size);
        let made: TensorOptions = options.made();
        let bound = 1.0 / (hidden_size as f64).sqrt();
        let mut found = Vec::new();
        for at in 0..options.num_layers {
            let width = if at == 0 { input_size } else { state * directions };
            for suffix in ["", "_reverse"].into_iter().take(directions as usize) {
                let rows = gates * hidden_size;
                let sizes: [(&str, &[i64], bool); 5] = [
                    ("weight_ih", &[rows, width], true),
                    ("weight_hh", &[rows, state], true),
                    ("bias_ih", &[rows], options.bias),
                    ("bias_hh", &[rows], options.bias),
                    ("weight_hr", &[state, hidden_size], options.proj_size > 0),
                ];
                for (name, sizes, _) in sizes.into_iter().filter(|(.., is_there)| *is_there) {
                    let parameter = parameter(sizes, made)?;
                    init::uniform_(&parameter.tensor(), -bound, bound)?;
                    found.push((format!("{name}_l{at}{suffix}"), parameter));
                }
            }
        }
        Ok(Weights(found))
    }

    pub(super) fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for (name, parameter) in &self.0 {
            visitor.parameter(Name::Key(name), parameter);
        }
    }
}

pub(super) fn describe(input_size: i64, hidden_size: i64, options: &RecurrentOptions) -> String {
    let mut text = format!("{input_size}, {hidden_size}");
    if options.proj_size != 0 {
        text += &format!(", proj_size={}", options.proj_size);
    }
    if options.num_layers != 1 {
        text += &format!(", num_layers={}", options.num_layers);
    }
    if !options.bias {
        text += ", bias=False";
    }
    if options.batch_first {
        text += ", batch_first=True";
    }
    if options.dropout != 0.0 {
        text += &format!(", dropout={}", number(options.dropout));
    }
    if options.bidirectional {
        text += ", bidirectional=True";
    }
    text
}
