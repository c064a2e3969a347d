//! The visit of a module's own fields, which everything that is known of modules comes from: names,
//! states, moves, printing (`walk.rs`), and the name of a module that is called (`locate.rs`).

use std::ops::Range;

use plimsoll_tensor::Parameter;

use crate::{Buffer, Module, Name, Training};

/// Sees the fields of one module. Children are not descended into: a visitor does so itself, by
/// [`Module::visit`], if it wants to.
pub trait Visitor<'m> {
    /// A child.
    fn module(&mut self, name: Name<'m>, module: &'m dyn Module) {
        let _ = (name, module);
    }

    /// A parameter.
    fn parameter(&mut self, name: Name<'m>, parameter: &'m Parameter) {
        let _ = (name, parameter);
    }

    /// A buffer.
    fn buffer(&mut self, name: Name<'m>, buffer: &'m Buffer) {
        let _ = (name, buffer);
    }

    /// The module's mode.
    fn training(&mut self, training: &'m Training) {
        let _ = training;
    }

    /// Which elements of a list are worth a visit.
    fn elements(&mut self, elements: Elements) -> Range<usize> {
        0..elements.len
    }
}

/// Where the elements of a list lie, so that one of them is found without looking at the others.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    start: usize,
    size_bytes: usize,
    len: usize,
}

impl Elements {
    /// Those of a slice.
    pub fn of<T>(elements: &[T]) -> Elements {
        let start = elements.as_ptr().addr();
        Elements { start, size_bytes: size_of::<T>(), len: elements.len() }
    }

    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The element that the address lies in.
    pub(crate) fn at(self, address: usize) -> Option<usize> {
        let index = address.checked_sub(self.start)?.checked_div(self.size_bytes)?;
        (index < self.len).then_some(index)
    }
}
