//! Who holds each block: one walk over every registered tensor, through gradients, graphs with what
//! they saved, hooks and recipes. `holders.rs` answers the same for one tensor, with every holder;
//! here each block has one, the one to drop.
//!
//! A tensor counts as the program's if it has more handles than the runtime itself has of it: a
//! view holds its base, a leaf its gradient, a hook what it was given.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use plimsoll_core::Device;
use plimsoll_memory::{OriginId, Phase};
use plimsoll_watch::GrowthKind;

use super::super::holders::each_given_to_hooks;
use super::graph_walk::GraphWalk;
use super::growth_watch::Place;
use crate::Tensor;
use crate::autograd::node::Node;
use crate::device;
use crate::storage::Storage;
use crate::storage::roles::Role;
use crate::tensor::registry;

/// What of the program leads to a block; what leads from one root is told together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Root {
    /// A tensor of this origin.
    Tensor(OriginId),
    /// A view that this operation made, of memory of this origin.
    View(&'static str, OriginId),
    /// A hook that was registered there.
    Hook(OriginId),
    /// A dropped tensor, made by this operation.
    Recipe(&'static str, OriginId),
    /// Nobody that is known.
    Nobody,
}

impl Root {
    /// The same with another origin of its tensor.
    pub(crate) fn map_origin(self, of: impl Fn(OriginId) -> OriginId) -> Root {
        match self {
            Root::Tensor(origin) => Root::Tensor(of(origin)),
            Root::View(operation, origin) => Root::View(operation, of(origin)),
            root => root,
        }
    }
}

/// How it leads there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Way {
    Itself,
    Gradient,
    /// Through the graph behind the tensor, whose node has this name.
    Graph(String),
}

/// What a block is to the program, and through what it is held.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) kind: GrowthKind,
    pub(crate) root: Root,
    pub(crate) way: Way,
    /// Tells the tensors at the beginning of paths apart, and where that one's own bytes are.
    pub(crate) root_id: usize,
    pub(crate) root_place: Option<Place>,
    /// Whether the tensor there has no dimensions: a loss.
    pub(crate) is_scalar: bool,
    pub(crate) has_graph: bool,
    /// Of a value that a graph saved, the operation that did.
    pub(crate) saved_by: Option<&'static str>,
}

/// A tensor that leads to nodes of graphs, and the places of those in the order of creation.
pub(crate) struct GraphRoot {
    pub(crate) owner: Owner,
    pub(crate) device: Device,
    pub(crate) origin: OriginId,
    pub(crate) sequences: Vec<u64>,
}

/// One look at everything that is registered.
pub(crate) struct Ownership {
    pub(crate) owners: HashMap<Place, Owner>,
    pub(crate) graphs: Vec<GraphRoot>,
}

/// A registered tensor, as far as it could be looked at without waiting.
struct Seen {
    tensor: Tensor,
    takes_gradients: bool,
    gradient: Option<Tensor>,
    node: Option<Arc<Node>>,
    is_of_program: bool,
}

impl Ownership {
    /// Looks now. Waits for nobody but another look, so that it may run where memory has run out.
    pub(crate) fn look() -> Ownership {
        let _alone = registry::look_alone();
        let mut seen: Vec<Seen> = registry::living().into_iter().map(Seen::new).collect();
        mark_those_of_program(&mut seen);
        let mut ownership = Ownership { owners: HashMap::new(), graphs: Vec::new() };
        for one in seen.iter().filter(|one| one.is_of_program) {
            ownership.own(one.tensor.storage(), || one.owner(one.kind(), Way::Itself));
        }
        ownership.own_given_to_hooks();
        for one in &seen {
            if let Some(gradient) = &one.gradient {
                let is_parameter = one.tensor.storage().has_role(Role::Parameter);
                let kind = if is_parameter {
                    GrowthKind::GradientOfParameter
                } else {
                    GrowthKind::GradientOfInput
                };
                ownership.own(gradient.storage(), || one.owner(kind, Way::Gradient));
            }
            // Of a leaf that was made before tensors were registered.
            if !one.is_of_program && one.tensor.storage().has_role(Role::Gradient) {
                ownership.own(one.tensor.storage(), || Owner {
                    kind: GrowthKind::GradientOfParameter,
                    ..Owner::apart(Root::Nobody)
                });
            }
        }
        ownership.own_graphs(&seen);
        ownership.own_ingredients();
        ownership
    }

    /// How many tensors lead to something from one root.
    pub(crate) fn tensors_at(&self, root: Root) -> usize {
        self.tensors_where(|of| of == root)
    }

    /// The same of several roots.
    pub(crate) fn tensors_where(&self, is_wanted: impl Fn(Root) -> bool) -> usize {
        let of_root = self.owners.values().filter(|owner| is_wanted(owner.root));
        of_root.map(|owner| owner.root_id).collect::<HashSet<usize>>().len()
    }

    fn own(&mut self, storage: &Arc<Storage>, owner: impl FnOnce() -> Owner) {
        if let Some(place) = storage.watch_key() {
            self.owners.entry(place).or_insert_with(owner);
        }
    }

    fn own_given_to_hooks(&mut self) {
        each_given_to_hooks(&mut |tensor, origin| {
            self.own(tensor.storage(), || Owner::apart(Root::Hook(origin)));
        });
    }

    /// Graphs of the program's tensors before those of others, in the order in which the tensors
    /// were made: a state before the loss that was computed of it.
    fn own_graphs(&mut self, seen: &[Seen]) {
        let mut known = GraphWalk::default();
        for is_of_program in [true, false] {
            for one in seen.iter().filter(|one| one.is_of_program == is_of_program) {
                if let Some(node) = &one.node {
                    self.own_graph(one, node, &mut known);
                }
            }
        }
    }

    fn own_graph(&mut self, one: &Seen, root: &Arc<Node>, known: &mut GraphWalk) {
        let owner = one.owner(GrowthKind::Activation, Way::Graph(root.backward_name()));
        let mut sequences = Vec::new();
        known.follow(root, &mut |node| {
            sequences.push(node.sequence());
            let saved_by = Some(node.name());
            node.each_saved(&mut |storage| {
                self.own(storage, || Owner { saved_by, ..owner.clone() })
            });
        });
        if !sequences.is_empty() {
            let origin = one.tensor.storage().origin_if_free().unwrap_or(OriginId::UNKNOWN);
            let device = one.tensor.device();
            self.graphs.push(GraphRoot { owner, device, origin, sequences });
        }
    }

    fn own_ingredients(&mut self) {
        let mut dropped: Vec<Arc<Storage>> = Vec::new();
        device::for_each(|entry| dropped.extend(entry.reclaimable().living()));
        for storage in dropped {
            storage.each_ingredient(&mut |held, operation, origin| {
                self.own(held, || Owner::apart(Root::Recipe(operation, origin)));
            });
        }
    }
}

/// A tensor is the program's if somebody beside the runtime has a handle of it.
fn mark_those_of_program(seen: &mut [Seen]) {
    let mut known: HashMap<usize, usize> = HashMap::new();
    let mut views: HashSet<usize> = HashSet::new();
    for one in &*seen {
        // The one in `seen`.
        *known.entry(one.tensor.object_id()).or_default() += 1;
        if let Some(gradient) = &one.gradient {
            // Its tensor's, and the one in `seen`.
            *known.entry(gradient.object_id()).or_default() += 2;
        }
        if let Some(view) = one.tensor.view_of()
            && views.insert(Arc::as_ptr(view).addr())
        {
            *known.entry(view.base().object_id()).or_default() += 1;
        }
    }
    let gradients: HashSet<usize> =
        seen.iter().filter_map(|one| one.gradient.as_ref().map(Tensor::object_id)).collect();
    for one in &*seen {
        let id = one.tensor.object_id();
        // A leaf that is not registered has it.
        if one.tensor.storage().has_role(Role::Gradient) && !gradients.contains(&id) {
            *known.entry(id).or_default() += 1;
        }
    }
    each_given_to_hooks(&mut |tensor, _| *known.entry(tensor.object_id()).or_default() += 1);
    for one in seen {
        let runtime = known.get(&one.tensor.object_id()).copied().unwrap_or(0);
        one.is_of_program = one.tensor.handles() > runtime;
    }
}

impl Seen {
    fn new(tensor: Tensor) -> Seen {
        let (takes_gradients, gradient, node) = tensor.try_place_in_graph();
        Seen { tensor, takes_gradients, gradient, node, is_of_program: false }
    }

    fn kind(&self) -> GrowthKind {
        let storage = self.tensor.storage();
        let origin = storage.origin_if_free().unwrap_or(OriginId::UNKNOWN).get();
        if storage.has_role(Role::Parameter) {
            GrowthKind::Parameter
        } else if storage.has_role(Role::OptimizerState) {
            GrowthKind::OptimizerState
        } else if self.takes_gradients {
            GrowthKind::Input
        } else if origin.phase == Phase::Backward {
            GrowthKind::KeptGradient
        } else if 2 * self.tensor.nbytes() <= storage.nbytes() {
            GrowthKind::Slice
        } else {
            GrowthKind::Value
        }
    }

    fn owner(&self, kind: GrowthKind, way: Way) -> Owner {
        let origin = self.tensor.storage().origin_if_free().unwrap_or(OriginId::UNKNOWN);
        let root = match self.tensor.view_of() {
            Some(view) => Root::View(view.operation(), origin),
            None => Root::Tensor(origin),
        };
        Owner {
            kind,
            root,
            way,
            root_id: self.tensor.object_id(),
            root_place: self.tensor.storage().watch_key(),
            is_scalar: self.tensor.rank() == 0,
            has_graph: self.node.is_some(),
            saved_by: None,
        }
    }
}

impl Owner {
    /// Somebody who is no tensor.
    pub(crate) fn apart(root: Root) -> Owner {
        let kind = if root == Root::Nobody { GrowthKind::Library } else { GrowthKind::Value };
        Owner {
            kind,
            root,
            way: Way::Itself,
            root_id: 0,
            root_place: None,
            is_scalar: false,
            has_graph: false,
            saved_by: None,
        }
    }

    /// The path as one reads it, from `tensors` tensors of the program that lead the same way.
    pub(crate) fn words(&self, tensors: usize) -> String {
        let many = |noun: &str| match tensors {
            0 | 1 => format!("a {noun}"),
            _ => format!("{tensors} {noun}s"),
        };
        let root = match self.root {
            Root::Tensor(origin) => format!("{} made by {origin}", many("tensor")),
            Root::View(operation, origin) => {
                format!("{} ({operation}) of memory made by {origin}", many("view"))
            }
            Root::Hook(origin) => format!("a hook ({origin})"),
            Root::Recipe(operation, origin) => {
                format!("the recipe of a dropped tensor ({operation}, {origin})")
            }
            Root::Nobody => {
                "no tensor that is known: made before the watch began, or a library's".to_string()
            }
        };
        format!("{root}{}", Inwards(self))
    }
}

/// The part of a path behind the tensor.
struct Inwards<'a>(&'a Owner);

impl fmt::Display for Inwards<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.way {
            Way::Itself => return Ok(()),
            Way::Gradient => f.write_str(" -> .grad")?,
            Way::Graph(node) => write!(f, " -> grad_fn {node}")?,
        }
        match self.0.saved_by {
            Some(operation) => write!(f, " -> saved by {operation}"),
            None => Ok(()),
        }
    }
}
