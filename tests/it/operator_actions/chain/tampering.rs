//! Tampering by somebody who owns the database: each kind is done by hand, and found where it begins.

use sexton_model::audit_chain::ChainBreak;
use sexton_operations::audit::chain::verify;

use super::Audit;

/// The tables of the audit, with how a row of each is put back.
const TABLES: [(&str, &str); 4] = [
    ("operator_actions", "OVERRIDING SYSTEM VALUE"),
    ("audit_seals", ""),
    ("audit_unsealed", ""),
    ("audit_chain", ""),
];

impl Audit {
    /// Runs a statement as the owner does who has switched the triggers off.
    pub(super) async fn tamper(&self, statement: &str) {
        let statement =
            format!("BEGIN; SET LOCAL session_replication_role = replica; {statement}; COMMIT");
        self.sql(&statement).await;
    }

    async fn keep(&self) {
        for (table, _) in TABLES {
            self.sql(&format!("CREATE TABLE kept_{table} AS TABLE sexton.{table}")).await;
        }
    }

    async fn put_back(&self) {
        for (table, overriding) in TABLES {
            let columns = format!(
                "DELETE FROM sexton.{table}; INSERT INTO sexton.{table} {overriding} TABLE kept_{table}"
            );
            self.tamper(&columns).await;
        }
    }
}

#[tokio::test]
async fn each_change_removal_insertion_and_reordering_is_found_where_it_begins() {
    let audit = Audit::new().await;
    audit.record(8).await;
    audit
        .sql("INSERT INTO sexton.operator_actions (at, actor, action) VALUES ('2026-01-05 08:00:00+00', 'ann', 'pause')")
        .await;
    audit.seal().await;
    audit.record(1).await;
    audit.keep().await;
    let changed = |position| ChainBreak::Changed { position, action: position };
    let table: Vec<(&str, ChainBreak)> = vec![
        ("UPDATE sexton.operator_actions SET actor = 'bob' WHERE id = 4", changed(4)),
        ("UPDATE sexton.operator_actions SET action = 'resume' WHERE id = 1", changed(1)),
        ("UPDATE sexton.operator_actions SET at = at + interval '1 microsecond' WHERE id = 9", changed(9)),
        ("UPDATE sexton.operator_actions SET at = '2026-01-05 08:00:00+00 BC' WHERE id = 9", changed(9)),
        ("UPDATE sexton.operator_actions SET reason = '' WHERE id >= 5", changed(5)),
        ("UPDATE sexton.operator_actions SET after = '{\"n\": 1}' WHERE id = 3", changed(3)),
        ("UPDATE sexton.operator_actions SET before = 'null' WHERE id = 3", changed(3)),
        ("UPDATE sexton.operator_actions SET from_where = 'x', from_address = '10.0.0.1' WHERE id = 2", changed(2)),
        ("UPDATE sexton.operator_actions SET job_id = gen_random_uuid() WHERE id = 2", changed(2)),
        ("UPDATE sexton.operator_actions SET execution_id = gen_random_uuid() WHERE id = 2", changed(2)),
        ("UPDATE sexton.operator_actions SET bulk_id = 1 WHERE id = 2", changed(2)),
        ("UPDATE sexton.audit_seals SET hash = sha256('x') WHERE position = 6", changed(6)),
        ("DELETE FROM sexton.operator_actions WHERE id = 5", ChainBreak::Removed { position: 5, action: 5 }),
        ("DELETE FROM sexton.operator_actions WHERE id = 9", ChainBreak::Removed { position: 9, action: 9 }),
        (
            "DELETE FROM sexton.operator_actions WHERE id = 5; DELETE FROM sexton.audit_seals WHERE action_id = 5",
            ChainBreak::Missing { position: 5 },
        ),
        (
            "DELETE FROM sexton.operator_actions WHERE id = 1; DELETE FROM sexton.audit_seals WHERE action_id = 1",
            ChainBreak::Missing { position: 1 },
        ),
        (
            "DELETE FROM sexton.operator_actions WHERE id = 9; DELETE FROM sexton.audit_seals WHERE action_id = 9",
            ChainBreak::Missing { position: 9 },
        ),
        // Without its neighbours' hashes the rest does not follow.
        (
            "DELETE FROM sexton.operator_actions WHERE id = 5; DELETE FROM sexton.audit_seals WHERE action_id = 5;
             UPDATE sexton.audit_seals SET position = position - 1 WHERE position > 5;
             UPDATE sexton.audit_chain SET position = position - 1",
            ChainBreak::Changed { position: 5, action: 6 },
        ),
        (
            "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'bob', 'pause')",
            ChainBreak::Inserted { action: 11 },
        ),
        (
            "INSERT INTO sexton.operator_actions (id, at, actor, action) OVERRIDING SYSTEM VALUE VALUES (-3, now(), 'bob', 'pause')",
            ChainBreak::Inserted { action: -3 },
        ),
        (
            "UPDATE sexton.audit_seals SET action_id = CASE action_id WHEN 3 THEN -7 ELSE 3 END WHERE action_id IN (3, 7);
             UPDATE sexton.audit_seals SET action_id = 7 WHERE action_id = -7",
            ChainBreak::Changed { position: 3, action: 7 },
        ),
        ("UPDATE sexton.audit_chain SET hash = sha256('x')", ChainBreak::Head { position: 9 }),
        ("UPDATE sexton.audit_chain SET position = 8", ChainBreak::Head { position: 8 }),
        (
            "UPDATE sexton.audit_chain SET position = 8, hash = (SELECT hash FROM sexton.audit_seals WHERE position = 8)",
            ChainBreak::Outside { position: 9 },
        ),
        ("UPDATE sexton.audit_chain SET anchor_hash = sha256('x')", changed(1)),
        (
            "UPDATE sexton.audit_chain SET anchor_position = 2, anchor_hash = (SELECT hash FROM sexton.audit_seals WHERE position = 2)",
            ChainBreak::Outside { position: 1 },
        ),
        ("DELETE FROM sexton.operator_actions WHERE id = 10", ChainBreak::RemovedUnsealed { action: 10 }),
        ("DELETE FROM sexton.audit_unsealed", ChainBreak::Inserted { action: 10 }),
    ];
    for (statement, expected) in table {
        assert_eq!(audit.problem().await, None, "before {statement}");
        audit.tamper(statement).await;
        assert_eq!(audit.problem().await, Some(expected), "{statement}");
        audit.put_back().await;
    }
    // A removed action that was not sealed keeps nothing else from it.
    audit.record(1).await;
    audit.tamper("DELETE FROM sexton.operator_actions WHERE id = 10").await;
    assert_eq!(audit.seal().await, 1);
    assert_eq!(audit.problem().await, Some(ChainBreak::RemovedUnsealed { action: 10 }));
}

/// Who owns the database can compute the whole chain anew. A head that somebody else has noted shows it.
#[tokio::test]
async fn a_chain_that_its_owner_computed_anew_does_not_lead_over_a_head_that_was_noted() {
    let audit = Audit::new().await;
    audit.record(6).await;
    audit.seal().await;
    let noted = audit.head().await;
    audit.record(2).await;
    audit.seal().await;
    audit.keep().await;
    let whole = verify(audit.db.store(), Some(&noted)).await.unwrap();
    assert!(whole.is_intact, "{whole:?}");
    let anew = "DELETE FROM sexton.audit_seals; DELETE FROM sexton.audit_chain; DELETE FROM sexton.audit_unsealed;
                INSERT INTO sexton.audit_chain (older_to) SELECT max(id) FROM sexton.operator_actions";
    for forgery in [
        "UPDATE sexton.operator_actions SET actor = 'bob' WHERE id = 4",
        "DELETE FROM sexton.operator_actions WHERE id = 6",
        "DELETE FROM sexton.operator_actions WHERE id > 3",
    ] {
        audit.tamper(&format!("{forgery}; {anew}")).await;
        audit.seal().await;
        assert_eq!(audit.problem().await, None, "by itself it is whole: {forgery}");
        let found = verify(audit.db.store(), Some(&noted)).await.unwrap().problem.unwrap();
        assert!(
            matches!(found.found, ChainBreak::OtherHead { position: 6, .. }),
            "{forgery}: {found:?}"
        );
        audit.put_back().await;
    }
}

/// Who owns the database can remove the beginning and move the anchor, as retention does. A head that is younger than what retention
/// may remove shows it.
#[tokio::test]
async fn a_removed_beginning_looks_like_retention_except_to_a_younger_head() {
    let audit = Audit::new().await;
    audit.record(3).await;
    audit.seal().await;
    let noted = audit.head().await;
    audit.record(3).await;
    audit.seal().await;
    audit
        .tamper(
            "UPDATE sexton.audit_chain SET anchor_position = 5, anchor_hash = (SELECT hash FROM sexton.audit_seals WHERE position = 5);
             DELETE FROM sexton.operator_actions WHERE id <= 5; DELETE FROM sexton.audit_seals WHERE position <= 5",
        )
        .await;
    let whole = audit.verify().await;
    assert!(whole.is_intact, "{whole:?}");
    assert_eq!((whole.anchor.position, whole.verified), (5, 1));
    let refused = verify(audit.db.store(), Some(&noted)).await.unwrap_err().to_string();
    let reason = "is at position 3, and actions up to position 5 were removed. Retention keeps 30 days at least: if this head is \
                  younger, somebody else removed them";
    assert!(refused.contains(reason), "{refused}");
}
