//! The scheduler: a firing is planned and becomes a row.

use std::hint::black_box;

use sexton_model::cron::Dst;
use sexton_model::job::{Misfire, Overlap, Schedule};
use sexton_model::key;
use sexton_model::plan::overlap::UnderWay;
use sexton_model::plan::{PlanInput, Timetable, plan};
use sexton_model::zone::Zone;

use super::{Call, Case, at, call};

const NAME: &str = "billing.run";
const FIRING: &str = "2026-03-20T07:00:00Z";

pub(super) const CASES: &[Case] = &[
    Case { name: "read a schedule", prepare: read },
    Case { name: "next firing", prepare: next },
    Case { name: "plan a firing", prepare: planned },
    Case { name: "execution key", prepare: execution_key },
    Case { name: "idempotency key", prepare: idempotency_key },
];

fn schedule() -> Schedule {
    Schedule::Cron { expression: "0 8 * * MON-FRI".to_owned() }
}

fn vienna() -> Zone {
    Zone::parse("Europe/Vienna").expect("a zone")
}

fn table() -> Timetable {
    Timetable::new(NAME, &schedule(), vienna(), Dst::Vixie, None).expect("a sound expression")
}

fn read() -> Call {
    let (schedule, zone) = (schedule(), vienna());
    call(move || Timetable::new(NAME, black_box(&schedule), zone, Dst::Vixie, None).is_ok())
}

fn next() -> Call {
    let (table, firing) = (table(), at(FIRING));
    call(move || black_box(&table).next_after(black_box(firing)))
}

fn planned() -> Call {
    let (table, firing, now) = (table(), at(FIRING), at("2026-03-20T07:00:00.012Z"));
    call(move || {
        let due = PlanInput {
            timetable: &table,
            overlap: Overlap::Skip,
            misfire: Misfire::default(),
            next_fire_at: firing,
            under_way: UnderWay::default(),
            held: false,
        };
        plan(black_box(&due), black_box(now))
    })
}

fn execution_key() -> Call {
    let (schedule, firing) = (schedule(), at(FIRING));
    call(move || key::of_firing(black_box(&schedule), black_box(firing)))
}

fn idempotency_key() -> Call {
    call(|| {
        key::idempotency(
            black_box(Some("{job}/{execution_key}/v2")),
            black_box(NAME),
            black_box("cron-2026-03-20T07:00:00Z"),
        )
    })
}
