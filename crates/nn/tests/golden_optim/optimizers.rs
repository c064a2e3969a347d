//! Thirty steps of every optimizer.

use plimsoll_nn::saved;
use plimsoll_tensor::{Device, Result, memory};
use serde_json::Value;

use crate::objective::{assert_near, devices, made, params, values};
use crate::states::{assert_same, cases, numbers, state};

fn golden() -> Vec<Value> {
    cases(include_str!("../golden/optimizers.json"))
}

fn assert_values(case: &Value, at: i64, found: &[f64]) {
    let name = case["name"].as_str().expect("a name");
    let expected = &case["values"][at.to_string()];
    if expected.is_null() {
        return;
    }
    // The product of momenta is a float32; roundings of a search along a line add up.
    let tolerance = match name.split('(').next() {
        Some("NAdam") => 1e-7,
        Some("LBFGS") => 1e-7,
        _ => 1e-11,
    };
    assert_near(&format!("{name} after {at} steps"), found, &numbers(expected), tolerance);
}

#[test]
fn thirty_steps_are_pytorchs() -> Result<()> {
    for device in devices()? {
        for case in golden() {
            let params = params(device)?;
            let mut optimizer = made(case["name"].as_str().expect("a name"), &params)?;
            for step in 1..=30 {
                optimizer.step(&params)?;
                assert_values(&case, step, &values(&params)?);
                if step == 10 && !case["state"].is_null() {
                    let own = optimizer.dynamic().state_dict();
                    let expected = without_shares(state(&case["state"])?);
                    assert_same(case["name"].as_str().expect("a name"), &own, &expected)?;
                }
            }
        }
        assert_eq!(memory::memory_allocated(device), 0, "everything was given back");
    }
    Ok(())
}

/// PyTorch's L-BFGS keeps the shares of its last iteration, which nobody reads again.
fn without_shares(state: saved::Value) -> saved::Value {
    let saved::Value::Dict(entries) = state else { return state };
    let kept = entries.into_iter().filter(|(key, _)| key.as_str() != Some("al"));
    saved::Value::Dict(kept.map(|(key, value)| (key, without_shares(value))).collect())
}

/// What PyTorch saved after ten steps is gone on with, and what was saved here too.
#[test]
fn training_goes_on_from_a_state() -> Result<()> {
    let goes_on = |case: &Value, device: Device, saved: &saved::Value, at: &[f64]| -> Result<()> {
        let params = params(device)?;
        // Other numbers than the state's, which it replaces.
        let name = case["name"].as_str().expect("a name");
        let plain = format!("{}()", name.split('(').next().expect("a name"));
        let mut optimizer = made(&plain, &params)?;
        optimizer.dynamic().load_state_dict(saved)?;
        plimsoll_tensor::no_grad(|| {
            let mut start = 0;
            params.iter().try_for_each(|parameter| {
                let tensor = parameter.tensor();
                let own = &at[start..start + tensor.numel()];
                let sizes: Vec<i64> = tensor.shape().iter().map(|&size| size as i64).collect();
                start += tensor.numel();
                let own = plimsoll_tensor::Tensor::from_slice(own, &sizes, Device::cpu())?;
                tensor.copy_(&own).map(drop)
            })
        })?;
        for _ in 10..30 {
            optimizer.step(&params)?;
        }
        assert_values(case, 30, &values(&params)?);
        Ok(())
    };
    for device in devices()? {
        for case in golden().iter().filter(|case| !case["state"].is_null()) {
            let at = numbers(&case["values"]["10"]);
            goes_on(case, device, &state(&case["state"])?, &at)?;
            let params = params(device)?;
            let mut optimizer = made(case["name"].as_str().expect("a name"), &params)?;
            for _ in 0..10 {
                optimizer.step(&params)?;
            }
            goes_on(case, device, &optimizer.dynamic().state_dict(), &values(&params)?)?;
        }
    }
    Ok(())
}
