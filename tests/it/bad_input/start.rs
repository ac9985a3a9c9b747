//! Servers that are away when the programs start: the programs become ready when the servers appear.

use sexton_tests::platform::Platform;
use sexton_tests::servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer};

use super::probe::{assert_sound, lines, lines_with, not_ready};
use super::wire::{Message, Wire};
use super::{CATALOGUE, succeeded};

#[tokio::test]
async fn programs_that_start_before_their_servers_begin_to_work_when_the_servers_appear() {
    let (postgres, rabbit) = tokio::join!(
        PostgresServer::start_private(PostgresOptions::default()),
        RabbitServer::start_private(RabbitOptions::default())
    );
    let (mut postgres, mut rabbit) = (postgres.unwrap(), rabbit.unwrap());
    let mut platform = Platform::on(postgres.url(), rabbit.url()).await.unwrap();
    platform.catalogue(CATALOGUE);
    let (one, two) = tokio::join!(postgres.kill(), rabbit.kill());
    one.and(two).unwrap();

    let mut programs =
        [platform.start_scheduler("s1", &[]).unwrap(), platform.start_worker("w1", &[]).unwrap()];
    for program in &programs {
        let words = ["does not answer", "check DATABASE_URL and that PostgreSQL runs"];
        not_ready(&platform, program, "database", &words).await;
    }
    postgres.restart().await.unwrap();
    for program in &programs {
        let words = ["cannot be reached", "check AMQP_URL"];
        not_ready(&platform, program, "broker", &words).await;
    }
    rabbit.restart().await.unwrap();
    for program in &mut programs {
        program.ready().await;
    }
    let wire = Wire::connect(&platform).await;
    wire.send(&[Message::new(r#"{"type":"report"}"#).id("at last")]).await;
    succeeded(&platform, "at last").await;
    for program in &programs {
        assert_sound(program);
        assert!(lines_with(program, "cannot reach the database") <= 1, "{}", program.log());
        assert!(lines(program) < 30, "{}", program.log());
    }
}
