//! What a provider says about itself (OpenID Connect Discovery, 3).

use serde_json::Value;
use sexton_model::oidc::{Issuer, shortened};
use url::Url;

/// Where what is, and how the client shows that it knows its secret.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) keys_uri: Url,
    /// In a header, as all must that say nothing else; otherwise in the body.
    pub(super) takes_secret_in_header: bool,
}

impl Metadata {
    /// Reads the document of a provider, which must be this one.
    pub(super) fn parse(document: &Value, issuer: &Issuer) -> Result<Self, String> {
        let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("issuer") != issuer.as_str() {
            return Err(format!(
                "it calls itself {:?}, and SERVE_OIDC_ISSUER {:?}; every character counts",
                shortened(text("issuer")),
                issuer.as_str()
            ));
        }
        let endpoint = |name: &str| {
            issuer.endpoint(text(name)).map_err(|problem| format!("its {name} {problem}"))
        };
        let ways = document.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
        Ok(Self {
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?,
            keys_uri: endpoint("jwks_uri")?,
            takes_secret_in_header: ways
                .is_none_or(|ways| ways.iter().any(|way| way == "client_secret_basic")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_of_another_issuer_or_with_plain_endpoints_is_refused() {
        let issuer = Issuer::parse("https://id.example.com").unwrap();
        let read = |change: Value| {
            let mut document = json!({
                "issuer": "https://id.example.com", "authorization_endpoint": "https://id.example.com/a?x=1",
                "token_endpoint": "https://id.example.com/t", "jwks_uri": "https://keys.example.com/k"
            });
            for (name, value) in change.as_object().unwrap() {
                document[name] = value.clone();
            }
            Metadata::parse(&document, &issuer)
        };
        assert!(read(json!({})).unwrap().takes_secret_in_header);
        let ways = |way: &str| json!({"token_endpoint_auth_methods_supported": [way]});
        assert!(read(ways("client_secret_basic")).unwrap().takes_secret_in_header);
        assert!(!read(ways("client_secret_post")).unwrap().takes_secret_in_header);
        for change in [
            json!({"issuer": "https://id.example.com/"}),
            json!({"issuer": "https://other.example.com"}),
            json!({"issuer": null}),
            json!({"token_endpoint": "http://id.example.com/t"}),
            json!({"token_endpoint": "http://127.0.0.1/t"}),
            json!({"jwks_uri": "file:///etc/passwd"}),
            json!({"authorization_endpoint": "javascript:alert(1)"}),
            json!({"jwks_uri": null}),
        ] {
            assert!(read(change.clone()).is_err(), "{change}");
        }
    }
}
