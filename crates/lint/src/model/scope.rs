//! A scope (the module, a function, a class body) as flat lists in source order: items are statements (of compound ones the
//! header), nodes are all expressions with their parents. Flat lists make "before", "inside this loop" and "the latest binding"
//! into comparisons of numbers.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use rustc_hash::FxHashMap;

use super::loops::Loop;
use super::region::{Meaning, Region};
use super::value::Value;

#[derive(Clone, Copy, Debug)]
pub(crate) enum ScopeKind<'a> {
    Module,
    Function(&'a StmtFunctionDef),
    Class,
}

#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) number: usize,
    pub(crate) kind: ScopeKind<'a>,
    /// The scope around it, and the item there that defines it.
    pub(crate) parent: Option<(usize, usize)>,
    /// The class whose body or method this is.
    pub(crate) class: Option<usize>,
    /// Regions with the number of the region around each.
    pub(crate) regions: Vec<(Region<'a>, usize)>,
    pub(crate) items: Vec<Item<'a>>,
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) loops: Vec<Loop<'a>>,
    pub(crate) bindings: Vec<Binding<'a>>,
    pub(crate) by_path: FxHashMap<String, Vec<usize>>,
    /// Something in this scope calls `backward`.
    pub(crate) has_backward: bool,
    /// Items that read a `.grad`, in order.
    pub(crate) reads_grad: Vec<usize>,
    /// What the function's decorators do to autograd.
    pub(super) decorated: Meaning,
}

/// A statement, or the header of a compound one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    pub(crate) stmt: &'a Stmt,
    pub(crate) region: usize,
}

/// An expression and where it hangs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) expr: &'a Expr,
    pub(crate) parent: Option<usize>,
    pub(crate) item: usize,
}

/// A path that gets a value.
#[derive(Debug)]
pub(crate) struct Binding<'a> {
    pub(crate) path: String,
    pub(crate) item: usize,
    pub(crate) how: How,
    /// The expression whose value, or a part of it, is bound.
    pub(crate) expr: Option<&'a Expr>,
    pub(crate) value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Assign,
    /// One of several targets.
    Unpack,
    /// `x += ...`.
    Augment,
    /// The target of a `for`.
    Iterate,
    With,
    Parameter,
    Define,
    /// `del x`.
    Delete,
}

impl<'a> Scope<'a> {
    pub(crate) fn is_module(&self) -> bool {
        matches!(self.kind, ScopeKind::Module)
    }

    pub(crate) fn function(&self) -> Option<&'a StmtFunctionDef> {
        match self.kind {
            ScopeKind::Function(function) => Some(function),
            _ => None,
        }
    }

    /// The name of the function; empty elsewhere.
    pub(crate) fn name(&self) -> &'a str {
        self.function().map_or("", |function| function.name.as_str())
    }

    /// All calls with their node numbers, outer before inner.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (usize, &'a ExprCall)> {
        let call = |(number, node): (usize, &Node<'a>)| Some((number, node.expr.as_call_expr()?));
        self.nodes.iter().enumerate().filter_map(call)
    }

    /// The regions around an item, from the inside out.
    pub(crate) fn regions_of(&self, item: usize) -> impl Iterator<Item = Region<'a>> {
        let mut next = self.items.get(item).map(|item| item.region);
        std::iter::from_fn(move || {
            let (region, outer) = self.regions[next?];
            next = (!matches!(region, Region::Root)).then_some(outer);
            Some(region)
        })
    }

    /// The loops around an item, innermost first.
    pub(crate) fn loops_of(&self, item: usize) -> impl Iterator<Item = &Loop<'a>> {
        self.regions_of(item).filter_map(|region| match region {
            Region::Loop(number) => Some(&self.loops[number]),
            _ => None,
        })
    }

    pub(crate) fn innermost_loop(&self, item: usize) -> Option<&Loop<'a>> {
        self.loops_of(item).next()
    }

    /// Whether an error raised here is caught as part of the program.
    pub(crate) fn is_guarded(&self, item: usize) -> bool {
        self.regions_of(item).any(|region| matches!(region, Region::Try { catches: true }))
    }

    pub(crate) fn has_autocast(&self) -> bool {
        let is =
            |region: &Region<'_>| matches!(region, Region::With { meaning: Meaning::Autocast, .. });
        self.regions.iter().any(|(region, _)| is(region))
    }

    pub(crate) fn in_autocast(&self, item: usize) -> bool {
        let meaning = |region| match region {
            Region::With { meaning: Meaning::Autocast, .. } => Some(true),
            Region::With { meaning: Meaning::AutocastOff, .. } => Some(false),
            _ => None,
        };
        self.regions_of(item).find_map(meaning).unwrap_or(false)
    }

    /// The arms of branches around an item.
    pub(crate) fn arms(&self, item: usize) -> Vec<(usize, usize)> {
        let arm = |region| match region {
            Region::Arm { branch, arm, .. } => Some((branch, arm)),
            _ => None,
        };
        self.regions_of(item).filter_map(arm).collect()
    }

    /// Whether two items lie in different arms of one branch, so that not both run in one pass.
    pub(crate) fn exclusive(&self, one: usize, other: usize) -> bool {
        let arms = self.arms(other);
        self.arms(one).iter().any(|(branch, arm)| {
            arms.iter().any(|(other_branch, other_arm)| branch == other_branch && arm != other_arm)
        })
    }

    /// Whether `first` has run whenever `second` runs, as far as branches go.
    pub(crate) fn dominates(&self, first: usize, second: usize) -> bool {
        let arms = self.arms(second);
        self.arms(first).iter().all(|arm| arms.contains(arm))
    }

    /// The tests of `if` arms between an item and the loop, innermost first. `None` stands for an `else`.
    pub(crate) fn tests_within(&self, item: usize, of: &Loop<'a>) -> Vec<Option<&'a Expr>> {
        self.regions_of(item)
            .take_while(|region| !matches!(region, Region::Loop(number) if *number == of.number))
            .filter_map(|region| match region {
                Region::Arm { test, .. } => Some(test),
                _ => None,
            })
            .collect()
    }

    /// The bindings of a path, in source order.
    pub(crate) fn bindings_of(&self, path: &str) -> impl DoubleEndedIterator<Item = &Binding<'a>> {
        let found = self.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
        found.iter().map(|number| &self.bindings[*number])
    }

    /// The bindings of a path among some items, in source order.
    pub(crate) fn bindings_within(
        &self,
        path: &str,
        items: std::ops::Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &Binding<'a>> {
        let found = self.by_path.get(path).map(Vec::as_slice).unwrap_or_default();
        let item = |number: &usize| self.bindings[*number].item;
        let start = found.partition_point(|number| item(number) < items.start);
        let end = found.partition_point(|number| item(number) < items.end).max(start);
        found[start..end].iter().map(|number| &self.bindings[*number])
    }

    /// The latest binding before an item that is not in another arm of the same branch.
    pub(crate) fn latest(&self, path: &str, before: usize) -> Option<&Binding<'a>> {
        self.bindings_within(path, 0..before)
            .rev()
            .find(|binding| !self.exclusive(binding.item, before))
    }

    /// The nodes that belong to an item.
    pub(crate) fn nodes_of(&self, item: usize) -> &[Node<'a>] {
        let start = self.nodes.partition_point(|node| node.item < item);
        let end = self.nodes.partition_point(|node| node.item <= item);
        &self.nodes[start..end]
    }

    /// The nodes of items in a range.
    pub(crate) fn nodes_in(&self, items: std::ops::Range<usize>) -> &[Node<'a>] {
        let start = self.nodes.partition_point(|node| node.item < items.start);
        let end = self.nodes.partition_point(|node| node.item < items.end);
        &self.nodes[start..end.max(start)]
    }

    pub(crate) fn calls_in(
        &self,
        items: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (&Node<'a>, &'a ExprCall)> {
        self.nodes_in(items).iter().filter_map(|node| Some((node, node.expr.as_call_expr()?)))
    }

    /// Whether the node lies inside a lambda, which runs at another time.
    pub(crate) fn in_lambda(&self, node: usize) -> bool {
        let mut next = self.nodes[node].parent;
        while let Some(parent) = next {
            if self.nodes[parent].expr.is_lambda_expr() {
                return true;
            }
            next = self.nodes[parent].parent;
        }
        false
    }
}
