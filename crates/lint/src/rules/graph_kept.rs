//! `graph-kept`: a tensor that carries its graph is appended, summed up or stored in a loop, so that every iteration's graph
//! stays alive. Silent where the sum or the list itself goes into a backward pass, where the container is emptied or bounded, and
//! where nothing proves that there is a graph.

use std::collections::HashMap;

use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::Ranged;

use super::evidence::{into_backward, terms_of_backward};
use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::{
    any, holder_path, is_or_under, keyword, last_name, mentions, method, path,
};
use crate::model::{Grad, How, Loop, Scope, is_loss};

pub(crate) static RULE: Rule = Rule {
    name: "graph-kept",
    code: "PLM001",
    summary: "A loss or output is stored across iterations together with its graph",
    pedantic: false,
    page: include_str!("../../../../docs/lint/graph-kept.md"),
    check,
};

/// One value put into something that outlives the iteration.
struct Store<'a> {
    item: usize,
    holder: String,
    value: &'a Expr,
    how: &'static str,
}

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        if scope.loops.is_empty() {
            continue;
        }
        let whole = 0..scope.items.len();
        let needed = into_backward(scope, whole);
        let mut takers = Takers::new();
        for store in stores(scope) {
            let Some(around) = scope.innermost_loop(store.item) else { continue };
            if needed.contains(&store.holder)
                || is_reset(scope, &store, around)
                || is_bounded(scope, &store)
            {
                continue;
            }
            judge(check, scope, around, &store, &mut takers);
        }
    }
}

fn stores<'a>(scope: &Scope<'a>) -> Vec<Store<'a>> {
    let mut found = Vec::new();
    for (item, entry) in scope.items.iter().enumerate() {
        match entry.stmt {
            Stmt::Expr(expr) => {
                let Expr::Call(call) = &*expr.value else { continue };
                let Some((receiver, "append" | "appendleft" | "insert")) = method(call) else {
                    continue;
                };
                let (Some(holder), Some(value)) =
                    (holder_path(receiver), call.arguments.args.last())
                else {
                    continue;
                };
                found.extend(parts(value).map(|value| Store {
                    item,
                    holder: holder.clone(),
                    value,
                    how: "appended to",
                }));
            }
            Stmt::AugAssign(assign) if matches!(assign.op, Operator::Add | Operator::Sub) => {
                let Some(holder) = holder_path(&assign.target) else { continue };
                found.push(Store { item, holder, value: &assign.value, how: "added to" });
            }
            Stmt::Assign(assign) => {
                let [target] = &*assign.targets else { continue };
                match (target, &*assign.value) {
                    (_, Expr::BinOp(binary))
                        if binary.op == Operator::Add && path(target).is_some() =>
                    {
                        let Some(holder) = path(target) else { continue };
                        let value = match (path(&binary.left), path(&binary.right)) {
                            (Some(left), _) if left == holder => &binary.right,
                            (_, Some(right)) if right == holder => &binary.left,
                            _ => continue,
                        };
                        found.push(Store { item, holder, value, how: "added to" });
                    }
                    (Expr::Subscript(subscript), _) => {
                        let Some(holder) = holder_path(target) else { continue };
                        if is_varying(scope, item, &subscript.slice) {
                            let value = &assign.value;
                            found.push(Store { item, holder, value, how: "stored in" });
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}

/// The value, or what a tuple or dict made on the spot holds.
fn parts(value: &Expr) -> Box<dyn Iterator<Item = &Expr> + '_> {
    match value {
        Expr::Tuple(tuple) => Box::new(tuple.elts.iter()),
        Expr::List(list) => Box::new(list.elts.iter()),
        Expr::Dict(dict) => Box::new(dict.items.iter().map(|item| &item.value)),
        other => Box::new(std::iter::once(other)),
    }
}

/// An index that changes with the loop; a constant key holds one value at a time.
fn is_varying(scope: &Scope<'_>, item: usize, index: &Expr) -> bool {
    scope
        .innermost_loop(item)
        .is_some_and(|around| around.targets.iter().any(|target| mentions(index, target)))
        && !index.is_slice_expr()
}

/// Whether the holder starts afresh in each iteration.
fn is_reset(scope: &Scope<'_>, store: &Store<'_>, around: &Loop<'_>) -> bool {
    let binds = scope.bindings_within(&store.holder, around.body()).any(|binding| {
        binding.item != store.item
            && matches!(binding.how, How::Assign | How::Unpack | How::Iterate | How::Delete)
            && !binding.expr.is_some_and(|expr| mentions(expr, &store.holder))
            && scope.dominates(binding.item, store.item)
    });
    let root = store.holder.split('.').next().unwrap_or_default();
    let clears = scope.calls_in(around.body()).any(|(_, call)| match method(call) {
        Some((receiver, "clear" | "popleft" | "pop")) => {
            holder_path(receiver).as_deref() == Some(&store.holder)
        }
        _ => false,
    });
    binds || clears || around.targets.iter().any(|target| target == root)
}

/// `deque(maxlen=...)` holds no more than it says.
fn is_bounded(scope: &Scope<'_>, store: &Store<'_>) -> bool {
    scope.bindings_of(&store.holder).any(|binding| {
        binding.expr.is_some_and(|expr| {
            expr.as_call_expr().is_some_and(|call| keyword(call, "maxlen").is_some())
        })
    })
}

fn judge(
    check: &mut Check<'_, '_>,
    scope: &Scope<'_>,
    around: &Loop<'_>,
    store: &Store<'_>,
    takers: &mut Takers,
) {
    let file = check.file;
    if file.grad(scope, store.item) != Grad::On {
        return;
    }
    let value = file.infer(scope, store.value, store.item);
    let name = path(store.value);
    let flows = into_backward(scope, around.body());
    let terms = terms_of_backward(scope, around.body());
    let loss =
        |path: &String| terms.contains(path) && (is_loss(path) || is_root(scope, around, path));
    let known_plain = value != crate::model::Value::Unknown && !value.has_graph();
    let is_term = !known_plain
        && match store.value {
            Expr::BinOp(binary) => [&binary.left, &binary.right]
                .iter()
                .any(|side| path(side).is_some_and(|p| loss(&p))),
            _ => name.as_ref().is_some_and(loss),
        };
    let in_pass =
        is_term || value.has_graph() && name.as_ref().is_some_and(|name| flows.contains(name));
    let left = value.has_graph() && is_left_alone(scope, &store.holder, around, takers);
    if !in_pass && !left {
        return;
    }
    let text = check.quote(store.value);
    let (how, holder) = (store.how, &store.holder);
    let what = if in_pass {
        "after `backward()` its nodes and the tensor itself stay alive for every iteration"
    } else {
        "and all activations of every iteration stay alive"
    };
    let relied = match name.as_deref().filter(|_| is_term) {
        Some(name) => format!("relied on: `{name}` goes into `backward()` in this loop"),
        None => format!("relied on: `{text}` is computed by a model while autograd records"),
    };
    let message = format!(
        "`{text}` is {how} `{holder}` in a loop together with the graph that made it; {what} ({relied})"
    );
    let advice = format!(
        "store `{text}` without its graph: `.item()` for a number, `.detach()` for a tensor"
    );
    check.report_fix(store.value.range(), message, advice, detached(store.value));
}

fn is_root(scope: &Scope<'_>, around: &Loop<'_>, path: &str) -> bool {
    scope
        .calls_in(around.body())
        .filter(|(_, call)| crate::model::is_backward(call))
        .any(|(_, call)| crate::model::backward_roots(call).iter().any(|root| root == path))
}

/// Nothing takes the holder elsewhere, where it could still be differentiated: it is at most printed, counted or plotted.
fn is_left_alone(scope: &Scope<'_>, holder: &str, around: &Loop<'_>, takers: &mut Takers) -> bool {
    if holder.contains('.') || scope.bindings_of(holder).next().is_none() {
        return false;
    }
    // From the loop's end on until the name gets a new meaning.
    let until = scope
        .bindings_within(holder, around.end..scope.items.len())
        .find(|binding| binding.how == How::Assign)
        .map_or(scope.items.len(), |binding| binding.item);
    let taken = takers.entry(holder.to_string()).or_insert_with(|| {
        (0..scope.items.len()).filter(|item| takes(scope, *item, holder)).collect()
    });
    let next = taken.partition_point(|item| *item < around.item);
    taken.get(next).is_none_or(|item| *item >= until)
}

/// For each holder the items that take it elsewhere, in order.
type Takers = HashMap<String, Vec<usize>>;

/// Whether an item hands the holder to something that could differentiate it.
fn takes(scope: &Scope<'_>, item: usize, holder: &str) -> bool {
    const HARMLESS: &[&str] = &[
        "print",
        "len",
        "append",
        "appendleft",
        "insert",
        "format",
        "write",
        "plot",
        "item",
        "float",
        "info",
    ];
    let nodes = scope.nodes_of(item);
    let reads = |expr: &Expr| path(expr).is_some_and(|path| is_or_under(&path, holder));
    match scope.items[item].stmt {
        Stmt::FunctionDef(_) => false,
        Stmt::Return(_) | Stmt::For(_) | Stmt::ClassDef(_) => {
            nodes.iter().any(|node| reads(node.expr))
        }
        _ => nodes.iter().any(|node| match node.expr {
            Expr::Call(call) => {
                let harmless = last_name(&call.func).is_some_and(|name| HARMLESS.contains(&name));
                let arguments = || call.arguments.args.iter();
                // `sum(l.item() for l in losses)` reads numbers.
                let number = |e: &Expr| matches!(last_name(e), Some("item" | "detach" | "tolist"));
                !harmless
                    && arguments().any(|argument| any(argument, &mut |e| reads(e)))
                    && !arguments().any(|argument| any(argument, &mut |e| number(e)))
            }
            Expr::Yield(yielded) => {
                yielded.value.as_deref().is_some_and(|value| mentions(value, holder))
            }
            _ => false,
        }),
    }
}

/// `.detach()` behind the value, in brackets if it is an operation.
fn detached(value: &Expr) -> Vec<Edit> {
    let end = value.end().to_usize();
    match value {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_) => {
            vec![Edit::insert(end, ".detach()")]
        }
        _ => vec![Edit::insert(value.start().to_usize(), "("), Edit::insert(end, ").detach()")],
    }
}
