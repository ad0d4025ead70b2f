//! Serves the paths that are not endpoints: the web app, with the headers that a browser needs to
//! give it shared memory, or else the few files of it that `actualpy` requests.
//!
//! The files are those of the npm package `@actual-app/web`. Paths without a file are the app's
//! routes.

use std::fs;
use std::path::{Path, PathBuf};

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use server::{Asset, StaticSite};
use tower_http::services::{ServeDir, ServeFile};

/// The package that contains the web app in its directory `build`.
const PACKAGE: &str = "@actual-app/web";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const EMBEDDER_POLICY: HeaderName = HeaderName::from_static("cross-origin-embedder-policy");
/// The content security policy: the app compiles a worker from a `blob:` and evaluates formulas.
const POLICY: &str = "default-src 'self' blob:; img-src 'self' blob: data:; \
                      script-src 'self' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; \
                      font-src 'self' data:; connect-src http: https:";

/// Files that are served besides the endpoints.
pub(crate) enum WebFiles {
    /// The web app.
    App(WebApp),
    /// The files that `actualpy` requests.
    Data(StaticSite),
}

/// The files of the web app.
pub(crate) struct WebApp {
    files: ServeDir<ServeFile>,
    version: Option<String>,
}

/// The fields that are read of the web app's package.
#[derive(Deserialize)]
struct WebPackage {
    name: String,
    version: String,
}

impl WebFiles {
    pub(crate) fn new(app: Option<PathBuf>, data: &'static [Asset]) -> Self {
        app.map_or_else(
            || Self::Data(StaticSite::new(data)),
            |folder| Self::App(WebApp::new(folder)),
        )
    }

    /// Returns the package's version, if the web app's files are still inside the package.
    pub(crate) fn version(&self) -> Option<&str> {
        match self {
            Self::App(app) => app.version.as_deref(),
            Self::Data(_) => None,
        }
    }

    /// Returns the file at the request's path; `None` if there is none.
    pub(crate) async fn file(&self, request: Request) -> Option<Response> {
        match self {
            Self::App(app) => Some(app.file(request).await),
            Self::Data(data) => Some(data.find(request.uri().path())?.answer(request.headers())),
        }
    }
}

impl WebApp {
    fn new(folder: PathBuf) -> Self {
        let version = version(&folder);
        let page = ServeFile::new(folder.join("index.html"));
        let files = ServeDir::new(folder).append_index_html_on_directories(false).fallback(page);
        Self { files, version }
    }

    async fn file(&self, request: Request) -> Response {
        let served = self.files.clone().try_call(request).await;
        let Ok(mut response) = served.map(IntoResponse::into_response) else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        let headers = response.headers_mut();
        headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(EMBEDDER_POLICY, HeaderValue::from_static("require-corp"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=0"));
        name_character_set(headers);
        response
    }
}

fn version(folder: &Path) -> Option<String> {
    let package = fs::read(folder.join("../package.json")).ok()?;
    let package: WebPackage = serde_json::from_slice(&package).ok()?;
    (package.name == PACKAGE).then_some(package.version)
}

/// Adds the character set of texts, which are all in UTF-8.
fn name_character_set(headers: &mut HeaderMap) {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_bare = |media_type: &&str| !media_type.contains(';');
    let is_text =
        |media_type: &&str| media_type.starts_with("text/") || *media_type == "application/json";
    if let Some(media_type) = media_type.filter(is_bare).filter(is_text) {
        let named = HeaderValue::try_from(format!("{media_type}; charset=utf-8"));
        headers.insert(CONTENT_TYPE, named.expect("it was a header's value"));
    }
}
