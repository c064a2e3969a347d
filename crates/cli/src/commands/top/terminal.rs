//! Fills the terminal with lines again and again until `q` is pressed, and leaves it as it was.
//! What the lines say is the caller's.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use plimsoll_core::{Error, ErrorKind, Result};
use plimsoll_live::{RawTerminal, terminal_size};

use super::screen::{Size, bold};

/// A second screen, without a cursor and with lines that end at its edge, and the first one again.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The other screen, while this lives.
struct Screen {
    keys: RawTerminal,
}

impl Screen {
    fn open() -> io::Result<Screen> {
        let keys = RawTerminal::enter()?;
        put(ENTER)?;
        Ok(Screen { keys })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = put(LEAVE);
    }
}

/// Shows what `frame` gives for the terminal's size, every so often, until `q`, Escape or Ctrl-C is
/// pressed or `frame` fails.
pub(super) fn show(
    every: Duration,
    mut frame: impl FnMut(Size) -> Result<Vec<String>>,
) -> Result<()> {
    let failed = |cause: io::Error| {
        Error::new(ErrorKind::Io, format!("the terminal cannot be used: {cause}"))
    };
    let screen = Screen::open().map_err(failed)?;
    loop {
        let began = Instant::now();
        let (columns, rows) = terminal_size().unwrap_or((80, 24));
        // The last row is for the keys.
        let lines = frame(Size { columns, rows: rows.saturating_sub(1) })?;
        draw(&lines, rows).map_err(failed)?;
        let left = every.saturating_sub(began.elapsed());
        // Any other key asks for a look at once; a window of another size does too.
        if let Some(b'q' | b'Q' | 0x1b | 0x03) = screen.keys.key(left).map_err(failed)? {
            return Ok(());
        }
    }
}

fn draw(lines: &[String], rows: usize) -> io::Result<()> {
    let has_colours = anstream::AutoStream::choice(&io::stdout()) != ColorChoice::Never;
    put(&screen_of(lines, rows, has_colours))
}

/// What draws the lines over whatever the screen shows.
fn screen_of(lines: &[String], rows: usize, has_colours: bool) -> String {
    let last = format!("{} quits", bold("q"));
    let lines = lines.iter().map(String::as_str).chain(std::iter::repeat(""));
    let shown = lines.take(rows.saturating_sub(1)).chain([last.as_str()]).map(|line| {
        // Erased before it is written: behind a line that fills the width the cursor is still on
        // its last place.
        match has_colours {
            true => format!("\x1b[2K{line}"),
            false => format!("\x1b[2K{}", anstream::adapter::strip_str(line)),
        }
    });
    format!("\x1b[H{}", shown.collect::<Vec<_>>().join("\r\n"))
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::screen_of;

    /// Erasing behind a line that fills the width would take its last character.
    #[test]
    fn lines_are_erased_before_they_are_written() {
        let full = "x".repeat(80);
        let screen = screen_of(std::slice::from_ref(&full), 3, false);
        assert_eq!(screen, format!("\x1b[H\x1b[2K{full}\r\n\x1b[2K\r\n\x1b[2Kq quits"));
    }
}
