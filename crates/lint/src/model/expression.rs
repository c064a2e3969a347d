//! Small questions about one expression, asked without any context: its dotted path, its arguments,
//! its constants.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr};
use ruff_python_ast::{Expr, ExprCall, Number};

/// `a.b.c` for names and attributes of names; nothing else has a path.
pub(crate) fn path(expr: &Expr) -> Option<String> {
    // The length first: one allocation for the whole path, and none for what has no path.
    fn length(expr: &Expr) -> Option<usize> {
        match expr {
            Expr::Name(name) => Some(name.id.len()),
            Expr::Attribute(attribute) => {
                Some(length(&attribute.value)? + 1 + attribute.attr.len())
            }
            _ => None,
        }
    }
    fn write(expr: &Expr, path: &mut String) {
        match expr {
            Expr::Name(name) => path.push_str(&name.id),
            Expr::Attribute(attribute) => {
                write(&attribute.value, path);
                path.push('.');
                path.push_str(&attribute.attr);
            }
            _ => {}
        }
    }
    let mut path = String::with_capacity(length(expr)?);
    write(expr, &mut path);
    Some(path)
}

/// The path of what holds the element: `history` for `history["loss"][i]`.
pub(crate) fn holder_path(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Subscript(subscript) => holder_path(&subscript.value),
        _ => path(expr),
    }
}

/// `c` of `a.b.c`.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(&name.id),
        Expr::Attribute(attribute) => Some(&attribute.attr),
        _ => None,
    }
}

/// The receiver and the name of a method call.
pub(crate) fn method(call: &ExprCall) -> Option<(&Expr, &str)> {
    let attribute = call.func.as_attribute_expr()?;
    Some((&attribute.value, &attribute.attr))
}

/// The receiver, if the call is of this method.
pub(crate) fn receiver<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    method(call).filter(|(_, called)| *called == name).map(|(receiver, _)| receiver)
}

pub(crate) fn keyword<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    call.arguments.find_keyword(name).map(|keyword| &keyword.value)
}

/// `f(**options)` or `f(*arguments)`: what is passed cannot be seen.
pub(crate) fn passes_unseen(call: &ExprCall) -> bool {
    call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none())
        || call.arguments.args.iter().any(Expr::is_starred_expr)
}

/// Positional and keyword values in turn.
pub(crate) fn arguments(call: &ExprCall) -> impl Iterator<Item = &Expr> {
    call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|keyword| &keyword.value))
}

pub(crate) fn is_true(expr: &Expr) -> bool {
    expr.as_boolean_literal_expr().is_some_and(|literal| literal.value)
}

pub(crate) fn is_false(expr: &Expr) -> bool {
    expr.as_boolean_literal_expr().is_some_and(|literal| !literal.value)
}

pub(crate) fn string(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|literal| literal.value.to_str())
}

pub(crate) fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(literal) => match &literal.value {
            Number::Int(int) => int.as_i64(),
            _ => None,
        },
        Expr::UnaryOp(unary) if unary.op == ruff_python_ast::UnaryOp::USub => {
            integer(&unary.operand).map(|value| -value)
        }
        _ => None,
    }
}

/// Every path read anywhere inside the expression: whole paths (`self.model`) and not their parts.
pub(crate) fn paths(expr: &Expr) -> Vec<String> {
    struct Paths(Vec<String>);
    impl<'a> SourceOrderVisitor<'a> for Paths {
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                // Of `x.sum()` both the method's path and what it is called on.
                Expr::Call(call) if call.func.is_attribute_expr() => {
                    self.0.extend(path(&call.func));
                    if let Some((receiver, _)) = method(call) {
                        self.visit_expr(receiver);
                    }
                    self.visit_arguments(&call.arguments);
                }
                _ => match path(expr) {
                    Some(path) => self.0.push(path),
                    None => walk_expr(self, expr),
                },
            }
        }
    }
    let mut paths = Paths(Vec::new());
    paths.visit_expr(expr);
    paths.0
}

/// Whether the path, or something that hangs on it (`x.shape` for `x`), is read inside the
/// expression.
pub(crate) fn mentions(expr: &Expr, wanted: &str) -> bool {
    paths(expr).iter().any(|path| is_or_under(path, wanted))
}

/// `x.y` is under `x`.
pub(crate) fn is_or_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Every plain name inside the expression, in source order.
pub(crate) fn names_in<'a>(expr: &'a Expr, found: &mut Vec<&'a str>) {
    struct Names<'a, 'f>(&'f mut Vec<&'a str>);
    impl<'a> SourceOrderVisitor<'a> for Names<'a, '_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                Expr::Name(name) => self.0.push(&name.id),
                _ => walk_expr(self, expr),
            }
        }
    }
    Names(found).visit_expr(expr);
}

/// Whether any expression inside, itself included, answers.
pub(crate) fn any(expr: &Expr, test: &mut dyn FnMut(&Expr) -> bool) -> bool {
    struct Any<'t> {
        test: &'t mut dyn FnMut(&Expr) -> bool,
        found: bool,
    }
    impl<'a> SourceOrderVisitor<'a> for Any<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.found = self.found || (self.test)(expr);
            if !self.found {
                walk_expr(self, expr);
            }
        }
    }
    let mut any = Any { test, found: false };
    any.visit_expr(expr);
    any.found
}

/// Names that an assignment target binds: `a`, `self.b`, the parts of tuples. Elements (`a[0]`)
/// bind nothing.
pub(crate) fn targets(expr: &Expr) -> Vec<String> {
    match expr {
        Expr::Tuple(tuple) => tuple.elts.iter().flat_map(targets).collect(),
        Expr::List(list) => list.elts.iter().flat_map(targets).collect(),
        Expr::Starred(starred) => targets(&starred.value),
        _ => path(expr).into_iter().collect(),
    }
}
