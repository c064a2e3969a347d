//! Dropping chains of recipes without recursion: a dropped storage's recipe owns the storages it
//! reads, which may be dropped ones themselves. How: `drop_iteratively.rs`.

use std::cell::RefCell;

use super::recipe::Recipe;
use crate::drop_iteratively::{Pending, drop_iteratively};

thread_local! {
    static PENDING: Pending<Recipe> = const { RefCell::new(None) };
}

/// Drops the recipe of a dying storage.
pub(super) fn recipe(recipe: Recipe) {
    drop_iteratively(&PENDING, recipe);
}
