//! What the rules know about a file: its scopes flattened into items and expressions (`scope`,
//! `flatten`), the regions and loops around each item (`region`, `loops`), what imported names mean
//! (`imports`), classes (`class`), and what names hold (`value`, `infer`, `bindings`). It records
//! facts; judging them is the rules' work.

mod bindings;
mod class;
mod construction;
pub(crate) mod expression;
mod flatten;
mod grad;
mod imports;
mod infer;
mod loops;
mod names;
mod region;
mod scope;
mod tensor_calls;
mod value;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use ruff_python_ast::{Expr, ExprCall, Stmt};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use class::Class;
pub(crate) use grad::{Grad, backward_roots, is_backward};
pub(crate) use imports::Imports;
pub(crate) use loops::{Loop, is_optimizer_step};
pub(crate) use names::{is_loss, is_optimizer as is_optimizer_name, is_recurrent};
pub(crate) use region::{Meaning, Region};
pub(crate) use scope::{Binding, How, Scope, ScopeKind};
pub(crate) use tensor_calls::{CONSTANT_CREATORS, RANDOM_CREATORS};
pub(crate) use value::{Graph, Module, Residence, Value};

/// A parsed file with everything that rules ask about.
#[derive(Debug)]
pub(crate) struct File<'a> {
    pub(crate) imports: Imports,
    pub(crate) scopes: Vec<Scope<'a>>,
    pub(crate) classes: Vec<Class<'a>>,
    /// Calls by the last part of the called name: scope and node.
    calls: FxHashMap<&'a str, Vec<(usize, usize)>>,
    /// Paths whose parameters are frozen somewhere in the file.
    pub(crate) frozen: HashSet<String>,
    /// The default device or tensor type is changed, so that creation places nothing for certain.
    pub(crate) default_device_changed: bool,
    /// How deep the present inference is; see `infer`.
    depth: Cell<u32>,
    /// What expressions yield, by their address and item, once all bindings are known.
    inferred: RefCell<FxHashMap<(usize, usize), Value>>,
    settled: bool,
    /// Who calls a function while nothing is recorded.
    callers: RefCell<grad::Callers>,
    /// The first function of each name.
    function_names: FxHashMap<&'a str, usize>,
    /// The first class of each name.
    class_names: FxHashMap<&'a str, usize>,
    /// Functions by the scope that defines them and their name, the first of each.
    functions: FxHashMap<(usize, &'a str), usize>,
    /// Every path that any scope binds.
    bound: FxHashSet<String>,
}

impl<'a> File<'a> {
    pub(crate) fn new(body: &'a [Stmt]) -> File<'a> {
        let (scopes, classes) = flatten::flatten(body);
        let imports = Imports::read(&scopes);
        let mut file = File {
            imports,
            scopes,
            classes,
            calls: FxHashMap::default(),
            frozen: HashSet::new(),
            default_device_changed: false,
            depth: Cell::new(0),
            inferred: RefCell::default(),
            settled: false,
            callers: RefCell::default(),
            function_names: FxHashMap::default(),
            class_names: FxHashMap::default(),
            functions: FxHashMap::default(),
            bound: FxHashSet::default(),
        };
        file.index_calls();
        file.index_definitions();
        file.read_classes();
        file.mark_regions();
        file.mark_switches();
        file.describe_loops();
        file.bind();
        file.settled = true;
        file
    }

    fn index_calls(&mut self) {
        for (number, scope) in self.scopes.iter().enumerate() {
            for (node, call) in scope.calls() {
                if let Some(name) = expression::last_name(&call.func) {
                    self.calls.entry(name).or_default().push((number, node));
                }
            }
        }
        for name in ["set_default_device", "set_default_tensor_type"] {
            self.default_device_changed |= self.calls.contains_key(name);
        }
        self.frozen = grad::frozen(self);
    }

    fn index_definitions(&mut self) {
        for (number, class) in self.classes.iter().enumerate() {
            self.class_names.entry(class.name()).or_insert(number);
        }
        for scope in &self.scopes {
            if let (Some(function), Some((outer, _))) = (scope.function(), scope.parent) {
                let name = function.name.as_str();
                self.functions.entry((outer, name)).or_insert(scope.number);
                self.function_names.entry(name).or_insert(scope.number);
            }
        }
    }

    /// The function of this name that a scope defines.
    pub(crate) fn function_in(&self, outer: &Scope<'a>, name: &str) -> Option<&Scope<'a>> {
        self.functions.get(&(outer.number, name)).map(|number| &self.scopes[*number])
    }

    /// The function of this file that a call runs: one of the module by its name, or a method of
    /// the same object.
    pub(crate) fn called(&self, scope: &Scope<'a>, call: &ExprCall) -> Option<&Scope<'a>> {
        match &*call.func {
            Expr::Name(name) => self.function_in(&self.scopes[0], &name.id),
            Expr::Attribute(attribute) => {
                let on_self = attribute.value.as_name_expr().is_some_and(|name| name.id == "self");
                let class = scope.class.filter(|_| on_self)?;
                let mut methods = self.classes[class].methods.iter().map(|m| &self.scopes[*m]);
                methods.find(|method| method.name() == attribute.attr.as_str())
            }
            _ => None,
        }
    }

    /// Every call of a function or method by this name, as scope, node and call.
    pub(crate) fn calls_of(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (&Scope<'a>, usize, &'a ExprCall)> {
        let found = self.calls.get(name).map(Vec::as_slice).unwrap_or_default();
        found.iter().filter_map(|(scope, node)| {
            let scope = &self.scopes[*scope];
            Some((scope, *node, scope.nodes[*node].expr.as_call_expr()?))
        })
    }

    pub(crate) fn calls_any(&self, name: &str) -> bool {
        self.calls.contains_key(name)
    }

    /// The full dotted name behind an expression, through import aliases.
    pub(crate) fn qualified(&self, expr: &Expr) -> Option<String> {
        self.imports.qualified(expr)
    }

    /// The function called, by its full name.
    pub(crate) fn callee(&self, call: &ExprCall) -> Option<String> {
        self.imports.qualified(&call.func)
    }
}
