//! Which streams of an asynchronous device have touched a storage, so that dispatch can order work on
//! different streams by itself and a free can wait for the streams that still use the bytes.
//!
//! Note [Safe code cannot race streams]
//! A stream executes in order, so work on one stream needs nothing. Before work on stream `s` reads a storage, `s` waits
//! for the newest write if that was on another stream; before it writes, `s` also waits for every other stream that read
//! since. Waiting means recording a fence at the end of the other stream's queue, which lies at or after the work
//! in question. A fence is only made when streams really differ, so single-stream programs never make one.

use parking_lot::Mutex;
use plimsoll_memory::StreamId;
use smallvec::SmallVec;

/// The streams that touched a storage. Untouched by synchronous devices.
#[derive(Default)]
pub(crate) struct StreamUses(Mutex<Uses>);

#[derive(Default)]
struct Uses {
    writer: Option<StreamId>,
    /// Streams that read since the newest write.
    readers: SmallVec<[StreamId; 2]>,
    /// Every stream that ever touched it.
    all: SmallVec<[StreamId; 2]>,
}

impl StreamUses {
    pub(crate) fn new() -> StreamUses {
        StreamUses::default()
    }

    /// Notes that work on `stream` touches the storage; calls `wait_for` with each stream that must be waited for first.
    pub(crate) fn note(&self, stream: StreamId, writes: bool, mut wait_for: impl FnMut(StreamId)) {
        let mut uses = self.0.lock();
        if let Some(writer) = uses.writer.filter(|&writer| writer != stream) {
            wait_for(writer);
        }
        if writes {
            for &reader in uses.readers.iter().filter(|&&reader| reader != stream) {
                wait_for(reader);
            }
            uses.readers.clear();
            uses.writer = Some(stream);
        } else if !uses.readers.contains(&stream) {
            uses.readers.push(stream);
        }
        if !uses.all.contains(&stream) {
            uses.all.push(stream);
        }
    }

    /// The streams other than `home` that touched the storage.
    pub(crate) fn for_each_other_than(&self, home: StreamId, mut visit: impl FnMut(StreamId)) {
        for &stream in self.0.lock().all.iter().filter(|&&stream| stream != home) {
            visit(stream);
        }
    }
}
