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

/// Four steps of `torch.optim.AdamW(fused=True)` over two parameters: dtype, AMSGrad, upward, and
/// what becomes of them.
type Four = (DType, bool, bool, [f64; 4], [f64; 2]);
const FOUR_STEPS: [Four; 12] = [
    (
        DType::F32,
        false,
        false,
        [0.5942603945732117, -1.5744115114212036, 0.10418513417243958, 2.554558515548706],
        [0.015795495361089706, -0.505871057510376],
    ),
    (
        DType::F32,
        false,
        true,
        [1.3660385608673096, -2.346186637878418, 0.875964343547821, 3.326338768005371],
        [0.4742792546749115, -0.9643533229827881],
    ),
    (
        DType::F32,
        true,
        false,
        [0.7214105129241943, -1.7015608549118042, 0.23133553564548492, 2.6817092895507812],
        [0.06907141208648682, -0.5591465830802917],
    ),
    (
        DType::F32,
        true,
        true,
        [1.2388885021209717, -2.2190375328063965, 0.7488138675689697, 3.199187994003296],
        [0.42100340127944946, -0.9110777974128723],
    ),
    (
        DType::BF16,
        false,
        false,
        [0.59375, -1.578125, 0.10400390625, 2.5625],
        [0.0152587890625, -0.50390625],
    ),
    (
        DType::BF16,
        false,
        true,
        [1.3671875, -2.34375, 0.87890625, 3.3125],
        [0.474609375, -0.96484375],
    ),
    (
        DType::BF16,
        true,
        false,
        [0.72265625, -1.703125, 0.2314453125, 2.6875],
        [0.06884765625, -0.5546875],
    ),
    (DType::BF16, true, true, [1.234375, -2.234375, 0.75, 3.1875], [0.421875, -0.9140625]),
    (
        DType::F64,
        false,
        false,
        [0.5942604188443011, -1.574411580885788, 0.10418511472250375, 2.5545585893796416],
        [0.015795496412798492, -0.5058710489596875],
    ),
    (
        DType::F64,
        false,
        true,
        [1.366038582405699, -2.3461864216142128, 0.8759643859024961, 3.326338414370358],
        [0.4742792538997015, -0.9643532019778124],
    ),
    (
        DType::F64,
        true,
        false,
        [0.7214105199326982, -1.7015606311675453, 0.23133556608293188, 2.681709215876676],
        [0.06907140567119659, -0.5591465499005741],
    ),
    (
        DType::F64,
        true,
        true,
        [1.2388884813173018, -2.2190373713324556, 0.7488139345420681, 3.1991877878733237],
        [0.4210033446413034, -0.9110777010369259],
    ),
];

#[test]
fn steps_from_tensors_are_pytorchs_in_every_form() -> Outcome {
    for device in devices()? {
        for (dtype, amsgrad, maximize, first, second) in FOUR_STEPS {
            let of = |values: &[f64]| on(device, values)?.to(dtype);
            let params = [of(&[1.0, -2.0, 0.5, 3.0])?, of(&[0.25, -0.75])?.view(&[2, 1])?];
            let zeros =
                || -> Result<Vec<Tensor>> { params.iter().map(Tensor::zeros_like).collect() };
            let (means, squares, largest) = (zeros()?, zeros()?, zeros()?);
            let steps = [(); 2].map(|()| Tensor::zeros(&[], (DType::F32, device)));
            let steps: Vec<Tensor> = steps.into_iter().collect::<Result<_>>()?;
            for step in 1..=4 {
                steps.iter().try_for_each(|step| step.add_(1.0).map(drop))?;
                let near = 1.0 / f64::from(step * step);
                let scale = if step < 2 { 1.0 } else { -0.125 };
                let grads = [
                    of(&[0.5, -0.25, 0.75, 1.0])?.mul(near)?,
                    of(&[0.5, -0.25])?.mul(scale)?.view(&[2, 1])?,
                ];
                fn all(list: &[Tensor]) -> Vec<&Tensor> {
                    list.iter().collect()
                }
                let kept = if amsgrad { all(&largest) } else { vec![] };
                let options = AdamWOptions::new().lr(0.1).beta1(0.8).beta2(0.5).eps(1e-6);
                Tensor::fused_adamw_from_(
                    &all(&params),
                    &all(&grads),
                    &all(&means),
                    &all(&squares),
                    &kept,
                    &all(&steps),
                    options.weight_decay(0.05).maximize(maximize),
                )?;
            }
            let near = match dtype {
                DType::F64 => 1e-14,
                DType::F32 => 2e-6,
                _ => 1.6e-2,
            };
            for (param, expected) in params.iter().zip([&first[..], &second[..]]) {
                let found = param.to(DType::F64)?.to_vec::<f64>()?;
                for (found, expected) in found.iter().zip(expected) {
                    let apart = (found - expected).abs();
                    assert!(apart <= near * expected.abs(), "{dtype}: {found} for {expected}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn steps_that_do_not_fit_are_refused() -> Outcome {
    let x = Tensor::ones(&[8], DType::F32)?;
    let [mean, square, largest] = [x.zeros_like()?, x.zeros_like()?, x.zeros_like()?];
    let grad = x.ones_like()?;
    let step = |largest: &[&Tensor], steps: &[&Tensor]| {
        let options = AdamWOptions::new();
        Tensor::fused_adamw_from_(&[&x], &[&grad], &[&mean], &[&square], largest, steps, options)
    };
    let one = Tensor::ones(&[], DType::F32)?;
    assert!(step(&[], &[]).is_err(), "no step");
    assert!(step(&[], &[&x]).unwrap_err().is_shape(), "a step of eight numbers");
    assert!(step(&[&largest, &largest], &[&one]).is_err(), "two states for one parameter");
    assert!(step(&[&square], &[&one]).unwrap_err().is_shape(), "one state for two");
    assert_eq!(x.to_vec::<f32>()?, [1.0; 8]);
    step(&[&largest], &[&one])
}

/// On the stand-in accelerator a number in a tensor is read by the kernel.
#[test]
fn the_numbers_of_a_step_may_be_in_tensors() -> Outcome {
    for device in [Device::cpu(), device::stand_in(Default::default())?] {
        let of = |value: f64| Tensor::full(&[2], value, (DType::F64, device));
        let number = |value: f64| Tensor::full(&[], value, (DType::F32, device));
        let (rate, scale) = (number(0.5)?, number(4.0)?);
        let run = |found: f64| -> Result<[f64; 3]> {
            let [param, grad, mean, square] = [of(1.0)?, of(8.0)?, of(0.0)?, of(0.0)?];
            let found = number(found)?;
            let options = AdamWOptions::new().tensor_lr(&rate).grad_scale(&scale).found_inf(&found);
            Tensor::fused_adamw_from_(
                &[&param],
                &[&grad],
                &[&mean],
                &[&square],
                &[],
                &[&number(1.0)?],
                options.weight_decay(0.0),
            )?;
            assert_eq!(grad.version(), 1, "a scaled gradient is written");
            let first = |t: &Tensor| Ok::<f64, Error>(t.to_vec::<f64>()?[0]);
            Ok([first(&param)?, first(&grad)?, first(&mean)?])
        };
        let [param, grad, mean] = run(0.0)?;
        assert!((param - 0.5).abs() < 1e-8 && grad == 2.0 && (mean - 0.2).abs() < 1e-12);
        assert_eq!(run(1.0)?, [1.0, 8.0, 0.0], "nothing happens");
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
