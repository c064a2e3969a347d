//! `cargo xtask generate`: writes the Python methods, functions and stubs of every operation in the
//! registry, one file a family, as files in the tree that people read and search. A test here
//! compares them with what the registry says now.
//!
//! The rule that it goes by: required arguments are positional in Rust, the others are one options
//! value, and the method that takes it is called `name_with`. What Python has beside operations
//! (constructors, indexing, memory functions) is written by hand in `crates/python`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use plimsoll_tensor::operation::{Home, OnCuda, OpInfo, Out as RowOut};
use plimsoll_tensor::signature::{Kind, Parameter, Returns, Signature};

use crate::method_docs;
use crate::run;
use crate::stubs::stubs;

/// Operations whose Python form is written by hand: constructors take a dtype and a device, `where`
/// has its arguments in another order as a method, `to` takes a dtype or a device, and `nonzero`
/// may give a tuple.
const BY_HAND: &[&str] =
    &["full", "arange", "eye", "nonzero", "rand", "randn", "randint", "to", "where"];

/// Operations whose arguments are all positional in Rust.
const POSITIONAL: &[&str] = &[
    "cat",
    "stack",
    "slice",
    "dropout",
    "as_strided",
    "index_put",
    "uniform_",
    "normal_",
    "split",
    "split_with_sizes",
    "chunk",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "tensor_split",
    "unbind",
    "unbind_copy",
    "split_with_sizes_copy",
    "flatten",
    "diagonal",
    "diagonal_copy",
    "diagonal_scatter",
    "diag",
    "diag_embed",
    "diagflat",
    "tril",
    "triu",
    "rot90",
    "roll",
    "constant_pad_nd",
    "pad",
    "concat",
    "concatenate",
    "combinations",
    "meshgrid",
    "scatter",
    "scatter_reduce",
    "index_add",
    "index_reduce",
    "put",
    "take_along_dim",
    "nonzero_static",
    "exponential_",
    "cauchy_",
    "log_normal_",
    "geometric_",
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "random_",
    "copy_",
    "fill",
];

/// Options values that several operations share; others are named like their operation.
const SHARED_OPTIONS: &[(&str, &[&str])] = &[
    ("ProductOptions", &["addmm", "addmv", "addbmm", "baddbmm", "addr"]),
    ("AddOptions", &["add", "sub", "rsub"]),
    ("AddcmulOptions", &["addcmul", "addcdiv"]),
    ("HardshrinkOptions", &["hardshrink", "softshrink"]),
    ("InplaceOptions", &["silu", "mish", "hardswish", "hardsigmoid", "selu", "relu6"]),
    ("IscloseOptions", &["isclose", "allclose"]),
    ("SumOptions", &["sum", "mean"]),
    ("ReduceOptions", &["amax", "amin", "any", "all"]),
    ("ArgOptions", &["argmax", "argmin"]),
    ("SoftmaxOptions", &["softmax", "log_softmax"]),
    ("ConvOptions", &["conv1d", "conv2d", "conv3d"]),
    ("ConvTransposeOptions", &["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]),
    (
        "MaxPoolOptions",
        &[
            "max_pool1d",
            "max_pool2d",
            "max_pool3d",
            "max_pool1d_with_indices",
            "max_pool2d_with_indices",
            "max_pool3d_with_indices",
        ],
    ),
    ("AvgPoolOptions", &["avg_pool1d", "avg_pool2d", "avg_pool3d"]),
    ("LpPoolOptions", &["lp_pool1d", "lp_pool2d", "lp_pool3d"]),
    ("MaxUnpoolOptions", &["max_unpool1d", "max_unpool2d", "max_unpool3d"]),
];

/// Signatures whose Rust method is not named by the rule.
const RUST_NAMES: &[(&str, &str)] = &[
    ("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "clone_tensor"),
    (
        "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
        "random_between_",
    ),
    ("split(Tensor self, int[] split_size, int dim=0) -> Tensor[]", "split_with_sizes"),
    (
        "tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor[]",
        "tensor_split_by",
    ),
    ("squeeze_copy(Tensor self, int[] dim) -> Tensor", "squeeze_copy_with"),
    ("narrow(Tensor self, int dim, Tensor start, int length) -> Tensor", "narrow_from"),
    ("squeeze(Tensor self, int[] dim) -> Tensor", "squeeze_with"),
];

/// Signatures whose Rust call is not built by the rule: the first parameter is not the tensor that
/// Rust calls, or Rust has a number where PyTorch has None.
const RUST_CALLS: &[(&str, &str)] = &[
    (
        "einsum(str equation, Tensor[] tensors) -> Tensor",
        "Tensor::einsum(a.text(0)?, &a.tensors(1)?)?",
    ),
    ("polygamma(int n, Tensor self) -> Tensor", "a.tensor(1)?.polygamma(a.int(0)?)?"),
    (
        "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        "a.tensor(0)?.clone_with(a.optional_memory_format(1).unwrap_or(plimsoll_tensor::MemoryFormat::Preserve))?",
    ),
    (
        "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided(a.ints(1)?, a.ints(2)?, a.optional_int(3).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided_copy(a.ints(1)?, a.ints(2)?, a.optional_int(3).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
        "a.tensor(0)?.as_strided_scatter(a.tensor(1)?, a.ints(2)?, a.ints(3)?, a.optional_int(4).unwrap_or(a.tensor(0)?.storage_offset() as i64))?",
    ),
    (
        "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        "a.tensor(0)?.slice_scatter(a.tensor(1)?, a.int(2)?, a.optional_int(3).unwrap_or(0), a.optional_int(4).unwrap_or(i64::MAX), a.int(5)?)?",
    ),
    ("fill(Tensor self, Tensor|Scalar value) -> Tensor", "a.tensor(0)?.fill(a.other(1)?)?"),
    (
        "atleast_1d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_1d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "atleast_2d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_2d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "atleast_3d(Tensor[] tensors) -> Tensor[]",
        "a.tensors(0)?.iter().map(|t| t.atleast_3d()).collect::<plimsoll_core::Result<Vec<_>>>()?",
    ),
    (
        "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "a.tensor(0)?.repeat_interleave(a.int(1)?, a.optional_int(2))?",
    ),
    (
        "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
        "a.tensor(0)?.repeat_interleave_by(a.tensor(1)?, a.optional_int(2))?",
    ),
    (
        "normal(Tensor|Scalar mean, Tensor|Scalar std=1, *, Generator? generator=None) -> Tensor",
        "Tensor::normal(a.other(0)?, a.other(1)?)?",
    ),
    (
        "normal(float mean, float std, int[] size, *, Generator? generator=None, DType? dtype=None, Device? device=None, bool requires_grad=False, Layout? layout=None, bool? pin_memory=False) -> Tensor",
        "Tensor::normal_of_size(a.float(0)?, a.float(1)?, a.ints(2)?, plimsoll_tensor::TensorOptions { dtype: a.optional_dtype(4), device: a.optional_device(5), requires_grad: a.bool(6)?, memory_format: None })?",
    ),
    (
        "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor",
        "Tensor::interleaved(a.tensor(0)?)?",
    ),
    (
        "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
        "a.tensor(0)?.slice(a.int(1)?, a.optional_int(2).unwrap_or(0), a.optional_int(3).unwrap_or(i64::MAX), a.int(4)?)?",
    ),
];

/// Composed operations whose form in place is a method of its own: what they are made of has one,
/// or they refuse tensors that the result does not fit.
const OWN_IN_PLACE: &[&str] =
    &["deg2rad", "float_power", "ldexp", "mvlgamma", "rad2deg", "square", "true_divide"];

/// Functions of `torch.special` that are others of `torch` under a name of their own.
const SPECIAL_NAMES: &[(&str, &str)] = &[
    ("digamma", "digamma"),
    ("psi", "digamma"),
    ("erf", "erf"),
    ("erfc", "erfc"),
    ("erfinv", "erfinv"),
    ("exp2", "exp2"),
    ("expit", "sigmoid"),
    ("expm1", "expm1"),
    ("gammainc", "igamma"),
    ("gammaincc", "igammac"),
    ("gammaln", "lgamma"),
    ("i0", "i0"),
    ("log1p", "log1p"),
    ("log_softmax", "log_softmax"),
    ("logit", "logit"),
    ("multigammaln", "mvlgamma"),
    ("polygamma", "polygamma"),
    ("round", "round"),
    ("sinc", "sinc"),
    ("softmax", "softmax"),
    ("xlogy", "xlogy"),
];

pub(crate) const NOTICE: &str =
    "Generated by `cargo xtask generate` from the registry of operations; do not edit.";

/// Writes the files.
pub(crate) fn write() -> Result<(), String> {
    for (path, text) in files()? {
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Each generated file with its text.
fn files() -> Result<Vec<(PathBuf, String)>, String> {
    let mut families: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
    let sentences = method_docs::first_sentences()?;
    for operation in operations(&sentences)? {
        families.entry(operation.info.family).or_default().push(operation);
    }
    let python = run::root().join("crates/python");
    let folder = python.join("src/generated");
    let template = python.join("stubs/template.pyi");
    let template =
        std::fs::read_to_string(&template).map_err(|e| format!("{}: {e}", template.display()))?;
    // Families whose operations all write into their tensor have methods only.
    let with_functions = families
        .iter()
        .filter(|(_, operations)| operations.iter().any(|operation| !operation.writes()))
        .map(|(family, _)| *family)
        .collect::<Vec<_>>();
    let mut files = vec![
        (folder.join("mod.rs"), index(families.keys().copied(), &with_functions)),
        (python.join("python/plimsoll/_plimsoll.pyi"), stubs(&families, &template)),
    ];
    files.push((run::root().join("crates/tensor/src/summaries.rs"), summaries(&sentences)?));
    for (home, path) in [
        (Home::Functional, "nn/_functional.py"),
        (Home::Special, "special.py"),
        (Home::Linalg, "linalg.py"),
        (Home::Fft, "fft.py"),
    ] {
        let text = reexports(home, families.values().flatten());
        if let Some(text) = text {
            files.push((python.join("python/plimsoll").join(path), text));
        }
    }
    for (family, operations) in &families {
        files.push((folder.join(format!("{family}.rs")), bindings(operations)));
    }
    Ok(files)
}

pub(crate) struct Operation {
    pub(crate) info: &'static OpInfo,
    /// What the documentation of its Rust method says first.
    summary: String,
    pub(crate) overloads: Vec<Overload>,
}

pub(crate) struct Overload {
    text: &'static str,
    pub(crate) signature: Signature,
}

fn operations(sentences: &BTreeMap<String, String>) -> Result<Vec<Operation>, String> {
    plimsoll_tensor::ops()
        // Derivative kernels are reached only through their operation.
        .filter(|info| !info.signatures.is_empty() && !BY_HAND.contains(&info.name))
        .map(|info| {
            let overloads = overloads(info)?;
            let summary = summary(info.name, &overloads, sentences)?;
            Ok(Operation { info, summary, overloads })
        })
        .collect()
}

/// A documentation comment, in lines of at most 100 columns inside an `impl`.
fn documented(text: &str) -> String {
    const COLUMNS: usize = 100 - "    /// ".len();
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => *line += &format!(" {word}"),
            _ => lines.push(word.to_string()),
        }
    }
    lines.iter().map(|line| format!("/// {line}\n")).collect()
}

/// What the registry says of every operation that users can call.
fn summaries(sentences: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = format!(
        "//! One line about each operation: the first sentence of its method's documentation.\n//! {NOTICE}\n\n\
         /// By name, in order.\npub(crate) static SUMMARIES: &[(&str, &str)] = &[\n"
    );
    let mut rows = BTreeMap::new();
    for info in plimsoll_tensor::ops().filter(|info| !info.signatures.is_empty()) {
        rows.insert(info.name, summary(info.name, &overloads(info)?, sentences)?);
    }
    for (name, summary) in rows {
        let _ = writeln!(text, "({name:?}, {summary:?}),");
    }
    text.push_str("];\n");
    Ok(formatted(text))
}

fn overloads(info: &'static OpInfo) -> Result<Vec<Overload>, String> {
    let read = |text: &&'static str| {
        let signature = Signature::parse(text).map_err(|error| error.to_string())?;
        Ok(Overload { text, signature })
    };
    info.signatures.iter().map(read).collect()
}

/// The first sentence of the method behind an operation.
fn summary(
    name: &str,
    overloads: &[Overload],
    sentences: &BTreeMap<String, String>,
) -> Result<String, String> {
    let renamed = |overload: &Overload| {
        RUST_NAMES.iter().find(|(text, _)| *text == overload.text).map(|(_, rust)| *rust)
    };
    // Names that are words of Rust have an underscore there.
    let escaped = format!("{name}_");
    let mut names =
        [name, escaped.as_str()].into_iter().chain(overloads.iter().filter_map(renamed));
    let found = names.find_map(|name| sentences.get(name));
    found.cloned().ok_or_else(|| format!("no method `{name}` with documentation is in the API"))
}

impl Operation {
    pub(crate) fn name(&self) -> &'static str {
        self.info.name
    }

    /// The name of its table.
    fn constant(&self) -> String {
        self.name().to_uppercase()
    }

    fn is_method(&self) -> bool {
        self.overloads.iter().any(|overload| overload.signature.is_method())
    }

    /// Whether the operation as it stands writes into its tensor (`fill_`).
    pub(crate) fn writes(&self) -> bool {
        self.name().ends_with('_')
    }

    /// The form with `out=` of what is made of other operations.
    fn copied(&self) -> &'static str {
        match self.info.out {
            RowOut::None => "Out::None",
            RowOut::Exact => "Out::CopiedExact",
            RowOut::Cast => "Out::Copied",
        }
    }

    /// The Rust calls of one signature: a new tensor, in place, into given ones.
    fn overload(&self, text: &mut String, overload: &Overload) {
        let _ = writeln!(text, "Overload {{ signature: {:?},", overload.text);
        let given = RUST_CALLS.iter().find(|(signature, _)| *signature == overload.text);
        let overridden = given.map(|(_, call)| call.to_string()).or_else(|| overload.reversed());
        let tensors = overload.signature.results.len();
        let results = match tensors {
            _ if overload.signature.returns == Returns::Bool => "{}".to_string(),
            _ if overload.signature.returns == Returns::List => "Ok({}.into())".to_string(),
            1 => "Ok(smallvec::smallvec![{}])".to_string(),
            _ => {
                let names: Vec<String> = (0..tensors).map(|i| format!("r{i}")).collect();
                let list = names.join(", ");
                format!("{{ let ({list}) = {{}}; Ok(smallvec::smallvec![{list}]) }}")
            }
        };
        let variant = if overload.signature.returns == Returns::Bool { "Bool" } else { "Tensors" };
        let some = |call: String| {
            // A truth is the call's own result.
            let call = if variant == "Bool" { call.trim_end_matches('?') } else { &call };
            format!("New::{variant}(|a| {})", results.replacen("{}", call, 1))
        };
        if let Some(call) = overridden {
            let composed = matches!(self.info.cuda, OnCuda::Composed);
            let out = match self.info.out.exists() {
                true if composed => self.copied(),
                true => "Out::Copied",
                false => "Out::None",
            };
            let _ = writeln!(text, "new: {}, in_place: None, out: {out} }},", some(call));
            return;
        }
        let new = if self.writes() {
            "New::None".to_string()
        } else {
            some(format!("{}?", overload.call("", None)))
        };
        let writes = self.writes() || self.info.in_place;
        let composed = matches!(self.info.cuda, OnCuda::Composed);
        let in_place = if !writes || !overload.signature.is_method() {
            "None".to_string()
        } else if composed && !self.writes() && !OWN_IN_PLACE.contains(&self.name()) {
            let result = overload.call("", None);
            format!("Some(|a| a.tensor(0)?.copy_(&{result}?).map(drop))")
        } else {
            let ending = if self.writes() { "" } else { "_" };
            format!("Some(|a| {}.map(drop))", overload.call(ending, None))
        };
        let out = if composed && self.info.out.exists() {
            self.copied().to_string()
        } else if self.info.out.exists() {
            let targets: Vec<String> = (0..tensors).map(|i| format!("&out[{i}]")).collect();
            format!("Out::Written(|a, out| {})", overload.call("_out", Some(targets.join(", "))))
        } else {
            "Out::None".to_string()
        };
        let _ = writeln!(text, "new: {new}, in_place: {in_place}, out: {out} }},");
    }
}

impl Overload {
    /// The Rust call where the first operand is the number: `rpow` of `pow(Scalar self, ..)`.
    fn reversed(&self) -> Option<String> {
        match self.signature.parameters.as_slice() {
            [Parameter { kind: Kind::Number, .. }, Parameter { kind: Kind::Tensor, .. }] => {
                Some(format!("a.tensor(1)?.r{}(a.number(0)?)?", self.signature.name))
            }
            _ => None,
        }
    }

    /// The Rust call of the form with this ending, without the question mark.
    fn call(&self, ending: &str, targets: Option<String>) -> String {
        let signature = &self.signature;
        let skipped = usize::from(signature.is_method());
        let parameters = || {
            let all = signature.parameters.iter().enumerate().skip(skipped);
            all.filter(|(_, parameter)| {
                !matches!(parameter.kind, Kind::OptionalGenerator | Kind::OptionalLayout)
            })
        };
        let positional = POSITIONAL.contains(&signature.name.as_str());
        let is_plain = |parameter: &Parameter| positional || !parameter.is_optional();
        let mut arguments: Vec<String> = parameters()
            .filter(|(_, parameter)| is_plain(parameter))
            .map(|(index, parameter)| read(parameter, index, false))
            .collect();
        let options: Vec<(usize, &Parameter)> =
            parameters().filter(|(_, parameter)| !is_plain(parameter)).collect();
        if !options.is_empty() {
            let mut value = format!("plimsoll_tensor::{}::new()", options_name(&signature.name));
            for (index, parameter) in &options {
                let _ = write!(value, ".{}({})", parameter.name, read(parameter, *index, true));
            }
            arguments.push(value);
        }
        arguments.extend(targets);
        let given = RUST_NAMES.iter().find(|(text, _)| *text == self.text).map(|(_, name)| *name);
        let with = if options.is_empty() { "" } else { "_with" };
        let name = given.map_or_else(|| format!("{}{with}", signature.name), str::to_string);
        let target = if signature.is_method() { "a.tensor(0)?." } else { "Tensor::" };
        format!("{target}{name}{ending}({})", arguments.join(", "))
    }
}

/// How an argument is read, as a parameter of a method or as the value of an option.
fn read(parameter: &Parameter, index: usize, as_option: bool) -> String {
    // A word stands for a choice whose type is named like its parameter.
    let choice = || format!("plimsoll_tensor::{}", camel(&parameter.name));
    match parameter.kind {
        Kind::Tensor => format!("a.tensor({index})?"),
        Kind::OptionalTensor => format!("a.optional_tensor({index})"),
        Kind::TensorOrNumber => format!("a.other({index})?"),
        Kind::Tensors => format!("&a.tensors({index})?"),
        Kind::OptionalTensors => format!("&a.optional_tensors({index})?"),
        Kind::Number => format!("a.number({index})?"),
        Kind::OptionalNumber => format!("a.optional_number({index})"),
        Kind::Int => format!("a.int({index})?"),
        Kind::OptionalInt => format!("a.optional_int({index})"),
        Kind::Ints if as_option => format!("plimsoll_tensor::DimList::from(a.ints({index})?)"),
        Kind::Ints => format!("a.ints({index})?"),
        Kind::OptionalInts => {
            format!("plimsoll_tensor::DimList::from(a.optional_ints({index}).unwrap_or_default())")
        }
        Kind::Float => format!("a.float({index})?"),
        Kind::OptionalFloat => format!("a.optional_float({index})"),
        Kind::Floats => format!("a.floats({index})?"),
        Kind::OptionalFloats => format!("a.optional_floats({index})"),
        Kind::OptionalBool => format!("a.optional_bool({index})"),
        Kind::Bool => format!("a.bool({index})?"),
        Kind::Text => format!("a.word::<{}>({index})?", choice()),
        Kind::OptionalText => format!("a.optional_word::<{}>({index})?", choice()),
        Kind::DType => format!("a.dtype({index})?"),
        Kind::OptionalDType => format!("a.optional_dtype({index})"),
        Kind::OptionalDevice => format!("a.optional_device({index})"),
        Kind::OptionalMemoryFormat => format!("a.optional_memory_format({index})"),
        Kind::OptionalGenerator | Kind::OptionalLayout => {
            unreachable!("no argument of the Rust call")
        }
    }
}

/// The options value of an operation.
fn options_name(operation: &str) -> String {
    let shared = SHARED_OPTIONS.iter().find(|(_, operations)| operations.contains(&operation));
    if let Some((name, _)) = shared {
        return (*name).to_string();
    }
    camel(operation) + "Options"
}

/// `rounding_mode` as `RoundingMode`.
fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    });
    words.collect()
}

/// The file that brings the families together.
fn index<'a>(families: impl Iterator<Item = &'a str>, with_functions: &[&str]) -> String {
    let mut text = format!(
        "//! {NOTICE}\n//!\n//! One file a family; what the tables are is in `function.rs`.\n\n"
    );
    for family in families {
        let _ = writeln!(text, "mod {family};");
    }
    text.push_str(
        "\nuse pyo3::prelude::*;\n\n/// Adds every function to the module.\n\
         pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {\n",
    );
    for family in with_functions {
        let _ = writeln!(text, "    {family}::register(module)?;");
    }
    text.push_str("    Ok(())\n}\n");
    formatted(text)
}

/// The Rust file of one family: tables, methods of `Tensor`, functions of the module.
fn bindings(operations: &[Operation]) -> String {
    let mut text = format!(
        "//! {NOTICE}\n\nuse plimsoll_tensor::Tensor;\nuse pyo3::prelude::*;\n\
         use pyo3::types::{{PyDict, PyTuple}};\n\n\
         use crate::function::{{Function, New, Out, Overload}};\nuse crate::tensor::PyTensor;\n\n"
    );
    for operation in operations {
        let _ = writeln!(
            text,
            "static {}: Function = Function::new({:?}, &[",
            operation.constant(),
            operation.name()
        );
        for overload in &operation.overloads {
            operation.overload(&mut text, overload);
        }
        text.push_str("]);\n\n");
    }
    text.push_str("#[pymethods]\nimpl PyTensor {\n");
    for operation in operations.iter().filter(|operation| operation.is_method()) {
        let (name, constant, summary) =
            (operation.name(), operation.constant(), &operation.summary);
        let mut method = |name: &str, form: &str, doc: String| {
            let _ = write!(
                text,
                "{}#[pyo3(signature = (*args, **kwargs))]\n\
                 fn {name}<'py>(slf: &Bound<'py, PyTensor>, args: &Bound<'py, PyTuple>, \
                 kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {{\n\
                 {constant}.{form}(slf, args, kwargs)\n}}\n\n",
                documented(&doc)
            );
        };
        if operation.writes() {
            method(name, "in_place", format!("{summary}."));
            continue;
        }
        method(name, "method", format!("{summary}."));
        if operation.info.in_place {
            method(&format!("{name}_"), "in_place", format!("{summary}, in place."));
        }
    }
    text.push_str("}\n\n");
    for operation in operations.iter().filter(|operation| !operation.writes()) {
        let (name, constant, summary) =
            (operation.name(), operation.constant(), &operation.summary);
        let _ = write!(
            text,
            "{}#[pyfunction]\n#[pyo3(signature = (*args, **kwargs))]\n\
             fn {name}<'py>(args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) \
             -> PyResult<Bound<'py, PyAny>> {{\n{constant}.function(args, kwargs)\n}}\n\n",
            documented(&format!("{summary}."))
        );
    }
    if operations.iter().all(Operation::writes) {
        return formatted(text.replace("use plimsoll_tensor::Tensor;\n", ""));
    }
    text.push_str(
        "/// Adds the family's functions to the module.\n\
         pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {\n",
    );
    for operation in operations.iter().filter(|operation| !operation.writes()) {
        // Those of other modules are imported there by name, and not exported from here.
        let name = operation.name();
        let add = match operation.info.home {
            Home::Torch => "add_function(".to_string(),
            _ => format!("setattr({name:?}, "),
        };
        let _ = writeln!(text, "    module.{add}wrap_pyfunction!({name}, module)?)?;");
    }
    text.push_str("    Ok(())\n}\n");
    if !text.contains("Tensor::") {
        text = text.replace("use plimsoll_tensor::Tensor;\n", "");
    }
    formatted(text)
}

/// The Python module of `home`: its functions under the names that PyTorch has there, if it has
/// any.
fn reexports<'a>(home: Home, operations: impl Iterator<Item = &'a Operation>) -> Option<String> {
    let names: Vec<&str> = operations
        .filter(|operation| operation.info.home == home && !operation.writes())
        .map(Operation::name)
        .collect();
    if names.is_empty() {
        return None;
    }
    let dots = if home == Home::Functional { ".." } else { "." };
    let mut text = format!("# {NOTICE}\n\n");
    let mut listed = Vec::new();
    for name in names {
        let short = name.strip_prefix(home.prefix()).unwrap_or(name);
        let _ = writeln!(text, "from {dots}_plimsoll import {name} as {short}");
        listed.push(short);
    }
    for (short, name) in SPECIAL_NAMES.iter().filter(|_| home == Home::Special) {
        let _ = writeln!(text, "from ._plimsoll import {name} as {short}");
        listed.push(short);
    }
    let _ = writeln!(text, "\n__all__ = {listed:?}");
    Some(text)
}

/// The text as `cargo fmt` leaves it, so that the tree's format check holds for it too.
fn formatted(text: String) -> String {
    use std::io::Write as _;
    let rustfmt = std::process::Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(run::root())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = rustfmt else { return text };
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait_with_output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_in_the_tree_are_what_the_registry_says() {
        for (path, text) in files().unwrap() {
            let have = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(have == text, "{} is out of date: run `cargo xtask generate`", path.display());
        }
    }
}
