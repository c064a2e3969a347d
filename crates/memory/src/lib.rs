//! Plimsoll memory.

mod configuration;
mod history;

pub use configuration::{
    CONFIGURATION_VARIABLE, Configuration, ConfigurationBuilder, GivenBy, Key, Setting,
};
pub use history::HistoryLevel;
