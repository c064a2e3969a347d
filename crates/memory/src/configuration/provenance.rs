//! Where each setting came from, and the list of them that `plimsoll doctor` and snapshots show.

use std::fmt;
use std::path::PathBuf;

use super::{CONFIGURATION_VARIABLE, Configuration, keys};

/// Where a setting came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GivenBy {
    /// Nobody set it.
    #[default]
    Default,
    /// The program chose it, where nobody set it.
    Program,
    /// A call on [`ConfigurationBuilder`](crate::ConfigurationBuilder).
    Builder,
    /// The environment variable `PLIMSOLL_CONF`, or text in its form.
    Text,
    /// A TOML file.
    File(PathBuf),
}

impl fmt::Display for GivenBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GivenBy::Default => f.pad("default"),
            GivenBy::Program => f.pad("program"),
            GivenBy::Builder => f.pad("builder"),
            GivenBy::Text => f.pad(CONFIGURATION_VARIABLE),
            GivenBy::File(path) => f.pad(&path.display().to_string()),
        }
    }
}

/// One line of [`Configuration::describe`].
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key as it is written in text and files.
    pub key: &'static str,
    /// The value in force, in the form that the key accepts.
    pub value: String,
    /// The unit, or the accepted words.
    pub unit: &'static str,
    /// What it does.
    pub help: &'static str,
    /// Who set it.
    pub given_by: GivenBy,
}

impl Configuration {
    /// Every key with its value in force and where it came from, for `plimsoll doctor`.
    ///
    /// ```
    /// use plimsoll_memory::{Configuration, GivenBy};
    /// let settings = Configuration::parse("threads:2").unwrap().describe();
    /// let threads = settings.iter().find(|s| s.key == "threads").unwrap();
    /// assert_eq!((threads.value.as_str(), &threads.given_by), ("2", &GivenBy::Text));
    /// ```
    pub fn describe(&self) -> Vec<Setting> {
        keys::KEYS
            .iter()
            .zip(&self.given_by)
            .map(|(key, given_by)| Setting {
                key: key.name,
                value: (key.show)(self),
                unit: key.unit,
                help: key.help,
                given_by: given_by.clone(),
            })
            .collect()
    }

    /// The settings that are not defaults, in the form of `PLIMSOLL_CONF`; snapshots carry it.
    pub fn to_text(&self) -> String {
        let given: Vec<String> = self
            .describe()
            .into_iter()
            .filter(|setting| setting.given_by != GivenBy::Default)
            .map(|setting| format!("{}:{}", setting.key, setting.value))
            .collect();
        given.join(",")
    }
}
