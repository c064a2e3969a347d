//! Any text as a configuration: never a panic, and what is accepted says the same when it is
//! written out and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_memory::Configuration;

fn values(configuration: &Configuration) -> Vec<(&'static str, String)> {
    configuration.describe().into_iter().map(|setting| (setting.key, setting.value)).collect()
}

fn reads_back(configuration: &Configuration) {
    let text = configuration.to_text();
    let again = Configuration::parse(&text).unwrap_or_else(|error| {
        panic!("`{text}` was accepted, but written out is refused: {error}")
    });
    assert_eq!(values(configuration), values(&again), "{text}");
}

fuzz_target!(|text: &str| {
    for read in [Configuration::parse(text), Configuration::parse_toml(text)] {
        match read {
            Ok(configuration) => reads_back(&configuration),
            Err(error) => {
                assert!(error.is_configuration(), "{error:?}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
});
