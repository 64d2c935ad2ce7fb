//! The files of the web page. They are part of the program, so the page needs no other server and no build step.

use axum::body::Body;
use axum::http::Response;

use super::response::text;

const INDEX: &str = include_str!("page/index.html");
const SIGN_IN: &str = include_str!("page/sign_in.html");
const SIGNED_IN: &str = include_str!("page/signed_in.html");
/// The exported page and this page render the blocks of a transcript with the same rules.
const STYLE: &str = concat!(
    include_str!("../ui/export/page.css"),
    include_str!("page/style.css")
);
const SCRIPTS: [(&str, &str); 11] = [
    ("app.js", include_str!("page/app.js")),
    ("lib.js", include_str!("page/lib.js")),
    ("charts.js", include_str!("page/charts.js")),
    ("runs.js", include_str!("page/runs.js")),
    ("usage.js", include_str!("page/usage.js")),
    ("plans.js", include_str!("page/plans.js")),
    ("run.js", include_str!("page/run.js")),
    ("run_tabs.js", include_str!("page/run_tabs.js")),
    ("steering.js", include_str!("page/steering.js")),
    ("changes.js", include_str!("page/changes.js")),
    ("blocks.js", include_str!("page/blocks.js")),
];
const ICON: &str = include_str!("page/icon.svg");

pub(super) fn index() -> Response<Body> {
    text("text/html; charset=utf-8", INDEX)
}

/// The page for a browser that is not signed in.
pub(super) fn sign_in() -> Response<Body> {
    text("text/html; charset=utf-8", SIGN_IN)
}

/// The page after a sign-in. It leads to the index by itself, because a redirect from a link in another program would not carry the
/// new cookie.
pub(super) fn signed_in() -> Response<Body> {
    text("text/html; charset=utf-8", SIGNED_IN)
}

/// Returns one of the page's own files.
pub(super) fn asset(name: &str) -> Option<Response<Body>> {
    match name {
        "style.css" => return Some(text("text/css; charset=utf-8", STYLE)),
        "icon.svg" => return Some(text("image/svg+xml", ICON)),
        _ => {}
    }
    let (_, script) = SCRIPTS.iter().find(|(script, _)| *script == name)?;
    Some(text("text/javascript; charset=utf-8", *script))
}
