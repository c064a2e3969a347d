//! A function together with the type of the elements it runs over.

use std::marker::PhantomData;

/// Carries an element type beside a function.
#[derive(Debug)]
pub(crate) struct On<F, T>(pub(crate) F, PhantomData<fn() -> T>);

impl<F, T> On<F, T> {
    /// `function` over elements of `T`.
    #[inline(always)]
    pub(crate) fn new(function: F) -> On<F, T> {
        On(function, PhantomData)
    }
}

impl<F: Copy, T> Clone for On<F, T> {
    fn clone(&self) -> On<F, T> {
        *self
    }
}

impl<F: Copy, T> Copy for On<F, T> {}
