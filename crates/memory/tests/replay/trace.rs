//! The text form of a recorded trace (`tests/data/make_traces.py` writes it).

/// One event of a trace or of a generated pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TraceEvent {
    /// PyTorch reserved a segment here; the allocation that needed it follows.
    Segment {
        bytes: usize,
    },
    Allocate {
        id: usize,
        bytes: usize,
        stream: u64,
    },
    Free {
        id: usize,
    },
}

pub(crate) fn parse(text: &str) -> Vec<TraceEvent> {
    let number = |word: Option<&str>| word.and_then(|w| w.parse().ok()).expect("a whole number");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split(' ');
            match words.next() {
                Some("s") => TraceEvent::Segment { bytes: number(words.next()) },
                Some("a") => TraceEvent::Allocate {
                    id: number(words.next()),
                    bytes: number(words.next()),
                    stream: 0,
                },
                Some("f") => TraceEvent::Free { id: number(words.next()) },
                _ => panic!("not a line of a trace: {line}"),
            }
        })
        .collect()
}
