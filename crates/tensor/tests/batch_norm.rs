//! Batch norm: PyTorch's values (2.15, float64) in training and evaluation, running statistics that
//! are written with versions and without recipes, the bytes that it keeps, and what it refuses.

use std::sync::Arc;

use plimsoll_tensor::observe::{LaunchCounts, observe};
use plimsoll_tensor::*;

type Outcome = Result<()>;

fn devices() -> Result<Vec<Device>> {
    Ok(vec![device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

fn close(tensor: &Tensor, expected: &[f64], within: f64) -> Outcome {
    let found = tensor.to(DType::F64)?.to_vec::<f64>()?;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= within * expected.abs().max(1.0), "{found} {expected}");
    }
    Ok(())
}

const X: [f64; 12] = [1.0, 2.0, 4.0, 0.0, -1.0, 3.0, 5.0, -2.0, 0.5, 2.0, 2.5, -3.0];
const G: [f64; 12] = [1.0, -1.0, 0.5, 2.0, 0.0, 1.0, 0.25, 3.0, -2.0, 1.0, 1.0, -1.0];

/// What PyTorch gives: the result, running mean and variance, gradients of input, weight and bias.
struct Expected {
    training: bool,
    y: [f64; 12],
    mean: [f64; 2],
    var: [f64; 2],
    input: [f64; 12],
    weight: [f64; 2],
}

const EXPECTED: [Expected; 2] = [
    Expected {
        training: true,
        y: [
            -0.23804759836175726,
            0.4126825327872524,
            1.7141427950852717,
            1.1369504846599028,
            1.3717227440768789,
            0.4326337064089747,
            2.3648729262342814,
            -2.1902379918087864,
            -0.5634126639362621,
            0.6674059658259508,
            0.5500198361174627,
            1.8412672629108309,
        ],
        mean: [0.75, -0.2833333333333333],
        var: [2.875, 3.488333333333334],
        input: [
            0.34133684587073454,
            -0.8006607537253106,
            0.4943597684021521,
            -0.35412673437944686,
            0.04496568989997004,
            0.09200180870113454,
            0.49113989831687377,
            1.1644091200628317,
            -1.6905848789272815,
            0.021549714146599404,
            0.05677576142386697,
            0.13883376020787577,
        ],
        weight: [-3.3892194330677587, 3.834613570477275],
    },
    Expected {
        training: false,
        y: [
            0.7801975530661768,
            1.8405926591985304,
            3.9613828714632375,
            0.8556864829514146,
            1.1443135170485854,
            -0.010194619340098077,
            5.021777977595591,
            -2.4009877653308838,
            0.25,
            0.2784324147570728,
            0.13411889770848737,
            1.7215675852429273,
        ],
        mean: [0.5, -0.5],
        var: [2.0, 3.0],
        input: [
            1.0603951061323535,
            -1.0603951061323535,
            0.5301975530661768,
            -0.5772540681943418,
            -0.0,
            -0.2886270340971709,
            0.2650987765330884,
            3.181185318397061,
            -2.120790212264707,
            -0.2886270340971709,
            -0.2886270340971709,
            0.2886270340971709,
        ],
        weight: [-3.9764816479963256, 7.215675852429272],
    },
];

#[test]
fn values_gradients_and_running_statistics_are_pytorchs() -> Outcome {
    for device in devices()? {
        for expected in &EXPECTED {
            let of = |values: &[f64], shape: &[i64]| Tensor::from_slice(values, shape, device);
            let x = of(&X, &[2, 2, 3])?.requires_grad_(true)?;
            let weight = of(&[1.5, -0.5], &[2])?.requires_grad_(true)?;
            let bias = of(&[0.25, 1.0], &[2])?.requires_grad_(true)?;
            let (mean, var) = (of(&[0.5, -0.5], &[2])?, of(&[2.0, 3.0], &[2])?);
            let options = BatchNormOptions::new().weight(&weight).bias(&bias);
            let options = options.training(expected.training).momentum(0.2).eps(1e-3);
            let y = x.batch_norm_with(&mean, &var, options)?;
            close(&y, &expected.y, 1e-14)?;
            close(&mean, &expected.mean, 1e-15)?;
            close(&var, &expected.var, 1e-15)?;
            // PyTorch leaves their versions at 0; here what was written is known to be.
            let version = u64::from(expected.training);
            assert_eq!((mean.version() as u64, var.version() as u64), (version, version));
            assert!(!mean.requires_grad() && mean.grad_fn().is_none());
            y.mul(&of(&G, &[2, 2, 3])?)?.sum()?.backward()?;
            close(&x.grad().unwrap(), &expected.input, 1e-13)?;
            close(&weight.grad().unwrap(), &expected.weight, 1e-13)?;
            close(&bias.grad().unwrap(), &[1.75, 4.0], 1e-14)?;
        }
    }
    Ok(())
}

#[test]
fn channels_last_stays_channels_last() -> Outcome {
    let ones = Tensor::ones(&[3], DType::F32)?;
    for (shape, order) in
        [(&[2, 4, 5, 3][..], &[0, 3, 1, 2][..]), (&[2, 2, 4, 5, 3], &[0, 4, 1, 2, 3])]
    {
        let x = Tensor::randn(shape, DType::F32)?.permute(order)?;
        let dense = x.contiguous()?;
        for training in [true, false] {
            let run = |x: &Tensor| -> Result<[Tensor; 4]> {
                let leaf = x.detach().requires_grad_(true)?;
                let (mean, var) = (ones.clone_tensor()?, ones.clone_tensor()?);
                let options = BatchNormOptions::new().weight(&ones).training(training);
                let y = leaf.batch_norm_with(&mean, &var, options)?;
                y.mul(&y)?.mul(&y)?.sum()?.backward()?;
                Ok([y.detach(), leaf.grad().unwrap(), mean, var])
            };
            let (last, row_major) = (run(&x)?, run(&dense)?);
            assert_eq!((last[0].strides(), last[1].strides()), (x.strides(), x.strides()));
            assert_eq!(row_major[0].strides(), dense.strides());
            for (a, b) in last.iter().zip(&row_major) {
                close(a, &b.to(DType::F64)?.to_vec::<f64>()?, 2e-5)?;
            }
        }
    }
    Ok(())
}

/// PyTorch's strides of the result for shapes and strides of the input.
#[test]
fn results_lie_as_pytorchs_do() -> Outcome {
    let cases: [([i64; 4], [i64; 4], [usize; 4]); 6] = [
        ([1, 4, 1, 5], [1, 1, 1, 4], [20, 1, 20, 4]),
        ([2, 3, 4, 5], [60, 1, 15, 3], [60, 1, 15, 3]),
        ([2, 3, 4, 5], [1, 8, 2, 24], [60, 20, 5, 1]),
        ([2, 3, 4, 5], [20, 40, 5, 1], [60, 20, 5, 1]),
        ([2, 3, 4, 5], [120, 1, 30, 6], [60, 1, 15, 3]),
        ([2, 1, 4, 5], [20, 20, 5, 1], [20, 20, 5, 1]),
    ];
    for (shape, strides, expected) in cases {
        let x = Tensor::randn(&[400], DType::F32)?.as_strided(&shape, &strides, 0)?;
        let one = Tensor::ones(&[shape[1]], DType::F32)?;
        let y = x.batch_norm(&one, &one)?;
        for dim in (0..4).filter(|&dim| shape[dim] > 1) {
            assert_eq!(y.strides()[dim], expected[dim], "{shape:?} {strides:?}");
        }
    }
    Ok(())
}

/// Above the sizes at which work is divided: the same as by plain operations.
#[test]
fn large_inputs_agree_with_plain_operations() -> Outcome {
    for shape in [&[4, 3, 40_000][..], &[40_000, 3], &[3, 70, 30, 31], &[200, 130]] {
        let x = Tensor::randn(shape, DType::F64)?.add(3.0)?.requires_grad_(true)?;
        let options = BatchNormOptions::new().training(true);
        let y = x.batch_norm_with(None, None, options)?;
        let dims: Vec<i64> = (0..shape.len() as i64).filter(|&dim| dim != 1).collect();
        let mean = |x: &Tensor| x.mean_with(SumOptions::from(&dims[..]).keepdim(true));
        let centered = x.sub(&mean(&x)?)?;
        let plain = centered.div(&mean(&centered.mul(&centered)?)?.add(1e-5)?.sqrt()?)?;
        let (found, expected) = (y.to_vec::<f64>()?, plain.to_vec::<f64>()?);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
        let weights = Tensor::randn(shape, DType::F64)?;
        let of = |y: &Tensor| -> Result<Vec<f64>> {
            let loss = y.mul(&weights)?.sum()?;
            grad(&[&loss], &[&x], GradOptions::default())?[0].as_ref().unwrap().to_vec()
        };
        let (found, expected) = (of(&y)?, of(&plain)?);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
        // In evaluation nothing is added up.
        let channels = [shape[1]];
        let (center, spread) =
            (Tensor::full(&channels, 3.0, DType::F64)?, Tensor::full(&channels, 4.0, DType::F64)?);
        let y = x.batch_norm_with(&center, &spread, BatchNormOptions::new().eps(0.0))?;
        let plain = x.sub(3.0)?.mul(0.5)?;
        let (found, expected) = (y.to_vec::<f64>()?, plain.to_vec::<f64>()?);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
        let (found, expected) = (of(&y)?, of(&plain)?);
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    Ok(())
}

/// Halves beside float32 parameters: gradients have their tensors' dtypes, recorded or not.
#[test]
fn mixed_precision_gives_each_gradient_its_dtype() -> Outcome {
    for training in [true, false] {
        let x = Tensor::randn(&[8, 3, 5], DType::F32)?.to(DType::BF16)?.requires_grad_(true)?;
        let weight = Tensor::ones(&[3], DType::F32)?.mul(1.5)?.requires_grad_(true)?;
        let bias = Tensor::ones(&[3], DType::F32)?.requires_grad_(true)?;
        let (mean, var) = (Tensor::zeros(&[3], DType::F32)?, Tensor::ones(&[3], DType::F32)?);
        let run = |create_graph: bool| {
            let options = BatchNormOptions::new().weight(&weight).bias(&bias).training(training);
            let y = x.batch_norm_with(&mean.clone_tensor()?, &var.clone_tensor()?, options)?;
            assert_eq!(y.dtype(), DType::BF16);
            let loss = y.mul(&y)?.sum()?;
            let options = GradOptions { create_graph, ..GradOptions::default() };
            grad(&[&loss], &[&x, &weight, &bias], options)
        };
        let (fused, recorded) = (run(false)?, run(true)?);
        for ((fused, recorded), of) in fused.iter().zip(&recorded).zip([&x, &weight, &bias]) {
            let (fused, recorded) = (fused.as_ref().unwrap(), recorded.as_ref().unwrap());
            assert_eq!((fused.dtype(), recorded.dtype()), (of.dtype(), of.dtype()));
            let expected: Vec<f64> = recorded.detach().to(DType::F64)?.to_vec()?;
            close(fused, &expected, 0.02)?;
        }
    }
    Ok(())
}

#[test]
fn one_launch_keeps_two_numbers_a_channel() -> Outcome {
    for device in devices()? {
        device::set_chaos(device, None);
        let x = Tensor::ones(&[64, 16, 32], (DType::F32, device))?.requires_grad_(true)?;
        let [mean, var] = [(); 2].map(|()| Tensor::ones(&[16], (DType::F32, device)));
        let (mean, var) = (mean?, var?);
        let before = memory::memory_allocated(device);
        let counts = Arc::new(LaunchCounts::default());
        let observing = observe(counts.clone());
        let y = x.batch_norm_with(&mean, &var, BatchNormOptions::new().training(true))?;
        drop(observing);
        assert_eq!(counts.all().values().map(|count| count.launches).sum::<u64>(), 1);
        // Blocks are multiples of 512 bytes: the result, mean and deviation.
        let kept = memory::memory_allocated(device) - before;
        assert_eq!(kept, 64 * 16 * 32 * 4 + 2 * 512);
        drop(y);
        assert_eq!(memory::memory_allocated(device), before);
    }
    Ok(())
}

/// In evaluation with a weight that is not trained nothing of the input is kept.
#[test]
fn evaluation_lets_the_input_go() -> Outcome {
    let device = device::private_cpu(&Default::default())?;
    let leaf = Tensor::ones(&[64, 16, 32], (DType::F32, device))?.requires_grad_(true)?;
    let one = Tensor::ones(&[16], (DType::F32, device))?;
    let hidden = leaf.add(1.0)?;
    let before = memory::memory_allocated(device);
    let y = hidden.batch_norm_with(&one, &one, BatchNormOptions::new().weight(&one))?;
    drop(hidden);
    assert_eq!(memory::memory_allocated(device), before);
    y.sum()?.backward()?;
    close(&leaf.grad().unwrap().narrow(0, 0, 1)?, &[1.0 / 1.00001f64.sqrt(); 512], 1e-6)
}

#[test]
fn a_batch_without_values_has_gradients_of_zero() -> Outcome {
    let x = Tensor::zeros(&[0, 2, 3], DType::F32)?.requires_grad_(true)?;
    let weight = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    let (mean, var) = (Tensor::zeros(&[2], DType::F32)?, Tensor::ones(&[2], DType::F32)?);
    let options = BatchNormOptions::new().weight(&weight).training(true);
    let y = x.batch_norm_with(&mean, &var, options)?;
    y.sum()?.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [0.0, 0.0]);
    assert_eq!((mean.to_vec::<f32>()?, var.to_vec::<f32>()?), (vec![0.0; 2], vec![1.0; 2]));
    Ok(())
}

/// What PyTorch refuses, with its words where it has clear ones; and nothing is written.
#[test]
fn what_cannot_be_normalized_is_refused() -> Outcome {
    let x = Tensor::ones(&[4, 3], DType::F32)?;
    let of = |size: i64, dtype: DType| Tensor::ones(&[size], dtype);
    let (mean, var) = (of(3, DType::F32)?, of(3, DType::F32)?);
    let train = || BatchNormOptions::new().training(true);
    let refused = |result: Result<Tensor>, words: &str| {
        let text = result.map(drop).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    };
    let single = Tensor::ones(&[1, 3, 1], DType::F32)?;
    let words = "Expected more than 1 value per channel when training, got input size [1, 3, 1]";
    refused(single.batch_norm_with(&mean, &var, train()), words);
    single.batch_norm(&mean, &var)?;
    refused(x.batch_norm(None, None), "running_mean must be defined in evaluation mode");
    refused(x.batch_norm(&mean, None), "running_var must be defined in evaluation mode");
    refused(x.batch_norm_with(&mean, None, train()), "neither be None");
    refused(x.batch_norm_with(&mean, &var, train().eps(-1.0)), "eps must not be negative");
    x.batch_norm_with(&mean, &var, BatchNormOptions::new().eps(0.0))?;
    refused(mean.batch_norm(&mean, &var), "should have shape");
    refused(x.batch_norm(&of(4, DType::F32)?, &var), "running_mean should have shape [3]");
    let four = of(4, DType::F32)?;
    refused(x.batch_norm_with(&mean, &var, train().weight(&four)), "weight should have shape [3]");
    let half = of(3, DType::F16)?;
    refused(x.batch_norm_with(None, None, train().weight(&half)), "weight is float16");
    refused(x.batch_norm(&mean, &half), "running_var is float16");
    let double = x.to(DType::F64)?;
    refused(double.batch_norm(&mean, &var), "running_mean is float32");
    let whole = x.to(DType::I64)?;
    refused(whole.batch_norm_with(None, None, train()), "int64");
    let leaf = of(3, DType::F32)?.requires_grad_(true)?;
    refused(x.batch_norm_with(&leaf, &var, train()), "not differentiable");
    refused(x.batch_norm(&leaf, &var), "not differentiable");
    no_grad(|| x.batch_norm(&leaf, &var))?;
    // PyTorch writes over these and gives numbers that mean nothing.
    refused(x.batch_norm_with(&mean, &mean, train()), "share memory");
    let spread = of(1, DType::F32)?.expand(&[3])?;
    refused(x.batch_norm_with(&spread, &var, train()), "share memory");
    let row = x.select(0, 0)?;
    refused(x.batch_norm_with(&row, &var, train()), "share memory");
    let there = mean.to(device::private_cpu(&Default::default())?)?;
    assert!(x.batch_norm(&there, &var).unwrap_err().is_device());
    assert_eq!((mean.to_vec::<f32>()?, mean.version()), (vec![1.0; 3], 0));
    Ok(())
}

/// Backward in evaluation needs the running statistics as they were.
#[test]
fn statistics_written_after_evaluation_are_noticed() -> Outcome {
    let x = Tensor::randn(&[4, 3], DType::F32)?.requires_grad_(true)?;
    let (mean, var) = (Tensor::zeros(&[3], DType::F32)?, Tensor::ones(&[3], DType::F32)?);
    let y = x.batch_norm(&mean, &var)?;
    let trained = x.batch_norm_with(&mean, &var, BatchNormOptions::new().training(true))?;
    // Another step of training does not disturb the first: its statistics are its own.
    x.batch_norm_with(&mean, &var, BatchNormOptions::new().training(true))?;
    trained.sum()?.backward()?;
    assert!(y.sum()?.backward().unwrap_err().is_autograd());
    Ok(())
}
