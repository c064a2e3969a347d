//! Gradients against differences. First order: what backward gives against central differences of
//! the oracle. Second order: what backward of a recorded backward gives against central differences
//! of the first-order gradients. Both in `float64`, element by element. First-order gradients at
//! the points beside are computed on a host device, whatever device is checked: two for each
//! element, they are nearly all of the work.

use plimsoll_core::{DType, Device, Error, Result};
use plimsoll_tensor::{BackwardOptions, GradOptions, Tensor, grad};

use crate::cases::{Arrays, Inputs, Instance};
use crate::oracle::{Array, Number};
use crate::subject::{self, Stage};

/// Half the distance over which differences are taken; errors are about its square and 1e-16 over
/// it.
const STEP: f64 = 1e-5;
/// How far a gradient may lie from the difference, absolutely below 1 and relatively above.
const CLOSE: f64 = 2e-6;
/// How far two ways to compute the same gradient may lie apart.
const SAME: f64 = 1e-11;

/// What the gradients of a `float64` instance are to be: differences, the same for every device.
#[derive(Debug)]
pub struct Truth {
    point: Point,
    /// Of each input that has a gradient.
    firsts: Vec<Array>,
    /// Of the sums of scaled gradients, in those inputs and in the incoming gradients; none where
    /// nobody differentiates twice.
    seconds: Vec<Array>,
}

impl Truth {
    /// Takes differences of the oracle, and of the first-order gradients that `host` computes.
    pub fn of(instance: &Instance<'_>, host: Device) -> Result<Truth> {
        assert_eq!(instance.dtype, DType::F64, "differences are taken in float64");
        let point = Point::of(instance);
        let inputs = instance.case.gradients.len();
        let firsts = (0..inputs).map(|place| first_differences(instance, &point, place)).collect();
        let places = if instance.case.twice { inputs + point.incoming.len() } else { 0 };
        let seconds = (0..places)
            .map(|place| second_differences(instance, &point, place, host))
            .collect::<Result<_>>()?;
        Ok(Truth { point, firsts, seconds })
    }

    /// Checks first- and second-order gradients on `device`. `Ok(None)` if they are right.
    pub fn check(&self, instance: &Instance<'_>, device: Device) -> Result<Option<String>> {
        let recorded = gradients(instance, &self.point, device, true)?;
        let fused = backward_of_sum(instance, &self.point, device)?;
        for (place, &input) in instance.case.gradients.iter().enumerate() {
            let label = |what: &str| format!("{what} of input {input}");
            if let Some(wrong) = apart(&recorded[place], &self.firsts[place], CLOSE) {
                return Ok(Some(label("gradient") + ": " + &wrong));
            }
            if let Some(wrong) = apart(&fused[place], &recorded[place], SAME) {
                return Ok(Some(label("plain backward against recorded backward") + ": " + &wrong));
            }
        }
        if !instance.case.twice {
            return Ok(None);
        }
        let seconds = second_gradients(instance, &self.point, device)?;
        assert_eq!(seconds.len(), self.seconds.len(), "one for each place");
        for (place, (second, expected)) in seconds.iter().zip(&self.seconds).enumerate() {
            if let Some(wrong) = apart(&subject::read(second)?, expected, CLOSE) {
                let of = match instance.case.gradients.get(place) {
                    Some(input) => format!("input {input}"),
                    None => format!("incoming gradient {}", place - self.firsts.len()),
                };
                return Ok(Some(format!("second-order gradient of {of}: {wrong}")));
            }
        }
        Ok(None)
    }
}

/// Takes the gradients that [`Truth::check`] checks, once each, and compares them with nothing.
pub fn run(instance: &Instance<'_>, device: Device) -> Result<()> {
    let point = Point::of(instance);
    gradients(instance, &point, device, true)?;
    backward_of_sum(instance, &point, device)?;
    if instance.case.twice {
        second_gradients(instance, &point, device)?;
    }
    Ok(())
}

/// Where gradients are taken: the inputs, and the gradients that flow in from the results.
#[derive(Clone, Debug)]
struct Point {
    inputs: Vec<Array>,
    incoming: Vec<Array>,
}

impl Point {
    fn of(instance: &Instance<'_>) -> Point {
        let arrays = instance.arrays();
        let outputs = instance.case.expected(&arrays);
        let incoming = (0..)
            .zip(&outputs)
            .filter(|(_, output)| output.dtype() == DType::F64)
            .map(|(i, output)| weights(output.shape(), i))
            .collect();
        Point { inputs: arrays.arrays, incoming }
    }
}

/// Numbers between 0.5 and 1.5, all different, that stand for a gradient.
fn weights(shape: &[usize], which: usize) -> Array {
    let mut n = which * 7;
    Array::build(DType::F64, shape, |_| {
        n += 1;
        0.5 + (n as f64 * 0.618_033_988_75).fract()
    })
}

/// A copy of `array` with element `position` moved by `by`.
fn moved(array: &Array, position: usize, by: f64) -> Array {
    let mut values = array.values().to_vec();
    values[position] = Number::Float(values[position].to_f64() + by);
    Array::new(array.dtype(), array.shape(), values)
}

fn dot(a: &[Array], b: &[Array]) -> f64 {
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.values().iter().zip(b.values()));
    pairs.map(|(x, y)| x.to_f64() * y.to_f64()).sum()
}

/// Central differences of the oracle's `sum(incoming * result)` in every element of an input.
fn first_differences(instance: &Instance<'_>, point: &Point, place: usize) -> Array {
    let input = instance.case.gradients[place];
    let value = |inputs: Vec<Array>| {
        let arrays = Arrays { arrays: inputs, dtype: DType::F64, other: DType::F64 };
        let floats: Vec<Array> = instance
            .case
            .expected(&arrays)
            .into_iter()
            .filter(|output| output.dtype() == DType::F64)
            .collect();
        dot(&floats, &point.incoming)
    };
    differences(&point.inputs[input], |nudged| {
        let mut inputs = point.inputs.clone();
        inputs[input] = nudged;
        value(inputs)
    })
}

fn differences(at: &Array, mut value: impl FnMut(Array) -> f64) -> Array {
    let values = (0..at.numel())
        .map(|position| {
            let above = value(moved(at, position, STEP));
            let below = value(moved(at, position, -STEP));
            Number::Float((above - below) / (2.0 * STEP))
        })
        .collect();
    Array::new(DType::F64, at.shape(), values)
}

/// Leaves that want gradients at `point`, laid out as the instance says; and the call's float
/// results.
fn forward(
    instance: &Instance<'_>,
    point: &Point,
    device: Device,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    let stage = Stage::new(instance, device)?;
    let mut tensors = Vec::new();
    let mut leaves = Vec::new();
    for (i, staged) in stage.inputs.tensors.iter().enumerate() {
        if !instance.case.gradients.contains(&i) {
            tensors.push(staged.clone());
            continue;
        }
        // At the point itself the leaf has the instance's layout; a moved point may not fit an
        // expanded one.
        let same = subject::read(staged)? == point.inputs[i];
        let values = if same { staged.clone() } else { subject::tensor(&point.inputs[i], device)? };
        let leaf = values.detach().requires_grad_(true)?;
        // A leaf may not be written in place; a copy of it may.
        let written = instance.case.writes.contains(&i);
        tensors.push(if written { leaf.clone_tensor()? } else { leaf.clone() });
        leaves.push(leaf);
    }
    let (dtype, other) = (instance.dtype, instance.other);
    let outputs = instance.case.call(&Inputs { tensors, device, dtype, other })?;
    let floats = outputs.into_iter().filter(|output| output.dtype() == DType::F64).collect();
    Ok((leaves, floats))
}

fn incoming(point: &Point, device: Device) -> Result<Vec<Tensor>> {
    point.incoming.iter().map(|array| subject::tensor(array, device)).collect()
}

/// Zeros stand for a gradient that does not exist.
fn or_zeros(gradient: Option<Tensor>, like: &Tensor) -> Result<Tensor> {
    gradient.map_or_else(|| like.detach().zeros_like(), Ok)
}

/// The gradients at `point`, by `grad`.
fn gradients(
    instance: &Instance<'_>,
    point: &Point,
    device: Device,
    create_graph: bool,
) -> Result<Vec<Array>> {
    let (leaves, outputs) = forward(instance, point, device)?;
    let found = grad_of(&outputs, &leaves, incoming(point, device)?, create_graph)?;
    found.iter().map(subject::read).collect()
}

fn grad_of(
    outputs: &[Tensor],
    leaves: &[Tensor],
    incoming: Vec<Tensor>,
    create_graph: bool,
) -> Result<Vec<Tensor>> {
    let (mut connected, mut given) = (Vec::new(), Vec::new());
    for (output, gradient) in outputs.iter().zip(incoming) {
        if output.requires_grad() {
            connected.push(output);
            given.push(Some(gradient));
        }
    }
    if connected.is_empty() {
        return leaves.iter().map(|leaf| leaf.detach().zeros_like()).collect();
    }
    let options = GradOptions {
        grad_outputs: given,
        create_graph,
        allow_unused: true,
        ..GradOptions::default()
    };
    let found = grad(&connected, &leaves.iter().collect::<Vec<_>>(), options)?;
    found.into_iter().zip(leaves).map(|(gradient, leaf)| or_zeros(gradient, leaf)).collect()
}

/// The gradients at `point` as a program gets them: `backward()` of a number, without recording.
fn backward_of_sum(instance: &Instance<'_>, point: &Point, device: Device) -> Result<Vec<Array>> {
    let (leaves, outputs) = forward(instance, point, device)?;
    let mut total: Option<Tensor> = None;
    for (output, weight) in outputs.iter().zip(incoming(point, device)?) {
        let part = output.mul(&weight)?.sum()?;
        total = Some(match total {
            Some(sum) => sum.add(&part)?,
            None => part,
        });
    }
    let total =
        total.ok_or_else(|| Error::invalid_argument("a gradient case has float results"))?;
    if total.requires_grad() {
        total.backward_with(BackwardOptions::default())?;
    }
    leaves.iter().map(|leaf| subject::read(&or_zeros(leaf.grad(), leaf)?)).collect()
}

/// What the first-order gradient of input `place` is scaled by before it is differentiated again.
fn scale(shape: &[usize], place: usize) -> Array {
    weights(shape, 3 + place)
}

/// Gradients of `sum(scale * gradient)` in the inputs and in the incoming gradients.
fn second_gradients(instance: &Instance<'_>, point: &Point, device: Device) -> Result<Vec<Tensor>> {
    let (leaves, outputs) = forward(instance, point, device)?;
    let flowing: Vec<Tensor> = incoming(point, device)?
        .iter()
        .map(|tensor| tensor.requires_grad_(true))
        .collect::<Result<_>>()?;
    let firsts = grad_of(&outputs, &leaves, flowing.clone(), true)?;
    let wanted: Vec<Tensor> = leaves.iter().chain(&flowing).cloned().collect();
    let given = firsts
        .iter()
        .enumerate()
        .map(|(place, first)| subject::tensor(&scale(first.shape(), place), device))
        .collect::<Result<_>>()?;
    grad_of(&firsts, &wanted, given, false)
}

/// Differences of `sum(scale * gradient)`, with first-order gradients from the device `host`.
fn second_differences(
    instance: &Instance<'_>,
    point: &Point,
    place: usize,
    host: Device,
) -> Result<Array> {
    let mut failure = None;
    let value = |nudged: Point| match gradients(instance, &nudged, host, false) {
        Ok(firsts) => {
            let scales = firsts.iter().enumerate();
            let scales: Vec<Array> =
                scales.map(|(place, first)| scale(first.shape(), place)).collect();
            dot(&firsts, &scales)
        }
        Err(error) => {
            failure = Some(error);
            f64::NAN
        }
    };
    let differences = nudge(instance, point, place, instance.case.gradients.len(), value);
    failure.map_or(Ok(differences), Err)
}

/// Differences of `value` in one of a point's inputs, or past those in one of its incoming
/// gradients.
fn nudge(
    instance: &Instance<'_>,
    point: &Point,
    place: usize,
    inputs: usize,
    mut value: impl FnMut(Point) -> f64,
) -> Array {
    if place < inputs {
        let input = instance.case.gradients[place];
        differences(&point.inputs[input], |nudged| {
            let mut point = point.clone();
            point.inputs[input] = nudged;
            value(point)
        })
    } else {
        let output = place - inputs;
        differences(&point.incoming[output], |nudged| {
            let mut point = point.clone();
            point.incoming[output] = nudged;
            value(point)
        })
    }
}

/// Says where `actual` lies further than `tolerance` from `expected`.
fn apart(actual: &Array, expected: &Array, tolerance: f64) -> Option<String> {
    if actual.shape() != expected.shape() {
        return Some(format!("shape {:?} instead of {:?}", actual.shape(), expected.shape()));
    }
    let pairs = actual.values().iter().zip(expected.values()).enumerate();
    pairs
        .map(|(i, (a, e))| (i, a.to_f64(), e.to_f64()))
        .find(|(_, a, e)| {
            let distance = (a - e).abs();
            distance.is_nan() || distance > tolerance * e.abs().max(1.0)
        })
        .map(|(i, a, e)| format!("element {i} is {a:e} instead of {e:e}"))
}
