//! Which modules an optimizer trains: by the `parameters()` that it was made with, anywhere in the
//! file where its name means the same, or, for optimizers that a function is given, by the usual
//! names of a generator's and a discriminator's.

use ruff_python_ast::{Expr, ExprCall};
use rustc_hash::FxHashMap;

use crate::model::expression::{method, path};
use crate::model::{File, How, Scope, Value};

/// Stands for modules that cannot be seen.
pub(super) const UNSEEN: &str = "?";

/// The optimizers of a file with the modules that they train.
pub(super) struct Owners {
    /// By the scope that makes the optimizer and its path; for attributes of `self` by the class.
    made: FxHashMap<(Place, String), Vec<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Scope(usize),
    Class(usize),
}

impl Owners {
    pub(super) fn new(file: &File<'_>) -> Owners {
        let mut made: FxHashMap<(Place, String), Vec<String>> = FxHashMap::default();
        for scope in &file.scopes {
            for binding in &scope.bindings {
                if !matches!(binding.how, How::Assign | How::Unpack)
                    || binding.value != Value::Optimizer
                {
                    continue;
                }
                let Some(call) = binding.expr.and_then(|expr| expr.as_call_expr()) else {
                    continue;
                };
                let place = place(scope, &binding.path);
                let modules = made.entry((place, binding.path.clone())).or_default();
                // Twice made with other modules: it trains the one or the other.
                modules.extend(trained(call));
                modules.sort();
                modules.dedup();
            }
        }
        Owners { made }
    }

    /// The modules that an optimizer trains, if that is known.
    pub(super) fn trained_by(
        &self,
        file: &File<'_>,
        scope: &Scope<'_>,
        optimizer: &str,
    ) -> Option<Vec<String>> {
        if let Some(modules) = self.find(file, scope, optimizer) {
            return Some(modules.clone()).filter(|modules| !modules.is_empty());
        }
        let player = player(optimizer).filter(|_| is_given(scope, optimizer))?;
        let called = scope.calls().filter_map(|(_, call)| path(&call.func));
        let mut modules: Vec<String> = called
            .filter(|name| is_given(scope, name) && self::player(name) == Some(player))
            .collect();
        modules.sort();
        modules.dedup();
        Some(modules).filter(|modules| !modules.is_empty())
    }

    /// Whether an optimizer of the file trains this module, so that it is one, or the function is
    /// given it under the name of a generator or discriminator.
    pub(super) fn is_module(&self, file: &File<'_>, scope: &Scope<'_>, module: &str) -> bool {
        let sees = |place: &Place| match place {
            Place::Scope(number) => ancestors(file, scope).any(|seen| seen.number == *number),
            Place::Class(number) => scope.class == Some(*number),
        };
        let trained = self
            .made
            .iter()
            .any(|((place, _), modules)| sees(place) && modules.iter().any(|m| m == module));
        trained || is_given(scope, module) && player(module).is_some()
    }

    fn find(&self, file: &File<'_>, scope: &Scope<'_>, optimizer: &str) -> Option<&Vec<String>> {
        let in_class = scope.class.filter(|_| optimizer.starts_with("self."));
        if let Some(class) = in_class {
            return self.made.get(&(Place::Class(class), optimizer.to_string()));
        }
        ancestors(file, scope)
            .find_map(|seen| self.made.get(&(Place::Scope(seen.number), optimizer.to_string())))
    }
}

fn place(scope: &Scope<'_>, path: &str) -> Place {
    match scope.class.filter(|_| path.starts_with("self.")) {
        Some(class) => Place::Class(class),
        None => Place::Scope(scope.number),
    }
}

/// The scope and those around it.
fn ancestors<'s, 'a>(
    file: &'s File<'a>,
    scope: &'s Scope<'a>,
) -> impl Iterator<Item = &'s Scope<'a>> {
    std::iter::successors(Some(scope), |scope| scope.parent.map(|(outer, _)| &file.scopes[outer]))
}

/// The modules whose `parameters()` go into an optimizer. One whose parameters cannot be seen
/// trains nothing that is known.
fn trained(call: &ExprCall) -> Vec<String> {
    let Some(first) = call.arguments.args.first() else { return Vec::new() };
    let mut found = Vec::new();
    collect(first, &mut found);
    found
}

fn collect(expr: &Expr, found: &mut Vec<String>) {
    match expr {
        Expr::Call(call) => match method(call) {
            Some((module, "parameters")) => found.extend(path(module)),
            _ => call.arguments.args.iter().for_each(|argument| collect(argument, found)),
        },
        Expr::BinOp(binary) => {
            collect(&binary.left, found);
            collect(&binary.right, found);
        }
        Expr::List(list) => list.elts.iter().for_each(|element| collect(element, found)),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| collect(element, found)),
        Expr::Dict(dict) => dict.items.iter().for_each(|item| collect(&item.value, found)),
        // Something that cannot be followed may hold any module.
        _ => found.push(UNSEEN.to_string()),
    }
}

/// A parameter of the function.
fn is_given(scope: &Scope<'_>, name: &str) -> bool {
    let mut bindings = scope.bindings_of(name).peekable();
    bindings.peek().is_some() && bindings.all(|binding| binding.how == How::Parameter)
}

/// The two sides of an adversarial game.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Player {
    Generator,
    Discriminator,
}

/// Whose module or optimizer a name means: `netD`, `optimizer_G`, `d_opt`.
fn player(name: &str) -> Option<Player> {
    const FILLERS: &[&str] = &["optimizer", "optimiser", "optim", "opt", "solver", "net", "model"];
    let name = name.rsplit('.').next()?;
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for letter in name.chars() {
        if letter == '_' || letter.is_ascii_uppercase() && lower_before {
            words.push(String::new());
        }
        lower_before = letter.is_ascii_lowercase();
        if letter != '_' {
            words.last_mut()?.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty() && !FILLERS.contains(&word.as_str()));
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["g" | "gen" | "generator"] => Some(Player::Generator),
        ["d" | "dis" | "disc" | "discriminator" | "critic"] => Some(Player::Discriminator),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_are_told_by_their_word() {
        for name in ["D", "netD", "self.d_opt", "optimizerD", "opt_disc", "critic", "D_solver"] {
            assert!(player(name) == Some(Player::Discriminator), "{name}");
        }
        for name in ["G", "generator", "optG", "gen_optimizer", "self.netG"] {
            assert!(player(name) == Some(Player::Generator), "{name}");
        }
        for name in ["netD_A", "opt", "model", "edge", "g_loss", "dg"] {
            assert!(player(name).is_none(), "{name}");
        }
    }
}
