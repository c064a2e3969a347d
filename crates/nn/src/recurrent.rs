//! Recurrent layers over whole sequences. Their single steps: `recurrent_cell.rs`.
//!
//! Parameters have PyTorch's names, one set for each layer and direction (`weight_ih_l0`,
//! `bias_hh_l1_reverse`), which no struct could spell out: they are visited by hand.

use plimsoll_tensor::{
    Error, Parameter, RecurrentOptions as Arguments, Result, Tensor, TensorOptions,
};

use crate::call::at_caller;
use crate::options::{layer_options, number, parameter, positive};
use crate::{Forward, Hooks, Module, Name, Training, Visitor, init};

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
    }
}

/// The parameters of all layers and directions in PyTorch's order, with their names.
#[derive(Debug)]
struct Weights(Vec<(String, Parameter)>);

impl Weights {
    /// `gates` is how many of the hidden size each matrix has: 4 for an LSTM, 3 for a GRU.
    #[track_caller]
    fn new(
        layer: &str,
        gates: i64,
        [input_size, hidden_size]: [i64; 2],
        options: &RecurrentOptions,
    ) -> Result<Weights> {
        positive(layer, "hidden_size", hidden_size)?;
        positive(layer, "num_layers", options.num_layers)?;
        let directions = 1 + i64::from(options.bidirectional);
        let made: TensorOptions = options.made();
        let bound = 1.0 / (hidden_size as f64).sqrt();
        let mut found = Vec::new();
        for at in 0..options.num_layers {
            let width = if at == 0 { input_size } else { hidden_size * directions };
            for suffix in ["", "_reverse"].into_iter().take(directions as usize) {
                let sizes: [(&str, &[i64]); 4] = [
                    ("weight_ih", &[gates * hidden_size, width]),
                    ("weight_hh", &[gates * hidden_size, hidden_size]),
                    ("bias_ih", &[gates * hidden_size]),
                    ("bias_hh", &[gates * hidden_size]),
                ];
                for (name, sizes) in sizes.into_iter().take(if options.bias { 4 } else { 2 }) {
                    let parameter = parameter(sizes, made)?;
                    init::uniform_(&parameter.tensor(), -bound, bound)?;
                    found.push((format!("{name}_l{at}{suffix}"), parameter));
                }
            }
        }
        Ok(Weights(found))
    }

    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for (name, parameter) in &self.0 {
            visitor.parameter(Name::Key(name), parameter);
        }
    }
}

/// One call of a layer: what its operation is given.
struct Call<'a> {
    input: Tensor,
    /// Whether the input came without a batch.
    single: bool,
    states: Vec<Tensor>,
    weights: Vec<Tensor>,
    arguments: Arguments,
    name: &'a str,
}

impl<'a> Call<'a> {
    fn new(
        name: &'a str,
        input: &Tensor,
        states: Option<&[&Tensor]>,
        (weights, hidden_size, count): (&Weights, i64, usize),
        (options, training): (&RecurrentOptions, bool),
    ) -> Result<Call<'a>> {
        let single = input.rank() == 2;
        if !single && input.rank() != 3 {
            let what = format!("Expected input to be 2D or 3D, got {}D instead", input.rank());
            return Err(Error::shape(name, what));
        }
        let batch_dim = if single || !options.batch_first { 1 } else { 0 };
        let input = if single { input.unsqueeze(1)? } else { input.clone() };
        let batch = input.size(batch_dim)?;
        let layers = options.num_layers * (1 + i64::from(options.bidirectional));
        let states = match states {
            Some(given) => given
                .iter()
                .map(|state| if single { state.unsqueeze(1) } else { Ok((*state).clone()) })
                .collect::<Result<Vec<_>>>()?,
            None => {
                let made = (input.dtype(), input.device());
                let zeros = Tensor::zeros(&[layers, batch, hidden_size], made)?;
                vec![zeros; count]
            }
        };
        let arguments = Arguments::new()
            .has_biases(options.bias)
            .num_layers(options.num_layers)
            .dropout(options.dropout)
            .train(training)
            .bidirectional(options.bidirectional)
            .batch_first(options.batch_first && !single);
        let weights = weights.0.iter().map(|(_, parameter)| parameter.tensor()).collect();
        Ok(Call { input, single, states, weights, arguments, name })
    }

    fn lists(&self) -> (Vec<&Tensor>, Vec<&Tensor>) {
        (self.states.iter().collect(), self.weights.iter().collect())
    }

    /// Without the batch, if there was none.
    fn given_back(&self, result: Tensor) -> Result<Tensor> {
        if self.single { result.squeeze_with(1) } else { Ok(result) }
    }

    fn state(&self) -> Result<&Tensor> {
        self.states
            .first()
            .ok_or_else(|| Error::invalid_argument(format!("{} needs a state", self.name)))
    }
}

macro_rules! recurrent {
    ($(
        $(#[$doc:meta])*
        $name:ident: $gates:literal, $states:literal, $state:ty, $borrowed:ty;
        passes($given:ident) $list:expr;
        runs($this:ident, $call:ident) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin, extra_repr = $name::describe, visit = $name::visit_weights)]
            pub struct $name {
                #[module(skip)]
                weights: Weights,
                /// Elements of one step's input.
                pub input_size: i64,
                /// Elements of one state.
                pub hidden_size: i64,
                #[module(skip)]
                options: RecurrentOptions,
                /// Whether elements between layers are dropped.
                pub training: Training,
                /// Functions that see the calls.
                pub hooks: Hooks,
            }

            impl $name {
                /// PyTorch's defaults: one layer, one direction.
                #[track_caller]
                pub fn new(input_size: i64, hidden_size: i64) -> Result<$name> {
                    $name::with(input_size, hidden_size, RecurrentOptions::new())
                }

                /// With several layers, directions, or the batch first.
                #[track_caller]
                pub fn with(
                    input_size: i64,
                    hidden_size: i64,
                    options: RecurrentOptions,
                ) -> Result<$name> {
                    let _site = at_caller();
                    let weights =
                        Weights::new(stringify!($name), $gates, [input_size, hidden_size], &options)?;
                    let (training, hooks) = (Training::default(), Hooks::default());
                    Ok($name { weights, input_size, hidden_size, options, training, hooks })
                }

                fn visit_weights<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
                    self.weights.visit(visitor);
                }

                fn describe(&self) -> String {
                    describe(self.input_size, self.hidden_size, &self.options)
                }

                fn run(&self, input: &Tensor, states: Option<&[&Tensor]>) -> Result<(Tensor, $state)> {
                    let weights = (&self.weights, self.hidden_size, $states);
                    let mode = (&self.options, self.training.get());
                    let $call = Call::new(stringify!($name), input, states, weights, mode)?;
                    let $this = self;
                    $body
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = (Tensor, $state);

                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Self::Output> {
                    let _site = at_caller();
                    self.run(input, None)
                }
            }

            /// From given states.
            impl Forward<(&Tensor, $borrowed)> for $name {
                type Output = (Tensor, $state);

                #[track_caller]
                fn forward(&self, (input, $given): (&Tensor, $borrowed)) -> Result<Self::Output> {
                    let _site = at_caller();
                    self.run(input, Some(&$list))
                }
            }
        )*
    };
}

recurrent! {
    /// Plain recurrent layers: all results, and the last states of each layer and direction.
    RNN: 1, 1, Tensor, &Tensor;
    passes(state) [state];
    runs(this, call) {
        let (_, weights) = call.lists();
        let arguments = call.arguments.clone();
        let (all, last) = match this.options.nonlinearity {
            RecurrentNonlinearity::Tanh => call.input.rnn_tanh_with(call.state()?, &weights, arguments)?,
            RecurrentNonlinearity::Relu => call.input.rnn_relu_with(call.state()?, &weights, arguments)?,
        };
        Ok((call.given_back(all)?, call.given_back(last)?))
    }

    /// Gated recurrent units: all results, and the last states of each layer and direction.
    GRU: 3, 1, Tensor, &Tensor;
    passes(state) [state];
    runs(_this, call) {
        let (_, weights) = call.lists();
        let (all, last) = call.input.gru_with(call.state()?, &weights, call.arguments.clone())?;
        Ok((call.given_back(all)?, call.given_back(last)?))
    }

    /// Long short-term memory: all results, and the last hidden and cell states of each layer and
    /// direction.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, LSTM, RecurrentOptions};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let layer = LSTM::with(3, 5, RecurrentOptions::new().num_layers(2))?;
    /// let (all, (hidden, cell)) = layer.call(&Tensor::zeros(&[7, 2, 3], DType::F32)?)?;
    /// assert_eq!((all.shape(), hidden.shape()), (&[7, 2, 5][..], &[2, 2, 5][..]));
    /// layer.call((&Tensor::zeros(&[1, 2, 3], DType::F32)?, (&hidden, &cell)))?;
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    LSTM: 4, 2, (Tensor, Tensor), (&Tensor, &Tensor);
    passes(states) [states.0, states.1];
    runs(_this, call) {
        let (states, weights) = call.lists();
        let (all, hidden, cell) = call.input.lstm_with(&states, &weights, call.arguments.clone())?;
        Ok((call.given_back(all)?, (call.given_back(hidden)?, call.given_back(cell)?)))
    }
}

fn describe(input_size: i64, hidden_size: i64, options: &RecurrentOptions) -> String {
    let mut text = format!("{input_size}, {hidden_size}");
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
