//! A linear map of GELU's values that keeps what goes into GELU: the values and gradients of the
//! two operations one by one, with less kept. And gradients of a table that is used twice, where
//! backward adds one to the other.

mod counted;

use counted::{devices, launches, numbers};
use plimsoll_tensor::*;

type Outcome = Result<()>;

const ROWS: i64 = 30;
const FROM: i64 = 24;
const TO: i64 = 7;

/// The input, weight and bias, as leaves.
fn leaves(to: impl Into<plimsoll_tensor::To> + Copy) -> Result<[Tensor; 3]> {
    let leaf = |sizes: &[i64]| numbers(sizes, to)?.mul(3.0)?.detach().requires_grad_(true);
    Ok([leaf(&[5, ROWS / 5, FROM])?, leaf(&[TO, FROM])?, leaf(&[TO])?])
}

fn options(approximate: Approximate) -> GeluOptions {
    GeluOptions::new().approximate(approximate)
}

/// The same by two operations.
fn apart([x, weight, bias]: &[Tensor; 3], approximate: Approximate) -> Result<Tensor> {
    x.gelu_with(options(approximate))?.matmul(&weight.t()?)?.add(bias)
}

fn together([x, weight, bias]: &[Tensor; 3], approximate: Approximate) -> Result<Tensor> {
    x.gelu_linear(weight, Some(bias), options(approximate))
}

fn assert_close(found: &Tensor, expected: &Tensor, most: f64) -> Outcome {
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()));
    let (found, expected) = (found.to_f64_vec()?, expected.to_f64_vec()?);
    let largest = expected.iter().fold(1.0f64, |most, value| most.max(value.abs()));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= most * largest, "{found} instead of {expected}");
    }
    Ok(())
}

#[test]
fn values_and_gradients_are_those_of_the_operations_one_by_one() -> Outcome {
    let dtypes = [(DType::F64, 1e-12), (DType::F32, 1e-5), (DType::BF16, 0.05)];
    for device in [Device::cpu(), device::stand_in(Default::default())?] {
        for approximate in [Approximate::None, Approximate::Tanh] {
            for (dtype, most) in dtypes {
                let leaves = leaves((dtype, device))?;
                let results = [apart(&leaves, approximate)?, together(&leaves, approximate)?];
                assert_close(&results[1], &results[0], most)?;
                let slope = numbers(&[5, ROWS / 5, TO], (dtype, device))?;
                let gradients = |y: &Tensor, create_graph: bool| {
                    let grad_outputs = vec![Some(slope.clone())];
                    let options = GradOptions {
                        grad_outputs,
                        create_graph,
                        retain_graph: true,
                        ..GradOptions::default()
                    };
                    grad(&[y], &leaves.each_ref(), options)
                };
                let expected = gradients(&results[0], false)?;
                for create_graph in [false, true] {
                    for (found, expected) in
                        gradients(&results[1], create_graph)?.iter().zip(&expected)
                    {
                        assert_close(found.as_ref().unwrap(), expected.as_ref().unwrap(), most)?;
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn gradients_can_be_differentiated_again() -> Outcome {
    let leaves = leaves(DType::F64)?;
    let second = |y: Tensor| -> Result<Vec<Option<Tensor>>> {
        let options = || GradOptions { create_graph: true, ..GradOptions::default() };
        let first = grad(&[&y.mul(&y)?.sum()?], &[&leaves[0]], options())?.remove(0).unwrap();
        grad(&[&first.mul(&first)?.sum()?], &leaves.each_ref(), GradOptions::default())
    };
    for approximate in [Approximate::None, Approximate::Tanh] {
        let expected = second(apart(&leaves, approximate)?)?;
        for (found, expected) in second(together(&leaves, approximate)?)?.iter().zip(&expected) {
            assert_close(found.as_ref().unwrap(), expected.as_ref().unwrap(), 1e-11)?;
        }
    }
    Ok(())
}

#[test]
fn only_the_input_is_kept_and_backward_reads_it_once() -> Outcome {
    let mut all = Vec::new();
    for device in devices()? {
        let leaves = leaves((DType::F32, device))?;
        let before = memory::memory_allocated(device);
        let y = together(&leaves, Approximate::Tanh)?;
        // The result is all that is new: the input was there.
        let kept = memory::memory_allocated(device) - before;
        assert_eq!(kept, y.nbytes().next_multiple_of(512), "{device}");
        let gradient = y.ones_like()?;
        let scope = memory::peak_scope(device);
        let backward = BackwardOptions { gradient: Some(gradient), ..BackwardOptions::default() };
        let found = launches(device, || y.backward_with(backward))?;
        all.push(scope.allocated_bytes_peak() - before);
        let count = |name: &str| found.iter().filter(|launch| **launch == name).count();
        assert_eq!((count("gelu_tanh_both"), count("gelu_tanh")), (1, 0), "{device}: {found:?}");
    }
    assert_eq!((all[0], all[2]), (all[1], all[3]), "dry runs take the same");
    Ok(())
}

#[test]
fn what_is_not_wanted_is_not_made() -> Outcome {
    let device = device::stand_in(Default::default())?;
    let [x, weight, bias] = leaves((DType::F32, device))?;
    let run = |wanted: [bool; 3]| -> Result<(Vec<bool>, Vec<&'static str>)> {
        let leaf = |t: &Tensor, wanted: bool| t.detach().requires_grad_(wanted);
        let leaves = [leaf(&x, wanted[0])?, leaf(&weight, wanted[1])?, leaf(&bias, wanted[2])?];
        let y = together(&leaves, Approximate::None)?.sum()?;
        let found = launches(device, || y.backward())?;
        Ok((leaves.iter().map(|leaf| leaf.grad().is_some()).collect(), found))
    };
    for wanted in [[true, false, false], [false, true, false], [false, false, true]] {
        let (there, found) = run(wanted)?;
        assert_eq!(there, wanted);
        assert_eq!(found.contains(&"gelu_both"), wanted[0], "{found:?}");
        assert_eq!(found.contains(&"gelu"), wanted[1], "{found:?}");
    }
    let [x, weight, _] = leaves(DType::F64)?;
    let y = x.gelu_linear(&weight, None, GeluOptions::new())?;
    assert_close(&y, &x.gelu()?.matmul(&weight.t()?)?, 1e-12)?;
    y.sum()?.backward()?;
    assert!(x.grad().is_some() && weight.grad().is_some());
    Ok(())
}

#[test]
fn in_mixed_precision_the_factors_have_one_dtype() -> Outcome {
    let leaves = leaves(DType::F32)?;
    let run = |function: fn(&[Tensor; 3], Approximate) -> Result<Tensor>| -> Result<Vec<Tensor>> {
        leaves.iter().for_each(|leaf| leaf.set_grad(None).unwrap());
        let y = autocast(DeviceKind::Cpu, || function(&leaves, Approximate::Tanh))?;
        y.sum()?.backward()?;
        let mut results = vec![y.detach()];
        results.extend(leaves.iter().map(|leaf| leaf.grad().unwrap()));
        Ok(results)
    };
    let (found, expected) = (run(together)?, run(apart)?);
    assert_eq!(found[0].dtype(), DType::BF16);
    for (found, expected) in found.iter().zip(&expected) {
        assert_close(&found.to(DType::F64)?, &expected.to(DType::F64)?, 0.05)?;
    }
    Ok(())
}

#[test]
fn wrong_shapes_are_told() -> Outcome {
    let x = Tensor::zeros(&[2, 3], DType::F32)?;
    let error = |weight: &[i64]| -> Result<String> {
        let weight = Tensor::zeros(weight, DType::F32)?;
        Ok(x.gelu_linear(&weight, None, GeluOptions::new()).unwrap_err().to_string())
    };
    assert!(error(&[4, 5])?.contains("[2, 3]") && error(&[4, 5])?.contains("[4, 5]"));
    assert!(error(&[3])?.contains("gelu_linear"));
    let none = Tensor::zeros(&[0, 3], DType::F32)?;
    let weight = Tensor::zeros(&[4, 3], DType::F32)?.requires_grad_(true)?;
    let y = none.gelu_linear(&weight, None, GeluOptions::new())?;
    assert_eq!(y.shape(), [0, 4]);
    y.sum()?.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [0.0; 12]);
    Ok(())
}

#[test]
fn a_table_used_twice_has_one_gradient_added_to_the_other() -> Outcome {
    for device in devices()? {
        let table = numbers(&[9, 8], (DType::F64, device))?.requires_grad_(true)?;
        let index = Tensor::from_slice(&[3i64, 1, 3, 8], &[4], Device::cpu())?.to(device)?;
        let loss = table.embedding(&index)?.exp()?.sum()?.add(&table.mul(2.0)?.sum()?)?;
        let found = launches(device, || loss.backward())?;
        let gradient = table.grad().unwrap();
        assert!(found.contains(&"embedding_backward"), "{found:?}");
        assert!(!found.contains(&"add"), "{device}: {found:?}");
        if device.is_dry() {
            continue;
        }
        let rows = table.to_f64_vec()?;
        let times = |row: usize| f64::from([0, 1, 0, 2, 0, 0, 0, 0, 1][row]);
        for (at, gradient) in gradient.to_f64_vec()?.iter().enumerate() {
            let expected = 2.0 + times(at / 8) * rows[at].exp();
            assert!((gradient - expected).abs() < 1e-12, "{at}: {gradient} {expected}");
        }
    }
    Ok(())
}
