//! Memory that the parts of one parallel job write, each its own region.

/// A pointer into the workspace that the parts of one job share.
#[derive(Clone, Copy, Debug)]
pub struct Shared<T>(pub *mut T);

// SAFETY: the methods hand each part of a job its own region, or a region that nobody writes
// meanwhile.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// `offset` lies in the workspace region this points to.
    #[inline(always)]
    pub unsafe fn add(self, offset: usize) -> *mut T {
        // SAFETY: by the contract above.
        unsafe { self.0.add(offset) }
    }
}
