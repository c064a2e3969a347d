//! Questions that several rules ask of a scope: what flows into a backward pass, what runs in every
//! iteration, what an in-place call looks like.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ruff_python_ast::{Expr, ExprCall, Operator};
use ruff_text_size::{Ranged, TextRange};

use crate::finding::Edit;
use crate::model::expression::{
    any, holder_path, is_true, keyword, last_name, method, path, paths, receiver,
};
use crate::model::{File, How, Loop, Scope, Value, backward_roots, is_backward};

/// The paths that flow into a backward pass among these items, through whatever binds them.
pub(super) fn into_backward(scope: &Scope<'_>, items: Range<usize>) -> HashSet<String> {
    closure(scope, items, paths)
}

/// Of these only what flows in through arithmetic and reductions: terms of the loss, not its
/// inputs.
pub(super) fn terms_of_backward(scope: &Scope<'_>, items: Range<usize>) -> HashSet<String> {
    closure(scope, items, terms)
}

fn closure(
    scope: &Scope<'_>,
    items: Range<usize>,
    sources: impl Fn(&Expr) -> Vec<String>,
) -> HashSet<String> {
    let mut found: HashSet<String> = scope
        .calls_in(items.clone())
        .filter(|(_, call)| is_backward(call))
        .flat_map(|(_, call)| backward_roots(call))
        .collect();
    if found.is_empty() {
        return found;
    }
    let stored = stored(scope, items.clone());
    let mut next: Vec<String> = found.iter().cloned().collect();
    while let Some(path) = next.pop() {
        for binding in scope.bindings_within(&path, items.clone()) {
            for source in binding.expr.map(&sources).unwrap_or_default() {
                if found.insert(source.clone()) {
                    next.push(source);
                }
            }
        }
        // Elements stored into it flow on with it.
        for name in stored.get(&path).into_iter().flatten() {
            if found.insert(name.clone()) {
                next.push(name.clone());
            }
        }
    }
    found
}

/// What is appended to each container.
fn stored(scope: &Scope<'_>, items: Range<usize>) -> HashMap<String, Vec<String>> {
    let mut stored: HashMap<String, Vec<String>> = HashMap::new();
    for (_, call) in scope.calls_in(items) {
        if let Some((receiver, "append" | "extend" | "appendleft")) = method(call)
            && let Some(container) = holder_path(receiver)
        {
            stored.entry(container).or_default().extend(call.arguments.args.iter().flat_map(paths));
        }
    }
    stored
}

/// The paths that are terms of an expression: operands of arithmetic, receivers of reductions.
fn terms(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::BinOp(binary) => {
            let mut found = terms(&binary.left);
            found.extend(terms(&binary.right));
            found
        }
        Expr::UnaryOp(unary) => terms(&unary.operand),
        Expr::Call(call) => match method(call) {
            Some((receiver, "mean" | "sum" | "to" | "float" | "scale")) => terms(receiver),
            _ if last_name(&call.func) == Some("sum") => {
                call.arguments.args.iter().flat_map(terms).collect()
            }
            _ => Vec::new(),
        },
        Expr::List(list) => list.elts.iter().flat_map(terms).collect(),
        Expr::Tuple(tuple) => tuple.elts.iter().flat_map(terms).collect(),
        other => path(other).into_iter().collect(),
    }
}

/// A test that is the same in every iteration: whether a device is there, an option, a platform.
fn is_static_test(test: &Expr) -> bool {
    let text_like = |expr: &Expr| match expr {
        Expr::Attribute(attribute) => {
            ["is_available", "type", "cuda", "device"].contains(&attribute.attr.as_str())
        }
        Expr::Name(name) => {
            let name = name.id.to_ascii_lowercase();
            ["cuda", "device", "gpu"].iter().any(|word| name.contains(word))
        }
        _ => false,
    };
    any(test, &mut |expr| text_like(expr)) && !any(test, &mut |expr| is_modulus(expr))
}

fn is_modulus(expr: &Expr) -> bool {
    matches!(expr, Expr::BinOp(binary) if binary.op == Operator::Mod)
}

/// Whether an item runs in every iteration of the loop: only tests that never change lie between.
pub(super) fn in_every_iteration<'a>(scope: &Scope<'a>, item: usize, around: &Loop<'a>) -> bool {
    use crate::model::Region;
    let handler = scope
        .regions_of(item)
        .take_while(|region| !matches!(region, Region::Loop(number) if *number == around.number))
        .any(|region| matches!(region, Region::Except));
    let tests = scope.tests_within(item, around);
    !handler
        && tests.iter().all(|test| test.is_some_and(is_static_test))
        && !skipped(scope, item, around)
}

/// A `continue`, `break` or `return` earlier in the loop's body under a modulus leaves the item to
/// some iterations only.
fn skipped<'a>(scope: &Scope<'a>, item: usize, around: &Loop<'a>) -> bool {
    let first = scope.continues.partition_point(|earlier| *earlier <= around.item);
    scope.continues[first..].iter().take_while(|earlier| **earlier < item).any(|earlier| {
        let tests = scope.tests_within(*earlier, around);
        tests.iter().flatten().any(|test| any(test, &mut |e| is_modulus(e)))
    })
}

/// A backward pass, gradients of inputs, or an attack on the model: somebody wants the graph.
pub(super) fn calls_for_gradients(scope: &Scope<'_>, items: Range<usize>) -> bool {
    let wants = |name: &str| {
        matches!(
            name,
            "backward"
                | "grad"
                | "requires_grad_"
                | "jacobian"
                | "vjp"
                | "retain_grad"
                | "manual_backward"
        )
    };
    scope.calls_in(items).any(|(_, call)| {
        last_name(&call.func).is_some_and(wants) || receiver(call, "attack").is_some()
    })
}

/// Whether the loop's backward passes, each of them, leave the graph as it was.
pub(super) fn every_pass_retains(scope: &Scope<'_>, around: &Loop<'_>) -> bool {
    let mut passes = scope.calls_in(around.body()).filter(|(_, call)| is_backward(call)).peekable();
    let retains = |call: &ExprCall| keyword(call, "retain_graph").is_some_and(is_true);
    passes.peek().is_some() && passes.all(|(_, call)| retains(call))
}

/// A loop in which a model works on one batch at a time, and not one over epochs, models or
/// configurations.
pub(super) fn is_hot<'a>(file: &File<'a>, scope: &Scope<'a>, around: &Loop<'a>) -> bool {
    if around.is_outer_turn() {
        return false;
    }
    // A loop that makes its model afresh turns over models, not over batches.
    let makes_module = scope.bindings_in(around.body()).iter().any(|binding| {
        binding.how == How::Assign
            && matches!(&binding.value, Value::Module(module) if module.certain)
    });
    let loads = scope.calls_in(around.body()).any(|(_, call)| {
        matches!(
            last_name(&call.func),
            Some("from_pretrained" | "load_state_dict" | "create_model" | "load_model")
        )
    });
    if makes_module || loads {
        return false;
    }
    let inner_loop = |item: usize| scope.innermost_loop(item).map(|inner| inner.number);
    let works_here = scope.calls_in(around.body()).any(|(node, call)| {
        inner_loop(node.item) == Some(around.number)
            && (is_backward(call) || file.is_module(scope, &call.func, node.item))
    });
    around.loader.is_some() && !works_in_inner(scope, around) || works_here
}

fn works_in_inner<'a>(scope: &Scope<'a>, around: &Loop<'a>) -> bool {
    scope.loops.iter().any(|inner| {
        inner.number != around.number && around.contains(inner.item) && inner.has_backward
    })
}

/// A call of `to` or `cuda` on what a loop over a loader of this file yields.
pub(super) struct BatchCopy<'a> {
    /// The loader, as the loop names it, and where it is made.
    pub(super) over: String,
    pub(super) made: TextRange,
    /// The number of the loop.
    pub(super) around: usize,
    pub(super) item: usize,
    pub(super) call: &'a ExprCall,
}

/// The copies of batches from loaders that are known to pin their memory, or known not to.
pub(super) fn batch_copies<'a>(
    file: &File<'a>,
    scope: &Scope<'a>,
    pinned: bool,
) -> Vec<BatchCopy<'a>> {
    let mut found = Vec::new();
    for around in &scope.loops {
        let Some(over) = around.over.and_then(path) else { continue };
        let Value::Loader(loader) = file.value_at(scope, &over, around.item) else { continue };
        if loader.pinned != Some(pinned) {
            continue;
        }
        for (node, call) in scope.calls_in(around.body()) {
            let Some((receiver, "to" | "cuda")) = method(call) else { continue };
            let root = holder_path(receiver).unwrap_or_default();
            let root = root.split('.').next().unwrap_or_default();
            if around.targets.iter().any(|target| target == root) {
                let (over, made) = (over.clone(), loader.made);
                found.push(BatchCopy { over, made, around: around.number, item: node.item, call });
            }
        }
    }
    found
}

/// The edit that passes one more argument to a call, behind the others.
pub(super) fn appended(text: &str, call: &ExprCall, argument: &str) -> Vec<Edit> {
    let positional = call.arguments.args.iter().map(Ranged::end);
    let last = positional.chain(call.arguments.keywords.iter().map(Ranged::end)).max();
    let Some(last) = last.map(|end| end.to_usize()) else {
        let open = call.arguments.range.start().to_usize() + 1;
        return vec![Edit::insert(open, argument)];
    };
    // A generator that is the only argument stands without brackets, which it would need beside
    // another.
    if call.arguments.args.iter().any(Expr::is_generator_expr) {
        return Vec::new();
    }
    // Brackets around the last argument are no part of it.
    let rest = text.get(last..call.end().to_usize() - 1).unwrap_or_default();
    let rest = rest.split('#').next().unwrap_or_default();
    let at = last + rest.rfind(')').map_or(0, |bracket| bracket + 1);
    vec![Edit::insert(at, format!(", {argument}"))]
}

/// The receiver of a method call that changes it in place: `x` in `x.add_(1)`.
pub(super) fn in_place_receiver(call: &ExprCall) -> Option<(&Expr, &str)> {
    const NOT_CHANGES: &[&str] = &[
        "requires_grad_",
        "detach_",
        "share_memory_",
        "retain_grad_",
        "pin_memory_",
        "__init_",
        "data_",
    ];
    let (receiver, name) = method(call)?;
    (name.ends_with('_')
        && !name.ends_with("__")
        && !name.starts_with('_')
        && !NOT_CHANGES.contains(&name))
    .then_some((receiver, name))
}

/// The range of the method's name and call: `.view(...)` without its receiver.
pub(super) fn name_range(call: &ExprCall) -> Option<TextRange> {
    call.func.as_attribute_expr().map(|attribute| attribute.attr.range)
}

/// Names that a loop binds: its header's targets and everything assigned in its body.
pub(super) fn bound_in<'a>(scope: &Scope<'a>, around: &Loop<'a>, path: &str) -> bool {
    let root = path.split('.').next().unwrap_or(path);
    around.targets.iter().any(|target| target == path || target == root)
        || [path, root].iter().any(|path| {
            scope.bindings_within(path, around.body()).any(|binding| binding.how != How::Delete)
        })
}
