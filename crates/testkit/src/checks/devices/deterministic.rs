//! Results that are the same on every GPU: products and convolutions by kernels of our own, which
//! take no workspace for a library.

use plimsoll_tensor::backends::DETERMINISTIC_ALGORITHMS;
use plimsoll_tensor::{ConvOptions, DType, Device, Result, Tensor, device, memory};

use super::{Kept, compare, values};

/// Products of every float dtype in several layouts, sums with a product, and a convolution with
/// its gradients.
pub fn products_do_without_the_libraries(device: Device) -> Result<()> {
    let _on = Kept::set(&DETERMINISTIC_ALGORITHMS, true);
    let (a, b) = (values(70 * 96).view(&[70, 96])?, values(96 * 130).view(&[96, 130])?);
    let sums = [(DType::F32, 1e-4), (DType::F64, 1e-9), (DType::F16, 3e-2), (DType::BF16, 3e-2)];
    for (dtype, tolerance) in sums {
        compare(device, "products", &[a.to(dtype)?, b.to(dtype)?], tolerance, |t| {
            let product = t[0].matmul(&t[1])?;
            let turned = t[1].t()?.contiguous()?.t()?;
            let batch = t[0].view(&[5, 14, 96])?;
            Ok(vec![
                t[0].matmul(&turned)?,
                product.addmm(&t[0], &t[1])?,
                batch.matmul(&t[1])?,
                t[0].select(0, 3)?.matmul(&t[1])?,
                product,
            ])
        })?;
    }
    let (x, weight) =
        (values(3 * 8 * 121).view(&[3, 8, 11, 11])?, values(720).view(&[10, 8, 3, 3])?);
    compare(device, "a convolution", &[x, weight], 1e-3, |t| {
        let leaves = [t[0].detach().requires_grad_(true)?, t[1].detach().requires_grad_(true)?];
        let y = leaves[0].conv2d_with(&leaves[1], ConvOptions::new().padding(1))?;
        y.square()?.sum()?.backward()?;
        let grads = leaves.iter().filter_map(Tensor::grad);
        Ok([y.detach()].into_iter().chain(grads).collect())
    })?;
    takes_no_workspace(&a.to(device)?, &b.to(device)?)
}

/// A product takes the bytes of its result and no more.
fn takes_no_workspace(a: &Tensor, b: &Tensor) -> Result<()> {
    let device = a.device();
    device::synchronize(device)?;
    let before = memory::memory_stats(device).allocated_bytes.all.current;
    memory::reset_peak_memory_stats(device);
    let product = a.matmul(b)?;
    let after = memory::memory_stats(device).allocated_bytes.all;
    assert_eq!(after.peak, after.current, "{product:?} took a workspace");
    assert!(after.current > before);
    Ok(())
}
