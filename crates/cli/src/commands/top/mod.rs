//! `plimsoll top`: a running program's figures, live. Without a program it lists those that can be
//! looked at; with one it fills the terminal until `q` is pressed (`screen.rs` writes the lines,
//! `terminal.rs` shows them). `--device` shows the machine's GPUs instead (`gpus.rs`). Into a pipe
//! one frame goes as text.

mod cause;
mod gpus;
mod host_use;
mod screen;
mod terminal;

use std::io::IsTerminal;
use std::time::Duration;

use anstream::{print, println};
use plimsoll_core::{ByteSize, Error, Result};
use plimsoll_live::{Connection, Figures, Found, programs};

use crate::args;
use screen::ONCE;

/// How long one look takes, in which a step's time and growth are seen.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(options: &args::Top) -> Result<()> {
    let is_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let every = options.every.map_or(LOOK, Duration::from_secs_f64);
    if options.device {
        return match (is_screen && !options.once, options.every) {
            (true, _) => gpus::show(every),
            (false, Some(_)) if !options.once => gpus::print_every(every),
            _ => gpus::print_once(),
        };
    }
    let Some(wanted) = &options.program else { return list() };
    let program = chosen(wanted, &answering())?;
    let mut connection = Connection::open(&program.path)?;
    if is_screen && !options.once {
        return watch(&mut connection, every);
    }
    connection.figures()?;
    std::thread::sleep(LOOK);
    let figures = connection.figures()?;
    screen::lines(&figures, ONCE).iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Shows one program until a key or its end.
fn watch(connection: &mut Connection, every: Duration) -> Result<()> {
    let mut last: Option<Figures> = None;
    let ended = terminal::show(every, |size| {
        let figures = connection.figures()?;
        let lines = screen::lines(&figures, size);
        last = Some(figures);
        Ok(lines)
    });
    match (ended, last) {
        // What was last seen of a program that has ended may be what one looked for.
        (Err(error), Some(figures)) if connection.figures().is_err() => {
            screen::lines(&figures, ONCE).iter().for_each(|line| println!("{line}"));
            let Figures { process, .. } = &figures;
            println!("\n{} ({}) is no longer there: {error}", process.name, process.pid);
            Ok(())
        }
        (ended, _) => ended,
    }
}

/// Programs that serve figures, each with what it answers.
fn answering() -> Vec<(Found, Result<Figures>)> {
    let ask = |found: &Found| Connection::open(&found.path)?.figures();
    programs()
        .into_iter()
        .map(|found| {
            let figures = ask(&found);
            (found, figures)
        })
        .collect()
}

fn list() -> Result<()> {
    let found = answering();
    if found.is_empty() {
        println!(
            "no program can be looked at. Start one with `plimsoll watch --live`,\n\
             `plimsoll train` or `plimsoll run --live`, or call `plimsoll.serve_live()` in it."
        );
        return Ok(());
    }
    print!("{}", listed(&found));
    println!("\n`plimsoll top PID` shows one of them");
    Ok(())
}

fn listed(found: &[(Found, Result<Figures>)]) -> String {
    let mut text = format!(
        "\x1b[1m{:>8}  {:23} {:16} {:>8} {:>9} {:>10}\x1b[0m\n",
        "pid", "program", "runtime", "step", "a step", "process"
    );
    for (program, figures) in found {
        let pid = program.pid;
        text += &match figures {
            Ok(figures) => format!(
                "{pid:>8}  {:23} {:16} {:>8} {:>9} {:>10}\n",
                screen::start_of(&figures.process.name, 23),
                screen::start_of(&figures.process.runtime, 16),
                figures.step,
                figures.step_seconds.map_or("-".to_string(), screen::seconds),
                figures
                    .resident_bytes
                    .map_or("-".to_string(), |b| ByteSize(b as usize).to_string()),
            ),
            Err(error) => format!("{pid:>8}  {error}\n"),
        };
    }
    text
}

/// The program of a process id, or the one whose name has these words.
fn chosen(wanted: &str, found: &[(Found, Result<Figures>)]) -> Result<Found> {
    if let Ok(pid) = wanted.parse::<u32>() {
        let named = found.iter().find(|(program, _)| program.pid == pid);
        return named.map(|(program, _)| program.clone()).ok_or_else(|| not_there(pid));
    }
    let is_named = |figures: &Result<Figures>, fits: fn(&str, &str) -> bool| {
        figures.as_ref().is_ok_and(|figures| fits(&figures.process.name, wanted))
    };
    let of = |fits| found.iter().filter(|(_, figures)| is_named(figures, fits)).collect::<Vec<_>>();
    let exact = of(|name, wanted| name == wanted);
    let fitting = if exact.is_empty() { of(|name, wanted| name.contains(wanted)) } else { exact };
    match fitting[..] {
        [(program, _)] => Ok(program.clone()),
        [] => Err(Error::invalid_argument(format!(
            "no program that can be looked at is called `{wanted}`; `plimsoll top` lists those that can"
        ))),
        _ => {
            let pids: Vec<String> = fitting.iter().map(|(one, _)| one.pid.to_string()).collect();
            Err(Error::invalid_argument(format!(
                "{} programs are called `{wanted}`: name one by its process id, {}",
                pids.len(),
                pids.join(" or ")
            )))
        }
    }
}

/// Why a process cannot be looked at.
fn not_there(pid: u32) -> Error {
    let message = match host_use::user_of(pid) {
        Some((theirs, ours)) if theirs != ours => format!(
            "process {pid} belongs to another user ({theirs}): only that user can look at it"
        ),
        Some(_) => format!(
            "process {pid} runs, but does not serve its figures: start it with `plimsoll watch --live`, \
             `plimsoll train` or `plimsoll run --live`, or call `plimsoll.serve_live()` in it"
        ),
        None => format!(
            "there is no process {pid}, or it has ended; `plimsoll top` lists those that can be looked at"
        ),
    };
    Error::invalid_argument(message)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::ErrorKind;
    use plimsoll_live::Process;

    use super::*;

    fn program(pid: u32, name: &str) -> (Found, Result<Figures>) {
        let process = Process { pid, name: name.to_string(), ..Process::default() };
        let figures = Figures {
            process,
            step: 12,
            step_seconds: Some(0.0132),
            resident_bytes: Some(6 << 20),
            ..Figures::default()
        };
        (Found { pid, path: format!("{pid}.sock").into() }, Ok(figures))
    }

    #[test]
    fn a_program_is_chosen_by_id_or_name() {
        let found =
            [program(5, "train.py"), program(6, "train.py.old"), program(7, "a"), program(8, "a")];
        let pid = |wanted: &str| chosen(wanted, &found).map(|one| one.pid);
        assert_eq!(pid("7").unwrap(), 7);
        // A whole name wins over a part of others.
        assert_eq!(pid("train.py").unwrap(), 5);
        assert_eq!(pid("old").unwrap(), 6);
        let said = |wanted: &str| pid(wanted).unwrap_err().to_string();
        assert!(said("a").contains("2 programs are called `a`") && said("a").contains("7 or 8"));
        assert!(said("nobody").contains("no program that can be looked at is called `nobody`"));
        assert!(said("4294967295").contains("there is no process 4294967295"));
        let own = std::process::id().to_string();
        assert!(said(&own).contains("runs, but does not serve its figures"));
    }

    #[test]
    fn the_list_fits_80_columns() {
        let long = program(4_194_304, &"long_name".repeat(5));
        let failed = (
            Found { pid: 9, path: "9.sock".into() },
            Err(Error::new(ErrorKind::Io, "`9.sock` is not a socket".to_string())),
        );
        let text = listed(&[program(5, "train.py"), long, failed]);
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        let row = plain.lines().nth(1).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["5", "train.py", "12", "13.2", "ms", "6.00", "MiB"]);
        assert!(plain.contains("is not a socket"));
    }
}
