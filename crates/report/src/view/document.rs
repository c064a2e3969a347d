//! The HTML document: template, style and scripts of `page/` in one text, which needs no network
//! and may not use it. Scripts are separate files that share one scope, in the order below; there
//! is no build step.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_core::{Error, ErrorKind, Result};

use super::base64;
use super::payload;
use super::scene::Scene;

/// Events that a page can hold. The browser looks at every allocation for each drawing, which takes
/// it some 20 ms for so many.
pub const MOST_PAGE_EVENTS: usize = 2_000_000;

const TEMPLATE: &str = include_str!("page/index.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 18] = [
    include_str!("page/words.js"),
    include_str!("page/elements.js"),
    include_str!("page/columns.js"),
    include_str!("page/tables.js"),
    include_str!("page/local_timeline.js"),
    include_str!("page/local_shapes.js"),
    include_str!("page/local_moment.js"),
    include_str!("page/answers.js"),
    include_str!("page/palette.js"),
    include_str!("page/state.js"),
    include_str!("page/drawing.js"),
    include_str!("page/picture.js"),
    include_str!("page/overview.js"),
    include_str!("page/gestures.js"),
    include_str!("page/flame.js"),
    include_str!("page/panels.js"),
    include_str!("page/lists.js"),
    include_str!("page/main.js"),
];

/// The page of a small or medium snapshot: one file, complete in itself.
///
/// # Errors
/// If the snapshot has more than [`MOST_PAGE_EVENTS`] events; such a file wants a server.
pub fn html(scene: &Scene<'_>, title: &str) -> Result<String> {
    let events = scene.snapshot.events.len();
    if events > MOST_PAGE_EVENTS {
        return Err(Error::invalid_argument(format!(
            "{events} events are too many for one page (at most {MOST_PAGE_EVENTS}); \
             use `plimsoll view --serve`"
        )));
    }
    let mut columns = payload::tables(scene);
    payload::add_lives(scene, &mut columns);
    let packed = pack(&columns.finish())?;
    let mut coded = String::new();
    base64::encode_into(&packed, &mut coded);
    Ok(document(&payload::meta(scene, title, false).to_string(), title, &coded, "'none'"))
}

/// The page that asks a server of its own for what it draws.
pub(crate) fn served(scene: &Scene<'_>, title: &str) -> String {
    document(&payload::meta(scene, title, true).to_string(), title, "", "'self'")
}

/// Gzip without a time stamp, so that a page is the same from run to run. Browsers unpack it
/// themselves.
fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    let failed = |cause: std::io::Error| {
        Error::new(ErrorKind::Io, "cannot compress the page").because(cause)
    };
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(6));
    encoder.write_all(bytes).map_err(failed)?;
    encoder.finish().map_err(failed)
}

fn document(meta: &str, title: &str, columns: &str, connect: &str) -> String {
    // Data of a page is never run, whatever it says: only what carries the nonce is, and nothing
    // can be loaded from anywhere.
    let mut hasher = DefaultHasher::new();
    (meta, columns.len()).hash(&mut hasher);
    let nonce = format!("{:016x}", hasher.finish());
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src {connect}; base-uri 'none'; form-action 'none'"
    );
    // `<` would let a text of the snapshot end the element that it stands in.
    let meta = meta.replace('<', "\\u003c");
    let script = format!("(() => {{\n\"use strict\";\n{}\n}})();", SCRIPTS.join("\n"));
    let mut text =
        String::with_capacity(TEMPLATE.len() + script.len() + columns.len() + (64 << 10));
    // Only the template is searched for places, never what is put into it.
    for part in TEMPLATE.split("{{") {
        let Some((place, rest)) = part.split_once("}}") else {
            text.push_str(part);
            continue;
        };
        match place {
            "policy" => text.push_str(&policy),
            "nonce" => text.push_str(&nonce),
            "title" => text.push_str(&escaped(title)),
            "style" => text.push_str(STYLE),
            "script" => text.push_str(&script),
            "meta" => text.push_str(&meta),
            _ => text.push_str(columns),
        }
        text.push_str(rest);
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
