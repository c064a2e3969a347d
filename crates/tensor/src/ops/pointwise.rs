//! Elementwise operations of up to three inputs with host numbers beside them, which are no
//! operands: what their rows are made of. Rows are in `activation.rs`, `ternary.rs` and `special/`.
//! Functions of one input without numbers are in `unary/`, those of two in `binary/`.

use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

use super::elementwise;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Backward, DTypes, Grads, Inferred, Input, Needs, OpInfo, Operation, Out, Promotion, Saves,
};
use crate::prepare::{apply, apply_one};

/// The host numbers of an operation, in the order of its signature.
pub(crate) type Numbers = [f64; 3];

/// No host numbers.
pub(crate) const NONE: Numbers = [0.0; 3];

/// One operation.
#[derive(Debug)]
pub(crate) struct PointwiseRow {
    pub(crate) info: OpInfo,
    /// What the derivative by each input reads.
    pub(crate) saves: [Saves; 3],
    pub(crate) cpu: fn(&CpuLaunch<'_>, Numbers) -> Result<()>,
    /// The gradient of each input, in the result's shape.
    pub(crate) derivatives: [fn(&Slopes<'_>) -> Result<Tensor>; 3],
}

impl PointwiseRow {
    /// What rows leave out: nothing is saved, and there is no derivative.
    pub(crate) const BARE: PointwiseRow = PointwiseRow {
        info: OpInfo::BARE,
        saves: [Saves::NOTHING; 3],
        cpu: |launch, _| Err(Error::unsupported(launch.operation, "its row names no kernel")),
        derivatives: [no_derivative; 3],
    };
}

/// The derivative of what has none.
pub(crate) fn no_derivative(slopes: &Slopes<'_>) -> Result<Tensor> {
    Err(Error::autograd(slopes.backward.operation, "there is no derivative by this operand"))
}

/// What derivatives work from.
pub(crate) struct Slopes<'a> {
    pub(crate) backward: &'a Backward<'a>,
    pub(crate) grad: &'a Tensor,
    pub(crate) numbers: Numbers,
}

impl<'a> Slopes<'a> {
    /// Input `index`, which the row's `saves` name.
    pub(crate) fn input(&self, index: usize) -> Result<&'a Tensor> {
        self.backward.input(index)
    }
}

/// A row as an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointwise {
    pub(crate) row: &'static PointwiseRow,
    pub(crate) numbers: Numbers,
}

impl Operation for Pointwise {
    fn info(&self) -> &'static OpInfo {
        &self.row.info
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        elementwise::infer(self.row.info.name, inputs, inputs[0].dtype)
    }

    fn saves(&self, needs: Needs) -> Saves {
        let read = self.row.saves.iter().enumerate().filter(|(index, _)| needs.has(*index));
        read.fold(Saves::NOTHING, |all, (_, saves)| all.and(*saves))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        (self.row.cpu)(launch, self.numbers)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::tail(launch, &self.row.info, None, self.numbers)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let slopes = Slopes { backward, grad: backward.grad()?, numbers: self.numbers };
        (0..backward.inputs.len())
            .map(|index| {
                backward.for_input(index, || {
                    let gradient = self.row.derivatives[index](&slopes)?;
                    gradient.sum_to(backward.inputs[index].shape())
                })
            })
            .collect()
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Runs the operation of `row`.
pub(crate) fn new(
    row: &'static PointwiseRow,
    inputs: &[&Tensor],
    numbers: Numbers,
    site: Site,
) -> Result<Tensor> {
    apply_one(&Pointwise { row, numbers }, inputs, site)
}

/// Runs the operation of `row` over its first input.
pub(crate) fn in_place(
    row: &'static PointwiseRow,
    inputs: &[&Tensor],
    numbers: Numbers,
    site: Site,
) -> Result<()> {
    apply(&Pointwise { row, numbers }, inputs, Dest::InPlace, site).map(drop)
}

/// Runs the operation of `row` into `out`.
pub(crate) fn into(
    row: &'static PointwiseRow,
    inputs: &[&Tensor],
    numbers: Numbers,
    out: &Tensor,
    site: Site,
) -> Result<()> {
    apply(&Pointwise { row, numbers }, inputs, Dest::Out(&[out]), site).map(drop)
}

/// A derivative in one kernel, of [grad, saved]: internal, reached only through its operation.
pub(crate) const fn fused(info: OpInfo, name: &'static str) -> OpInfo {
    OpInfo {
        name,
        signatures: &[],
        differentiable: false,
        in_place: false,
        out: Out::None,
        dtypes: DTypes::FLOATS,
        inputs: &[Input::Given],
        promotion: Promotion::None,
        ..info
    }
}
