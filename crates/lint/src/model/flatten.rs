//! The syntax tree laid out flat: one pass that fills scopes, items, nodes, regions, loops and
//! classes. It interprets nothing; `bindings` and `infer` do that afterwards.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr};
use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtClassDef, StmtFunctionDef, StmtTry};

use rustc_hash::{FxHashMap, FxHashSet};

use super::class::Class;
use super::loops::Loop;
use super::region::{Meaning, Region};
use super::scope::{Item, Node, Scope, ScopeKind};

pub(crate) fn flatten(body: &[Stmt]) -> (Vec<Scope<'_>>, Vec<Class<'_>>) {
    let mut flattener = Flattener { scopes: Vec::new(), classes: Vec::new() };
    let module = flattener.open(ScopeKind::Module, None, None);
    flattener.suite(module, 0, body);
    (flattener.scopes, flattener.classes)
}

struct Flattener<'a> {
    scopes: Vec<Scope<'a>>,
    classes: Vec<Class<'a>>,
}

impl<'a> Flattener<'a> {
    fn open(
        &mut self,
        kind: ScopeKind<'a>,
        parent: Option<(usize, usize)>,
        class: Option<usize>,
    ) -> usize {
        let number = self.scopes.len();
        self.scopes.push(Scope {
            number,
            kind,
            parent,
            class,
            regions: vec![(Region::Root, 0)],
            items: Vec::new(),
            nodes: Vec::new(),
            calls: Vec::new(),
            loops: Vec::new(),
            bindings: Vec::new(),
            by_path: FxHashMap::default(),
            has_backward: false,
            backwards: Vec::new(),
            switches: Vec::new(),
            continues: Vec::new(),
            reads_grad: Vec::new(),
            decorated: Meaning::Other,
            used_as_module: FxHashSet::default(),
        });
        number
    }

    fn region(&mut self, scope: usize, region: Region<'a>, outer: usize) -> usize {
        let regions = &mut self.scopes[scope].regions;
        regions.push((region, outer));
        regions.len() - 1
    }

    fn item(&mut self, scope: usize, stmt: &'a Stmt, region: usize) -> usize {
        let items = &mut self.scopes[scope].items;
        items.push(Item { stmt, region });
        let item = items.len() - 1;
        if stmt.is_continue_stmt() {
            self.scopes[scope].continues.push(item);
        }
        item
    }

    fn exprs(&mut self, scope: usize, item: usize, exprs: impl IntoIterator<Item = &'a Expr>) {
        let mut collector = Collector::new(&mut self.scopes[scope], item);
        for expr in exprs {
            collector.visit_expr(expr);
        }
    }

    fn suite(&mut self, scope: usize, region: usize, body: &'a [Stmt]) {
        for stmt in body {
            let item = self.item(scope, stmt, region);
            self.statement(scope, region, item, stmt);
        }
    }

    fn statement(&mut self, scope: usize, region: usize, item: usize, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.function(scope, item, function),
            Stmt::ClassDef(class) => self.class(scope, item, class),
            Stmt::For(for_) => {
                self.exprs(scope, item, [&*for_.iter, &*for_.target]);
                self.looped(scope, region, item, &for_.body);
                self.suite(scope, region, &for_.orelse);
            }
            Stmt::While(while_) => {
                self.exprs(scope, item, [&*while_.test]);
                self.looped(scope, region, item, &while_.body);
                self.suite(scope, region, &while_.orelse);
            }
            Stmt::With(with) => {
                let mut inner = region;
                for entry in &with.items {
                    let vars = entry.optional_vars.as_deref();
                    self.exprs(scope, item, std::iter::once(&entry.context_expr).chain(vars));
                    let expr = &entry.context_expr;
                    inner =
                        self.region(scope, Region::With { expr, meaning: Meaning::Other }, inner);
                }
                self.suite(scope, inner, &with.body);
            }
            Stmt::If(if_) => {
                self.exprs(scope, item, [&*if_.test]);
                let arm = Region::Arm { branch: item, test: Some(&if_.test) };
                let first = self.region(scope, arm, region);
                self.suite(scope, first, &if_.body);
                for clause in &if_.elif_else_clauses {
                    let test = clause.test.as_ref();
                    self.exprs(scope, item_of_last(&self.scopes[scope], item), test);
                    let arm = Region::Arm { branch: item, test };
                    let next = self.region(scope, arm, region);
                    self.suite(scope, next, &clause.body);
                }
            }
            Stmt::Match(match_) => {
                self.exprs(scope, item, [&*match_.subject]);
                for case in &match_.cases {
                    let test = Some(&*match_.subject);
                    let next = self.region(scope, Region::Arm { branch: item, test }, region);
                    self.suite(scope, next, &case.body);
                }
            }
            Stmt::Try(try_) => self.guarded(scope, region, try_),
            _ => {
                let mut collector = Collector::new(&mut self.scopes[scope], item);
                ruff_python_ast::visitor::source_order::walk_stmt(&mut collector, stmt);
            }
        }
    }

    fn looped(&mut self, scope: usize, region: usize, item: usize, body: &'a [Stmt]) {
        let number = self.scopes[scope].loops.len();
        let stmt = self.scopes[scope].items[item].stmt;
        self.scopes[scope].loops.push(Loop::new(number, stmt, item));
        let inner = self.region(scope, Region::Loop(number), region);
        self.suite(scope, inner, body);
        self.scopes[scope].loops[number].end = self.scopes[scope].items.len();
    }

    fn guarded(&mut self, scope: usize, region: usize, try_: &'a StmtTry) {
        let catches = try_.handlers.iter().any(|ExceptHandler::ExceptHandler(handler)| {
            handler.type_.as_deref().is_none_or(catches_runtime_error)
        });
        let body = self.region(scope, Region::Try { catches }, region);
        self.suite(scope, body, &try_.body);
        for ExceptHandler::ExceptHandler(handler) in &try_.handlers {
            let inner = self.region(scope, Region::Except, region);
            self.suite(scope, inner, &handler.body);
        }
        self.suite(scope, region, &try_.orelse);
        self.suite(scope, region, &try_.finalbody);
    }

    fn function(&mut self, scope: usize, item: usize, function: &'a StmtFunctionDef) {
        let decorators = function.decorator_list.iter().map(|decorator| &decorator.expression);
        let defaults =
            function.parameters.iter_non_variadic_params().filter_map(|p| p.default.as_deref());
        self.exprs(scope, item, decorators.chain(defaults));
        let class = match self.scopes[scope].kind {
            ScopeKind::Class => self.scopes[scope].class,
            // A function inside a method sees the same `self`.
            _ => self.scopes[scope].class.filter(|_| self.scopes[scope].function().is_some()),
        };
        let inner = self.open(ScopeKind::Function(function), Some((scope, item)), class);
        if let (Some(class), ScopeKind::Class) = (class, self.scopes[scope].kind) {
            self.classes[class].methods.push(inner);
        }
        self.suite(inner, 0, &function.body);
    }

    fn class(&mut self, scope: usize, item: usize, class: &'a StmtClassDef) {
        let bases = class.arguments.as_deref().map(|a| &*a.args).unwrap_or_default();
        self.exprs(scope, item, bases);
        let number = self.classes.len();
        self.classes.push(Class::new(class));
        let inner = self.open(ScopeKind::Class, Some((scope, item)), Some(number));
        self.suite(inner, 0, &class.body);
    }
}

/// Tests of `elif` arms are read between the bodies; they count as part of the item before them,
/// which keeps nodes sorted.
fn item_of_last(scope: &Scope<'_>, item: usize) -> usize {
    scope.items.len().saturating_sub(1).max(item)
}

fn catches_runtime_error(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(tuple) => tuple.elts.iter().any(catches_runtime_error),
        _ => matches!(
            super::expression::last_name(expr),
            Some("RuntimeError" | "Exception" | "BaseException" | "OutOfMemoryError")
        ),
    }
}

struct Collector<'a, 's> {
    nodes: &'s mut Vec<Node<'a>>,
    calls: &'s mut Vec<usize>,
    parent: Option<usize>,
    item: usize,
}

impl<'a, 's> Collector<'a, 's> {
    fn new(scope: &'s mut Scope<'a>, item: usize) -> Collector<'a, 's> {
        Collector { nodes: &mut scope.nodes, calls: &mut scope.calls, parent: None, item }
    }
}

impl<'a> SourceOrderVisitor<'a> for Collector<'a, '_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let number = self.nodes.len();
        self.nodes.push(Node { expr, parent: self.parent, item: self.item });
        if expr.is_call_expr() {
            self.calls.push(number);
        }
        let outer = self.parent.replace(number);
        walk_expr(self, expr);
        self.parent = outer;
    }

    // Annotations are no code that runs.
    fn visit_annotation(&mut self, _: &'a Expr) {}
}
