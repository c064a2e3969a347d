//! Reading a request's head: as little of HTTP as a browser needs, and nothing that is not needed.

/// A request that makes sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) path: &'a str,
    /// What follows the question mark.
    pub(super) query: &'a str,
    host: &'a str,
    /// What the browser says about who asks, and what for, if it does.
    site: Option<&'a str>,
    destination: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Reads a head; the error is the status to answer with.
    pub(super) fn parse(head: &'a [u8]) -> Result<Request<'a>, u16> {
        let end = head.windows(4).position(|window| window == b"\r\n\r\n").ok_or(431u16)?;
        let head = std::str::from_utf8(&head[..end]).map_err(|_| 400u16)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some(version), None) =
            (method, target, version, words.next())
        else {
            return Err(400);
        };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(400);
        }
        if method != "GET" {
            return Err(405);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request { path, query, host: "", site: None, destination: None };
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(400u16)?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("host") {
                if !request.host.is_empty() {
                    return Err(400);
                }
                request.host = value;
            } else if name.eq_ignore_ascii_case("sec-fetch-site") {
                request.site = Some(value);
            } else if name.eq_ignore_ascii_case("sec-fetch-dest") {
                request.destination = Some(value);
            }
        }
        Ok(request)
    }

    /// Whether it is meant for us and comes from our own page, or opens that page in a tab. A
    /// foreign name that was made to resolve to 127.0.0.1 is not ours, and what another page embeds
    /// or fetches is not for it.
    pub(super) fn is_for(&self, port: u16) -> bool {
        let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let is_own = names.iter().any(|name| self.host.eq_ignore_ascii_case(name));
        let is_from_us = self.site.is_none_or(|site| matches!(site, "same-origin" | "none"));
        is_own && (is_from_us || self.destination == Some("document"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_browsers_request_is_read() {
        let head = b"GET /t/moment?at=3 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nSec-Fetch-Site: same-origin\r\n\r\n";
        let request = Request::parse(head).unwrap();
        assert_eq!((request.path, request.query), ("/t/moment", "at=3"));
        assert!(request.is_for(80));
        assert!(!request.is_for(81));
    }

    #[test]
    fn strangers_are_refused() {
        let status = |head: &[u8]| Request::parse(head).unwrap_err();
        assert_eq!(status(b"POST / HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(status(b"GET /\r\n\r\n"), 400);
        assert_eq!(status(b"GET http://x/ HTTP/1.1\r\n\r\n"), 400);
        assert_eq!(status(b"GET / HTTP/1.1\r\nHost"), 431);
        assert_eq!(status(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
        assert_eq!(status(b"\xff\r\n\r\n"), 400);
        for headers in
            ["Host: evil.example:80", "Host: 127.0.0.1:80\r\nSec-Fetch-Site: cross-site", ""]
        {
            let head = format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n");
            let head = head.replace("\r\n\r\n\r\n", "\r\n\r\n");
            assert!(!Request::parse(head.as_bytes()).unwrap().is_for(80), "{headers}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Request::parse(&head);
        }

        #[test]
        fn no_text_makes_it_panic(head in "(GET|PUT)? ?/?[ -~]{0,40}( HTTP/1.1)?(\r\n[a-z:]{0,9}){0,4}\r\n\r\n") {
            let _ = Request::parse(head.as_bytes());
        }
    }
}
