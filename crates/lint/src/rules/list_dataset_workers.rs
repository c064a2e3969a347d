//! `list-dataset-workers`: a dataset of this file builds a list of many Python objects and is
//! loaded by worker processes. Reading an object writes its reference count, so every worker copies
//! the pages: host memory grows with each epoch.

use std::collections::HashMap;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::model::expression::{integer, keyword, last_name, method, path};
use crate::model::{Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "list-dataset-workers",
    code: "PLM025",
    summary: "A dataset keeps many Python objects that worker processes will copy",
    pedantic: false,
    page: include_str!("../../pages/list-dataset-workers.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    let loaded = loaded_by_workers(check);
    for (number, class) in file.classes.iter().enumerate() {
        if !class.is_dataset {
            continue;
        }
        let Some(workers) = loaded.get(&number) else { continue };
        let Some(init) =
            class.methods.iter().map(|m| &file.scopes[*m]).find(|m| m.name() == "__init__")
        else {
            continue;
        };
        let Some(item_of) =
            class.methods.iter().map(|m| &file.scopes[*m]).find(|m| m.name() == "__getitem__")
        else {
            continue;
        };
        for (attribute, range) in built_lists(init) {
            let reads = item_of.nodes.iter().any(|node| {
                matches!(node.expr, Expr::Subscript(s) if path(&s.value).as_deref() == Some(&attribute))
            });
            if !reads {
                continue;
            }
            let line = check.line(workers);
            check.report(
                range,
                format!(
                    "`{attribute}` is a list of many Python objects, and the loader on line {line} reads it in worker \
                     processes: each read writes a reference count, so each worker ends up with its own copy"
                ),
                "keep one object instead of many: a NumPy array, a tensor, or one bytes buffer with offsets",
            );
        }
    }
}

/// Where a loader with workers is made first, by the class of its dataset.
fn loaded_by_workers(check: &Check<'_, '_>) -> HashMap<usize, TextRange> {
    let mut loaded = HashMap::new();
    for (scope, node, call) in check.file.calls_of("DataLoader") {
        let dataset = call.arguments.args.first().or_else(|| keyword(call, "dataset"));
        let Some((dataset, workers)) = dataset.zip(keyword(call, "num_workers")) else { continue };
        // A variable is often 0 where it matters.
        if integer(workers).is_none_or(|count| count <= 0) {
            continue;
        }
        if let Value::Instance(class) = check.file.infer(scope, dataset, scope.nodes[node].item) {
            loaded.entry(class).or_insert(call.range());
        }
    }
    loaded
}

/// Attributes of the object that are filled element by element.
fn built_lists(init: &Scope<'_>) -> Vec<(String, TextRange)> {
    let mut found: Vec<(String, TextRange)> = Vec::new();
    for item in 0..init.items.len() {
        match init.items[item].stmt {
            Stmt::Assign(assign) => {
                let [target] = &*assign.targets else { continue };
                let Some(path) = path(target).filter(|path| path.starts_with("self.")) else {
                    continue;
                };
                let built = match &*assign.value {
                    Expr::ListComp(comp) => {
                        !is_over_range(comp.generators.first().map(|g| &g.iter))
                    }
                    Expr::Call(call) => {
                        matches!(last_name(&call.func), Some("readlines" | "splitlines"))
                            || matches!(last_name(&call.func), Some("load"))
                                && method(call).is_some_and(|(r, _)| {
                                    crate::model::expression::path(r).as_deref() == Some("json")
                                })
                    }
                    _ => false,
                };
                if built {
                    found.push((path, assign.range()));
                }
            }
            Stmt::Expr(expr) => {
                let Expr::Call(call) = &*expr.value else { continue };
                let Some((receiver, "append")) = method(call) else { continue };
                let Some(path) = path(receiver).filter(|path| path.starts_with("self.")) else {
                    continue;
                };
                let many =
                    init.innermost_loop(item).is_some_and(|around| !is_over_range(around.over));
                let tensor = call.arguments.args.first().is_some_and(|value| {
                    value.as_call_expr().is_some_and(|call| {
                        matches!(last_name(&call.func), Some("tensor" | "from_numpy" | "array"))
                    })
                });
                if many && !tensor && !found.iter().any(|(known, _)| *known == path) {
                    found.push((path, call.range()));
                }
            }
            _ => {}
        }
    }
    found
}

/// A handful, written out, or counted by the program: `range(len(classes))`.
fn is_over_range(iter: Option<&Expr>) -> bool {
    match iter {
        Some(Expr::Call(call)) => last_name(&call.func) == Some("range"),
        Some(Expr::List(_) | Expr::Tuple(_)) => true,
        _ => false,
    }
}
