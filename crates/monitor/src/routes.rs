//! Pages of a process's own: what it tells beside its metrics, and what it can be told to do.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use hyper::{Method, StatusCode};

/// What a page of a process's own has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Json(String),
    /// The request means nothing: what is wrong with it.
    Wrong(String),
    /// It cannot be done as things are: why.
    Refused(String),
    /// There is nobody here any more, or not yet, who could answer.
    Absent(String),
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Json(_) => StatusCode::OK,
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::Refused(_) => StatusCode::CONFLICT,
            Self::Absent(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Is given the query of the request, without its question mark.
pub(crate) type Handler = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

/// What may be done with a page: reading changes nothing, an order does.
#[derive(Clone)]
pub(crate) enum Route {
    Reading(Handler),
    Order(Handler),
}

impl Route {
    pub(crate) fn handler(&self) -> Handler {
        let (Self::Reading(handler) | Self::Order(handler)) = self;
        Arc::clone(handler)
    }

    pub(crate) fn takes(&self, method: &Method) -> bool {
        match self {
            Self::Reading(_) => method == Method::GET || method == Method::HEAD,
            Self::Order(_) => method == Method::POST,
        }
    }

    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Reading(_) => "GET, HEAD",
            Self::Order(_) => "POST",
        }
    }
}

#[derive(Default)]
pub(crate) struct Routes {
    by_path: RwLock<BTreeMap<&'static str, Route>>,
}

impl Routes {
    pub(crate) fn set(&self, path: &'static str, route: Route) {
        self.by_path
            .write()
            .expect("nobody panics with it")
            .insert(path, route);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Route> {
        let routes = self.by_path.read().expect("nobody panics with it");
        routes.get(path).cloned()
    }

    pub(crate) fn paths(&self) -> Vec<&'static str> {
        let routes = self.by_path.read().expect("nobody panics with it");
        routes.keys().copied().collect()
    }
}
