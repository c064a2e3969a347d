//! Roles: what a storage is to the program, and the kind that follows for the ledger.
//!
//! Note [Kinds come from roles]
//! A storage can have several roles at once. Its kind is the first that applies:
//!   parameter, optimizer state, gradient, input, a leaf that requires gradients (a parameter that
//!   nobody marked), activation (saved for backward), else what it was born as (a temporary, or a
//!   workspace).
//! So a saved input stays an input, and a parameter that a layer saves stays a parameter. An input
//! whose gradient is wanted is one if it is marked as one.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_memory::{Kind, ModulePath};

use super::Storage;
use super::whereabouts::Whereabouts;

/// What a storage can be to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Parameter,
    OptimizerState,
    /// The gradient of a tensor; counted, since several tensors can have one.
    Gradient,
    Input,
    /// A leaf that requires gradients: nobody said what it is, so it is taken for a parameter.
    Leaf,
    /// Kept alive by a graph node; counted, since several nodes can save one storage.
    Saved,
}

/// The roles of one storage in one word: a bit each for the lasting ones, above them a count for
/// `Gradient` (of 28 bits) and one for `Saved`.
pub(crate) struct Roles {
    bits: AtomicU64,
    born_as: Kind,
}

const GRADIENT_ONE: u64 = 1 << 4;
const SAVED_ONE: u64 = 1 << 32;

impl Role {
    const fn bits(self) -> u64 {
        match self {
            Role::Parameter => 1,
            Role::OptimizerState => 1 << 1,
            Role::Gradient => GRADIENT_ONE,
            Role::Input => 1 << 3,
            Role::Leaf => 1 << 2,
            Role::Saved => SAVED_ONE,
        }
    }
}

impl Roles {
    pub(super) const fn born_as(kind: Kind) -> Roles {
        Roles { bits: AtomicU64::new(0), born_as: kind }
    }

    fn kind(&self, bits: u64) -> Kind {
        match bits {
            b if b & Role::Parameter.bits() != 0 => Kind::Parameter,
            b if b & Role::OptimizerState.bits() != 0 => Kind::OptimizerState,
            b if b & (SAVED_ONE - GRADIENT_ONE) != 0 => Kind::Gradient,
            b if b & Role::Input.bits() != 0 => Kind::Input,
            b if b & Role::Leaf.bits() != 0 => Kind::Parameter,
            b if b >= SAVED_ONE => Kind::Activation,
            _ => self.born_as,
        }
    }
}

impl Storage {
    /// Takes on a role; the ledger hears of it if the kind changes.
    pub(crate) fn take_role(&self, role: Role) {
        let before = match role {
            Role::Saved | Role::Gradient => {
                self.roles.bits.fetch_add(role.bits(), Ordering::AcqRel)
            }
            lasting => self.roles.bits.fetch_or(lasting.bits(), Ordering::AcqRel),
        };
        if !(role == Role::Saved && before >= SAVED_ONE) {
            self.tell_kind();
        }
    }

    /// Gives a role up again.
    pub(crate) fn leave_role(&self, role: Role) {
        let before = match role {
            Role::Saved | Role::Gradient => {
                self.roles.bits.fetch_sub(role.bits(), Ordering::AcqRel)
            }
            lasting => self.roles.bits.fetch_and(!lasting.bits(), Ordering::AcqRel),
        };
        if !(role == Role::Saved && before >= 2 * SAVED_ONE) {
            self.tell_kind();
        }
    }

    /// Counts the bytes under a module's path from now on. Memory that is not ours, or that was
    /// dropped to be computed again, keeps the path it has.
    pub(crate) fn set_module(&self, module: ModulePath) {
        if let Some(block) = self.place.lock().block() {
            block.set_origin(block.origin().in_module(module));
        }
    }

    /// Whether it has a role now.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        let bits = self.roles.bits.load(Ordering::Acquire);
        match role {
            Role::Gradient => bits & (SAVED_ONE - GRADIENT_ONE) != 0,
            Role::Saved => bits >= SAVED_ONE,
            lasting => bits & lasting.bits() != 0,
        }
    }

    /// What the bytes are counted as.
    pub(crate) fn kind(&self) -> Kind {
        self.roles.kind(self.roles.bits.load(Ordering::Acquire))
    }

    fn tell_kind(&self) {
        // Under the lock the roles are read again, so that of two racing changes the later one is
        // told last.
        let mut place = self.place.lock();
        if let Whereabouts::Foreign(foreign) = &mut *place {
            foreign.external.set_kind(self.kind());
        } else if let Some(block) = place.block() {
            block.set_kind(self.kind());
        }
    }
}
