//! What the audit keeps, and how it is found again.

use sexton_store::operator::{self, ActionFilter, AuditContext, PageStart, list_actions};
use sexton_store::{Store, StoreOptions};

use super::{BY, Fixture};

/// A store that says where it is, as the console does.
fn from(f: &Fixture, place: &str) -> Store {
    let url = f.db.url().to_owned();
    let from_where = Some(place.to_owned());
    Store::open(&StoreOptions { from_where, ..StoreOptions::new(url, "test") }).unwrap()
}

#[tokio::test]
async fn the_audit_records_actor_time_origin_reason_and_change_of_every_action() {
    let f = Fixture::new().await;
    let id = f.failed(1).await;
    let place = r"ops1:42 pts/0 ssh 10.0.0.1 with \ and 'quotes'";
    operator::discard(&from(&f, place), id, BY, None).await.unwrap();
    operator::restore(f.store(), id, BY, None).await.unwrap();
    let all = operator::list_by_execution(f.store(), id.get()).await.unwrap();
    assert_eq!(all.len(), 2);
    let one = &all[0];
    assert_eq!((one.actor.as_str(), one.action.as_str()), ("ann@ops1", "discard"));
    assert_eq!(one.reason.as_deref(), Some("bank is back"));
    assert_eq!(one.from_where.as_deref(), Some(place));
    assert!(one.from_address.is_some(), "the server saw it come over TCP");
    assert_eq!(one.before.as_ref().unwrap()["state"], "failed");
    assert_eq!(one.after.as_ref().unwrap()["state"], "discarded");
    assert_eq!(all[1].from_where, None, "who does not say it comes from nowhere that is known");
}

#[tokio::test]
async fn bulk_actions_are_recorded_with_the_origin_of_the_operator() {
    let f = Fixture::new().await;
    let id = f.failed(1).await;
    let filter = serde_json::json!({});
    let new_bulk = Fixture::new_bulk(sexton_model::bulk::BulkKind::Discard, &filter);
    sexton_store::bulk::create(&from(&f, "ops1:7 pts/3"), &new_bulk, BY).await.unwrap();
    super::finish(&f.scheduler(), super::now(2_000)).await;
    let all = operator::list_by_execution(f.store(), id.get()).await.unwrap();
    assert_eq!(all[0].from_where.as_deref(), Some("ops1:7 pts/3"));
}

#[tokio::test]
async fn audit_entries_are_found_by_actor_action_and_target_and_paged_both_ways() {
    let f = Fixture::new().await;
    let ids = [f.failed(1).await, f.failed(2).await, f.failed(3).await];
    for id in ids {
        operator::discard(f.store(), id, BY, None).await.unwrap();
    }
    let bob = AuditContext { actor: "bob@ops2", reason: None };
    operator::restore(f.store(), ids[1], bob, None).await.unwrap();
    let find = async |filter: ActionFilter, from, limit| {
        let found = list_actions(f.store(), &filter, from, limit).await.unwrap();
        found.into_iter().map(|it| it.id).collect::<Vec<i64>>()
    };
    let all = ActionFilter::default;
    let newest = PageStart::Newest(None);
    assert_eq!(find(all(), newest, 10).await, [4, 3, 2, 1]);
    assert_eq!(find(all(), PageStart::Newest(Some(3)), 1).await, [2]);
    let after = |after, through| PageStart::After { after, through };
    assert_eq!(find(all(), after(2, i64::MAX), 10).await, [3, 4]);
    assert_eq!(find(all(), after(1, 3), 10).await, [2, 3]);
    for actor in ["bob", "bob@ops2"] {
        assert_eq!(
            find(ActionFilter { actor: Some(actor.into()), ..all() }, newest, 10).await,
            [4]
        );
    }
    let discards = ActionFilter { action: Some("discard".into()), ..all() };
    assert_eq!(find(discards, newest, 10).await, [3, 2, 1]);
    let one = ActionFilter { execution: Some(ids[1].get()), ..all() };
    assert_eq!(find(one, newest, 10).await, [4, 2]);
    let job = ActionFilter { job: Some(f.job.get()), ..all() };
    assert_eq!(find(job, newest, 10).await.len(), 4);
    let future = ActionFilter { since: Some(super::at(0)), ..all() };
    assert_eq!(find(future, newest, 10).await, Vec::<i64>::new());
}
