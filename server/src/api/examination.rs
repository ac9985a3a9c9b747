//! The platform's state, and its problems: what `sexton status` and `sexton doctor` find, from this process.
//!
//! Both look at the broker, too, if the settings name one. An answer serves everybody who comes within some seconds, and one examination
//! runs at a time, so requests for them burden neither server. The overview of the console shows the doctor's last answer.

mod last_answer;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::Extension;
use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::lint::Severity;
use sexton_operations::actor::Actor;
use sexton_operations::connect::Connector;
use sexton_operations::doctor::fix::{Repair, examine_and_fix};
use sexton_operations::doctor::gather::gather;
use sexton_operations::doctor::{Code, Finding, diagnose, worst};
use sexton_operations::error::OperationError;
use sexton_operations::status::{self, PoolReport, StatusReport};
use sexton_service::clock;
use sexton_service::settings::ConsoleSettings;
use sexton_store::Store;
use tokio::time::timeout;
use utoipa::ToSchema;

pub(crate) use self::last_answer::Latest;
use self::last_answer::{EXAMINATION_TIMEOUT, LastAnswer};
use super::extract::Body;
use super::{Items, ReasonBody};
use crate::access::{Admin, Allowed, Viewer};
use crate::problem::{Problem, ProblemCode};

/// How long an answer about the state serves.
const STATUS_AGE: Duration = Duration::from_secs(5);
/// How long a doctor's answer is reused; each takes about a hundred queries.
const DOCTOR_AGE: Duration = Duration::from_secs(15);
/// How often the doctor examines for pages, which do not wait for it. While nobody has such a page open, it does not.
const PAGES_INTERVAL: Duration = Duration::from_mins(1);
/// The age from which a doctor's answer is not shown any more.
const MAX_SHOWN_AGE: Duration = Duration::from_mins(5);
/// The application's name in PostgreSQL's list of connections.
const APPLICATION_NAME: &str = "sexton serve: doctor";
/// Connections of an examination or a repair.
const CONNECTIONS: u32 = 1;

/// Examines the platform. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Examiner {
    settings: Arc<ConsoleSettings>,
    actor: Arc<Actor>,
    status: LastAnswer<StatusReport>,
    doctor: LastAnswer<DoctorReport>,
}

impl Examiner {
    /// Makes it of the servers' addresses; `host` names this machine.
    pub fn new(settings: ConsoleSettings, host: &str) -> Self {
        let actor = Actor {
            name: "sexton serve".to_owned(),
            host: host.to_owned(),
            process_id: std::process::id(),
            origin: None,
            is_interactive: false,
        };
        Self {
            settings: Arc::new(settings),
            actor: Arc::new(actor),
            status: LastAnswer::none(),
            doctor: LastAnswer::none(),
        }
    }

    /// Whether the settings name a broker.
    fn has_broker(&self) -> bool {
        self.settings.amqp_url().is_ok()
    }

    /// Returns the platform's state, at most [`STATUS_AGE`] old.
    async fn current_status(&self, store: &Store) -> Result<StatusReport, Problem> {
        self.status.get(STATUS_AGE, Box::pin(self.read_status(store))).await
    }

    async fn read_status(&self, store: &Store) -> Result<StatusReport, Problem> {
        let status = status::read(store, &self.settings).await?;
        Ok(status.report())
    }

    /// Returns the doctor's last answer without waiting. If it is old or missing, the doctor begins to examine in the background.
    pub(crate) fn latest_report(&self) -> Latest<DoctorReport> {
        let examiner = self.clone();
        let examine = move || async move { Box::pin(examiner.examine()).await };
        self.doctor.renew(PAGES_INTERVAL, examine);
        self.doctor.latest(MAX_SHOWN_AGE)
    }

    async fn examine(&self) -> Result<DoctorReport, Problem> {
        let connector = self.connector(&self.actor);
        let facts =
            gather(&connector).await.map_err(|error| Problem::unavailable(error.to_string()))?;
        Ok(self.report(diagnose(&facts)))
    }

    /// Repairs what it can, as `actor`. No examination runs meanwhile, and the next requests get what this one leaves.
    async fn repair(&self, actor: &Actor, reason: Option<&str>) -> Result<DoctorRepair, Problem> {
        let _turn = self.doctor.take_turn().await?;
        let connector = self.connector(actor);
        let repairing = Box::pin(examine_and_fix(&connector, reason));
        let repaired = timeout(EXAMINATION_TIMEOUT, repairing).await;
        // Some of it may be done.
        self.doctor.forget();
        let Ok(repaired) = repaired else {
            let detail = "the repairs take too long; those that were begun are in the audit, and a repetition does the others";
            let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
            return Err(Problem::new(status, ProblemCode::TooSlow, detail));
        };
        let (findings, fixed) =
            repaired.map_err(|error| Problem::unavailable(error.to_string()))?;
        let report = self.report(findings);
        self.doctor.keep(report.clone());
        Ok(DoctorRepair { report, fixed })
    }

    fn connector<'a>(&'a self, actor: &'a Actor) -> Connector<'a> {
        let settings = &self.settings;
        Connector { settings, actor, application: APPLICATION_NAME, connections: CONNECTIONS }
    }

    fn report(&self, mut findings: Vec<Finding>) -> DoctorReport {
        let has_broker = self.has_broker();
        // A broker that the settings do not name is no problem of the platform.
        findings.retain(|one| has_broker || one.code != Code::BrokerUnreachable);
        DoctorReport {
            examined_at: clock::now(),
            broker_examined: has_broker,
            worst: worst(&findings),
            findings,
        }
    }
}

fn examiner(examiner: Option<Extension<Examiner>>) -> Result<Examiner, Problem> {
    let missing = || Problem::unavailable("this process examines nothing");
    examiner.map(|Extension(examiner)| examiner).ok_or_else(missing)
}

/// Shows the platform's state: counts, pools, processes, warnings, and how full the broker's queues are.
///
/// At most 5 seconds old. Without `AMQP_URL`, `broker` says so and queues have no numbers.
#[utoipa::path(get, path = "/status", tag = "platform", operation_id = "show_status", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The state.", body = StatusReport)))]
pub async fn show_status(
    allowed: Allowed<Viewer>,
    given: Option<Extension<Examiner>>,
) -> Result<Json<StatusReport>, Problem> {
    let examiner = examiner(given)?;
    examiner.current_status(allowed.reads()).await.map(Json)
}

/// Lists the pools that have jobs, workers or work, by name, at most 1,000.
///
/// They are those of `/status`, which shares its answers with this list: at most 5 seconds old. Without `AMQP_URL` queues have no numbers.
#[utoipa::path(get, path = "/pools", tag = "platform", operation_id = "list_pools", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The pools.", body = Items<PoolReport>)))]
pub async fn list_pools(
    allowed: Allowed<Viewer>,
    given: Option<Extension<Examiner>>,
) -> Result<Json<Items<PoolReport>>, Problem> {
    let examiner = examiner(given)?;
    let status = examiner.current_status(allowed.reads()).await?;
    Ok(Json(Items { items: status.pools }))
}

/// What the doctor has found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoctorReport {
    /// When it looked, by the clock of the process that answers.
    pub examined_at: DateTime<Utc>,
    /// Whether it has looked at the broker; otherwise `AMQP_URL` is not set where `sexton serve` runs, and only the database was
    /// examined.
    pub broker_examined: bool,
    /// The highest severity; absent: nothing was found.
    pub worst: Option<Severity>,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

/// Finds the platform's problems, each with its evidence and a remedy; changes nothing.
///
/// At most 15 seconds old.
#[utoipa::path(get, path = "/doctor", tag = "platform", operation_id = "examine_platform", extensions(("x-role" = json!("viewer"))),
    responses((status = 200, description = "The findings.", body = DoctorReport)))]
pub async fn show_doctor(
    _allowed: Allowed<Viewer>,
    given: Option<Extension<Examiner>>,
) -> Result<Json<DoctorReport>, Problem> {
    let examiner = examiner(given)?;
    examiner.doctor.get(DOCTOR_AGE, Box::pin(examiner.examine())).await.map(Json)
}

/// What was repaired, and what is left.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DoctorRepair {
    /// What is left.
    #[serde(flatten)]
    pub report: DoctorReport,
    /// The repairs.
    pub fixed: Vec<Repair>,
}

/// Repairs what is safe to repair while the platform works, then examines it again. The audit records each repair before it is made.
///
/// A client who leaves does not end it, and it may be repeated.
#[utoipa::path(post, path = "/doctor:fix", tag = "platform", operation_id = "repair_platform", extensions(("x-role" = json!("admin"))),
    request_body = ReasonBody,
    responses((status = 200, description = "What was repaired, and what is left.", body = DoctorRepair)))]
pub async fn repair(
    allowed: Allowed<Admin>,
    given: Option<Extension<Examiner>>,
    Body(ReasonBody { reason }): Body<ReasonBody>,
) -> Result<Json<DoctorRepair>, Problem> {
    let examiner = examiner(given)?;
    let actor = allowed.actor().clone();
    let work =
        allowed.spawn_background(async move { examiner.repair(&actor, reason.as_deref()).await });
    work.await.map_err(|error| OperationError::Failed(error.to_string()))?.map(Json)
}
