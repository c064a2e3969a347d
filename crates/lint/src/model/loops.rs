//! Loops and what they are for. A loop is described by what it runs over and by what happens in it,
//! never by one name alone where something better is known.

use ruff_python_ast::{Expr, Stmt};

use super::expression::{holder_path, last_name, targets};
use super::{File, expression, grad, names};

#[derive(Debug)]
pub(crate) struct Loop<'a> {
    /// Its number in the scope.
    pub(crate) number: usize,
    /// The header's item.
    pub(crate) item: usize,
    /// One past the last item of the body.
    pub(crate) end: usize,
    pub(crate) stmt: &'a Stmt,
    /// Names that the header binds.
    pub(crate) targets: Vec<String>,
    /// What a `for` runs over, without `enumerate`, `tqdm` and the like.
    pub(crate) over: Option<&'a Expr>,
    /// The path of a data loader, or of several under keys, that it runs over.
    pub(crate) loader: Option<String>,
    pub(crate) has_backward: bool,
    pub(crate) has_step: bool,
}

impl<'a> Loop<'a> {
    pub(crate) fn new(number: usize, stmt: &'a Stmt, item: usize) -> Loop<'a> {
        let (over, targets) = match stmt {
            Stmt::For(for_) => (Some(unwrapped(&for_.iter)), targets(&for_.target)),
            _ => (None, Vec::new()),
        };
        let loader = over.and_then(holder_path).filter(|path| names::is_loader(path));
        Loop {
            number,
            item,
            end: item + 1,
            stmt,
            targets,
            over,
            loader,
            has_backward: false,
            has_step: false,
        }
    }

    /// The items of the body.
    pub(crate) fn body(&self) -> std::ops::Range<usize> {
        self.item + 1..self.end
    }

    pub(crate) fn contains(&self, item: usize) -> bool {
        self.body().contains(&item)
    }

    /// Whether it counts epochs or other long iterations, each of which holds a whole pass.
    pub(crate) fn is_outer_turn(&self) -> bool {
        let long = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["epoch", "fold", "trial", "round", "run", "seed", "experiment", "config"]
                .iter()
                .any(|word| name.contains(word))
        };
        self.targets.iter().any(|target| long(target))
            || self.over.and_then(last_name).is_some_and(long)
    }
}

/// What is really iterated: `loader` in `enumerate(tqdm(loader))`, `zip(loader, x)`,
/// `iter(loader)`.
fn unwrapped(expr: &Expr) -> &Expr {
    const WRAPPERS: &[&str] = &[
        "enumerate",
        "tqdm",
        "trange",
        "iter",
        "zip",
        "track",
        "progress_bar",
        "log_every",
        "islice",
        "cycle",
        "auto_tqdm",
        "notebook_tqdm",
        "prefetch",
    ];
    let Expr::Call(call) = expr else { return expr };
    if !last_name(&call.func).is_some_and(|name| WRAPPERS.contains(&name)) {
        return expr;
    }
    match call.arguments.args.first().or_else(|| expression::keyword(call, "iterable")) {
        Some(inner) => unwrapped(inner),
        None => expr,
    }
}

impl File<'_> {
    /// Marks which loops and scopes hold backward passes and optimizer steps.
    pub(super) fn describe_loops(&mut self) {
        for scope in &mut self.scopes {
            let reads = scope.nodes.iter().filter(|node| {
                matches!(node.expr, Expr::Attribute(attribute) if attribute.attr.as_str() == "grad")
            });
            scope.reads_grad = reads.map(|node| node.item).collect();
            let backward = |(number, call)| grad::is_backward(call).then_some(number);
            scope.backwards = scope.calls().filter_map(backward).collect();
        }
        let mut marks = Vec::new();
        for scope in &self.scopes {
            for (number, call) in scope.calls() {
                let backward = grad::is_backward(call) && !scope.in_lambda(number);
                let step = is_optimizer_step(call);
                if backward || step {
                    marks.push((scope.number, number, backward, step));
                }
            }
        }
        for (scope, node, backward, step) in marks {
            let scope = &mut self.scopes[scope];
            let item = scope.nodes[node].item;
            scope.has_backward |= backward;
            let around: Vec<usize> = scope.loops_of(item).map(|around| around.number).collect();
            for number in around {
                scope.loops[number].has_backward |= backward;
                scope.loops[number].has_step |= step;
            }
        }
    }
}

/// `optimizer.step()` or `scaler.step(optimizer)`, not a scheduler's or an environment's.
pub(crate) fn is_optimizer_step(call: &ruff_python_ast::ExprCall) -> bool {
    let Some(receiver) = expression::receiver(call, "step") else { return false };
    let Some(name) = expression::holder_path(receiver) else { return false };
    names::is_optimizer(&name) || names::is_scaler(&name)
}
