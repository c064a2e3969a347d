//! `eval-without-no-grad`: after `model.eval()` the model is called while autograd records, in a
//! loop or in a function that evaluates, by itself or through a function of this file. `eval()`
//! changes layers, not autograd. Silent if gradients are used, if parameters are frozen, or if a
//! caller in this file switches autograd off.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::evidence::calls_for_gradients;
use super::{Check, Rule};
use crate::model::expression::{holder_path, is_false, keyword, last_name, method, path};
use crate::model::{File, Grad, How, Loop, Meaning, Region, Scope, Value};

pub(crate) static RULE: Rule = Rule {
    name: "eval-without-no-grad",
    code: "PLM004",
    summary: "An evaluation records graphs that nobody uses",
    pedantic: false,
    page: include_str!("../../pages/eval-without-no-grad.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    let library_switch = ["set_grad_enabled", "_set_grad_enabled"].iter().any(|name| {
        file.calls_of(name).any(|(_, _, call)| call.arguments.args.first().is_some_and(is_false))
    });
    // Before version 0.4 inputs marked as volatile did what `no_grad` does now.
    if library_switch || check.source.text().contains("volatile=True") {
        return;
    }
    let trains = file.scopes.iter().any(|scope| scope.has_backward);
    let tests = is_test(check);
    let mut functions = Functions::new();
    for scope in &file.scopes {
        let modes = modes(scope);
        if !modes.values().flatten().any(|mode| mode.eval) {
            continue;
        }
        // A decorator that is named for inference may switch autograd off, and so may a switch.
        if scope.class.is_some_and(|class| file.classes[class].is_module)
            || scope.decorated == Meaning::GradUnknown
            || scope.calls().any(|(_, call)| last_name(&call.func) == Some("set_grad_enabled"))
        {
            continue;
        }
        let flags = flags(scope);
        let mut reported: HashSet<Option<usize>> = HashSet::new();
        let mut graph_wanted: HashMap<Option<usize>, bool> = HashMap::new();
        for (node, call) in scope.calls() {
            let item = scope.nodes[node].item;
            if scope.in_lambda(node) {
                continue;
            }
            let Some(pass) = pass(file, scope, call, item, &mut functions) else { continue };
            let Some(eval) = mode_before(scope, &modes, &pass.module, item) else { continue };
            let wanted = !tests && (trains || is_made_here(file, scope, &pass.module));
            let alone = wanted && trains && !is_hook(file, scope);
            let Some(place) = place(scope, item, wanted, alone) else { continue };
            let number = place.map(|around| around.number);
            if reported.contains(&number)
                || file.grad(scope, item) == Grad::Off
                || scope.regions_of(item).any(grad_unknown)
                || *graph_wanted
                    .entry(number)
                    .or_insert_with(|| uses_gradients(scope, &flags, place))
                || file.frozen.contains(&pass.module)
                || file.called_without_grad(scope)
            {
                continue;
            }
            reported.insert(number);
            report(check, scope, call, &pass, eval, place.is_some());
        }
    }
}

fn report(
    check: &mut Check<'_, '_>,
    scope: &Scope<'_>,
    call: &ExprCall,
    pass: &Pass<'_>,
    eval: usize,
    looped: bool,
) {
    let (mode, line) = (check.quote(scope.nodes[eval].expr), check.line(scope.nodes[eval].expr));
    let (called, module) = (if looped { " in a loop" } else { "" }, &pass.module);
    let through = match pass.through {
        Some(function) => format!(" through `{function}`"),
        None => String::new(),
    };
    let nothing = if looped { "no backward pass in the loop" } else { "no backward pass here" };
    check.report(
        call.range(),
        format!(
            "`{module}` is called{through}{called} after `{mode}` (line {line}) while autograd \
             records: every activation that a backward pass would need is kept until the output \
             is dropped (relied on: no `no_grad` or `inference_mode` around it, {nothing})"
        ),
        "put it under `with torch.no_grad():` or `torch.inference_mode()`",
    );
}

/// A call that runs a module.
struct Pass<'a> {
    /// The module's path in the calling scope.
    module: String,
    /// The function of this file in which the module is called.
    through: Option<&'a str>,
}

/// The module that a function of this file runs, by the function's scope.
type Functions = HashMap<usize, Option<String>>;

fn pass<'a>(
    file: &File<'a>,
    scope: &Scope<'a>,
    call: &ExprCall,
    item: usize,
    functions: &mut Functions,
) -> Option<Pass<'a>> {
    if let Some(module) = runs(file, scope, call, item) {
        return Some(Pass { module, through: None });
    }
    let called = file.called(scope, call).filter(|called| called.number != scope.number)?;
    let module = functions.entry(called.number).or_insert_with(|| run_by(file, called)).clone()?;
    let module = match module.starts_with("self.") {
        true => module,
        false => path(argument_for(called, call, &module)?)?,
    };
    Some(Pass { module, through: Some(called.name()) })
}

/// The module that a call runs: `model(x)`, `model.forward(x)`, `models["teacher"](x)`.
fn runs<'a>(file: &File<'a>, scope: &Scope<'a>, call: &ExprCall, item: usize) -> Option<String> {
    let module = match &*call.func {
        Expr::Attribute(attribute) if attribute.attr.as_str() == "forward" => &attribute.value,
        Expr::Subscript(subscript) => &subscript.value,
        other => other,
    };
    let path = path(module)?;
    file.is_module(scope, module, item).then_some(path)
}

/// The module that a function calls while autograd may record, if it wants no gradients itself: one
/// that it is given, or one that its object holds.
fn run_by<'a>(file: &File<'a>, function: &Scope<'a>) -> Option<String> {
    if function.has_backward
        || function.decorated == Meaning::GradUnknown
        || uses_gradients(function, &flags(function), None)
    {
        return None;
    }
    function.calls().find_map(|(node, call)| {
        let item = function.nodes[node].item;
        let module = runs(file, function, call, item)?;
        let records = file.grad(function, item) != Grad::Off
            && !function.regions_of(item).any(grad_unknown)
            && !function.in_lambda(node);
        records.then_some(module)
    })
}

/// What a call passes for a parameter of the function.
fn argument_for<'c>(called: &Scope<'_>, call: &'c ExprCall, name: &str) -> Option<&'c Expr> {
    let parameters = called.function()?.parameters.iter_non_variadic_params();
    let method = usize::from(call.func.is_attribute_expr());
    let place = parameters.map(|p| p.parameter.name.as_str()).position(|p| p == name)?;
    keyword(call, name).or_else(|| call.arguments.args.get(place.checked_sub(method)?))
}

/// Where the call repeats: in a loop over batches; in another loop, if its parameters want
/// gradients (`wanted`); or in a function that is named for evaluation, once, if that may be said
/// (`alone`).
fn place<'s, 'a>(
    scope: &'s Scope<'a>,
    item: usize,
    wanted: bool,
    alone: bool,
) -> Option<Option<&'s Loop<'a>>> {
    if let Some(around) = scope.loops_of(item).find(|around| around.loader.is_some()) {
        return Some(Some(around));
    }
    match scope.loops_of(item).find(|around| !around.is_outer_turn()) {
        Some(around) => wanted.then_some(Some(around)),
        None if scope.loops_of(item).next().is_some() => None,
        None => (alone && evaluates(scope.name())).then_some(None),
    }
}

/// A method that a library may call under `no_grad`: one without an underscore, of a class that
/// derives from one of another file.
fn is_hook(file: &File<'_>, scope: &Scope<'_>) -> bool {
    let foreign = scope.class.is_some_and(|class| file.derives_from_elsewhere(class));
    foreign && !scope.name().starts_with('_')
}

/// A name for a function that evaluates.
fn evaluates(name: &str) -> bool {
    ["eval", "valid", "infer", "predict"].iter().any(|word| name.contains(word))
        || name.split('_').any(|word| matches!(word, "val" | "test"))
}

/// A file of tests, where a single pass costs nothing.
fn is_test(check: &Check<'_, '_>) -> bool {
    let imports = &check.file.imports;
    let name = check.source.path().rsplit(['/', '\\']).next().unwrap_or_default();
    name.starts_with("test_")
        || ["pytest", "unittest"].iter().any(|name| imports.names_a_module(name))
}

/// The module is made in this scope or at the top of the file, so that its parameters are new.
fn is_made_here(file: &File<'_>, scope: &Scope<'_>, module: &str) -> bool {
    [scope, &file.scopes[0]].into_iter().flat_map(|scope| scope.bindings_of(module)).any(|made| {
        made.how == How::Assign
            && (matches!(&made.value, Value::Module(module) if module.certain)
                || made.expr.is_some_and(constructs))
    })
}

/// `Net(...)`, `Net(...).to(device)`: a class by the look of its name.
fn constructs(expr: &Expr) -> bool {
    let Some(call) = expr.as_call_expr() else { return false };
    match method(call) {
        Some((inner, "to" | "cuda" | "cpu" | "eval" | "float" | "half")) => constructs(inner),
        _ => last_name(&call.func).is_some_and(|name| name.starts_with(char::is_uppercase)),
    }
}

fn grad_unknown(region: Region<'_>) -> bool {
    matches!(region, Region::With { meaning: Meaning::GradUnknown, .. })
}

/// A call of `eval` or `train`.
struct Mode {
    item: usize,
    node: usize,
    eval: bool,
}

/// The calls of `eval` and `train` by module, in order.
type Modes = HashMap<String, Vec<Mode>>;

fn modes(scope: &Scope<'_>) -> Modes {
    let mut modes = Modes::new();
    for (node, call) in scope.calls() {
        let (receiver, eval) = match method(call) {
            Some((receiver, "eval")) => (receiver, true),
            Some((receiver, "train")) => {
                (receiver, call.arguments.args.first().is_some_and(is_false))
            }
            _ => continue,
        };
        if let Some(module) = holder_path(receiver) {
            modes.entry(module).or_default().push(Mode {
                item: scope.nodes[node].item,
                node,
                eval,
            });
        }
    }
    modes
}

/// The `eval()` in force at an item: the latest call of `eval` or `train` on the module is an
/// `eval`.
fn mode_before(scope: &Scope<'_>, modes: &Modes, module: &str, item: usize) -> Option<usize> {
    let calls = modes.get(module)?;
    let before = calls.partition_point(|mode| mode.item <= item);
    let latest = calls[..before].iter().rev().find(|mode| !scope.exclusive(mode.item, item))?;
    latest.eval.then_some(latest.node)
}

/// Items that read or set a `requires_grad`, in order.
fn flags(scope: &Scope<'_>) -> Vec<usize> {
    let is_flag = |expr: &Expr| {
        expr.as_attribute_expr().is_some_and(|attribute| attribute.attr.as_str() == "requires_grad")
    };
    scope.nodes.iter().filter(|node| is_flag(node.expr)).map(|node| node.item).collect()
}

/// A backward pass, gradients of inputs, or hooks: somebody wants the graph.
fn uses_gradients(scope: &Scope<'_>, flags: &[usize], around: Option<&Loop<'_>>) -> bool {
    let whole = 0..scope.items.len();
    let (inner, outer): (Range<usize>, Range<usize>) = match around {
        None => (whole.clone(), whole),
        Some(around) => {
            let outer = scope.loops_of(around.item).last().unwrap_or(around);
            // A loop over a loader is a pass of its own; another may be a part of a step.
            let step = match around.loader {
                Some(_) => around,
                None => {
                    let loops = scope.loops_of(around.item);
                    loops.filter(|outer| !outer.is_outer_turn()).last().unwrap_or(around)
                }
            };
            (step.item..step.end, outer.item..outer.end)
        }
    };
    let next = flags.partition_point(|item| *item < outer.start);
    calls_for_gradients(scope, inner) || flags.get(next).is_some_and(|item| *item < outer.end)
}
