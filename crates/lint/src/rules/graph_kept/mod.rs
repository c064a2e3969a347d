//! `graph-kept`: a tensor that carries its graph is appended, summed up or stored in a loop, so
//! that every iteration's graph stays alive. Silent where the sum or the list itself goes into a
//! backward pass, where the container is emptied or bounded, and where nothing proves that there is
//! a graph.

mod facts;
mod inference;
mod meters;
mod stores;

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use self::facts::Facts;
use self::inference::gathers_graphs;
use self::meters::{Kept, kept};
use self::stores::{Store, stores};
use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::path;
use crate::model::{Grad, Graph, Loop, Value, is_loss};
use crate::rules::evidence::every_pass_retains;

pub(crate) static RULE: Rule = Rule {
    name: "graph-kept",
    code: "PLM001",
    summary: "A loss or output is stored across iterations together with its graph",
    pedantic: false,
    page: include_str!("../../../pages/graph-kept.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in file.scopes.iter().filter(|scope| !scope.loops.is_empty()) {
        let stores = stores(scope);
        let passes = scope.loops.iter().filter(|around| around.has_backward);
        let handed: Vec<_> = passes
            .flat_map(|around| {
                kept(file, scope, around).into_iter().map(move |kept| (around, kept))
            })
            .collect();
        if stores.is_empty() && handed.is_empty() {
            continue;
        }
        let mut facts = Facts::new(scope);
        for (around, kept) in &handed {
            judge_kept(check, &mut facts, around, kept);
        }
        for store in stores {
            let Some(around) = scope.innermost_loop(store.item) else { continue };
            if facts.needed.contains(&store.holder)
                || file.grad(scope, store.item) == Grad::Off
                || facts.is_reset(&store, around)
                || facts.is_bounded(&store)
            {
                continue;
            }
            judge(check, &mut facts, around, &store);
        }
    }
}

fn judge<'a>(
    check: &mut Check<'a, '_>,
    facts: &mut Facts<'_, 'a>,
    around: &Loop<'a>,
    store: &Store<'a>,
) {
    let value = check.file.infer(facts.scope, store.value, store.item);
    let name = path(store.value);
    let recording = check.file.grad(facts.scope, store.item) == Grad::On;
    let is_term = is_term(check, facts, around, store);
    let turn = facts.facts_of(around);
    let by_name =
        is_term || value.has_graph() && name.as_ref().is_some_and(|n| turn.flows.contains(n));
    let spent = facts.spent_by(check.file, store, around);
    let in_pass = recording && by_name || spent.is_some();
    let left = recording && value.has_graph() && facts.is_left_alone(&store.holder, around);
    if !in_pass && !left {
        if gathers_graphs(check.file, facts, around, store) {
            report_gathered(check, store);
        }
        return;
    }
    if facts.is_detached_in_place(store, around) {
        return;
    }
    let text = check.quote(store.value);
    let (how, holder) = (store.how, &store.holder);
    let what = match in_pass {
        true if spent.is_none() && every_pass_retains(facts.scope, around) => {
            "`retain_graph=True` leaves it whole, and all activations of every iteration stay alive"
        }
        true => "after `backward()` its nodes and the tensor itself stay alive for every iteration",
        false => "and all activations of every iteration stay alive",
    };
    let relied = match (spent, name.as_deref().filter(|_| is_term)) {
        (Some(function), _) => {
            format!("relied on: `{function}` returns its loss after its `backward()`")
        }
        (_, Some(name)) => format!("relied on: `{name}` goes into `backward()` in this loop"),
        _ => format!("relied on: `{text}` is computed by a model while autograd records"),
    };
    let message = format!(
        "`{text}` is {how} `{holder}` in a loop together with the graph that made it; {what} ({relied})"
    );
    let advice = format!(
        "store `{text}` without its graph: `.item()` for a number, `.detach()` for a tensor"
    );
    check.report_fix(store.value.range(), message, advice, detached(store.value));
}

/// Outputs of a whole pass in a list, in a function that does not train.
fn report_gathered(check: &mut Check<'_, '_>, store: &Store<'_>) {
    let (text, holder) = (check.quote(store.value), &store.holder);
    let message = format!(
        "`{text}` of every batch is appended to `{holder}` together with the graph that made it, and all \
         activations of every batch stay alive (relied on: it is a model's output, and nothing here switches \
         autograd off, runs a backward pass or asks for gradients)"
    );
    let advice = "put the loop under `with torch.no_grad():` or `torch.inference_mode()`";
    check.report(store.value.range(), message, advice);
}

/// Whether the value is the loss of the loop's backward pass or a term of it.
fn is_term<'a>(
    check: &Check<'a, '_>,
    facts: &mut Facts<'_, 'a>,
    around: &Loop<'_>,
    store: &Store<'_>,
) -> bool {
    let plain = match check.file.infer(facts.scope, store.value, store.item) {
        Value::Unknown => false,
        // What a backward pass starts from has a graph, whatever made it.
        Value::Tensor(tensor) => match tensor.graph {
            Graph::Yes => false,
            Graph::No => true,
            Graph::Unknown => facts.is_bound_after_backward(store, around),
        },
        _ => true,
    };
    let turn = facts.facts_of(around);
    let loss =
        |path: &String| turn.terms.contains(path) && (is_loss(path) || turn.roots.contains(path));
    let is_loss = |expr: &Expr| path(expr).is_some_and(|path| loss(&path));
    !plain
        && match store.value {
            Expr::BinOp(binary) => is_loss(&binary.left) || is_loss(&binary.right),
            other => is_loss(other),
        }
}

/// A loss that goes into an object of this file which adds it up.
fn judge_kept<'a>(
    check: &mut Check<'a, '_>,
    facts: &mut Facts<'_, 'a>,
    around: &Loop<'a>,
    kept: &Kept<'a>,
) {
    let store = &kept.store;
    if check.file.grad(facts.scope, store.item) != Grad::On || !is_term(check, facts, around, store)
    {
        return;
    }
    let (text, keeper) = (check.quote(store.value), check.quote(kept.keeper));
    let (holder, method, line) = (&store.holder, kept.method, check.line(kept.keeper));
    let message = format!(
        "`{text}` is handed to `{holder}.{method}` in a loop together with the graph that made it, and \
         `{keeper}` (line {line}) keeps it: after `backward()` its nodes and the tensor itself stay alive for \
         every iteration (relied on: `{text}` goes into `backward()` in this loop)"
    );
    let advice = format!("hand over `{text}.item()`, or let `{method}` call `detach()`");
    check.report_fix(store.value.range(), message, advice, detached(store.value));
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
