//! The events of a trace as columns: one vector a field, one row an event. Ten million events take
//! 34 bytes each here; as objects they would take a kilobyte. Rows of one device lie together,
//! oldest first (see `Snapshot::traces`).

use crate::kind::Kind;
use crate::stacks::StackId;
use crate::strings::TextId;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Action {
    /// A block was handed out; `size` is what was asked for.
    Alloc,
    /// The program gave a block back; other streams may still use it.
    FreeRequested,
    /// The block went back to its pool.
    FreeCompleted,
    /// A segment came from the driver.
    SegmentAlloc,
    /// A segment went back to the driver.
    SegmentFree,
    /// Pages were mapped into an expandable segment.
    SegmentMap,
    /// Pages were unmapped from an expandable segment.
    SegmentUnmap,
    /// A snapshot was taken; `size` is the bytes in use.
    Snapshot,
    /// An allocation failed. `addr` is what the device had free, in bytes.
    Oom,
    /// A remark about a tensor; it moves no memory.
    Annotate,
    /// A word that this reader does not know. It moves no memory.
    Other,
}

impl Action {
    /// Every action that a file can name.
    pub const KNOWN: [Action; 10] = [
        Action::Alloc,
        Action::FreeRequested,
        Action::FreeCompleted,
        Action::SegmentAlloc,
        Action::SegmentFree,
        Action::SegmentMap,
        Action::SegmentUnmap,
        Action::Snapshot,
        Action::Oom,
        Action::Annotate,
    ];

    /// The word in files.
    pub fn word(self) -> &'static str {
        match self {
            Action::Alloc => "alloc",
            Action::FreeRequested => "free_requested",
            Action::FreeCompleted => "free_completed",
            Action::SegmentAlloc => "segment_alloc",
            Action::SegmentFree => "segment_free",
            Action::SegmentMap => "segment_map",
            Action::SegmentUnmap => "segment_unmap",
            Action::Snapshot => "snapshot",
            Action::Oom => "oom",
            Action::Annotate => "annotate",
            Action::Other => "other",
        }
    }

    /// The action of a word in a file. Some tools write `free` for a request and its completion in
    /// one.
    pub fn from_word(word: &str) -> Action {
        match word {
            "free" => Action::FreeCompleted,
            _ => Action::KNOWN.into_iter().find(|a| a.word() == word).unwrap_or(Action::Other),
        }
    }
}

/// One event, as a row that was read out or that is to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// What happened.
    pub action: Action,
    /// Where; for [`Action::Oom`] the device's free bytes.
    pub addr: u64,
    /// How many bytes.
    pub size: u64,
    /// The stream, as a place in [`Events::streams`].
    pub stream: u32,
    /// Microseconds since the epoch; 0 where the file has no times.
    pub time_us: u64,
    /// Who asked.
    pub stack: StackId,
    /// The kind, where the file says it.
    pub kind: Kind,
}

/// Every event of a snapshot, all devices together.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// What happened.
    pub action: Vec<Action>,
    /// Where; for [`Action::Oom`] the device's free bytes.
    pub addr: Vec<u64>,
    /// Bytes: requested ones for blocks, whole ones for segments.
    pub size: Vec<u64>,
    /// The stream, as a place in [`Events::streams`].
    pub stream: Vec<u32>,
    /// Microseconds since the epoch; 0 where the file has no times.
    pub time_us: Vec<u64>,
    /// Who asked.
    pub stack: Vec<StackId>,
    /// The kind, where the file says it.
    pub kind: Vec<Kind>,
    /// The streams as the file names them, in order of first appearance.
    pub streams: Vec<u64>,
    /// What only a few events have.
    pub extras: Extras,
}

/// Facts that few events carry, each list in order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// What `torch.compile` was doing.
    pub compile_context: Vec<(u32, TextId)>,
    /// What the program said about itself then.
    pub user_metadata: Vec<(u32, TextId)>,
    /// The pool, where it is not the default one.
    pub pool_id: Vec<(u32, (i64, i64))>,
    /// The stack of the forward operation, for what backward asked for.
    pub forward_stack: Vec<(u32, StackId)>,
}

impl Events {
    /// How many events there are.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// One row.
    ///
    /// # Panics
    /// If `row` is not below [`Events::len`].
    pub fn get(&self, row: usize) -> TraceEvent {
        TraceEvent {
            action: self.action[row],
            addr: self.addr[row],
            size: self.size[row],
            stream: self.stream[row],
            time_us: self.time_us[row],
            stack: self.stack[row],
            kind: self.kind[row],
        }
    }

    /// Adds a row at the end.
    pub fn push(&mut self, event: TraceEvent) {
        self.action.push(event.action);
        self.addr.push(event.addr);
        self.size.push(event.size);
        self.stream.push(event.stream);
        self.time_us.push(event.time_us);
        self.stack.push(event.stack);
        self.kind.push(event.kind);
    }

    /// The stack of forward that belongs to a row of backward, if it was recorded.
    pub fn forward_stack(&self, row: usize) -> Option<StackId> {
        find(&self.extras.forward_stack, row)
    }

    /// What the program said about itself at a row, if anything.
    pub fn user_metadata(&self, row: usize) -> Option<TextId> {
        find(&self.extras.user_metadata, row)
    }

    /// What `torch.compile` was doing at a row, if anything.
    pub fn compile_context(&self, row: usize) -> Option<TextId> {
        find(&self.extras.compile_context, row)
    }

    /// The pool of a row; (0, 0) is the default one.
    pub fn pool_id(&self, row: usize) -> (i64, i64) {
        find(&self.extras.pool_id, row).unwrap_or((0, 0))
    }
}

fn find<T: Copy>(list: &[(u32, T)], row: usize) -> Option<T> {
    list.binary_search_by_key(&row, |(at, _)| *at as usize).ok().map(|at| list[at].1)
}
