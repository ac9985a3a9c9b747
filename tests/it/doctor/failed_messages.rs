//! A failed queue that is not in step with the rows.

use lapin::BasicProperties;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use sexton_broker::names::failed_queue;
use sexton_model::state::State;
use sexton_operations::doctor::Code;

use super::{DoctorFixture, codes, evidence};

impl DoctorFixture {
    /// Puts something into the failed queue that nobody can read.
    pub(super) async fn rubbish(&self) {
        let (channel, _connection) = self.channel().await;
        channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
        let queue = failed_queue(self.platform.namespace());
        let properties = BasicProperties::default().with_delivery_mode(2);
        let options = BasicPublishOptions::default();
        let sent = channel.basic_publish("".into(), queue.into(), options, b"rubbish", properties);
        sent.await.unwrap().await.unwrap();
    }
}

#[tokio::test]
async fn doctor_finds_failed_without_messages() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Failed, 2, true).await;
    let found = fixture.has(Code::FailedWithoutMessages).await;
    assert!(evidence(&found).starts_with("0 messages, 1 failed rows"), "{found}");
    assert_eq!(found["fix"], true, "nothing is there, so it is known what is missing");
    // With something else in the queue, that is not known.
    fixture.execution(State::Failed, 2, true).await;
    fixture.rubbish().await;
    let found = fixture.has(Code::FailedWithoutMessages).await;
    assert_eq!(found["fix"], false, "{found}");
}

#[tokio::test]
async fn doctor_finds_messages_uncounted() {
    let fixture = DoctorFixture::new().await;
    fixture.rubbish().await;
    let found = fixture.has(Code::MessagesUncounted).await;
    assert!(evidence(&found).starts_with("1 messages, 0 failed rows"), "{found}");
}

#[tokio::test]
async fn doctor_finds_messages_without_rows() {
    let fixture = DoctorFixture::new().await;
    fixture.rubbish().await;
    // A real scheduler's sweep writes it down when it starts.
    let _scheduler = fixture.platform.start_scheduler("s1", &[]).unwrap();
    crate::process::until(&fixture.platform, "sexton.unknown_messages", 1).await;
    let found = fixture.has(Code::MessagesWithoutRows).await;
    assert!(evidence(&found).ends_with("1 unknown messages"), "{found}");
    let (output, answer) = fixture.run(&[], &[]).await;
    assert!(!codes(&answer).contains(&"messages_uncounted".to_owned()), "{output}");
}
