//! Every layer beside PyTorch's: its text, the keys and shapes of its state, and for that state its
//! results, gradients and buffers, as `golden/make_golden.py` wrote them down. The layers are made
//! in `layers.rs`; those that are computed, projected or called with packed sequences in
//! `computed.rs`.

mod computed;
mod layers;

use std::collections::BTreeSet;

use plimsoll_nn::{Forward, Module, StateDict};
use plimsoll_tensor::{DType, Device, Result, Tensor};
use serde_json::Value;

fn golden() -> Vec<Value> {
    serde_json::from_str(include_str!("../golden/layers.json")).expect("the script wrote it")
}

fn tensor(value: &Value) -> Result<Tensor> {
    let sizes: Vec<i64> =
        value["shape"].as_array().unwrap().iter().map(|size| size.as_i64().unwrap()).collect();
    if let Some(whole) = value["whole"].as_array() {
        let whole: Vec<i64> = whole.iter().map(|x| x.as_i64().unwrap()).collect();
        return Tensor::from_slice(&whole, &sizes, Device::cpu());
    }
    let data: Vec<f64> =
        value["data"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    Tensor::from_slice(&data, &sizes, Device::cpu())
}

/// 12 digits were written down. PyTorch's gradient of `Hardsigmoid` is a sixth in float32, whatever
/// the dtype.
fn assert_near(what: &str, found: &Tensor, expected: &Value) -> Result<()> {
    let expected = tensor(expected)?;
    assert_eq!(found.shape(), expected.shape(), "{what}");
    if expected.dtype() == DType::I64 {
        assert_eq!(found.to_vec::<i64>()?, expected.to_vec::<i64>()?, "{what}");
        return Ok(());
    }
    let pairs = found.contiguous()?.to_vec::<f64>()?.into_iter().zip(expected.to_vec::<f64>()?);
    for (at, (found, expected)) in pairs.enumerate() {
        let rounding = if what.starts_with("Hardsigmoid") { 1e-7 } else { 1e-9 };
        let allowed = rounding * (1.0 + expected.abs());
        assert!((found - expected).abs() <= allowed, "{what}[{at}]: {found} for {expected}");
    }
    Ok(())
}

fn check<M: Module + std::fmt::Display>(
    case: &Value,
    module: M,
    call: impl Fn(&M, &[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<()> {
    let name = case["name"].as_str().unwrap();
    assert_eq!(module.to_string(), case["text"].as_str().unwrap(), "{name}");
    module.to(DType::F64)?;
    let recorded = case["state"].as_object().unwrap();
    let keys: BTreeSet<String> = module.state_dict().keys().map(str::to_string).collect();
    assert_eq!(keys, recorded.keys().cloned().collect(), "{name}");
    let state: StateDict =
        recorded.iter().map(|(key, x)| Ok((key.clone(), tensor(x)?))).collect::<Result<_>>()?;
    module.load_state_dict(&state)?;

    let mut inputs = Vec::new();
    for (given, gradient) in
        case["inputs"].as_array().unwrap().iter().zip(case["input_gradients"].as_array().unwrap())
    {
        let input = tensor(given)?;
        inputs.push(if gradient.is_null() { input } else { input.requires_grad_(true)? });
    }
    let results = call(&module, &inputs)?;
    let expected = case["results"].as_array().unwrap();
    assert_eq!(results.len(), expected.len(), "{name}");
    let mut loss: Option<Tensor> = None;
    for (at, (found, expected)) in results.iter().zip(expected).enumerate() {
        assert_near(&format!("{name}: result {at}"), found, expected)?;
        let factors: Vec<f64> = (0..found.numel()).map(|x| (x as f64).cos()).collect();
        let sizes: Vec<i64> = found.shape().iter().map(|&size| size as i64).collect();
        let part = found.mul(&Tensor::from_slice(&factors, &sizes, Device::cpu())?)?.sum()?;
        loss = Some(match loss {
            Some(loss) => loss.add(&part)?,
            None => part,
        });
    }
    let loss = loss.expect("every layer has a result");
    if loss.requires_grad() {
        loss.backward()?;
    }
    for (key, parameter) in module.named_parameters() {
        let (found, expected) = (parameter.tensor().grad(), &case["gradients"][&key]);
        assert_eq!(found.is_none(), expected.is_null(), "{name}: gradient of {key}");
        if let Some(found) = found {
            assert_near(&format!("{name}: gradient of {key}"), &found, expected)?;
        }
    }
    for (at, (input, expected)) in
        inputs.iter().zip(case["input_gradients"].as_array().unwrap()).enumerate()
    {
        if let Some(found) = input.grad() {
            assert_near(&format!("{name}: gradient of input {at}"), &found, expected)?;
        } else {
            assert!(expected.is_null(), "{name}: input {at} has no gradient");
        }
    }
    for (key, buffer) in module.named_buffers() {
        assert_near(&format!("{name}: {key}"), &buffer.tensor(), &case["buffers"][&key])?;
    }
    Ok(())
}

/// One tensor to one.
fn one<M: for<'a> Forward<&'a Tensor, Output = Tensor>>(
    m: &M,
    x: &[Tensor],
) -> Result<Vec<Tensor>> {
    Ok(vec![m.call(&x[0])?])
}

/// Two tensors to one.
fn two<M>(m: &M, x: &[Tensor]) -> Result<Vec<Tensor>>
where
    M: for<'a> Forward<(&'a Tensor, &'a Tensor), Output = Tensor>,
{
    Ok(vec![m.call((&x[0], &x[1]))?])
}

/// Three tensors to one.
fn three<M>(m: &M, x: &[Tensor]) -> Result<Vec<Tensor>>
where
    M: for<'a> Forward<(&'a Tensor, &'a Tensor, &'a Tensor), Output = Tensor>,
{
    Ok(vec![m.call((&x[0], &x[1], &x[2]))?])
}

#[test]
fn layers_are_pytorchs() {
    let mut wrong = Vec::new();
    for case in golden() {
        let name = case["name"].as_str().unwrap().to_string();
        // Each by itself, so that all that differ are told at once.
        let outcome = std::panic::catch_unwind(|| -> Result<bool> {
            Ok(layers::run(&case)? || computed::run(&case)?)
        });
        match outcome {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => wrong.push(format!("{name}: nobody makes it here")),
            Ok(Err(error)) => wrong.push(format!("{name}: {error}")),
            Err(_) => wrong.push(format!("{name}: see above")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
