//! Operations that write tensors besides their results: a fused step of AdamW over many parameters.
//! Values are PyTorch's (2.15, float64); versions, launches, bytes and refusals are ours.

use std::sync::Arc;

use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn devices() -> Result<Vec<Device>> {
    Ok(vec![device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

fn on(device: Device, values: &[f64]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64], device)
}

#[test]
fn three_steps_are_pytorchs() -> Outcome {
    for device in devices()? {
        let param = on(device, &[1.0, -2.0, 0.5])?;
        let (mean, square) = (param.zeros_like()?, param.zeros_like()?);
        let options =
            AdamWOptions::new().lr(0.1).beta1(0.8).beta2(0.99).eps(1e-6).weight_decay(0.05);
        for step in 1..=3 {
            let grad = on(device, &[0.3, -0.1, 0.7])?.mul(step)?.sub(0.4)?;
            let step = f64::from(step);
            Tensor::fused_adamw_(&[&param], &[&grad], &[&mean], &[&square], step, options.clone())?;
        }
        let close = |tensor: &Tensor, expected: [f64; 3]| -> Outcome {
            for (found, expected) in tensor.to_vec::<f64>()?.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-14, "{found} instead of {expected}");
            }
            Ok(())
        };
        close(&param, [0.9652536367131827, -1.6696886619380327, 0.20543185149329127])?;
        close(&mean, [0.1192, -0.3, 0.5384])?;
        close(&square, [0.00299401, 0.01091425, 0.03968209])?;
        assert_eq!((param.version(), mean.version(), square.version()), (3, 3, 3));
    }
    Ok(())
}

/// 148 parameters of odd sizes, some of them views of one storage.
fn many(device: Device) -> Result<Vec<Tensor>> {
    let flat = Tensor::ones(&[4096], (DType::F32, device))?;
    (0..148i64)
        .map(|i| match i % 3 {
            0 => flat.narrow(0, i * 20, 17),
            1 => Tensor::ones(&[i + 1, 3], (DType::F32, device))?.t(),
            _ => Tensor::ones(&[i], (DType::F32, device)),
        })
        .collect()
}

#[test]
fn a_step_over_148_tensors_is_one_launch_without_temporaries() -> Outcome {
    for device in devices()? {
        device::set_chaos(device, None);
        let params = many(device)?;
        let zeros = |t: &Tensor| t.zeros_like();
        let means: Vec<Tensor> = params.iter().map(zeros).collect::<Result<_>>()?;
        let squares: Vec<Tensor> = params.iter().map(zeros).collect::<Result<_>>()?;
        let grads: Vec<Tensor> = params.iter().map(Tensor::ones_like).collect::<Result<_>>()?;
        fn borrowed(list: &[Tensor]) -> Vec<&Tensor> {
            list.iter().collect()
        }
        let before = memory::memory_allocated(device);
        memory::reset_peak_memory_stats(device);
        let counts = Arc::new(LaunchCounts::default());
        let observing = observe(counts.clone());
        Tensor::fused_adamw_(
            &borrowed(&params),
            &borrowed(&grads),
            &borrowed(&means),
            &borrowed(&squares),
            1.0,
            AdamWOptions::new().weight_decay(0.0),
        )?;
        drop(observing);
        let launches: u64 = counts.all().values().map(|count| count.launches).sum();
        assert_eq!(launches, 1);
        assert_eq!(memory::max_memory_allocated(device), before, "no temporaries");
        for param in &params {
            // The first step is as long as the learning rate, whatever the gradient.
            assert!(param.to_vec::<f32>()?.iter().all(|x| (x - 0.999).abs() < 1e-6));
        }
    }
    Ok(())
}

#[test]
fn what_cannot_be_written_is_refused_and_nothing_is() -> Outcome {
    let x = Tensor::ones(&[8], DType::F32)?;
    let [mean, square, grad] = [x.zeros_like()?, x.zeros_like()?, x.ones_like()?];
    let step = |p: &Tensor, g: &Tensor, m: &Tensor, v: &Tensor| {
        Tensor::fused_adamw_(&[p], &[g], &[m], &[v], 1.0, AdamWOptions::new())
    };
    assert!(step(&x, &x, &mean, &square).unwrap_err().is_shape(), "the gradient is written");
    assert!(step(&x, &grad, &mean, &mean).unwrap_err().is_shape(), "one state for two");
    let (head, tail) = (x.narrow(0, 0, 6)?, x.narrow(0, 4, 4)?);
    let part = |t: &Tensor, n| t.narrow(0, 0, n);
    let overlapping = Tensor::fused_adamw_(
        &[&head, &tail],
        &[&part(&grad, 6)?, &part(&grad, 4)?],
        &[&part(&mean, 6)?, &mean.narrow(0, 6, 2)?.expand(&[2])?],
        &[&part(&square, 6)?, &part(&square, 4)?],
        1.0,
        AdamWOptions::new(),
    );
    assert!(overlapping.is_err());
    let leaf = Tensor::ones(&[8], DType::F32)?.requires_grad_(true)?;
    assert!(step(&leaf, &grad, &mean, &square).unwrap_err().is_autograd());
    no_grad(|| step(&leaf, &grad, &mean, &square))?;
    let there = device::private_cpu(&Default::default())?;
    let elsewhere = mean.to(there)?;
    assert!(step(&x, &grad, &elsewhere, &square).unwrap_err().is_device());
    assert!(Tensor::fused_adamw_(&[&x], &[], &[], &[], 1.0, AdamWOptions::new()).is_err());
    assert_eq!(x.to_vec::<f32>()?, [1.0; 8]);
    Ok(())
}
