//! One direction of one recurrent layer over packed sequences. For backward it keeps states and
//! activated gates, and nothing of the products. The methods of `api/recurrent.rs` put layers and
//! directions together.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::recurrent_steps;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply;
use plimsoll_kernels::cpu::recurrent::{self as cpu, Cell, RecurrentArgs, Step};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs [x of all steps, state, input weights, hidden weights, memory of an LSTM, two biases if
/// `biased`]. Outputs [result of all steps, last state, last memory of an LSTM], and [gates,
/// memories of an LSTM] if backward will want them.
#[derive(Clone, Debug)]
pub(crate) struct Recurrent {
    pub(crate) cell: Cell,
    pub(crate) biased: bool,
    pub(crate) steps: Arc<[Step]>,
}

impl Recurrent {
    fn has_memory(&self) -> bool {
        self.cell == Cell::Lstm
    }

    /// Inputs that are there.
    fn inputs(&self) -> usize {
        4 + usize::from(self.has_memory()) + 2 * usize::from(self.biased)
    }

    /// Results that users see.
    fn results(&self) -> usize {
        2 + usize::from(self.has_memory())
    }

    /// Sizes by the shapes of x and of the state.
    fn args(&self, x: &[usize], state: &[usize]) -> RecurrentArgs<'_> {
        RecurrentArgs {
            cell: self.cell,
            biased: self.biased,
            steps: &self.steps,
            rows: x[0],
            batch: state[0],
            inputs: x[1],
            hidden: state[1],
        }
    }

    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let name = self.info().name;
        let (x, state) = (inputs[0].shape(), inputs[1].shape());
        let (&[rows, width], &[batch, hidden]) = (x, state) else {
            return Err(Error::shape(
                name,
                format!(
                    "a step's input and state need two dimensions, and have the shapes {x:?} and {state:?}"
                ),
            ));
        };
        let taken: usize = self.steps.iter().map(|step| step.count).sum();
        let most = self.steps.iter().map(|step| step.count).max().unwrap_or(0);
        if taken != rows || most != batch {
            return Err(Error::shape(
                name,
                format!(
                    "the state has {batch} sequences and the input {rows} rows, but the steps have {most} sequences \
                     and {taken} rows"
                ),
            ));
        }
        let gates = self.cell.gates() * hidden;
        let mut expected: SmallVec<[(&str, Dims); 5]> = smallvec::smallvec![
            ("weights of the input", smallvec::smallvec![gates, width]),
            ("weights of the state", smallvec::smallvec![gates, hidden]),
        ];
        if self.has_memory() {
            expected.push(("cell state", state.into()));
        }
        if self.biased {
            expected.push(("bias of the input", smallvec::smallvec![gates]));
            expected.push(("bias of the state", smallvec::smallvec![gates]));
        }
        for (input, (what, shape)) in inputs[2..].iter().zip(&expected) {
            if input.shape() != shape.as_slice() {
                return Err(Error::shape(
                    name,
                    format!(
                        "an input of {width} and a state of {hidden} elements need a {what} of shape {:?}, and it \
                         has {:?}",
                        shape.as_slice(),
                        input.shape()
                    ),
                ));
            }
        }
        self.check_dtypes(inputs)
    }

    fn check_dtypes(&self, inputs: &[&Meta]) -> Result<()> {
        let (name, dtype) = (self.info().name, inputs[0].dtype);
        if !matches!(dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(
                name,
                format!("inputs must be float32 or float64, and are {dtype}; convert with `to`"),
            ));
        }
        match inputs.iter().find(|input| input.dtype != dtype) {
            Some(other) => Err(Error::dtype(
                name,
                format!(
                    "the input is {dtype}, and a state or a weight {}; convert one with `to`",
                    other.dtype
                ),
            )),
            None => Ok(()),
        }
    }
}

impl Operation for Recurrent {
    fn info(&self) -> &'static OpInfo {
        match self.cell {
            Cell::Lstm => &LSTM,
            Cell::Gru => &GRU,
            Cell::Tanh => &RNN_TANH,
            Cell::Relu => &RNN_RELU,
        }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let (dtype, state) = (inputs[0].dtype, inputs[1].shape());
        let (rows, hidden) = (inputs[0].shape()[0], state[1]);
        let all = Meta::contiguous(&[rows, hidden], dtype)?;
        let last = Meta::contiguous(state, dtype)?;
        let mut metas: Metas = smallvec::smallvec![all.clone(), last.clone()];
        if self.has_memory() {
            metas.push(last);
        }
        if needs.any() && self.cell.kept() > 0 {
            metas.push(Meta::contiguous(&[rows, self.cell.kept() * hidden], dtype)?);
            if self.has_memory() {
                metas.push(all);
            }
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        // Weights and biases too, for derivatives of derivatives.
        let inputs = (0..self.inputs()).map(Saves::input);
        let outputs = [self.results(), self.results() + 1].map(Saves::output);
        let saves = inputs.fold(Saves::output(0), Saves::and);
        saves.and(outputs[0].when(self.cell.kept() > 0)).and(outputs[1].when(self.has_memory()))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let args = self.args(inputs[0].shape(), inputs[1].shape());
        cpu::recurrent_workspace_bytes(inputs[0].dtype, args, outputs.len() > self.results())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let (x, state) = (launch.inputs[0].shape(), launch.inputs[1].shape());
        cpu::recurrent(launch, self.args(x, state))
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        let args = self.args(inputs[0].shape(), inputs[1].shape());
        let saving = outputs.len() > self.results();
        cuda::recurrent_workspace_bytes(gpu, inputs[0].dtype, args, saving)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let (x, state) = (launch.inputs[0].shape(), launch.inputs[1].shape());
        cuda::recurrent(launch, self.args(x, state))
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        if is_grad_enabled() {
            return recurrent_steps::gradients(self.cell, &self.steps, self.inputs(), backward);
        }
        let mut given: SmallVec<[Tensor; 3]> = SmallVec::new();
        let mut is_given = [false; 3];
        for (index, grad) in backward.grads.iter().take(self.results()).enumerate() {
            if let Some(grad) = grad {
                is_given[index] = true;
                given.push(grad.contiguous()?);
            }
        }
        let mut inputs: SmallVec<[&Tensor; 11]> = SmallVec::new();
        for index in 0..4 {
            inputs.push(backward.input(index)?);
        }
        inputs.push(backward.output(0)?);
        if self.has_memory() {
            inputs.push(backward.input(4)?);
        }
        if self.cell.kept() > 0 {
            inputs.push(backward.output(self.results())?);
        }
        if self.has_memory() {
            inputs.push(backward.output(self.results() + 1)?);
        }
        inputs.extend(&given);
        let op = RecurrentBackward {
            of: self.clone(),
            given: is_given,
            to_input: backward.needs.has(0),
        };
        let mut results = apply(&op, &inputs, Dest::New, Site::in_force())?.into_iter();
        let mut grads: Grads = smallvec::smallvec![None];
        for index in 1..self.inputs() {
            grads.push(results.next().filter(|_| backward.needs.has(index)));
        }
        grads[0] = results.next();
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// The gradients of everything, from what forward kept: [state, input weights, hidden weights,
/// memory of an LSTM, two biases if there are, x if `to_input`]. For backward passes that nobody
/// differentiates again.
#[derive(Clone, Debug)]
struct RecurrentBackward {
    of: Recurrent,
    /// Which gradients there are: of the result, of the last state, of the last memory.
    given: [bool; 3],
    to_input: bool,
}

impl Operation for RecurrentBackward {
    fn info(&self) -> &'static OpInfo {
        &RECURRENT_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let dtype = inputs[0].dtype;
        let like = |index: usize| Meta::contiguous(inputs[index].shape(), dtype);
        let mut metas: Metas = smallvec::smallvec![like(1)?, like(2)?, like(3)?];
        if self.of.has_memory() {
            metas.push(like(1)?);
        }
        if self.of.biased {
            let bias = Meta::contiguous(&inputs[2].shape()[..1], dtype)?;
            metas.extend([bias.clone(), bias]);
        }
        if self.to_input {
            metas.push(like(0)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let args = self.of.args(inputs[0].shape(), inputs[1].shape());
        cpu::recurrent_backward_workspace_bytes(inputs[0].dtype, args)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let (x, state) = (launch.inputs[0].shape(), launch.inputs[1].shape());
        cpu::recurrent_backward(launch, self.of.args(x, state), self.given)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let args = self.of.args(inputs[0].shape(), inputs[1].shape());
        cuda::recurrent_backward_workspace_bytes(gpu, inputs[0].dtype, args)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let (x, state) = (launch.inputs[0].shape(), launch.inputs[1].shape());
        cuda::recurrent_backward(launch, self.of.args(x, state), self.given)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "recurrent",
        signatures,
        differentiable: true,
        dtypes: DTypes::of(&[DType::F32, DType::F64]),
        cuda: OnCuda::Kernels(&source_files::RECURRENT),
        ..OpInfo::BARE
    }
}

static LSTM: OpInfo = info(
    "lstm",
    &[
        "lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
        "lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
    ],
);
static GRU: OpInfo = info(
    "gru",
    &[
        "gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "gru(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    ],
);
static RNN_TANH: OpInfo = info(
    "rnn_tanh",
    &[
        "rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "rnn_tanh(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    ],
);
static RNN_RELU: OpInfo = info(
    "rnn_relu",
    &[
        "rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
        "rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    ],
);
static LSTM_CELL: OpInfo = info(
    "lstm_cell",
    &[
        "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
    ],
);
static GRU_CELL: OpInfo = info(
    "gru_cell",
    &[
        "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ],
);
static RNN_TANH_CELL: OpInfo = info(
    "rnn_tanh_cell",
    &[
        "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ],
);
static RNN_RELU_CELL: OpInfo = info(
    "rnn_relu_cell",
    &[
        "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    ],
);
/// Internal: reached only through the derivative. It stands in the graph, so that who
/// differentiates it hears that it has no derivative.
static RECURRENT_BACKWARD: OpInfo =
    OpInfo { differentiable: false, ..info("recurrent_backward", &[]) };

pub(crate) static OPS: &[&OpInfo] =
    &[&LSTM, &GRU, &RNN_TANH, &RNN_RELU, &LSTM_CELL, &GRU_CELL, &RNN_TANH_CELL, &RNN_RELU_CELL];
