//! The page as a text: complete, the same from run to run, and safe whatever a snapshot calls its
//! files. `tests/page/` looks at it in a browser.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use plimsoll_report::view::{MOST_PAGE_EVENTS, Scene, html};
use plimsoll_report::{Action, Kind, Report, Snapshot, Trace, TraceEvent, open, read};
use support::sample;

fn page(snapshot: Snapshot, title: &str) -> String {
    let report = Report::of(snapshot, title);
    html(&Scene::of(&report), title).unwrap()
}

#[test]
fn it_needs_nothing_from_outside() {
    let snapshot = open(sample("clean_training")).unwrap();
    let text = page(snapshot.clone(), "clean");
    assert!(text.contains("default-src 'none'") && text.contains("connect-src 'none'"));
    for word in ["://", "src=", "@import", "url(", "{{", "}}\n<", "innerHTML", "eval("] {
        assert!(!text.contains(word), "{word}");
    }
    assert_eq!(text, page(snapshot, "clean"), "not the same from run to run");
}

#[test]
fn names_of_a_snapshot_are_never_markup() {
    let json = r#"{"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "frames": [
            {"name": "</script><script>alert(1)</script>", "filename": "{{script}}<b>.py", "line": 1}]}]]}"#;
    let snapshot = read(json.as_bytes()).unwrap();
    let text = page(snapshot, "<i>{{meta}}</i></script><img>\"&");
    assert!(!text.contains("alert(1)"), "the texts are packed");
    assert!(!text.contains("<img") && !text.contains("<i>"));
    assert!(
        text.contains(
            "&lt;i&gt;{{meta}}&lt;/i&gt;&lt;/script&gt;&lt;img&gt;&quot;&amp; · Plimsoll"
        )
    );
    assert_eq!(text.matches("</script>").count(), 3);
}

#[test]
fn a_snapshot_without_anything_has_a_page() {
    let empty = read(br#"{"segments": [], "device_traces": []}"#).unwrap();
    assert!(page(empty, "empty").contains("\"devices\":[]"));
}

#[test]
fn too_many_events_want_a_server() {
    let mut snapshot = Snapshot::default();
    let event = TraceEvent {
        action: Action::Other,
        addr: 0,
        size: 0,
        stream: 0,
        time_us: 0,
        stack: Default::default(),
        kind: Kind::Unknown,
    };
    for _ in 0..=MOST_PAGE_EVENTS {
        snapshot.events.push(event);
    }
    snapshot.traces.push(Trace { device: 0, rows: 0..MOST_PAGE_EVENTS + 1 });
    let report = Report::of(snapshot, "");
    let error = html(&Scene::of(&report), "large").unwrap_err().to_string();
    assert!(error.contains("--serve"), "{error}");
}
