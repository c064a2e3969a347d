//! Sites: the line of the program that a stack belongs to. The user's own line comes first; frames
//! of PyTorch, of installed packages, of Python itself and of C++ are folded away.

use std::collections::HashMap;

use super::code::{Code, CodeOf};
use crate::snapshot::Snapshot;
use crate::stacks::{Frame, StackId};

/// A site of one [`Sites`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// The sites of every stack of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    frames: Vec<Frame>,
    ids: HashMap<Frame, SiteId>,
    /// By stack: the innermost line of the user's own.
    of_stack: Vec<SiteId>,
    /// By stack: the user's own line from which the model was entered.
    caller_of_stack: Vec<SiteId>,
}

impl Sites {
    /// The site without a line: nothing was recorded, or the thread had no Python frames, as
    /// PyTorch's backward threads.
    pub const NOWHERE: SiteId = SiteId(0);

    /// Finds the site of every stack.
    pub fn of(snapshot: &Snapshot) -> Sites {
        let code = CodeOf::new(snapshot);
        let mut sites = Sites::default();
        sites.intern(Frame::default());
        for stack in (0..snapshot.stacks.len() as u32).map(StackId) {
            let (site, caller) = lines_of(snapshot, &code, stack);
            let (site, caller) = (sites.intern(site), sites.intern(caller));
            sites.of_stack.push(site);
            sites.caller_of_stack.push(caller);
        }
        sites
    }

    fn intern(&mut self, frame: Frame) -> SiteId {
        let next = SiteId(self.frames.len() as u32);
        let id = *self.ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// The innermost line of the user's own in a stack.
    pub fn of_stack(&self, stack: StackId) -> SiteId {
        self.of_stack.get(stack.0 as usize).copied().unwrap_or(Sites::NOWHERE)
    }

    /// The user's own line from which the model was entered: the one that a loop over steps
    /// contains. Where no model is entered, the innermost line.
    pub fn caller_of_stack(&self, stack: StackId) -> SiteId {
        self.caller_of_stack.get(stack.0 as usize).copied().unwrap_or(Sites::NOWHERE)
    }

    /// The frame of a site.
    pub fn frame(&self, site: SiteId) -> Frame {
        self.frames.get(site.0 as usize).copied().unwrap_or_default()
    }

    /// How many different sites there are, [`Sites::NOWHERE`] included.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Never: [`Sites::NOWHERE`] is always there.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// The innermost line of the user's own, and the one outside of the model.
fn lines_of(snapshot: &Snapshot, code: &CodeOf, stack: StackId) -> (Frame, Frame) {
    let frames = || snapshot.stacks.frames(stack);
    let user = |frame: &Frame| code.of(frame.file) == Code::User;
    let innermost = frames().find(user);
    let outside = {
        // From the outside in, up to the first frame of torch/nn/modules.
        let before_model = frames().rev().take_while(|frame| code.of(frame.file) != Code::Module);
        before_model.filter(user).last()
    };
    let python = frames().find(|frame| code.of(frame.file) != Code::Native);
    let site = innermost.or(python).or(frames().next()).unwrap_or_default();
    (site, outside.or(innermost).unwrap_or(site))
}
