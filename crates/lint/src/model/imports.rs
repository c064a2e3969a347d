//! What imported names mean: `nn` is `torch.nn`, `F` is `torch.nn.functional`. Where a file does
//! not import a name at all (a pasted block, a notebook's middle), the names that everybody uses
//! for PyTorch are taken at their word.

use ruff_python_ast::{Expr, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

use super::scope::Scope;

#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// A local name and the full name behind it.
    names: FxHashMap<String, String>,
    /// Of the usual names those that the file itself defines somewhere.
    own: FxHashSet<&'static str>,
}

/// Taken at their word if the file neither imports nor defines them.
const USUAL: &[(&str, &str)] = &[
    ("torch", "torch"),
    ("nn", "torch.nn"),
    ("F", "torch.nn.functional"),
    ("optim", "torch.optim"),
    ("np", "numpy"),
    ("gc", "gc"),
    ("DataLoader", "torch.utils.data.DataLoader"),
    ("Dataset", "torch.utils.data.Dataset"),
    ("autocast", "torch.amp.autocast"),
    ("GradScaler", "torch.amp.GradScaler"),
    ("checkpoint", "torch.utils.checkpoint.checkpoint"),
];

impl Imports {
    pub(super) fn read(scopes: &[Scope<'_>]) -> Imports {
        let mut imports = Imports::default();
        for scope in scopes {
            for item in &scope.items {
                imports.read_statement(item.stmt);
            }
        }
        imports
    }

    fn read_statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full = alias.name.as_str();
                    match &alias.asname {
                        Some(name) => self.add(name, full.to_string()),
                        None => {
                            let top = full.split('.').next().unwrap_or(full);
                            self.add(top, top.to_string());
                        }
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                let from = if import.level > 0 { format!(".{module}") } else { module.to_string() };
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    self.add(name, format!("{from}.{}", alias.name));
                }
            }
            Stmt::FunctionDef(function) => self.define(&function.name),
            Stmt::ClassDef(class) => self.define(&class.name),
            Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.define_all(target))
            }
            _ => {}
        }
    }

    fn define_all(&mut self, target: &Expr) {
        match target {
            Expr::Name(name) => self.define(&name.id),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|part| self.define_all(part)),
            Expr::List(list) => list.elts.iter().for_each(|part| self.define_all(part)),
            Expr::Starred(starred) => self.define_all(&starred.value),
            _ => {}
        }
    }

    fn define(&mut self, name: &str) {
        if let Some((usual, _)) = USUAL.iter().find(|(usual, _)| *usual == name) {
            self.own.insert(usual);
        }
    }

    fn add(&mut self, name: &str, full: String) {
        self.names.insert(name.to_string(), full);
    }

    /// Whether the name is imported, so that it says nothing about a value.
    pub(crate) fn names_a_module(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// The full dotted name, if the expression is a path that starts at an imported name.
    pub(crate) fn qualified(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Name(name) => self.name(&name.id).map(str::to_string),
            Expr::Attribute(attribute) => {
                let mut full = self.qualified(&attribute.value)?;
                full.push('.');
                full.push_str(&attribute.attr);
                Some(full)
            }
            _ => None,
        }
    }

    fn name(&self, name: &str) -> Option<&str> {
        if let Some(full) = self.names.get(name) {
            return Some(full);
        }
        let usual = USUAL.iter().find(|(usual, _)| *usual == name)?;
        (!self.own.contains(name)).then_some(usual.1)
    }
}
