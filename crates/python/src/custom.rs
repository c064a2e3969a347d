//! Custom functions: a Python class with `forward` and `backward` as one node of the graph. The
//! class and its context are Python (`autograd/function.py` of the package); this file runs them
//! for Rust's `Function` and checks what they return.

use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use plimsoll_tensor::{
    self as rust, BackwardContext, Context, Function, GradFn, Tensor, WeakGradFn, apply_function,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::call::call;
use crate::companion::wrap;
use crate::tensor::{PyTensor, TensorObject};

/// The way from a context to its node, which owns the context.
#[pyclass(name = "_Link", frozen)]
pub(crate) struct Link {
    node: OnceLock<WeakGradFn>,
    /// For each thing that `save_for_backward` got, whether it is a tensor and not None.
    saved: OnceLock<Vec<bool>>,
}

#[pymethods]
impl Link {
    #[new]
    fn new() -> Link {
        Link { node: OnceLock::new(), saved: OnceLock::new() }
    }

    /// What was saved for backward, unpacked anew.
    fn saved_tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (Some(node), Some(saved)) = (self.node.get(), self.saved.get()) else {
            return Ok(PyTuple::empty(py));
        };
        let gone = || PyRuntimeError::new_err("saved_tensors: the graph of this context is gone");
        let node = node.upgrade().ok_or_else(gone)?;
        let mut tensors = call(py, || node.saved_tensors())?.into_iter();
        let object = |is_tensor: &bool| match tensors.next_if(*is_tensor) {
            Some(tensor) => wrap(py, tensor).map(|object| object.into_any()),
            None => Ok(py.None().into_bound(py)),
        };
        PyTuple::new(py, saved.iter().map(object).collect::<PyResult<Vec<_>>>()?)
    }
}

trait NextIf: Iterator {
    /// The next one if there is to be one.
    fn next_if(&mut self, wanted: bool) -> Option<Self::Item> {
        if wanted { self.next() } else { None }
    }
}
impl<I: Iterator> NextIf for I {}

/// One call of a custom function; the node of the graph keeps it.
struct PythonFunction {
    name: &'static str,
    /// The context. Its class knows the function's class, so that this is all the collector needs
    /// to see.
    context: Py<PyAny>,
    link: Py<Link>,
    /// Until `forward` ran.
    args: Mutex<Option<Py<PyTuple>>>,
    /// For each argument, whether it is a tensor.
    takes: Vec<bool>,
    /// What `forward` returned; the tensors are taken out of it when the call is over.
    output: Mutex<Option<Output>>,
    /// For each output, whether it is a tensor.
    gives: OnceLock<Vec<bool>>,
}

/// What `forward` returned.
struct Output {
    items: Vec<Py<PyAny>>,
    is_tuple: bool,
}

impl PythonFunction {
    /// Has Python work with the context and the function's class; an exception becomes an error
    /// that carries it.
    fn with<R>(
        &self,
        what: &str,
        work: impl FnOnce(Python<'_>, &Bound<'_, PyAny>, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> rust::Result<R> {
        Python::attach(|py| {
            let context = self.context.bind(py);
            let class = context.getattr(intern!(py, "_forward_cls"));
            class.and_then(|class| work(py, context, &class)).map_err(|error| {
                rust::Error::autograd(self.name, format!("{what} raised an exception"))
                    .because(error)
            })
        })
    }

    fn run_forward<'py>(
        &self,
        py: Python<'py>,
        context: &Bound<'py, PyAny>,
        class: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = self.args.lock().take();
        let args = args.map_or_else(|| PyTuple::empty(py), |args| args.into_bound(py));
        let forward = class.getattr(intern!(py, "forward"))?;
        if class.getattr(intern!(py, "_has_setup_context"))?.is_truthy()? {
            let output = forward.call1(&args)?;
            class.call_method1(intern!(py, "setup_context"), (context, &args, &output))?;
            return Ok(output);
        }
        let with_context: Vec<_> = std::iter::once(context.clone()).chain(args.iter()).collect();
        forward.call1(PyTuple::new(py, with_context)?)
    }

    /// Tells Rust what `forward` said through its context.
    fn tell(&self, said: &Bound<'_, PyAny>, context: &mut Context) -> PyResult<()> {
        let py = said.py();
        let saved = said.getattr(intern!(py, "_saved"))?;
        let saved: Vec<_> = saved.try_iter()?.collect::<PyResult<_>>()?;
        let _ = self.link.get().saved.set(saved.iter().map(|object| !object.is_none()).collect());
        let saved = saved.into_iter().filter(|object| !object.is_none());
        let saved = tensors("save_for_backward", saved)?;
        context.save_for_backward(&saved.iter().collect::<Vec<_>>());
        let dirty = said.getattr(intern!(py, "_dirty"))?.try_iter()?;
        let dirty = tensors("mark_dirty", dirty.collect::<PyResult<Vec<_>>>()?)?;
        context.mark_dirty(&dirty.iter().collect::<Vec<_>>());
        let fixed = said.getattr(intern!(py, "_non_differentiable"))?.try_iter()?;
        let fixed = tensors("mark_non_differentiable", fixed.collect::<PyResult<Vec<_>>>()?)?;
        context.mark_non_differentiable(&fixed.iter().collect::<Vec<_>>());
        context.set_materialize_grads(said.getattr(intern!(py, "_materialize"))?.is_truthy()?);
        // The graph holds them from here on, or nobody does.
        said.call_method0(intern!(py, "_forget")).map(drop)
    }

    fn run_backward(
        &self,
        py: Python<'_>,
        context: &Bound<'_, PyAny>,
        class: &Bound<'_, PyAny>,
        grads: &[Option<Tensor>],
    ) -> PyResult<Vec<Option<Tensor>>> {
        let mut grads = grads.iter();
        let mut arguments = vec![context.clone()];
        for &is_tensor in self.gives.get().into_iter().flatten() {
            arguments.push(match grads.next_if(is_tensor).and_then(Option::as_ref) {
                Some(grad) => wrap(py, grad.clone())?.into_any(),
                None => py.None().into_bound(py),
            });
        }
        let backward = class.getattr(intern!(py, "backward"))?;
        let boxed = class.getattr_opt(intern!(py, "boxed_grads_call"))?;
        let answer = if boxed.is_some_and(|boxed| boxed.is_truthy().unwrap_or(false)) {
            // One list, which the function may empty as it goes, so that nothing else keeps them.
            let list = PyList::new(py, arguments.drain(1..))?;
            backward.call1((context, list))?
        } else {
            backward.call1(PyTuple::new(py, arguments)?)?
        };
        let mut answers: Vec<Bound<'_, PyAny>> = match answer.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![answer],
        };
        let expected = self.takes.len();
        if answers.len() > expected && answers[expected..].iter().all(|answer| answer.is_none()) {
            answers.truncate(expected);
        }
        if answers.len() != expected {
            return Err(PyRuntimeError::new_err(format!(
                "{}: backward returned {} gradients for {expected} arguments of forward; return one for each, None \
                 where there is none",
                self.name,
                answers.len()
            )));
        }
        let mut found = Vec::new();
        for (index, (answer, &is_tensor)) in answers.iter().zip(&self.takes).enumerate() {
            if is_tensor {
                found.push(self.gradient(answer)?);
            } else if !answer.is_none() {
                return Err(PyRuntimeError::new_err(format!(
                    "{}: backward returned a gradient for argument {index} of forward, which is no tensor; return None \
                     there",
                    self.name
                )));
            }
        }
        Ok(found)
    }

    fn gradient(&self, answer: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
        if answer.is_none() {
            return Ok(None);
        }
        match answer.cast::<PyTensor>() {
            Ok(tensor) => Ok(Some(tensor.tensor())),
            Err(_) => Err(PyRuntimeError::new_err(format!(
                "{}: backward returns a tensor, None or a tuple of them, not {}",
                self.name,
                answer.get_type().name()?
            ))),
        }
    }
}

impl Function for PythonFunction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn forward(&self, context: &mut Context, _: &[&Tensor]) -> rust::Result<Vec<Tensor>> {
        self.with("forward", |py, said, class| {
            let output = self.run_forward(py, said, class)?;
            let (items, is_tuple) = match output.cast::<PyTuple>() {
                Ok(tuple) => (tuple.iter().collect(), true),
                Err(_) => (vec![output], false),
            };
            self.tell(said, context)?;
            let tensors: Vec<Option<Tensor>> = items.iter().map(as_tensor).collect();
            let _ = self.gives.set(tensors.iter().map(Option::is_some).collect());
            let items = items.into_iter().map(Bound::unbind).collect();
            *self.output.lock() = Some(Output { items, is_tuple });
            Ok(tensors.into_iter().flatten().collect())
        })
    }

    fn backward(
        &self,
        _: &BackwardContext<'_>,
        grads: &[Option<Tensor>],
    ) -> rust::Result<Vec<Option<Tensor>>> {
        self.with("backward", |py, context, class| self.run_backward(py, context, class, grads))
    }

    fn recorded(&self, node: &GradFn) {
        if let Some(node) = node.downgrade() {
            let _ = self.link.get().node.set(node);
        }
    }

    fn unpacks_when_asked(&self) -> bool {
        true
    }

    fn foreign(&self) -> Option<&dyn Any> {
        Some(&self.context)
    }
}

fn as_tensor(object: &Bound<'_, PyAny>) -> Option<Tensor> {
    object.cast::<PyTensor>().ok().map(|tensor| tensor.tensor())
}

fn tensors<'py>(
    method: &str,
    objects: impl IntoIterator<Item = Bound<'py, PyAny>>,
) -> PyResult<Vec<Tensor>> {
    let one = |(index, object): (usize, Bound<'py, PyAny>)| match as_tensor(&object) {
        Some(tensor) => Ok(tensor),
        None => {
            let class = object.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "{method} takes tensors, and argument {index} is of type {class}"
            )))
        }
    };
    objects.into_iter().enumerate().map(one).collect()
}

/// One static text for each name: a program has few functions.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock();
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    name
}

/// Runs the custom function whose context this is.
#[pyfunction]
fn _apply_function<'py>(
    context: &Bound<'py, PyAny>,
    link: &Bound<'py, Link>,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = context.py();
    let inputs: Vec<Option<Tensor>> = args.iter().map(|arg| as_tensor(&arg)).collect();
    // As in PyTorch, whether anything is recorded or not.
    let needs = |input: &Option<Tensor>| input.as_ref().is_some_and(Tensor::requires_grad);
    let needs = PyTuple::new(py, inputs.iter().map(needs))?;
    context.setattr(intern!(py, "needs_input_grad"), needs)?;
    let function = Arc::new(PythonFunction {
        name: interned(context.get_type().name()?.to_string()),
        context: context.clone().unbind(),
        link: link.clone().unbind(),
        args: Mutex::new(Some(args.clone().unbind())),
        takes: inputs.iter().map(Option::is_some).collect(),
        output: Mutex::new(None),
        gives: OnceLock::new(),
    });
    let inputs: Vec<&Tensor> = inputs.iter().flatten().collect();
    let results = call(py, || apply_function(function.clone(), &inputs))?;
    let output = function.output.lock().take();
    let Some(Output { items, is_tuple }) = output else {
        return Err(PyRuntimeError::new_err("a custom function gave nothing"));
    };
    let mut results = results.into_iter();
    let mut given = Vec::with_capacity(items.len());
    for (item, &is_tensor) in items.into_iter().zip(function.gives.get().into_iter().flatten()) {
        given.push(match results.next_if(is_tensor) {
            Some(tensor) => wrap(py, tensor)?.into_any(),
            None => item.into_bound(py),
        });
    }
    match given.first() {
        Some(only) if !is_tuple => Ok(only.clone()),
        _ => Ok(PyTuple::new(py, given)?.into_any()),
    }
}

/// The context behind a node, if a custom function made it.
pub(crate) fn context<'py>(py: Python<'py>, node: &GradFn) -> Option<Bound<'py, PyAny>> {
    let context = node.function()?.foreign()?.downcast_ref::<Py<PyAny>>()?;
    Some(context.bind(py).clone())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Link>()?;
    module.add_function(wrap_pyfunction!(_apply_function, module)?)
}
