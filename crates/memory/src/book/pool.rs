//! The two pools that statistics tell apart. Which one a request goes to is
//! `allocator/size_class.rs`.

/// Which of the two pools a block lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Pool {
    /// Blocks of up to 1 MiB, in segments of 2 MiB.
    Small = 0,
    /// Larger blocks.
    Large = 1,
}
