//! Dropping long chains without recursion. What owns the next link would drop it from within its
//! own drop, once per link, and overflow the stack. Here a dying owner hands what it owned to a
//! list of its thread; only the outermost drop empties the list, and drops nested in that add to
//! it. Graphs (`autograd/release.rs`) and recipes (`storage/release.rs`) have a list each.

use std::cell::RefCell;
use std::thread::LocalKey;

/// What waits to be dropped; `None` while nothing is being dropped on this thread.
pub(crate) type Pending<T> = RefCell<Option<Vec<T>>>;

/// Drops `remains`, after whatever this thread is dropping already from the same list.
pub(crate) fn drop_iteratively<T>(pending: &'static LocalKey<Pending<T>>, remains: T) {
    let mut next = Some(remains);
    // Once the thread's locals are gone (a drop inside another local's destructor), recursion is
    // all that is left.
    let outermost = pending.try_with(|pending| match &mut *pending.borrow_mut() {
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
        while let Some(remains) = next {
            drop(remains);
            next = pending.with(|pending| pending.borrow_mut().as_mut().and_then(Vec::pop));
        }
        pending.with(|pending| *pending.borrow_mut() = None);
    }
}
