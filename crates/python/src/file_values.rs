//! Python objects as values of files, and back: what `torch.load` with `weights_only` allows, and
//! nothing else. Classes are looked at exactly: a subclass of `dict` is something that only running
//! code could make again.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use plimsoll_files::{Dict, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyDict, PyFloat, PyInt, PyList, PySet, PyString,
    PyTuple, PyType,
};

use crate::companion;
use crate::device::{PyDevice, parsed};
use crate::dtype::{self, PyDType};
use crate::size;
use crate::tensor::{PyTensor, TensorObject};

/// How deep containers may nest.
const DEPTH: usize = 500;

/// The scalars of NumPy that are a number or a text of Python's, without loss.
const NUMPY: [&str; 17] = [
    "bool",
    "bool_",
    "int8",
    "int16",
    "int32",
    "int64",
    "longlong",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "ulonglong",
    "float16",
    "float32",
    "float64",
    "str_",
    "bytes_",
];

/// The classes that are looked up once for a whole tree.
pub(crate) struct Classes<'py> {
    ordered_dict: Bound<'py, PyType>,
    counter: Bound<'py, PyType>,
    parameter: Bound<'py, PyType>,
    uninitialized: Bound<'py, PyType>,
    pickling_error: Bound<'py, PyType>,
    /// Containers of the tree that stand in several places, by address, and their values.
    shared: RefCell<HashMap<usize, Option<Arc<Value>>>>,
    /// Those of them whose value is being made.
    open: RefCell<HashMap<usize, Weak<Value>>>,
    objects: RefCell<HashMap<*const Value, Made<'py>>>,
}

/// The object of a value that stands in several places; the value is held, so that nobody else gets
/// its address.
struct Made<'py> {
    object: Bound<'py, PyAny>,
    _value: Arc<Value>,
}

impl<'py> Classes<'py> {
    pub(crate) fn new(py: Python<'py>) -> PyResult<Classes<'py>> {
        let class = |module: &str, name: &str| -> PyResult<Bound<'py, PyType>> {
            Ok(py.import(module)?.getattr(name)?.cast_into()?)
        };
        Ok(Classes {
            ordered_dict: class("collections", "OrderedDict")?,
            counter: class("collections", "Counter")?,
            parameter: class("plimsoll.nn.parameter", "Parameter")?,
            uninitialized: class("plimsoll.nn.parameter", "UninitializedParameter")?,
            pickling_error: class("pickle", "PicklingError")?,
            shared: RefCell::default(),
            open: RefCell::default(),
            objects: RefCell::default(),
        })
    }

    /// The value of a tree. A container that stands in several places is one value.
    pub(crate) fn tree(&self, object: &Bound<'py, PyAny>) -> PyResult<Value> {
        let mut seen = HashSet::new();
        let mut waiting = vec![object.clone()];
        while let Some(object) = waiting.pop() {
            let before = waiting.len();
            if let Ok(items) = object.cast_exact::<PyList>() {
                waiting.extend(items.iter());
            } else if let Ok(items) = object.cast_exact::<PyTuple>() {
                waiting.extend(items.iter());
            } else if let Ok(items) = object.cast_exact::<PySet>() {
                waiting.extend(items.iter());
            } else if let Ok(items) = object.cast::<PyDict>() {
                waiting.extend(items.iter().flat_map(|(key, value)| [key, value]));
                if object.get_type().is(&self.ordered_dict) {
                    let own = object.getattr(intern!(object.py(), "__dict__"))?;
                    waiting.extend(own.cast_into::<PyDict>()?.iter().map(|(_, value)| value));
                }
            } else if let Ok(tensor) = object.cast::<PyTensor>()
                && let Some(own) = attributes(tensor)?
            {
                waiting.extend(own.iter().map(|(_, value)| value));
            }
            // The empty tuple is one object everywhere.
            let is_container = waiting.len() > before
                || object.is_instance_of::<PyList>()
                || object.is_instance_of::<PyDict>()
                || object.is_instance_of::<PySet>();
            if is_container && !seen.insert(object.as_ptr() as usize) {
                waiting.truncate(before);
                self.shared.borrow_mut().insert(object.as_ptr() as usize, None);
            }
        }
        self.value(object, 0)
    }

    /// The value of an object.
    fn value(&self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        if object.is_none() {
            return Ok(Value::None);
        }
        if let Ok(flag) = object.cast_exact::<PyBool>() {
            return Ok(Value::Bool(flag.is_true()));
        }
        if object.is_exact_instance_of::<PyInt>() {
            let number = object.extract::<i128>();
            return number
                .map(Value::Int)
                .map_err(|_| self.refused("an int of more than 128 bits"));
        }
        if let Ok(number) = object.cast_exact::<PyFloat>() {
            return Ok(Value::Float(number.value()));
        }
        if let Ok(text) = object.cast_exact::<PyString>() {
            return Ok(Value::Str(text.to_cow()?.into_owned()));
        }
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
        }
        if let Ok(bytes) = object.cast_exact::<PyByteArray>() {
            return Ok(Value::ByteArray(bytes.to_vec()));
        }
        if let Ok(number) = object.cast_exact::<PyComplex>() {
            return Ok(Value::Complex(number.real(), number.imag()));
        }
        if let Ok(tensor) = object.cast::<PyTensor>()
            && attributes(tensor)?.is_none()
        {
            return self.tensor(tensor);
        }
        if let Ok(dtype) = object.cast::<PyDType>() {
            return Ok(Value::DType(dtype.get().0));
        }
        if let Ok(device) = object.cast::<PyDevice>() {
            return Ok(Value::Device(device.get().text()));
        }
        let address = object.as_ptr() as usize;
        let known = self.shared.borrow().get(&address).cloned();
        match known {
            None => self.container(object, depth + 1),
            Some(Some(value)) => Ok(Value::Shared(value)),
            Some(None) => self.shared_container(object, depth + 1),
        }
    }

    /// A container that stands in several places, one of them itself, maybe.
    fn shared_container(&self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        let address = object.as_ptr() as usize;
        let within = self.open.borrow().get(&address).cloned();
        if let Some(within) = within {
            let is_dict = object.is_instance_of::<PyDict>() && !object.get_type().is(&self.counter);
            if is_dict || object.is_instance_of::<PyList>() {
                return Ok(Value::Within(within));
            }
            let class = object.get_type().fully_qualified_name()?;
            return Err(self.refused(&format!("a {class} that holds itself")));
        }
        let mut fault = None;
        let value = Arc::new_cyclic(|within| {
            self.open.borrow_mut().insert(address, within.clone());
            self.container(object, depth).unwrap_or_else(|error| {
                fault = Some(error);
                Value::None
            })
        });
        self.open.borrow_mut().remove(&address);
        if let Some(fault) = fault {
            return Err(fault);
        }
        self.shared.borrow_mut().insert(address, Some(value.clone()));
        Ok(Value::Shared(value))
    }

    fn tensor(&self, tensor: &Bound<'py, PyTensor>) -> PyResult<Value> {
        let (py, class) = (tensor.py(), tensor.get_type());
        // Classes made from it are saved as it, as in PyTorch.
        if class.is_subclass(&self.parameter)? && !class.is_subclass(&self.uninitialized)? {
            return Ok(Value::Parameter(tensor.tensor()));
        }
        // A buffer is a tensor that says so in an attribute, as in PyTorch.
        if class.is(py.get_type::<PyTensor>()) {
            return Ok(Value::Tensor(tensor.tensor()));
        }
        Err(self.refused(&format!("a tensor of the class {}", class.fully_qualified_name()?)))
    }

    fn container(&self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        if depth > DEPTH {
            return Err(self.refused(&format!("containers nested more than {DEPTH} deep")));
        }
        if let Ok(tensor) = object.cast::<PyTensor>() {
            let own = attributes(tensor)?.unwrap_or_else(|| PyDict::new(object.py()));
            let own = self.filled(Dict::new(), &own, depth)?;
            return Ok(Value::Attributed(Box::new((self.tensor(tensor)?, own))));
        }
        let values = |items: &mut dyn Iterator<Item = Bound<'py, PyAny>>| {
            items.map(|item| self.value(&item, depth)).collect::<PyResult<Vec<Value>>>()
        };
        if let Ok(items) = object.cast_exact::<PyList>() {
            return Ok(Value::List(values(&mut items.iter())?));
        }
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return Ok(Value::Tuple(values(&mut items.iter())?));
        }
        if let Ok(items) = object.cast_exact::<PySet>() {
            return Ok(Value::Set(values(&mut items.iter())?));
        }
        let class = object.get_type();
        if class.is(size::class(object.py())?) {
            return Ok(Value::Size(object.extract()?));
        }
        let dict = if object.is_exact_instance_of::<PyDict>() {
            Dict::new()
        } else if class.is(&self.ordered_dict) {
            Dict::ordered()
        } else if class.is(&self.counter) {
            Dict::counter()
        } else if let Some(plain) = of_numpy(object)? {
            return self.value(&plain, depth);
        } else {
            let what = format!("an object of the class {}", class.fully_qualified_name()?);
            return Err(self.refused(&what));
        };
        Ok(Value::Dict(self.filled(dict, object.cast::<PyDict>()?, depth)?))
    }

    /// The dict with the entries of the object.
    fn filled(&self, mut dict: Dict, object: &Bound<'py, PyDict>, depth: usize) -> PyResult<Dict> {
        for item in object.call_method0(intern!(object.py(), "items"))?.try_iter()? {
            let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
            let key = self.value(&key, depth)?;
            if !dict.insert(key, self.value(&value, depth)?) {
                return Err(self.refused("a tensor as the key of a dict"));
            }
        }
        if dict.is_ordered() {
            let own = object.getattr(intern!(object.py(), "__dict__"))?.cast_into::<PyDict>()?;
            if !own.is_empty() {
                dict.set_attributes(Some(self.filled(Dict::new(), &own, depth)?));
            }
        }
        Ok(dict)
    }

    fn refused(&self, what: &str) -> PyErr {
        let message = format!(
            "save: cannot save {what}. Files hold tensors, parameters, dicts, lists, tuples, sets, numbers, texts, bytes, \
             dtypes and devices, so that nothing needs to be run to read them: save a module's or an optimizer's \
             state_dict()"
        );
        PyErr::from_type(self.pickling_error.clone(), message)
    }

    /// The object of a value.
    pub(crate) fn object(&self, py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
        let objects = |items: Vec<Value>| {
            items.into_iter().map(|item| self.object(py, item)).collect::<PyResult<Vec<_>>>()
        };
        Ok(match value {
            Value::None => py.None().into_bound(py),
            Value::Bool(flag) => PyBool::new(py, flag).to_owned().into_any(),
            Value::Int(number) => number.into_pyobject(py)?.into_any(),
            Value::Float(number) => PyFloat::new(py, number).into_any(),
            Value::Str(text) => PyString::new(py, &text).into_any(),
            Value::Complex(real, imaginary) => {
                PyComplex::from_doubles(py, real, imaginary).into_any()
            }
            Value::Bytes(bytes) => PyBytes::new(py, &bytes).into_any(),
            Value::ByteArray(bytes) => PyByteArray::new(py, &bytes).into_any(),
            Value::List(items) => PyList::new(py, objects(items)?)?.into_any(),
            Value::Tuple(items) => PyTuple::new(py, objects(items)?)?.into_any(),
            Value::Set(items) => PySet::new(py, objects(items)?)?.into_any(),
            Value::Dict(dict) => self.dict_object(py, dict)?,
            Value::Size(sizes) => size::of(py, &sizes)?.into_any(),
            Value::DType(dtype) => dtype::object(py, dtype)?.into_any(),
            Value::Device(name) => Bound::new(py, parsed(py, &name)?)?.into_any(),
            Value::Tensor(tensor) => companion::wrap(py, tensor)?.into_any(),
            Value::Parameter(tensor) => {
                companion::wrap_new(py, tensor, &self.parameter)?.into_any()
            }
            Value::Attributed(both) => {
                let (tensor, attributes) = *both;
                let object = self.object(py, tensor)?;
                // Into the dictionary, and never by `setattr`, which runs what a name stands for.
                let own = object.getattr(intern!(py, "__dict__"))?;
                for (name, value) in attributes {
                    let name =
                        name.as_str().ok_or_else(|| PyTypeError::new_err("an attribute's name"))?;
                    own.set_item(name, self.object(py, value)?)?;
                }
                object
            }
            Value::Shared(value) => {
                let place = Arc::as_ptr(&value);
                let known = self.objects.borrow().get(&place).map(|made| made.object.clone());
                match known {
                    Some(object) => object,
                    None => self.shared_object(py, &value)?,
                }
            }
            Value::Within(container) => {
                let made = self.objects.borrow();
                let made = made.get(&container.as_ptr()).map(|made| made.object.clone());
                made.ok_or_else(|| {
                    PyTypeError::new_err("a container that holds itself, elsewhere")
                })?
            }
        })
    }

    /// The object of a value that stands in several places. Lists and dicts are known before they
    /// are filled: they may hold themselves.
    fn shared_object(&self, py: Python<'py>, value: &Arc<Value>) -> PyResult<Bound<'py, PyAny>> {
        let know = |object: &Bound<'py, PyAny>| {
            let made = Made { object: object.clone(), _value: value.clone() };
            self.objects.borrow_mut().insert(Arc::as_ptr(value), made);
        };
        match &**value {
            Value::List(items) => {
                let list = PyList::empty(py);
                know(list.as_any());
                for item in items {
                    list.append(self.object(py, item.clone())?)?;
                }
                Ok(list.into_any())
            }
            Value::Dict(dict) => {
                let object = self.empty_dict_object(py, dict)?;
                know(&object);
                self.fill_dict_object(py, &object, dict.clone())?;
                Ok(object)
            }
            other => {
                let object = self.object(py, other.clone())?;
                know(&object);
                Ok(object)
            }
        }
    }

    fn dict_object(&self, py: Python<'py>, dict: Dict) -> PyResult<Bound<'py, PyAny>> {
        let object = self.empty_dict_object(py, &dict)?;
        self.fill_dict_object(py, &object, dict)?;
        Ok(object)
    }

    /// An empty dict of the same class.
    fn empty_dict_object(&self, py: Python<'py>, dict: &Dict) -> PyResult<Bound<'py, PyAny>> {
        if dict.is_ordered() {
            self.ordered_dict.call0()
        } else if dict.is_counter() {
            self.counter.call0()
        } else {
            Ok(PyDict::new(py).into_any())
        }
    }

    fn fill_dict_object(
        &self,
        py: Python<'py>,
        object: &Bound<'py, PyAny>,
        dict: Dict,
    ) -> PyResult<()> {
        let attributes = dict.attributes().cloned();
        // Entries go first, as where the values are made: an attribute may stand in one of them.
        for (key, value) in dict {
            object.set_item(self.object(py, key)?, self.object(py, value)?)?;
        }
        for (name, value) in attributes.into_iter().flatten() {
            let name = name.as_str().ok_or_else(|| PyTypeError::new_err("an attribute's name"))?;
            object.setattr(name, self.object(py, value)?)?;
        }
        Ok(())
    }
}

/// The attributes that were set on a tensor, if there are any.
fn attributes<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if !companion::has_attributes(&tensor.tensor()) {
        return Ok(None);
    }
    let own = companion::attributes(tensor)?.cast_into::<PyDict>()?;
    Ok(if own.is_empty() { None } else { Some(own) })
}

/// What a scalar of NumPy is: `np.mean(losses)` is saved as a float, which every reader knows.
/// PyTorch writes NumPy's own class, and refuses it with `weights_only`.
fn of_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let class = object.get_type().fully_qualified_name()?;
    let class = class.to_cow()?;
    match class.strip_prefix("numpy.").is_some_and(|name| NUMPY.contains(&name)) {
        true => object.call_method0(intern!(object.py(), "item")).map(Some),
        false => Ok(None),
    }
}
