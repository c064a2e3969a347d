//! Matrix products. Vectors count as a row on the left and as a column on the right; leading
//! dimensions broadcast.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Result, broadcast_shapes};
use plimsoll_cuda::Properties;
use smallvec::SmallVec;

use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Autocast, Backward, DTypes, Grads, Inferred, Needs, OnCuda, OpInfo, Operation, Out, Saves,
};
use plimsoll_kernels::cpu::matmul as cpu;
use plimsoll_kernels::{CpuLaunch, Meta};

/// Input 0 times input 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatMul;

impl Operation for MatMul {
    fn info(&self) -> &'static OpInfo {
        &MATMUL
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (a, b) = (inputs[0], inputs[1]);
        check_dtypes(a.dtype, b.dtype)?;
        let (rows, columns) = check_sizes(a.shape(), b.shape())?;
        let lead = |shape: &[usize]| shape.len().saturating_sub(2);
        let (a_lead, b_lead) = (&a.shape()[..lead(a.shape())], &b.shape()[..lead(b.shape())]);
        let mut shape = broadcast_shapes(MATMUL.name, &[a_lead, b_lead])?;
        shape.extend(rows.into_iter().chain(columns));
        Ok(Inferred::one(
            Meta::contiguous(&shape, a.dtype).map_err(|e| e.in_operation(MATMUL.name))?,
        ))
    }

    fn saves(&self, needs: Needs) -> Saves {
        Saves::input(1).when(needs.has(0)).and(Saves::input(0).when(needs.has(1)))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::matmul_workspace_bytes(inputs[0], inputs[1], &outputs[0])
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::matmul(launch)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cuda::matmul_workspace_bytes(gpu, inputs[0], inputs[1], &outputs[0])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::matmul(launch)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (a, b) = (&backward.inputs[0], &backward.inputs[1]);
        // As a product of matrices: vectors get the dimension back that they stand for.
        let (row, column) = (a.shape().len() == 1, b.shape().len() == 1);
        let mut grad = backward.grad()?.clone();
        if row {
            let at = if column { -1 } else { -2 };
            grad = grad.unsqueeze(at)?;
        }
        if column {
            grad = grad.unsqueeze(-1)?;
        }
        let left = backward.for_input(0, || {
            let other = backward.input(1)?;
            let other = if column { other.unsqueeze(-1)? } else { other.clone() };
            let product = reduced(&grad, &other.transpose(-2, -1)?, &matrix_shape(a, true))?;
            product.view(&signed(a.shape()))
        })?;
        let right = backward.for_input(1, || {
            let other = backward.input(0)?;
            let other = if row { other.unsqueeze(0)? } else { other.clone() };
            // A matrix used for a whole batch: one product over all rows instead of a sum of
            // products.
            if b.shape().len() <= 2 && other.rank() > 2 {
                let rows = |x: &Tensor| x.reshape(&[-1, x.shape()[x.rank() - 1] as i64]);
                if other.numel() > 0 && grad.numel() > 0 {
                    return rows(&other)?.t()?.matmul(&rows(&grad)?)?.view(&signed(b.shape()));
                }
            }
            let product = reduced(&other.transpose(-2, -1)?, &grad, &matrix_shape(b, false))?;
            product.view(&signed(b.shape()))
        })?;
        Ok(smallvec::smallvec![left, right])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The product, summed over the leading dimensions in which an operand of `shape` was broadcast.
fn reduced(a: &Tensor, b: &Tensor, shape: &[usize]) -> Result<Tensor> {
    a.matmul(b)?.sum_to(shape)?.contiguous()
}

/// The shape of an operand as a matrix.
fn matrix_shape(meta: &Meta, is_left: bool) -> Dims {
    match *meta.shape() {
        [size] if is_left => [1, size].into_iter().collect(),
        [size] => [size, 1].into_iter().collect(),
        _ => meta.shape().into(),
    }
}

fn signed(shape: &[usize]) -> SmallVec<[i64; 6]> {
    shape.iter().map(|&size| size as i64).collect()
}

/// The rows and columns of the result, `None` where a vector has none.
fn check_sizes(a: &[usize], b: &[usize]) -> Result<(Option<usize>, Option<usize>)> {
    let refuse = |why: String| {
        Err(Error::shape(MATMUL.name, format!("cannot multiply {a:?} by {b:?}: {why}")))
    };
    let (rows, left) = match *a {
        [] => return refuse("the left operand has no dimensions; use `mul` for a number".into()),
        [k] => (None, k),
        [.., m, k] => (Some(m), k),
    };
    let (right, columns) = match *b {
        [] => return refuse("the right operand has no dimensions; use `mul` for a number".into()),
        [k] => (k, None),
        [.., k, n] => (k, Some(n)),
    };
    if left != right {
        return refuse(format!(
            "the left operand has {left} columns and the right one {right} rows; is a `transpose` missing?"
        ));
    }
    Ok((rows, columns))
}

fn check_dtypes(a: DType, b: DType) -> Result<()> {
    if a != b {
        return Err(Error::dtype(
            MATMUL.name,
            format!("the operands are {a} and {b}; convert one with `to`, products do not promote"),
        ));
    }
    if !MATMUL.dtypes.contains(a) {
        return Err(Error::dtype(
            MATMUL.name,
            format!("there is no product of {a}; convert the operands with `to` first"),
        ));
    }
    Ok(())
}

static MATMUL: OpInfo = OpInfo {
    cuda: OnCuda::Library,
    name: "matmul",
    family: "linalg",
    signatures: &["matmul(Tensor self, Tensor other) -> Tensor"],
    differentiable: true,
    in_place: false,
    out: Out::Exact,
    dtypes: DTypes::NUMBERS,
    autocast: Autocast::LOWER,
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&MATMUL];
