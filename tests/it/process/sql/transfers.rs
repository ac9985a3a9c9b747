//! A statement moves money between accounts while its workers are killed again and again.

use super::Bank;
use crate::process::accounts::{RETRY, SCHEMA, Transfers};

const TRANSFERS: i64 = 10_000;
const KILLS: i64 = 10;

const FUNCTION: &str = "
    CREATE FUNCTION transfer(params jsonb, key text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        giver int := params ->> 'giver'; taker int := params ->> 'taker'; moved bigint := params ->> 'cents';
    BEGIN
        PERFORM FROM accounts WHERE id IN (giver, taker) ORDER BY id FOR UPDATE;
        UPDATE accounts SET cents = cents - moved WHERE id = giver;
        UPDATE accounts SET cents = cents + moved WHERE id = taker;
        INSERT INTO transfers VALUES (key, giver, taker, moved);
        RETURN moved;
    END $$;
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_transfers_under_repeated_kills_of_their_workers_happen_once_each() {
    let bank = Bank::new(SCHEMA, "sql = \"select transfer($1, $2)\"", RETRY).await;
    sqlx::raw_sql(FUNCTION).execute(bank.platform.store().pool()).await.unwrap();
    let transfers = Transfers::claim(&bank.platform, "a.b", "work", TRANSFERS).await;
    let env = [("WORKER_SLOTS", "24"), ("LEASE_MS", "5000")];
    let begun = tokio::time::Instant::now();
    let start = |name: &str| bank.platform.start_worker(name, &env).unwrap();
    let kills = transfers.run(KILLS, start).await;
    println!("MEASURED {TRANSFERS} transfers under {kills} kills in {:?}", begun.elapsed());
    assert!(kills >= 8, "only {kills} kills");
    transfers.happened_once_each().await;
}
