//! Cross entropy of a linear map's results, which never exist whole. Of a mean or a sum the
//! gradients are made on the way forward and kept; of losses by row they are made backward, from
//! scores that are computed again.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use crate::Tensor;
use crate::autograd::{is_grad_enabled, is_one};
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::Dest;
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Input, Metas, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply;
use plimsoll_kernels::cpu::linear_cross_entropy::{
    self as cpu, LinearCrossEntropyArgs, LinearSizes,
};
use plimsoll_kernels::cpu::nll::Reduction;
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// [x (rows, width), w (classes, width), targets, bias?, weights of classes?] -> [loss], and of a
/// mean or a sum the gradients of x, w and bias that `to` asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearCrossEntropy(pub(crate) LinearCrossEntropyArgs);

impl LinearCrossEntropy {
    /// What forward makes gradients for.
    fn made(&self) -> [bool; 3] {
        if self.0.nll.reduction == Reduction::None { [false; 3] } else { self.0.to }
    }

    fn inputs(&self) -> usize {
        3 + usize::from(self.0.biased) + usize::from(self.0.nll.weight)
    }

    /// Where each gradient's input is: x, w and bias.
    const PLACES: [usize; 3] = [0, 1, 3];

    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let name = LINEAR_CROSS_ENTROPY.name;
        let (&[rows, width], &[classes, own]) = (inputs[0].shape(), inputs[1].shape()) else {
            return Err(Error::shape(name, "the kernel needs two matrices"));
        };
        let mut expected: SmallVec<[(&str, usize); 3]> = smallvec::smallvec![("target", rows)];
        if self.0.biased {
            expected.push(("bias", classes));
        }
        if self.0.nll.weight {
            expected.push(("weight", classes));
        }
        let wrong = expected
            .iter()
            .zip(&inputs[2..])
            .find(|((_, count), input)| input.shape() != [*count])
            .map(|(expected, input)| (expected, input.shape()));
        if let Some(((what, count), shape)) = wrong {
            return Err(Error::shape(
                name,
                format!("the {what} needs the shape [{count}], and has {shape:?}"),
            ));
        }
        if own != width {
            return Err(Error::shape(
                name,
                format!("the input has {width} elements a row, and the linear weight {own}"),
            ));
        }
        let dtype = inputs[0].dtype;
        let others = inputs.iter().enumerate().filter(|(index, _)| *index != 2);
        match others.map(|(_, input)| input.dtype).find(|&other| other != dtype) {
            Some(other) => Err(Error::dtype(
                name,
                format!("the input is {dtype}, and a weight {other}; convert one with `to`"),
            )),
            None => Ok(()),
        }
    }

    /// The gradient of the scores from differentiable operations; they exist whole.
    fn slopes(&self, backward: &Backward<'_>) -> Result<Tensor> {
        let LinearCrossEntropyArgs { nll, smoothing, biased, .. } = self.0;
        let (x, w, targets) = (backward.input(0)?, backward.input(1)?, backward.input(2)?);
        let classes = w.shape()[0] as f64;
        let mut scores = x.matmul(&w.t()?)?;
        if biased {
            scores = scores.add(backward.input(3)?)?;
        }
        let counted = targets.ne(nll.ignore_index)?;
        let class = Tensor::where_(&counted, targets, 0)?;
        let weights = if nll.weight { Some(backward.input(self.inputs() - 1)?) } else { None };
        let share = match weights {
            Some(weights) => weights.index_select(0, &class)?,
            None => Tensor::ones(&[class.shape()[0] as i64], (x.dtype(), x.device()))?,
        };
        let share = Tensor::where_(&counted, &share, 0.0)?;
        let mut grad = backward.grad()?.to(x.dtype())?;
        if nll.reduction == Reduction::Mean {
            grad = grad.div(&share.sum()?)?;
        }
        let grad = Tensor::where_(&counted, &grad, 0.0)?;
        let own = grad.mul(&share)?.mul(1.0 - smoothing)?.unsqueeze(1)?;
        let mut along = own.clone();
        let mut spread = None;
        if smoothing > 0.0 {
            let part = grad.mul(smoothing / classes)?.unsqueeze(1)?;
            let (all, each) = match weights {
                Some(weights) => (part.mul(&weights.sum()?)?, part.mul(weights)?),
                None => (part.mul(classes)?, part),
            };
            along = along.add(&all)?;
            spread = Some(each);
        }
        let places = Tensor::arange(0, classes as i64, 1, (DType::I64, x.device()))?;
        let is_target = class.unsqueeze(1)?.eq(&places)?;
        let slopes = scores.softmax(1)?.mul(&along)?;
        let slopes = slopes.sub(&Tensor::where_(&is_target, &own, 0.0)?)?;
        match spread {
            Some(spread) => slopes.sub(&spread),
            None => Ok(slopes),
        }
    }

    fn composite(&self, backward: &Backward<'_>) -> Result<[Option<Tensor>; 3]> {
        let slopes = self.slopes(backward)?;
        let (x, w) = (backward.input(0)?, backward.input(1)?);
        Ok([
            backward.for_input(0, || slopes.matmul(w))?,
            backward.for_input(1, || slopes.t()?.matmul(x))?,
            match self.0.biased {
                true => backward.for_input(3, || slopes.sum_over(&[0], false))?,
                false => None,
            },
        ])
    }

    /// The gradients that forward kept, or those of losses by row.
    fn plain(&self, backward: &Backward<'_>) -> Result<[Option<Tensor>; 3]> {
        let grad = backward.grad()?;
        let mut grads = [None, None, None];
        if self.0.nll.reduction != Reduction::None {
            let is_one = !backward.hooked && is_one(grad);
            let mut at = 1;
            for (index, made) in self.made().into_iter().enumerate() {
                if made {
                    let kept = backward.output(at)?;
                    grads[index] = backward.for_input(Self::PLACES[index], || match is_one {
                        true => Ok(kept.detach()),
                        false => kept.mul(grad),
                    })?;
                    at += 1;
                }
            }
            return Ok(grads);
        }
        let grad = grad.contiguous()?;
        let mut inputs: SmallVec<[&Tensor; 6]> = SmallVec::new();
        for index in 0..self.inputs() {
            inputs.push(backward.input(index)?);
        }
        inputs.push(&grad);
        let mut args = self.0;
        let biased = args.biased;
        args.to = Self::PLACES.map(|place| backward.needs.has(place) && (place != 3 || biased));
        let op = LinearCrossEntropyBackward(args);
        let mut results = apply(&op, &inputs, Dest::New, Site::in_force())?.into_iter();
        for (place, wanted) in grads.iter_mut().zip(args.to) {
            if wanted {
                *place = results.next();
            }
        }
        Ok(grads)
    }
}

/// Losses of halves are float32.
fn loss_dtype(dtype: DType) -> DType {
    if dtype == DType::BF16 { DType::F32 } else { dtype }
}

/// Metas of the gradients that are wanted.
fn gradients(inputs: &[&Meta], to: [bool; 3]) -> Result<Metas> {
    let dtype = inputs[0].dtype;
    let shapes = [inputs[0].shape(), inputs[1].shape(), &inputs[1].shape()[..1]];
    let wanted = shapes.into_iter().zip(to).filter(|(_, wanted)| *wanted);
    wanted.map(|(shape, _)| Meta::contiguous(shape, dtype)).collect()
}

impl Operation for LinearCrossEntropy {
    fn info(&self) -> &'static OpInfo {
        &LINEAR_CROSS_ENTROPY
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let by_row = self.0.nll.reduction == Reduction::None;
        let shape = if by_row { inputs[2].shape() } else { &[] };
        let mut metas: Metas =
            smallvec::smallvec![Meta::contiguous(shape, loss_dtype(inputs[0].dtype))?];
        metas.extend(gradients(inputs, self.made())?);
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        let inputs = (0..self.inputs()).map(Saves::input);
        let made = self.made().into_iter().filter(|made| *made).count();
        inputs.chain((1..=made).map(Saves::output)).fold(Saves::NOTHING, Saves::and)
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let sizes = LinearSizes::of(inputs[0].shape(), inputs[1].shape());
        cpu::linear_cross_entropy_workspace_bytes(inputs[0].dtype, sizes, self.made())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        let args = LinearCrossEntropyArgs { to: self.made(), ..self.0 };
        cpu::linear_cross_entropy(launch, args)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cuda::linear_cross_entropy_workspace_bytes(gpu, inputs, self.made())
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        let args = LinearCrossEntropyArgs { to: self.made(), ..self.0 };
        cuda::linear_cross_entropy(launch, args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let made =
            if is_grad_enabled() { self.composite(backward)? } else { self.plain(backward)? };
        let mut grads: Grads = smallvec::smallvec![None; self.inputs()];
        for (place, grad) in Self::PLACES.into_iter().zip(made) {
            if grad.is_some() {
                grads[place] = grad;
            }
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// The gradients of losses by row, for backward passes that nobody differentiates again.
#[derive(Clone, Copy, Debug)]
struct LinearCrossEntropyBackward(LinearCrossEntropyArgs);

impl Operation for LinearCrossEntropyBackward {
    fn info(&self) -> &'static OpInfo {
        &LINEAR_CROSS_ENTROPY_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::Exact(gradients(inputs, self.0.to)?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let sizes = LinearSizes::of(inputs[0].shape(), inputs[1].shape());
        cpu::linear_cross_entropy_workspace_bytes(inputs[0].dtype, sizes, self.0.to)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::linear_cross_entropy_backward(launch, self.0)
    }

    fn cuda_workspace_bytes(&self, gpu: &Properties, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        cuda::linear_cross_entropy_workspace_bytes(gpu, inputs, self.0.to)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::linear_cross_entropy_backward(launch, self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

static LINEAR_CROSS_ENTROPY: OpInfo = OpInfo {
    name: "linear_cross_entropy",
    home: Home::Functional,
    family: "linear_cross_entropy",
    signatures: &[
        "linear_cross_entropy(Tensor self, Tensor linear_weight, Tensor target, *, Tensor? linear_bias=None, Tensor? weight=None, str reduction='mean', int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    ],
    differentiable: true,
    dtypes: DTypes::FLOATS,
    cuda: OnCuda::Kernels(&source_files::LINEAR_CROSS_ENTROPY),
    inputs: &[Input::Given, Input::Given, Input::Index, Input::Given],
    ..OpInfo::BARE
};
/// Internal: reached only through the derivative.
static LINEAR_CROSS_ENTROPY_BACKWARD: OpInfo = OpInfo {
    name: "linear_cross_entropy_backward",
    family: "linear_cross_entropy",
    dtypes: DTypes::FLOATS,
    cuda: OnCuda::Kernels(&source_files::LINEAR_CROSS_ENTROPY),
    ..OpInfo::BARE
};

pub(crate) static OPS: &[&OpInfo] = &[&LINEAR_CROSS_ENTROPY];
