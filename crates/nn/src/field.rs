//! What can be a field of a module, and what a visit makes of it: parameters, buffers, children,
//! and plain data, which is nothing to a visitor. The derive knows none of these types; it calls
//! [`Field::visit`] on every field.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_tensor::{
    Approximate, BagMode, DType, Device, DimList, InterpolateMode, Mode, PaddingOption, Parameter,
    Reduction, Scalar,
};

use crate::visit::Elements;
use crate::{Buffer, Hooks, Module, Name, Training, Visitor};

/// A type that a module can have as a field.
///
/// A plain tensor is none: it would be neither trained nor saved nor moved with the module.
///
/// ```compile_fail
/// #[derive(plimsoll_nn::Module)]
/// struct Net {
///     weight: plimsoll_tensor::Tensor, // `Tensor` cannot be a field of a module
/// }
/// ```
///
/// ```
/// #[derive(plimsoll_nn::Module)]
/// struct Net {
///     weight: plimsoll_nn::Parameter,
///     #[module(skip)]
///     last: std::sync::Mutex<Option<plimsoll_tensor::Tensor>>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a module",
    label = "neither a parameter, a buffer, a module nor plain data",
    note = "a tensor in a module is a `Parameter` (trained) or a `Buffer` (kept)",
    note = "derive `Module` for a type that has parameters, and mark any other with `#[module(skip)]`"
)]
pub trait Field: Send + Sync + 'static {
    /// Shows the visitor what this field is.
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>);

    /// Whether a visit shows nothing, whatever the value. A list of numbers is no list of modules.
    fn is_data() -> bool
    where
        Self: Sized,
    {
        false
    }

    /// PyTorch's name for a list of these, and for a map to these.
    fn container_names() -> [&'static str; 2]
    where
        Self: Sized,
    {
        ["ModuleList", "ModuleDict"]
    }
}

impl<M: Module> Field for M {
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        if !M::is_data() {
            visitor.module(name, self.as_dyn());
        }
    }

    fn is_data() -> bool {
        M::is_data()
    }
}

impl Field for Parameter {
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        visitor.parameter(name, self);
    }

    fn container_names() -> [&'static str; 2] {
        ["ParameterList", "ParameterDict"]
    }
}

impl Field for Buffer {
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        visitor.buffer(name, self);
    }

    fn container_names() -> [&'static str; 2] {
        ["BufferList", "BufferDict"]
    }
}

impl Field for Training {
    fn visit<'m>(&'m self, _: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        visitor.training(self);
    }
}

/// A field that is there or not has its own name where it is.
impl<F: Field> Field for Option<F> {
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        if let Some(field) = self {
            field.visit(name, visitor);
        }
    }

    fn is_data() -> bool {
        F::is_data()
    }

    fn container_names() -> [&'static str; 2] {
        F::container_names()
    }
}

/// A field that is made at the first call.
impl<F: Field> Field for OnceLock<F> {
    fn visit<'m>(&'m self, name: Name<'m>, visitor: &mut dyn Visitor<'m>) {
        if let Some(field) = self.get() {
            field.visit(name, visitor);
        }
    }

    fn is_data() -> bool {
        F::is_data()
    }
}

/// Types that are nothing to a visitor.
macro_rules! data {
    ($($(@$parameter:ident)? $type:ty;)*) => {
        $(impl $(<$parameter: Send + Sync + 'static>)? Field for $type {
            fn visit<'m>(&'m self, _: Name<'m>, _: &mut dyn Visitor<'m>) {}

            fn is_data() -> bool {
                true
            }
        })*
    };
}

data! {
    bool; char; f32; f64; u8; u16; u32; u64; u128; usize; i8; i16; i32; i64; i128; isize;
    (); String; &'static str; PathBuf; Duration; Hooks; @T PhantomData<T>;
    @T HashSet<T>; @T BTreeSet<T>;
    Approximate; BagMode; DType; Device; DimList; InterpolateMode; Mode; PaddingOption;
    Reduction; Scalar;
}

/// Modules that only stand for another one: its visit, its name, its hooks.
macro_rules! stands_for_another {
    ($($pointer:ident)*) => {
        $(impl<M: Module + ?Sized> Module for $pointer<M> {
            fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
                (**self).visit(visitor);
            }

            fn as_dyn(&self) -> &dyn Module {
                (**self).as_dyn()
            }

            fn type_name(&self) -> &'static str {
                (**self).type_name()
            }

            fn extra_repr(&self) -> String {
                (**self).extra_repr()
            }

            fn hooks(&self) -> Option<&Hooks> {
                (**self).hooks()
            }

            fn is_container(&self) -> bool {
                (**self).is_container()
            }

            fn is_builtin(&self) -> bool {
                (**self).is_builtin()
            }
        })*
    };
}

stands_for_another!(Box Arc);

/// What every container says of itself.
macro_rules! container {
    ($data:expr, $name:expr) => {
        fn as_dyn(&self) -> &dyn Module {
            self
        }

        fn type_name(&self) -> &'static str {
            $name
        }

        fn is_container(&self) -> bool {
            true
        }

        fn is_data() -> bool {
            $data
        }
    };
}

impl<F: Field> Module for Vec<F> {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for index in visitor.elements(Elements::of(self)) {
            self[index].visit(Name::Index(index), visitor);
        }
    }

    container!(F::is_data(), F::container_names()[0]);
}

impl<F: Field, const N: usize> Module for [F; N] {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for index in visitor.elements(Elements::of(self)) {
            self[index].visit(Name::Index(index), visitor);
        }
    }

    container!(F::is_data(), F::container_names()[0]);
}

impl<F: Field> Module for BTreeMap<String, F> {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for (key, field) in self {
            field.visit(Name::Key(key), visitor);
        }
    }

    container!(F::is_data(), F::container_names()[1]);
}

/// In the order of the keys, so that a state is the same in every run.
impl<F: Field, S: std::hash::BuildHasher + Send + Sync + 'static> Module for HashMap<String, F, S> {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        let mut fields: Vec<(&String, &F)> = self.iter().collect();
        fields.sort_by_key(|(key, _)| *key);
        for (key, field) in fields {
            field.visit(Name::Key(key), visitor);
        }
    }

    container!(F::is_data(), F::container_names()[1]);
}

/// Tuples are lists of fields of several types.
macro_rules! tuples {
    ($(($($field:ident $index:tt),+))*) => {
        $(impl<$($field: Field),+> Module for ($($field,)+) {
            fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
                $(self.$index.visit(Name::Index($index), visitor);)+
            }

            container!($($field::is_data() &&)+ true, "ModuleList");
        })*
    };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
