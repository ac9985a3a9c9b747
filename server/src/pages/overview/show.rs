//! The page itself.

use std::borrow::Borrow;

use askama::Template;
use axum::Extension;
use axum::response::Response;
use chrono::{DateTime, Utc};
use sexton_operations::error::OperationError;
use sexton_operations::jobs::density::FiringDay;
use sexton_operations::jobs::next_firings::{load_candidates, soonest};
use sexton_operations::status::{self, RecordedStatus, Warning};
use sexton_operations::text;
use sexton_store::Store;
use sexton_store::status::DueExecutions;

use super::count_cache::{CountCache, Counted};
use super::doctor::{Examination, TextPart, parts};
use super::heat::{self, HeatHalf};
use super::tiles::{Tile, tiles};
use crate::access::Viewer;
use crate::api::examination::Examiner;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Firings that the page names.
const NEXT_FIRINGS: usize = 10;

/// The address of the overview says nothing.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OverviewQuery {}

/// A firing to come.
#[derive(Debug)]
struct NextFiring {
    job: String,
    at: DateTime<Utc>,
    /// The job's zone.
    zone: &'static str,
}

#[derive(Debug, Template)]
#[template(path = "overview/show.html")]
struct OverviewPage {
    frame: Frame,
    doctor: Examination,
    status: RecordedStatus,
    tiles: Vec<Tile>,
    next: Result<Vec<NextFiring>, String>,
    density: Result<Counted<FiringDay>, String>,
}

impl OverviewPage {
    /// Where to look because of a warning.
    fn place(&self, warning: &Warning) -> (&'static str, &'static str) {
        match warning {
            Warning::PoolWithoutWorkers { .. } => ("/workers#pools", "Look at the pools"),
            Warning::CatchUpHeld(_) => ("/firings", "Look at the firings"),
            Warning::RawMessagesOverflow(_) => ("/incidents", "Look at the incidents"),
            _ => ("/failed", "Look at the failed executions"),
        }
    }

    /// The parts of a text of the doctor.
    fn parts<'a>(&self, text: &'a str) -> Vec<TextPart<'a>> {
        parts(text)
    }

    fn more_incidents(&self) -> i64 {
        self.status.incidents.count() - self.status.incidents.worst.len() as i64
    }

    fn halves(&self, day: &FiringDay) -> [HeatHalf; 2] {
        heat::halves(day, self.frame.now)
    }

    fn minutes(&self) -> Vec<String> {
        heat::minutes()
    }

    fn more_hot(&self, day: &FiringDay) -> usize {
        day.all_hot.len() - day.hot.len()
    }

    /// A share of the day's firings, in words.
    fn share(&self, percent: impl Borrow<u64>) -> String {
        let percent = percent.borrow();
        if *percent == 0 { "less than 1 %".to_owned() } else { format!("{percent} %") }
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Extension(densities): Extension<CountCache<FiringDay>>,
    Extension(hours): Extension<CountCache<DueExecutions>>,
    Extension(examiner): Extension<Examiner>,
    _query: PageQuery<OverviewQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Overview).await?;
    let store = visit.reads();
    let reading = async {
        let failed_last_day = status::count_failed_last_day(store).await?;
        Ok((status::read_recorded(store, None).await?, failed_last_day))
    };
    let read: Result<_, OperationError> = reading.await;
    let (status, failed_last_day) = read.map_err(|error| visit.refuse(error))?;
    // A schedule that cannot be read must not hide what is wrong.
    let next = next_firings(store, frame.now).await.map_err(|error| error.to_string());
    let density = densities.get(store, frame.now).await.map_err(|error| error.to_string());
    let due = hours.get(store, frame.now).await.map_err(|error| error.to_string());
    let due = due.map(|counted| {
        let age = counted.is_old().then(|| text::ago(counted.at, frame.now));
        (*counted.value, age)
    });
    let tiles = tiles(&status, failed_last_day, &due);
    let doctor = Examination::new(examiner.latest_report(), frame.now);
    Ok(html(&OverviewPage { frame, doctor, status, tiles, next, density }))
}

async fn next_firings(
    store: &Store,
    now: DateTime<Utc>,
) -> Result<Vec<NextFiring>, OperationError> {
    let found = load_candidates(store, &[], None, NEXT_FIRINGS).await?;
    let firings = soonest(&found.jobs, None, NEXT_FIRINGS, now);
    let next = firings.iter().map(|firing| NextFiring {
        job: firing.job.row.name.clone(),
        at: firing.at,
        zone: firing.job.spec.timezone.name(),
    });
    Ok(next.collect())
}
