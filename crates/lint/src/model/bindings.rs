//! Which path gets which value where. Scopes are read in an order in which what is read has mostly
//! been seen: the module, then constructors, then everything else.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::expression::{is_false, is_true, path, receiver, targets};
use super::names::Role;
use super::scope::{Binding, How, MOST_ARMS, Scope};
use super::value::{Graph, Tensor, Value};
use super::{File, names};

/// A name that so many branches may have bound is not worth following.
const MOST_MERGED: usize = 16;

impl<'a> File<'a> {
    pub(super) fn bind(&mut self) {
        self.mark_modules();
        let mut order: Vec<usize> = (0..self.scopes.len()).collect();
        order.sort_by_key(|number| match &self.scopes[*number] {
            scope if scope.is_module() => 0,
            scope if matches!(scope.name(), "__init__" | "setup" | "build") => 1,
            _ => 2,
        });
        for number in order {
            if let Some(function) = self.scopes[number].function() {
                self.bind_parameters(number, function);
            }
            for item in 0..self.scopes[number].items.len() {
                self.bind_item(number, item);
            }
        }
    }

    /// Notes what is used as a module whatever it is called: a function's parameter says what it is
    /// by what the function does with it.
    fn mark_modules(&mut self) {
        for number in 0..self.scopes.len() {
            let scope = &self.scopes[number];
            let used: Vec<String> = scope.calls().filter_map(|(_, call)| as_module(call)).collect();
            let class = scope.class;
            for path in used {
                match (path.strip_prefix("self."), class) {
                    (Some(name), Some(class)) => {
                        self.classes[class].used_as_module.insert(name.to_string());
                    }
                    _ => {
                        self.scopes[number].used_as_module.insert(path);
                    }
                }
            }
        }
    }

    fn is_used_as_module(&self, scope: &Scope<'a>, path: &str) -> bool {
        match (path.strip_prefix("self."), scope.class) {
            (Some(name), Some(class)) => self.classes[class].used_as_module.contains(name),
            _ => scope.used_as_module.contains(path),
        }
    }

    fn add(&mut self, scope: usize, binding: Binding<'a>) {
        if let (Some(name), Some(class)) =
            (binding.path.strip_prefix("self."), self.scopes[scope].class)
            && !name.contains('.')
            && binding.how != How::Delete
        {
            let known = self.classes[class].attributes.remove(name);
            let value = match known {
                Some(known) => known.or(binding.value.clone()),
                None => binding.value.clone(),
            };
            self.classes[class].attributes.insert(name.to_string(), value);
        }
        let scope = &mut self.scopes[scope];
        let number = scope.bindings.len();
        match scope.by_path.get_mut(&binding.path) {
            Some(known) => known.push(number),
            None => {
                scope.by_path.insert(binding.path.clone(), vec![number]);
                if !self.bound.contains(&binding.path) {
                    self.bound.insert(binding.path.clone());
                }
            }
        }
        scope.bindings.push(binding);
    }

    fn bind_parameters(&mut self, scope: usize, function: &'a StmtFunctionDef) {
        let parameters = function.parameters.iter_non_variadic_params().map(|p| &p.parameter);
        for parameter in parameters.collect::<Vec<_>>() {
            let name = parameter.name.as_str();
            let value = parameter
                .annotation
                .as_deref()
                .and_then(|annotation| self.annotated(annotation))
                .unwrap_or(Value::Unknown);
            let binding =
                Binding { path: name.to_string(), item: 0, how: How::Parameter, expr: None, value };
            // Parameters are bound before the first item; item 0 would hide them from it.
            self.add(scope, Binding { item: 0, ..binding });
        }
    }

    /// What a type annotation promises.
    fn annotated(&self, annotation: &Expr) -> Option<Value> {
        let full = self.qualified(annotation)?;
        match full.as_str() {
            "torch.Tensor" => Some(Value::Tensor(Tensor::default())),
            "torch.nn.Module" => {
                Some(Value::Module(super::Module { certain: true, ..Default::default() }))
            }
            "torch.optim.Optimizer" => Some(Value::Optimizer),
            "torch.utils.data.DataLoader" => {
                let made = annotation.range();
                Some(Value::Loader(super::value::Loader { pinned: None, made }))
            }
            "torch.amp.GradScaler" | "torch.cuda.amp.GradScaler" => Some(Value::Scaler),
            "torch.device" => Some(Value::Device(super::Residence::Chosen)),
            "int" | "float" | "str" | "bool" => Some(Value::Plain),
            _ => None,
        }
    }

    fn bind_item(&mut self, scope: usize, item: usize) {
        let stmt = self.scopes[scope].items[item].stmt;
        match stmt {
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.bind_target(scope, item, target, &assign.value);
                }
                self.bind_flag(scope, item, assign.targets.first(), &assign.value);
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = assign.value.as_deref() {
                    self.bind_target(scope, item, &assign.target, value);
                }
            }
            Stmt::AugAssign(assign) => {
                let Some(target) = path(&assign.target) else { return };
                let before = self.infer(&self.scopes[scope], &assign.target, item);
                let value = self.infer(&self.scopes[scope], &assign.value, item);
                let value = augmented(before, value);
                let (how, expr) = (How::Augment, Some(&*assign.value));
                self.add(scope, Binding { path: target, item, how, expr, value });
            }
            Stmt::For(for_) => {
                let value = self.element_of(&self.scopes[scope], &for_.iter, item);
                for target in targets(&for_.target) {
                    let (how, expr) = (How::Iterate, Some(&*for_.iter));
                    let value = value.clone();
                    self.add(scope, Binding { path: target, item, how, expr, value });
                }
            }
            Stmt::With(with) => {
                for entry in &with.items {
                    let Some(vars) = entry.optional_vars.as_deref() else { continue };
                    for target in targets(vars) {
                        let (how, expr) = (How::With, Some(&entry.context_expr));
                        let value = Value::Unknown;
                        self.add(scope, Binding { path: target, item, how, expr, value });
                    }
                }
            }
            Stmt::Delete(delete) => {
                for target in delete.targets.iter().flat_map(targets) {
                    let (how, value) = (How::Delete, Value::Unknown);
                    self.add(scope, Binding { path: target, item, how, expr: None, value });
                }
            }
            Stmt::FunctionDef(function) => {
                let (path, how) = (function.name.to_string(), How::Define);
                self.add(scope, Binding { path, item, how, expr: None, value: Value::Unknown });
            }
            Stmt::Expr(expr) => self.bind_call_effect(scope, item, &expr.value),
            _ => {}
        }
    }

    fn bind_target(&mut self, scope: usize, item: usize, target: &'a Expr, value: &'a Expr) {
        match target {
            Expr::Tuple(_) | Expr::List(_) => {
                let parts = targets(target);
                let values = match (elements(target), elements(value)) {
                    (Some(targets), Some(values)) if targets.len() == values.len() => Some(values),
                    _ => None,
                };
                let whole = self.infer(&self.scopes[scope], value, item);
                for (at, path) in parts.into_iter().enumerate() {
                    let part = values.and_then(|values| values.get(at));
                    let bound = match part {
                        Some(part) => self.infer(&self.scopes[scope], part, item),
                        None => super::infer::part_of(&whole),
                    };
                    let (how, expr) = (How::Unpack, part.or(Some(value)));
                    self.add(scope, Binding { path, item, how, expr, value: bound });
                }
            }
            _ => {
                let Some(path) = path(target) else { return };
                let bound = self.infer(&self.scopes[scope], value, item);
                let (how, expr) = (How::Assign, Some(value));
                self.add(scope, Binding { path, item, how, expr, value: bound });
            }
        }
    }

    /// `x.requires_grad = True`: a change of `x`, so a new binding of it.
    fn bind_flag(&mut self, scope: usize, item: usize, target: Option<&'a Expr>, value: &Expr) {
        let Some(Expr::Attribute(attribute)) = target else { return };
        if attribute.attr.as_str() == "requires_grad" && (is_true(value) || is_false(value)) {
            self.bind_requires_grad(scope, item, &attribute.value, is_true(value));
        }
    }

    fn bind_requires_grad(&mut self, scope: usize, item: usize, target: &'a Expr, on: bool) {
        let Some(path) = path(target) else { return };
        let known = self.infer(&self.scopes[scope], target, item);
        if let Value::Tensor(tensor) = known {
            let graph = if on { Graph::Yes } else { Graph::No };
            let value = Value::Tensor(Tensor { leaf: on && tensor.fresh, graph, ..tensor });
            self.add(scope, Binding { path, item, how: How::Assign, expr: None, value });
        }
    }

    /// Statements that are calls and change what a name holds: `model.cuda()`,
    /// `x.requires_grad_()`, `x.add_(1)`.
    fn bind_call_effect(&mut self, scope: usize, item: usize, expr: &'a Expr) {
        let Expr::Call(call) = expr else { return };
        if let Some(target) = receiver(call, "requires_grad_") {
            let on = call.arguments.args.first().is_none_or(|flag| !is_false(flag));
            self.bind_requires_grad(scope, item, target, on);
            return;
        }
        let Some((target, "to" | "cuda" | "cpu")) = super::expression::method(call) else { return };
        let Some(path) = path(target) else { return };
        // Modules move in place; tensors do not.
        if let Value::Module(_) = self.infer(&self.scopes[scope], target, item) {
            let value = self.infer(&self.scopes[scope], expr, item);
            self.add(scope, Binding { path, item, how: How::Assign, expr: Some(expr), value });
        }
    }

    /// What a path holds at an item: the bindings that may have made it, else what the class or the
    /// file knows, else its name.
    pub(crate) fn value_at(&self, scope: &Scope<'a>, path: &str, item: usize) -> Value {
        let mut found: Option<Value> = None;
        let mut merged = 0;
        // Parameters count as item 0, and the first item sees them too.
        for binding in scope.bindings_within(path, 0..item.max(1)).rev().take(MOST_ARMS) {
            let parameter = binding.how == How::Parameter;
            if !parameter && (binding.item >= item || scope.exclusive(binding.item, item)) {
                continue;
            }
            let value = binding.value.clone();
            found = Some(match found {
                Some(later) => later.or(value),
                None => value,
            });
            merged += 1;
            if merged > MOST_MERGED {
                return Value::Unknown;
            }
            if binding.how == How::Parameter || scope.dominates(binding.item, item) {
                break;
            }
        }
        if let Some(value) = found {
            return if value == Value::Unknown { self.by_name(scope, path, true) } else { value };
        }
        self.outside(scope, path).unwrap_or_else(|| self.by_name(scope, path, false))
    }

    fn outside(&self, scope: &Scope<'a>, path: &str) -> Option<Value> {
        if let (Some(name), Some(class)) = (path.strip_prefix("self."), scope.class) {
            return self.classes[class]
                .attributes
                .get(name)
                .cloned()
                .filter(|v| *v != Value::Unknown);
        }
        let (outer, item) = scope.parent?;
        let outer = &self.scopes[outer];
        let known = match outer.kind {
            super::ScopeKind::Class => None,
            // A function runs after the file's last line has bound its names.
            _ if outer.is_module() => outer.bindings_of(path).next_back(),
            _ => outer.latest(path, item),
        };
        match known {
            Some(binding) if binding.value != Value::Unknown => Some(binding.value.clone()),
            Some(_) => None,
            None => self.outside(outer, path),
        }
    }

    /// What the name alone suggests, or what the code around it takes it for. A name that was bound
    /// to something unknown says less than one that comes from elsewhere.
    fn by_name(&self, scope: &Scope<'a>, path: &str, bound: bool) -> Value {
        let root = path.split('.').next().unwrap_or(path);
        if self.imports.names_a_module(root) {
            return Value::Unknown;
        }
        match names::role(path) {
            Some(Role::Criterion) => Value::Criterion,
            Some(Role::Module { recurrent }) => {
                Value::Module(super::Module { recurrent, ..Default::default() })
            }
            Some(Role::Optimizer) if !bound => Value::Optimizer,
            Some(Role::Scaler) => Value::Scaler,
            Some(Role::Device) => Value::Device(super::Residence::Chosen),
            None if self.is_used_as_module(scope, path) => Value::Module(super::Module::default()),
            _ => Value::Unknown,
        }
    }
}

/// The path that a call asks for its parameters, or tells to train or evaluate.
fn as_module(call: &ExprCall) -> Option<String> {
    let (receiver, name) = super::expression::method(call)?;
    let arguments = call.arguments.args.len() + call.arguments.keywords.len();
    let asked = match name {
        "parameters" | "named_parameters" | "eval" => arguments == 0,
        "train" => arguments <= 1,
        _ => false,
    };
    asked.then(|| path(receiver)).flatten()
}

/// `x += y` changes a tensor in place: it stays what it was, on the joined graph.
fn augmented(before: Value, value: Value) -> Value {
    match (before, value) {
        (Value::Tensor(tensor), Value::Plain) => Value::Tensor(tensor),
        (before, value) => super::infer::combined(before, value),
    }
}

fn elements(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(tuple) => Some(&tuple.elts),
        Expr::List(list) => Some(&list.elts),
        _ => None,
    }
}
