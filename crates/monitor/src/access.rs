//! Who may read.

use std::net::{SocketAddr, ToSocketAddrs};

use subtle::ConstantTimeEq;

use crate::Error;

/// Shorter secrets can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

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

    /// `authorization` is the header of a request.
    pub(crate) fn allows(&self, authorization: Option<&[u8]>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let (scheme, given) = authorization
            .unwrap_or_default()
            .split_at_checked(7)
            .unwrap_or_default();
        // Takes the same time for every wrong token of the right length.
        scheme.eq_ignore_ascii_case(b"Bearer ") && given.ct_eq(token.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn only_the_token_itself_opens() {
        let access = Access::new(Some(" 0123456789abcdef\n")).unwrap();
        assert!(access.allows(Some(b"Bearer 0123456789abcdef")));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeF",
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcdef0",
        ] {
            assert!(!access.allows(Some(wrong.as_bytes())), "{wrong:?}");
        }
        assert!(!access.allows(None));
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        assert!(matches!(
            Access::new(Some("secret")),
            Err(Error::Token { found: 6, .. })
        ));
    }
}
