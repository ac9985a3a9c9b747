//! An OpenID provider: it logs in the person whom a test names, checks the verifier of PKCE, and signs real tokens.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::{StreamExt as _, stream};
use ring::digest::{SHA256, digest};
use ring::rand::{SystemRandom, generate};
use serde_json::{Value, json};
use sexton_service::clock;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use url::Url;
use url::form_urlencoded::{byte_serialize, parse};

use super::signing::{Keys, Signing};

pub(super) const CLIENT: &str = "sexton";
/// With characters that have to be encoded.
pub(super) const SECRET: &str = "s3cret:+ä";

const DISCOVERY: &str = "/.well-known/openid-configuration";
const TOKEN: &str = "/token";
const KEYS: &str = "/keys";
/// What the server reads of it, in the order of a log-in.
pub(super) const ENDPOINTS: [&str; 3] = [DISCOVERY, TOKEN, KEYS];

/// What a provider does instead of answering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It accepts the request and answers nothing.
    Silent,
    /// It begins an answer and never ends it.
    Endless,
    Huge,
    Redirects,
    NoJson,
    Fails,
}

/// What the provider does from now on.
pub(super) struct Behavior {
    /// Claims beside those that every token has, or instead of them.
    pub(super) claims: Value,
    pub(super) signing: Signing,
    /// The fault of an endpoint.
    pub(super) fault: Option<(&'static str, Fault)>,
    /// Fields of the discovery document, instead of its true ones.
    pub(super) metadata: Value,
    pub(super) keys: Keys,
    /// The log-ins that have a code which was not exchanged.
    codes: HashMap<String, HashMap<String, String>>,
    /// How often each endpoint was read.
    reads: HashMap<String, usize>,
    /// What nobody may see but browser, server and provider.
    secrets: Vec<String>,
}

struct Inner {
    issuer: String,
    behavior: Mutex<Behavior>,
}

/// A provider on a port of this host; it stops when this value is dropped.
pub(super) struct Provider {
    inner: Arc<Inner>,
    serving: AbortHandle,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}/realms/ops", listener.local_addr().unwrap());
        let behavior = Behavior {
            claims: json!({}),
            signing: Signing::Rs256,
            fault: None,
            metadata: json!({}),
            keys: Keys::new(),
            codes: HashMap::new(),
            reads: HashMap::new(),
            secrets: Vec::new(),
        };
        let inner = Arc::new(Inner { issuer, behavior: Mutex::new(behavior) });
        let routes = Router::new()
            .route(DISCOVERY, get(describe))
            .route("/authorize", get(authorize))
            .route(TOKEN, post(exchange))
            .route(KEYS, get(publish))
            .layer(from_fn_with_state(Arc::clone(&inner), fail))
            .with_state(Arc::clone(&inner));
        let service = Router::new().nest("/realms/ops", routes);
        let serving = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Self { inner, serving: serving.abort_handle() }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.inner.issuer
    }

    /// Changes what it does from now on.
    pub(super) fn change(&self, change: impl FnOnce(&mut Behavior)) {
        change(&mut self.inner.behavior.lock().unwrap());
    }

    /// How often the server has read its keys.
    pub(super) fn reads_of_keys(&self) -> usize {
        self.inner.behavior.lock().unwrap().reads.get(KEYS).copied().unwrap_or_default()
    }

    /// Codes, verifiers and tokens of all log-ins so far.
    pub(super) fn secrets(&self) -> Vec<String> {
        self.inner.behavior.lock().unwrap().secrets.clone()
    }
}

async fn fail(State(provider): State<Arc<Inner>>, request: Request, next: Next) -> Response {
    let fault = {
        let mut behavior = provider.behavior.lock().unwrap();
        let path = request.uri().path();
        *behavior.reads.entry(path.to_owned()).or_default() += 1;
        behavior.fault.filter(|(endpoint, _)| *endpoint == path).map(|(_, fault)| fault)
    };
    match fault {
        None => next.run(request).await,
        Some(Fault::Silent) => pending().await,
        Some(Fault::Endless) => {
            let begun = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
            Body::from_stream(begun.chain(stream::pending())).into_response()
        }
        Some(Fault::Huge) => format!("{{\"a\": \"{}\"}}", "x".repeat(10_000_000)).into_response(),
        Some(Fault::Redirects) => Redirect::to(&provider.issuer).into_response(),
        Some(Fault::NoJson) => "<html>".into_response(),
        Some(Fault::Fails) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn overwrite(document: &mut Value, change: &Value) {
    for (name, value) in change.as_object().unwrap() {
        document[name] = value.clone();
    }
}

async fn describe(State(provider): State<Arc<Inner>>) -> Json<Value> {
    let issuer = &provider.issuer;
    let mut document = json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize?ui=plain"),
        "token_endpoint": format!("{issuer}{TOKEN}"), "jwks_uri": format!("{issuer}{KEYS}")
    });
    overwrite(&mut document, &provider.behavior.lock().unwrap().metadata);
    Json(document)
}

/// Logs the person in, and sends the browser back with a code.
async fn authorize(
    State(provider): State<Arc<Inner>>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let is = |name: &str, value: &str| query.get(name).is_some_and(|found| found == value);
    assert!(
        is("ui", "plain") && is("response_type", "code") && is("client_id", CLIENT),
        "{query:?}"
    );
    assert!(
        is("scope", "openid profile email") && is("code_challenge_method", "S256"),
        "{query:?}"
    );
    let mut back = Url::parse(&query["redirect_uri"]).unwrap();
    let code = encode(generate::<[u8; 16]>(&SystemRandom::new()).unwrap().expose());
    back.query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &query["state"])
        .append_pair("session_state", "of no concern")
        .append_pair("iss", &provider.issuer);
    let mut behavior = provider.behavior.lock().unwrap();
    behavior.secrets.push(code.clone());
    behavior.codes.insert(code, query);
    Redirect::to(back.as_str()).into_response()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn refuse(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({"error": error, "error_description": "of no concern"}))).into_response()
}

/// Whether the client knows its secret, as RFC 6749 (2.3.1) lets it show that: in a header, or in the form.
fn is_client(headers: &HeaderMap, form: &HashMap<String, String>, is_in_header: bool) -> bool {
    if !is_in_header {
        let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
        return is("client_id", CLIENT) && is("client_secret", SECRET);
    }
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET)));
    headers.get("authorization").is_some_and(|value| value == &format!("Basic {basic}"))
}

/// Exchanges a code for a token, once, for the client that knows its secret and the verifier.
async fn exchange(
    State(provider): State<Arc<Inner>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let form: HashMap<String, String> = parse(body.as_bytes()).into_owned().collect();
    let mut behavior = provider.behavior.lock().unwrap();
    let is_in_header = behavior.metadata.get("token_endpoint_auth_methods_supported").is_none();
    if !is_client(&headers, &form, is_in_header) {
        return refuse(StatusCode::UNAUTHORIZED, "invalid_client");
    }
    let verifier = form["code_verifier"].clone();
    let challenge = encode(digest(&SHA256, verifier.as_bytes()));
    behavior.secrets.push(verifier);
    let Some(begun) = behavior.codes.remove(&form["code"]) else {
        return refuse(StatusCode::BAD_REQUEST, "invalid_grant");
    };
    if begun["code_challenge"] != challenge || begun["redirect_uri"] != form["redirect_uri"] {
        return refuse(StatusCode::BAD_REQUEST, "invalid_grant");
    }
    let now = clock::now().timestamp();
    let mut claims = json!({
        "iss": provider.issuer, "aud": CLIENT, "sub": "17", "iat": now, "exp": now + 300, "nonce": begun["nonce"],
        "email": "ann@example.com", "email_verified": true, "groups": ["staff", "ops"]
    });
    overwrite(&mut claims, &behavior.claims);
    let token = behavior.keys.sign(&claims, behavior.signing);
    behavior.secrets.extend([token.clone(), "access-t0ken".to_owned()]);
    Json(json!({"access_token": "access-t0ken", "token_type": "Bearer", "id_token": token}))
        .into_response()
}

async fn publish(State(provider): State<Arc<Inner>>) -> Json<Value> {
    Json(provider.behavior.lock().unwrap().keys.publish())
}
