//! Walks over a tree of modules: what a module owns, and all modules below it with their paths, in
//! PyTorch's order (a module before its children, own tensors before those of children).

use std::any::Any;

use plimsoll_tensor::Parameter;

use crate::name::joined;
use crate::{Buffer, Module, Name, Training, Visitor};

/// What one module has of its own.
#[derive(Default)]
pub(crate) struct Own<'m> {
    pub(crate) parameters: Vec<(Name<'m>, &'m Parameter)>,
    pub(crate) buffers: Vec<(Name<'m>, &'m Buffer)>,
    pub(crate) modules: Vec<(Name<'m>, &'m dyn Module)>,
    pub(crate) training: Option<&'m Training>,
}

impl<'m> Own<'m> {
    pub(crate) fn of<M: Module + ?Sized>(module: &'m M) -> Own<'m> {
        let mut own = Own::default();
        module.visit(&mut own);
        own
    }
}

impl<'m> Visitor<'m> for Own<'m> {
    fn module(&mut self, name: Name<'m>, module: &'m dyn Module) {
        self.modules.push((name, module));
    }

    fn parameter(&mut self, name: Name<'m>, parameter: &'m Parameter) {
        self.parameters.push((name, parameter));
    }

    fn buffer(&mut self, name: Name<'m>, buffer: &'m Buffer) {
        self.buffers.push((name, buffer));
    }

    fn training(&mut self, training: &'m Training) {
        self.training = Some(training);
    }
}

/// Whether both are one module: fields lie at the address of the struct that they are first in, so
/// the type counts too.
pub(crate) fn is_same(a: &dyn Module, b: &dyn Module) -> bool {
    address(a) == address(b) && (a as &dyn Any).type_id() == (b as &dyn Any).type_id()
}

pub(crate) fn address(module: &dyn Module) -> usize {
    std::ptr::from_ref(module).cast::<()>().addr()
}

/// Calls `each` for the module and all below it, with their paths; a module that several share is
/// seen at each of its paths.
pub(crate) fn each<'m>(
    path: &str,
    module: &'m dyn Module,
    see: &mut dyn FnMut(&str, &'m dyn Module, &Own<'m>),
) {
    let own = Own::of(module);
    see(path, module, &own);
    for (name, child) in &own.modules {
        each(&joined(path, *name), *child, see);
    }
}

/// Every parameter with its key; a tied one under each.
pub(crate) fn parameters(module: &dyn Module) -> Vec<(String, Parameter)> {
    let mut found = Vec::new();
    each("", module, &mut |path, _, own| {
        let keys = own.parameters.iter().map(|(name, tensor)| (joined(path, *name), *tensor));
        found.extend(keys.map(|(key, parameter)| (key, parameter.clone())));
    });
    found
}

/// Every buffer with its key; a shared one under each.
pub(crate) fn buffers(module: &dyn Module) -> Vec<(String, Buffer)> {
    let mut found = Vec::new();
    each("", module, &mut |path, _, own| {
        let keys = own.buffers.iter().map(|(name, buffer)| (joined(path, *name), *buffer));
        found.extend(keys.map(|(key, buffer)| (key, buffer.clone())));
    });
    found
}

/// The first of those that are the same.
pub(crate) fn once<T>(
    entries: Vec<(String, T)>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<(String, T)> {
    let mut kept: Vec<(String, T)> = Vec::with_capacity(entries.len());
    for (key, entry) in entries {
        if !kept.iter().any(|(_, known)| is_same(known, &entry)) {
            kept.push((key, entry));
        }
    }
    kept
}
