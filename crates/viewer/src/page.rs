//! The page, built from `web/` by `cargo xtask web`.

use crate::http::Response;

/// The files of the page; nothing else is served.
pub(crate) fn file(path: &str) -> Option<Response> {
    Some(match path {
        "/" => Response::new(200, "text/html; charset=utf-8", include_str!("../dist/index.html")),
        "/page.js" => Response::new(200, "text/javascript; charset=utf-8", include_str!("../dist/page.js")),
        "/page.css" => Response::new(200, "text/css; charset=utf-8", include_str!("../dist/page.css")),
        _ => return None,
    })
}
