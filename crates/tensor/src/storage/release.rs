//! Dropping chains of recipes without recursion.
//!
//! A dropped storage's recipe owns the storages it reads, which may be dropped ones themselves, so plain drops would recurse once per
//! link. Here a dying storage hands its recipe to a list of its thread; only the outermost drop empties the list.
//! (`autograd/release.rs` does the same for graphs.)

use std::cell::RefCell;

use super::recipe::Recipe;

thread_local! {
    /// Recipes that wait to be dropped; `None` while nothing is being dropped on this thread.
    static PENDING: RefCell<Option<Vec<Recipe>>> = const { RefCell::new(None) };
}

/// Drops the recipe of a dying storage, after whatever this thread is dropping already.
pub(super) fn recipe(recipe: Recipe) {
    let mut next = Some(recipe);
    // Once the thread's locals are gone (a drop inside another local's destructor), recursion is all that is left.
    let outermost = PENDING.try_with(|pending| match &mut *pending.borrow_mut() {
        Some(list) => {
            list.extend(next.take());
            false
        }
        empty => {
            *empty = Some(Vec::new());
            true
        }
    });
    if outermost == Ok(true) {
        while let Some(recipe) = next {
            drop(recipe);
            next = PENDING.with(|pending| pending.borrow_mut().as_mut().and_then(Vec::pop));
        }
        PENDING.with(|pending| *pending.borrow_mut() = None);
    }
}
