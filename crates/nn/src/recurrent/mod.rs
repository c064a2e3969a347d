//! Recurrent layers over whole sequences, padded or packed (`rnn.rs`). Their single steps:
//! `recurrent_cell.rs`.
//!
//! Parameters have PyTorch's names, one set for each layer and direction (`weight_ih_l0`,
//! `bias_hh_l1_reverse`), which no struct could spell out: they are visited by hand
//! (`weights.rs`). A call is put together in `call.rs`; the LSTM with projected states, which no
//! single operation computes, is in `projected.rs`.

mod call;
mod projected;
mod weights;

use plimsoll_tensor::{Result, Tensor};

use crate::call::at_caller;
use crate::rnn::PackedSequence;
use crate::{Forward, Hooks, Module, Training, Visitor};
use call::{Call, Input};
use weights::{Weights, describe};

pub use weights::{RecurrentNonlinearity, RecurrentOptions};

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

                fn run(&self, input: Input<'_>, states: Option<&[&Tensor]>) -> Result<(Tensor, $state)> {
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
                    self.run(Input::Padded(input), None)
                }
            }

            /// From given states.
            impl Forward<(&Tensor, $borrowed)> for $name {
                type Output = (Tensor, $state);

                #[track_caller]
                fn forward(&self, (input, $given): (&Tensor, $borrowed)) -> Result<Self::Output> {
                    let _site = at_caller();
                    self.run(Input::Padded(input), Some(&$list))
                }
            }

            /// Over packed sequences, whose results are packed too.
            impl Forward<&PackedSequence> for $name {
                type Output = (PackedSequence, $state);

                #[track_caller]
                fn forward(&self, input: &PackedSequence) -> Result<Self::Output> {
                    let _site = at_caller();
                    let (all, last) = self.run(Input::Packed(input), None)?;
                    Ok((input.with_data(all), last))
                }
            }

            /// Over packed sequences from given states, in the order before packing.
            impl Forward<(&PackedSequence, $borrowed)> for $name {
                type Output = (PackedSequence, $state);

                #[track_caller]
                fn forward(
                    &self,
                    (input, $given): (&PackedSequence, $borrowed),
                ) -> Result<Self::Output> {
                    let _site = at_caller();
                    let (all, last) = self.run(Input::Packed(input), Some(&$list))?;
                    Ok((input.with_data(all), last))
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
        let (x, (_, weights), state) = (&call.input, call.lists(), call.state()?);
        let arguments = call.arguments.clone();
        let sizes = call.packed.map(|packed| &packed.batch_sizes);
        let (all, last) = match (this.options.nonlinearity, sizes) {
            (RecurrentNonlinearity::Tanh, None) => x.rnn_tanh_with(state, &weights, arguments)?,
            (RecurrentNonlinearity::Relu, None) => x.rnn_relu_with(state, &weights, arguments)?,
            (RecurrentNonlinearity::Tanh, Some(sizes)) => {
                x.rnn_tanh_packed(sizes, state, &weights, arguments)?
            }
            (RecurrentNonlinearity::Relu, Some(sizes)) => {
                x.rnn_relu_packed(sizes, state, &weights, arguments)?
            }
        };
        Ok((call.all(all)?, call.last(last)?))
    }

    /// Gated recurrent units: all results, and the last states of each layer and direction.
    GRU: 3, 1, Tensor, &Tensor;
    passes(state) [state];
    runs(_this, call) {
        let (_, weights) = call.lists();
        let (x, state, arguments) = (&call.input, call.state()?, call.arguments.clone());
        let (all, last) = match call.packed {
            Some(packed) => x.gru_packed(&packed.batch_sizes, state, &weights, arguments)?,
            None => x.gru_with(state, &weights, arguments)?,
        };
        Ok((call.all(all)?, call.last(last)?))
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
    ///
    /// let small = LSTM::with(3, 5, RecurrentOptions::new().proj_size(2))?;
    /// let (all, (hidden, cell)) = small.call(&Tensor::zeros(&[7, 2, 3], DType::F32)?)?;
    /// assert_eq!(all.shape(), [7, 2, 2]);
    /// assert_eq!((hidden.shape(), cell.shape()), (&[1, 2, 2][..], &[1, 2, 5][..]));
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    LSTM: 4, 2, (Tensor, Tensor), (&Tensor, &Tensor);
    passes(states) [states.0, states.1];
    runs(_this, call) {
        let (all, hidden, cell) = call.lstm()?;
        Ok((call.all(all)?, (call.last(hidden)?, call.last(cell)?)))
    }
}
