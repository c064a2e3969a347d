//! Single steps of recurrent layers.

use plimsoll_tensor::{CellOptions as CellArguments, Error, Parameter, Result, Tensor};

use crate::call::at_caller;
use crate::normalization::tensor;
use crate::options::{layer_options, parameter, positive};
use crate::recurrent::RecurrentNonlinearity;
use crate::{Forward, Hooks, Module, init};

layer_options! {
    /// How [`LSTMCell::with`], [`GRUCell::with`] and [`RNNCell::with`] are made.
    RecurrentCellOptions {
        /// Whether there are biases.
        bias: bool = true,
        /// What an [`RNNCell`] bends its sums with.
        nonlinearity: RecurrentNonlinearity = RecurrentNonlinearity::Tanh,
    }
}

macro_rules! cells {
    ($(
        $(#[$doc:meta])*
        $name:ident: $gates:literal, $states:literal, $state:ty, $borrowed:ty;
        passes($given:ident) $list:expr;
        runs($this:ident, $input:ident, $hx:ident, $arguments:ident) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Module)]
            #[module(builtin, extra_repr = $name::describe)]
            pub struct $name {
                /// Of shape [gates * hidden_size, input_size].
                pub weight_ih: Parameter,
                /// Of shape [gates * hidden_size, hidden_size].
                pub weight_hh: Parameter,
                /// Of shape [gates * hidden_size].
                pub bias_ih: Option<Parameter>,
                /// Of shape [gates * hidden_size].
                pub bias_hh: Option<Parameter>,
                /// Elements of the input.
                pub input_size: i64,
                /// Elements of the state.
                pub hidden_size: i64,
                /// What sums are bent with; it counts for an [`RNNCell`] alone.
                #[module(skip)]
                pub nonlinearity: RecurrentNonlinearity,
                /// Functions that see the calls.
                pub hooks: Hooks,
            }

            impl $name {
                /// PyTorch's defaults.
                #[track_caller]
                pub fn new(input_size: i64, hidden_size: i64) -> Result<$name> {
                    $name::with(input_size, hidden_size, RecurrentCellOptions::new())
                }

                /// Without biases, elsewhere or of another dtype.
                #[track_caller]
                pub fn with(
                    input_size: i64,
                    hidden_size: i64,
                    options: RecurrentCellOptions,
                ) -> Result<$name> {
                    let _site = at_caller();
                    positive(stringify!($name), "hidden_size", hidden_size)?;
                    let bound = 1.0 / (hidden_size as f64).sqrt();
                    let drawn = |sizes: &[i64]| {
                        let made = parameter(sizes, options.made())?;
                        init::uniform_(&made.tensor(), -bound, bound)?;
                        Ok::<_, Error>(made)
                    };
                    let rows = $gates * hidden_size;
                    Ok($name {
                        weight_ih: drawn(&[rows, input_size])?,
                        weight_hh: drawn(&[rows, hidden_size])?,
                        bias_ih: options.bias.then(|| drawn(&[rows])).transpose()?,
                        bias_hh: options.bias.then(|| drawn(&[rows])).transpose()?,
                        input_size,
                        hidden_size,
                        nonlinearity: options.nonlinearity,
                        hooks: Hooks::default(),
                    })
                }

                fn describe(&self) -> String {
                    let bias = if self.bias_ih.is_some() { "" } else { ", bias=False" };
                    format!("{}, {}{bias}", self.input_size, self.hidden_size)
                }

                fn run(&self, input: &Tensor, states: Option<&[&Tensor]>) -> Result<$state> {
                    let single = input.rank() == 1;
                    let batched = |x: &Tensor| if single { x.unsqueeze(0) } else { Ok(x.clone()) };
                    let $input = batched(input)?;
                    let states: Vec<Tensor> = match states {
                        Some(given) => given.iter().map(|x| batched(x)).collect::<Result<_>>()?,
                        None => {
                            let sizes = [$input.size(0)?, self.hidden_size];
                            let made = ($input.dtype(), $input.device());
                            vec![Tensor::zeros(&sizes, made)?; $states]
                        }
                    };
                    let $hx: Vec<&Tensor> = states.iter().collect();
                    let (b_ih, b_hh) = (tensor(&self.bias_ih), tensor(&self.bias_hh));
                    let $arguments = CellArguments { b_ih: b_ih.as_ref(), b_hh: b_hh.as_ref() };
                    let $this = self;
                    let result: Result<$state> = $body;
                    result.and_then(|state| state.without_batch(single))
                }
            }

            impl Forward<&Tensor> for $name {
                type Output = $state;

                #[track_caller]
                fn forward(&self, input: &Tensor) -> Result<Self::Output> {
                    let _site = at_caller();
                    self.run(input, None)
                }
            }

            /// From a given state.
            impl Forward<(&Tensor, $borrowed)> for $name {
                type Output = $state;

                #[track_caller]
                fn forward(&self, (input, $given): (&Tensor, $borrowed)) -> Result<Self::Output> {
                    let _site = at_caller();
                    self.run(input, Some(&$list))
                }
            }
        )*
    };
}

/// States as they were asked for: without a batch if the input had none.
trait WithoutBatch: Sized {
    fn without_batch(self, single: bool) -> Result<Self>;
}

impl WithoutBatch for Tensor {
    fn without_batch(self, single: bool) -> Result<Tensor> {
        if single { self.squeeze_with(0) } else { Ok(self) }
    }
}

impl WithoutBatch for (Tensor, Tensor) {
    fn without_batch(self, single: bool) -> Result<(Tensor, Tensor)> {
        Ok((self.0.without_batch(single)?, self.1.without_batch(single)?))
    }
}

cells! {
    /// One step of an [`RNN`](crate::RNN): the next state.
    RNNCell: 1, 1, Tensor, &Tensor;
    passes(state) [state];
    runs(this, input, hx, arguments) {
        let (w_ih, w_hh) = (this.weight_ih.tensor(), this.weight_hh.tensor());
        match this.nonlinearity {
            RecurrentNonlinearity::Tanh => input.rnn_tanh_cell_with(hx[0], &w_ih, &w_hh, arguments),
            RecurrentNonlinearity::Relu => input.rnn_relu_cell_with(hx[0], &w_ih, &w_hh, arguments),
        }
    }

    /// One step of a [`GRU`](crate::GRU): the next state.
    GRUCell: 3, 1, Tensor, &Tensor;
    passes(state) [state];
    runs(this, input, hx, arguments) {
        input.gru_cell_with(hx[0], &this.weight_ih.tensor(), &this.weight_hh.tensor(), arguments)
    }

    /// One step of an [`LSTM`](crate::LSTM): the next hidden and cell state.
    ///
    /// ```
    /// use plimsoll_nn::{Forward, LSTMCell};
    /// use plimsoll_tensor::{DType, Tensor};
    /// let cell = LSTMCell::new(3, 5)?;
    /// let (hidden, memory) = cell.call(&Tensor::zeros(&[2, 3], DType::F32)?)?;
    /// assert_eq!((hidden.shape(), memory.shape()), (&[2, 5][..], &[2, 5][..]));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    LSTMCell: 4, 2, (Tensor, Tensor), (&Tensor, &Tensor);
    passes(states) [states.0, states.1];
    runs(this, input, hx, arguments) {
        input.lstm_cell_with(&hx, &this.weight_ih.tensor(), &this.weight_hh.tensor(), arguments)
    }
}
