//! What the command line says, as types. Ranges are checked here, so that commands get only what makes sense.

use clap::{Parser, Subcommand, ValueEnum};

/// A tensor runtime in which every byte is accounted for.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, max_term_width = 80)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what this machine offers and which settings are in force
    Doctor,
    /// List the operations and what each of them supports
    Ops(Ops),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ops {
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// An array of objects for programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }
}
