//! What goes into a module and comes out of it, as hooks see it: the tensors in it, in order.

use plimsoll_tensor::Tensor;

/// An input or a result of a module. Tensors, options, lists and tuples of them are values; for a
/// type of your own write `impl Values for Batch {}`, and hooks see no tensors in it.
pub trait Values {
    /// Shows every tensor, in order.
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        let _ = see;
    }

    /// Puts other tensors in their places, in the same order. What is borrowed stays.
    fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
        let _ = with;
    }
}

/// The tensors of a value.
pub(crate) fn tensors(value: &impl Values) -> Vec<Tensor> {
    let mut found = Vec::new();
    value.each_tensor(&mut |tensor| found.push(tensor.clone()));
    found
}

impl Values for Tensor {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        see(self);
    }

    fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
        if let Some(tensor) = with.next() {
            *self = tensor;
        }
    }
}

impl<V: Values> Values for &V {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        (**self).each_tensor(see);
    }
}

impl<V: Values> Values for &[V] {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|value| value.each_tensor(see));
    }
}

impl<V: Values> Values for Option<V> {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        if let Some(value) = self {
            value.each_tensor(see);
        }
    }

    fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
        if let Some(value) = self {
            value.replace_tensors(with);
        }
    }
}

impl<V: Values> Values for Vec<V> {
    fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|value| value.each_tensor(see));
    }

    fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
        self.iter_mut().for_each(|value| value.replace_tensors(with));
    }
}

macro_rules! none {
    ($($type:ty)*) => {
        $(impl Values for $type {})*
    };
}

none!(() bool f32 f64 i32 i64 u32 u64 usize);

macro_rules! tuples {
    ($(($($value:ident $index:tt),+))*) => {
        $(impl<$($value: Values),+> Values for ($($value,)+) {
            fn each_tensor(&self, see: &mut dyn FnMut(&Tensor)) {
                $(self.$index.each_tensor(see);)+
            }

            fn replace_tensors(&mut self, with: &mut dyn Iterator<Item = Tensor>) {
                $(self.$index.replace_tensors(with);)+
            }
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
}
