//! The name of a module in another: a visit that looks for an address and a type.

use std::any::{Any, TypeId};
use std::ops::Range;

use smallvec::SmallVec;

use crate::visit::Elements;
use crate::{Module, Name, Visitor, walk};

/// The last name first.
pub(crate) type Names<'m> = SmallVec<[Name<'m>; 4]>;

/// The names on the way from `outer` to `module`, innermost first; none if it is not there.
///
/// Almost always it is a field of `outer`, or an element of a list that is one. Else `outer` calls
/// across a module that it does not call itself (`self.decoder.head.call(..)`): the field that the
/// address lies in is looked into, and at last everything.
pub(crate) fn names_of<'m>(outer: &'m dyn Module, module: &dyn Module) -> Names<'m> {
    let (address, kind) = (walk::address(module), (module as &dyn Any).type_id());
    for reach in [Reach::Fields, Reach::Around, Reach::All] {
        let mut search = Search { address, kind, reach, names: Names::new() };
        outer.visit(&mut search);
        if !search.names.is_empty() {
            return search.names;
        }
    }
    Names::new()
}

/// Which children are looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Lists and maps alone.
    Fields,
    /// Those too that the address lies in.
    Around,
    All,
}

struct Search<'m> {
    address: usize,
    kind: TypeId,
    reach: Reach,
    names: Names<'m>,
}

impl<'m> Visitor<'m> for Search<'m> {
    #[inline]
    fn module(&mut self, name: Name<'m>, module: &'m dyn Module) {
        if !self.names.is_empty() {
            return;
        }
        let address = walk::address(module);
        if address == self.address && (module as &dyn Any).type_id() == self.kind {
            self.names.push(name);
            return;
        }
        let looks_into = match self.reach {
            Reach::Fields => module.is_container(),
            Reach::Around => {
                let end = address + size_of_val(module);
                module.is_container() || (address..end).contains(&self.address)
            }
            Reach::All => true,
        };
        if looks_into {
            module.visit(self);
            if !self.names.is_empty() {
                self.names.push(name);
            }
        }
    }

    fn elements(&mut self, elements: Elements) -> Range<usize> {
        match elements.at(self.address) {
            Some(index) => index..index + 1,
            // It may lie behind a pointer.
            None => 0..elements.len(),
        }
    }
}
