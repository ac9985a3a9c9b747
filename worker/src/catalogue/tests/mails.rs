//! Tests of mails.

use super::*;
use sexton_outbound::mail::SmtpServer;
use sexton_outbound::secret::SecretRef;

#[test]
fn a_mail_with_all_its_keys_and_one_with_few() {
    let text = r#"
        [tasks.reminder.email]
        smtp = "smtps://mail.example.org"
        from = "Sexton <sexton@example.org>"
        to = "{{ params.to }}"
        subject = "Due"
        body = "{% if params.late %}late{% endif %}"
        user = "sexton"
        password = { file = "keys/mail" }
        timeout = "20s"
        [tasks.short]
        email = { smtp = "smtp://[::1]:25/", from = "a@b.org", to = "c@d.org", subject = "s", body = "b" }
    "#;
    let catalogue = parse(text).unwrap();
    let mail = |name| match &catalogue.get(name).unwrap().kind {
        TaskKind::Email(mail) => mail,
        other => panic!("no mail: {other:?}"),
    };
    let reminder = mail("reminder");
    let host = "mail.example.org".to_owned();
    assert_eq!(reminder.server, SmtpServer { host, port: 465, smtps: true });
    assert_eq!(reminder.from.email.to_string(), "sexton@example.org");
    let (user, SecretRef::File(path)) = reminder.credentials.clone().unwrap() else {
        panic!("no file")
    };
    assert!(user == "sexton" && path.ends_with("keys/mail"), "{path:?}");
    assert_eq!(reminder.timeout, Duration::from_secs(20));
    let short = mail("short");
    assert_eq!(short.server, SmtpServer { host: "::1".to_owned(), port: 25, smtps: false });
    assert_eq!((short.timeout, &short.credentials), (EMAIL_TIMEOUT_DEFAULT, &None));
}

#[test]
fn every_problem_of_a_mail_is_reported_in_its_place() {
    let text = r#"
[tasks.a]
email = { color = "red" }
[tasks.b.email]
smtp = "http://mail.example.org"
from = "nobody"
to = "{{ params.to"
subject = ""
body = "{% nonsense %}"
password = "hunter2"
[tasks.c]
email = { smtp = "smtp://me:hunter2@mail.example.org", from = "a@b.org", to = "c@d.org", subject = "s", body = "b", user = "x" }
"#;
    let problems = parse(text).unwrap_err();
    let expected = [
        "line 3: task `a`: `email.color`: unknown key; known are `smtp`, `from`, `to`, `subject`, `body`, `user`, `password` and `timeout`",
        "line 3: task `a`: `email`: needs `smtp`",
        "line 3: task `a`: `email`: needs `from`",
        "line 3: task `a`: `email`: needs `to`",
        "line 3: task `a`: `email`: needs `subject`",
        "line 3: task `a`: `email`: needs `body`",
        "line 5: task `b`: `email.smtp`: must be smtp://host:587 or smtps://host:465, and nothing behind it",
        "line 6: task `b`: `email.from`: must be a mail address such as \"Sexton <sexton@example.org>\"",
        "line 7: task `b`: `email.to`: is no template: ",
        "line 8: task `b`: `email.subject`: must have 1 to 65536 bytes",
        "line 9: task `b`: `email.body`: is no template: ",
        "line 10: task `b`: `email.password`: must be a secret, { env = \"NAME\" } or { file = \"path\" }",
        "line 10: task `b`: `email.password`: is of no use without `user`",
        "line 12: task `c`: `email.smtp`: holds a user or a password: they have keys of their own",
        "line 12: task `c`: `email.user`: is of no use without `password`",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{problem}\n{expected}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}
