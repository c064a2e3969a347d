//! Checkpointed modules: the second run books its bytes under the same paths and lines as the
//! first, under mixed precision and on the stand-in too, and gives the same gradients.

use std::sync::{Arc, Mutex};

use plimsoll_nn::parametrizations::weight_norm;
use plimsoll_nn::{
    Dropout, Forward, GELU, Linear, LinearOptions, Module, Sequential, checkpoint, sequential,
};
use plimsoll_tensor::observe::{Launch, Observer, observe};
use plimsoll_tensor::{
    AutocastOptions, DType, Device, Result, Tensor, autocast_with, device, manual_seed_on,
};

#[derive(Module)]
struct Net {
    blocks: Vec<Arc<Sequential>>,
    is_checkpointed: bool,
}

impl Forward<&Tensor> for Net {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for block in &self.blocks {
            x = if self.is_checkpointed {
                checkpoint(block, &x)? // line A
            } else {
                block.call(&x)?
            };
        }
        Ok(x)
    }
}

fn net(own: Device) -> Result<Net> {
    let linear = || Linear::with(8, 8, LinearOptions::new().device(own));
    let block = || -> Result<Arc<Sequential>> {
        // The first layer computes its weight, in the second run too.
        let first = weight_norm(linear()?)?;
        Ok(Arc::new(sequential![first, GELU::new(), Dropout::new(), linear()?]))
    };
    Ok(Net { blocks: vec![block()?, block()?], is_checkpointed: true })
}

/// The module's path and the line of every launch of an operation on a device.
struct Places {
    device: Device,
    operation: &'static str,
    found: Mutex<Vec<(String, u32)>>,
}

impl Observer for Places {
    fn begin(&self, launch: &Launch) {
        if launch.device == self.device && launch.operation == self.operation {
            let origin = launch.origin.get();
            let site = origin.site.resolve().expect("every launch has a line");
            let line = if site.file.ends_with("nn/tests/checkpoint.rs") { site.line } else { 0 };
            self.found.lock().unwrap().push((origin.module.to_string(), line));
        }
    }
}

#[test]
fn the_second_run_has_the_paths_and_lines_of_the_first() -> Result<()> {
    let line = include_str!("checkpoint.rs").lines().position(|line| line.ends_with("// line A"));
    let line = line.expect("it is marked") as u32 + 1;
    for own in [device::private_cpu(&Default::default())?, device::stand_in(Default::default())?] {
        let net = net(own)?;
        let x = Tensor::ones(&[4, 8], (DType::F32, own))?;
        for operation in ["gelu", "addmm", "linalg_vector_norm"] {
            let places = Arc::new(Places { device: own, operation, found: Mutex::default() });
            let observing = observe(places.clone());
            let loss = net.call(&x)?.sum()?;
            let first = std::mem::take(&mut *places.found.lock().unwrap());
            loss.backward()?;
            drop(observing);
            let mut again = std::mem::take(&mut *places.found.lock().unwrap());
            again.retain(|(path, _)| first.iter().any(|(known, _)| known == path));
            assert!(first.iter().all(|(_, at)| *at == line), "{operation}: {first:?}");
            assert!(first.iter().all(|(path, _)| path.starts_with("blocks.")), "{first:?}");
            // The last block runs again first. What nobody needs at its end does not run again.
            for block in ["blocks.1.", "blocks.0."] {
                let of = |all: &[(String, u32)]| -> Vec<(String, u32)> {
                    all.iter().filter(|(path, _)| path.starts_with(block)).cloned().collect()
                };
                let (first, again) = (of(&first), of(&again));
                assert!(!again.is_empty(), "{operation} of {block} runs again");
                assert_eq!(first[..again.len()], again[..], "{operation}");
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_are_those_of_plain_calls_under_mixed_precision_too() -> Result<()> {
    for own in [device::private_cpu(&Default::default())?, device::stand_in(Default::default())?] {
        for mixed in [false, true] {
            let mut net = net(own)?;
            let x = Tensor::ones(&[4, 8], (DType::F32, own))?;
            let mut gradients = Vec::new();
            for is_checkpointed in [true, false] {
                net.is_checkpointed = is_checkpointed;
                net.zero_grad()?;
                manual_seed_on(own, 5);
                let lower =
                    AutocastOptions { dtype: Some(DType::BF16), ..AutocastOptions::default() };
                let mixing = AutocastOptions { enabled: mixed, ..lower };
                let result = autocast_with(own.kind(), mixing, || net.call(&x))?;
                assert_eq!(result.dtype(), if mixed { DType::BF16 } else { DType::F32 });
                result.to(DType::F32)?.square()?.sum()?.backward()?;
                let found = net.parameters().into_iter().map(|parameter| {
                    parameter.tensor().grad().expect("backward left one").to_vec::<f32>()
                });
                gradients.push(found.collect::<Result<Vec<_>>>()?);
            }
            assert_eq!(gradients[0], gradients[1], "bit for bit");
        }
    }
    Ok(())
}
