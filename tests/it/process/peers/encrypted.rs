//! Requests and mails over TLS, by a worker that trusts the authority of the servers and by one that
//! does not. SSL_CERT_FILE names the authority, as for nearly every program.

use sexton_peers::http::{Act, Seen};
use sexton_peers::smtp::{ENCRYPTED, Script};
use sexton_peers::{http, smtp};

use super::*;

/// How AUTH PLAIN hands over the user `sexton` and [`SECRET`].
const PLAIN: &str = "AUTH PLAIN AHNleHRvbgB0b2tlbi00NzEx";

fn mail(scheme: &str, server: &smtp::Server) -> String {
    let port = server.port;
    format!(
        "email = {{ smtp = \"{scheme}://127.0.0.1:{port}\", from = \"sexton@example.org\", \
         to = \"team@example.org\", subject = \"due\", body = \"due\", user = \"sexton\", \
         password = {{ env = \"PEER_TOKEN\" }} }}"
    )
}

fn request(server: &http::Server) -> String {
    let port = server.address.port();
    format!("http = {{ url = \"https://localhost:{port}/\", allow = [\"localhost\"] }}")
}

async fn https() -> http::Server {
    http::Server::start_encrypted(vec![Act::answer("200 OK", "", "hidden")]).await
}

#[tokio::test]
async fn a_worker_trusts_the_authority_that_ssl_cert_file_names() {
    let mut https = https().await;
    let mut smtps = smtp::Server::start(Script::default().encrypted()).await;
    let mut starttls = smtp::Server::start(Script::default().upgraded()).await;
    let refuses = smtp::Server::start(Script::replying("AUTH", "535 wrong").encrypted()).await;
    let tasks = [
        ("https", request(&https)),
        ("smtps", mail("smtps", &smtps)),
        ("starttls", mail("smtp", &starttls)),
        ("refuses", mail("smtps", &refuses)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, sexton_peers::authority_pem()).unwrap();
    let trusted = [("SSL_CERT_FILE", file.to_str().unwrap())];
    let scene = Scene::new(&tasks, IMMEDIATE_RETRY, &trusted).await;

    for task in ["https", "smtps", "starttls"] {
        let id = scene.trigger(task).await;
        let shown = scene.ends(&id, "succeeded").await;
        assert_eq!(shown["attempts"].as_array().unwrap().len(), 1, "{shown}");
    }
    https.request().await;
    let conversation = smtps.conversation().await;
    assert!(conversation.starts_with(ENCRYPTED), "{conversation}");
    assert!(conversation.contains(PLAIN) && conversation.contains("MAIL FROM:"), "{conversation}");
    let conversation = starttls.conversation().await;
    let (clear, hidden) = conversation.split_once(ENCRYPTED).expect("it is encrypted on the way");
    assert!(!clear.contains("AUTH") && !clear.contains("MAIL"), "{conversation}");
    assert!(hidden.contains(PLAIN) && hidden.contains("MAIL FROM:"), "{conversation}");
    // A password that is wrong is so at the next try, too.
    assert_eq!(scene.parked("refuses").await.0, "smtp_535");
    for secret in [SECRET, PLAIN] {
        assert!(!scene.is_stored(secret).await, "{secret}");
    }
}

#[tokio::test]
async fn a_worker_that_does_not_know_the_authority_sends_nothing_and_says_what_to_do() {
    let mut https = https().await;
    let mut smtps = smtp::Server::start(Script::default().encrypted()).await;
    let mut starttls = smtp::Server::start(Script::default().upgraded()).await;
    let tasks = [
        ("https", request(&https)),
        ("smtps", mail("smtps", &smtps)),
        ("starttls", mail("smtp", &starttls)),
    ];
    let scene = Scene::new(&tasks, "retry = { max_retries = 0 }", &[]).await;
    for (task, class) in [("https", "http_tls"), ("smtps", "smtp_tls"), ("starttls", "smtp_tls")] {
        let (parked_class, message) = scene.parked(task).await;
        assert_eq!(parked_class, class, "{message}");
        let advice = "add it to the system's, or name a file with its certificate in SSL_CERT_FILE";
        assert!(message.contains(advice), "{message}");
    }
    assert_eq!(https.next().await, Seen::Gone);
    assert_eq!(smtps.conversation().await, "");
    let conversation = starttls.conversation().await;
    assert!(!conversation.contains("AUTH") && !conversation.contains("MAIL"), "{conversation}");
}
