//! The globals that a file may name, and what each means here: PyTorch's own list of what
//! `weights_only` allows, less what Plimsoll has no tensors for. Everything else is an error with
//! its name, so nothing of a file is ever run.

use plimsoll_core::DType;

/// A global of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Global {
    OrderedDict,
    Counter,
    Size,
    Device,
    /// The class of plain tensors, which some pickles name as the class to make.
    Tensor,
    /// The class of parameters.
    Parameter,
    RebuildTensor,
    RebuildTensorV2,
    RebuildTensorV3,
    RebuildParameter,
    RebuildParameterWithState,
    RebuildFromType,
    /// Texts into bytes, as protocol 2 has no bytes.
    Encode,
    Bytes,
    ByteArray,
    Complex,
    Set,
    DType(DType),
    /// A class of storages, by the dtype of its elements.
    Storage(DType),
}

/// Classes of storages. Storages without a type count bytes.
const STORAGES: [(&str, DType); 10] = [
    ("FloatStorage", DType::F32),
    ("DoubleStorage", DType::F64),
    ("HalfStorage", DType::F16),
    ("BFloat16Storage", DType::BF16),
    ("LongStorage", DType::I64),
    ("IntStorage", DType::I32),
    ("ShortStorage", DType::I16),
    ("CharStorage", DType::I8),
    ("ByteStorage", DType::U8),
    ("BoolStorage", DType::Bool),
];

/// The class of storages that holds elements of a dtype.
pub(super) fn storage_class(dtype: DType) -> &'static str {
    STORAGES.iter().find(|(_, of)| *of == dtype).map_or("UntypedStorage", |(name, _)| name)
}

/// The global of that name; an error says why there is none.
pub(super) fn find(module: &str, name: &str) -> Result<Global, String> {
    Ok(match (module, name) {
        ("collections", "OrderedDict") => Global::OrderedDict,
        ("collections", "Counter") => Global::Counter,
        ("torch", "Size") => Global::Size,
        ("torch", "device") => Global::Device,
        ("torch", "Tensor") | ("torch._tensor", "Tensor") => Global::Tensor,
        ("torch.nn.parameter", "Parameter") => Global::Parameter,
        ("torch._utils", "_rebuild_tensor") => Global::RebuildTensor,
        ("torch._utils", "_rebuild_tensor_v2") => Global::RebuildTensorV2,
        ("torch._utils", "_rebuild_tensor_v3") => Global::RebuildTensorV3,
        ("torch._utils", "_rebuild_parameter") => Global::RebuildParameter,
        ("torch._utils", "_rebuild_parameter_with_state") => Global::RebuildParameterWithState,
        ("torch._tensor", "_rebuild_from_type_v2") => Global::RebuildFromType,
        ("_codecs", "encode") => Global::Encode,
        // Python 2 had another name for it, which protocol 2 still writes.
        ("builtins" | "__builtin__", "bytes") => Global::Bytes,
        ("builtins" | "__builtin__", "bytearray") => Global::ByteArray,
        ("builtins" | "__builtin__", "complex") => Global::Complex,
        ("builtins" | "__builtin__", "set") => Global::Set,
        ("torch.storage", "UntypedStorage") | ("torch", "UntypedStorage") => {
            Global::Storage(DType::U8)
        }
        ("torch" | "torch.cuda", _) if name.ends_with("Storage") => {
            match STORAGES.iter().find(|(known, _)| *known == name) {
                Some((_, dtype)) => Global::Storage(*dtype),
                None => return Err(no_tensors(module, name)),
            }
        }
        ("torch", _) => match DType::parse(name) {
            // The names of dtypes alone, not the short forms that `parse` knows too.
            Ok(dtype) if dtype.name() == name => Global::DType(dtype),
            _ if is_dtype_of_pytorch(name) => return Err(no_dtype(name)),
            _ => return Err(unknown(module, name)),
        },
        ("torch._utils", _) if name.starts_with("_rebuild_") => {
            return Err(no_tensors(module, name));
        }
        _ => return Err(unknown(module, name)),
    })
}

fn unknown(module: &str, name: &str) -> String {
    let (module, name) = (short(module), short(name));
    format!("Unsupported global: GLOBAL {module}.{name} was not an allowed global by default")
}

/// Whether PyTorch has a dtype of that name, which `DType::parse` does not know.
fn is_dtype_of_pytorch(name: &str) -> bool {
    let is_numbered = |start: &&str| {
        name.strip_prefix(*start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    name.starts_with("float8_")
        || name.starts_with("float4_")
        || ["complex", "qint", "quint", "uint", "int", "bits"].iter().any(is_numbered)
}

fn no_dtype(name: &str) -> String {
    let name = short(name);
    format!(
        "Unsupported global: GLOBAL torch.{name} is a dtype of PyTorch that Plimsoll has not; convert what has it in \
         PyTorch, and save it again"
    )
}

fn no_tensors(module: &str, name: &str) -> String {
    let (module, name) = (short(module), short(name));
    format!(
        "Unsupported global: GLOBAL {module}.{name} is of PyTorch, but Plimsoll has no such tensors (sparse, \
         quantized, complex and meta tensors are not read; convert them in PyTorch and save them again)"
    )
}

/// The start of a text from a file, for messages.
pub(super) fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_run_is_not_in_the_list() {
        for (module, name) in [
            ("os", "system"),
            ("posix", "system"),
            ("builtins", "eval"),
            ("__builtin__", "getattr"),
            ("torch", "load"),
            ("torch", "float"),
            ("torch", "f32"),
            ("torch", "interpolate"),
            ("torch", "serialization"),
            ("torch._utils", "_import_dotted_name"),
            ("numpy.core.multiarray", "_reconstruct"),
        ] {
            let fault = find(module, name).unwrap_err();
            assert!(fault.contains(&format!("GLOBAL {module}.{name}")), "{fault}");
        }
    }

    #[test]
    fn every_dtype_has_a_storage_class() {
        for dtype in DType::ALL {
            assert_eq!(find("torch", storage_class(dtype)), Ok(Global::Storage(dtype)));
            assert_eq!(find("torch", dtype.name()), Ok(Global::DType(dtype)));
        }
        for name in ["float8_e4m3fn", "uint16", "uint64", "complex64", "quint8"] {
            let fault = find("torch", name).unwrap_err();
            assert!(fault.contains("a dtype of PyTorch that Plimsoll has not"), "{fault}");
        }
        assert!(find("torch", "ComplexFloatStorage").unwrap_err().contains("no such tensors"));
    }
}
