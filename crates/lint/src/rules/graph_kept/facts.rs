//! What the stores of one scope are judged by: what flows into backward passes, what starts afresh
//! or is bounded, who could still differentiate a list. Each part is found once, so that a long
//! scope costs no more than its length.

use std::collections::HashSet;

use ruff_python_ast::{Expr, Stmt};
use rustc_hash::FxHashMap;

use super::stores::Store;
use crate::model::expression::{
    any, holder_path, keyword, last_name, mentions, method, names_in, path,
};
use crate::model::{Binding, File, Graph, How, Loop, Scope, Value, backward_roots, is_backward};
use crate::rules::evidence::{into_backward, terms_of_backward};

/// How many statements before a store are looked at for what changes the value.
const FARTHEST: usize = 256;

/// What the stores of one scope are judged by, each part found once.
pub(super) struct Facts<'s, 'a> {
    pub(super) scope: &'s Scope<'a>,
    /// What flows into any backward pass of the scope.
    pub(super) needed: HashSet<String>,
    loops: FxHashMap<usize, LoopFacts>,
    /// Items that start a holder afresh, by loop and holder.
    resets: FxHashMap<(usize, String), Vec<usize>>,
    bounded: FxHashMap<String, bool>,
    /// Whether functions of this file return a loss on which they have run `backward`, by their
    /// scope.
    spent: FxHashMap<usize, bool>,
    takers: Option<Takers<'a>>,
    /// What `inference` found out about the scope, and about holders in loops.
    pub(super) only_infers: Option<bool>,
    pub(super) made_before: FxHashMap<(usize, String), bool>,
}

/// What happens in one loop.
pub(super) struct LoopFacts {
    /// What flows into its backward passes, and of that the terms and the roots.
    pub(super) flows: HashSet<String>,
    pub(super) terms: HashSet<String>,
    pub(super) roots: HashSet<String>,
    /// Holders that are emptied in it.
    emptied: HashSet<String>,
}

impl<'s, 'a> Facts<'s, 'a> {
    pub(super) fn new(scope: &'s Scope<'a>) -> Facts<'s, 'a> {
        Facts {
            scope,
            needed: into_backward(scope, 0..scope.items.len()),
            loops: FxHashMap::default(),
            resets: FxHashMap::default(),
            bounded: FxHashMap::default(),
            spent: FxHashMap::default(),
            takers: None,
            only_infers: None,
            made_before: FxHashMap::default(),
        }
    }

    pub(super) fn facts_of(&mut self, around: &Loop<'_>) -> &LoopFacts {
        let scope = self.scope;
        self.loops.entry(around.number).or_insert_with(|| {
            let calls = || scope.calls_in(around.body()).map(|(_, call)| call);
            let emptied = calls().filter_map(|call| match method(call) {
                Some((receiver, "clear" | "popleft" | "pop")) => holder_path(receiver),
                _ => None,
            });
            LoopFacts {
                flows: into_backward(scope, around.body()),
                terms: terms_of_backward(scope, around.body()),
                roots: calls().filter(|call| is_backward(call)).flat_map(backward_roots).collect(),
                emptied: emptied.collect(),
            }
        })
    }

    /// Whether the holder starts afresh in each iteration.
    pub(super) fn is_reset(&mut self, store: &Store<'_>, around: &Loop<'_>) -> bool {
        let root = store.holder.split('.').next().unwrap_or_default();
        if around.targets.iter().any(|target| target == root)
            || self.facts_of(around).emptied.contains(&store.holder)
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
    pub(super) fn is_bounded(&mut self, store: &Store<'_>) -> bool {
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

    /// The name got another value between the backward pass and the store, so that what is stored
    /// need not be what the pass started from.
    pub(super) fn is_bound_after_backward(&self, store: &Store<'_>, around: &Loop<'_>) -> bool {
        let scope = self.scope;
        let next = scope.backwards.partition_point(|node| scope.nodes[*node].item < store.item);
        let pass = scope.backwards[..next].last().map(|node| scope.nodes[*node].item);
        let Some(pass) = pass.filter(|pass| around.contains(*pass)) else { return false };
        let bound = |name: String| scope.latest(&name, store.item).is_some_and(|b| b.item > pass);
        match store.value {
            Expr::BinOp(binary) => {
                [&binary.left, &binary.right].iter().any(|side| path(side).is_some_and(bound))
            }
            other => path(other).is_some_and(bound),
        }
    }

    /// `output["loss"] = output["loss"].detach()` before `outputs.append(output)`: what is stored
    /// was taken off its graph piece by piece.
    pub(super) fn is_detached_in_place(&self, store: &Store<'_>, around: &Loop<'_>) -> bool {
        let Some(name) = path(store.value) else { return false };
        let first = store.item.saturating_sub(FARTHEST).max(around.item + 1);
        (first..store.item).any(|item| {
            let Stmt::Assign(assign) = self.scope.items[item].stmt else { return false };
            let of_it = |target: &Expr| {
                target.is_subscript_expr() && holder_path(target).as_ref() == Some(&name)
            };
            let off =
                |e: &Expr| matches!(last_name(e), Some("item" | "detach" | "tolist" | "data"));
            assign.targets.iter().any(of_it) && any(&assign.value, &mut |e| off(e))
        })
    }

    /// The function of this file that made the value and returned it after its own `backward()`.
    pub(super) fn spent_by(
        &mut self,
        file: &File<'a>,
        store: &Store<'_>,
        around: &Loop<'_>,
    ) -> Option<&'a str> {
        let scope = self.scope;
        let made = match path(store.value) {
            Some(name) => {
                scope
                    .latest(&name, store.item)
                    .filter(|made| made.how == How::Assign && around.contains(made.item))?
                    .expr?
            }
            None => store.value,
        };
        let function = file.called(scope, made.as_call_expr()?)?;
        let spent = *self
            .spent
            .entry(function.number)
            .or_insert_with(|| returns_spent_loss(file, function));
        spent.then(|| function.name())
    }

    /// Nothing takes the holder elsewhere, where it could still be differentiated: it is at most
    /// printed, counted or plotted.
    pub(super) fn is_left_alone(&mut self, holder: &str, around: &Loop<'_>) -> bool {
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

/// Whether everything that a function returns is a loss on which it has run `backward`, as it was
/// then.
fn returns_spent_loss<'a>(file: &File<'a>, function: &Scope<'a>) -> bool {
    let spent = |item: usize, value: &Expr| {
        // A loss that is scaled for the report is still the loss.
        let scaled = match value {
            Expr::BinOp(binary) => &binary.left,
            other => other,
        };
        let Some(name) = path(scaled) else { return value.is_number_literal_expr() };
        let passes = function.backwards.iter().map(|node| &function.nodes[*node]);
        let mut spending = passes.filter(|node| {
            let call = node.expr.as_call_expr();
            call.is_some_and(|call| backward_roots(call).contains(&name))
        });
        let made = function.latest(&name, item);
        let kept = file.value_at(function, &name, item);
        spending.any(|node| made.is_some_and(|made| made.item < node.item))
            && kept.tensor().is_none_or(|tensor| tensor.graph != Graph::No)
            && kept != Value::Plain
    };
    let mut returns =
        function.items.iter().enumerate().filter_map(|(item, entry)| {
            Some((item, entry.stmt.as_return_stmt()?.value.as_deref()?))
        });
    let any_loss = returns.clone().any(|(_, value)| !value.is_number_literal_expr());
    any_loss && returns.all(|(item, value)| spent(item, value))
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
