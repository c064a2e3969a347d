//! The engine: runs recorded nodes from the outputs back, newest first, each once, when all gradients of its outputs are
//! there. A queue and a table, never recursion; what a node saved is freed as soon as it ran.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{Phase, Site, enter_phase, with_site};
use smallvec::SmallVec;

use super::node::{Edge, Function, Node};
use super::tasks::{Ready, Target, Task, Tasks, oldest_first};
use super::{accumulate, hooks, mode, saved, views};
use crate::Tensor;
use crate::operation::{Backward, Grads};

/// How [`Tensor::backward_with`] runs.
#[derive(Clone, Debug, Default)]
pub struct BackwardOptions {
    /// The gradient of the tensor itself; only a one-element tensor can do without.
    pub gradient: Option<Tensor>,
    /// Keep what the graph saved, so that backward can run again.
    pub retain_graph: bool,
    /// Record backward itself, for gradients of gradients; keeps the graph too.
    pub create_graph: bool,
    /// Only these leaves get gradients; empty means all.
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
    /// Computes the gradients of everything that led to this one-element tensor and adds them to the leaves.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor};
    /// let x = Tensor::from_slice(&[1.0f32, 2.0], &[2], plimsoll_tensor::Device::cpu())?.requires_grad_(true)?;
    /// x.mul(&x)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(BackwardOptions::default())
    }

    /// As [`Tensor::backward`], with a given gradient, a retained graph, a recorded backward, or chosen leaves.
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
        // Operations of backward count for the forward line that recorded them; what belongs to none of them (the first
        // gradient, copies into the leaves) counts for this call.
        with_site(Site::caller(), || self.run_backward(options))
    }

    fn run_backward(&self, options: BackwardOptions) -> Result<()> {
        let root = root("backward", self, options.gradient.as_ref())?;
        let retain = options.retain_graph || options.create_graph;
        let goal = if options.inputs.is_empty() {
            Goal::EveryLeaf
        } else {
            Goal::Only { keys: keys("backward", &options.inputs)?, capture: false }
        };
        let mut run = Run::new(goal, retain, options.create_graph);
        run.start(vec![root])?;
        run.finish().map(drop)
    }
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
    // As for `backward_with`: what belongs to no forward line counts for this call.
    with_site(Site::caller(), || run_grad(outputs, inputs, options))
}

fn run_grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    const OP: &str = "grad";
    let given = &options.grad_outputs;
    if !given.is_empty() && given.len() != outputs.len() {
        return Err(Error::autograd(
            OP,
            format!("{} outputs need as many grad_outputs, not {}", outputs.len(), given.len()),
        ));
    }
    let mut roots = Vec::new();
    for (index, output) in outputs.iter().enumerate() {
        roots.push(root(OP, output, given.get(index).and_then(Option::as_ref))?);
    }
    let wanted: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
    let keys = keys(OP, &wanted)?;
    let retain = options.retain_graph || options.create_graph;
    let mut run =
        Run::new(Goal::Only { keys: keys.clone(), capture: true }, retain, options.create_graph);
    run.start(roots)?;
    let captured = run.finish()?;
    let mut grads = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let found = captured.get(key).cloned();
        if found.is_none() && !options.allow_unused {
            return Err(Error::autograd(
                OP,
                format!(
                    "the outputs do not depend on input {index}; set `allow_unused` to get None for it"
                ),
            ));
        }
        grads.push(found);
    }
    Ok(grads)
}

/// A place in the graph: which node or leaf, and which output of it.
type Key = (Target, u32);

fn key(edge: &Edge) -> Key {
    match edge {
        Edge::Node(_, output) => (edge.target(), *output),
        Edge::Leaf(_) => (edge.target(), 0),
    }
}

fn keys(op: &'static str, inputs: &[Tensor]) -> Result<Vec<Key>> {
    inputs
        .iter()
        .enumerate()
        .map(|(index, input)| {
            input.edge().as_ref().map(key).ok_or_else(|| {
                Error::autograd(op, format!("input {index} does not require gradients"))
            })
        })
        .collect()
}

/// The starting edge and gradient of one output.
fn root(op: &'static str, output: &Tensor, gradient: Option<&Tensor>) -> Result<(Edge, Tensor)> {
    let edge = output.edge().ok_or_else(|| {
        Error::autograd(
            op,
            "this tensor does not require gradients and no recorded operation made it; was it computed under \
             `no_grad`, or is `requires_grad_` missing on the parameters?",
        )
    })?;
    let gradient = match gradient {
        Some(gradient) if gradient.shape() != output.shape() => {
            return Err(Error::autograd(
                op,
                format!(
                    "the gradient has shape {:?}, its tensor {:?}",
                    gradient.shape(),
                    output.shape()
                ),
            ));
        }
        Some(gradient) => gradient.clone(),
        None if output.numel() == 1 => {
            let _phase = enter_phase(Phase::Backward);
            mode::with_grad(false, || output.ones_like())?
        }
        None => {
            return Err(Error::autograd(
                op,
                format!(
                    "a tensor of shape {:?} has no single gradient to start from: reduce it to one element \
                     (`sum`, `mean`) or give its gradient",
                    output.shape()
                ),
            ));
        }
    };
    Ok((edge, gradient))
}

/// Who gets a gradient in the end.
enum Goal {
    EveryLeaf,
    /// Only these places; `capture` returns their gradients instead of adding them to the leaves.
    Only {
        keys: Vec<Key>,
        capture: bool,
    },
}

/// One call of backward.
struct Run {
    goal: Goal,
    retain: bool,
    create_graph: bool,
    tasks: Tasks,
    ready: BinaryHeap<Ready>,
    captured: HashMap<Key, Tensor>,
}

impl Run {
    fn new(goal: Goal, retain: bool, create_graph: bool) -> Run {
        Run {
            goal,
            retain,
            create_graph,
            tasks: Tasks::default(),
            ready: BinaryHeap::new(),
            captured: HashMap::new(),
        }
    }

    /// Counts the edges of the graph behind the roots and hands the roots their gradients.
    fn start(&mut self, roots: Vec<(Edge, Tensor)>) -> Result<()> {
        let order = self.discover(roots.iter().map(|(edge, _)| edge));
        self.mark_useful(&order);
        for (edge, gradient) in &roots {
            self.add(edge, gradient.clone())?;
        }
        for (edge, _) in roots {
            // A root that other roots lead to waits for them like any node; one given twice runs once.
            if let Some(task) = self.tasks.get_mut(&edge.target())
                && task.waits_for == 0
                && !std::mem::replace(&mut task.queued, true)
            {
                self.ready.push(Ready::new(edge));
            }
        }
        Ok(())
    }

    /// Visits every node behind the roots once. Returns them if the goal needs them again; otherwise no second hold is kept on a
    /// graph that may be large.
    fn discover<'a>(&mut self, roots: impl Iterator<Item = &'a Edge>) -> Vec<Edge> {
        let mut visited = Vec::new();
        let mut stack: Vec<Edge> = Vec::new();
        for edge in roots {
            self.tasks.entry(edge.target()).or_insert_with(|| {
                stack.push(edge.clone());
                Task::default()
            });
        }
        while let Some(edge) = stack.pop() {
            if let Edge::Node(node, _) = &edge {
                for next in node.edges.iter().flatten() {
                    let task = self.tasks.entry(next.target()).or_insert_with(|| {
                        stack.push(next.clone());
                        Task::default()
                    });
                    task.waits_for += 1;
                }
            }
            if matches!(self.goal, Goal::Only { .. }) {
                visited.push(edge);
            }
        }
        visited
    }

    /// Marks what lies on a way to a wanted place, so that only such gradients are computed.
    fn mark_useful(&mut self, visited: &[Edge]) {
        let Goal::Only { keys, .. } = &self.goal else {
            for task in self.tasks.values_mut() {
                task.useful = true;
            }
            return;
        };
        for (target, _) in keys {
            if let Some(task) = self.tasks.get_mut(target) {
                task.useful = true;
            }
        }
        // Inputs of a node were recorded before it, so oldest first sees them before the node itself.
        for node in oldest_first(visited) {
            let leads = node
                .edges
                .iter()
                .flatten()
                .any(|next| self.tasks.get(&next.target()).is_some_and(|t| t.useful));
            if leads && let Some(task) = self.tasks.get_mut(&Target::of(node)) {
                task.useful = true;
            }
        }
    }

    /// Adds a gradient to what its target has received so far.
    fn add(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let output = key(edge).1 as usize;
        let create_graph = self.create_graph;
        let Some(task) = self.tasks.get_mut(&edge.target()) else { return Ok(()) };
        if task.grads.len() <= output {
            task.grads.resize(output + 1, None);
        }
        let slot = &mut task.grads[output];
        *slot = Some(match slot.take() {
            None => gradient,
            Some(old) => mode::with_grad(create_graph, || accumulate::sum(old, gradient))?,
        });
        Ok(())
    }

    /// One of the edges into `edge`'s target is settled, with or without a gradient.
    fn settle(&mut self, edge: Edge) {
        if let Some(task) = self.tasks.get_mut(&edge.target()) {
            task.waits_for -= 1;
            if task.waits_for == 0 {
                task.queued = true;
                self.ready.push(Ready::new(edge));
            }
        }
    }

    /// Runs everything that is ready until nothing is left.
    fn finish(mut self) -> Result<HashMap<Key, Tensor>> {
        let _phase = enter_phase(Phase::Backward);
        while let Some(Ready { edge, .. }) = self.ready.pop() {
            let Some(task) = self.tasks.remove(&edge.target()) else { continue };
            let create_graph = self.create_graph;
            match edge {
                Edge::Leaf(leaf) => {
                    let gradient = task.grads.into_iter().next().flatten();
                    let (Some(leaf), Some(gradient)) = (leaf.upgrade(), gradient) else { continue };
                    let place = (Target::of_leaf(leaf.id()), 0);
                    let gradient =
                        mode::with_grad(create_graph, || hooks::run_on_leaf(&leaf, gradient))?;
                    match &self.goal {
                        Goal::Only { keys, capture: true } if keys.contains(&place) => {
                            self.captured.insert(place, gradient);
                        }
                        Goal::Only { keys, capture: false } if !keys.contains(&place) => {}
                        Goal::Only { capture: true, .. } => {}
                        _ => mode::with_grad(create_graph, || accumulate::into(&leaf, gradient))?,
                    }
                }
                Edge::Node(node, _) => self.visit(&node, task)?,
            }
        }
        Ok(self.captured)
    }

    /// Runs one node and passes its results on.
    fn visit(&mut self, node: &Arc<Node>, task: Task) -> Result<()> {
        let create_graph = self.create_graph;
        let grads = with_site(node.site, || {
            mode::with_grad(create_graph, || -> Result<Option<Grads>> {
                let mut grads = run_hooks(node, task.grads)?;
                if let Goal::Only { keys, capture: true } = &self.goal {
                    for (output, grad) in grads.iter().enumerate() {
                        let place = (Target::of(node), output as u32);
                        if let Some(grad) = grad.as_ref().filter(|_| keys.contains(&place)) {
                            self.captured.insert(place, grad.clone());
                        }
                    }
                }
                if !task.useful || grads.iter().all(Option::is_none) {
                    return Ok(None);
                }
                if grads[0].is_none() {
                    let meta = &node.outputs[0];
                    grads[0] = Some(Tensor::zeros_on(node.entry, meta)?);
                }
                differentiate(node, &grads).map(Some)
            })
        })?;
        if !self.retain {
            // Dropped outside the lock; it may be the last hold on other graphs.
            let freed = node.saved.lock().release();
            drop(freed);
        }
        let mut grads = grads.unwrap_or_default();
        grads.resize(node.edges.len(), None);
        for (edge, gradient) in node.edges.iter().zip(grads) {
            let Some(edge) = edge else { continue };
            if let Some(gradient) = gradient {
                self.add(edge, gradient)?;
            }
            self.settle(edge.clone());
        }
        Ok(())
    }
}

fn run_hooks(
    node: &Arc<Node>,
    grads: SmallVec<[Option<Tensor>; 1]>,
) -> Result<SmallVec<[Option<Tensor>; 1]>> {
    grads
        .into_iter()
        .enumerate()
        .map(|(output, grad)| grad.map(|grad| node.hooks.run(output as u32, grad)).transpose())
        .collect()
}

/// The operation's derivative, applied.
fn differentiate(node: &Arc<Node>, grads: &[Option<Tensor>]) -> Result<Grads> {
    let saved = saved::unpack(node)?;
    let backward = |grads: &[Option<Tensor>]| {
        node.operation().vjp(&Backward {
            operation: node.name(),
            inputs: &node.inputs,
            saved_inputs: &saved.inputs,
            saved_outputs: &saved.outputs,
            grads,
            needs: node.needs,
        })
    };
    match &node.function {
        Function::Plain(_) => backward(grads),
        Function::OnView { chain, .. } => {
            let grad = grads[0]
                .as_ref()
                .ok_or_else(|| Error::autograd(node.name(), "the gradient of a base is missing"))?;
            let (base_grad, slice) = views::open_slice(node.name(), grad, &node.outputs[0], chain)?;
            let mut results = backward(&[Some(slice.clone_tensor()?)])?;
            match results.first_mut().and_then(Option::take) {
                Some(own) => slice.copy_(&own)?,
                None => slice.zero_()?,
            };
            if let Some(first) = results.first_mut() {
                *first = Some(base_grad);
            }
            Ok(results)
        }
    }
}
