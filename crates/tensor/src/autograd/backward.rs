//! Asking for gradients: `backward` and `grad`, their options, and the gradients that they start
//! from. What then happens is in `engine.rs`.

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Phase, Site, enter_phase, with_site};
use smallvec::SmallVec;

use super::engine::{self, Goal, GraphPoint};
use super::mode;
use super::node::Edge;
use super::place::{GradientPlace, OneScope};
use crate::Tensor;

/// How [`Tensor::backward_with`] runs.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// The gradient of the tensor itself; only a one-element tensor can do without.
    pub gradient: Option<Tensor>,
    /// Keep what the graph saved, so that backward can run again.
    pub retain_graph: bool,
    /// Record backward itself, for gradients of gradients; keeps the graph too.
    pub create_graph: bool,
    /// Only these get gradients, leaves or not, and nothing behind them runs; empty means all
    /// leaves.
    pub inputs: Vec<Tensor>,
}

/// How [`grad`] runs.
#[derive(Clone, Debug, Default)]
pub struct GradOptions {
    /// The gradients of the outputs; empty means ones for one-element outputs.
    pub grad_outputs: Vec<Option<Tensor>>,
    /// Keep what the graph saved, so that backward can run again.
    pub retain_graph: bool,
    /// Record backward itself, for gradients of gradients; keeps the graph too.
    pub create_graph: bool,
    /// Give `None` for an input that the outputs do not depend on, instead of an error.
    pub allow_unused: bool,
}

impl Tensor {
    /// Computes the gradients of everything that led to this one-element tensor and adds them to
    /// the leaves.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2], plimsoll_tensor::Device::cpu())?;
    /// let x = x.requires_grad_(true)?;
    /// x.mul(&x)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(BackwardOptions::default())
    }

    /// As [`Tensor::backward`], with a given gradient, a retained graph, a recorded backward, or
    /// chosen leaves.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
    /// let y = x.mul(3)?;
    /// let gradient = Some(Tensor::ones(&[2], DType::F32)?);
    /// y.backward_with(BackwardOptions { gradient, ..Default::default() })?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn backward_with(&self, options: BackwardOptions) -> Result<()> {
        // Operations of backward count for the forward line that recorded them; what belongs to
        // none of them (the first gradient, copies into the leaves) counts for this call.
        with_site(Site::caller(), || run_backward(&[(self, None)], &options))
    }
}

/// [`Tensor::backward_with`] of several tensors in one pass, each with its own gradient; one
/// without starts from `options.gradient`, or from one if it has one element.
///
/// ```
/// use plimsoll_tensor::{BackwardOptions, DType, Tensor, backward};
/// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
/// let (y, z) = (x.mul(2)?, x.sum()?);
/// let gradient = Tensor::full(&[2], 10.0, DType::F32)?;
/// backward(&[(&y, Some(&gradient)), (&z, None)], BackwardOptions::default())?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [21.0, 21.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn backward(tensors: &[(&Tensor, Option<&Tensor>)], options: BackwardOptions) -> Result<()> {
    with_site(Site::caller(), || run_backward(tensors, &options))
}

/// [`backward`] from tensors and edges of the graph. With `inputs` only those, beside the options'
/// own, are reached, and nothing behind them runs: a leaf's place gets its gradient, and an edge of
/// a node keeps none.
///
/// ```
/// use plimsoll_tensor::{BackwardOptions, DType, GradientPlace, Tensor, backward_between};
/// let x = Tensor::ones(&[2], DType::F32)?.requires_grad_(true)?;
/// let (node, output) = x.mul(2)?.gradient_edge().unwrap();
/// let gradient = Tensor::full(&[2], 10.0, DType::F32)?;
/// let roots = [(GradientPlace::Edge(&node, output), Some(&gradient))];
/// backward_between(&roots, &[], BackwardOptions::default())?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [20.0, 20.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn backward_between(
    roots: &[(GradientPlace<'_>, Option<&Tensor>)],
    inputs: &[GradientPlace<'_>],
    options: BackwardOptions,
) -> Result<()> {
    with_site(Site::caller(), || {
        let own = options.inputs.iter().map(GradientPlace::from);
        let inputs: Vec<_> = own.chain(inputs.iter().copied()).collect();
        run_between(roots, &inputs, &options)
    })
}

fn run_backward(tensors: &[(&Tensor, Option<&Tensor>)], options: &BackwardOptions) -> Result<()> {
    let roots: SmallVec<[_; 1]> =
        tensors.iter().map(|&(tensor, gradient)| (tensor.into(), gradient)).collect();
    let inputs: SmallVec<[_; 1]> = options.inputs.iter().map(GradientPlace::from).collect();
    run_between(&roots, &inputs, options)
}

fn run_between(
    roots: &[(GradientPlace<'_>, Option<&Tensor>)],
    inputs: &[GradientPlace<'_>],
    options: &BackwardOptions,
) -> Result<()> {
    const OP: &str = "backward";
    let retain = options.retain_graph || options.create_graph;
    let _one = OneScope::enter();
    let start = |&(place, gradient): &(GradientPlace<'_>, Option<&Tensor>)| {
        root(OP, place, gradient.or(options.gradient.as_ref()), !retain)
    };
    let roots = roots.iter().map(start).collect::<Result<Vec<_>>>()?;
    let goal = if inputs.is_empty() {
        Goal::EveryLeaf
    } else {
        let places = places(OP, inputs)?;
        // A leaf gets its gradient from its accumulator; any other tensor keeps what passes
        // through.
        for input in inputs {
            if let GradientPlace::Tensor(tensor) = input {
                tensor.retain_grad()?;
            }
        }
        Goal::Reach(places)
    };
    engine::run(roots, goal, retain, options.create_graph).map(drop)
}

/// The gradients of `outputs` with respect to `inputs`, without touching any `.grad()`.
///
/// ```
/// use plimsoll_tensor::{DType, GradOptions, Tensor, grad};
/// let x = Tensor::full(&[], 3.0, DType::F64)?.requires_grad_(true)?;
/// let y = x.mul(&x)?.mul(&x)?;
/// let options = GradOptions { create_graph: true, ..GradOptions::default() };
/// let first = grad(&[&y], &[&x], options)?.remove(0).unwrap();
/// let second = grad(&[&first], &[&x], GradOptions::default())?.remove(0).unwrap();
/// assert_eq!((first.item::<f64>()?, second.item::<f64>()?), (27.0, 18.0));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[track_caller]
pub fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    fn places_of<'a>(tensors: &[&'a Tensor]) -> Vec<GradientPlace<'a>> {
        tensors.iter().map(|&tensor| tensor.into()).collect()
    }
    let (outputs, inputs) = (places_of(outputs), places_of(inputs));
    with_site(Site::caller(), || run_grad(&outputs, &inputs, &options))
}

/// [`grad`] of tensors and edges of the graph, by tensors and edges; see [`GradientPlace`].
#[track_caller]
pub fn grad_between(
    outputs: &[GradientPlace<'_>],
    inputs: &[GradientPlace<'_>],
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    with_site(Site::caller(), || run_grad(outputs, inputs, &options))
}

fn run_grad(
    outputs: &[GradientPlace<'_>],
    inputs: &[GradientPlace<'_>],
    options: &GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    const OP: &str = "grad";
    let given = &options.grad_outputs;
    if !given.is_empty() && given.len() != outputs.len() {
        return Err(Error::autograd(
            OP,
            format!("{} outputs need as many grad_outputs, not {}", outputs.len(), given.len()),
        ));
    }
    let retain = options.retain_graph || options.create_graph;
    let _one = OneScope::enter();
    let mut roots = Vec::new();
    for (index, output) in outputs.iter().enumerate() {
        roots.push(root(OP, *output, given.get(index).and_then(Option::as_ref), !retain)?);
    }
    let places = places(OP, inputs)?;
    let captured = engine::run(roots, Goal::Capture(places.clone()), retain, options.create_graph)?;
    let mut grads = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let found = captured.get(place).cloned();
        if found.is_none() && !options.allow_unused {
            return Err(Error::autograd(
                OP,
                format!(
                    "The differentiated Tensor at index {index} appears to not have been used in the graph: the \
                     outputs do not depend on it. Set allow_unused=True to get None for it"
                ),
            ));
        }
        grads.push(found);
    }
    Ok(grads)
}

/// Where the gradients of `inputs` arrive.
fn places(op: &'static str, inputs: &[GradientPlace<'_>]) -> Result<Vec<GraphPoint>> {
    inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            input.edge(op)?.as_ref().map(GraphPoint::of).ok_or_else(|| {
                Error::autograd(
                    op,
                    format!(
                        "One of the differentiated Tensors does not require grad: input {index}"
                    ),
                )
            })
        })
        .collect()
}

/// The starting edge and gradient of one output of a graph that this backward frees or retains.
fn root(
    op: &'static str,
    place: GradientPlace<'_>,
    gradient: Option<&Tensor>,
    frees: bool,
) -> Result<(Edge, Tensor)> {
    let edge = place.edge(op)?.ok_or_else(|| {
        Error::autograd(
            op,
            "this tensor does not require grad and does not have a grad_fn; was it computed under `no_grad`, or is \
             `requires_grad_` missing on the parameters?",
        )
    })?;
    let output = place.wanted(op)?;
    let gradient = match gradient {
        Some(gradient) if *gradient.shape() != *output.shape => {
            return Err(Error::autograd(
                op,
                format!(
                    "Mismatch in shape: the gradient has a shape of {:?} and its tensor has a shape of {:?}",
                    gradient.shape(),
                    output.shape
                ),
            ));
        }
        Some(gradient) if gradient.device() != output.device => {
            return Err(Error::autograd(
                op,
                format!(
                    "the gradient is on {}, its tensor on {}; move it with `to`",
                    gradient.device(),
                    output.device
                ),
            ));
        }
        Some(gradient) if gradient.dtype() != output.dtype => {
            let _phase = enter_phase(Phase::Backward);
            gradient.to(output.dtype)?
        }
        Some(gradient) => gradient.clone(),
        None if output.shape.iter().product::<usize>() == 1 => {
            let _phase = enter_phase(Phase::Backward);
            mode::with_grad(false, || output.ones(place, frees))?
        }
        None => {
            return Err(Error::autograd(
                op,
                format!(
                    "grad can be implicitly created only for scalar outputs: reduce this tensor of shape {:?} to one \
                     element (`sum`, `mean`) or give its gradient",
                    output.shape
                ),
            ));
        }
    };
    Ok((edge, gradient))
}
