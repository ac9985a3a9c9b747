//! The chain of the audit: what is sealed and in which order, and that each kind of tampering is found.

mod tampering;

use serde_json::{Value, json};
use sexton_model::audit_chain::{ChainBreak, ChainHash, canonical};
use sexton_operations::audit::chain::{AuditVerification, head, verify};
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::audit_sealer::AuditSealer;
use sexton_store::operator::chain::{list_sealed, read_state, seal};
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::database::{TestDatabase, migrator};
use sexton_tests::retention::pass;

/// A database with an audit and without anything else.
struct Audit {
    db: TestDatabase,
}

impl Audit {
    async fn new() -> Self {
        Self { db: TestDatabase::create().await.unwrap() }
    }

    /// Records actions, each in a transaction of its own.
    async fn record(&self, count: i32) {
        for _ in 0..count {
            self.sql("INSERT INTO sexton.operator_actions (at, actor, action, after) VALUES (now(), 'ann', 'pause', '{\"n\": 1.0}')")
                .await;
        }
    }

    async fn sql(&self, statement: &str) -> u64 {
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned())).execute(self.db.pool());
        done.await.unwrap().rows_affected()
    }

    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }

    async fn seal(&self) -> i32 {
        seal(self.db.store(), 1_000).await.unwrap().actions
    }

    async fn head(&self) -> String {
        head(self.db.store()).await.unwrap().head
    }

    /// Retention, two actions at a time; returns how many were removed.
    async fn forget(&self) -> u64 {
        let terms = RetentionPolicy { days: 30, audit_days: Some(400) };
        let targets = [RetentionTarget::Audit];
        pass(self.db.store(), terms, &targets, 2, None).await.unwrap().other
    }

    async fn verify(&self) -> AuditVerification {
        verify(self.db.store(), None).await.unwrap()
    }

    async fn problem(&self) -> Option<ChainBreak> {
        self.verify().await.problem.map(|problem| problem.found)
    }

    /// The ids of the sealed actions, by position.
    async fn order(&self) -> Vec<i64> {
        let sealed = list_sealed(self.db.store(), 0, 10_000).await.unwrap();
        for (record, position) in sealed.iter().zip(1..) {
            assert_eq!(record.position, position, "positions have no gaps");
        }
        sealed.iter().map(|record| record.action).collect()
    }
}

/// The database seals by a SQL expression, and a verification computes it in the program.
#[tokio::test]
async fn the_database_and_the_program_have_one_canonical_form_of_every_value() {
    let audit = Audit::new().await;
    audit
        .sql(
            r#"SET timezone = 'Asia/Kathmandu'; SET datestyle = 'German'; SET sexton.from_where = 'ops1:7 pts/0';
            INSERT INTO sexton.operator_actions (at, actor, from_address, action, job_id, execution_id, bulk_id, reason, before, after) VALUES
            ('2026-01-05 08:00:00.1+00', 'ann', NULL, 'edit', NULL, NULL, NULL, NULL, NULL, NULL),
            ('2026-01-05 08:00:00.000001+00', '', '10.1.2.3/24', '', gen_random_uuid(), gen_random_uuid(), -7, '', 'null', '[]'),
            ('1969-12-31 23:59:59.999999+00', 'änn:3,-,', '::1', E'a\nb\t"', NULL, NULL, 9223372036854775807, E'\u2028 \U0001F980',
             '{"b": 1.50, "a": 1e3, "aa": {"x": [true, null, "ü"]}}'::text::jsonb, '"\\"'),
            ('infinity', 'bob', '2001:db8::/32', 'x', NULL, NULL, 0, 'r', '12345678901234567890.123456789', '{}'),
            ('0044-03-15 08:00:00.5+00 BC', 'eve', NULL, 'edit', NULL, NULL, NULL, NULL, NULL, NULL)"#,
        )
        .await;
    assert_eq!(audit.seal().await, 5);
    let computed: Vec<Vec<u8>> = sqlx::query_scalar(
        "SELECT sexton.canonical_action(o) FROM sexton.operator_actions o ORDER BY id",
    )
    .fetch_all(audit.db.pool())
    .await
    .unwrap();
    let sealed = list_sealed(audit.db.store(), 0, 10).await.unwrap();
    let mut hash = ChainHash::ZERO;
    for (record, computed) in sealed.iter().zip(&computed) {
        let ours = canonical(record.columns.as_ref().unwrap());
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(computed));
        hash = hash.next(computed);
        assert_eq!(record.hash, hash, "at position {}", record.position);
    }
    let first = String::from_utf8(computed[0].clone()).unwrap();
    assert_eq!(
        first,
        "1:1,27:2026-01-05T08:00:00.100000Z,3:ann,12:ops1:7 pts/0,-,4:edit,-,-,-,-,-,-,"
    );
    let early = String::from_utf8(computed[4].clone()).unwrap();
    assert!(early.starts_with("1:5,30:0044-03-15T08:00:00.500000Z BC,3:eve,"), "{early}");
    let verification = audit.verify().await;
    assert!(verification.is_intact, "{verification:?}");
    assert_eq!((verification.verified, verification.head.hash), (5, hash));
    assert_eq!(verification.since.as_deref(), Some("2026-01-05T08:00:00.100000Z"));
}

#[tokio::test]
async fn what_commits_late_is_sealed_late_and_nothing_is_missed() {
    let audit = Audit::new().await;
    let mut late = audit.db.pool().begin().await.unwrap();
    let record =
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'late', 'edit')";
    sqlx::query(record).execute(&mut *late).await.unwrap();
    let mut undone = audit.db.pool().begin().await.unwrap();
    sqlx::query(record).execute(&mut *undone).await.unwrap();
    undone.rollback().await.unwrap();
    audit.record(2).await;
    assert_eq!(audit.verify().await.unsealed, 2);
    assert_eq!(audit.seal().await, 2);
    let early = audit.head().await;
    late.commit().await.unwrap();
    let waiting = audit.verify().await;
    assert_eq!((waiting.is_intact, waiting.verified, waiting.unsealed), (true, 2, 1));
    assert_eq!(audit.seal().await, 1);
    assert_eq!(audit.seal().await, 0);
    assert_eq!(audit.order().await, [3, 4, 1]);
    let whole = verify(audit.db.store(), Some(&early)).await.unwrap();
    assert_eq!((whole.is_intact, whole.verified, whole.unsealed), (true, 3, 0));
}

/// Operators record while several schedulers seal; each action has one position.
#[tokio::test]
async fn several_schedulers_seal_each_action_once_while_operators_act() {
    let audit = Audit::new().await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = audit.db.other_store().unwrap();
        writers.spawn(async move {
            for _ in 0..25 {
                let several = "INSERT INTO sexton.operator_actions (at, actor, action)
                               SELECT now(), 'ann', 'requeue' FROM generate_series(1, 7)";
                sqlx::query(several).execute(store.pool()).await.unwrap();
            }
        });
    }
    let mut sealers = tokio::task::JoinSet::new();
    let (done, ended) = tokio::sync::watch::channel(false);
    for _ in 0..3 {
        let (store, ended) = (audit.db.other_store().unwrap(), ended.clone());
        sealers.spawn(async move {
            let sealer = AuditSealer::new(store);
            while !*ended.borrow() {
                sealer.run_once(None).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
    done.send(true).unwrap();
    while let Some(sealer) = sealers.join_next().await {
        sealer.unwrap();
    }
    audit.seal().await;
    let mut order = audit.order().await;
    order.sort_unstable();
    assert_eq!(order, (1..=700).collect::<Vec<_>>());
    let verification = audit.verify().await;
    assert_eq!(
        (verification.is_intact, verification.verified, verification.unsealed),
        (true, 700, 0)
    );
}

#[tokio::test]
async fn a_batch_is_as_large_as_its_limit_and_an_idle_round_writes_nothing() {
    let audit = Audit::new().await;
    audit.record(5).await;
    let sealed = seal(audit.db.store(), 2).await.unwrap();
    assert_eq!((sealed.actions, sealed.more), (2, true));
    assert_eq!(audit.seal().await, 3);
    let version = "SELECT xmin::text::bigint + xmax::text::bigint FROM sexton.audit_chain";
    let before = audit.number(version).await;
    assert_eq!(audit.seal().await, 0);
    assert_eq!(audit.number(version).await, before);
    // One that was removed before its seal is neither waited for nor written about, for ever.
    audit.record(1).await;
    audit.tamper("DELETE FROM sexton.operator_actions WHERE id = 6").await;
    assert_eq!(audit.seal().await, 0);
    assert_eq!(audit.number(version).await, before);
    let state = read_state(audit.db.store(), 100).await.unwrap();
    assert_eq!((state.unsealed, state.oldest_unsealed_s), (0, 0.0));
    assert_eq!(audit.problem().await, Some(ChainBreak::RemovedUnsealed { action: 6 }));
}

#[tokio::test]
async fn actions_of_before_the_chain_come_first_in_their_order() {
    let audit = Audit::new().await;
    let migrator = migrator().await.unwrap();
    migrator.undo(audit.db.pool(), 26).await.unwrap();
    audit.record(5).await;
    audit.db.store().migrate().await.unwrap();
    audit.record(1).await;
    let state = read_state(audit.db.store(), 100).await.unwrap();
    assert_eq!(state.unsealed, 6);
    assert!(
        audit.verify().await.is_intact,
        "what waits for its seal was not inserted outside the chain"
    );
    assert_eq!(seal(audit.db.store(), 2).await.unwrap().actions, 2);
    assert_eq!(audit.seal().await, 4);
    assert_eq!(audit.order().await, [1, 2, 3, 4, 5, 6]);
    assert!(audit.verify().await.is_intact);
}

#[tokio::test]
async fn retention_leaves_the_last_hash_that_it_removed_as_the_beginning() {
    let audit = Audit::new().await;
    let old = "INSERT INTO sexton.operator_actions (at, actor, action)
               SELECT now() - interval '500 days', 'ann', 'edit' FROM generate_series(1, 5)";
    audit.sql(old).await;
    audit.seal().await;
    let old_head = audit.head().await;
    audit.record(1).await;
    audit.seal().await;
    // Behind a younger one in the chain, and not sealed.
    audit.sql(old).await;
    audit.seal().await;
    audit.sql(old).await;
    assert_eq!(audit.forget().await, 5);
    let verification = audit.verify().await;
    assert!(verification.is_intact, "{verification:?}");
    assert_eq!((verification.anchor.to_string(), verification.verified), (old_head.clone(), 6));
    assert_eq!(audit.number("SELECT min(id) FROM sexton.operator_actions").await, 6);
    // The head that retention has come to is still good, an earlier one is not there any more.
    assert!(verify(audit.db.store(), Some(&old_head)).await.unwrap().is_intact);
    let earlier = old_head.replacen('5', "4", 1);
    let refused = verify(audit.db.store(), Some(&earlier)).await.unwrap_err().to_string();
    assert!(
        refused.contains("is at position 4, and actions up to position 5 were removed"),
        "{refused}"
    );
    let other = format!("5:{}", "0".repeat(64));
    let found = verify(audit.db.store(), Some(&other)).await.unwrap().problem.unwrap();
    assert!(matches!(found.found, ChainBreak::OtherHead { position: 5, .. }), "{found:?}");
    assert_eq!(audit.forget().await, 0);
    assert!(audit.verify().await.is_intact);
}

#[tokio::test]
async fn an_action_of_the_future_is_as_old_as_its_seal_and_does_not_stop_retention() {
    let audit = Audit::new().await;
    audit
        .sql(
            "INSERT INTO sexton.operator_actions (at, actor, action) VALUES
              (now() + interval '10 years', 'ann', 'edit'), ('infinity', 'ann', 'edit')",
        )
        .await;
    audit.record(1).await;
    audit.seal().await;
    assert_eq!(audit.forget().await, 0);
    // As it is 500 days later.
    let later = "UPDATE sexton.audit_seals SET sealed_at = sealed_at - interval '500 days'";
    audit.tamper(&format!("{later} WHERE position <= 2")).await;
    assert_eq!(audit.forget().await, 2);
    let verification = audit.verify().await;
    assert!(verification.is_intact, "{verification:?}");
    assert_eq!((verification.anchor.position, verification.verified), (2, 1));
    // What is left of one that somebody else has removed says nothing about its age.
    audit.tamper(&format!("{later}; DELETE FROM sexton.operator_actions")).await;
    assert_eq!(audit.forget().await, 0);
}

/// The statement of the page for auditors, as they run it.
#[tokio::test]
async fn the_documented_statement_finds_a_changed_and_a_removed_action() {
    let audit = Audit::new().await;
    audit.record(4).await;
    audit.seal().await;
    let page = crate::docs::text("docs/reference/audit-chain.md");
    let [statement] = &crate::docs::blocks(&page, "sql")[..] else { panic!("one statement") };
    let found = async || -> Vec<(i64, bool)> {
        let rows = sqlx::query_as(sqlx::AssertSqlSafe(statement.clone()));
        rows.fetch_all(audit.db.pool()).await.unwrap()
    };
    assert_eq!(found().await, [(1, true), (2, true), (3, true), (4, true)]);
    audit
        .tamper("UPDATE sexton.operator_actions SET actor = 'bob' WHERE id = 2; DELETE FROM sexton.operator_actions WHERE id = 4")
        .await;
    assert_eq!(found().await, [(1, true), (2, false), (3, true), (4, false)]);
}

#[tokio::test]
async fn the_head_and_the_verification_are_documents() {
    let audit = Audit::new().await;
    let zeros = "0".repeat(64);
    let empty = json!(head(audit.db.store()).await.unwrap());
    let expected = json!({
        "head": format!("0:{zeros}"), "position": 0, "hash": zeros, "sealed_at": null, "unsealed": 0,
    });
    assert_eq!(empty, expected);
    audit.record(2).await;
    audit.seal().await;
    audit.sql("ALTER TABLE sexton.operator_actions DISABLE TRIGGER USER; DELETE FROM sexton.operator_actions WHERE id = 2").await;
    let document: Value = json!(audit.verify().await);
    assert_eq!(document["problem"]["kind"], "removed");
    assert_eq!(
        (&document["problem"]["position"], &document["problem"]["action"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(document["problem"]["message"], "action 2 at position 2 was removed");
    assert_eq!((&document["is_intact"], &document["verified"]), (&json!(false), &json!(1)));
}
