//! The dictionary keys of the layout. They are interned first, in this order, so that a key's text
//! number is its place here and telling an event from a frame costs a few bit tests.

use crate::events::Action;
use crate::strings::{Strings, TextId};

macro_rules! keys {
    ($($name:ident = $text:literal),* $(,)?) => {
        $(pub(super) const $name: u32 = place($text);)*
        const TEXTS: &[&str] = &[$($text),*];
    };
}

/// A key's place in the list, counted from 1: the empty text comes before.
const fn place(text: &str) -> u32 {
    let mut at = 0;
    while at < TEXTS.len() {
        if equal(TEXTS[at].as_bytes(), text.as_bytes()) {
            return at as u32 + 1;
        }
        at += 1;
    }
    0
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

keys! {
    ACTION = "action", ADDR = "addr", SIZE = "size", STREAM = "stream", TIME_US = "time_us",
    FRAMES = "frames", CATEGORY = "category", DEVICE_FREE = "device_free",
    COMPILE_CONTEXT = "compile_context", USER_METADATA = "user_metadata", POOL_ID = "pool_id",
    FORWARD_FRAMES = "forward_frames", NAME = "name", FILENAME = "filename", LINE = "line",
    ADDRESS = "address", REQUESTED_SIZE = "requested_size", STATE = "state", STEP = "step",
    HISTORY = "history", REAL_SIZE = "real_size", BLOCKS = "blocks", TOTAL_SIZE = "total_size",
    DEVICE = "device", SEGMENT_TYPE = "segment_type", SEGMENT_POOL_ID = "segment_pool_id",
    IS_EXPANDABLE = "is_expandable", SEGMENTS = "segments", DEVICE_TRACES = "device_traces",
    ALLOCATOR_SETTINGS = "allocator_settings", EXTERNAL_ANNOTATIONS = "external_annotations",
    HOST_SEGMENTS = "host_segments", HOST_TRACES = "host_traces", STAGE = "stage",
    PLIMSOLL = "plimsoll", DEVICES = "devices",
}

/// Puts the keys into a fresh table, and after them the words for actions.
pub(super) fn intern(strings: &mut Strings) {
    for text in TEXTS.iter().copied().chain(Action::KNOWN.map(Action::word)) {
        strings.intern(text);
    }
}

/// The action of a word that was interned above, without comparing texts.
pub(super) fn action(word: TextId) -> Option<Action> {
    // The empty text comes before the keys.
    let at = (word.0 as usize).checked_sub(TEXTS.len() + 1)?;
    Action::KNOWN.get(at).copied()
}

/// A set of keys, as bits; keys past 63 do not occur above.
pub(super) const fn bit(key: u32) -> u64 {
    1 << key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbers() {
        let mut strings = Strings::default();
        intern(&mut strings);
        assert_eq!(strings.find("action").map(|id| id.0), Some(ACTION));
        assert_eq!(strings.find("devices").map(|id| id.0), Some(DEVICES));
        assert!(TEXTS.len() < 64);
        for known in Action::KNOWN {
            assert_eq!(strings.find(known.word()).and_then(action), Some(known));
        }
        assert_eq!(action(TextId(DEVICES)), None);
    }
}
