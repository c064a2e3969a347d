//! A loss that is handed to an object of this file which adds it up: `meter.update(loss)` where
//! `update` runs `self.sum += value`. The graph of every iteration hangs on the sum. Only where the
//! method is in the file and nothing in it takes the value off its graph.

use ruff_python_ast::{Expr, ExprCall};

use super::stores::{Store, stores};
use crate::model::expression::{is_or_under, keyword, last_name, method, path};
use crate::model::{File, Grad, How, Loop, Scope, Value};
use crate::rules::evidence::bound_in;

/// A value that a method keeps.
pub(super) struct Kept<'a> {
    /// The value, as a store of the calling scope.
    pub(super) store: Store<'a>,
    /// The method, and the line of its statement that keeps the value.
    pub(super) method: &'a str,
    pub(super) keeper: &'a Expr,
}

/// What the calls of a loop hand to objects that outlive it and keep what they get.
pub(super) fn kept<'a>(file: &File<'a>, scope: &Scope<'a>, around: &Loop<'a>) -> Vec<Kept<'a>> {
    let mut found = Vec::new();
    for (node, call) in scope.calls_in(around.body()) {
        let inner = scope.innermost_loop(node.item).map(|inner| inner.number);
        let Some((receiver, name)) = method(call) else { continue };
        let Some(object) = path(receiver).filter(|_| inner == Some(around.number)) else {
            continue;
        };
        let Value::Instance(class) = file.infer(scope, receiver, node.item) else { continue };
        if bound_in(scope, around, &object) {
            continue;
        }
        let mut methods = file.classes[class].methods.iter().map(|number| &file.scopes[*number]);
        let Some(called) = methods.find(|called| called.name() == name) else { continue };
        for (parameter, value) in passed(called, call) {
            if let Some(keeper) = keeps(file, class, called, parameter) {
                let store =
                    Store { item: node.item, holder: object.clone(), value, how: "handed to" };
                found.push(Kept { store, method: called.name(), keeper });
            }
        }
    }
    found
}

/// The parameters of a method with what a call passes for them.
fn passed<'a>(called: &Scope<'a>, call: &'a ExprCall) -> Vec<(&'a str, &'a Expr)> {
    let Some(function) = called.function() else { return Vec::new() };
    let names = function.parameters.iter_non_variadic_params().map(|p| p.parameter.name.as_str());
    let names: Vec<&str> = names.skip(1).collect();
    let by_place = names.iter().copied().zip(call.arguments.args.iter());
    let by_name = names.iter().filter_map(|name| Some((*name, keyword(call, name)?)));
    by_place.filter(|(_, value)| !value.is_starred_expr()).chain(by_name).collect()
}

/// The expression with which a method adds its parameter to something of the object.
fn keeps<'a>(
    file: &File<'a>,
    class: usize,
    called: &Scope<'a>,
    parameter: &str,
) -> Option<&'a Expr> {
    // A value that is converted first is another value.
    if called.bindings_of(parameter).any(|binding| binding.how != How::Parameter) {
        return None;
    }
    let empties = called.calls().any(|(_, call)| {
        matches!(method(call), Some((_, "pop" | "popleft" | "clear" | "detach" | "detach_")))
    });
    if empties {
        return None;
    }
    let kept = stores(called).into_iter().find(|store| {
        is_or_under(&store.holder, "self")
            && carries(store.value, parameter)
            && file.grad(called, store.item) != Grad::Off
            && !is_bounded(file, class, &store.holder)
            && !takes_off_elsewhere(file, class, &store.holder)
    })?;
    Some(kept.value)
}

/// Whether the value of the parameter, with its graph, is part of the expression.
fn carries(expr: &Expr, parameter: &str) -> bool {
    match expr {
        Expr::Name(name) => name.id.as_str() == parameter,
        Expr::BinOp(binary) => {
            carries(&binary.left, parameter) || carries(&binary.right, parameter)
        }
        Expr::Call(call) => match method(call) {
            Some((_, "allreduce")) => {
                call.arguments.args.first().is_some_and(|argument| carries(argument, parameter))
            }
            Some((receiver, "cpu" | "cuda" | "to" | "float" | "mean" | "sum" | "clone")) => {
                carries(receiver, parameter)
            }
            _ => false,
        },
        _ => false,
    }
}

/// `self.x = deque(maxlen=...)` in any method.
fn is_bounded(file: &File<'_>, class: usize, holder: &str) -> bool {
    let methods = file.classes[class].methods.iter().map(|number| &file.scopes[*number]);
    methods.flat_map(|method| method.bindings_of(holder)).any(|binding| {
        let call = binding.expr.and_then(|expr| expr.as_call_expr());
        call.is_some_and(|call| {
            last_name(&call.func) == Some("deque")
                && (keyword(call, "maxlen").is_some() || call.arguments.args.len() > 1)
        })
    })
}

/// Another method sets the holder to something without a graph other than a fresh start.
fn takes_off_elsewhere(file: &File<'_>, class: usize, holder: &str) -> bool {
    let methods = file.classes[class].methods.iter().map(|number| &file.scopes[*number]);
    methods.flat_map(|method| method.bindings_of(holder)).any(|binding| {
        let call = binding.expr.and_then(|expr| expr.as_call_expr());
        call.is_some_and(|call| matches!(last_name(&call.func), Some("detach" | "item" | "float")))
    })
}
