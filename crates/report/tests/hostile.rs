//! Bad files: truncated, corrupt, hostile and foreign ones give an error that says what is wrong
//! and where, in bounded memory and without a panic.

mod support;

use plimsoll_report::{Limits, Report, read, read_with};
use support::{sample, unpacked};

fn fault(bytes: &[u8]) -> String {
    read(bytes).map(|snapshot| format!("{snapshot:?}")).expect_err("this must not read").to_string()
}

#[test]
fn code_is_never_run() {
    // What `pickle.loads` would run `os.system` for.
    let attack = b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.";
    assert!(fault(attack).contains("at byte 14: opcode STACK_GLOBAL"), "{}", fault(attack));
    let old = b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R.";
    assert!(fault(old).contains("at byte 2: opcode GLOBAL"), "{}", fault(old));
    for (byte, name) in
        [(b'R', "REDUCE"), (b'b', "BUILD"), (b'i', "INST"), (0x81, "NEWOBJ"), (b'P', "PERSID")]
    {
        let text = fault(&[0x80, 2, b'N', byte, b'.']);
        assert!(
            text.contains(&format!("at byte 3: opcode {name}")) && text.contains("not data"),
            "{text}"
        );
    }
    assert!(fault(&[0x80, 2, 0xff]).contains("no opcode at all"));
}

#[test]
fn every_truncation_is_an_error() {
    let whole = unpacked(&sample("leak_cache"));
    for len in 0..whole.len() {
        let text = fault(&whole[..len]);
        assert!(text.contains("at byte"), "{len}: {text}");
    }
    let mut json = Vec::new();
    plimsoll_report::write_json(&read(&whole).unwrap(), &mut json).unwrap();
    for len in (0..json.len() - 2).step_by(7) {
        fault(&json[..len]);
    }
    let packed = std::fs::read(sample("leak_cache")).unwrap();
    for len in 0..packed.len() {
        fault(&packed[..len]);
    }
}

#[test]
fn every_changed_byte_reads_or_is_an_error() {
    let whole = unpacked(&sample("leak_cache"));
    for at in 0..whole.len() {
        for change in [0x00, 0x94] {
            let mut changed = whole.clone();
            changed[at] = change;
            if let Ok(snapshot) = read(&changed) {
                plimsoll_report::json(&plimsoll_report::Report::of(snapshot, "changed"));
            }
        }
    }
}

#[test]
fn claims_cost_nothing() {
    // A text, a number and a bytes object that claim 4 GiB and more, and a memo slot far away.
    for claim in [
        &b"\x80\x04X\xff\xff\xff\xff"[..],
        b"\x80\x04\x8b\xff\xff\xff\x7f",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\x7f",
    ] {
        assert!(fault(claim).contains("bytes should follow"), "{}", fault(claim));
    }
    assert!(fault(b"\x80\x04Nr\xff\xff\xff\xff.").contains("more memory than a snapshot"));
    assert!(
        fault(b"I99999999999999999999999999999999999999999999999999\n.").contains("not a pickle")
    );
    assert!(
        fault(b"(I99999999999999999999999999999999999999999999999999\nl.")
            .contains("not a dictionary")
    );
}

#[test]
fn lists_of_a_billion_and_deep_nesting_are_refused() {
    // Two bytes an item: a list that would take eight times the file's bytes.
    let limits = Limits { fixed_bytes: 0, ..Limits::default() };
    let mut long = b"\x80\x04](".to_vec();
    long.extend(std::iter::repeat_n(b"K\x01", 1_000_000).flatten());
    long.extend(b"e.");
    let text = read_with(&long, &limits).unwrap_err().to_string();
    assert!(text.contains("more memory than a snapshot"), "{text}");
    let mut deep = b"\x80\x04".to_vec();
    deep.extend(std::iter::repeat_n(b'(', 2_000_000));
    assert!(fault(&deep).contains("nested more than 1000 deep"));
    assert!(fault(&b"[".repeat(2_000_000)).contains("nested more than 1000 deep"));
    // A list that holds itself.
    let itself = fault(b"\x80\x04]\x94(h\x00h\x00e.");
    assert!(itself.contains("`address` is missing"), "{itself}");
}

#[test]
fn shared_parts_do_not_multiply() {
    // One event list, used for as many devices as the file has bytes for.
    let event = b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01u";
    let mut file = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](](".to_vec();
    event.iter().for_each(|byte| file.push(*byte));
    file.extend(b"e\x94");
    file.extend(b"h\x00".repeat(1000));
    file.extend(b"eu.");
    let text = fault(&file);
    assert!(text.contains("traces share their events"), "{text}");
}

#[test]
fn gzip_bombs_are_bounded_and_damage_is_told() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&vec![b' '; 4 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    let limits = Limits { unfolded_bytes: 1 << 20, ..Limits::default() };
    let text = read_with(&bomb, &limits).unwrap_err().to_string();
    assert!(text.contains("unfolds into more than 1048576 bytes"), "{text}");
    assert!(fault(&bomb[..bomb.len() / 2]).contains("gzip data is damaged"));
}

fn segment(blocks: &str) -> Vec<u8> {
    format!(
        "{{\"segments\": [{{\"device\": 0, \"address\": 4096, \"total_size\": 4096, \"stream\": 0, \"blocks\": [{blocks}]}}]}}"
    )
    .into_bytes()
}

#[test]
fn blocks_must_lie_where_they_say() {
    let block = |address: u64, size: u64| {
        format!(
            "{{\"address\": {address}, \"size\": {size}, \"requested_size\": 1, \"state\": \"inactive\", \"frames\": []}}"
        )
    };
    assert!(read(&segment(&(block(4096, 2048) + "," + &block(6144, 2048)))).is_ok());
    let overlapping = block(4096, 2048) + "," + &block(5000, 100);
    assert!(fault(&segment(&overlapping)).contains("overlaps the one before it"));
    assert!(fault(&segment(&block(4096, 5000))).contains("reaches out of it"));
    assert!(fault(&segment(&block(100, 10))).contains("overlaps the one before it"));
    assert!(fault(&segment(&block(u64::MAX - 1, 10))).contains("reaches out of it"));
    let two = "{\"segments\": [{\"address\": 0, \"total_size\": 10, \"blocks\": []}, \
               {\"address\": 5, \"total_size\": 10, \"blocks\": []}]}";
    assert!(fault(two.as_bytes()).contains("the segments at 0x0 and 0x5 overlap"));
    let past =
        "{\"segments\": [{\"address\": 18446744073709551615, \"total_size\": 10, \"blocks\": []}]}";
    assert!(fault(past.as_bytes()).contains("past the address space"));
}

#[test]
fn wrong_values_are_named() {
    for (event, part) in [
        ("{\"action\": \"alloc\", \"size\": -1}", "`size` is -1"),
        ("{\"action\": \"alloc\", \"size\": 1e3}", "`size` is not a whole number"),
        (
            "{\"action\": \"alloc\", \"addr\": 99999999999999999999999}",
            "`addr` is larger than 2^64",
        ),
        (
            "{\"action\": \"alloc\", \"addr\": 18446744073709551615, \"size\": 9}",
            "past the address space",
        ),
        ("{\"action\": 7}", "`action` is not a text"),
        ("{\"action\": \"alloc\", \"frames\": 7}", "`frames` is not a list"),
        ("{\"action\": \"alloc\", \"frames\": [7]}", "no frame"),
        ("{\"action\": \"alloc\"}, 7", "not a list of events"),
    ] {
        let text = fault(format!("{{\"device_traces\": [[{event}]]}}").as_bytes());
        assert!(text.contains(part), "{event}: {text}");
    }
}

/// Sizes that add up to more than any number holds: sums stop at the largest one.
#[test]
fn sizes_that_add_up_to_too_much_are_reported() {
    let half = u64::MAX / 2;
    let event = |action: &str, addr: u64| {
        format!("{{\"action\":\"{action}\",\"addr\":{addr},\"size\":{half},\"stream\":0}}")
    };
    let mut events: Vec<String> = (0..12).map(|addr| event("alloc", addr)).collect();
    events.extend((0..12).map(|addr| event("segment_free", addr)));
    events.extend((0..5).map(|addr| event("free_completed", addr)));
    let text = format!("{{\"segments\":[],\"device_traces\":[[{}]]}}", events.join(","));
    let report = Report::of(read(text.as_bytes()).unwrap(), "large");
    assert_eq!(report.devices[0].lives.peak.bytes, u64::MAX);
    assert!(!plimsoll_report::text(&report).is_empty());
}

#[test]
fn foreign_files_are_told_apart() {
    for (bytes, part) in [
        (&b""[..], "the file is empty"),
        (b"   \n", "the file is empty"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"<!doctype html>", "web page"),
        (b"\x7fELF", "a program"),
        (b"hello", "not a pickle, JSON or gzip file"),
        (b"{\"a\": 1}", "neither `segments` nor `device_traces`"),
        (b"[]", "neither `segments` nor `device_traces`"),
        (b"{\"segments\": 7}", "`segments` is not a list"),
        (b"\x80\x09N.", "protocol 9 is not known"),
        (b"{\"segments\": []} x", "something follows the end"),
    ] {
        let text = fault(bytes);
        assert!(text.contains(part), "{bytes:?}: {text}");
    }
}

#[test]
fn errors_of_files_name_the_file() {
    let text = plimsoll_report::open("/nowhere/at all.pickle").unwrap_err().to_string();
    assert!(text.contains("`/nowhere/at all.pickle`"), "{text}");
}
