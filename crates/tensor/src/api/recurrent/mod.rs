//! Recurrent layers over whole sequences, and their single steps.

mod network;

use plimsoll_core::Result;
use plimsoll_memory::Site;

use super::composed;
use super::options::options;
use crate::Tensor;
use network::{Network, step, three, two};
use plimsoll_kernels::cpu::recurrent::Cell;

options! {
    /// How recurrent layers are put together.
    RecurrentOptions {
        /// Whether each direction of each layer has two biases after its two weights.
        has_biases: bool = true,
        /// Layers, each over the results of the one before.
        num_layers: i64 = 1,
        /// Probability that an element between two layers is zeroed in training.
        dropout: f64 = 0.0,
        /// Whether this is training.
        train: bool = false,
        /// Whether each layer also runs from the last step to the first.
        bidirectional: bool = false,
        /// Whether the batch is the first dimension, and not the steps; packed data has neither.
        batch_first: bool = false,
    }
}

options! {
    /// The biases of a single step.
    CellOptions<'a> {
        /// Of the input.
        b_ih: Option<&'a Tensor> = None,
        /// Of the state.
        b_hh: Option<&'a Tensor> = None,
    }
}

/// Declares the methods of a layer without a cell state, and of its single step.
macro_rules! layer {
    (
        $(#[$doc:meta])*
        $name:ident, $with:ident, $packed:ident => $kind:expr;
        $(#[$cell_doc:meta])*
        $cell:ident, $cell_with:ident => $cell_name:literal
    ) => {
        impl Tensor {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, hx: &Tensor, params: &[&Tensor]) -> Result<(Tensor, Tensor)> {
                self.$with(hx, params, RecurrentOptions::new())
            }

            /// The same with several layers, directions or without biases.
            #[track_caller]
            pub fn $with(
                &self,
                hx: &Tensor,
                params: &[&Tensor],
                options: RecurrentOptions,
            ) -> Result<(Tensor, Tensor)> {
                let network = Network { name: stringify!($name), cell: $kind, options };
                composed(stringify!($name), Site::caller(), || {
                    network.padded(self, &[hx], params).map(|(all, last)| two(all, last))
                })
            }

            /// The same over packed sequences: the rows of each step one after another, as many as
            /// `batch_sizes` says.
            #[track_caller]
            pub fn $packed(
                &self,
                batch_sizes: &Tensor,
                hx: &Tensor,
                params: &[&Tensor],
                options: RecurrentOptions,
            ) -> Result<(Tensor, Tensor)> {
                let network = Network { name: stringify!($name), cell: $kind, options };
                composed(stringify!($name), Site::caller(), || {
                    let sizes = network.read(batch_sizes)?;
                    network.run(self, &sizes, &[hx], params).map(|(all, last)| two(all, last))
                })
            }

            $(#[$cell_doc])*
            #[track_caller]
            pub fn $cell(&self, hx: &Tensor, w_ih: &Tensor, w_hh: &Tensor) -> Result<Tensor> {
                self.$cell_with(hx, w_ih, w_hh, CellOptions::new())
            }

            /// The same with biases.
            #[track_caller]
            pub fn $cell_with(
                &self,
                hx: &Tensor,
                w_ih: &Tensor,
                w_hh: &Tensor,
                options: CellOptions<'_>,
            ) -> Result<Tensor> {
                composed($cell_name, Site::caller(), || {
                    let mut last = step($cell_name, $kind, self, &[hx], [w_ih, w_hh], &options)?;
                    Ok(last.swap_remove(0))
                })
            }
        }
    };
}

layer! {
    /// Runs gated recurrent units over this tensor of [steps, batch, elements] from the
    /// states `hx` of [layers, batch, hidden]: all results and the last states.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 1, 2], DType::F32)?;
    /// let h = Tensor::ones(&[1, 1, 1], DType::F32)?;
    /// let (a, b) = (Tensor::zeros(&[3, 2], DType::F32)?, Tensor::zeros(&[3, 1], DType::F32)?);
    /// let options = RecurrentOptions::new().has_biases(false);
    /// let (y, last) = x.gru_with(&h, &[&a, &b], options)?;
    /// assert_eq!((y.shape(), last.to_vec::<f32>()?), ([3, 1, 1].as_slice(), vec![0.125]));
    /// # Ok::<(), Error>(())
    /// ```
    gru, gru_with, gru_packed => Cell::Gru;
    /// One step of [`Tensor::gru`] without biases, on an input of [batch, elements].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, h) = (Tensor::ones(&[2, 3], DType::F32)?, Tensor::ones(&[2, 1], DType::F32)?);
    /// let (a, b) = (Tensor::zeros(&[3, 3], DType::F32)?, Tensor::zeros(&[3, 1], DType::F32)?);
    /// assert_eq!(x.gru_cell(&h, &a, &b)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    gru_cell, gru_cell_with => "gru_cell"
}

layer! {
    /// Runs plain recurrent layers of tanh over this tensor of [steps, batch, elements] from the
    /// states `hx` of [layers, batch, hidden]: all results and the last states.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 1, 2], DType::F32)?;
    /// let h = Tensor::ones(&[1, 1, 1], DType::F32)?;
    /// let (a, b) = (Tensor::zeros(&[1, 2], DType::F32)?, Tensor::zeros(&[1, 1], DType::F32)?);
    /// let options = RecurrentOptions::new().has_biases(false);
    /// let (y, last) = x.rnn_tanh_with(&h, &[&a, &b], options)?;
    /// assert_eq!((y.shape(), last.to_vec::<f32>()?), ([3, 1, 1].as_slice(), vec![0.0]));
    /// # Ok::<(), Error>(())
    /// ```
    rnn_tanh, rnn_tanh_with, rnn_tanh_packed => Cell::Tanh;
    /// One step of [`Tensor::rnn_tanh`] without biases, on an input of [batch, elements].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, h) = (Tensor::ones(&[2, 3], DType::F32)?, Tensor::ones(&[2, 1], DType::F32)?);
    /// let (a, b) = (Tensor::zeros(&[1, 3], DType::F32)?, Tensor::zeros(&[1, 1], DType::F32)?);
    /// assert_eq!(x.rnn_tanh_cell(&h, &a, &b)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    rnn_tanh_cell, rnn_tanh_cell_with => "rnn_tanh_cell"
}

layer! {
    /// Runs plain recurrent layers of relu over this tensor of [steps, batch, elements] from the
    /// states `hx` of [layers, batch, hidden]: all results and the last states.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 1, 2], DType::F32)?;
    /// let h = Tensor::ones(&[1, 1, 1], DType::F32)?;
    /// let (a, b) = (Tensor::zeros(&[1, 2], DType::F32)?, Tensor::zeros(&[1, 1], DType::F32)?);
    /// let options = RecurrentOptions::new().has_biases(false);
    /// let (y, last) = x.rnn_relu_with(&h, &[&a, &b], options)?;
    /// assert_eq!((y.shape(), last.to_vec::<f32>()?), ([3, 1, 1].as_slice(), vec![0.0]));
    /// # Ok::<(), Error>(())
    /// ```
    rnn_relu, rnn_relu_with, rnn_relu_packed => Cell::Relu;
    /// One step of [`Tensor::rnn_relu`] without biases, on an input of [batch, elements].
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, h) = (Tensor::ones(&[2, 3], DType::F32)?, Tensor::ones(&[2, 1], DType::F32)?);
    /// let (a, b) = (Tensor::zeros(&[1, 3], DType::F32)?, Tensor::zeros(&[1, 1], DType::F32)?);
    /// assert_eq!(x.rnn_relu_cell(&h, &a, &b)?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    rnn_relu_cell, rnn_relu_cell_with => "rnn_relu_cell"
}

impl Tensor {
    /// Runs long short-term memory over this tensor of [steps, batch, elements] from the hidden and
    /// cell states `hx`, each of [layers, batch, hidden]: all results, the last hidden and the last
    /// cell states.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[3, 1, 2], DType::F32)?;
    /// let state = Tensor::ones(&[1, 1, 1], DType::F32)?;
    /// let (a, b) = (Tensor::zeros(&[4, 2], DType::F32)?, Tensor::zeros(&[4, 1], DType::F32)?);
    /// let options = RecurrentOptions::new().has_biases(false);
    /// let (y, _, cells) = x.lstm_with(&[&state, &state], &[&a, &b], options)?;
    /// assert_eq!((y.shape(), cells.to_vec::<f32>()?), ([3, 1, 1].as_slice(), vec![0.125]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lstm(&self, hx: &[&Tensor], params: &[&Tensor]) -> Result<(Tensor, Tensor, Tensor)> {
        self.lstm_with(hx, params, RecurrentOptions::new())
    }

    /// [`Tensor::lstm`] with several layers, directions or without biases.
    #[track_caller]
    pub fn lstm_with(
        &self,
        hx: &[&Tensor],
        params: &[&Tensor],
        options: RecurrentOptions,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let network = Network { name: "lstm", cell: Cell::Lstm, options };
        composed("lstm", Site::caller(), || {
            network.padded(self, hx, params).map(|(all, last)| three(all, last))
        })
    }

    /// [`Tensor::lstm`] over packed sequences: the rows of each step one after another, as many as
    /// `batch_sizes` says.
    #[track_caller]
    pub fn lstm_packed(
        &self,
        batch_sizes: &Tensor,
        hx: &[&Tensor],
        params: &[&Tensor],
        options: RecurrentOptions,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let network = Network { name: "lstm", cell: Cell::Lstm, options };
        composed("lstm", Site::caller(), || {
            let sizes = network.read(batch_sizes)?;
            network.run(self, &sizes, hx, params).map(|(all, last)| three(all, last))
        })
    }

    /// One step of [`Tensor::lstm`] without biases, on an input of [batch, elements]: the hidden
    /// and the cell state.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let (x, h) = (Tensor::ones(&[2, 3], DType::F32)?, Tensor::ones(&[2, 1], DType::F32)?);
    /// let (a, b) = (Tensor::zeros(&[4, 3], DType::F32)?, Tensor::zeros(&[4, 1], DType::F32)?);
    /// assert_eq!(x.lstm_cell(&[&h, &h], &a, &b)?.1.to_vec::<f32>()?, [0.5, 0.5]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn lstm_cell(
        &self,
        hx: &[&Tensor],
        w_ih: &Tensor,
        w_hh: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        self.lstm_cell_with(hx, w_ih, w_hh, CellOptions::new())
    }

    /// [`Tensor::lstm_cell`] with biases.
    #[track_caller]
    pub fn lstm_cell_with(
        &self,
        hx: &[&Tensor],
        w_ih: &Tensor,
        w_hh: &Tensor,
        options: CellOptions<'_>,
    ) -> Result<(Tensor, Tensor)> {
        composed("lstm_cell", Site::caller(), || {
            let mut last = step("lstm_cell", Cell::Lstm, self, hx, [w_ih, w_hh], &options)?;
            let memory = last.swap_remove(1);
            Ok((last.swap_remove(0), memory))
        })
    }
}
