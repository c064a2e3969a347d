//! Anomaly mode: backward looks at every gradient that a node computes, and one that is not a
//! number ends it with the forward line of the operation. For the whole process, as in PyTorch;
//! off, it costs a load for each node.

use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_core::{Error, Result};

use super::mode;
use super::node::Node;
use crate::operation::Grads;

static DETECTS: AtomicBool = AtomicBool::new(false);
static CHECKS_NAN: AtomicBool = AtomicBool::new(true);

/// Whether anomaly mode is on.
pub fn is_anomaly_enabled() -> bool {
    DETECTS.load(Ordering::Relaxed)
}

/// Whether anomaly mode, if it is on, looks for gradients that are not numbers.
pub fn is_anomaly_check_nan_enabled() -> bool {
    CHECKS_NAN.load(Ordering::Relaxed)
}

/// Switches anomaly mode on or off. With `check_nan`, a gradient that is not a number ends backward
/// with an error that names the operation and its line in the forward.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, set_detect_anomaly};
/// let x = Tensor::full(&[1], -1.0, DType::F32)?.requires_grad_(true)?;
/// set_detect_anomaly(true, true);
/// let error = x.sqrt()?.backward().unwrap_err();
/// set_detect_anomaly(false, true);
/// assert!(error.to_string().contains("returned nan values in its 0th output"));
/// assert!(error.to_string().contains(file!()));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub fn set_detect_anomaly(mode: bool, check_nan: bool) {
    CHECKS_NAN.store(check_nan, Ordering::Relaxed);
    DETECTS.store(mode, Ordering::Relaxed);
}

/// Refuses gradients of `node` that are not numbers, if anomaly mode is on.
#[inline]
pub(super) fn check(node: &Node, grads: &Grads) -> Result<()> {
    if !is_anomaly_enabled() || !is_anomaly_check_nan_enabled() {
        return Ok(());
    }
    mode::with_grad(false, || look(node, grads))
}

#[cold]
fn look(node: &Node, grads: &Grads) -> Result<()> {
    for (index, grad) in grads.iter().enumerate() {
        // A dry run has no values.
        let Some(grad) = grad.as_ref().filter(|grad| !grad.device().is_dry()) else { continue };
        if grad.isnan()?.any()?.to_scalar()?.to_f64() != 0.0 {
            return Err(Error::autograd(
                node.name(),
                format!(
                    "Function \'{}\' returned nan values in its {index}th output. The forward call was the {}",
                    node.backward_name(),
                    node.origin
                ),
            ));
        }
    }
    Ok(())
}
