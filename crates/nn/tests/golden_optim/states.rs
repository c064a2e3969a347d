//! States as the golden files have them.

use plimsoll_nn::saved;
use plimsoll_tensor::{DType, Device, Result, Tensor};
use serde_json::Value;

/// The cases of a golden file.
pub(crate) fn cases(text: &str) -> Vec<Value> {
    serde_json::from_str(text).expect("the script wrote it")
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|x| x.as_f64().expect("a number")).collect()
}

/// A state from JSON, whose keys are texts: numbers among them are numbers again. Counts are in
/// float32, as PyTorch has them.
pub(crate) fn state(value: &Value) -> Result<saved::Value> {
    Ok(match value {
        Value::Null => saved::Value::None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().expect("a number").into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => {
            saved::Value::List(values.iter().map(state).collect::<Result<_>>()?)
        }
        Value::Object(entries) if entries.contains_key("shape") => {
            let sizes: Vec<i64> =
                numbers(&entries["shape"]).into_iter().map(|size| size as i64).collect();
            Tensor::from_slice(&numbers(&entries["data"]), &sizes, Device::cpu())?.into()
        }
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                let key = match key.parse::<i64>() {
                    Ok(number) => saved::Value::from(number),
                    Err(_) => key.as_str().into(),
                };
                Ok((key, state(value)?))
            };
            saved::Value::Dict(entries.iter().map(entry).collect::<Result<_>>()?)
        }
    })
}

/// Whether a state has what PyTorch's has, under the same keys; numbers to about 12 digits.
pub(crate) fn assert_same(what: &str, found: &saved::Value, expected: &saved::Value) -> Result<()> {
    match (found, expected) {
        (saved::Value::Dict(found), saved::Value::Dict(expected)) => {
            let mut keys: Vec<String> = found.iter().map(|(key, _)| format!("{key:?}")).collect();
            let mut wanted: Vec<String> =
                expected.iter().map(|(key, _)| format!("{key:?}")).collect();
            keys.sort();
            wanted.sort();
            assert_eq!(keys, wanted, "{what}");
            for (key, value) in expected.iter() {
                let own = found.get(key.clone()).expect("the keys are the same");
                assert_same(&format!("{what}.{key:?}"), own, value)?;
            }
        }
        (saved::Value::Tensor(found), saved::Value::Tensor(expected)) => {
            assert_eq!(found.shape(), expected.shape(), "{what}");
            // What is kept as a float32 has 7 digits.
            let tolerance = if found.dtype() == DType::F64 { 1e-9 } else { 1e-6 };
            let (found, expected) = (found.to_f64_vec()?, expected.to_f64_vec()?);
            crate::objective::assert_near(what, &found, &expected, tolerance);
        }
        _ => match (found.as_list(), expected.as_list()) {
            (Some(found), Some(expected)) => {
                assert_eq!(found.len(), expected.len(), "{what}");
                for (found, expected) in found.iter().zip(expected) {
                    assert_same(what, found, expected)?;
                }
            }
            _ => match (found.to_f64(), expected.to_f64()) {
                (Some(found), Some(expected)) => {
                    crate::objective::assert_near(what, &[found], &[expected], 1e-9);
                }
                _ => assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{what}"),
            },
        },
    }
    Ok(())
}
