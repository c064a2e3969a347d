//! The norms of many tensors in one operation.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::ops::norms::Norms;
use crate::prepare::apply_one;

impl Tensor {
    /// The 2-norm of each tensor, as a vector. All are of one float dtype and on one device; they
    /// are read in one operation, which records no gradient.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let grads = [Tensor::full(&[4], 2.0, DType::F32)?, Tensor::full(&[2, 2], 0.5, DType::F32)?];
    /// let norms = Tensor::foreach_norm(&[&grads[0], &grads[1]])?;
    /// assert_eq!(norms.to_vec::<f32>()?, [4.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn foreach_norm(tensors: &[&Tensor]) -> Result<Tensor> {
        const NAME: &str = "_foreach_norm";
        let Some(first_of_all) = tensors.first() else {
            let why = "it needs at least one tensor";
            return Err(Error::invalid_argument(why).in_operation(NAME));
        };
        let dtype = first_of_all.dtype();
        if !dtype.is_float() || tensors.iter().any(|tensor| tensor.dtype() != dtype) {
            let why = "the tensors are of one floating-point dtype";
            return Err(Error::dtype(NAME, why));
        }
        let detached: Vec<Tensor> = tensors.iter().map(|tensor| tensor.detach()).collect();
        let inputs: Vec<&Tensor> = detached.iter().collect();
        apply_one(&Norms, &inputs, Site::caller())
    }
}
