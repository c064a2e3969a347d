//! The matrix products of a recurrent layer, forward and backward.

use plimsoll_core::{DType, Result};
use plimsoll_cuda::Properties;
use plimsoll_kernels::cpu::recurrent::RecurrentArgs;

use super::products::{Matrix, product_bytes};

/// A layer's sizes, by which its products go. Addresses are those of the operands, 0 in a dry run.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) args: RecurrentArgs<'a>,
    pub(super) dtype: DType,
}

impl Pass<'_> {
    pub(super) fn bytes(self, elements: usize) -> usize {
        elements * self.dtype.size_bytes()
    }

    /// `sizes` of a matrix whose rows are those of the gates, from column `column` on.
    fn gates(self, gates: usize, column: usize, sizes: [usize; 2]) -> Result<Matrix> {
        let start = gates + self.bytes(column * self.args.hidden);
        Matrix::new(start, self.dtype, sizes, [self.args.width(), 1])
    }

    /// The same, turned.
    fn turned_gates(self, gates: usize, column: usize, sizes: [usize; 2]) -> Result<Matrix> {
        let start = gates + self.bytes(column * self.args.hidden);
        Matrix::new(start, self.dtype, sizes, [1, self.args.width()])
    }

    /// Forward: the input's side of a block of gates.
    pub(super) fn input_side(
        self,
        [x, weights, gates]: [usize; 3],
        [column, row, rows]: [usize; 3],
    ) -> Result<[Matrix; 3]> {
        let RecurrentArgs { inputs, hidden, rows: all, .. } = self.args;
        let weights = weights + self.bytes(row * hidden * inputs);
        Ok([
            Matrix::rows(x, self.dtype, [all, inputs])?,
            Matrix::turned(weights, self.dtype, [inputs, rows * hidden])?,
            self.gates(gates, column, [all, rows * hidden])?,
        ])
    }

    /// Forward: the hidden side of a step of `count` rows, whose gates start at `gates`.
    pub(super) fn hidden_side(
        self,
        [state, weights, gates]: [usize; 3],
        count: usize,
    ) -> Result<[Matrix; 3]> {
        let args = self.args;
        let sizes = [count, args.weights()];
        Ok([
            Matrix::rows(state, self.dtype, [count, args.hidden])?,
            Matrix::turned(weights, self.dtype, [args.hidden, args.weights()])?,
            self.gates(gates, args.cell.hidden_column(), sizes)?,
        ])
    }

    /// Backward: what goes through a step's product to the state before.
    pub(super) fn through_step(
        self,
        [slopes, weights, state]: [usize; 3],
        count: usize,
    ) -> Result<[Matrix; 3]> {
        let args = self.args;
        Ok([
            self.gates(slopes, args.cell.hidden_column(), [count, args.weights()])?,
            Matrix::rows(weights, self.dtype, [args.weights(), args.hidden])?,
            Matrix::rows(state, self.dtype, [count, args.hidden])?,
        ])
    }

    /// Backward: the gradient of a block of the input weights.
    pub(super) fn input_weights(
        self,
        [slopes, x, to]: [usize; 3],
        [column, row, rows]: [usize; 3],
    ) -> Result<[Matrix; 3]> {
        let RecurrentArgs { inputs, hidden, rows: all, .. } = self.args;
        let to = to + self.bytes(row * hidden * inputs);
        Ok([
            self.turned_gates(slopes, column, [rows * hidden, all])?,
            Matrix::rows(x, self.dtype, [all, inputs])?,
            Matrix::rows(to, self.dtype, [rows * hidden, inputs])?,
        ])
    }

    /// Backward: the gradient of the hidden weights from `count` rows of slopes and states.
    pub(super) fn hidden_weights(
        self,
        [slopes, states, to]: [usize; 3],
        count: usize,
    ) -> Result<[Matrix; 3]> {
        let args = self.args;
        Ok([
            self.turned_gates(slopes, args.cell.hidden_column(), [args.weights(), count])?,
            Matrix::rows(states, self.dtype, [count, args.hidden])?,
            Matrix::rows(to, self.dtype, [args.weights(), args.hidden])?,
        ])
    }

    /// Backward: the gradient of the inputs from a block of slopes.
    pub(super) fn inputs(
        self,
        [slopes, weights, to]: [usize; 3],
        [column, row, rows]: [usize; 3],
    ) -> Result<[Matrix; 3]> {
        let RecurrentArgs { inputs, hidden, rows: all, .. } = self.args;
        let weights = weights + self.bytes(row * hidden * inputs);
        Ok([
            self.gates(slopes, column, [all, rows * hidden])?,
            Matrix::rows(weights, self.dtype, [rows * hidden, inputs])?,
            Matrix::rows(to, self.dtype, [all, inputs])?,
        ])
    }
}

/// The most workspace that one of these products takes.
pub(super) fn most(gpu: &Properties, products: impl Iterator<Item = Result<[Matrix; 3]>>) -> usize {
    products.flatten().map(|[a, b, c]| product_bytes(gpu, [&a, &b, &c])).max().unwrap_or(0)
}
