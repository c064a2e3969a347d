//! What statements put where it outlives the iteration: appended, added up, stored under a key.
//! Only the form of the statement counts here; whether it matters is asked in `facts`.

use ruff_python_ast::{Expr, Operator, Stmt};

use crate::model::Scope;
use crate::model::expression::{holder_path, last_name, mentions, method, path, receiver};

/// One value put into something that outlives the iteration.
pub(super) struct Store<'a> {
    pub(super) item: usize,
    pub(super) holder: String,
    pub(super) value: &'a Expr,
    pub(super) how: &'static str,
}

/// Everything that the statements of a scope store.
pub(super) fn stores<'a>(scope: &Scope<'a>) -> Vec<Store<'a>> {
    let mut found = Vec::new();
    for (item, entry) in scope.items.iter().enumerate() {
        match entry.stmt {
            Stmt::Expr(expr) => {
                let Expr::Call(call) = &*expr.value else { continue };
                let Some((receiver, "append" | "appendleft" | "insert" | "extend")) = method(call)
                else {
                    continue;
                };
                let (Some(holder), Some(value)) = (holder_of(receiver), call.arguments.args.last())
                else {
                    continue;
                };
                // What `extend` adds can be seen only where the list is written out.
                if last_name(&call.func) == Some("extend") && !value.is_list_expr() {
                    continue;
                }
                found.extend(parts(value).map(|value| Store {
                    item,
                    holder: holder.clone(),
                    value,
                    how: "appended to",
                }));
            }
            Stmt::AugAssign(assign) if matches!(assign.op, Operator::Add | Operator::Sub) => {
                let Some(holder) = holder_path(&assign.target) else { continue };
                found.extend(parts(&assign.value).map(|value| Store {
                    item,
                    holder: holder.clone(),
                    value,
                    how: "added to",
                }));
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

/// The list or dict that is filled: `history` for `history.setdefault("loss", [])` too.
fn holder_of(expr: &Expr) -> Option<String> {
    match expr.as_call_expr().and_then(|call| receiver(call, "setdefault")) {
        Some(holder) => holder_path(holder),
        None => holder_path(expr),
    }
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
