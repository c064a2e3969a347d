//! A scope (the module, a function, a class body) as flat lists in source order: items are
//! statements (of compound ones the header), nodes are all expressions with their parents. Flat
//! lists make "before", "inside this loop" and "the latest binding" into comparisons of numbers.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use rustc_hash::{FxHashMap, FxHashSet};

use super::loops::Loop;
use super::region::{Meaning, Region};
use super::value::Value;

/// How many places in other arms of a branch are passed over in search of one that counts. No
/// program that people write has more; without a bound a file of a hundred thousand arms would take
/// the square of that.
pub(super) const MOST_ARMS: usize = 256;

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
    /// The nodes that are calls, in order.
    pub(super) calls: Vec<usize>,
    pub(crate) loops: Vec<Loop<'a>>,
    pub(crate) bindings: Vec<Binding<'a>>,
    pub(crate) by_path: FxHashMap<String, Vec<usize>>,
    /// Something in this scope calls `backward`.
    pub(crate) has_backward: bool,
    /// The nodes that are backward passes, in order.
    pub(crate) backwards: Vec<usize>,
    /// Statements that switch autograd for what follows: item and whether they switch it off, in
    /// order.
    pub(super) switches: Vec<(usize, bool)>,
    /// Items that are `continue` statements, in order.
    pub(crate) continues: Vec<usize>,
    /// Items that read a `.grad`, in order.
    pub(crate) reads_grad: Vec<usize>,
    /// What the function's decorators do to autograd.
    pub(crate) decorated: Meaning,
    /// Paths that are used as modules: asked for their parameters, or told to train or evaluate.
    pub(super) used_as_module: FxHashSet<String>,
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
        self.calls
            .iter()
            .filter_map(|number| Some((*number, self.nodes[*number].expr.as_call_expr()?)))
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

    /// Whether two items lie in different arms of one branch, so that not both run in one pass:
    /// just below the innermost region that holds both, they are in two of its arms.
    pub(crate) fn exclusive(&self, one: usize, other: usize) -> bool {
        let (mut a, mut b) = (self.items[one].region, self.items[other].region);
        let mut below = (Region::Root, Region::Root);
        // A region is numbered after the one around it, so the larger number is never the outer of
        // the two.
        while a != b {
            if a > b {
                (below.0, a) = self.regions[a];
            } else {
                (below.1, b) = self.regions[b];
            }
        }
        match below {
            (Region::Arm { branch, .. }, Region::Arm { branch: other, .. }) => branch == other,
            _ => false,
        }
    }

    /// Whether `first` has run whenever `second` runs, as far as branches go: every arm around the
    /// first is around the second.
    pub(crate) fn dominates(&self, first: usize, second: usize) -> bool {
        let (mut a, mut b) = (self.items[first].region, self.items[second].region);
        while a != b {
            if a < b {
                b = self.regions[b].1;
                continue;
            }
            let (region, outer) = self.regions[a];
            if matches!(region, Region::Arm { .. }) {
                return false;
            }
            a = outer;
        }
        true
    }

    /// The tests of `if` arms between an item and the loop, innermost first. `None` stands for an
    /// `else`.
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

    /// All bindings of some items, in source order.
    pub(crate) fn bindings_in(&self, items: std::ops::Range<usize>) -> &[Binding<'a>] {
        let start = self.bindings.partition_point(|binding| binding.item < items.start);
        let end = self.bindings.partition_point(|binding| binding.item < items.end);
        &self.bindings[start..end.max(start)]
    }

    /// The latest binding before an item that is not in another arm of the same branch.
    pub(crate) fn latest(&self, path: &str, before: usize) -> Option<&Binding<'a>> {
        self.bindings_within(path, 0..before)
            .rev()
            .take(MOST_ARMS)
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
        let item = |number: &usize| self.nodes[*number].item;
        let start = self.calls.partition_point(|number| item(number) < items.start);
        let end = self.calls.partition_point(|number| item(number) < items.end).max(start);
        self.calls[start..end].iter().filter_map(|number| {
            let node = &self.nodes[*number];
            Some((node, node.expr.as_call_expr()?))
        })
    }

    /// The first backward pass after an item that can follow it in one iteration, by its item and
    /// call.
    pub(crate) fn backward_after(&self, item: usize) -> Option<(usize, &'a ExprCall)> {
        let start = self.backwards.partition_point(|number| self.nodes[*number].item <= item);
        self.backwards[start..].iter().take(MOST_ARMS).find_map(|number| {
            let node = &self.nodes[*number];
            let call = node.expr.as_call_expr()?;
            (!self.exclusive(node.item, item)).then_some((node.item, call))
        })
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
