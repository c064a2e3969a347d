//! `plimsoll view FILE`: the picture of a snapshot as one page, or a server on loopback for files
//! too large for a page. Data, page and server are the report crate's.

use std::path::{Path, PathBuf};

use anstream::println;
use plimsoll_core::{ByteSize, Error, ErrorKind, Result};
use plimsoll_report::view::{MOST_PAGE_EVENTS, Scene, Server, html};
use plimsoll_report::{Report, open};

use crate::args;

pub(crate) fn run(options: &args::View) -> Result<()> {
    let snapshot = open(&options.file)?;
    let events = snapshot.events.len();
    if !options.serve && events > MOST_PAGE_EVENTS {
        let file = options.file.display();
        return Err(Error::invalid_argument(format!(
            "`{file}` has {events} events, too many for one page (at most {MOST_PAGE_EVENTS}); \
             look at it with `plimsoll view --serve {file}`"
        )));
    }
    let report = Report::of(snapshot, options.file.display().to_string());
    let scene = Scene::of(&report);
    let title = options.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match options.serve {
        true => serve(&scene, &title, options.port),
        false => write(&scene, &title, options),
    }
}

fn write(scene: &Scene<'_>, title: &str, options: &args::View) -> Result<()> {
    let page = html(scene, title)?;
    let output = options.output.clone().unwrap_or_else(|| beside(&options.file));
    std::fs::write(&output, &page).map_err(|cause| {
        let message = format!("cannot write `{}`", output.display());
        Error::new(ErrorKind::Io, message).because(cause)
    })?;
    println!("wrote {} ({}); open it in a browser", output.display(), ByteSize(page.len()));
    Ok(())
}

/// `run.pickle` -> `run.pickle.html`. The whole name is kept, so that nothing else is written over.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".html");
    PathBuf::from(name)
}

fn serve(scene: &Scene<'_>, title: &str, port: u16) -> Result<()> {
    let server = Server::bind(port)?;
    println!("open {} in a browser on this machine", server.url());
    println!("whoever has this address can see the snapshot; Ctrl-C ends");
    server.run(scene, title);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_written_beside_the_snapshot() {
        assert_eq!(beside(Path::new("runs/a.pickle")), PathBuf::from("runs/a.pickle.html"));
        assert_eq!(beside(Path::new("b")), PathBuf::from("b.html"));
    }
}
