//! Dropping chains of recipes without recursion: a dropped storage's recipe owns the storages it
//! reads, which may be dropped ones themselves. How: `drop_in_turn.rs`.

use std::cell::RefCell;

use super::recipe::Recipe;
use crate::drop_in_turn::{Pending, drop_in_turn};

thread_local! {
    static PENDING: Pending<Recipe> = const { RefCell::new(None) };
}

/// Drops the recipe of a dying storage.
pub(super) fn recipe(recipe: Recipe) {
    drop_in_turn(&PENDING, recipe);
}
