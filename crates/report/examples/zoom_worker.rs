//! Opens a snapshot as `plimsoll view --serve` does, asks the server for random windows over
//! loopback as a browser would, and prints what it took: `zoom_worker FILE WINDOWS`. It fails if
//! that is more than was promised. Peak memory is the process's own (`VmHWM`). `cargo xtask bench
//! large-report` runs it.

// This is a program for a terminal.
#![allow(clippy::print_stdout)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use plimsoll_report::view::{Scene, Server};
use plimsoll_report::{Report, open, text};

/// Bytes of memory that a byte of file may cost.
const MOST_BYTES_PER_BYTE: f64 = 4.0;
/// Milliseconds that an answer may take.
const SLOWEST_MS: f64 = 200.0;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(windows)) = (arguments.next(), arguments.next()) else {
        return Err("usage: zoom_worker FILE WINDOWS".into());
    };
    let bytes = std::fs::metadata(&file)?.len();
    let start = Instant::now();
    let snapshot = open(&file)?;
    let events = snapshot.events.len();
    stage("read", start, bytes)?;
    let report = Report::of(snapshot, file.as_str());
    assert!(!text(&report).is_empty(), "a report is never empty");
    stage("report", start, bytes)?;
    let scene = Scene::of(&report);
    stage("scene", start, bytes)?;
    let server = Server::bind(0)?;
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&scene, "large"));
        let outcome = zoom(&server, &report, windows.parse()?);
        server.stop();
        outcome
    })?;
    println!("{events} events, {bytes} bytes");
    stage("end", start, bytes)
}

/// The time so far, and the most memory so far by byte of file.
fn stage(name: &str, start: Instant, file_bytes: u64) -> Outcome<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let peak = 1024 * line.split_whitespace().nth(1).ok_or("no figure")?.parse::<u64>()?;
    let ratio = peak as f64 / file_bytes as f64;
    println!(
        "{name}: {:.2} s, peak {peak} bytes, {ratio:.3} of the file",
        start.elapsed().as_secs_f64()
    );
    match ratio <= MOST_BYTES_PER_BYTE {
        true => Ok(()),
        false => {
            Err(format!("more than {MOST_BYTES_PER_BYTE} bytes for each byte of the file").into())
        }
    }
}

/// Random windows of every width; the slowest answer of each route.
fn zoom(server: &Server, report: &Report, windows: u32) -> Outcome<()> {
    let lives = &report.devices[0].lives;
    let (last, height) = (u64::from(lives.last_position()), lives.peak.bytes.max(1));
    let mut seed = 7u64;
    let mut below = |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end.max(1)
    };
    let mut took: [Vec<f64>; 4] = Default::default();
    for _ in 0..windows {
        let width = last >> below(24);
        let from = below(last - width + 1);
        let to = from + width;
        let tall = (height >> below(16)).max(1);
        let low = below(height - tall + 1);
        let span = format!("device=0&from={from}&to={to}&columns=1400");
        let routes = [
            format!("timeline?{span}&by=kind"),
            format!("timeline?{span}&by=site"),
            format!("shapes?{span}&low={low}&high={}&rows=700", low + tall),
            format!("moment?device=0&at={}", from + width / 2),
        ];
        for (route, took) in routes.iter().zip(&mut took) {
            let start = Instant::now();
            get(server, route)?;
            took.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (name, mut took) in
        ["timeline by kind", "timeline by line", "shapes", "moment"].iter().zip(took)
    {
        took.sort_by(f64::total_cmp);
        let (middle, slowest) = (took[took.len() / 2], took[took.len() - 1]);
        println!("{name}: median {middle:.2} ms, slowest {slowest:.2} ms of {windows}");
        if slowest > SLOWEST_MS {
            return Err(format!("an answer took more than {SLOWEST_MS} ms").into());
        }
    }
    Ok(())
}

fn get(server: &Server, route: &str) -> Outcome<()> {
    let url = server.url();
    let mut stream = TcpStream::connect(("127.0.0.1", url.port()))?;
    let path = url.path();
    let port = url.port();
    write!(stream, "GET {path}{route} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200") {
        true => Ok(()),
        false => {
            Err(format!("{route}: {}", String::from_utf8_lossy(&answer[..answer.len().min(80)]))
                .into())
        }
    }
}
