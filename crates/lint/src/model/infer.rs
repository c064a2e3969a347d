//! What an expression yields, from what its parts hold. One pass, no fixed point: a value that
//! comes around a loop is looked at by the rules that care. Calls into PyTorch are in
//! `tensor_calls`.

use ruff_python_ast::{Expr, ExprCall, Operator};

use super::expression::{holder_path, last_name, method, path};
use super::scope::Scope;
use super::value::{Graph, Module, Residence, Tensor, Value};
use super::{File, Grad, names};

/// Expressions nested deeper than this yield nothing; the limit also bounds the stack.
const DEEPEST: u32 = 60;

impl<'a> File<'a> {
    /// The value of an expression at an item.
    pub(crate) fn infer(&self, scope: &Scope<'a>, expr: &Expr, item: usize) -> Value {
        if self.depth.get() >= DEEPEST {
            return Value::Unknown;
        }
        // The file's tree outlives the model, so an address names one expression.
        let key = (std::ptr::from_ref(expr).addr(), item);
        if self.settled
            && let Some(known) = self.inferred.borrow().get(&key)
        {
            return known.clone();
        }
        self.depth.set(self.depth.get() + 1);
        let value = self.infer_expr(scope, expr, item);
        self.depth.set(self.depth.get() - 1);
        if self.settled && self.depth.get() == 0 {
            self.inferred.borrow_mut().insert(key, value.clone());
        }
        value
    }

    fn infer_expr(&self, scope: &Scope<'a>, expr: &Expr, item: usize) -> Value {
        match expr {
            Expr::Name(_) | Expr::Attribute(_) => self.infer_path(scope, expr, item),
            Expr::Call(call) => self.infer_call(scope, call, item),
            Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::FString(_)
            | Expr::BytesLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::Compare(_) => Value::Plain,
            Expr::NoneLiteral(_) => Value::None,
            Expr::List(_)
            | Expr::Dict(_)
            | Expr::Set(_)
            | Expr::ListComp(_)
            | Expr::DictComp(_) => Value::Container,
            Expr::BinOp(binary) => {
                if let Expr::List(_) = &*binary.left {
                    return Value::Container;
                }
                let left = self.infer(scope, &binary.left, item);
                let right = self.infer(scope, &binary.right, item);
                match (binary.op, self.unrecorded(scope, combined(left, right), item)) {
                    (Operator::MatMult, Value::Tensor(tensor)) => {
                        Value::Tensor(Tensor { strided: false, ..tensor })
                    }
                    (_, value) => value,
                }
            }
            Expr::UnaryOp(unary) => combined(self.infer(scope, &unary.operand, item), Value::Plain),
            Expr::If(if_) => {
                let body = self.infer(scope, &if_.body, item);
                body.or(self.infer(scope, &if_.orelse, item))
            }
            Expr::Subscript(subscript) => {
                let whole = self.infer(scope, &subscript.value, item);
                element(&whole, &subscript.slice)
            }
            Expr::Named(named) => self.infer(scope, &named.value, item),
            _ => Value::Unknown,
        }
    }

    /// A new tensor has no graph where autograd is off, whatever it is computed from.
    fn unrecorded(&self, scope: &Scope<'a>, value: Value, item: usize) -> Value {
        match value {
            Value::Tensor(tensor)
                if tensor.graph == Graph::Yes && self.grad(scope, item) == Grad::Off =>
            {
                Value::Tensor(Tensor { graph: Graph::No, ..tensor })
            }
            other => other,
        }
    }

    fn infer_path(&self, scope: &Scope<'a>, expr: &Expr, item: usize) -> Value {
        if let Some(path) = path(expr)
            && (scope.by_path.contains_key(&path)
                || !path.contains('.')
                || path.starts_with("self."))
        {
            let known = self.value_at(scope, &path, item);
            if known != Value::Unknown {
                return known;
            }
        }
        let Expr::Attribute(attribute) = expr else { return Value::Unknown };
        let whole = self.infer(scope, &attribute.value, item);
        match (whole, attribute.attr.as_str()) {
            (Value::Tensor(tensor), "data") => {
                Value::Tensor(Tensor { graph: Graph::No, leaf: false, ..tensor })
            }
            (Value::Tensor(_), "grad") => {
                Value::Tensor(Tensor { graph: Graph::No, ..Default::default() })
            }
            (Value::Tensor(tensor), "T" | "mT" | "H") => {
                Value::Tensor(Tensor { strided: true, leaf: false, fresh: false, ..tensor })
            }
            (Value::Tensor(tensor), "device") => Value::Device(tensor.place),
            (Value::Tensor(_), "shape" | "dtype" | "ndim" | "is_cuda" | "requires_grad") => {
                Value::Plain
            }
            // An output object: its parts hang on the same graph.
            (Value::Tensor(tensor), _) if tensor.output => {
                Value::Tensor(Tensor { dims: None, ..tensor })
            }
            // An attribute of something unknown still has its own name.
            (Value::Unknown, _) => match path(expr) {
                Some(path) if names::is_module(&path) || names::is_criterion(&path) => {
                    self.value_at(scope, &path, item)
                }
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    fn infer_call(&self, scope: &Scope<'a>, call: &ExprCall, item: usize) -> Value {
        if let Some(full) = self.callee(call)
            && let Some(value) = self.infer_known(scope, call, &full, item)
        {
            return value;
        }
        if let Some(class) = last_name(&call.func).and_then(|name| self.class_named(name))
            && call.func.is_name_expr()
        {
            return self.instance(class);
        }
        if let Some(name) = call.func.as_name_expr().map(|name| name.id.as_str()) {
            match name {
                "float" | "int" | "len" | "str" | "bool" | "range" | "round" => {
                    return Value::Plain;
                }
                "list" | "dict" | "defaultdict" | "deque" | "set" => return Value::Container,
                _ => {}
            }
        }
        match self.infer(scope, &call.func, item) {
            Value::Module(module) => return self.module_output(scope, call, &module, item),
            Value::Criterion => return self.loss(scope, call, item),
            _ => {}
        }
        match method(call) {
            Some((receiver, name)) => self.infer_method(scope, call, receiver, name, item),
            None => Value::Unknown,
        }
    }

    /// What calling a module yields: a tensor with a graph while autograd records.
    fn module_output(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        module: &Module,
        item: usize,
    ) -> Value {
        let frozen = holder_path(&call.func).is_some_and(|path| self.frozen.contains(&path));
        let graph = match self.grad(scope, item) {
            Grad::Off => Graph::No,
            Grad::On if !frozen => Graph::Yes,
            _ => Graph::Unknown,
        };
        let mut place = module.place;
        if place == Residence::Unknown {
            place = call
                .arguments
                .args
                .iter()
                .map(|argument| self.infer(scope, argument, item).place())
                .find(|place| place.is_device())
                .unwrap_or(Residence::Unknown);
        }
        Value::Tensor(Tensor { graph, place, output: true, ..Default::default() })
    }

    /// What a loss function yields: a number in a tensor, on the graph of its inputs.
    fn loss(&self, scope: &Scope<'a>, call: &ExprCall, item: usize) -> Value {
        let mut graph = Graph::No;
        let mut place = Residence::Unknown;
        for argument in &call.arguments.args {
            let value = self.infer(scope, argument, item);
            place = if place == Residence::Unknown { value.place() } else { place };
            graph = match (graph, value) {
                (Graph::Yes, _) => Graph::Yes,
                (_, Value::Tensor(tensor)) if tensor.graph == Graph::Yes => Graph::Yes,
                (Graph::No, Value::Tensor(tensor)) if tensor.graph == Graph::No => Graph::No,
                (Graph::No, Value::Plain) => Graph::No,
                _ if self.is_free_output(scope, argument, item) => Graph::Yes,
                _ => Graph::Unknown,
            };
        }
        if graph == Graph::Unknown && self.grad(scope, item) == Grad::Off {
            graph = Graph::No;
        }
        Value::Tensor(Tensor { graph, place, scalar: true, ..Default::default() })
    }

    /// A name for a model's output that nothing in the file binds, as in a block pasted from a
    /// document.
    fn is_free_output(&self, scope: &Scope<'a>, expr: &Expr, item: usize) -> bool {
        let Some(name) = expr.as_name_expr().map(|name| name.id.as_str()) else { return false };
        let named =
            matches!(name, "output" | "outputs" | "logits" | "pred" | "preds" | "y_pred" | "y_hat");
        named && self.grad(scope, item) == Grad::On && !self.bound.contains(name)
    }

    fn infer_method(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        receiver: &Expr,
        name: &str,
        item: usize,
    ) -> Value {
        match self.infer(scope, receiver, item) {
            Value::Tensor(tensor) => self.tensor_method(scope, call, &tensor, name, item),
            Value::Module(module) => match name {
                "cuda" => Value::Module(Module { place: Residence::Cuda, ..module }),
                "cpu" => Value::Module(Module { place: Residence::Host, ..module }),
                "to" => {
                    let place = self.moved_to(scope, call, item).unwrap_or(module.place);
                    Value::Module(Module { place, ..module })
                }
                "eval" | "train" | "half" | "float" | "double" | "bfloat16" | "requires_grad_"
                | "apply" | "share_memory" => Value::Module(module),
                "forward" => self.module_output(scope, call, &module, item),
                _ => Value::Unknown,
            },
            Value::Criterion if matches!(name, "to" | "cuda" | "cpu") => Value::Criterion,
            Value::Array | Value::Plain => Value::Unknown,
            _ => match name {
                "item" | "tolist" => Value::Plain,
                "numpy" => Value::Array,
                // Whatever it was, it is a tensor now, and these say where it lies or that it has
                // no graph.
                "detach" => Value::Tensor(Tensor { graph: Graph::No, ..Default::default() }),
                "cuda" => Value::Tensor(Tensor { place: Residence::Cuda, ..Default::default() }),
                "to" => match self.moved_to(scope, call, item) {
                    Some(place) => Value::Tensor(Tensor { place, ..Default::default() }),
                    None => Value::Unknown,
                },
                _ => Value::Unknown,
            },
        }
    }

    /// One element of what a loop runs over. Batches come from the host.
    pub(super) fn element_of(&self, _: &Scope<'a>, iterated: &Expr, _: usize) -> Value {
        match iterated {
            Expr::Call(call) if last_name(&call.func) == Some("range") => Value::Plain,
            _ => Value::Unknown,
        }
    }

    /// Whether the expression is something that is called as a module.
    pub(crate) fn is_module(&self, scope: &Scope<'a>, expr: &Expr, item: usize) -> bool {
        matches!(self.infer(scope, expr, item), Value::Module(_))
    }
}

/// The result of arithmetic: a tensor if either side is one.
pub(super) fn combined(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Tensor(a), Value::Tensor(b)) => Value::Tensor(Tensor {
            graph: joined(a.graph, b.graph),
            place: if a.place == Residence::Unknown || a.scalar { b.place } else { a.place },
            dims: a.dims.max(b.dims),
            strided: a.strided && b.strided,
            scalar: a.scalar && b.scalar,
            ..Default::default()
        }),
        (Value::Tensor(tensor), other) | (other, Value::Tensor(tensor)) => {
            let graph = match other {
                Value::Plain | Value::None => tensor.graph,
                _ => joined(tensor.graph, Graph::Unknown),
            };
            Value::Tensor(Tensor { graph, leaf: false, fresh: false, output: false, ..tensor })
        }
        (Value::Plain, Value::Plain) => Value::Plain,
        (Value::Container, _) | (_, Value::Container) => Value::Container,
        (Value::Array, _) | (_, Value::Array) => Value::Array,
        _ => Value::Unknown,
    }
}

pub(super) fn joined(a: Graph, b: Graph) -> Graph {
    match (a, b) {
        (Graph::Yes, _) | (_, Graph::Yes) => Graph::Yes,
        (Graph::No, Graph::No) => Graph::No,
        _ => Graph::Unknown,
    }
}

/// One of several results of a call.
pub(super) fn part_of(whole: &Value) -> Value {
    match whole {
        Value::Tensor(tensor) => {
            Value::Tensor(Tensor { dims: None, leaf: false, fresh: false, ..tensor.clone() })
        }
        _ => Value::Unknown,
    }
}

fn element(whole: &Value, index: &Expr) -> Value {
    match whole {
        Value::Tensor(tensor) => {
            let mut tensor = tensor.clone();
            let drops = match index {
                Expr::Tuple(tuple) => tuple
                    .elts
                    .iter()
                    .filter(|index| super::expression::integer(index).is_some())
                    .count(),
                Expr::Slice(_) => 0,
                other => usize::from(super::expression::integer(other).is_some()),
            };
            tensor.dims =
                tensor.dims.map(|dims| dims.saturating_sub(drops)).filter(|_| !tensor.output);
            tensor.leaf = false;
            tensor.fresh = false;
            Value::Tensor(tensor)
        }
        _ => Value::Unknown,
    }
}
