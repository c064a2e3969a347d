//! The engine: runs recorded nodes from the outputs back, newest first, each once, when all
//! gradients of its outputs are there. A queue and a table, never recursion; what a node saved is
//! freed as soon as it ran. Only nodes between the outputs and what is asked for run, and each is
//! asked only for gradients that are on the way.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use plimsoll_core::{Error, Result};
use plimsoll_memory::{OriginId, Phase, enter_phase, resume_module, with_site};

use super::accumulate::{self, Accumulator};
use super::node::{Derivative, Edge, Node};
use super::runs::{self, RunScope};
use super::saved::{self, Unpacked};
use super::tasks::{Ready, Received, Target, Task, Tasks, oldest_first};
use super::{anomaly, fit, mode, views};
use crate::Tensor;
use crate::observe::{self, CallKind};
use crate::operation::{Backward, Grads, Needs, Operation};

/// A place in the graph: which node or leaf, and which output of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GraphPoint {
    target: Target,
    output: u32,
}

impl GraphPoint {
    pub(super) fn of(edge: &Edge) -> GraphPoint {
        GraphPoint { target: edge.target(), output: edge.output() }
    }
}

/// Who gets a gradient in the end.
pub(super) enum Goal {
    EveryLeaf,
    /// These nodes and leaves, as if nothing lay behind them.
    Reach(Vec<GraphPoint>),
    /// The gradients that arrive at these places are returned; nobody's `.grad()` changes.
    Capture(Vec<GraphPoint>),
}

/// Runs backward from `roots`, each with its gradient. Returns what the goal captures.
pub(super) fn run(
    roots: Vec<(Edge, Tensor)>,
    goal: Goal,
    retain: bool,
    create_graph: bool,
) -> Result<HashMap<GraphPoint, Tensor>> {
    let mut run = Run {
        goal,
        retain,
        create_graph,
        tasks: Tasks::default(),
        ready: BinaryHeap::new(),
        captured: HashMap::new(),
    };
    run.start(roots)?;
    run.finish()
}

/// One call of backward.
struct Run {
    goal: Goal,
    retain: bool,
    create_graph: bool,
    tasks: Tasks,
    ready: BinaryHeap<Ready>,
    captured: HashMap<GraphPoint, Tensor>,
}

impl Run {
    /// Counts the edges of the graph behind the roots and hands the roots their gradients.
    fn start(&mut self, roots: Vec<(Edge, Tensor)>) -> Result<()> {
        let visited = self.discover(roots.iter().map(|(edge, _)| edge));
        self.mark(&visited);
        for (index, (edge, gradient)) in roots.iter().enumerate() {
            let gradient = fit::fit(None, index, edge, gradient.clone(), self.create_graph)?;
            self.add(edge, gradient)?;
        }
        let alone = roots.len() == 1;
        for (edge, _) in roots {
            // A root that other roots lead to waits for them like any node; one given twice runs
            // once. The hooks of a single root run even if nothing behind it was asked for, as in
            // PyTorch.
            if let Some(task) = self.tasks.get_mut(&edge.target())
                && (alone || task.is_wanted())
                && task.waits_for == 0
                && !std::mem::replace(&mut task.queued, true)
            {
                self.ready.push(Ready::new(edge));
            }
        }
        Ok(())
    }

    /// Visits every node behind the roots once. Returns them if the goal needs them again;
    /// otherwise no second hold is kept on a graph that may be large.
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
            if !matches!(self.goal, Goal::EveryLeaf) {
                visited.push(edge);
            }
        }
        visited
    }

    /// Marks what runs: everything, or what lies between the roots and the goal's places.
    fn mark(&mut self, visited: &[Edge]) {
        match &self.goal {
            Goal::EveryLeaf => {
                self.tasks.values_mut().for_each(|task| task.runs = true);
                return;
            }
            Goal::Reach(places) => {
                for place in places {
                    if let Some(task) = self.tasks.get_mut(&place.target) {
                        task.runs = true;
                    }
                }
            }
            Goal::Capture(places) => {
                for place in places {
                    if let Some(task) = self.tasks.get_mut(&place.target) {
                        task.captured = true;
                    }
                }
            }
        }
        // Inputs of a node were recorded before it, so oldest first sees them before the node
        // itself.
        for node in oldest_first(visited) {
            if self.wanted(node).any()
                && let Some(task) = self.tasks.get_mut(&Target::of(node))
            {
                task.runs = true;
            }
        }
    }

    /// Which inputs of `node` want a gradient in this run.
    fn wanted(&self, node: &Node) -> Needs {
        if matches!(self.goal, Goal::EveryLeaf) {
            return node.needs;
        }
        let wanted = |edge: &Edge| self.tasks.get(&edge.target()).is_some_and(Task::is_wanted);
        let mut needs = Needs::NONE;
        for (index, edge) in node.edges.iter().enumerate() {
            if edge.as_ref().is_some_and(wanted) {
                needs = needs.with(index);
            }
        }
        needs
    }

    /// Adds a gradient to what its target has received so far.
    fn add(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let output = edge.output() as usize;
        let create_graph = self.create_graph;
        let Some(task) = self.tasks.get_mut(&edge.target()) else { return Ok(()) };
        if task.grads.len() <= output {
            task.grads.resize(output + 1, None);
        }
        let parts = task.take_parts(edge.output());
        let slot = &mut task.grads[output];
        *slot = Some(match (slot.take(), parts) {
            (None, None) => gradient,
            (Some(old), _) => mode::with_grad(create_graph, || accumulate::sum(old, gradient))?,
            (None, Some(parts)) => parts.add_to(gradient)?,
        });
        Ok(())
    }

    /// One of the edges into `edge`'s target is settled, with or without a gradient.
    fn settle(&mut self, edge: Edge) {
        if let Some(task) = self.tasks.get_mut(&edge.target()) {
            task.waits_for -= 1;
            if task.waits_for == 0 && task.is_wanted() {
                task.queued = true;
                self.ready.push(Ready::new(edge));
            }
        }
    }

    /// Runs everything that is ready until nothing is left.
    fn finish(mut self) -> Result<HashMap<GraphPoint, Tensor>> {
        let _phase = enter_phase(Phase::Backward);
        let _run = RunScope::enter(matches!(self.goal, Goal::EveryLeaf));
        let create_graph = self.create_graph;
        while let Some(Ready { edge, .. }) = self.ready.pop() {
            let Some(mut task) = self.tasks.remove(&edge.target()) else { continue };
            task.finish_parts()?;
            if !edge.hooks().is_empty() {
                // For hooks on several tensors, which wait for each other.
                runs::announce(|| {
                    let wanted = self.tasks.iter().filter(|(_, task)| task.is_wanted());
                    wanted.map(|(target, _)| *target).chain([edge.target()]).collect()
                });
            }
            if task.captured || !task.runs {
                self.capture(&edge, &mut task)?;
            }
            if !task.runs {
                continue;
            }
            match edge {
                Edge::Leaf(accumulator) => {
                    mode::with_grad(create_graph, || arrive(&accumulator, task.grads))?;
                }
                Edge::Node(node, _) => self.visit(&node, task)?,
            }
        }
        runs::run_callbacks()?;
        Ok(self.captured)
    }

    /// Keeps the gradients that arrived at a place that was asked for. As in PyTorch, the tensor's
    /// hooks have run on them unless the node itself runs too, and with it its hooks.
    fn capture(&mut self, edge: &Edge, task: &mut Task) -> Result<()> {
        if !task.runs {
            if let Edge::Node(node, _) = edge {
                // Hooks hear of outputs without a gradient too.
                task.grads.resize(node.outputs.len(), None);
            }
            mode::with_grad(self.create_graph, || edge.hooks().run_on_tensors(&mut task.grads))?;
        }
        let Goal::Capture(places) = &self.goal else { return Ok(()) };
        let target = edge.target();
        for (output, grad) in task.grads.iter().enumerate() {
            let place = GraphPoint { target, output: output as u32 };
            if let Some(grad) = grad.as_ref().filter(|_| places.contains(&place)) {
                self.captured.insert(place, grad.clone());
            }
        }
        Ok(())
    }

    /// Runs one node and passes its results on.
    fn visit(&mut self, node: &Arc<Node>, mut task: Task) -> Result<()> {
        let evaluated = || format!("autograd::engine::evaluate_function: {}", node.backward_name());
        let _heard = observe::backward(|| (evaluated(), CallKind::Evaluation, node.origin()));
        let wanted = self.wanted(node);
        let create_graph = self.create_graph;
        let grads = with_site(node.site, || {
            let _module = resume_module(node.module);
            if self.put_part(node, &task.grads)? {
                return Ok(Grads::new());
            }
            let total = self.total_to_add_to(node, wanted);
            mode::with_grad(create_graph, || evaluate(node, &mut task.grads, wanted, total))
        })?;
        anomaly::check(node, &grads)?;
        if !self.retain {
            // Dropped outside the lock; it may be the last hold on other graphs.
            let freed = node.saved.lock().release(node.chain.is_some());
            drop(freed);
        }
        let mut grads = grads.into_iter();
        for (index, edge) in node.edges.iter().enumerate() {
            let gradient = grads.next().flatten();
            let Some(edge) = edge else { continue };
            if let Some(gradient) = gradient {
                let gradient = fit::fit(Some(node), index, edge, gradient, create_graph)?;
                self.add(edge, gradient)?;
            }
            self.settle(edge.clone());
        }
        Ok(())
    }

    /// What has arrived at the first input of `node`, if the operation adds its gradient there and
    /// nobody could tell the difference.
    fn total_to_add_to(&self, node: &Node, wanted: Needs) -> Option<Tensor> {
        let Derivative::Operation(op) = &node.derivative else { return None };
        let seen = node.hooks.has_post() || node.chain.is_some() || anomaly::is_anomaly_enabled();
        if self.create_graph || seen || !wanted.has(0) || !op.adds_to_input() {
            return None;
        }
        let edge = node.edges[0].as_ref()?;
        let total = self.tasks.get(&edge.target())?.grads.get(edge.output() as usize)?.as_ref()?;
        accumulate::is_free_for(total, &node.inputs[0], node.entry).then(|| total.clone())
    }

    /// Lets a view that shows a part put its gradient where that belongs in the gradient of the
    /// whole, instead of making it whole first; whether it did. Only where nobody could tell the
    /// difference.
    fn put_part(&mut self, node: &Arc<Node>, grads: &Received) -> Result<bool> {
        let (Derivative::Operation(op), [Some(edge)], [Some(gradient)]) =
            (&node.derivative, &node.edges[..], &grads[..])
        else {
            return Ok(false);
        };
        let seen = !node.hooks.is_empty() || node.chain.is_some() || anomaly::is_anomaly_enabled();
        // Of a tensor that got other memory since, the parts do not lie as its gradient does.
        let fits = fit::taken_by(edge).is_none_or(|meta| {
            meta.shape() == node.inputs[0].shape() && meta.dtype == node.inputs[0].dtype
        });
        if self.create_graph || seen || !fits || !op.adds_vjp() {
            return Ok(false);
        }
        let Some(task) = self.tasks.get_mut(&edge.target()).filter(|task| task.is_wanted()) else {
            return Ok(false);
        };
        mode::with_grad(false, || {
            let Some(place) = task.place_for(node, op.as_ref(), edge.output(), gradient)? else {
                return Ok(false);
            };
            // A node that runs twice is an error here too.
            saved::unpack(node)?;
            let _heard =
                observe::backward(|| (node.backward_name(), CallKind::Node, node.origin()));
            task.put(place, node, op.as_ref(), edge.output(), gradient)?;
            Ok(true)
        })
    }
}

/// A leaf's gradient: through its hooks and into its place.
fn arrive(accumulator: &Accumulator, mut grads: Received) -> Result<()> {
    let _heard = observe::backward(|| {
        let name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
        (name.to_string(), CallKind::Evaluation, OriginId::UNKNOWN)
    });
    let hooks = &accumulator.hooks;
    let leaf = accumulator.leaf();
    if leaf.as_ref().is_some_and(|leaf| !leaf.is_leaf()) {
        return Err(Error::autograd(
            "backward",
            "a leaf of this graph was written in place by a recorded operation since, and is a leaf no more; clone it \
             before the write",
        ));
    }
    if grads.is_empty() {
        grads.push(None);
    }
    hooks.run_on_tensors(&mut grads)?;
    hooks.run_pre(&mut grads)?;
    let seen = if hooks.has_post() { grads.clone() } else { Received::new() };
    if let Some(leaf) = leaf {
        // It may have stopped being one that wants gradients since.
        if let Some(grad) = grads[0].take().filter(|_| leaf.requires_grad()) {
            accumulator.add(&leaf, grad)?;
        }
        hooks.run_accumulated(&leaf)?;
    }
    hooks.run_post(&mut Grads::new(), &seen)
}

/// The gradients of a node's inputs from those of its outputs, hooks included; one place for each
/// edge. With a `total`, that of the first input is added to it instead.
fn evaluate(
    node: &Arc<Node>,
    grads: &mut Received,
    wanted: Needs,
    total: Option<Tensor>,
) -> Result<Grads> {
    grads.resize(node.outputs.len(), None);
    node.hooks.run_on_tensors(grads)?;
    node.hooks.run_pre(grads)?;
    // Even if nothing is wanted of it: a node that ran twice or whose values were overwritten is an
    // error, as in PyTorch.
    let function = node.function();
    let saved = match function {
        Some(function) if function.unpacks_when_asked() => {
            if node.chain.is_some() {
                node.saved.lock().check_released(node)?;
            }
            Unpacked::default()
        }
        _ => saved::unpack(node)?,
    };
    // The user's own backward runs whatever there is to do, as in PyTorch: it gets zeros.
    let silent = grads.iter().all(Option::is_none);
    let always = function.is_some() && !(silent && node.chain.is_some());
    let mut results = if !always && (silent || !wanted.any()) {
        Grads::new()
    } else {
        match &node.chain {
            _ if observe::is_on() => heard(node, saved, grads, wanted, total)?,
            None => differentiate(node, saved, grads, wanted, total)?,
            Some(chain) => differentiate_view(node, chain, saved, grads, wanted)?,
        }
    };
    results.resize(node.edges.len(), None);
    node.hooks.run_post(&mut results, grads)?;
    Ok(results)
}

/// The derivative, while observers listen.
#[cold]
fn heard(
    node: &Arc<Node>,
    saved: Unpacked,
    grads: &mut Received,
    wanted: Needs,
    total: Option<Tensor>,
) -> Result<Grads> {
    let _heard = observe::backward(|| (node.backward_name(), CallKind::Node, node.origin()));
    match &node.chain {
        None => differentiate(node, saved, grads, wanted, total),
        Some(chain) => differentiate_view(node, chain, saved, grads, wanted),
    }
}

/// The operation's derivative, applied.
fn differentiate(
    node: &Arc<Node>,
    saved: Unpacked,
    grads: &mut [Option<Tensor>],
    wanted: Needs,
    total: Option<Tensor>,
) -> Result<Grads> {
    let op = match &node.derivative {
        Derivative::Operation(op) => op,
        Derivative::Custom(custom) => {
            let saved = saved.inputs.into_iter().flatten().collect();
            return custom.differentiate(node, saved, grads, wanted);
        }
    };
    if grads[0].is_none() {
        grads[0] = Some(Tensor::zeros_on(node.entry, &node.outputs[0])?);
    }
    let backward = Backward {
        operation: node.name(),
        inputs: &node.inputs,
        saved_inputs: &saved.inputs,
        saved_outputs: &saved.outputs,
        hooked: saved.hooked,
        seen: node.hooks.has_post(),
        grads,
        needs: wanted,
    };
    match total {
        Some(total) => op.vjp_onto(&backward, &total),
        None => op.vjp(&backward),
    }
}

/// The derivative of an in-place operation on a view: applied to the view's part of the base's
/// gradient. `chain` leads there.
fn differentiate_view(
    node: &Arc<Node>,
    chain: &[Arc<dyn Operation>],
    saved: Unpacked,
    grads: &[Option<Tensor>],
    wanted: Needs,
) -> Result<Grads> {
    let grad = grads[0]
        .as_ref()
        .ok_or_else(|| Error::autograd(node.name(), "the gradient of a base is missing"))?;
    let (base_grad, slice) = views::open_slice(node.name(), grad, &node.outputs[0], chain)?;
    let mut results = differentiate(node, saved, &mut [Some(slice.clone_tensor()?)], wanted, None)?;
    match results.first_mut().and_then(Option::take) {
        Some(own) => slice.copy_(&own)?,
        None => slice.zero_()?,
    };
    if let Some(first) = results.first_mut() {
        *first = Some(base_grad);
    }
    Ok(results)
}
