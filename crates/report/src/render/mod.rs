//! Reports as text, JSON, HTML, a flame graph and a trace, one file each. Renderers read a report
//! and never compute findings; the same report gives the same bytes every time.

pub(crate) mod flame;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod text;
pub(crate) mod trace;
