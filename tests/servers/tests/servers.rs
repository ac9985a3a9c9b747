//! The harness's own servers: what tests rely on when they kill one, and that nothing stays behind.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise, in its helpers too")]

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use rustix::process::{Pid, Signal, kill_process};
use sexton_servers::{
    self as servers, PostgresOptions, PostgresServer, RabbitOptions, RabbitServer,
};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

const DEADLINE: Duration = Duration::from_mins(1);

/// As long as each server has to become ready on a busy machine.
const START_DEADLINE: Duration = Duration::from_mins(5);

#[tokio::test]
async fn postgres_keeps_its_data_over_a_kill_and_loses_it_in_a_wipe() {
    let mut server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let (url, port) = (server.url().to_owned(), port_of(server.url()));
    execute(&url, "CREATE TABLE kept (id int)").await.unwrap();

    server.kill().await.unwrap();
    assert_eq!(server.process_ids(), Vec::<i32>::new());
    assert!(is_free(port));
    server.restart().await.unwrap();
    assert_eq!(server.url(), url);
    execute(&url, "SELECT FROM kept").await.unwrap();

    server.pause().await.unwrap();
    let answer = timeout(Duration::from_millis(300), PgConnection::connect(&url)).await;
    assert!(answer.is_err(), "a frozen server answered");
    server.resume().await.unwrap();
    execute(&url, "SELECT FROM kept").await.unwrap();

    server.wipe().await.unwrap();
    let error = execute(&url, "SELECT FROM kept").await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");

    server.stop().await.unwrap();
    assert_eq!(server.process_ids(), Vec::<i32>::new());
    assert!(is_free(port));
    server.end().await.unwrap();
}

#[tokio::test]
async fn two_brokers_live_apart_and_each_keeps_its_queues_until_it_is_wiped() {
    let short = RabbitOptions { configuration: vec!["heartbeat = 7".into()] };
    let (a, b) = tokio::join!(
        RabbitServer::start_private(RabbitOptions::default()),
        RabbitServer::start_private(short)
    );
    let (mut a, b) = (a.unwrap(), b.unwrap());
    let (url, port) = (a.url().to_owned(), port_of(a.url()));
    let to_b = Connection::connect(b.url(), ConnectionProperties::default()).await.unwrap();
    assert_eq!(to_b.configuration().heartbeat(), 7, "the configuration's lines did not arrive");

    let (_connection, channel) = connect(&url).await;
    declare(&channel, false).await.unwrap();
    publish(&channel).await;

    // In good order: RabbitMQ itself may forget a queue that was declared in the moment before a
    // SIGKILL, so nothing is claimed about that.
    a.stop().await.unwrap();
    a.restart().await.unwrap();
    let (_connection, channel) = connect(&url).await;
    let message = channel.basic_get("kept".into(), BasicGetOptions { no_ack: true }).await.unwrap();
    assert_eq!(message.unwrap().data, b"still here");

    a.kill().await.unwrap();
    assert_eq!(a.process_ids(), Vec::<i32>::new());
    assert!(is_free(port));
    to_b.create_channel().await.unwrap();
    a.restart().await.unwrap();
    connect(&url).await;

    a.wipe().await.unwrap();
    let (_connection, channel) = connect(&url).await;
    let error = declare(&channel, true).await.unwrap_err();
    assert!(error.to_string().contains("NOT_FOUND"), "{error}");

    let (stopped, ended) = tokio::join!(a.stop(), b.end());
    stopped.and(ended).unwrap();
    assert_eq!(a.process_ids(), Vec::<i32>::new());
    assert!(is_free(port));
    a.end().await.unwrap();
}

#[tokio::test]
async fn a_killed_owner_leaves_no_server_behind() {
    let mut owner = with_servers(&["sh", "-c", r#"echo "$DATABASE_URL $AMQP_URL"; exec cat"#]);
    owner.env_remove("DATABASE_URL").env_remove("AMQP_URL").stdin(Stdio::piped());
    let mut owner = owner.spawn().unwrap();
    let urls = first_line(&mut owner).await;
    let ports: Vec<u16> = urls.split(' ').map(port_of).collect();
    assert!(ports.iter().all(|port| !is_free(*port)), "{ports:?}");

    owner.kill().await.unwrap();
    let deadline = Instant::now() + DEADLINE;
    while !ports.iter().all(|port| is_free(*port)) {
        assert!(Instant::now() < deadline, "a server outlived its owner");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_signal_is_forwarded_to_the_command_and_its_status_returned() {
    let script = r#"trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done"#;
    let servers = servers::shared().await.unwrap();
    let mut owner = with_servers(&["sh", "-c", script]);
    owner.env("DATABASE_URL", &servers.database_url).env("AMQP_URL", &servers.amqp_url);
    let mut owner = owner.spawn().unwrap();
    assert_eq!(first_line(&mut owner).await, "ready");
    let pid = Pid::from_raw(owner.id().unwrap() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let status = timeout(DEADLINE, owner.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(9));
}

#[tokio::test]
async fn a_migrated_database_is_the_commands_own_and_dropped_after_it() {
    let servers = servers::shared().await.unwrap();
    let mut owner = with_servers(&["--migrated", "sh", "-c", r#"echo "$DATABASE_URL"; exit 7"#]);
    owner.env("DATABASE_URL", &servers.database_url);
    owner.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut owner = owner.spawn().unwrap();
    let url = first_line(&mut owner).await;
    let status = timeout(DEADLINE, owner.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(7));
    assert!(url.contains("sexton_check_"), "{url}");
    let error = PgConnection::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
}

#[tokio::test]
async fn servers_are_of_the_requested_version() {
    let (shared, postgres, rabbit) = tokio::join!(
        servers::shared(),
        PostgresServer::start_private(PostgresOptions::default()),
        RabbitServer::start_private(RabbitOptions::default())
    );
    let (shared, postgres, rabbit) = (shared.unwrap(), postgres.unwrap(), rabbit.unwrap());

    let root = std::env::var_os("TEST_SERVERS_ROOT").unwrap_or_else(|| "/".into());
    let root = PathBuf::from(root).canonicalize().unwrap();
    for pid in postgres.process_ids().into_iter().chain(rabbit.process_ids()) {
        // One that has ended meanwhile has no root any more.
        let Ok(seen) = std::fs::read_link(format!("/proc/{pid}/root")) else { continue };
        assert_eq!(seen, root, "process {pid} runs in another system");
    }

    let requested = std::env::var("TEST_SERVERS_VERSIONS").unwrap_or_default();
    for request in requested.split_whitespace() {
        let (server, line) = request.split_once('=').unwrap();
        let running = match server {
            "postgresql" => [shared.postgres_version(), postgres.version()],
            "rabbitmq" => [shared.rabbit_version(), rabbit.version()],
            other => panic!("no such server: {other}"),
        };
        for version in running {
            assert!(format!("{version}.").starts_with(&format!("{line}.")), "{request}: {version}");
        }
    }
    assert!(shared.description().contains(shared.postgres_version()), "{}", shared.description());
    assert!(shared.description().contains(shared.rabbit_version()), "{}", shared.description());
    let (postgres, rabbit) = tokio::join!(postgres.end(), rabbit.end());
    postgres.and(rabbit).unwrap();
}

#[tokio::test]
async fn a_requested_version_that_is_missing_is_refused() {
    let servers = servers::shared().await.unwrap();
    let refused = [
        ("TEST_SERVERS_VERSIONS", "postgresql=1", "asks for postgresql=1"),
        ("TEST_SERVERS_VERSIONS", "rabbitmq=1.0", "asks for rabbitmq=1.0"),
        ("TEST_SERVERS_VERSIONS", "postgres=17", "asks for postgres=17"),
        ("TEST_SERVERS_ROOT", "/no/such/system", "no server can be started"),
    ];
    for (variable, value, reason) in refused {
        let mut owner = with_servers(&["echo", "ran"]);
        owner.env("DATABASE_URL", &servers.database_url).env("AMQP_URL", &servers.amqp_url);
        if variable == "TEST_SERVERS_ROOT" {
            owner.env_remove("DATABASE_URL").env_remove("AMQP_URL");
        }
        owner.env(variable, value).stderr(Stdio::piped());
        let output = timeout(DEADLINE, owner.output()).await.unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(reason), "{variable}={value}: {stderr}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{variable}={value}");
    }
}

fn with_servers(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_with-servers"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.kill_on_drop(true);
    command
}

async fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let output = child.stdout.as_mut().unwrap();
    timeout(START_DEADLINE, BufReader::new(output).read_line(&mut line)).await.unwrap().unwrap();
    line.trim().to_owned()
}

async fn execute(url: &str, statement: &'static str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(statement).execute(&mut connection).await?;
    connection.close().await
}

/// The connection must be held as long as its channel is used.
async fn connect(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

async fn declare(channel: &Channel, passive: bool) -> lapin::Result<()> {
    // Classic, because a kill follows at once: see `RabbitServer::kill` about quorum queues.
    let options = QueueDeclareOptions { passive, durable: true, ..Default::default() };
    channel.queue_declare("kept".into(), options, FieldTable::default()).await.map(drop)
}

async fn publish(channel: &Channel) {
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let properties = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let published =
        channel.basic_publish("".into(), "kept".into(), options, b"still here", properties).await;
    let confirmation = published.unwrap().await.unwrap();
    assert!(confirmation.is_ack(), "{confirmation:?}");
}

fn port_of(url: &str) -> u16 {
    let address = url.rsplit('@').next().unwrap().split('/').next().unwrap();
    address.rsplit(':').next().unwrap().parse().unwrap()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
