//! Functions with a derivative of the user's own. `forward` runs without recording and says through
//! its [`Context`] what backward needs; the whole is one node of the graph. `backward` is made of
//! tensor operations, so that it can be differentiated in turn. Both run outside every claim and
//! lock, and what they return is checked.

use std::any::Any;
use std::sync::Arc;

use plimsoll_core::{Device, Error, Result};
use plimsoll_memory::{OriginId, Site, current_module};
use smallvec::SmallVec;

use super::GradFn;
use super::hooks::Hooks;
use super::node::{Derivative, Edges, Node};
use super::saved::{SavedFrom, SavedTensors};
use super::views::ViewOf;
use super::{fit, is_grad_enabled, mode, record, rules, views};
use crate::Tensor;
use crate::operation::{Grads, Needs};
use plimsoll_kernels::Meta;

/// A function of tensors with a derivative of its own.
///
/// ```
/// use plimsoll_tensor::{BackwardContext, Context, DType, Function, Result, Tensor};
///
/// /// `exp`, from its own result.
/// struct Exp;
///
/// impl Function for Exp {
///     fn name(&self) -> &'static str {
///         "Exp"
///     }
///     fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
///         let result = inputs[0].exp()?;
///         context.save_for_backward(&[&result]);
///         Ok(vec![result])
///     }
///     fn backward(
///         &self,
///         context: &BackwardContext<'_>,
///         grads: &[Option<Tensor>],
///     ) -> Result<Vec<Option<Tensor>>> {
///         let grad = grads[0].as_ref().unwrap();
///         Ok(vec![Some(grad.mul(&context.saved_tensors()[0])?)])
///     }
/// }
///
/// let x = Tensor::zeros(&[2], DType::F32)?.requires_grad_(true)?;
/// let y = Exp.apply(&[&x])?.remove(0);
/// y.sum()?.backward()?;
/// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [1.0, 1.0]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
pub trait Function: Send + Sync + 'static {
    /// What reports and errors call it.
    fn name(&self) -> &'static str;

    /// Computes the results. What happens in here is not recorded.
    fn forward(&self, context: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// The gradient of each input from those of the results; `None` where there is none. One of a
    /// wider shape is summed to the input's, another dtype is converted.
    fn backward(
        &self,
        context: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>>;

    /// Whether `backward` cannot be differentiated itself. It then runs without recording, and
    /// asking for gradients of its gradients is an error.
    fn once_differentiable(&self) -> bool {
        false
    }

    /// Hears of the node that stands for this call in the graph. The node holds the function, so
    /// the function can keep no more than a [`GradFn::downgrade`] of it.
    fn recorded(&self, _node: &GradFn) {}

    /// Whether `backward` asks [`GradFn::saved_tensors`] for what was saved when it needs it; its
    /// context then has none. Unpack hooks run, and overwritten values are refused, only then.
    fn unpacks_when_asked(&self) -> bool {
        false
    }

    /// What it owns in another language; as [`Hook::foreign`](super::Hook::foreign).
    fn foreign(&self) -> Option<&dyn Any> {
        None
    }

    /// Runs it.
    #[track_caller]
    fn apply(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>>
    where
        Self: Sized,
    {
        apply_function(Arc::new(self), inputs)
    }
}

/// What `forward` says about itself.
pub struct Context {
    needs: Needs,
    saved: Vec<Tensor>,
    dirty: Vec<Tensor>,
    non_differentiable: Vec<Tensor>,
    materialize: bool,
    value: Option<Box<dyn Any + Send + Sync>>,
}

impl Context {
    /// Whether input `index` wants a gradient; if none does, nothing need be saved.
    pub fn needs_input_grad(&self, index: usize) -> bool {
        self.needs.has(index)
    }

    /// Keeps tensors for `backward`: inputs, results, or what was computed on the way. They are
    /// counted, checked for later writes and go through saved-tensor hooks, which tensors in a
    /// value of [`Context::set_value`] are not.
    pub fn save_for_backward(&mut self, tensors: &[&Tensor]) {
        self.saved = tensors.iter().map(|&tensor| tensor.clone()).collect();
    }

    /// Keeps a value of any kind for `backward`.
    pub fn set_value(&mut self, value: impl Any + Send + Sync) {
        self.value = Some(Box::new(value));
    }

    /// Says that these inputs were written in place. They must be among the results.
    pub fn mark_dirty(&mut self, inputs: &[&Tensor]) {
        self.dirty = inputs.iter().map(|&tensor| tensor.clone()).collect();
    }

    /// Says that these results have no derivative. Those that are not floating point never have.
    pub fn mark_non_differentiable(&mut self, results: &[&Tensor]) {
        self.non_differentiable = results.iter().map(|&tensor| tensor.clone()).collect();
    }

    /// Whether `backward` gets zeros for results that have no gradient (the default), or `None`.
    pub fn set_materialize_grads(&mut self, materialize: bool) {
        self.materialize = materialize;
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("saved", &self.saved).field("dirty", &self.dirty).finish()
    }
}

/// What `backward` gets to know.
pub struct BackwardContext<'a> {
    needs: Needs,
    saved: Vec<Tensor>,
    value: Option<&'a (dyn Any + Send + Sync)>,
}

impl BackwardContext<'_> {
    /// Whether this run of backward wants the gradient of input `index`.
    pub fn needs_input_grad(&self, index: usize) -> bool {
        self.needs.has(index)
    }

    /// What `forward` saved, in its order.
    pub fn saved_tensors(&self) -> &[Tensor] {
        &self.saved
    }

    /// The value that `forward` set, if it is a `T`.
    pub fn value<T: Any>(&self) -> Option<&T> {
        self.value.and_then(|value| value.downcast_ref())
    }
}

impl std::fmt::Debug for BackwardContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackwardContext").field("saved", &self.saved).finish()
    }
}

/// Runs a custom function that is shared: as [`Function::apply`], for bindings.
#[track_caller]
pub fn apply_function(function: Arc<dyn Function>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let site = Site::caller();
    let name = function.name();
    let mut needs = Needs::NONE;
    for (index, input) in inputs.iter().enumerate() {
        if mode::records() && input.requires_grad() {
            needs = needs.with(index);
        }
    }
    let edges = record::edges(name, inputs, needs)?;
    let mut context = Context {
        needs,
        saved: Vec::new(),
        dirty: Vec::new(),
        non_differentiable: Vec::new(),
        materialize: true,
        value: None,
    };
    let results = mode::with_grad(false, || function.forward(&mut context, inputs))?;
    check_results(name, &context, inputs, &results)?;
    let origin = OriginId::intern(name, site);
    // As in PyTorch, also if `forward` wrote nothing. No bytes change here, so no claim is needed.
    context.dirty.iter().for_each(|written| written.written_by(origin));
    let has_derivative: Vec<bool> = results
        .iter()
        .map(|result| {
            let fixed = context.non_differentiable.iter().any(|other| other.is(result));
            needs.any() && result.dtype().is_float() && !fixed
        })
        .collect();
    let results = stand_apart(&context, inputs, results, &has_derivative);
    if !needs.any() || results.is_empty() {
        return Ok(results);
    }
    let kept = keep(name, &context, inputs, &edges, &results)?;
    let Context { dirty, materialize, value, .. } = context;
    let node = Node {
        derivative: Derivative::Custom(Custom {
            function: function.clone(),
            devices: inputs.iter().map(|input| input.device()).collect(),
            materialize,
            value,
        }),
        chain: None,
        sequence: Node::next_sequence(),
        origin,
        site,
        module: current_module(),
        entry: results[0].entry(),
        edges,
        inputs: inputs.iter().map(|input| input.meta().clone()).collect(),
        outputs: results.iter().map(|result| result.meta().clone()).collect(),
        needs,
        saved: crate::lock::Mutex::new(kept),
        hooks: Hooks::default(),
    };
    // As in PyTorch, the gradient of the value before goes with it.
    for written in dirty.iter().filter(|&tensor| inputs.iter().any(|input| input.is(tensor))) {
        written.set_grad(None)?;
    }
    if let ([target], [_]) = (&dirty[..], &results[..])
        && let Some(view) = target.view_of()
    {
        let node = views::rebase(view, node);
        views::make_stale(target);
        function.recorded(&GradFn::of(&node));
        return Ok(results);
    }
    let node = Arc::new(node);
    function.recorded(&GradFn::of(&node));
    for (index, result) in results.iter().enumerate().filter(|(index, _)| has_derivative[*index]) {
        result.set_node(node.clone(), index as u32);
    }
    Ok(results)
}

/// What backward needs, each tensor with its place in the graph.
fn keep(
    name: &'static str,
    context: &Context,
    inputs: &[&Tensor],
    edges: &Edges,
    results: &[Tensor],
) -> Result<SavedTensors> {
    let place = |tensor: &Tensor| {
        let is = |other: &Tensor| other.is(tensor);
        let result = results.iter().position(is);
        let input = inputs.iter().position(|input| is(input));
        match (result, input) {
            _ if context.non_differentiable.iter().any(is) => SavedFrom::Edge(None),
            (Some(index), _) => SavedFrom::Output(index as u32),
            // Before what was written in place moved on.
            (None, Some(index)) => SavedFrom::Edge(edges[index].clone()),
            (None, None) => SavedFrom::Edge(tensor.edge()),
        }
    };
    SavedTensors::keep_list(name, &context.saved, place)
}

/// Refuses what `forward` said of its results where it cannot be true.
fn check_results(
    name: &'static str,
    context: &Context,
    inputs: &[&Tensor],
    results: &[Tensor],
) -> Result<()> {
    for dirty in &context.dirty {
        if !results.iter().any(|result| result.is(dirty)) {
            return Err(Error::autograd(
                name,
                "a tensor marked as dirty must be returned: it is the new value that the graph goes on from",
            ));
        }
        // As in PyTorch, a tensor that is no input has nothing to be dirty of.
        if !inputs.iter().any(|input| input.is(dirty)) {
            continue;
        }
        if context.non_differentiable.iter().any(|other| other.is(dirty)) {
            return Err(Error::autograd(
                name,
                "a tensor cannot be marked as dirty and as non-differentiable",
            ));
        }
        rules::check_in_place(name, dirty, context.needs)?;
        if context.needs.any() && dirty.view_of().is_some() && results.len() > 1 {
            return Err(Error::autograd(
                name,
                "a function that writes to a view must have no other result; clone the view first",
            ));
        }
    }
    Ok(())
}

/// Results that are no tensors of their own (an input returned as it is, a tensor from elsewhere in
/// a graph) become views of what they are, so that they can have a place of their own in the graph.
/// Those without a derivative come out of the graph, as in PyTorch; only views that are no inputs
/// stay where they are.
fn stand_apart(
    context: &Context,
    inputs: &[&Tensor],
    results: Vec<Tensor>,
    has_derivative: &[bool],
) -> Vec<Tensor> {
    let stand = |(result, &has_derivative): (Tensor, &bool)| {
        let is = |other: &Tensor| other.is(&result);
        let is_input = inputs.iter().any(|input| is(input));
        if !has_derivative && result.requires_grad() {
            let stays = !is_input && result.view_of().is_some();
            return if stays { result } else { result.detach() };
        }
        let dirty = context.dirty.iter().any(is);
        let known = is_input || result.requires_grad();
        if dirty || !known {
            return result;
        }
        let view = ViewOf::returned(&result);
        result.alias(result.meta().clone(), Some(view))
    };
    results.into_iter().zip(has_derivative).map(stand).collect()
}

/// A custom function in the graph.
pub(crate) struct Custom {
    function: Arc<dyn Function>,
    /// Of the inputs.
    devices: SmallVec<[Device; 2]>,
    materialize: bool,
    value: Option<Box<dyn Any + Send + Sync>>,
}

impl Custom {
    pub(super) fn name(&self) -> &'static str {
        self.function.name()
    }

    pub(super) fn function(&self) -> &dyn Function {
        &*self.function
    }

    /// The gradients of the inputs, checked.
    pub(super) fn differentiate(
        &self,
        node: &Node,
        saved: Vec<Tensor>,
        grads: &[Option<Tensor>],
        wanted: Needs,
    ) -> Result<Grads> {
        let mut grads: Vec<Option<Tensor>> = grads.to_vec();
        if self.materialize {
            for (grad, meta) in grads.iter_mut().zip(&node.outputs) {
                if grad.is_none() {
                    *grad = Some(Tensor::zeros_on(node.entry, meta)?);
                }
            }
        }
        let context = BackwardContext { needs: wanted, saved, value: self.value.as_deref() };
        let once = self.function.once_differentiable();
        let recording = is_grad_enabled() && !once;
        let mut found = mode::with_grad(recording, || self.function.backward(&context, &grads))?;
        while found.len() > node.inputs.len() && found.last().is_some_and(Option::is_none) {
            found.pop();
        }
        if found.len() != node.inputs.len() {
            return Err(Error::autograd(
                self.name(),
                format!(
                    "backward returned {} gradients for {} inputs; return one for each, None where there is none",
                    found.len(),
                    node.inputs.len()
                ),
            ));
        }
        let recorded = grads.iter().flatten().any(Tensor::requires_grad);
        let mut results = Grads::new();
        for (index, found) in found.into_iter().enumerate() {
            // Also one that nobody asked for this time: it is wrong all the same.
            let fitting = match found.filter(|_| node.edges[index].is_some()) {
                None => None,
                Some(grad) => Some(self.fit(index, &grad, &node.inputs[index])?),
            };
            results.push(match fitting.filter(|_| wanted.has(index)) {
                Some(grad) if once && is_grad_enabled() && recorded => Some(self.refuse(&grad)?),
                other => other,
            });
        }
        Ok(results)
    }

    /// `grad` as input `index` takes it: summed over what was stretched, converted; an error if
    /// that does not help.
    fn fit(&self, index: usize, grad: &Tensor, input: &Meta) -> Result<Tensor> {
        let (from, to) = (grad.shape(), input.shape());
        let moves = grad.device() != self.devices[index];
        if !fit::is_stretched(from, to) || (moves && grad.rank() > 0) {
            return Err(Error::autograd(
                self.name(),
                format!(
                    "backward returned an invalid gradient at index {index} - got {from:?} on {} but expected shape \
                     compatible with {to:?} on {}",
                    grad.device(),
                    self.devices[index]
                ),
            ));
        }
        let grad = grad.sum_to(to)?;
        let grad = if moves { grad.to(self.devices[index])? } else { grad };
        if grad.dtype() == input.dtype { Ok(grad) } else { grad.to(input.dtype) }
    }

    /// `grad` with a history that refuses to be differentiated.
    fn refuse(&self, grad: &Tensor) -> Result<Tensor> {
        let grad = grad.detach().requires_grad_(true)?;
        Ok(Refuse(self.name()).apply(&[&grad])?.remove(0))
    }
}

/// Stands behind the gradients of a function that is differentiable once.
struct Refuse(&'static str);

impl Function for Refuse {
    fn name(&self) -> &'static str {
        self.0
    }

    fn forward(&self, _: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].detach()])
    }

    fn backward(
        &self,
        _: &BackwardContext<'_>,
        _: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        Err(Error::autograd(
            self.0,
            "this function is differentiable once, and a gradient of its gradient was asked for",
        ))
    }
}
