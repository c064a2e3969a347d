//! Frames and stacks, each kept once. A stack is a list of frames, innermost first, as PyTorch
//! writes them.

use std::collections::HashMap;
use std::fmt;

use crate::strings::TextId;

/// One frame: a function at a line of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function's name.
    pub function: TextId,
    /// The file's name as it was recorded.
    pub file: TextId,
    /// The line, or 0 where there is none.
    pub line: u32,
}

/// A frame of one [`Stacks`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A stack of one [`Stacks`] table. Equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack without frames: nothing was recorded, or the thread had no Python frames.
    pub const EMPTY: StackId = StackId(0);
}

/// Every frame and stack of a snapshot, in order of first appearance.
#[derive(Clone)]
pub struct Stacks {
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, FrameId>,
    /// Stack `i` is `members[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    members: Vec<FrameId>,
    /// By a hash of the frames; what shares a hash is compared.
    stack_ids: HashMap<u64, Vec<StackId>>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let mut stacks = Stacks {
            frames: Vec::new(),
            frame_ids: HashMap::new(),
            starts: vec![0],
            members: Vec::new(),
            stack_ids: HashMap::new(),
        };
        stacks.intern(&[]);
        stacks
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stacks({} of {} frames)", self.len(), self.frames.len())
    }
}

impl Stacks {
    /// The number of `frame`, new or known.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let next = FrameId(self.frames.len() as u32);
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// The number of the stack of `frames`, innermost first.
    pub fn intern(&mut self, frames: &[FrameId]) -> StackId {
        let hash = hash(frames);
        if let Some(known) = self.stack_ids.get(&hash) {
            for id in known {
                if self.frame_ids(*id) == frames {
                    return *id;
                }
            }
        }
        let id = StackId((self.starts.len() - 1) as u32);
        self.members.extend_from_slice(frames);
        self.starts.push(self.members.len() as u32);
        self.stack_ids.entry(hash).or_default().push(id);
        id
    }

    /// The frames of a stack as numbers, innermost first; none for a number of another table.
    pub fn frame_ids(&self, id: StackId) -> &[FrameId] {
        let at = id.0 as usize;
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.members[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> impl DoubleEndedIterator<Item = Frame> + '_ {
        self.frame_ids(id).iter().map(|frame| self.frame(*frame))
    }

    /// A frame by its number; an empty one for a number of another table.
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// How many different stacks there are, the empty one included.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Never: the empty stack is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many different frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Frames held by all stacks together; readers bound it.
    pub(crate) fn member_count(&self) -> usize {
        self.members.len()
    }
}

/// Spreads the frames' numbers. Not hostile-proof by itself: the map above hashes it again with a
/// key of its own, and stacks that share a hash are compared one by one, so a forged file costs its
/// own reader time and nothing else.
fn hash(frames: &[FrameId]) -> u64 {
    frames.iter().fold(0xcbf2_9ce4_8422_2325 ^ frames.len() as u64, |hash, frame| {
        (hash.rotate_left(23) ^ u64::from(frame.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_have_one_number() {
        let mut stacks = Stacks::default();
        let frame = |line| Frame { function: TextId(1), file: TextId(2), line };
        let (a, b) = (stacks.intern_frame(frame(1)), stacks.intern_frame(frame(2)));
        assert_eq!(stacks.intern_frame(frame(1)), a);
        let ab = stacks.intern(&[a, b]);
        assert_ne!(ab, stacks.intern(&[b, a]));
        assert_eq!(ab, stacks.intern(&[a, b]));
        assert_eq!(stacks.intern(&[]), StackId::EMPTY);
        assert_eq!(stacks.frames(ab).map(|f| f.line).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(stacks.frame_ids(StackId(99)), &[]);
    }
}
