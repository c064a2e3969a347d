//! Operations as Python calls them: a list of PyTorch's signatures, each with the Rust call behind
//! it. Arguments are matched against the signatures in order (`bind.rs`), as PyTorch's own parser
//! does, and the first that fits is called, with the interpreter released (`call.rs`). The tables
//! are in `generated/`, one file a family.

use std::sync::OnceLock;

use plimsoll_core::{DType, Error, Result, Scalar};
use plimsoll_tensor::signature::{Kind, Returns, Signature};
use plimsoll_tensor::{Generator, Tensor, is_grad_enabled, no_grad};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyInt, PyTuple};
use smallvec::SmallVec;

use crate::arguments::Number;
use crate::autocast;
use crate::bind::bind;
use crate::bound_arguments::{Arguments, Value};
use crate::call::{Effort, call, call_of, in_call};
use crate::companion::{register, wrap};
use crate::device::DeviceArg;
use crate::error::to_python;
use crate::old_forms;
use crate::overrides::{self, Call};
use crate::random::{self, PyGenerator};
use crate::subclass::{self, Class};
use crate::targets::Targets;
use crate::tensor::{PyTensor, TensorObject};

/// What an operation gives.
pub(crate) type Results = SmallVec<[Tensor; 2]>;

/// One operation.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: &'static [Overload],
    /// Read from the overloads at the first call.
    pub(crate) signatures: OnceLock<Vec<Signature>>,
    /// The class of several results.
    pub(crate) results: PyOnceLock<Py<PyAny>>,
}

/// The form that writes into given tensors.
type Into = fn(&Arguments, &[Tensor]) -> Result<()>;

/// One signature, and the Rust calls of its forms.
pub(crate) struct Overload {
    pub(crate) signature: &'static str,
    pub(crate) new: New,
    pub(crate) in_place: Option<fn(&Arguments) -> Result<()>>,
    pub(crate) out: Out,
}

impl Overload {
    /// Where there is a form in place, results are as large as the operands' shapes make them. The
    /// one that makes more on the way, as a number tells, is never small.
    fn effort(&self, arguments: &Arguments) -> Effort {
        let lists = |value: &Value| matches!(value, Value::Tensors(_));
        let grows = self.signature.starts_with("mvlgamma");
        if self.in_place.is_none() || grows || arguments.0.iter().any(lists) {
            return Effort::Any;
        }
        Effort::of(arguments.0.iter().filter_map(|value| match value {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }))
    }
}

/// The form that gives something new.
pub(crate) enum New {
    /// There is none: the operation writes into its tensor.
    None,
    /// Tensors.
    Tensors(fn(&Arguments) -> Result<Results>),
    /// A truth.
    Bool(fn(&Arguments) -> Result<bool>),
}

/// The form with `out=`.
pub(crate) enum Out {
    /// There is none.
    None,
    /// The operation writes into the targets.
    Written(Into),
    /// New results are copied into the targets.
    Copied,
    /// The same, into targets of the results' dtypes only.
    CopiedExact,
}

/// A generator, and the arguments by keyword without it.
type Drawing<'py> = (Option<Bound<'py, PyGenerator>>, Option<Bound<'py, PyDict>>);

/// Functions of which PyTorch says that a complex number cannot be stored, and not that it is of
/// another type.
const COMPLEX_IS_A_VALUE: &[&str] = &["masked_fill", "index_fill"];

/// Functions whose form in place gives a tensor that broadcasts to the result the shape of the
/// result, as PyTorch's does.
const GROWS: &[&str] = &["addbmm"];

/// Functions whose target chooses the dtype to compute in, unless `dtype` does.
const TARGET_CHOOSES: &[&str] = &["cumsum", "cumprod"];

/// Functions that are made of others and take targets of their results' dtypes only, as PyTorch's
/// kernels do.
const EXACT: &[&str] = &[
    "searchsorted",
    "bucketize",
    "topk",
    "kthvalue",
    "median",
    "nanmedian",
    "mode",
    "cummax",
    "cummin",
    "norm",
    "vector_norm",
    "linalg_vector_norm",
    "quantile",
    "nanquantile",
    "histc",
    "renorm",
];

/// The same of their forms that give two tensors.
const EXACT_PAIRS: &[&str] = &["max", "min"];

/// Functions that refuse a target which shares memory with an argument, beside those that take the
/// results' dtypes only.
const SEPARATE: &[&str] = &["kthvalue"];

/// Functions whose first argument may be a number if the second is a tensor, as in PyTorch, which
/// makes a tensor of it.
const NUMBER_FIRST: &[&str] = &["add", "sub", "mul", "div", "true_divide", "floor_divide"];

/// Functions that leave a target of the right number of elements in its shape.
const KEEPS_SHAPE: &[&str] = &["arange", "linspace", "logspace"];

/// Which form was called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    New,
    InPlace,
}

impl Function {
    pub(crate) const fn new(name: &'static str, overloads: &'static [Overload]) -> Function {
        Function { name, overloads, signatures: OnceLock::new(), results: PyOnceLock::new() }
    }

    /// As a method of `slf`.
    pub(crate) fn method<'py>(
        &self,
        slf: &Bound<'py, PyTensor>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run(slf.py(), Some(slf), args, kwargs, Form::New)
    }

    /// As a method that writes into `slf` and gives it back.
    pub(crate) fn in_place<'py>(
        &self,
        slf: &Bound<'py, PyTensor>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.run(slf.py(), Some(slf), args, kwargs, Form::InPlace)
    }

    /// As a function of the module.
    pub(crate) fn function<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.number_first(args)? {
            Some(args) => self.run(args.py(), None, &args, kwargs, Form::New),
            None => self.run(args.py(), None, args, kwargs, Form::New),
        }
    }

    /// The arguments with a tensor for the number that comes first, of the dtype that the number
    /// promotes the second to; of two numbers, of its own dtype.
    fn number_first<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if !NUMBER_FIRST.contains(&self.name) || args.len() < 2 {
            return Ok(None);
        }
        let (first, second) = (args.get_item(0)?, args.get_item(1)?);
        // Before it is asked for a number, which would make an exception in every call.
        if first.is_instance_of::<PyTensor>() {
            return Ok(None);
        }
        let Ok(number) = first.extract::<Number>() else { return Ok(None) };
        let (py, number) = (args.py(), number.scalar());
        let number = match second.cast::<PyTensor>() {
            Ok(beside) => {
                let beside = beside.tensor();
                let dtype = plimsoll_tensor::dtype_beside_number(beside.dtype(), number);
                // One that does not fit is cut to the dtype by the operation, or never needs to be.
                let dtype =
                    if dtype.is_float() || dtype == DType::Bool { dtype } else { DType::I64 };
                call(py, || Tensor::scalar(number, (dtype, beside.device())))?
            }
            // Two numbers: the second promotes the first.
            Err(_) if second.extract::<Number>().is_ok() => {
                let dtype = match number {
                    Scalar::Bool(_) => DType::Bool,
                    Scalar::Int(_) => DType::I64,
                    Scalar::Float(_) => plimsoll_tensor::default_dtype(),
                };
                call(py, || Tensor::scalar(number, dtype))?
            }
            Err(_) => return Ok(None),
        };
        let rest = args.iter().skip(1);
        let all: Vec<_> = std::iter::once(wrap(py, number)?.into_any()).chain(rest).collect();
        PyTuple::new(py, all).map(Some)
    }

    fn signatures(&self) -> PyResult<&[Signature]> {
        if let Some(known) = self.signatures.get() {
            return Ok(known);
        }
        let read: Result<Vec<Signature>> =
            self.overloads.iter().map(|overload| Signature::parse(overload.signature)).collect();
        let read = read.map_err(|error| PyTypeError::new_err(error.to_string()))?;
        Ok(self.signatures.get_or_init(|| read))
    }

    fn run<'py>(
        &self,
        py: Python<'py>,
        slf: Option<&Bound<'py, PyTensor>>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        form: Form,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plain = overrides::are_plain(slf, args, kwargs);
        if !plain && let Some(answer) = self.overridden(py, slf, args, kwargs, form)? {
            return Ok(answer);
        }
        let signatures = self.signatures()?;
        let mut reasons = Vec::new();
        let (generator, kwargs) = generator(signatures, kwargs)?;
        let kwargs = kwargs.as_ref();
        for (overload, signature) in self.overloads.iter().zip(signatures) {
            // As in PyTorch, only functions take `out=`.
            let takes_out = slf.is_none() && !matches!(overload.out, Out::None);
            let (arguments, out) = match bind(signature, slf, args, kwargs, takes_out) {
                Ok(bound) => bound,
                Err(mismatch) => {
                    reasons.push(mismatch);
                    continue;
                }
            };
            if self.name == "meshgrid"
                && !kwargs.is_some_and(|kwargs| kwargs.contains("indexing").unwrap_or(true))
            {
                old_forms::warn_of_order(py)?;
            }
            let class = if plain { None } else { classes(slf, args, kwargs)? };
            return match (form, out, overload) {
                (Form::InPlace, _, Overload { in_place: Some(run), new, .. }) => {
                    let generator = random::for_device(generator.as_ref(), arguments.place())?;
                    let effort = overload.effort(&arguments);
                    let work = || random::with(generator, || run(&arguments));
                    let done = in_call(py, effort, work);
                    match (done, slf, new) {
                        (Err(error), Some(slf), New::Tensors(new)) if self.grows(slf, &error) => {
                            let result = call(py, || new(&arguments))?.swap_remove(0);
                            grow(slf, result)?;
                        }
                        (done, ..) => done.map_err(|error| to_python(py, error))?,
                    }
                    subclass::convert(self.itself(slf)?, &class)
                }
                (Form::New, Some(out), _) => {
                    let generator = random::for_device(generator.as_ref(), arguments.place())?;
                    self.into(&out, overload, signature, &arguments, generator, py)?;
                    subclass::convert(out.object, &class)
                }
                (Form::New, None, Overload { new: New::Tensors(run), .. }) => {
                    let generator = random::for_device(generator.as_ref(), arguments.place())?;
                    let work = || autocast::with_casts(self.name, &arguments, run);
                    let effort = overload.effort(&arguments);
                    let results = call_of(py, effort, || random::with(generator, work))?;
                    self.give(py, results, signature, &class)
                }
                (Form::New, None, Overload { new: New::Bool(run), .. }) => {
                    let truth = call(py, || autocast::with_casts(self.name, &arguments, run))?;
                    Ok(PyBool::new(py, truth).to_owned().into_any())
                }
                _ => Err(PyTypeError::new_err(format!("{}() has no such form", self.name))),
            };
        }
        if let Some((args, kwargs)) = old_forms::todays(self.name, slf.is_some(), args, kwargs)? {
            let underscore = if form == Form::InPlace { "_" } else { "" };
            old_forms::warn_once(py, &format!("{}{underscore}", self.name))?;
            return self.run(py, slf, &args, Some(&kwargs), form);
        }
        too_large(args, kwargs)?;
        if COMPLEX_IS_A_VALUE.contains(&self.name) {
            no_complex(self.name, args, kwargs)?;
        }
        if let Some(device) = kwargs.and_then(|kwargs| kwargs.get_item("device").ok().flatten()) {
            // A name that is no device's is told in its own words.
            device.extract::<Option<DeviceArg>>()?;
        }
        Err(self.no_match(signatures, &reasons))
    }

    /// What a class of the user's answers in the place of the operation, if one takes it over.
    fn overridden<'py>(
        &self,
        py: Python<'py>,
        slf: Option<&Bound<'py, PyTensor>>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        form: Form,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let call = || {
            let function = match (slf, form) {
                // What only writes in place (`fill_`) has the underscore in its name already.
                (Some(_), Form::InPlace) if !self.name.ends_with('_') => {
                    overrides::method(py, &format!("{}_", self.name))?
                }
                (Some(_), Form::InPlace) => overrides::method(py, self.name)?,
                (Some(_), Form::New) => overrides::method(py, self.name)?,
                (None, _) => py.import("plimsoll._plimsoll")?.getattr(self.name)?,
            };
            let args = PyTuple::new(py, first(slf).chain(args.iter()).collect::<Vec<_>>())?;
            Ok(Call { name: self.name, function, args, kwargs: kwargs.cloned() })
        };
        let named = kwargs.into_iter().flat_map(|kwargs| kwargs.values());
        overrides::ask(first(slf).chain(args.iter()).chain(named), call)
    }

    /// Whether the tensor takes the shape of the result, which it was too small for.
    fn grows(&self, slf: &Bound<'_, PyTensor>, error: &Error) -> bool {
        let fixed = |t: &Tensor| is_grad_enabled() && t.requires_grad() && t.is_leaf();
        GROWS.contains(&self.name) && error.expected_shape().is_some() && !slf.with_tensor(fixed)
    }

    /// Writes results into `out`.
    fn into(
        &self,
        out: &Targets<'_>,
        overload: &Overload,
        signature: &Signature,
        arguments: &Arguments,
        generator: Option<&Generator>,
        py: Python<'_>,
    ) -> PyResult<()> {
        let wanted = match signature.returns {
            Returns::List => out.tensors.len(),
            _ => signature.results.len(),
        };
        if out.tensors.len() != wanted {
            return Err(PyTypeError::new_err(format!(
                "{}(): argument 'out' must be {wanted} tensors, and {} were given",
                self.name,
                out.tensors.len()
            )));
        }
        out.check_each(self.name)?;
        match (&overload.out, &overload.new) {
            (Out::Written(run), _) => {
                out.write(py, |handles| random::with(generator, || run(arguments, handles)))
            }
            (Out::Copied | Out::CopiedExact, New::Tensors(run)) => {
                let given = || out.tensors.iter().any(|t| t.with_tensor(Tensor::requires_grad));
                if is_grad_enabled() && (arguments.requires_grad() || given()) {
                    return Err(PyRuntimeError::new_err(format!(
                        "{}: out= cannot be recorded for backward, and a tensor requires gradients; leave out= \
                         away, or use no_grad()",
                        self.name
                    )));
                }
                let chosen = TARGET_CHOOSES.contains(&self.name).then(|| out.dtype()).flatten();
                let with_dtype = chosen.map(|dtype| arguments.with_dtype(signature, dtype));
                let arguments = with_dtype.as_ref().unwrap_or(arguments);
                let work = || random::with(generator, || no_grad(|| run(arguments)));
                let results = call(py, work)?;
                let exact = matches!(overload.out, Out::CopiedExact);
                out.check_separate(self.name)?;
                let separate = exact || SEPARATE.contains(&self.name);
                if separate && out.tensors.iter().any(|t| t.with_tensor(|t| arguments.overlaps(t)))
                {
                    return Err(PyRuntimeError::new_err(format!(
                        "{}: out= shares memory with an argument; write to another tensor",
                        self.name
                    )));
                }
                let exact = exact
                    || EXACT.contains(&self.name)
                    || (results.len() == 2 && EXACT_PAIRS.contains(&self.name));
                out.copy(py, &results, exact, KEEPS_SHAPE.contains(&self.name))
            }
            _ => Err(PyTypeError::new_err(format!("{}() has no out=", self.name))),
        }
    }

    fn itself<'py>(&self, slf: Option<&Bound<'py, PyTensor>>) -> PyResult<Bound<'py, PyAny>> {
        let name = self.name;
        slf.map(|slf| slf.clone().into_any())
            .ok_or_else(|| PyTypeError::new_err(format!("{name}_() is a method")))
    }

    /// One tensor, or a named tuple of several.
    fn give<'py>(
        &self,
        py: Python<'py>,
        results: Results,
        signature: &Signature,
        class: &Class<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = &signature.results;
        let mut objects = results.into_iter().map(|tensor| subclass::wrap(py, tensor, class));
        if signature.returns == Returns::Tensors
            && names.len() == 1
            && let Some(only) = objects.next()
        {
            return Ok(only?.into_any());
        }
        let objects = PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)?;
        if names.len() != objects.len() || names.iter().any(String::is_empty) {
            return Ok(objects.into_any());
        }
        let class = self.results.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
            let make = py.import("plimsoll._return_types")?.getattr("make")?;
            Ok(make.call1((self.name, names.to_vec()))?.unbind())
        })?;
        class.bind(py).call1(objects)
    }

    /// What PyTorch says: what was given, and every signature that was tried with what did not fit.
    fn no_match(&self, signatures: &[Signature], reasons: &[String]) -> PyErr {
        let name = self.name;
        if let [reason] = reasons {
            return PyTypeError::new_err(format!("{name}(): {reason}"));
        }
        let mut text = format!("{name}() received arguments that fit none of its signatures:");
        for (signature, reason) in signatures.iter().zip(reasons) {
            text.push_str(&format!("\n * ({}): {reason}", listed(signature)));
        }
        PyTypeError::new_err(text)
    }
}

/// Has the object stand for `result`.
fn grow(target: &Bound<'_, PyTensor>, result: Tensor) -> PyResult<()> {
    register(target.clone());
    let change = |tensor: &mut Tensor| {
        *tensor = result;
        Ok(())
    };
    target.get().change(target.py(), change).map_err(|error| to_python(target.py(), error))
}

/// The generator that is given to an operation that draws, and the other arguments by keyword.
fn generator<'py>(
    signatures: &[Signature],
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Drawing<'py>> {
    let Some(kwargs) = kwargs else { return Ok((None, None)) };
    let draws = |signature: &Signature| {
        signature.parameters.iter().any(|parameter| parameter.kind == Kind::OptionalGenerator)
    };
    let given = match signatures.iter().any(draws) {
        true => kwargs.get_item("generator")?,
        false => None,
    };
    let Some(given) = given else { return Ok((None, Some(kwargs.clone()))) };
    let others = kwargs.copy()?;
    others.del_item("generator")?;
    Ok((given.extract()?, Some(others)))
}

/// The object of a method as the first of its arguments.
fn first<'py>(slf: Option<&Bound<'py, PyTensor>>) -> std::option::IntoIter<Bound<'py, PyAny>> {
    slf.map(|slf| slf.clone().into_any()).into_iter()
}

/// The class of the results.
fn classes<'py>(
    slf: Option<&Bound<'py, PyTensor>>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Class<'py>> {
    let named = kwargs.into_iter().flat_map(|kwargs| kwargs.values());
    subclass::of_all(first(slf).chain(args.iter()).chain(named))
}

/// Refuses a whole number past 64 bits in Python's own words: it fits no signature.
fn too_large(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let named = kwargs.iter().flat_map(|kwargs| kwargs.values());
    for argument in args.iter().chain(named) {
        if argument.is_instance_of::<PyInt>() {
            argument.extract::<i64>()?;
        }
    }
    Ok(())
}

/// Refuses a complex number among the arguments: no tensor here takes it.
fn no_complex(
    name: &str,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let named = kwargs.iter().flat_map(|kwargs| kwargs.values());
    match args.iter().chain(named).any(|argument| argument.is_instance_of::<PyComplex>()) {
        true => Err(PyRuntimeError::new_err(format!(
            "{name}(): a complex Scalar cannot be stored in a tensor of real numbers; give its real part"
        ))),
        false => Ok(()),
    }
}

/// The parameters as a caller sees them.
fn listed(signature: &Signature) -> String {
    let mut parts = Vec::new();
    let mut starred = false;
    for parameter in signature.parameters.iter().filter(|p| p.name != "self") {
        if parameter.keyword_only && !starred {
            parts.push("*".to_string());
            starred = true;
        }
        let default = parameter.default.as_ref().map(|default| format!("={default}"));
        parts.push(format!(
            "{} {}{}",
            parameter.kind.text(),
            parameter.name,
            default.unwrap_or_default()
        ));
    }
    parts.join(", ")
}
