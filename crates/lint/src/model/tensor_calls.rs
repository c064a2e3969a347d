//! What PyTorch's functions and methods do to the facts that rules follow: graph, place, number of
//! dimensions, contiguity. Only what is certain; a function that is not listed keeps nothing.

use ruff_python_ast::{Expr, ExprCall};

use super::expression::{arguments, integer, is_true, keyword, path, string};
use super::infer::joined;
use super::scope::Scope;
use super::value::{Graph, Residence, Tensor, Value};
use super::{File, Grad, names};

/// Functions that make a tensor from sizes and constants.
pub(crate) const CONSTANT_CREATORS: &[&str] =
    &["zeros", "ones", "empty", "full", "eye", "arange", "linspace"];
/// Functions that make a tensor from sizes and random numbers.
pub(crate) const RANDOM_CREATORS: &[&str] = &["rand", "randn", "randint", "randperm"];
/// Results that carry no graph whatever goes in.
const BREAKS_GRAPH: &[&str] = &[
    "argmax",
    "argmin",
    "argsort",
    "eq",
    "ne",
    "gt",
    "lt",
    "ge",
    "le",
    "isnan",
    "isfinite",
    "isinf",
    "nonzero",
    "sign",
    "round",
    "floor",
    "ceil",
    "bool",
    "int",
    "long",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "rand_like",
    "randn_like",
    "new_zeros",
    "new_ones",
    "new_empty",
    "new_full",
    "new_tensor",
    "multinomial",
    "bernoulli",
    "equal",
    "allclose",
    "searchsorted",
    "bincount",
    "any",
    "all",
    "logical_and",
    "logical_or",
    "logical_not",
];
/// Results in plain Python or NumPy.
const LEAVES_TENSORS: &[&str] = &[
    "item",
    "tolist",
    "size",
    "dim",
    "numel",
    "nelement",
    "data_ptr",
    "stride",
    "is_contiguous",
    "element_size",
    "storage_offset",
    "get_device",
    "backward",
    "register_hook",
    "retain_grad",
    "type",
];
/// Results that share the storage.
const VIEWS: &[&str] = &[
    "view",
    "reshape",
    "t",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "expand",
    "expand_as",
    "narrow",
    "select",
    "unfold",
    "flatten",
    "chunk",
    "split",
    "unbind",
    "diagonal",
    "swapaxes",
    "movedim",
    "view_as",
];

impl<'a> File<'a> {
    /// A call of something in `torch`, by its full name.
    pub(super) fn torch_call(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        full: &str,
        item: usize,
    ) -> Option<Value> {
        let name = full.strip_prefix("torch.")?;
        if CONSTANT_CREATORS.contains(&name)
            || RANDOM_CREATORS.contains(&name)
            || matches!(name, "tensor" | "from_numpy" | "as_tensor" | "normal")
        {
            return Some(self.created(scope, call, name, item));
        }
        match name {
            "nn.Parameter" | "nn.parameter.Parameter" => {
                let place = call.arguments.args.first();
                let place =
                    place.map(|made| self.infer(scope, made, item).place()).unwrap_or_default();
                let graph = Graph::Yes;
                return Some(Value::Tensor(Tensor {
                    graph,
                    leaf: true,
                    place,
                    ..Default::default()
                }));
            }
            "load" | "save" | "device" | "manual_seed" | "compile" | "jit.load" => return None,
            _ => {}
        }
        let function = name.strip_prefix("nn.functional.").unwrap_or(name);
        if function.contains('.') || function.starts_with(char::is_uppercase) {
            return None;
        }
        let mut result = Tensor { graph: Graph::No, ..Default::default() };
        let mut seen_tensor = false;
        for argument in arguments(call) {
            let value = match argument {
                Expr::List(list) => {
                    let values = list.elts.iter().map(|e| self.infer(scope, e, item));
                    values.reduce(super::infer::combined).unwrap_or_default()
                }
                other => self.infer(scope, other, item),
            };
            match value {
                Value::Tensor(tensor) => {
                    seen_tensor = true;
                    result.graph = joined(result.graph, tensor.graph);
                    if result.place == Residence::Unknown {
                        result.place = tensor.place;
                    }
                }
                Value::Plain | Value::None => {}
                _ => result.graph = joined(result.graph, Graph::Unknown),
            }
        }
        if BREAKS_GRAPH.contains(&function) || self.grad(scope, item) == Grad::Off {
            result.graph = Graph::No;
        }
        result.strided = matches!(function, "transpose" | "permute" | "t") && seen_tensor;
        result.scalar = full.contains("functional") && function.ends_with("loss")
            || function.ends_with("cross_entropy");
        (seen_tensor || full.contains("functional")).then_some(Value::Tensor(result))
    }

    fn created(&self, scope: &Scope<'a>, call: &ExprCall, name: &str, item: usize) -> Value {
        let leaf = keyword(call, "requires_grad").is_some_and(is_true);
        let place = match keyword(call, "device") {
            Some(device) => self.place_of(scope, device, item),
            None if self.default_device_changed => Residence::Unknown,
            None => Residence::Host,
        };
        let place = if matches!(name, "as_tensor") { Residence::Unknown } else { place };
        let scalar = name == "tensor"
            && call
                .arguments
                .args
                .first()
                .is_some_and(|data| !data.is_list_expr() && !data.is_list_comp_expr());
        let graph = if leaf { Graph::Yes } else { Graph::No };
        let dims = dims_of_creation(call, name);
        Value::Tensor(Tensor {
            graph,
            leaf,
            fresh: true,
            place,
            dims,
            scalar,
            ..Default::default()
        })
    }

    /// A method of a tensor.
    pub(super) fn tensor_method(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        tensor: &Tensor,
        name: &str,
        item: usize,
    ) -> Value {
        if LEAVES_TENSORS.contains(&name) {
            return Value::Plain;
        }
        if name == "numpy" {
            return Value::Array;
        }
        let mut result = tensor.clone();
        if !matches!(name, "requires_grad_" | "detach") {
            result.leaf = false;
        }
        let stays_fresh = name == "requires_grad_" || name.ends_with('_') && !tensor.leaf;
        if !stays_fresh {
            result.fresh = false;
        }
        match name {
            "detach" => (result.graph, result.leaf) = (Graph::No, false),
            "requires_grad_" => {
                let on = call
                    .arguments
                    .args
                    .first()
                    .is_none_or(|flag| !super::expression::is_false(flag));
                if on {
                    (result.graph, result.leaf) = (Graph::Yes, tensor.fresh);
                } else {
                    (result.graph, result.leaf) = (Graph::No, false);
                }
            }
            "cuda" => result.place = Residence::Cuda,
            "cpu" => result.place = Residence::Host,
            "to" => {
                if let Some(place) = self.moved_to(scope, call, item) {
                    result.place = place;
                }
            }
            "t" | "transpose" | "permute" | "swapaxes" | "movedim" => {
                transpose(call, name, tensor, &mut result);
            }
            "view" | "reshape" => {
                result.dims = sizes(call).or(None);
                result.strided = false;
            }
            "contiguous" | "clone" => result.strided = name == "clone" && tensor.strided,
            "float" | "half" | "double" | "bfloat16" => {}
            _ if BREAKS_GRAPH.contains(&name) => {
                result.graph = Graph::No;
                result.dims = None;
                result.output = false;
            }
            _ if VIEWS.contains(&name) => {
                result.dims = None;
                result.strided = false;
            }
            _ => {
                result.dims = None;
                result.strided = false;
                result.output = false;
            }
        }
        Value::Tensor(result)
    }

    /// Where `.to(...)` moves, if it moves at all.
    pub(crate) fn moved_to(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        item: usize,
    ) -> Option<Residence> {
        if let Some(device) = keyword(call, "device") {
            return Some(self.place_of(scope, device, item));
        }
        let first = call.arguments.args.first()?;
        match self.place_of(scope, first, item) {
            Residence::Unknown => None,
            place => Some(place),
        }
    }

    /// The place that a device argument names.
    pub(crate) fn place_of(&self, scope: &Scope<'a>, device: &Expr, item: usize) -> Residence {
        match place_of_text(device) {
            Residence::Unknown => {}
            place => return place,
        }
        match self.infer(scope, device, item) {
            // `torch.device("cuda" if available else "cpu")` and parameters: not the host, most
            // likely.
            Value::Device(Residence::Unknown) => Residence::Chosen,
            Value::Device(place) => place,
            Value::Plain if path(device).is_some_and(|path| names::is_device(&path)) => {
                Residence::Chosen
            }
            _ => match path(device) {
                Some(path) if names::is_device(&path) => Residence::Chosen,
                _ => Residence::Unknown,
            },
        }
    }
}

/// What a change of the order of dimensions does to a tensor's strides and their number.
fn transpose(call: &ExprCall, name: &str, tensor: &Tensor, result: &mut Tensor) {
    // Of a tensor that is strided already nothing more is known.
    result.runs = if tensor.strided { None } else { runs(call, name, tensor.dims) };
    result.strided = !tensor.strided && result.runs != Some(0);
    match name {
        "permute" => {
            result.dims = Some(call.arguments.args.len()).filter(|dims| *dims > 1).or(result.dims);
        }
        "t" => result.dims = Some(2),
        _ => {}
    }
}

/// The number of runs of dimensions that stay neighbours in memory after a transposition of a
/// contiguous tensor.
fn runs(call: &ExprCall, name: &str, dims: Option<usize>) -> Option<usize> {
    let numbers: Vec<i64> = match &*call.arguments.args {
        [Expr::Tuple(tuple)] => tuple.elts.iter().map(integer).collect::<Option<_>>()?,
        many => many.iter().map(integer).collect::<Option<_>>()?,
    };
    let order: Vec<i64> = match (name, &numbers[..], dims) {
        ("permute", order, _) if order.len() > 1 => {
            let count = order.len() as i64;
            order.iter().map(|dim| if *dim < 0 { dim + count } else { *dim }).collect()
        }
        ("t", _, _) => vec![1, 0],
        ("transpose" | "swapaxes", [a, b], Some(dims)) => {
            let count = dims as i64;
            let place = |dim: i64| usize::try_from(if dim < 0 { dim + count } else { dim }).ok();
            let (a, b) = (place(*a)?, place(*b)?);
            let mut order: Vec<i64> = (0..count).collect();
            if a >= dims || b >= dims {
                return None;
            }
            order.swap(a, b);
            order
        }
        _ => return None,
    };
    let breaks = order.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    // An order that changes nothing leaves the tensor as it was.
    Some(if breaks == 0 { 0 } else { breaks + 1 })
}

/// A device written out: `"cuda:0"`, `"cpu"`, a number.
pub(crate) fn place_of_text(device: &Expr) -> Residence {
    match string(device) {
        Some(text) if text.starts_with("cuda") => Residence::Cuda,
        Some("cpu") => Residence::Host,
        Some(_) => Residence::Unknown,
        None => Residence::Unknown,
    }
}

/// The number of sizes passed, as numbers or as one tuple.
fn sizes(call: &ExprCall) -> Option<usize> {
    match &*call.arguments.args {
        [] => None,
        [Expr::Tuple(tuple)] => Some(tuple.elts.len()),
        [Expr::List(list)] => Some(list.elts.len()),
        // One name may be a tuple of sizes.
        [one] => integer(one).map(|_| 1),
        many if many.iter().any(Expr::is_starred_expr) => None,
        many => Some(many.len()),
    }
}

fn dims_of_creation(call: &ExprCall, name: &str) -> Option<usize> {
    match name {
        "zeros" | "ones" | "empty" | "rand" | "randn" => sizes(call),
        "full" => match call.arguments.args.first()? {
            Expr::Tuple(tuple) => Some(tuple.elts.len()),
            _ => None,
        },
        "eye" => Some(2),
        "arange" | "linspace" | "randperm" => Some(1),
        _ => None,
    }
}
