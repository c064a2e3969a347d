//! Matching Python's arguments against one of PyTorch's signatures: positional and by keyword,
//! PyTorch's and NumPy's names, defaults, lists that may be given one by one. What does not fit is
//! a reason in words, so that the next signature can be tried and all reasons told.

use plimsoll_core::{DType, Scalar};
use plimsoll_tensor::signature::{Kind, Parameter, Signature};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arguments::Number;
use crate::bound_arguments::{Arguments, Value};
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::memory_format::{PyLayout, PyMemoryFormat};
use crate::targets::{Targets, targets};
use crate::tensor::{PyTensor, TensorObject};

/// Other names of parameters, as NumPy has them; PyTorch takes them too.
const ALIASES: &[(&str, &str)] =
    &[("axis", "dim"), ("keepdims", "keepdim"), ("x", "input"), ("x1", "input"), ("x2", "other")];

/// Functions that take tensors one by one, or in one list.
const VARIADIC: &[&str] = &[
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "meshgrid",
];

/// Matches the arguments of a call; the error is why they do not fit.
pub(crate) fn bind<'py>(
    signature: &Signature,
    slf: Option<&Bound<'py, PyTensor>>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    takes_out: bool,
) -> std::result::Result<(Arguments, Option<Targets<'py>>), String> {
    let mut values: SmallVec<[Value; 4]> = SmallVec::new();
    let mut parameters = signature.parameters.as_slice();
    if let Some(slf) = slf {
        let Some((_, rest)) = parameters.split_first().filter(|_| signature.is_method()) else {
            return Err("it is not a method".to_string());
        };
        values.push(Value::Tensor(slf.tensor()));
        parameters = rest;
    }
    let named = Named::new(kwargs, parameters, takes_out)?;
    let positional: Vec<&Parameter> = parameters.iter().filter(|p| !p.keyword_only).collect();
    let mut given: Vec<Bound<'py, PyAny>> = args.iter().collect();
    // `x.view(2, 3)`: sizes one by one, where they are all that is positional.
    if let [only] = positional.as_slice()
        && matches!(only.kind, Kind::Ints | Kind::OptionalInts)
        && (given.len() > 1 || (given.len() == 1 && is_int(&given[0])))
    {
        let list = PyTuple::new(args.py(), &given).map_err(|error| error.to_string())?;
        given = vec![list.into_any()];
    }
    // `meshgrid(x, y)`: tensors one by one, of the few functions that take them so.
    if let [only] = positional.as_slice()
        && only.kind == Kind::Tensors
        && VARIADIC.contains(&signature.name.as_str())
        && given.first().is_none_or(|first| first.is_instance_of::<PyTensor>())
    {
        let list = PyTuple::new(args.py(), &given).map_err(|error| error.to_string())?;
        given = vec![list.into_any()];
    }
    if given.len() > positional.len() {
        return Err(format!(
            "it takes {} positional arguments, and {} were given",
            positional.len(),
            given.len()
        ));
    }
    let mut given = given.into_iter();
    for parameter in parameters {
        let by_place = if parameter.keyword_only { None } else { given.next() };
        let by_name = named.get(parameter)?;
        let object = match (by_place, by_name) {
            (Some(_), Some(_)) => {
                return Err(format!("argument '{}' was given twice", parameter.name));
            }
            (Some(object), None) | (None, Some(object)) => Some(object),
            (None, None) => None,
        };
        values.push(match (object, &parameter.default) {
            // An empty list as default stands for PyTorch's None.
            (Some(object), Some(default)) if object.is_none() && default == "[]" => {
                default_value(parameter.kind, default)
            }
            (Some(object), _) => convert(parameter, &object)?,
            (None, Some(default)) => default_value(parameter.kind, default),
            (None, None) => return Err(format!("argument '{}' is missing", parameter.name)),
        });
    }
    Ok((Arguments(values), named.out))
}

/// Arguments by keyword.
struct Named<'a, 'py> {
    given: Option<&'a Bound<'py, PyDict>>,
    out: Option<Targets<'py>>,
}

impl<'a, 'py> Named<'a, 'py> {
    fn new(
        given: Option<&'a Bound<'py, PyDict>>,
        parameters: &[Parameter],
        takes_out: bool,
    ) -> std::result::Result<Named<'a, 'py>, String> {
        let mut out = None;
        for (key, value) in given.iter().flat_map(|given| given.iter()) {
            let key: String = key.extract().map_err(|_| "a keyword is not a word".to_string())?;
            if key == "out" && takes_out {
                if !value.is_none() {
                    out = Some(targets(value)?);
                }
                continue;
            }
            if !parameters.iter().any(|parameter| names(parameter).any(|name| name == key)) {
                return Err(format!("there is no argument '{key}'"));
            }
        }
        Ok(Named { given, out })
    }

    fn get(&self, parameter: &Parameter) -> std::result::Result<Option<Bound<'py, PyAny>>, String> {
        let Some(given) = self.given else { return Ok(None) };
        for name in names(parameter) {
            if let Some(value) = given.get_item(name).map_err(|error| error.to_string())? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// The names that a parameter answers to.
fn names(parameter: &Parameter) -> impl Iterator<Item = &str> {
    let name = if parameter.name == "self" { "input" } else { parameter.name.as_str() };
    let aliases = ALIASES.iter().filter(move |(_, own)| *own == name).map(|(alias, _)| *alias);
    std::iter::once(name).chain(aliases)
}

/// Lists are told by their class: asked for a number, they would make an exception that is thrown
/// away, in every call with sizes.
fn is_int(object: &Bound<'_, PyAny>) -> bool {
    !object.is_instance_of::<PyTuple>()
        && !object.is_instance_of::<PyList>()
        && !object.is_instance_of::<PyBool>()
        && !object.is_instance_of::<PyFloat>()
        && object.extract::<i64>().is_ok()
}

pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string())
}

/// One argument, if it is of its parameter's kind.
fn convert(parameter: &Parameter, object: &Bound<'_, PyAny>) -> std::result::Result<Value, String> {
    let wrong = || {
        let Parameter { name, kind, .. } = parameter;
        format!("argument '{name}' must be {}, not {}", kind.text(), type_name(object))
    };
    let tensor =
        |object: &Bound<'_, PyAny>| object.cast::<PyTensor>().ok().map(|tensor| tensor.tensor());
    let optional = matches!(
        parameter.kind,
        Kind::OptionalTensor
            | Kind::OptionalNumber
            | Kind::OptionalInt
            | Kind::OptionalInts
            | Kind::OptionalFloats
            | Kind::OptionalBool
            | Kind::OptionalGenerator
            | Kind::OptionalFloat
            | Kind::OptionalText
            | Kind::OptionalDType
            | Kind::OptionalDevice
            | Kind::OptionalMemoryFormat
            | Kind::OptionalLayout
    );
    if optional && object.is_none() {
        return Ok(Value::None);
    }
    let value = match parameter.kind {
        Kind::Tensor | Kind::OptionalTensor => tensor(object).map(Value::Tensor),
        Kind::TensorOrNumber => {
            tensor(object).map(Value::Tensor).or_else(|| number(object).map(Value::Number))
        }
        Kind::Tensors | Kind::OptionalTensors => {
            let gaps = parameter.kind == Kind::OptionalTensors;
            let one = |item: PyResult<Bound<'_, PyAny>>| {
                let item = item.ok()?;
                if gaps && item.is_none() { Some(None) } else { tensor(&item).map(Some) }
            };
            let list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
            let items = object.try_iter().ok().filter(|_| list);
            items.and_then(|items| items.map(one).collect::<Option<Vec<_>>>()).map(Value::Tensors)
        }
        Kind::Number | Kind::OptionalNumber => number(object).map(Value::Number),
        Kind::Int | Kind::OptionalInt => whole(object).map(|int| Value::Number(Scalar::Int(int))),
        // Sizes are a list; `bind` made one of those that are given one by one.
        Kind::Ints | Kind::OptionalInts if parameter.name == "size" && whole(object).is_some() => {
            None
        }
        Kind::Ints | Kind::OptionalInts => ints(object).map(Value::Ints),
        Kind::Float | Kind::OptionalFloat => number(object).map(Value::Number),
        Kind::Floats | Kind::OptionalFloats => floats(object).map(Value::Floats),
        Kind::Bool | Kind::OptionalBool => {
            object.cast::<PyBool>().ok().map(|value| Value::Bool(value.is_true()))
        }
        Kind::Text | Kind::OptionalText => {
            object.cast::<PyString>().ok().map(|word| Value::Text(word.to_string()))
        }
        Kind::DType | Kind::OptionalDType => {
            object.extract::<DTypeArg>().ok().map(|dtype| Value::DType(dtype.0))
        }
        Kind::OptionalDevice => {
            object.extract::<DeviceArg>().ok().map(|device| Value::Device(device.0))
        }
        Kind::OptionalMemoryFormat => {
            object.cast::<PyMemoryFormat>().ok().map(|format| Value::MemoryFormat(format.get().0))
        }
        Kind::OptionalLayout => object.cast::<PyLayout>().ok().map(|_| Value::None),
        // `function.rs` took it out of the arguments by keyword; it has no place.
        Kind::OptionalGenerator => None,
    };
    value.ok_or_else(wrong)
}

/// A host number; a zero-dimensional tensor outside the graph counts as one.
fn number(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = &tensor.tensor();
        let plain = tensor.rank() == 0 && !tensor.requires_grad();
        return plain.then(|| tensor.to_scalar().ok()).flatten();
    }
    // Only what Python itself can use as a number: a string of digits is none.
    if object.is_instance_of::<PyString>() {
        return None;
    }
    object.extract::<Number>().ok().map(Number::scalar)
}

/// A whole number; bools and fractions are none.
fn whole(object: &Bound<'_, PyAny>) -> Option<i64> {
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = &tensor.tensor();
        let whole = !tensor.dtype().is_float() && tensor.dtype() != DType::Bool;
        let counts = tensor.rank() == 0 && whole;
        return counts.then(|| tensor.to_scalar().ok()).flatten().map(Scalar::to_i64);
    }
    if is_int(object) { object.extract::<i64>().ok() } else { None }
}

fn ints(object: &Bound<'_, PyAny>) -> Option<SmallVec<[i64; 6]>> {
    if let Some(one) = whole(object) {
        return Some(smallvec::smallvec![one]);
    }
    let list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    let items = object.try_iter().ok().filter(|_| list)?;
    items.map(|item| whole(&item.ok()?)).collect()
}

fn floats(object: &Bound<'_, PyAny>) -> Option<Vec<f64>> {
    if let Some(one) = number(object) {
        return Some(vec![one.to_f64()]);
    }
    let list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    let items = object.try_iter().ok().filter(|_| list)?;
    items.map(|item| number(&item.ok()?).map(Scalar::to_f64)).collect()
}

/// Sizes given one by one (`zeros(2, 3)`) or as one sequence (`zeros([2, 3])`).
pub(crate) fn sizes(arguments: &Bound<'_, PyTuple>) -> PyResult<SmallVec<[i64; 6]>> {
    let list = match arguments.get_item(0) {
        Ok(only) if arguments.len() == 1 => only,
        _ => arguments.clone().into_any(),
    };
    if let Some(sizes) = ints(&list) {
        return Ok(sizes);
    }
    // What Python says of a number past 64 bits, or that these are no whole numbers.
    list.extract::<i64>().map(drop).or_else(|_| list.extract::<Vec<i64>>().map(drop))?;
    Err(PyTypeError::new_err("sizes must be whole numbers, one by one or in one list"))
}

/// A default as the signature writes it.
fn default_value(kind: Kind, text: &str) -> Value {
    match (kind, text) {
        (_, "None") => Value::None,
        (_, "True") => Value::Bool(true),
        (_, "False") => Value::Bool(false),
        (Kind::Ints | Kind::OptionalInts, list) => {
            let items = list.trim_matches(['[', ']']).split(',').map(str::trim);
            Value::Ints(items.filter_map(|item| item.parse().ok()).collect())
        }
        (Kind::Floats | Kind::OptionalFloats, list) => {
            let items = list.trim_matches(['[', ']']).split(',').map(str::trim);
            Value::Floats(items.filter_map(|item| item.parse().ok()).collect())
        }
        (Kind::Text | Kind::OptionalText, word) => Value::Text(word.trim_matches('\'').to_string()),
        (_, number) => match number.parse::<i64>() {
            Ok(int) => Value::Number(Scalar::Int(int)),
            Err(_) => Value::Number(Scalar::Float(number.parse().unwrap_or(f64::NAN))),
        },
    }
}
