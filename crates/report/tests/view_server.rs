//! The server of `plimsoll view --serve`, as a client sees it: its own routes, its own token,
//! loopback only, and nothing that garbage can do to it.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use plimsoll_report::view::{By, Scene, Server, Window};
use plimsoll_report::{Report, open};
use serde_json::Value;
use support::sample;

/// Runs `talk` while a server answers for a real snapshot.
fn with_server(talk: impl FnOnce(&Server, &Scene<'_>)) {
    let snapshot = open(sample("oom_activations")).unwrap();
    let report = Report::of(snapshot, "oom_activations.pickle");
    let scene = Scene::of(&report);
    let server = Server::bind(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&scene, "oom_activations.pickle"));
        // Stops the server even if a check fails; else the scope would wait for ever.
        let _stop = Stop(&server);
        talk(&server, &scene);
    });
}

struct Stop<'a>(&'a Server);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Sends bytes, returns the status (0 without an answer) and the body.
fn send(server: &Server, bytes: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.url().port())).unwrap();
    // A server that has heard enough may hang up before everything is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n");
    (status, head.map_or(Vec::new(), |at| answer[at + 4..].to_vec()))
}

fn get_from(server: &Server, path: &str, host: &str, more: &str) -> (u16, Vec<u8>) {
    send(server, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").as_bytes())
}

/// A request as a browser makes it, from the page's own address.
fn get(server: &Server, route: &str) -> (u16, Vec<u8>) {
    let url = server.url();
    let host = format!("127.0.0.1:{}", url.port());
    get_from(server, &format!("{}{route}", url.path()), &host, "Sec-Fetch-Site: same-origin\r\n")
}

#[test]
fn the_page_asks_nobody_but_its_server() {
    with_server(|server, _| {
        let (status, body) = get(server, "");
        let page = String::from_utf8(body).unwrap();
        assert_eq!(status, 200);
        assert!(page.contains("default-src 'none'") && page.contains("connect-src 'self'"));
        assert!(!page.contains("://"), "an address of somebody else");
        let (status, tables) = get(server, "tables");
        assert_eq!(status, 200);
        assert!(tables.len() > 1000);
    });
}

#[test]
fn windows_are_answered_as_the_scene_answers_them() {
    with_server(|server, scene| {
        let json = |route: &str| -> Value {
            let (status, body) = get(server, route);
            assert_eq!(status, 200, "{route}");
            serde_json::from_slice(&body).unwrap()
        };
        let device = &scene.devices[0];
        let expected = device.timeline(By::Site, 10, 300, 64);
        let found = json("timeline?device=0&by=site&from=10&to=300&columns=64");
        assert_eq!(found, serde_json::to_value(expected).unwrap());
        let window =
            Window { from: 5, to: 400, low: 0, high: 1 << 30, columns: 800, rows: 400, site: None };
        let found =
            json("shapes?device=0&from=5&to=400&low=0&high=1073741824&columns=800&rows=400");
        assert_eq!(found, serde_json::to_value(device.shapes(&window)).unwrap());
        assert!(found["shapes"].as_array().unwrap().len() > 10);
        let found = json("moment?device=0&at=200");
        assert_eq!(found, serde_json::to_value(device.moment(200)).unwrap());
        assert_eq!(json("allocation?device=0&life=3")["life"], 3);
    });
}

#[test]
fn only_the_token_opens_anything() {
    with_server(|server, _| {
        let url = server.url();
        let host = format!("127.0.0.1:{}", url.port());
        let wrong = "0".repeat(32);
        for path in
            ["/", "/tables", &format!("/{wrong}/"), &format!("/{wrong}/tables"), "/favicon.ico"]
        {
            let (status, body) = get_from(server, path, &host, "");
            assert_eq!((status, body), (404, b"404 Not Found\n".to_vec()), "{path}");
        }
        let upper = url.path().to_uppercase();
        assert!(upper == url.path() || get_from(server, &upper, &host, "").0 == 404);
    });
}

#[test]
fn other_names_and_other_pages_are_refused() {
    with_server(|server, _| {
        let url = server.url();
        let (path, port) = (url.path(), url.port());
        // A foreign name that resolves to 127.0.0.1, and another port.
        for host in [
            format!("evil.example:{port}"),
            "127.0.0.1:1".into(),
            "127.0.0.1".into(),
            String::new(),
        ] {
            assert_eq!(get_from(server, &path, &host, "").0, 403, "{host}");
        }
        let own = format!("localhost:{port}");
        assert_eq!(get_from(server, &path, &own, "").0, 200);
        for site in ["cross-site", "same-site"] {
            let header = format!("Sec-Fetch-Site: {site}\r\n");
            assert_eq!(get_from(server, &path, &own, &header).0, 403, "{site}");
            let frame = format!("{header}Sec-Fetch-Dest: iframe\r\n");
            assert_eq!(get_from(server, &path, &own, &frame).0, 403, "{site} in a frame");
            // A link that somebody clicks on opens in a tab of its own.
            let tab = format!("{header}Sec-Fetch-Dest: document\r\n");
            assert_eq!(get_from(server, &path, &own, &tab).0, 200, "{site} in a tab");
        }
    });
}

#[test]
fn only_its_own_routes_exist() {
    with_server(|server, _| {
        for route in
            ["index.html", "../", "..%2f..%2fetc/passwd", "/etc/passwd", "tables/", "moment/x"]
        {
            assert_eq!(get(server, route).0, 404, "{route}");
        }
        for query in [
            "moment",
            "moment?at=1",
            "moment?device=9&at=1",
            "moment?device=0&at=-1",
            "moment?device=0&at=99999999999999999999",
            "timeline?device=0&by=colour&from=0&to=9&columns=9",
            "timeline?device=0&by=kind&from=0&to=9",
            "shapes?device=0&from=0&to=9&low=0&high=9&columns=9&rows=9&site=x",
            "shapes?device=0&from=0&to=9&low=0.5&high=9&columns=9&rows=9",
            "allocation?device=0&life=4294967295",
        ] {
            assert_eq!(get(server, query).0, 400, "{query}");
        }
        // Numbers that make no sense together are answered, with little.
        let strange = "shapes?device=0&from=9&to=0&low=9&high=0&columns=4294967295&rows=0";
        assert_eq!(get(server, strange).0, 200);
        let strange = "timeline?device=0&by=kind&from=4294967295&to=4294967295&columns=4294967295";
        assert_eq!(get(server, strange).0, 200);
    });
}

#[test]
fn garbage_is_refused_and_does_no_harm() {
    with_server(|server, _| {
        let path = server.url().path();
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(send(server, request.as_bytes()).0, 405, "{method}");
        }
        assert_eq!(send(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").0, 400);
        assert_eq!(send(server, b"GET\r\n\r\n").0, 400);
        assert_eq!(send(server, b"").0, 0);
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(100_000));
        assert!([0, 431].contains(&send(server, long.as_bytes()).0));
        let mut state = 1u64;
        for _ in 0..200 {
            let mut bytes = Vec::new();
            for _ in 0..64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((state >> 33) as u8);
            }
            bytes.extend(b"\r\n\r\n");
            assert_ne!(send(server, &bytes).0, 200);
        }
        // And it still answers.
        assert_eq!(get(server, "moment?device=0&at=3").0, 200);
    });
}

#[test]
fn it_listens_on_loopback_only() {
    let server = Server::bind(0).unwrap();
    let port = server.url().port();
    // The machine's own outside address, if it has one: no packet is sent for this.
    let outside = std::net::UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    if let Ok(address) = outside
        && !address.ip().is_loopback()
    {
        let address = SocketAddr::new(address.ip(), port);
        let wait = std::time::Duration::from_millis(500);
        assert!(TcpStream::connect_timeout(&address, wait).is_err(), "{address}");
    }
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    assert!(TcpStream::connect((loopback, port)).is_ok());
    assert!(Server::bind(port).is_err(), "the port is taken");
}
