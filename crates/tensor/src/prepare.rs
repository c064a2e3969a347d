//! The entry of every operation, and the one step before dispatch: operands of different dtypes and
//! devices are brought together, by facts in the registry (`op_info.rs`) and never in a method of
//! the API. In this order: mixed precision, device, indices and conditions, promotion; then results
//! that do not fit their target's dtype are computed apart and copied in, and targets that share
//! memory with what is still read are refused.
//!
//! Operands that need nothing of this go straight on: see [`is_ready`].

use plimsoll_core::{DType, Device, DeviceKind, Error, Result};
use plimsoll_memory::{Site, enter_operation};
use smallvec::SmallVec;

use crate::Tensor;
use crate::autocast;
use crate::autograd::rules;
use crate::default_dtype::default_dtype;
use crate::device::Entry;
use crate::dispatch::{Dest, apply_into, apply_on, first};
use crate::op_info::{Input, OpInfo, Out, Promotion};
use crate::operation::{Inferred, Needs, Operation, Outputs};
use crate::promotion::{Other, result_type};

/// Runs `op` on `inputs`, which are brought to one device and dtype where they need it.
#[inline]
pub(crate) fn apply(
    op: &dyn Operation,
    inputs: &[&Tensor],
    dest: Dest<'_>,
    site: Site,
) -> Result<Outputs> {
    match is_ready(op.info(), inputs, dest) {
        Some(entry) => apply_on(entry, op, inputs, dest, site),
        None => convert_and_apply(op, inputs, dest, site),
    }
}

/// Runs `op`, which gives one tensor.
pub(crate) fn apply_one(op: &dyn Operation, inputs: &[&Tensor], site: Site) -> Result<Tensor> {
    match is_ready(op.info(), inputs, Dest::New) {
        Some(entry) => {
            let mut outputs = Outputs::new();
            apply_into(entry, op, inputs, Dest::New, site, &mut outputs)?;
            Ok(outputs.swap_remove(0))
        }
        None => convert_and_apply(op, inputs, Dest::New, site).map(first),
    }
}

/// The device to run on, if `inputs` need no preparation: floats of one dtype on one device.
#[inline(always)]
fn is_ready(info: &OpInfo, inputs: &[&Tensor], dest: Dest<'_>) -> Option<&'static Entry> {
    let (first, rest) = inputs.split_first()?;
    let (entry, dtype) = (first.entry(), first.dtype());
    // More than one sort of input means that some are converted whatever their dtype.
    let alike = info.inputs.len() == 1
        && dtype.is_float()
        && info.dtypes.contains(dtype)
        && rest.iter().all(|other| std::ptr::eq(other.entry(), entry) && other.dtype() == dtype);
    let ready = match dest {
        Dest::New => true,
        // Other operations must not read what they write: see `in_place`.
        Dest::InPlace => info.elementwise,
        Dest::Mutating(_) | Dest::Out(_) => false,
    };
    (alike && ready && !autocast::is_on()).then_some(entry)
}

/// Runs `op` on `inputs` after bringing them together.
#[inline(never)]
fn convert_and_apply(
    op: &dyn Operation,
    inputs: &[&Tensor],
    dest: Dest<'_>,
    site: Site,
) -> Result<Outputs> {
    let info = op.info();
    // What is converted is converted for this operation.
    let _named = enter_operation(info.name);
    let entry = common_device(info, inputs, dest)?;
    let mut operands: Operands = inputs.iter().map(|&input| input.clone()).collect();
    // PyTorch leaves forms that write into given tensors alone.
    if autocast::is_on() && matches!(dest, Dest::New) {
        cast_for_autocast(info, entry.device().kind(), &mut operands, site)?;
    }
    for (index, operand) in operands.iter_mut().enumerate() {
        match info.input(index) {
            Input::Given => {}
            Input::Operand => *operand = operand.to_device(entry.device(), site)?,
            Input::Index => *operand = positions(info, operand, site)?,
            Input::Condition => *operand = condition(info, operand, site)?,
        }
    }
    promote(op, &mut operands, site)?;
    let operands: SmallVec<[&Tensor; 4]> = operands.iter().collect();
    match dest {
        Dest::New | Dest::Mutating(_) => apply_on(entry, op, &operands, dest, site),
        Dest::InPlace => in_place(entry, op, inputs[0], &operands, site),
        Dest::Out(outs) => into(entry, op, &operands, outs, site),
    }
}

type Operands = SmallVec<[Tensor; 4]>;

/// The device that an operation runs on. Zero-dimensional operands on the CPU go along with the
/// others.
fn common_device(info: &OpInfo, inputs: &[&Tensor], dest: Dest<'_>) -> Result<&'static Entry> {
    let outs: &[&Tensor] = match dest {
        Dest::Out(outs) | Dest::Mutating(outs) => outs,
        Dest::New | Dest::InPlace => &[],
    };
    let follows = |index: usize, tensor: &Tensor| {
        info.input(index) == Input::Operand && tensor.rank() == 0 && tensor.device() == Device::CPU
    };
    let leading = match dest {
        // The target stays where it is.
        Dest::InPlace => inputs.first(),
        _ => inputs.iter().enumerate().find(|(i, t)| !follows(*i, t)).map(|(_, t)| t),
    };
    let Some(leading) = leading.or(inputs.first()).or(outs.first()) else {
        return Err(Error::invalid_argument("an operation without operands needs a device")
            .in_operation(info.name));
    };
    let entry = leading.entry();
    for (index, input) in inputs.iter().enumerate() {
        if !std::ptr::eq(input.entry(), entry) && !follows(index, input) {
            return Err(different_devices(info, leading, input));
        }
    }
    match outs.iter().find(|out| !std::ptr::eq(out.entry(), entry)) {
        Some(out) => Err(different_devices(info, leading, out)),
        None => Ok(entry),
    }
}

#[cold]
fn different_devices(info: &OpInfo, first: &Tensor, other: &Tensor) -> Error {
    Error::device(
        info.name,
        format!(
            "operands are on different devices, {} (shape {:?}) and {} (shape {:?}); move one with `to`",
            first.device(),
            first.shape(),
            other.device(),
            other.shape()
        ),
    )
}

fn cast_for_autocast(
    info: &OpInfo,
    kind: DeviceKind,
    operands: &mut Operands,
    site: Site,
) -> Result<()> {
    // A change of dtype is what casts are made of.
    if info.family == "copy" {
        return Ok(());
    }
    let Some(dtype) = autocast::target(info.name, kind, operands.iter())? else { return Ok(()) };
    for operand in operands.iter_mut() {
        if autocast::is_eligible(operand.dtype()) {
            *operand = autocast::cast(operand, dtype, site)?;
        }
    }
    Ok(())
}

/// An index tensor as kernels take it.
fn positions(info: &OpInfo, index: &Tensor, site: Site) -> Result<Tensor> {
    match index.dtype() {
        DType::I64 | DType::I32 => index.to_dtype(DType::I64, site),
        // Of no positions PyTorch does not ask the dtype.
        _ if index.numel() == 0 => index.to_dtype(DType::I64, site),
        other => Err(Error::dtype(
            info.name,
            format!("the index must be int64 or int32, not {other}; convert it with `long`"),
        )),
    }
}

/// A condition as kernels take it.
fn condition(info: &OpInfo, condition: &Tensor, site: Site) -> Result<Tensor> {
    match condition.dtype() {
        DType::Bool | DType::U8 => condition.to_dtype(DType::Bool, site),
        other => Err(Error::dtype(
            info.name,
            format!("the condition must be bool, not {other}; compare it with 0 first"),
        )),
    }
}

/// Converts the operands to the dtype that the operation computes in, which it must know.
fn promote(op: &dyn Operation, operands: &mut Operands, site: Site) -> Result<()> {
    let info = op.info();
    let is_operand = |index: usize| info.input(index) == Input::Operand;
    let dtype = match info.promotion {
        Promotion::None => match (0..operands.len()).find(|&i| info.input(i) == Input::Given) {
            Some(index) => operands[index].dtype(),
            None => return Ok(()),
        },
        promotion => {
            let numbers = op.number().map(Other::Scalar);
            let all: SmallVec<[Other<'_>; 4]> = (0..operands.len())
                .filter(|&index| is_operand(index))
                .map(|index| Other::Tensor(&operands[index]))
                .chain(numbers)
                .collect();
            let common = result_type(&all);
            if promotion == Promotion::Float && !common.is_float() {
                default_dtype()
            } else {
                common
            }
        }
    };
    if !info.dtypes.contains(dtype) {
        return Err(Error::dtype(
            info.name,
            format!(
                "{dtype} is not supported here; convert with `to` to one of {}",
                info.dtypes.names()
            ),
        ));
    }
    if info.promotion != Promotion::None {
        for index in (0..operands.len()).filter(|&index| is_operand(index)) {
            operands[index] = operands[index].to_dtype(dtype, site)?;
        }
    }
    Ok(())
}

/// Writes over `target`, which was input 0 before it was prepared.
fn in_place(
    entry: &'static Entry,
    op: &dyn Operation,
    target: &Tensor,
    operands: &[&Tensor],
    site: Site,
) -> Result<Outputs> {
    if !op.info().elementwise {
        check_separate(op.info(), target, &operands[1..])?;
    }
    let computed = operands[0].dtype();
    if computed == target.dtype() {
        let mut operands: SmallVec<[&Tensor; 4]> = operands.iter().copied().collect();
        operands[0] = target;
        return apply_on(entry, op, &operands, Dest::InPlace, site);
    }
    check_cast(op.info(), computed, target)?;
    let result = first(apply_on(entry, op, operands, Dest::New, site)?);
    target.copy_from(&result, site)?;
    Ok(Outputs::from_iter([target.clone()]))
}

/// Writes into `outs`; through a copy where a dtype differs and may.
fn into(
    entry: &'static Entry,
    op: &dyn Operation,
    operands: &[&Tensor],
    outs: &[&Tensor],
    site: Site,
) -> Result<Outputs> {
    let info = op.info();
    if let ([out], Some(first)) = (outs, operands.first())
        && info.in_place
        && !info.elementwise
        && out.shares_storage_with(first)
        && out.meta().is_same_view(first.meta())
    {
        // Into its own first operand: the form in place.
        rules::check_out(info, outs, operands)?;
        return in_place(entry, op, out, operands, site);
    }
    for (index, out) in outs.iter().enumerate() {
        check_separate(info, out, &outs[..index])?;
        if !info.elementwise {
            check_separate(info, out, operands)?;
        }
    }
    if info.out != Out::Cast {
        return apply_on(entry, op, operands, Dest::Out(outs), site);
    }
    let metas: SmallVec<[_; 4]> = operands.iter().map(|operand| operand.meta()).collect();
    let Inferred::Exact(results) = op.infer(&metas, Needs::NONE)? else {
        return apply_on(entry, op, operands, Dest::Out(outs), site);
    };
    if outs.iter().zip(&results).all(|(out, result)| out.dtype() == result.dtype) {
        return apply_on(entry, op, operands, Dest::Out(outs), site);
    }
    rules::check_out(info, outs, operands)?;
    for (out, result) in outs.iter().zip(&results) {
        check_cast(info, result.dtype, out)?;
        if out.shape() != result.shape() {
            return Err(Error::target_shape(info.name, result.shape(), out.shape()));
        }
    }
    let results = apply_on(entry, op, operands, Dest::New, site)?;
    for (out, result) in outs.iter().zip(&results) {
        out.copy_from(result, site)?;
    }
    Ok(outs.iter().map(|&out| out.clone()).collect())
}

/// A result goes into a target of its own class or a higher one.
fn check_cast(info: &OpInfo, result: DType, target: &Tensor) -> Result<()> {
    if result.class() <= target.dtype().class() {
        return Ok(());
    }
    Err(Error::dtype(
        info.name,
        format!(
            "the result is {result} and cannot be stored in a tensor of {}; use the form that makes a new \
             tensor, or convert first",
            target.dtype()
        ),
    ))
}

/// Refuses a target that shares memory with what is still read, or with another target.
fn check_separate(info: &OpInfo, out: &Tensor, others: &[&Tensor]) -> Result<()> {
    let shared = others
        .iter()
        .position(|input| input.shares_storage_with(out) && input.meta().overlaps(out.meta()));
    match shared {
        None => Ok(()),
        Some(index) => Err(Error::shape(
            info.name,
            format!(
                "the target of shape {:?} shares memory with tensor {index} of shape {:?}, which is used while the \
                 result is written; write to another tensor, or use the form that makes a new one",
                out.shape(),
                others[index].shape()
            ),
        )),
    }
}
