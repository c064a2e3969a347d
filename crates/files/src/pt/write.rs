//! Writes a value as PyTorch would: a pickle that its reader of weights knows, and the storages
//! that the tensors lie in, each once, whole, whichever part of it they show.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use plimsoll_core::{DType, DeviceKind, Error, Result};
use plimsoll_pickle::Writer;
use plimsoll_tensor::Tensor;

use super::globals::storage_class;
use crate::zip::ArchiveWriter;
use crate::{Dict, Value, bytes_of};

/// How deep containers may nest: as deep as they are read.
const DEPTH: usize = 500;

/// Writes the archive.
pub(super) fn archive(value: &Value, out: &mut dyn Write) -> Result<()> {
    let mut pickle = Pickle::default();
    pickle.value(value, 0)?;
    let Pickle { out: data, storages, .. } = pickle;
    let data = data.finish();
    // As many digits as PyTorch's, by which it tells files apart in its logs: of what is in it.
    let id = format!("{:020}{:020}", data.len(), crc32fast::hash(&data));
    let mut archive = ArchiveWriter::new(out);
    let mut text = |name: &str, text: &[u8]| {
        archive.entry(&format!("archive/{name}"), text.len() as u64, |out| Ok(out.write_all(text)?))
    };
    text("data.pkl", &data)?;
    text(".format_version", b"1")?;
    text(".storage_alignment", b"64")?;
    text("byteorder", b"little")?;
    for (key, storage) in storages.iter().enumerate() {
        let name = format!("archive/data/{key}");
        archive.entry(&name, storage.nbytes() as u64, |out| bytes_of::write(storage, out))?;
    }
    let mut text = |name: &str, text: &[u8]| {
        archive.entry(&format!("archive/{name}"), text.len() as u64, |out| Ok(out.write_all(text)?))
    };
    text("version", b"3\n")?;
    text(".data/serialization_id", id.as_bytes())?;
    archive.finish()
}

#[derive(Default)]
struct Pickle {
    out: Writer,
    /// Whole storages, in the order of their keys.
    storages: Vec<Tensor>,
    /// By the storage's number.
    keys: HashMap<usize, usize>,
    /// Tensors that were written, and their place in the memo, by their storage's number.
    written: HashMap<usize, Vec<(Tensor, bool, u32)>>,
    /// Containers that stand in several places, and theirs, by address; held, so that nobody else
    /// gets it.
    shared: HashMap<*const Value, (Arc<Value>, u32)>,
}

impl Pickle {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        if depth > DEPTH {
            return Err(Error::invalid_argument(format!(
                "containers are nested more than {DEPTH} deep: save a flatter value"
            ))
            .in_operation("save"));
        }
        match value {
            Value::None => self.out.none(),
            Value::Bool(flag) => self.out.flag(*flag),
            Value::Int(number) => self.out.int(*number),
            Value::Float(number) => self.out.float(*number),
            Value::Str(text) => self.out.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::ByteArray(bytes) => {
                self.out.global("__builtin__", "bytearray");
                self.out.open();
                self.bytes(bytes);
                self.out.tuple();
                self.out.reduce();
            }
            Value::Complex(real, imaginary) => {
                self.out.global("__builtin__", "complex");
                self.out.open();
                self.out.float(*real);
                self.out.float(*imaginary);
                self.out.tuple();
                self.out.reduce();
            }
            Value::List(items) => self.list(items, depth)?,
            Value::Tuple(items) => self.tuple(items, depth)?,
            Value::Set(items) => {
                self.out.global("__builtin__", "set");
                self.out.open();
                self.list(items, depth)?;
                self.out.tuple();
                self.out.reduce();
            }
            Value::Dict(dict) => self.dict(dict, depth)?,
            Value::Size(sizes) => {
                self.out.global("torch", "Size");
                self.out.open();
                self.numbers(sizes.iter().map(|size| i128::from(*size)));
                self.out.tuple();
                self.out.reduce();
            }
            Value::DType(dtype) => self.out.global("torch", dtype.name()),
            Value::Device(name) => self.device(name),
            Value::Tensor(tensor) => self.tensor(tensor, false)?,
            Value::Parameter(tensor) => self.tensor(tensor, true)?,
            Value::Attributed(both) => self.attributed(&both.0, &both.1, depth)?,
            Value::Shared(inner) => self.shared(inner, depth)?,
            Value::Within(container) => match self.shared.get(&container.as_ptr()) {
                Some((_, place)) => self.out.again(*place),
                None => {
                    let what = "a container that holds itself, and is no list or dict of its tree";
                    return Err(Error::invalid_argument(what).in_operation("save"));
                }
            },
        }
        Ok(())
    }

    /// What stands in several places is written at the first.
    fn shared(&mut self, value: &Arc<Value>, depth: usize) -> Result<()> {
        if let Some((_, place)) = self.shared.get(&Arc::as_ptr(value)) {
            self.out.again(*place);
            return Ok(());
        }
        // Lists and dicts are remembered before they are filled: they may hold themselves.
        match &**value {
            Value::List(items) => {
                self.out.empty_list();
                self.remember(value);
                self.fill_list(items, depth)
            }
            Value::Dict(dict) if !dict.is_counter() => {
                self.begin_dict(dict);
                self.remember(value);
                self.fill_dict(dict, depth)
            }
            other => {
                self.value(other, depth)?;
                self.remember(value);
                Ok(())
            }
        }
    }

    fn remember(&mut self, value: &Arc<Value>) {
        let place = self.out.remember();
        self.shared.insert(Arc::as_ptr(value), (value.clone(), place));
    }

    /// Protocol 2 has no bytes: they are a text of Latin-1, encoded.
    fn bytes(&mut self, bytes: &[u8]) {
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        self.out.global("_codecs", "encode");
        self.out.open();
        self.out.text(&text);
        self.out.text("latin1");
        self.out.tuple();
        self.out.reduce();
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Result<()> {
        self.out.empty_list();
        self.fill_list(items, depth)
    }

    fn fill_list(&mut self, items: &[Value], depth: usize) -> Result<()> {
        if !items.is_empty() {
            self.out.open();
            for item in items {
                self.value(item, depth + 1)?;
            }
            self.out.append_all();
        }
        Ok(())
    }

    fn tuple(&mut self, items: &[Value], depth: usize) -> Result<()> {
        if items.is_empty() {
            self.out.empty_tuple();
            return Ok(());
        }
        self.out.open();
        for item in items {
            self.value(item, depth + 1)?;
        }
        self.out.tuple();
        Ok(())
    }

    fn dict(&mut self, dict: &Dict, depth: usize) -> Result<()> {
        self.begin_dict(dict);
        self.fill_dict(dict, depth)
    }

    fn begin_dict(&mut self, dict: &Dict) {
        if dict.is_ordered() {
            self.empty_ordered_dict();
            return;
        }
        if dict.is_counter() {
            self.out.global("collections", "Counter");
            self.out.open();
        }
        self.out.empty_dict();
    }

    fn fill_dict(&mut self, dict: &Dict, depth: usize) -> Result<()> {
        if !dict.is_empty() {
            self.out.open();
            for (key, value) in dict.iter() {
                self.value(key, depth + 1)?;
                self.value(value, depth + 1)?;
            }
            self.out.set_items();
        }
        if dict.is_counter() {
            // A call of the class with what it counted, as Python writes it.
            self.out.tuple();
            self.out.reduce();
        }
        if let Some(attributes) = dict.attributes().filter(|_| dict.is_ordered()) {
            self.dict(attributes, depth + 1)?;
            self.out.build();
        }
        Ok(())
    }

    fn empty_ordered_dict(&mut self) {
        self.out.global("collections", "OrderedDict");
        self.out.empty_tuple();
        self.out.reduce();
    }

    fn device(&mut self, name: &str) {
        self.out.global("torch", "device");
        let (kind, index) = name.split_once(':').unwrap_or((name, ""));
        self.out.open();
        match index.parse::<u16>() {
            Ok(index) => {
                self.out.text(kind);
                self.out.int(index.into());
            }
            Err(_) => self.out.text(name),
        }
        self.out.tuple();
        self.out.reduce();
    }

    fn tensor(&mut self, tensor: &Tensor, parameter: bool) -> Result<()> {
        let storage = tensor.storage_id();
        let before = self.written.get(&storage).into_iter().flatten();
        let same = |(known, as_parameter, _): &&(Tensor, bool, u32)| {
            known.is(tensor) && *as_parameter == parameter
        };
        if let Some(&(_, _, place)) = before.into_iter().find(same) {
            self.out.again(place);
            return Ok(());
        }
        if parameter {
            self.out.global("torch._utils", "_rebuild_parameter");
            self.out.open();
        }
        self.rebuild(tensor, tensor.requires_grad() && !parameter)?;
        if parameter {
            self.out.flag(tensor.requires_grad());
            self.empty_ordered_dict();
            self.out.tuple();
            self.out.reduce();
        }
        let place = self.out.remember();
        self.written.entry(storage).or_default().push((tensor.clone(), parameter, place));
        Ok(())
    }

    /// A tensor with what Python keeps beside it, as PyTorch writes it.
    fn attributed(&mut self, tensor: &Value, attributes: &Dict, depth: usize) -> Result<()> {
        match tensor {
            Value::Parameter(tensor) => {
                self.out.global("torch._utils", "_rebuild_parameter_with_state");
                self.out.open();
                self.rebuild(tensor, false)?;
                self.out.flag(tensor.requires_grad());
                self.empty_ordered_dict();
            }
            Value::Tensor(tensor) => {
                self.out.global("torch._tensor", "_rebuild_from_type_v2");
                self.out.open();
                self.out.global("torch._utils", "_rebuild_tensor_v2");
                self.out.global("torch", "Tensor");
                self.rebuild_arguments(tensor, tensor.requires_grad())?;
            }
            other => {
                let what =
                    format!("attributes of a {}, which only tensors have", other.type_name());
                return Err(Error::invalid_argument(what).in_operation("save"));
            }
        }
        self.dict(attributes, depth + 1)?;
        self.out.tuple();
        self.out.reduce();
        Ok(())
    }

    /// The call that makes the tensor.
    fn rebuild(&mut self, tensor: &Tensor, requires_grad: bool) -> Result<()> {
        self.out.global("torch._utils", "_rebuild_tensor_v2");
        self.rebuild_arguments(tensor, requires_grad)?;
        self.out.reduce();
        Ok(())
    }

    /// What that call takes: the tensor's storage, its place in it, and no hooks.
    fn rebuild_arguments(&mut self, tensor: &Tensor, requires_grad: bool) -> Result<()> {
        let key = self.storage_key(tensor)?;
        let numel = self.storages[key].numel();
        self.out.open();
        self.out.open();
        self.out.text("storage");
        self.out.global("torch", storage_class(tensor.dtype()));
        self.out.text(&key.to_string());
        self.out.text(&location(tensor));
        self.out.int(numel as i128);
        self.out.tuple();
        self.out.persistent_id();
        self.out.int(tensor.storage_offset() as i128);
        self.numbers(tensor.shape().iter().map(|size| *size as i128));
        self.numbers(tensor.strides().iter().map(|stride| *stride as i128));
        self.out.flag(requires_grad);
        self.empty_ordered_dict();
        self.out.tuple();
        Ok(())
    }

    fn storage_key(&mut self, tensor: &Tensor) -> Result<usize> {
        let known = self.keys.get(&tensor.storage_id()).copied();
        let Some(key) = known else {
            let key = self.storages.len();
            self.storages.push(bytes_of::whole_storage(tensor)?);
            self.keys.insert(tensor.storage_id(), key);
            return Ok(key);
        };
        let (first, second): (DType, DType) = (self.storages[key].dtype(), tensor.dtype());
        if first == second {
            return Ok(key);
        }
        Err(Error::dtype(
            "save",
            format!(
                "cannot save multiple tensors or storages that view the same data as different types ({first} and \
                 {second}): clone one of them first"
            ),
        ))
    }

    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = i128>) {
        if numbers.len() == 0 {
            return self.out.empty_tuple();
        }
        self.out.open();
        for number in numbers {
            self.out.int(number);
        }
        self.out.tuple();
    }
}

/// Where the tensor lies, in PyTorch's words. Devices that it has not are the host.
fn location(tensor: &Tensor) -> String {
    let device = tensor.device();
    match device.kind() {
        DeviceKind::Cuda => format!("cuda:{}", device.index()),
        DeviceKind::StandIn if device.answers_as_cuda() => device.to_string(),
        DeviceKind::Cpu | DeviceKind::StandIn => "cpu".to_string(),
    }
}
