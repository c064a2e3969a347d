//! `retry-inside-except`: what ran out of memory is run again inside the `except` block. Until the
//! block ends the exception keeps the frames of the failed call, and they keep their tensors.
//! Silent where the block lets go of the traceback, where the second try runs on the host, and
//! where it cannot be seen that the same work runs again.

use std::ops::Range;

use ruff_python_ast::{CmpOp, ExceptHandler, ExceptHandlerExceptHandler, Expr, ExprCall, StmtTry};
use ruff_text_size::{Ranged, TextRange};

use super::{Check, Rule};
use crate::model::expression::{any, last_name, method, path, string};
use crate::model::{File, How, Region, Scope, is_backward};

pub(crate) static RULE: Rule = Rule {
    name: "retry-inside-except",
    code: "PLM035",
    summary: "Out of memory is answered with a retry while the exception keeps the failed try alive",
    pedantic: false,
    page: include_str!("../../pages/retry-inside-except.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for entry in &scope.items {
            let Some(try_) = entry.stmt.as_try_stmt() else { continue };
            for ExceptHandler::ExceptHandler(handler) in &try_.handlers {
                check_handler(check, scope, try_, handler);
            }
        }
    }
}

fn check_handler<'a>(
    check: &mut Check<'a, '_>,
    scope: &Scope<'a>,
    try_: &'a StmtTry,
    handler: &'a ExceptHandlerExceptHandler,
) {
    let file = check.file;
    let block = items(scope, handler.range);
    let Some(caught) = caught(scope, handler, block.clone()) else { return };
    if lets_go(scope, block.clone()) {
        return;
    }
    let (Some(first), Some(last)) = (try_.body.first(), try_.body.last()) else { return };
    let tried = items(scope, TextRange::new(first.start(), last.end()));
    let again = scope.calls_in(block).find(|(node, call)| {
        caught.reaches(scope, node.item) && is_retry(file, scope, &tried, call, node.item)
    });
    let Some((_, call)) = again else { return };
    let (callee, line) = (check.quote(&*call.func), check.line(try_));
    check.report(
        call.range(),
        format!(
            "`{callee}` runs again inside the `except` block: until the block ends the exception keeps the frames \
             of the try that failed, and with them its tensors (relied on: the `try` on line {line} runs the \
             same, and the block is for out of memory)"
        ),
        "only note the failure in the block (`failed = True`), and retry after it",
    );
}

/// The items whose statements start in a range of the text.
fn items(scope: &Scope<'_>, range: TextRange) -> Range<usize> {
    let before = |end| scope.items.partition_point(|item| item.stmt.start() < end);
    before(range.start())..before(range.end())
}

/// How a handler tells that memory ran out.
enum Caught {
    /// By the exception's class.
    Class,
    /// By its text, asked in the `if` at this item.
    Text(usize),
}

impl Caught {
    /// Whether an item of the handler runs after memory ran out.
    fn reaches(&self, scope: &Scope<'_>, item: usize) -> bool {
        let Caught::Text(test) = self else { return true };
        let otherwise =
            |region| matches!(region, Region::Arm { branch, test: None } if branch == *test);
        item > *test && !scope.regions_of(item).any(otherwise)
    }
}

fn caught(
    scope: &Scope<'_>,
    handler: &ExceptHandlerExceptHandler,
    block: Range<usize>,
) -> Option<Caught> {
    let class = handler.type_.as_deref();
    if class.is_some_and(|class| any(class, &mut is_out_of_memory)) {
        return Some(Caught::Class);
    }
    let asks = |expr: &Expr| {
        expr.as_compare_expr().is_some_and(|compare| {
            matches!(compare.ops.first(), Some(CmpOp::In | CmpOp::NotIn))
                && string(&compare.left).is_some_and(|text| text.contains("out of memory"))
        })
    };
    let test = scope.nodes_in(block).iter().find(|node| asks(node.expr))?;
    Some(Caught::Text(test.item))
}

fn is_out_of_memory(expr: &Expr) -> bool {
    matches!(last_name(expr), Some("OutOfMemoryError" | "OOM_EXCEPTION"))
}

/// The block frees the frames itself, or goes on in the host's memory.
fn lets_go(scope: &Scope<'_>, block: Range<usize>) -> bool {
    scope.nodes_in(block).iter().any(|node| match node.expr {
        Expr::Attribute(attribute) => matches!(
            attribute.attr.as_str(),
            "__traceback__" | "with_traceback" | "clear_frames" | "cpu"
        ),
        Expr::StringLiteral(_) => string(node.expr) == Some("cpu"),
        _ => false,
    })
}

/// Whether a call of the handler does again what the `try` did: the function itself, or the same
/// module or function as there.
fn is_retry<'a>(
    file: &File<'a>,
    scope: &Scope<'a>,
    tried: &Range<usize>,
    call: &ExprCall,
    item: usize,
) -> bool {
    let function = file.called(scope, call);
    if function.is_some_and(|function| function.number == scope.number) {
        return true;
    }
    let Some(callee) = path(&call.func) else { return false };
    let before = scope
        .calls_in(tried.clone())
        .find(|(_, before)| path(&before.func).as_ref() == Some(&callee));
    let Some((before, _)) = before else { return false };
    let runs = |function: &Scope<'a>| {
        function.calls().any(|(node, call)| {
            is_backward(call) || file.is_module(function, &call.func, function.nodes[node].item)
        })
    };
    let through = match method(call) {
        Some((module, "forward" | "generate" | "encode" | "decode" | "sample")) => {
            file.is_module(scope, module, item)
        }
        _ => false,
    };
    let given = || {
        let is_given = scope.bindings_of(&callee).all(|binding| binding.how == How::Parameter);
        is_given
            && scope.bindings_of(&callee).next().is_some()
            && is_used(scope, item)
            && is_used(scope, before.item)
    };
    through
        || file.is_module(scope, &call.func, item)
        || function.is_some_and(runs)
        || function.is_none() && given()
}

/// Whether the statement does something with what the call yields, as one that only reports does
/// not.
fn is_used(scope: &Scope<'_>, item: usize) -> bool {
    let stmt = scope.items[item].stmt;
    stmt.is_assign_stmt() || stmt.is_return_stmt()
}
