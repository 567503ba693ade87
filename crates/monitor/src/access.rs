//! Who may read.

use std::net::{SocketAddr, ToSocketAddrs};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;

use crate::Error;

/// Shorter secrets can be guessed.
const MIN_TOKEN_BYTES: usize = 16;
/// The token alone: for requests that come through a proxy which keeps `Authorization` for itself, as an API server
/// of Kubernetes does.
const TOKEN_HEADER: &str = "x-clickmill-token";

pub(crate) struct Access {
    token: Option<String>,
}

impl Access {
    pub(crate) fn new(token: Option<&str>) -> Result<Self, Error> {
        let token = token.map(str::trim);
        if let Some(found) = token.map(str::len).filter(|&length| length < MIN_TOKEN_BYTES) {
            return Err(Error::Token {
                found,
                allowed: MIN_TOKEN_BYTES,
            });
        }
        Ok(Self {
            token: token.map(ToOwned::to_owned),
        })
    }

    /// Addresses to bind; those beyond this machine need a token, unless `is_insecure`.
    pub(crate) fn addresses(&self, address: &str, is_insecure: bool) -> Result<Vec<SocketAddr>, Error> {
        let found = address.to_socket_addrs().map_err(|source| Error::Listen {
            address: address.to_owned(),
            source,
        })?;
        let found: Vec<_> = found.collect();
        let is_open = found.iter().any(|candidate| !candidate.ip().is_loopback());
        if is_open && self.token.is_none() && !is_insecure {
            return Err(Error::Open {
                address: address.to_owned(),
            });
        }
        Ok(found)
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// By the headers of a request: `Authorization`, or [`TOKEN_HEADER`].
    pub(crate) fn allows(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let bytes = |name| headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        let (scheme, bearer) = bytes(AUTHORIZATION.as_str())
            .split_at_checked(7)
            .unwrap_or_default();
        // Takes the same time for every wrong token of the right length.
        let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ") && bearer.ct_eq(token.as_bytes()).into();
        is_bearer || bytes(TOKEN_HEADER).ct_eq(token.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn only_the_token_itself_opens() {
        let access = Access::new(Some(" 0123456789abcdef\n")).unwrap();
        assert!(access.allows(&headers("authorization", "Bearer 0123456789abcdef")));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeF",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdef0",
            "0123456789abcdef",
        ] {
            assert!(!access.allows(&headers("authorization", wrong)), "{wrong:?}");
        }
        assert!(!access.allows(&HeaderMap::new()));
    }

    #[test]
    fn a_proxy_that_takes_the_authorization_leaves_a_header_of_our_own() {
        let access = Access::new(Some("0123456789abcdef")).unwrap();
        assert!(access.allows(&headers("x-clickmill-token", "0123456789abcdef")));
        for wrong in ["", "0123456789abcdeF", "Bearer 0123456789abcdef"] {
            assert!(!access.allows(&headers("x-clickmill-token", wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        assert!(matches!(
            Access::new(Some("secret")),
            Err(Error::Token { found: 6, .. })
        ));
    }
}
