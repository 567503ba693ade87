//! What is answered to which request.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use crate::Metrics;
use crate::access::Access;
use crate::readiness::Readiness;
use crate::routes::{Answer, Handler, Route, Routes};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct Pages {
    pub access: Access,
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub routes: Routes,
}

pub(crate) type Page = Response<Full<Bytes>>;

/// What becomes of a request.
pub(crate) enum Turn {
    Page(Page),
    /// The process has to be asked, which may take a while.
    Ask(Handler),
}

impl Pages {
    pub(crate) fn turn<B>(&self, request: &Request<B>) -> Turn {
        let is_allowed = self.access.allows(request.headers());
        if let Some(route) = self.routes.get(request.uri().path()) {
            return match self.refusal(&route, request.method(), is_allowed) {
                Some(page) => Turn::Page(page),
                None => Turn::Ask(route.handler()),
            };
        }
        Turn::Page(self.answer(request, is_allowed))
    }

    fn refusal(&self, route: &Route, method: &Method, is_allowed: bool) -> Option<Page> {
        if !route.takes(method) {
            return Some(not_allowed(route.methods()));
        }
        if !is_allowed {
            return Some(unauthorized());
        }
        // Any web page could make a browser on this machine send an order to a process that asks for nothing.
        (matches!(route, Route::Order(_)) && !self.access.has_token()).then(|| {
            let words = "orders are taken with a token only, and this process was started without one\n";
            text(StatusCode::FORBIDDEN, words.to_owned())
        })
    }

    fn answer<B>(&self, request: &Request<B>, is_allowed: bool) -> Page {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return not_allowed("GET, HEAD");
        }
        match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => self.ready(is_allowed),
            "/metrics" if is_allowed => page(StatusCode::OK, OPEN_METRICS, self.metrics.text()),
            "/metrics" => unauthorized(),
            _ => {
                let own = self.routes.paths();
                let paths = [&["/metrics", "/healthz", "/readyz"][..], &own].concat();
                text(StatusCode::NOT_FOUND, format!("there are {}\n", paths.join(", ")))
            }
        }
    }

    /// Load balancers have no token: they learn whether, and those who have it learn why.
    fn ready(&self, is_allowed: bool) -> Page {
        match self.readiness.reason() {
            None => text(StatusCode::OK, "ready\n".to_owned()),
            Some(reason) if is_allowed => text(StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
            Some(_) => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
        }
    }
}

pub(crate) fn answered(answer: Answer) -> Page {
    let status = answer.status();
    match answer {
        Answer::Json(body) => page(status, JSON, body),
        Answer::Wrong(words) | Answer::Refused(words) | Answer::Absent(words) => {
            text(status, format!("{words}\n"))
        }
    }
}

fn not_allowed(methods: &'static str) -> Page {
    let mut page = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{methods} is understood here\n"),
    );
    page.headers_mut()
        .insert(ALLOW, HeaderValue::from_static(methods));
    page
}

fn unauthorized() -> Page {
    let mut page = text(StatusCode::UNAUTHORIZED, "a bearer token is needed\n".to_owned());
    page.headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    page
}

fn text(status: StatusCode, words: String) -> Page {
    page(status, TEXT, words)
}

fn page(status: StatusCode, content_type: &'static str, words: String) -> Page {
    let mut page = Response::new(Full::from(words));
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    page
}
