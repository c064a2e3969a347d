//! The line of the user's program that asked for memory. A site is captured once, in the API method
//! (`#[track_caller]` is lost through function pointers and closures), and handed on; a
//! thread-local override serves Python frames and backward. Who asked in full (operation, module,
//! phase) is an origin: see `intern.rs`.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::OnceLock;

/// A line of the user's program.
///
/// ```
/// use plimsoll_memory::Site;
/// let site = Site::caller();
/// assert!(site.to_string().contains(':'));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Site {
    /// Nobody said.
    #[default]
    Unknown,
    /// A line of Rust.
    Rust(&'static Location<'static>),
    /// A frame of another language, by the number its binding gave it. It is turned into words by
    /// the resolver only when a report is made ([`set_foreign_resolver`]).
    Foreign(u32),
}

/// A site in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSite {
    /// The file, as the compiler or interpreter names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function, or an empty text where it is not known (Rust does not tell).
    pub function: String,
}

thread_local! {
    static OVERRIDE: Cell<Option<Site>> = const { Cell::new(None) };
}

static FOREIGN_RESOLVER: OnceLock<fn(u32) -> Option<ResolvedSite>> = OnceLock::new();

impl Site {
    /// The caller's line, or the override that is in force on this thread.
    #[track_caller]
    #[inline(always)]
    pub fn caller() -> Site {
        let here = Location::caller();
        // A thread that is shutting down has no override any more; its drops still need a site.
        match OVERRIDE.try_with(Cell::get) {
            Ok(Some(site)) => site,
            _ => Site::Rust(here),
        }
    }

    /// The override that is in force on this thread, for callers that have no line of their own
    /// (drops, derivatives, which the engine runs in the name of the forward line).
    #[inline]
    pub fn in_force() -> Site {
        OVERRIDE.try_with(Cell::get).ok().flatten().unwrap_or_default()
    }

    /// The site in words, if it is known and its binding still has it.
    pub fn resolve(self) -> Option<ResolvedSite> {
        match self {
            Site::Unknown => None,
            Site::Rust(location) => Some(ResolvedSite {
                file: location.file().to_string(),
                line: location.line(),
                function: String::new(),
            }),
            Site::Foreign(id) => FOREIGN_RESOLVER.get().and_then(|resolve| resolve(id)),
        }
    }

    /// A word that differs between sites that differ; equal sites may have several (one line can
    /// have more than one `Location` in memory). Locations are aligned, so the low bit is free to
    /// tell foreign numbers from addresses.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        match self {
            Site::Unknown => 0,
            Site::Rust(location) => std::ptr::from_ref(location).addr() as u64,
            Site::Foreign(id) => u64::from(id) << 1 | 1,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.resolve()) {
            (_, Some(site)) if site.function.is_empty() => {
                f.pad(&format!("{}:{}", site.file, site.line))
            }
            (_, Some(site)) => f.pad(&format!("{}:{} ({})", site.file, site.line, site.function)),
            (Site::Foreign(id), None) => f.pad(&format!("foreign frame {id}")),
            (_, None) => f.pad("unknown line"),
        }
    }
}

/// Registers how numbers of foreign frames are turned into words. The first registration stays;
/// returns whether this was it.
pub fn set_foreign_resolver(resolve: fn(u32) -> Option<ResolvedSite>) -> bool {
    FOREIGN_RESOLVER.set(resolve).is_ok()
}

/// While this guard lives, [`Site::caller`] on this thread answers with its site.
#[derive(Debug)]
pub struct SiteScope {
    previous: Option<Site>,
    // Guards put thread-local state back, so they must not move to another thread.
    not_send: PhantomData<*const ()>,
}

impl SiteScope {
    /// Starts answering with `site`, until the guard drops.
    #[must_use = "the site is in force only while the guard lives"]
    pub fn enter(site: Site) -> SiteScope {
        let previous = OVERRIDE.try_with(|current| current.replace(Some(site))).ok().flatten();
        SiteScope { previous, not_send: PhantomData }
    }

    /// Lets callers answer with their own lines again, until the guard drops: for a function of the
    /// user's that is called by one that runs in somebody else's name.
    ///
    /// ```
    /// use plimsoll_memory::{Site, SiteScope, with_site};
    /// with_site(Site::Foreign(7), || {
    ///     let own = SiteScope::lift();
    ///     assert!(matches!(Site::caller(), Site::Rust(_)));
    ///     drop(own);
    ///     assert_eq!(Site::caller(), Site::Foreign(7));
    /// });
    /// ```
    #[must_use = "callers have their own lines only while the guard lives"]
    pub fn lift() -> SiteScope {
        let previous = OVERRIDE.try_with(Cell::take).ok().flatten();
        SiteScope { previous, not_send: PhantomData }
    }
}

impl Drop for SiteScope {
    fn drop(&mut self) {
        let _ = OVERRIDE.try_with(|current| current.set(self.previous));
    }
}

/// Runs `f` with `site` in force on this thread.
///
/// ```
/// use plimsoll_memory::{Site, with_site};
/// assert_eq!(with_site(Site::Foreign(7), Site::caller), Site::Foreign(7));
/// ```
pub fn with_site<R>(site: Site, f: impl FnOnce() -> R) -> R {
    let _scope = SiteScope::enter(site);
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_nest_and_end() {
        let plain = Site::caller();
        assert!(matches!(plain, Site::Rust(_)));
        with_site(Site::Foreign(1), || {
            assert_eq!(with_site(Site::Foreign(2), Site::caller), Site::Foreign(2));
            assert_eq!(Site::caller(), Site::Foreign(1));
        });
        assert!(matches!(Site::caller(), Site::Rust(_)));
    }

    #[test]
    fn bits_tell_sites_apart() {
        let here = Site::caller();
        assert_eq!(here.bits() & 1, 0);
        assert_eq!(Site::Foreign(0).bits(), 1);
        assert_ne!(Site::Foreign(3).bits(), Site::Foreign(4).bits());
        assert_eq!(Site::Unknown.bits(), 0);
    }

    #[test]
    fn a_rust_site_names_its_file_and_line() {
        let line = line!() + 1;
        let site = Site::caller().resolve().unwrap();
        assert!(site.file.ends_with("site.rs"));
        assert_eq!(site.line, line);
    }
}
