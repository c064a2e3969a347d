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
    let mut text = String::from("\x1b[H");
    for line in lines.iter().chain(std::iter::repeat(&String::new())).take(rows.saturating_sub(1)) {
        match has_colours {
            true => text += line,
            false => text += &anstream::adapter::strip_str(line).to_string(),
        }
        text += "\x1b[K\r\n";
    }
    text += &format!("{} quits\x1b[K", if has_colours { bold("q") } else { "q".to_string() });
    put(&text)
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
