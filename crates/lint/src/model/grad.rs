//! Whether autograd records at a place: `no_grad` and its like around it, decorators, callers in
//! the same file, and what a backward pass in the same function proves.

use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall, Stmt};
use rustc_hash::FxHashMap;

use super::expression::{arguments, is_false, keyword, method, path, paths, receiver};
use super::region::{Meaning, Region};
use super::scope::Scope;
use super::{File, Imports};

/// Up to two scopes that call a function, by the first scope of the function's name and how many
/// calls away they may be.
pub(super) type Callers = FxHashMap<(usize, u32), [Option<usize>; 2]>;

/// Whether operations are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grad {
    On,
    Off,
    /// It depends on the caller.
    Unknown,
}

/// `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`,
/// `torch.autograd.backward(...)`.
pub(crate) fn is_backward(call: &ExprCall) -> bool {
    match method(call) {
        Some((receiver, "backward")) => {
            // `super().backward(...)` and an autograd function's own are definitions, not passes.
            !matches!(receiver, Expr::Call(inner) if inner.func.as_name_expr().is_some_and(|n| n.id == "super"))
        }
        Some((_, "manual_backward")) => true,
        _ => false,
    }
}

/// What a backward pass starts from: the paths in its receiver and arguments.
pub(crate) fn backward_roots(call: &ExprCall) -> Vec<String> {
    let engines = ["accelerator", "fabric", "engine", "amp", "autograd", "scaler", "torch", "self"];
    let mut roots: Vec<String> = arguments(call).flat_map(paths).collect();
    if let Some((receiver, _)) = method(call) {
        let from_receiver = paths(receiver);
        let is_engine = |path: &String| {
            path.split('.').next_back().is_some_and(|name| {
                let name = name.to_ascii_lowercase();
                engines.iter().any(|engine| name == *engine || name.ends_with("scaler"))
            })
        };
        roots.extend(from_receiver.into_iter().filter(|path| !is_engine(path)));
    }
    // `scaler.scale(loss).backward()` reads as the path `scaler.scale` and the path `loss`.
    roots.retain(|root| !root.ends_with(".scale") && !root.ends_with(".scale_loss"));
    roots
}

/// What a `with` block means.
fn meaning(imports: &Imports, expr: &Expr) -> Meaning {
    let (callee, call) = match expr {
        Expr::Call(call) => (&*call.func, Some(call)),
        other => (other, None),
    };
    let full = imports.qualified(callee).unwrap_or_default();
    let name = super::expression::last_name(callee).unwrap_or_default();
    match name {
        "no_grad" => Meaning::GradOff,
        "inference_mode" => match call.and_then(|call| call.arguments.args.first()) {
            Some(mode) if is_false(mode) => Meaning::GradOn,
            Some(mode) if !super::expression::is_true(mode) => Meaning::GradUnknown,
            _ => Meaning::GradOff,
        },
        "enable_grad" => Meaning::GradOn,
        "set_grad_enabled" => match call.and_then(|call| call.arguments.args.first()) {
            Some(mode) if is_false(mode) => Meaning::GradOff,
            Some(mode) if super::expression::is_true(mode) => Meaning::GradOn,
            _ => Meaning::GradUnknown,
        },
        "autocast" if full.starts_with("torch.") || full.is_empty() => {
            let off = call.and_then(|call| keyword(call, "enabled")).is_some_and(is_false);
            if off { Meaning::AutocastOff } else { Meaning::Autocast }
        }
        // Wrappers that are named for what they do, which may be conditional.
        other if other.contains("no_grad") || other.contains("inference") => Meaning::GradUnknown,
        _ => Meaning::Other,
    }
}

/// Paths whose parameters are told not to require gradients.
pub(super) fn frozen(file: &File<'_>) -> HashSet<String> {
    let mut frozen = HashSet::new();
    for (_, _, call) in file.calls_of("requires_grad_") {
        let off = call.arguments.args.first().or_else(|| keyword(call, "requires_grad"));
        if let (Some(true), Some(module)) = (off.map(is_false), receiver(call, "requires_grad_")) {
            frozen.extend(path(module));
        }
    }
    for scope in &file.scopes {
        for around in &scope.loops {
            let Some(Expr::Call(over)) = around.over else { continue };
            let Some(module) =
                receiver(over, "parameters").or_else(|| receiver(over, "named_parameters"))
            else {
                continue;
            };
            let freezes = around.body().any(|item| match scope.items[item].stmt {
                Stmt::Assign(assign) => {
                    let sets = |target: &Expr| {
                        target
                            .as_attribute_expr()
                            .is_some_and(|a| a.attr.as_str() == "requires_grad")
                    };
                    is_false(&assign.value) && assign.targets.iter().any(sets)
                }
                Stmt::Expr(expr) => expr
                    .value
                    .as_call_expr()
                    .is_some_and(|call| receiver(call, "requires_grad_").is_some()),
                _ => false,
            });
            if freezes {
                frozen.extend(path(module));
            }
        }
    }
    frozen
}

impl<'a> File<'a> {
    /// Notes the statements `torch.set_grad_enabled(...)` of each scope.
    pub(super) fn mark_switches(&mut self) {
        let found: Vec<(usize, usize, bool)> = self
            .calls_of("set_grad_enabled")
            .map(|(scope, node, call)| {
                let off = call.arguments.args.first().is_some_and(is_false);
                (scope.number, scope.nodes[node].item, off)
            })
            .collect();
        for (scope, item, off) in found {
            if self.scopes[scope].items[item].stmt.is_expr_stmt() {
                self.scopes[scope].switches.push((item, off));
            }
        }
    }

    pub(super) fn mark_regions(&mut self) {
        let imports = &self.imports;
        for scope in &mut self.scopes {
            for (region, _) in &mut scope.regions {
                if let Region::With { expr, meaning: found } = region {
                    *found = meaning(imports, expr);
                }
            }
            let decorators = scope.function().map(|f| &f.decorator_list[..]).unwrap_or_default();
            let meanings =
                decorators.iter().map(|decorator| meaning(imports, &decorator.expression));
            let of_grad =
                |meaning: &Meaning| matches!(meaning, Meaning::GradOff | Meaning::GradUnknown);
            scope.decorated = meanings.into_iter().find(of_grad).unwrap_or(Meaning::Other);
        }
    }

    /// Whether operations at an item are recorded, as far as this file can tell.
    pub(crate) fn grad(&self, scope: &Scope<'a>, item: usize) -> Grad {
        for region in scope.regions_of(item) {
            match region {
                Region::With { meaning: Meaning::GradOff, .. } => return Grad::Off,
                Region::With { meaning: Meaning::GradOn, .. } => return Grad::On,
                Region::With { meaning: Meaning::GradUnknown, .. } => return Grad::Unknown,
                _ => {}
            }
        }
        if self.switched_off_before(scope, item) {
            return Grad::Off;
        }
        if scope.function().is_none() {
            return if scope.is_module() { Grad::On } else { Grad::Unknown };
        }
        match scope.decorated {
            Meaning::GradOff => return Grad::Off,
            Meaning::GradUnknown => return Grad::Unknown,
            _ => {}
        }
        if self.runs_without_grad_by_framework(scope) {
            return Grad::Off;
        }
        if scope.has_backward { Grad::On } else { Grad::Unknown }
    }

    /// Whether some caller in this file calls the scope's function while nothing is recorded.
    pub(crate) fn called_without_grad(&self, scope: &Scope<'a>) -> bool {
        self.called_off(scope, 3)
    }

    fn called_off(&self, scope: &Scope<'a>, depth: u32) -> bool {
        let Some(function) = scope.function().filter(|_| depth > 0) else { return false };
        let name = function.name.as_str();
        let key = (self.function_names.get(name).copied().unwrap_or_default(), depth);
        let known = self.callers.borrow().get(&key).copied();
        let callers = known.unwrap_or_else(|| {
            let found = self.callers_off(name, depth);
            self.callers.borrow_mut().insert(key, found);
            found
        });
        // A function that calls itself proves nothing.
        callers.iter().flatten().any(|caller| *caller != scope.number)
    }

    /// Two scopes that call a function by this name while nothing is recorded; more make no
    /// difference.
    fn callers_off(&self, name: &str, depth: u32) -> [Option<usize>; 2] {
        let mut found = [None; 2];
        for (caller, node, _) in self.calls_of(name) {
            if found[0] == Some(caller.number) {
                continue;
            }
            if self.grad(caller, caller.nodes[node].item) == Grad::Off
                || self.called_off(caller, depth - 1)
            {
                match found[0] {
                    None => found[0] = Some(caller.number),
                    Some(_) => return [found[0], Some(caller.number)],
                }
            }
        }
        found
    }

    /// A statement `torch.set_grad_enabled(False)` earlier in the scope, or at the top of the file.
    fn switched_off_before(&self, scope: &Scope<'a>, item: usize) -> bool {
        let here = scope.switches.partition_point(|(at, _)| *at < item);
        let latest = match scope.switches[..here].last() {
            None if !scope.is_module() => self.scopes[0].switches.last(),
            latest => latest,
        };
        latest.is_some_and(|(_, off)| *off)
    }

    fn runs_without_grad_by_framework(&self, scope: &Scope<'a>) -> bool {
        const HOOKS: &[&str] =
            &["validation_step", "test_step", "predict_step", "on_validation_epoch_end"];
        let lightning = scope.class.is_some_and(|class| self.classes[class].is_lightning);
        lightning && HOOKS.contains(&scope.name())
    }
}
