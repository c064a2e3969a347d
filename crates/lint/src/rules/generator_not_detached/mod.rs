//! `generator-not-detached`: the loss that trains one module runs back through another whose
//! gradients are then thrown away: a discriminator's loss on what the generator made, without
//! `detach()`. Silent where the other module's optimizer steps before its gradients are cleared,
//! where anything on the way is unknown, and where nothing shows what the optimizers train.

use std::ops::Range;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;
use rustc_hash::FxHashSet;

use self::owners::{Owners, UNSEEN};
use super::{Check, Rule};
use crate::model::expression::{any, arguments, is_or_under, last_name, method, path, paths};
use crate::model::{File, Grad, How, Scope, Value, backward_roots, is_optimizer_step};

mod owners;

pub(crate) static RULE: Rule = Rule {
    name: "generator-not-detached",
    code: "PLM037",
    summary: "A discriminator's backward pass runs through the generator for nothing",
    pedantic: false,
    page: include_str!("../../../pages/generator-not-detached.md"),
    check,
};

/// Names and calls that are followed from a loss to the generator.
const FARTHEST: u32 = 40;
/// How many statements after a pass its step is looked for, and how many later passes are asked
/// whether they share its graph: without a bound a long file would take the square of its length.
const MOST_ITEMS: usize = 256;
const MOST_PASSES: usize = 32;

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    if !file.calls_any("backward") || !file.calls_any("step") {
        return;
    }
    let owners = Owners::new(file);
    for scope in file.scopes.iter().filter(|scope| scope.has_backward) {
        let mut asking: Option<Vec<&ExprCall>> = None;
        for node in &scope.backwards {
            let pass = scope.nodes[*node].item;
            let Some(call) = scope.nodes[*node].expr.as_call_expr() else { continue };
            let Some(found) = judge(file, scope, &owners, pass, call) else { continue };
            let asking = asking.get_or_insert_with(|| asking_calls(scope));
            if !asking.iter().any(|call| asks_for_gradients(call, &found)) {
                report(check, &found, call);
            }
        }
    }
}

/// A pass of one module's loss through another.
struct Found<'a> {
    trained: String,
    /// The module that is passed for nothing, and its call.
    other: String,
    made: &'a ExprCall,
    /// What is handed to the trained module.
    handed: &'a Expr,
    optimizer: String,
}

fn report<'a>(check: &mut Check<'a, '_>, found: &Found<'a>, pass: &ExprCall) {
    let Found { trained, other, optimizer, .. } = found;
    let (text, line) = (check.quote(found.handed), check.line(pass));
    let made = match check.line(found.made) {
        at if at == check.line(found.handed) => String::new(),
        at => format!(" (line {at})"),
    };
    let text = if text.len() > 40 { format!("what `{other}` made") } else { format!("`{text}`") };
    check.report(
        found.handed.range(),
        format!(
            "{text} goes into `{trained}` with the graph of `{other}`{made}: the backward pass on line {line} keeps \
             and runs through all of `{other}`, whose gradients are cleared unused (relied on: `{optimizer}` \
             steps only `{trained}`)"
        ),
        format!("give `{trained}` the output without its graph: `.detach()`"),
    );
}

fn judge<'a>(
    file: &File<'a>,
    scope: &Scope<'a>,
    owners: &Owners,
    pass: usize,
    call: &'a ExprCall,
) -> Option<Found<'a>> {
    let end = scope.innermost_loop(pass).map_or(scope.items.len(), |around| around.end);
    let (optimizer, trained) =
        scope.calls_in(pass + 1..end.min(pass + MOST_ITEMS)).find_map(|(node, call)| {
            let optimizer = stepped(call)?;
            // One that is skipped in some iterations still trains what it trains.
            (!scope.exclusive(node.item, pass)).then(|| {
                let trained = owners.trained_by(file, scope, &optimizer);
                (optimizer, trained)
            })
        })?;
    let [trained] = &trained?[..] else { return None };
    let reached = Seeker::reached(file, scope, owners, trained, pass, call);
    let (other, made, handed) = reached.first()?.clone();
    // What a later pass uses too cannot be taken off here.
    let next = scope.backwards.partition_point(|node| scope.nodes[*node].item <= pass);
    let later = scope.backwards[next..].iter().take(MOST_PASSES).map(|node| &scope.nodes[*node]);
    let shared = later.filter_map(|node| Some((node.item, node.expr.as_call_expr()?))).any(
        |(item, call)| {
            let again = Seeker::reached(file, scope, owners, trained, item, call);
            again.iter().any(|(_, _, other)| other.range() == handed.range())
        },
    );
    let found = Found { trained: trained.clone(), other, made, handed, optimizer };
    let wanted = shared
        || goes_elsewhere(file, scope, &found, pass)
        || is_stepped_first(file, scope, owners, pass, &found.other);
    (!wanted).then_some(found)
}

/// The optimizer that a call steps, alone or through a scaler.
fn stepped(call: &ExprCall) -> Option<String> {
    let (receiver, "step") = method(call)? else { return None };
    match call.arguments.args.first().and_then(path) {
        Some(optimizer) => Some(optimizer),
        None => path(receiver),
    }
}

/// Whether an optimizer of the module steps after the pass before its gradients are cleared, or
/// nothing shows that they are.
fn is_stepped_first<'a>(
    file: &File<'a>,
    scope: &Scope<'a>,
    owners: &Owners,
    pass: usize,
    module: &str,
) -> bool {
    let trains = |optimizer: &str, unseen: bool| {
        let trained = owners.trained_by(file, scope, optimizer);
        trained.is_some_and(|all| all.iter().any(|m| m == module || unseen && m == UNSEEN))
    };
    let steps = |call: &ExprCall| match stepped(call) {
        Some(optimizer) if owners.trained_by(file, scope, &optimizer).is_some() => {
            trains(&optimizer, true)
        }
        // One that is not known may train anything.
        _ => is_optimizer_step(call),
    };
    let turn = scope.loops_of(pass).last().map_or(0..scope.items.len(), |around| around.body());
    let event = |items: Range<usize>| {
        scope.calls_in(items).find_map(|(_, call)| {
            let name = last_name(&call.func)?;
            if name == "step" {
                return steps(call).then_some(true);
            }
            if !name.contains("zero_grad") && !name.contains("reset_grad") {
                return None;
            }
            let cleared = method(call).and_then(|(receiver, _)| path(receiver));
            let clears = cleared.is_none_or(|cleared| {
                cleared == module || cleared == "self" || trains(&cleared, false)
            });
            clears.then_some(false)
        })
    };
    let next = event(pass + 1..turn.end).or_else(|| event(turn.start..pass));
    match next {
        Some(stepped) => stepped,
        // Another function trains it; it has to clear before.
        None => !file.calls_of("zero_grad").any(|(other, _, call)| {
            let cleared = method(call).and_then(|(receiver, _)| path(receiver));
            other.number != scope.number
                && cleared.is_some_and(|cleared| {
                    cleared == module
                        || owners
                            .trained_by(file, other, &cleared)
                            .is_some_and(|all| all.iter().any(|m| m == module))
                })
        }),
    }
}

/// What was made also goes, with its graph, into a function that is not known, such as a gradient
/// penalty that needs it.
fn goes_elsewhere<'a>(file: &File<'a>, scope: &Scope<'a>, found: &Found<'a>, pass: usize) -> bool {
    let Some(made) = path(found.handed) else { return false };
    let bound = scope.latest(&made, pass).map_or(0, |bound| bound.item);
    scope.calls_in(bound + 1..pass).any(|(node, call)| {
        let stmt = scope.items[node.item].stmt;
        let known = path(&call.func).is_some_and(|callee| callee == found.trained)
            || file.callee(call).is_some_and(|full| full.starts_with("torch."))
            || file.infer(scope, &call.func, node.item) == Value::Criterion;
        let given = || arguments(call).any(|given| path(given).as_ref() == Some(&made));
        !known && (stmt.is_assign_stmt() || stmt.is_aug_assign_stmt()) && given()
    })
}

/// Words in the names of functions that switch the gradients of a module.
const SWITCHES: &[&str] = &["requires_grad", "toggle", "freeze"];

fn is_switch(name: &str) -> bool {
    SWITCHES.iter().any(|word| name.contains(word))
}

/// The calls of a scope that may ask for gradients or switch them.
fn asking_calls<'a>(scope: &Scope<'a>) -> Vec<&'a ExprCall> {
    let asks = |name: &str| {
        is_switch(name) || matches!(name, "grad" | "detach_" | "retain_grad" | "register_hook")
    };
    let calls = scope.calls().map(|(_, call)| call);
    calls.filter(|call| last_name(&call.func).is_some_and(asks)).collect()
}

/// Somebody differentiates with respect to what was made, or switches the module's gradients.
fn asks_for_gradients(call: &ExprCall, found: &Found<'_>) -> bool {
    let made = path(found.handed);
    let name = last_name(&call.func).unwrap_or_default();
    let reads = |name: &str| arguments(call).flat_map(paths).any(|p| is_or_under(&p, name));
    let receiver = method(call).and_then(|(receiver, _)| path(receiver));
    let of_receiver =
        receiver.is_some_and(|receiver| receiver == found.other || Some(receiver) == made);
    match name {
        "grad" => made.as_deref().is_some_and(reads),
        name if is_switch(name) => reads(&found.other) || of_receiver,
        _ => of_receiver,
    }
}

/// Follows a loss back to calls of other modules through the module that is trained.
struct Seeker<'f, 'a> {
    file: &'f File<'a>,
    scope: &'f Scope<'a>,
    owners: &'f Owners,
    trained: &'f str,
    /// Bindings that were followed, each once, by their item and name.
    seen: FxHashSet<(usize, String)>,
    found: Vec<Reached<'a>>,
}

/// The other module, its call, and what was handed to the trained module.
type Reached<'a> = (String, &'a ExprCall, &'a Expr);

impl<'f, 'a> Seeker<'f, 'a> {
    /// What the loss of a backward pass reaches.
    fn reached(
        file: &'f File<'a>,
        scope: &'f Scope<'a>,
        owners: &'f Owners,
        trained: &'f str,
        item: usize,
        pass: &ExprCall,
    ) -> Vec<Reached<'a>> {
        let (seen, found) = (FxHashSet::default(), Vec::new());
        let mut seeker = Seeker { file, scope, owners, trained, seen, found };
        for root in backward_roots(pass) {
            seeker.follow(&root, item, None, 0);
        }
        seeker.found
    }

    /// What a name was bound to before an item. `handed` is the argument of the trained module that
    /// is being followed.
    fn follow(&mut self, name: &str, item: usize, handed: Option<&'a Expr>, depth: u32) {
        let scope = self.scope;
        let Some(bound) = scope.latest(name, item) else { return };
        if self.file.grad(scope, bound.item) == Grad::Off
            || !self.seen.insert((bound.item, name.to_string()))
        {
            return;
        }
        if let (How::Assign | How::Unpack | How::Augment, Some(expr)) = (bound.how, bound.expr) {
            self.seek(expr, bound.item, handed, depth + 1);
        }
        if bound.how == How::Augment {
            self.follow(name, bound.item, handed, depth + 1);
        }
    }

    fn seek(&mut self, expr: &'a Expr, item: usize, handed: Option<&'a Expr>, depth: u32) {
        if depth > FARTHEST {
            return;
        }
        let parts: Vec<&'a Expr> = match expr {
            Expr::Name(_) | Expr::Attribute(_) => {
                if let Some(name) = path(expr) {
                    self.follow(&name, item, handed, depth + 1);
                }
                return;
            }
            Expr::BinOp(binary) => vec![&binary.left, &binary.right],
            Expr::UnaryOp(unary) => vec![&unary.operand],
            Expr::Subscript(subscript) => vec![&subscript.value],
            Expr::Tuple(tuple) => tuple.elts.iter().collect(),
            Expr::List(list) => list.elts.iter().collect(),
            Expr::Call(call) => return self.seek_call(call, item, handed, depth),
            _ => return,
        };
        for part in parts {
            self.seek(part, item, handed, depth + 1);
        }
    }

    fn seek_call(&mut self, call: &'a ExprCall, item: usize, handed: Option<&'a Expr>, depth: u32) {
        let callee = match method(call) {
            Some((module, "forward")) => path(module),
            _ => path(&call.func),
        };
        if let Some(callee) = callee {
            if callee == self.trained {
                if !self.takes_off(&callee, item) {
                    for given in arguments(call) {
                        self.seek(given, item, Some(given), depth + 1);
                    }
                }
                return;
            }
            if self.owners.is_module(self.file, self.scope, &callee) {
                if let Some(handed) = handed
                    && !self.takes_off(&callee, item)
                    && !self.file.frozen.contains(&callee)
                {
                    self.found.push((callee, call, handed));
                }
                return;
            }
        }
        let Some(name) = last_name(&call.func).filter(|name| !stops(name)) else { return };
        let full = self.file.callee(call).unwrap_or_default();
        let known = full.starts_with("torch.")
            || self.file.infer(self.scope, &call.func, item) == Value::Criterion
            || handed.is_none() && is_named_for_loss(name);
        if known {
            for given in arguments(call) {
                self.seek(given, item, handed, depth + 1);
            }
        } else if let Some((receiver, name)) = method(call)
            && keeps_graph(name)
        {
            self.seek(receiver, item, handed, depth + 1);
        }
    }

    /// A module of this file that detaches or switches autograd off inside.
    fn takes_off(&self, module: &str, item: usize) -> bool {
        let Value::Module(known) = self.file.value_at(self.scope, module, item) else {
            return false;
        };
        let Some(class) = known.class else { return false };
        let methods = self.file.classes[class].methods.iter().map(|m| &self.file.scopes[*m]);
        methods.filter(|method| method.name() != "__init__").any(|method| {
            let off = |e: &Expr| matches!(last_name(e), Some("detach" | "no_grad" | "data"));
            method.nodes.iter().any(|node| any(node.expr, &mut |e| off(e)))
        })
    }
}

/// Functions whose result has no graph, whatever goes in.
fn stops(name: &str) -> bool {
    name.ends_with("_like")
        || name.starts_with("new_")
        || matches!(
            name,
            "detach"
                | "item"
                | "numpy"
                | "size"
                | "argmax"
                | "sign"
                | "round"
                | "tensor"
                | "len"
                | "Variable"
                | "bernoulli"
                | "multinomial"
                | "checkpoint"
        )
}

/// A function that is called for the loss of the trained module has to keep its graph.
fn is_named_for_loss(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["loss", "criterion", "bce", "mse", "hinge"].iter().any(|word| name.contains(word))
}

/// Methods of tensors that keep the graph.
fn keeps_graph(name: &str) -> bool {
    matches!(
        name,
        "view"
            | "reshape"
            | "squeeze"
            | "unsqueeze"
            | "flatten"
            | "mean"
            | "sum"
            | "log"
            | "neg"
            | "to"
            | "cuda"
            | "float"
            | "half"
            | "clone"
            | "contiguous"
            | "sigmoid"
            | "exp"
            | "pow"
            | "mul"
            | "add"
            | "div"
            | "sub"
            | "abs"
            | "clamp"
            | "expand"
            | "permute"
            | "transpose"
            | "repeat"
            | "scale"
            | "relu"
            | "tanh"
            | "square"
            | "type"
    )
}
