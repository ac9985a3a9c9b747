//! Tests of requests.

use super::*;
use sexton_outbound::secret::{SecretRef, Value};

#[test]
fn a_request_with_all_its_keys_and_one_with_none() {
    let text = r#"
        [tasks.charge]
        timeout = "5m"
        [tasks.charge.http]
        url = "https://Intra.Example.com:8443/charges?dry=1"
        method = "PUT"
        headers = { X-Team = "billing", Authorization = { env = "PAY_TOKEN" }, X-Key = { file = "keys/pay" } }
        timeout = "20s"
        max_response = "1MiB"
        allow = ["intra.example.com"]
        [tasks.ping]
        http = { url = "http://example.org" }
    "#;
    let catalogue = parse(text).unwrap();
    let request = |name| match &catalogue.get(name).unwrap().kind {
        TaskKind::Http(request) => request,
        other => panic!("no request: {other:?}"),
    };
    let charge = request("charge");
    assert_eq!(charge.url.as_str(), "https://intra.example.com:8443/charges?dry=1");
    assert_eq!((charge.method.as_str(), charge.allowed), ("PUT", true));
    assert_eq!((charge.timeout, charge.max_response), (Duration::from_secs(20), 1024 * 1024));
    let headers: Vec<_> = charge.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(headers, ["authorization", "x-key", "x-team"]);
    assert_eq!(charge.headers[2].1, Value::Plain("billing".to_owned()));
    assert_eq!(charge.headers[0].1, Value::Secret(SecretRef::Env("PAY_TOKEN".to_owned())));
    let Value::Secret(SecretRef::File(path)) = &charge.headers[1].1 else { panic!("no file") };
    assert!(path.is_absolute() && path.ends_with("keys/pay"), "{path:?}");
    let ping = request("ping");
    assert_eq!((ping.method.as_str(), ping.allowed, ping.headers.len()), ("POST", false, 0));
    assert_eq!((ping.timeout, ping.max_response), (HTTP_TIMEOUT_DEFAULT, 64 * 1024));
}

#[test]
fn every_problem_of_a_request_is_reported_in_its_place() {
    let text = r#"
[tasks.a]
http = { method = "post", speed = 7 }
[tasks.b]
http = "https://example.org"
grace = "5s"
[tasks.c]
http = { url = "ftp://example.org", timeout = "0s", max_response = "1GB", allow = "x" }
[tasks.d]
http = { url = "https://me:hunter2@example.org" }
[tasks.e]
http = { url = "http://127.0.0.1:8080/" }
[tasks.f]
http = { url = "http://[::ffff:1.1.1.1]/", allow = ["example.org"] }
[tasks.g.http]
url = "http://example.org/#part"
[tasks.g.http.headers]
"no name" = "x"
Host = "other"
X-A = "line\nbreak"
x-a = { env = "1A" }
X-B = { file = "" }
X-C = { env = "A", file = "b" }
X-D = { vault = "b" }
X-E = 5
"#;
    assert_eq!(
        parse(text).unwrap_err(),
        [
            "line 3: task `a`: `http.speed`: unknown key; known are `url`, `method`, `headers`, `timeout`, `max_response` and `allow`",
            "line 3: task `a`: `http`: needs a `url`",
            "line 3: task `a`: `http.method`: must be DELETE, GET, HEAD, PATCH, POST or PUT",
            "line 5: task `b`: `http`: must be a table",
            "line 6: task `b`: `grace`: unknown key; known are `http`, `timeout`, `retry` and `params_schema`",
            "line 8: task `c`: `http.url`: must begin with http:// or https://",
            "line 8: task `c`: `http.timeout`: must be 100ms to 30d",
            "line 8: task `c`: `http.max_response`: is no size: write a whole number and one of B, KiB, MiB and GiB, as in 200MiB or 200 MiB",
            "line 8: task `c`: `http.allow`: must be a list of at most 16 strings",
            "line 10: task `d`: `http.url`: holds a user or a password: hand them over in a header, as a secret",
            "line 12: task `e`: `http.url`: 127.0.0.1 is a loopback address: name it in `allow` to permit it",
            "line 14: task `f`: `http.allow`: \"example.org\" is not the host of `url`, [::ffff:101:101]",
            "line 14: task `f`: `http.url`: [::ffff:101:101] is an IPv4 address in the form of an IPv6 address: name it in `allow` to permit it",
            "line 16: task `g`: `http.url`: has a fragment, which is not sent: leave out what follows the #",
            "line 18: task `g`: `http.headers.no name`: is no name of a header",
            "line 19: task `g`: `http.headers.Host`: is a header that the request has of itself",
            "line 20: task `g`: `http.headers.X-A`: must be visible ASCII, 8192 bytes at most",
            "line 21: task `g`: `http.headers.x-a`: is the same header once more: their case does not matter",
            "line 21: task `g`: `http.headers.x-a`: `env` holds no name of a variable; the secret itself is not to stand here, only the name of the variable that holds it",
            "line 22: task `g`: `http.headers.X-B`: `file` holds no path of a file",
            "line 23: task `g`: `http.headers.X-C`: must be a string, { env = \"NAME\" } or { file = \"path\" }",
            "line 24: task `g`: `http.headers.X-D`: must be a string, { env = \"NAME\" } or { file = \"path\" }",
            "line 25: task `g`: `http.headers.X-E`: must be a string, { env = \"NAME\" } or { file = \"path\" }",
        ]
    );
}
