//! The generations of servers: what is tested is what the compose files start and the documents name.

use super::text;

/// Where the newer generation is stated.
const STATEMENT: &str = "scripts/next-servers.sh";

#[test]
fn the_compose_files_start_the_generation_that_test_next_runs_on() {
    let next = next();
    for file in ["docker-compose.yml", "deploy/servers.compose.yml"] {
        let started = images(&text(file));
        for (server, version) in &next {
            let image = match server.as_str() {
                "postgresql" => "postgres",
                other => other,
            };
            let tags: Vec<_> = started.iter().filter(|(name, _)| name == image).collect();
            assert!(!tags.is_empty(), "{file} starts no {image}");
            for (_, tag) in tags {
                assert_eq!(
                    major(tag),
                    major(version),
                    "{file}: {image}:{tag}, {STATEMENT}: {version}"
                );
            }
        }
    }
}

#[test]
fn the_mails_of_the_examples_go_to_a_service_of_the_compose_file() {
    let catalogue = text("examples/tasks.toml");
    let host = catalogue.lines().find_map(|line| line.strip_prefix("smtp = \"smtp://"));
    let host = host.and_then(|rest| rest.split(':').next()).expect("a mail server");
    let compose = text("docker-compose.yml");
    assert!(compose.contains(&format!("\n  {host}:\n")), "{host} is no service");
    let pinned = |tag: &str| tag.contains(|c: char| c.is_ascii_digit());
    assert!(images(&compose).iter().all(|(_, tag)| tag == "local" || pinned(tag)), "a tag is open");
}

#[test]
fn the_documents_name_the_generation_that_test_next_runs_on() {
    for document in ["README.md", "docs/operations/servers.md"] {
        for (server, version) in next() {
            let name = if server == "postgresql" { "PostgreSQL" } else { "RabbitMQ" };
            let text = text(document);
            let row = text.lines().find(|line| line.starts_with(&format!("| {name} | ")));
            let tested = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit("| ").next());
            let tested: Vec<_> = tested.unwrap_or_default().split(", ").collect();
            assert!(tested.contains(&&*version), "{document}: {name} {version} is tested: {row:?}");
        }
    }
}

/// What the script asks for: `(postgresql, 17)`, `(rabbitmq, 4.0)`.
fn next() -> Vec<(String, String)> {
    let script = text(STATEMENT);
    let line = script.lines().find_map(|line| line.strip_prefix("versions='")).expect("versions");
    let requests = line.trim_end_matches('\'').split_whitespace();
    let found: Vec<_> = requests
        .filter_map(|request| request.split_once('='))
        .map(|(server, version)| (server.to_owned(), version.to_owned()))
        .collect();
    assert_eq!(found.len(), 2, "two servers: {line}");
    found
}

/// The images that a compose file names, with their tags.
fn images(file: &str) -> Vec<(String, String)> {
    let named = file.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    named.filter_map(|i| i.split_once(':')).map(|(i, tag)| (i.to_owned(), tag.to_owned())).collect()
}

/// `17` of `17-alpine` and of `17.2`.
fn major(version: &str) -> &str {
    version.split(['.', '-']).next().unwrap_or_default()
}
