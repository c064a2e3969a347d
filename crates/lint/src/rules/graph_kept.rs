//! `graph-kept`: a tensor that carries its graph is appended, summed up or stored in a loop, so that every iteration's graph
//! stays alive. Silent where the sum or the list itself goes into a backward pass, where the container is emptied or bounded, and
//! where nothing proves that there is a graph.

use std::collections::HashSet;

use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::Ranged;
use rustc_hash::FxHashMap;

use super::evidence::{into_backward, terms_of_backward};
use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::{
    any, holder_path, keyword, last_name, mentions, method, names_in, path,
};
use crate::model::{Binding, Grad, How, Loop, Scope, Value, backward_roots, is_backward, is_loss};

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

/// What the stores of one scope are judged by, each part found once.
struct Facts<'s, 'a> {
    scope: &'s Scope<'a>,
    /// What flows into any backward pass of the scope.
    needed: HashSet<String>,
    turns: FxHashMap<usize, Turn>,
    /// Items that start a holder afresh, by loop and holder.
    resets: FxHashMap<(usize, String), Vec<usize>>,
    bounded: FxHashMap<String, bool>,
    takers: Option<Takers<'a>>,
}

/// What happens in one loop.
struct Turn {
    /// What flows into its backward passes, and of that the terms and the roots.
    flows: HashSet<String>,
    terms: HashSet<String>,
    roots: HashSet<String>,
    /// Holders that are emptied in it.
    emptied: HashSet<String>,
}

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in file.scopes.iter().filter(|scope| !scope.loops.is_empty()) {
        let stores = stores(scope);
        if stores.is_empty() {
            continue;
        }
        let mut facts = Facts::new(scope);
        for store in stores {
            let Some(around) = scope.innermost_loop(store.item) else { continue };
            if facts.needed.contains(&store.holder)
                || file.grad(scope, store.item) != Grad::On
                || facts.is_reset(&store, around)
                || facts.is_bounded(&store)
            {
                continue;
            }
            judge(check, &mut facts, around, &store);
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

impl<'s, 'a> Facts<'s, 'a> {
    fn new(scope: &'s Scope<'a>) -> Facts<'s, 'a> {
        Facts {
            scope,
            needed: into_backward(scope, 0..scope.items.len()),
            turns: FxHashMap::default(),
            resets: FxHashMap::default(),
            bounded: FxHashMap::default(),
            takers: None,
        }
    }

    fn turn(&mut self, around: &Loop<'_>) -> &Turn {
        let scope = self.scope;
        self.turns.entry(around.number).or_insert_with(|| {
            let calls = || scope.calls_in(around.body()).map(|(_, call)| call);
            let emptied = calls().filter_map(|call| match method(call) {
                Some((receiver, "clear" | "popleft" | "pop")) => holder_path(receiver),
                _ => None,
            });
            Turn {
                flows: into_backward(scope, around.body()),
                terms: terms_of_backward(scope, around.body()),
                roots: calls().filter(|call| is_backward(call)).flat_map(backward_roots).collect(),
                emptied: emptied.collect(),
            }
        })
    }

    /// Whether the holder starts afresh in each iteration.
    fn is_reset(&mut self, store: &Store<'_>, around: &Loop<'_>) -> bool {
        let root = store.holder.split('.').next().unwrap_or_default();
        if around.targets.iter().any(|target| target == root)
            || self.turn(around).emptied.contains(&store.holder)
        {
            return true;
        }
        let (scope, holder) = (self.scope, store.holder.as_str());
        let resets =
            self.resets.entry((around.number, store.holder.clone())).or_insert_with(|| {
                let starts = |binding: &&Binding<'_>| {
                    matches!(binding.how, How::Assign | How::Unpack | How::Iterate | How::Delete)
                        && !binding.expr.is_some_and(|expr| mentions(expr, holder))
                };
                scope
                    .bindings_within(holder, around.body())
                    .filter(starts)
                    .map(|b| b.item)
                    .collect()
            });
        resets.iter().any(|item| *item != store.item && scope.dominates(*item, store.item))
    }

    /// `deque(maxlen=...)` holds no more than it says.
    fn is_bounded(&mut self, store: &Store<'_>) -> bool {
        if let Some(known) = self.bounded.get(&store.holder) {
            return *known;
        }
        let bounds = |binding: &Binding<'_>| {
            let call = binding.expr.and_then(|expr| expr.as_call_expr());
            call.is_some_and(|call| keyword(call, "maxlen").is_some())
        };
        let bounded = self.scope.bindings_of(&store.holder).any(bounds);
        self.bounded.insert(store.holder.clone(), bounded);
        bounded
    }

    /// Nothing takes the holder elsewhere, where it could still be differentiated: it is at most printed, counted or plotted.
    fn is_left_alone(&mut self, holder: &str, around: &Loop<'_>) -> bool {
        let scope = self.scope;
        if holder.contains('.') || scope.bindings_of(holder).next().is_none() {
            return false;
        }
        // From the loop's end on until the name gets a new meaning.
        let until = scope
            .bindings_within(holder, around.end..scope.items.len())
            .find(|binding| binding.how == How::Assign)
            .map_or(scope.items.len(), |binding| binding.item);
        let taken = self.takers.get_or_insert_with(|| takers(scope)).get(holder);
        let taken = taken.map(Vec::as_slice).unwrap_or_default();
        let next = taken.partition_point(|item| *item < around.item);
        taken.get(next).is_none_or(|item| *item >= until)
    }
}

fn judge(
    check: &mut Check<'_, '_>,
    facts: &mut Facts<'_, '_>,
    around: &Loop<'_>,
    store: &Store<'_>,
) {
    let value = check.file.infer(facts.scope, store.value, store.item);
    let name = path(store.value);
    let turn = facts.turn(around);
    let loss =
        |path: &String| turn.terms.contains(path) && (is_loss(path) || turn.roots.contains(path));
    let known_plain = value != Value::Unknown && !value.has_graph();
    let is_term = !known_plain
        && match store.value {
            Expr::BinOp(binary) => [&binary.left, &binary.right]
                .iter()
                .any(|side| path(side).is_some_and(|p| loss(&p))),
            _ => name.as_ref().is_some_and(loss),
        };
    let in_pass =
        is_term || value.has_graph() && name.as_ref().is_some_and(|n| turn.flows.contains(n));
    let left = value.has_graph() && facts.is_left_alone(&store.holder, around);
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

/// For each name the items that hand it to something that could differentiate it, in order.
type Takers<'a> = FxHashMap<&'a str, Vec<usize>>;

fn takers<'a>(scope: &Scope<'a>) -> Takers<'a> {
    let mut takers = Takers::default();
    for item in 0..scope.items.len() {
        for name in taken(scope, item) {
            let items = takers.entry(name).or_default();
            if items.last() != Some(&item) {
                items.push(item);
            }
        }
    }
    takers
}

/// The names that an item hands to something that could differentiate them.
fn taken<'a>(scope: &Scope<'a>, item: usize) -> Vec<&'a str> {
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
    let mut found = Vec::new();
    let everywhere =
        matches!(scope.items[item].stmt, Stmt::Return(_) | Stmt::For(_) | Stmt::ClassDef(_));
    if scope.items[item].stmt.is_function_def_stmt() {
        return found;
    }
    for node in scope.nodes_of(item) {
        match node.expr {
            Expr::Name(name) if everywhere => found.push(name.id.as_str()),
            Expr::Call(call) if !everywhere => {
                let harmless = last_name(&call.func).is_some_and(|name| HARMLESS.contains(&name));
                // `sum(l.item() for l in losses)` reads numbers.
                let number = |e: &Expr| matches!(last_name(e), Some("item" | "detach" | "tolist"));
                let arguments = &call.arguments.args;
                if !harmless && !arguments.iter().any(|argument| any(argument, &mut |e| number(e)))
                {
                    arguments.iter().for_each(|argument| names_in(argument, &mut found));
                }
            }
            Expr::Yield(yielded) if !everywhere => {
                yielded.value.iter().for_each(|value| names_in(value, &mut found));
            }
            _ => {}
        }
    }
    found
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
