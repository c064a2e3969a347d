//! The configuration of the process: what a program installed before anything asked, else what the
//! environment says. Devices, the thread pool and the kernels all read this one.

use std::sync::OnceLock;

use plimsoll_core::{Error, Result};

use super::Configuration;

/// An error is kept as its text: every asker gets it.
static PROCESS: OnceLock<Result<Configuration, String>> = OnceLock::new();

impl Configuration {
    /// The configuration of the process. The first call fixes it: the installed one, or
    /// [`Configuration::from_environment`].
    ///
    /// # Errors
    /// If `PLIMSOLL_CONF` is wrong, at every call until the program is started with a right one.
    pub fn process() -> Result<&'static Configuration> {
        let fixed = PROCESS
            .get_or_init(|| Configuration::from_environment().map_err(|error| error.to_string()));
        fixed.as_ref().map_err(|message| Error::configuration(message.clone()))
    }

    /// Makes this the configuration of the process.
    ///
    /// # Errors
    /// If one is in force already: parts of the process have acted on it, so it cannot change.
    ///
    /// ```
    /// use plimsoll_memory::Configuration;
    /// let configuration = Configuration::builder().spill(true).build()?;
    /// configuration.install()?;
    /// assert!(Configuration::process()?.spill());
    /// assert!(Configuration::default().install().is_err());
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn install(self) -> Result<()> {
        PROCESS.set(Ok(self)).map_err(|_| {
            Error::configuration(
                "a configuration is in force already; install one before the first tensor is made",
            )
        })
    }
}
