//! What a program gets with the features that it chose. `cargo xtask test features` runs this
//! without any; with the defaults only what holds for both is left.

use plimsoll::{device, memory, prelude::*};

/// Without the driver there is no GPU, and the error says what was left out.
#[cfg(not(feature = "cuda"))]
#[test]
fn the_error_names_the_feature_that_is_missing() {
    assert_eq!(device::cuda_count(), 0);
    let why = device::cuda_unavailable().expect("there is no driver");
    assert!(why.contains("feature `cuda`"), "{why}");
    let error = device::cuda(0).unwrap_err();
    assert!(error.is_device() && error.to_string().contains(why), "{error}");
}

/// A GPU's bytes are counted by its name; that needs neither the GPU nor the feature.
#[test]
fn a_named_gpu_runs_dry_with_and_without_the_driver() -> Result<()> {
    let h200 = device::dry_named("h200")?;
    let x = Tensor::zeros(&[1024, 1024], (DType::F32, h200))?.requires_grad_(true)?;
    x.matmul(&x)?.sum()?.backward()?;
    let gradient = x.grad().expect("a leaf has a gradient");
    assert_eq!(gradient.shape(), [1024, 1024]);
    // The leaf and its gradient, 4 MiB each.
    assert_eq!(memory::memory_allocated(h200), 8 << 20);
    Ok(())
}
