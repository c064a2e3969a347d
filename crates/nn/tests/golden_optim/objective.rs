//! What is optimized, and optimizers by the expressions of the golden files.

use plimsoll_nn::optim::{self, Fused, FusedRule, LineSearchFn, Optimizer};
use plimsoll_nn::{Parameter, saved};
use plimsoll_tensor::{DType, Device, Result, Tensor, device};

/// A CPU device and an accelerator, whose bytes are nobody else's.
pub(crate) fn devices() -> Result<Vec<Device>> {
    Ok(vec![device::private_cpu(&Default::default())?, device::stand_in(Default::default())?])
}

/// The parameters as the script makes them.
pub(crate) fn params(device: Device) -> Result<Vec<Parameter>> {
    let made = |at: i64, sizes: &[i64]| {
        let count = sizes.iter().product::<i64>();
        let values: Vec<f64> = (0..count).map(|i| ((i + 1 + at) as f64).sin()).collect();
        Parameter::new(&Tensor::from_slice(&values, sizes, device)?)
    };
    Ok(vec![made(0, &[3, 2])?, made(1, &[4])?])
}

/// The script's objective.
pub(crate) fn objective(params: &[Parameter]) -> Result<Tensor> {
    let mut loss: Option<Tensor> = None;
    for (at, parameter) in params.iter().enumerate() {
        let p = parameter.tensor();
        let count = p.numel() as i64;
        let sizes: Vec<i64> = p.shape().iter().map(|&size| size as i64).collect();
        let i = Tensor::arange(0, count, 1, (DType::F64, p.device()))?.view(&sizes[..])?;
        let factor = i.add(at as f64)?.cos()?.mul(0.25)?.add(0.5)?;
        let target = i.mul(2.0)?.add(at as f64)?.sin()?;
        let bend = p.mul(3.0)?.cos()?.mul(0.3)?;
        let part = p.sub(&target)?.square()?.mul(&factor)?.add(&bend)?.sum()?;
        loss = Some(match loss {
            Some(loss) => loss.add(&part)?,
            None => part,
        });
    }
    Ok(loss.expect("there are parameters"))
}

/// All values of all parameters.
pub(crate) fn values(params: &[Parameter]) -> Result<Vec<f64>> {
    let lists = params.iter().map(|parameter| parameter.tensor().detach().to_vec::<f64>());
    Ok(lists.collect::<Result<Vec<_>>>()?.concat())
}

pub(crate) fn assert_near(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let close = (found - expected).abs() <= tolerance * (1.0 + expected.abs());
        assert!(close, "{what}[{at}]: {found} for {expected}");
    }
}

/// Optimizers, of whatever rule.
pub(crate) enum Made {
    Fused(Box<dyn Optimizer>),
    Lbfgs(Box<optim::LBFGS>),
}

impl Made {
    pub(crate) fn dynamic(&mut self) -> &mut dyn Optimizer {
        match self {
            Made::Fused(optimizer) => optimizer.as_mut(),
            Made::Lbfgs(optimizer) => optimizer.as_mut(),
        }
    }

    /// A step with the gradients of the objective.
    pub(crate) fn step(&mut self, params: &[Parameter]) -> Result<()> {
        let closure = || {
            params.iter().try_for_each(|parameter| parameter.tensor().set_grad(None))?;
            let loss = objective(params)?;
            loss.backward()?;
            Ok(loss)
        };
        match self {
            Made::Fused(optimizer) => {
                closure()?;
                optimizer.step()
            }
            Made::Lbfgs(optimizer) => optimizer.step_with(closure).map(drop),
        }
    }
}

/// `name=value` pairs of an expression's arguments.
fn arguments(text: &str) -> Vec<(String, saved::Value)> {
    let inside = text.split_once('(').expect("an expression").1;
    let inside = inside.strip_suffix(')').expect("an expression");
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in inside.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    let pair = |part: &String| {
        let (name, value) = part.trim().split_once('=')?;
        Some((name.to_string(), literal(value)))
    };
    parts.iter().filter_map(pair).collect()
}

fn literal(text: &str) -> saved::Value {
    match text {
        "True" => true.into(),
        "False" => false.into(),
        _ if text.starts_with('(') => {
            let numbers = text.trim_matches(['(', ')']).split(',');
            saved::Value::Tuple(numbers.map(|number| literal(number.trim())).collect())
        }
        _ if text.starts_with('\'') => text.trim_matches('\'').into(),
        _ => match text.parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => text.parse::<f64>().expect("a number").into(),
        },
    }
}

fn fused<O: FusedRule + Default>(name: &str, params: &[Parameter]) -> Result<Made> {
    let mut options = O::default();
    for (key, value) in arguments(name) {
        let mut slots = options.slots();
        let (_, slot) = slots.iter_mut().find(|(own, _)| *own == key).expect("an option");
        slot.load(name, &key, &value)?;
    }
    Ok(Made::Fused(Box::new(Fused::new(params.to_vec(), options)?)))
}

/// The optimizer of an expression.
pub(crate) fn made(name: &str, params: &[Parameter]) -> Result<Made> {
    match name.split('(').next().expect("a name") {
        "SGD" => fused::<optim::SGDOptions>(name, params),
        "Adam" => fused::<optim::AdamOptions>(name, params),
        "AdamW" => fused::<optim::AdamWOptions>(name, params),
        "NAdam" => fused::<optim::NAdamOptions>(name, params),
        "RAdam" => fused::<optim::RAdamOptions>(name, params),
        "Adagrad" => fused::<optim::AdagradOptions>(name, params),
        "Adadelta" => fused::<optim::AdadeltaOptions>(name, params),
        "RMSprop" => fused::<optim::RMSpropOptions>(name, params),
        "Rprop" => fused::<optim::RpropOptions>(name, params),
        "Adamax" => fused::<optim::AdamaxOptions>(name, params),
        "Lion" => fused::<optim::LionOptions>(name, params),
        "LBFGS" => {
            let mut options = optim::LBFGSOptions::new();
            for (key, value) in arguments(name) {
                match key.as_str() {
                    "lr" => options.lr = value.to_f64().expect("a number"),
                    "max_iter" => options.max_iter = value.to_i64().expect("a whole number"),
                    "history_size" => options.history_size = value.to_i64().expect("as above"),
                    "line_search_fn" => options.line_search_fn = Some(LineSearchFn::StrongWolfe),
                    other => panic!("no option {other}"),
                }
            }
            Ok(Made::Lbfgs(Box::new(optim::LBFGS::new(params.to_vec(), options)?)))
        }
        other => panic!("no optimizer {other}"),
    }
}
