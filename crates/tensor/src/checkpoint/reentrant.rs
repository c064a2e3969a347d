//! Checkpointing as a custom function: forward is not recorded at all, and backward runs it again
//! recorded, with a backward of its own inside. PyTorch's older form; it needs an input that
//! requires gradients, and a backward that reaches every leaf.

use plimsoll_core::{Error, Result};

use super::failure::OP;
use super::{Surroundings, is_checkpoint_valid};
use crate::Tensor;
use crate::autograd::{BackwardContext, BackwardOptions, Context, Function, backward, enable_grad};

struct Reentrant<F> {
    function: F,
    preserve_rng_state: bool,
}

/// As [`checkpoint`](super::checkpoint) in PyTorch's older form: the whole call is one node, and
/// backward runs a backward of its own inside. Only `inputs` that require gradients bring the call
/// into the graph, and it cannot run for chosen tensors alone.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, checkpoint_reentrant};
/// let x = Tensor::ones(&[4], DType::F32)?.requires_grad_(true)?;
/// let y = checkpoint_reentrant(&[&x], true, |inputs| Ok(vec![inputs[0].exp()?]))?.remove(0);
/// y.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1f32.exp(); 4]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn checkpoint_reentrant(
    inputs: &[&Tensor],
    preserve_rng_state: bool,
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    Reentrant { function, preserve_rng_state }.apply(inputs)
}

impl<F> Function for Reentrant<F>
where
    F: Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        "CheckpointFunctionBackward"
    }

    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        context.save_for_backward(inputs);
        context.set_value(Surroundings::current(self.preserve_rng_state));
        let inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
        (self.function)(&inputs)
    }

    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        if !is_checkpoint_valid() {
            return Err(Error::autograd(
                OP,
                "a reentrant checkpoint is incompatible with `grad`, and with chosen `inputs` of backward; use \
                 `checkpoint`, which is not reentrant, or let backward reach every leaf",
            ));
        }
        let apart = |input: &Tensor| -> Result<Tensor> {
            let apart = input.detach();
            if input.requires_grad() { apart.requires_grad_(true) } else { Ok(apart) }
        };
        let inputs = context.saved_tensors().iter().map(apart).collect::<Result<Vec<_>>>()?;
        let run = || enable_grad(|| (self.function)(&inputs));
        let outputs = match context.value::<Surroundings>() {
            Some(surroundings) => surroundings.resume(run)?,
            None => run()?,
        };
        let pairs = outputs.iter().zip(grads.iter().map(Option::as_ref));
        let pairs: Vec<_> = pairs.filter(|(output, _)| output.requires_grad()).collect();
        if pairs.is_empty() {
            return Err(Error::autograd(
                OP,
                "none of output has requires_grad=True, this checkpoint() is not necessary",
            ));
        }
        backward(&pairs, BackwardOptions::default())?;
        Ok(inputs.iter().map(Tensor::grad).collect())
    }
}
