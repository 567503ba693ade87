//! What is answered to which request.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use crate::Metrics;
use crate::access::Access;
use crate::readiness::Readiness;

const TEXT: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) struct Pages {
    pub access: Access,
    pub metrics: Metrics,
    pub readiness: Readiness,
}

type Page = Response<Full<Bytes>>;

impl Pages {
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Page {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut page = text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET is understood\n".to_owned(),
            );
            page.headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return page;
        }
        let authorization = request.headers().get(AUTHORIZATION);
        let is_allowed = self.access.allows(authorization.map(HeaderValue::as_bytes));
        match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => self.ready(is_allowed),
            "/metrics" if is_allowed => page(StatusCode::OK, OPEN_METRICS, self.metrics.text()),
            "/metrics" => {
                let mut page = text(StatusCode::UNAUTHORIZED, "a bearer token is needed\n".to_owned());
                page.headers_mut()
                    .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                page
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz\n".to_owned(),
            ),
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
