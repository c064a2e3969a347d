//! What the server answers, by route. All of it is a function of the snapshot in memory; no route
//! names a file.

use std::collections::HashMap;

use serde::Serialize;

use crate::view::document;
use crate::view::payload;
use crate::view::scene::{DeviceScene, Scene};
use crate::view::shapes::Window;
use crate::view::timeline::By;

/// Columns that a client may ask for; a screen has fewer.
const MOST_COLUMNS: u32 = 8192;

/// The answers to everything.
pub(super) struct Routes<'a, 'b> {
    scene: &'a Scene<'b>,
    page: String,
    tables: Vec<u8>,
}

/// One answer.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

impl<'a, 'b> Routes<'a, 'b> {
    pub(super) fn new(scene: &'a Scene<'b>, title: &str) -> Routes<'a, 'b> {
        let page = document::served(scene, title);
        Routes { scene, page, tables: payload::tables(scene).finish() }
    }

    pub(super) fn answer(&self, route: &str, query: &str) -> Response {
        match route {
            "" => Response::new(200, "text/html; charset=utf-8", self.page.clone().into_bytes()),
            "tables" => Response::new(200, "application/octet-stream", self.tables.clone()),
            "timeline" | "shapes" | "moment" | "allocation" => {
                self.window(route, &Query::parse(query)).unwrap_or_else(|| Response::refusal(400))
            }
            _ => Response::refusal(404),
        }
    }

    /// What is asked for; none if the question makes no sense.
    fn window(&self, route: &str, query: &Query<'_>) -> Option<Response> {
        let device: &DeviceScene<'_> = self.scene.devices.get(query.number::<usize>("device")?)?;
        Some(match route {
            "moment" => Response::json(&device.moment(query.number("at")?)),
            "allocation" => Response::json(&device.allocation(query.number("life")?)?),
            "timeline" => {
                let by = match query.text("by")? {
                    "kind" => By::Kind,
                    "site" => By::Site,
                    _ => return None,
                };
                let columns = query.number::<u32>("columns")?.clamp(1, MOST_COLUMNS);
                Response::json(&device.timeline(
                    by,
                    query.number("from")?,
                    query.number("to")?,
                    columns,
                ))
            }
            _ => Response::json(&device.shapes(&Window {
                from: query.number("from")?,
                to: query.number("to")?,
                low: query.number("low")?,
                high: query.number("high")?,
                columns: query.number("columns")?,
                rows: query.number("rows")?,
                site: match query.text("site") {
                    None => None,
                    Some(_) => Some(query.number("site")?),
                },
            })),
        })
    }
}

/// The names and values of a query. They are numbers and plain words, so nothing is ever unescaped.
struct Query<'a>(HashMap<&'a str, &'a str>);

impl<'a> Query<'a> {
    fn parse(text: &'a str) -> Query<'a> {
        Query(text.split('&').filter_map(|pair| pair.split_once('=')).collect())
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

impl Response {
    fn new(status: u16, kind: &'static str, body: Vec<u8>) -> Response {
        Response { status, kind, body }
    }

    fn json(value: &impl Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response::new(200, "application/json", body),
            Err(_) => Response::refusal(500),
        }
    }

    pub(super) fn refusal(status: u16) -> Response {
        Response::new(status, "text/plain", format!("{status} {}\n", phrase(status)).into_bytes())
    }

    pub(super) fn busy() -> Response {
        Response::refusal(503)
    }

    /// Head and body as they go over the line.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             X-Frame-Options: DENY\r\n\r\n",
            self.status,
            phrase(self.status),
            self.kind,
            self.body.len(),
        );
        [head.as_bytes(), &self.body].concat()
    }
}

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
