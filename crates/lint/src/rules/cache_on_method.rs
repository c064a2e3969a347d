//! `cache-on-method`: `lru_cache` or `cache` on a method of a module or dataset, or on a function
//! of tensors or modules. The cache holds `self` and every argument until the process ends or the
//! entry is pushed out.

use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::model::expression::{integer, keyword};

pub(crate) static RULE: Rule = Rule {
    name: "cache-on-method",
    code: "PLM024",
    summary: "A memoised method keeps tensors or its object alive",
    pedantic: false,
    page: include_str!("../../pages/cache-on-method.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        let Some(function) = scope.function() else { continue };
        let Some(decorator) =
            function.decorator_list.iter().map(|d| &d.expression).find(|d| is_cache(check, d))
        else {
            continue;
        };
        let parameters: Vec<&str> = function
            .parameters
            .iter_non_variadic_params()
            .map(|p| p.parameter.name.as_str())
            .collect();
        let method_of = scope.class.filter(|_| parameters.first() == Some(&"self"));
        let holds = method_of.filter(|class| {
            let class = &file.classes[*class];
            class.is_module || class.is_dataset
        });
        let text = check.quote(decorator);
        if let Some(class) = holds {
            let name = file.classes[class].name();
            check.report(
                decorator.range(),
                format!(
                    "`{text}` keeps `self` as part of each key: a `{name}` and its tensors stay alive as long as \
                     the cache, after the last other reference is gone"
                ),
                "keep a cache on the object (a dict in `__init__`), or use `functools.cached_property`",
            );
        } else if let Some(module) = parameter_of(check, function, "torch.nn.Module") {
            check.report(
                decorator.range(),
                format!(
                    "`{text}` keeps every module passed as `{module}` alive with its parameters, after the last \
                     other reference is gone (relied on: its annotation)"
                ),
                "compute it anew, or keep the result with the module",
            );
        } else if let Some(tensor) = parameter_of(check, function, "torch.Tensor") {
            check.report(
                decorator.range(),
                format!(
                    "`{text}` keeps every tensor passed as `{tensor}` alive, and never finds one again: tensors are \
                     compared by identity (relied on: its annotation)"
                ),
                "cache by something small, such as a size or a name",
            );
        }
    }
}

/// `functools.lru_cache`, `functools.cache`; a bound of 1 holds one object at most.
fn is_cache(check: &Check<'_, '_>, decorator: &Expr) -> bool {
    let (callee, call) = match decorator {
        Expr::Call(call) => (&*call.func, Some(call)),
        other => (other, None),
    };
    let known = matches!(
        check.file.qualified(callee).as_deref(),
        Some("functools.lru_cache" | "functools.cache")
    );
    let size =
        call.and_then(|call| call.arguments.args.first().or_else(|| keyword(call, "maxsize")));
    known && size.and_then(integer).is_none_or(|size| size > 1)
}

/// The first parameter that is annotated with this type.
fn parameter_of<'a>(
    check: &Check<'_, '_>,
    function: &'a StmtFunctionDef,
    wanted: &str,
) -> Option<&'a str> {
    function.parameters.iter_non_variadic_params().find_map(|parameter| {
        let annotation = parameter.parameter.annotation.as_deref()?;
        let full = check.file.qualified(annotation)?;
        (full == wanted).then_some(parameter.parameter.name.as_str())
    })
}
