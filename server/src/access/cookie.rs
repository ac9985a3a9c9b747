//! Cookies that say by their names how they came.
//!
//! `__Host-` lets browsers accept one only by HTTPS, and from this very host; without HTTPS it has another name, and is set only where no
//! network carries it.

use std::convert::Infallible;

use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponseParts, ResponseParts};

use super::client::Client;
use crate::problem::{Problem, ProblemCode};

/// The two names of a cookie.
#[derive(Clone, Copy, Debug)]
pub(super) struct CookieNames {
    /// By HTTPS.
    pub(super) secure: &'static str,
    /// By HTTP, to a name of this machine.
    pub(super) plain: &'static str,
}

impl CookieNames {
    const fn of(self, is_secure: bool) -> &'static str {
        if is_secure { self.secure } else { self.plain }
    }

    /// The value of this cookie in a request.
    pub(super) fn read<'a>(self, headers: &'a HeaderMap, client: &Client) -> Option<&'a str> {
        let name = self.of(client.is_secure);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find_map(|(found, value)| (found == name && !value.is_empty()).then_some(value))
    }

    /// Sets it for so many seconds; 0 removes it.
    pub(super) fn set(
        self,
        client: &Client,
        value: &str,
        max_age: i64,
    ) -> Result<SetCookie, Problem> {
        SetCookie::new((self.of(client.is_secure), client.is_secure), value, max_age)
    }
}

/// A header that sets or removes a cookie. It is a part of an answer, as in `(cookie, Redirect::to("/"))`.
#[derive(Clone, PartialEq, Eq)]
pub struct SetCookie(HeaderValue);

impl IntoResponseParts for SetCookie {
    type Error = Infallible;

    fn into_response_parts(self, mut parts: ResponseParts) -> Result<ResponseParts, Infallible> {
        parts.headers_mut().append(SET_COOKIE, self.0);
        Ok(parts)
    }
}

impl SetCookie {
    fn new((name, is_secure): (&str, bool), value: &str, max_age: i64) -> Result<Self, Problem> {
        let secure = if is_secure { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={max_age}{secure}");
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemCode::Internal, "no cookie")
        })?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: CookieNames = CookieNames { secure: "__Host-sexton_x", plain: "sexton_x" };

    fn client(is_secure: bool) -> Client {
        let address = [127, 0, 0, 1].into();
        Client { address, is_secure, is_to_this_machine: true, is_from_proxy: false }
    }

    #[test]
    fn only_the_cookie_that_fits_the_connection_counts() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "theme=dark; sexton_x=plain".parse().unwrap());
        headers.append(COOKIE, "__Host-sexton_x=secure;x".parse().unwrap());
        assert_eq!(NAMES.read(&headers, &client(true)), Some("secure"));
        assert_eq!(NAMES.read(&headers, &client(false)), Some("plain"));
        headers.insert(COOKIE, "sexton_x=plain; xsexton_x=other".parse().unwrap());
        assert_eq!(NAMES.read(&headers, &client(true)), None);
        headers.insert(COOKIE, "sexton_x=".parse().unwrap());
        assert_eq!(NAMES.read(&headers, &client(false)), None);
    }

    #[test]
    fn pages_and_other_sites_do_not_see_the_cookie() {
        let set = |is_secure| NAMES.set(&client(is_secure), "secret", 60).unwrap().0;
        assert_eq!(
            set(true),
            "__Host-sexton_x=secret; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure"
        );
        assert_eq!(set(false), "sexton_x=secret; Path=/; HttpOnly; SameSite=Lax; Max-Age=60");
        assert!(set(true).is_sensitive());
    }
}
