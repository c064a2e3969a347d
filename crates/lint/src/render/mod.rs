//! Findings as text, JSON, GitHub annotations or SARIF, and their counts. Pure functions from
//! findings to strings.

mod github;
mod json;
mod sarif;
mod statistics;
mod text;

use crate::finding::{Finding, Problem};
use crate::source::Source;

pub(crate) use statistics::statistics;

/// How findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people, with the source line.
    #[default]
    Text,
    /// An array of objects.
    Json,
    /// Annotations in GitHub's workflow logs.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
}

pub(crate) fn findings(
    found: &[(&Source, &Finding)],
    problems: &[Problem],
    format: Format,
) -> String {
    match format {
        Format::Text => text::render(found),
        Format::Json => json::render(found),
        Format::Github => github::render(found, problems),
        Format::Sarif => sarif::render(found, problems),
    }
}
