//! `/incidents/{id}`: what is wrong, what to do, and what happened since.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::incident::SubjectKind;
use sexton_model::remedy::section_of;
use sexton_operations::incidents::{self, IncidentDetails};
use sexton_store::incidents::Incident;

use super::causes::meaning;
use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::segment::segment;
use crate::pages::shell::visit::Visit;

/// What was just done here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Done {
    /// Somebody takes it on.
    Acknowledged,
    /// Nothing is sent about it.
    Silenced,
    /// Messages are sent again.
    Unsilenced,
    /// It is over.
    Resolved,
}

impl Done {
    /// The word in an address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Silenced => "silenced",
            Self::Unsilenced => "unsilenced",
            Self::Resolved => "resolved",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Acknowledged => "You have taken it on. Nobody is reminded of it any more.",
            Self::Silenced => "You have silenced it. Nothing is sent about it meanwhile.",
            Self::Unsilenced => "You have ended the silence. Messages about it are sent again.",
            Self::Resolved => "You have resolved it. The next violation opens a new incident.",
        }
    }
}

/// The parameters in the address of an incident.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IncidentQuery {
    done: Option<Done>,
}

#[derive(Debug, Template)]
#[template(path = "incidents/show.html")]
struct IncidentPage<'a> {
    frame: Frame,
    details: &'a IncidentDetails,
    incident: &'a Incident,
    notice: Option<&'static str>,
    role: Role,
}

impl IncidentPage<'_> {
    fn kind(&self) -> Option<SubjectKind> {
        SubjectKind::parse(&self.incident.subject_kind)
    }

    /// Of the platform the name says what is wrong already.
    fn title(&self) -> String {
        let Incident { subject_kind, name, cause, .. } = self.incident;
        match self.kind() {
            Some(SubjectKind::Platform) => self.frame.subject(subject_kind, name),
            _ => format!("{}: {}", self.frame.cell(name), self.frame.words(cause)),
        }
    }

    fn sentence(&self) -> Option<&'static str> {
        meaning(self.kind()?, &self.incident.cause)
    }

    /// The section of the documents that says what to do.
    fn section(&self) -> Option<&'static str> {
        Some(section_of(self.kind()?, &self.incident.cause))
    }

    /// The page about what it concerns, and what that is called.
    fn subject(&self) -> Option<(String, &'static str)> {
        let Incident { name, subject, .. } = self.incident;
        let name = segment(name);
        Some(match self.kind()? {
            SubjectKind::Job => (format!("/jobs/{name}"), "the job"),
            SubjectKind::Check => (format!("/checks/{name}"), "the check"),
            SubjectKind::Group => (format!("/failed/groups/{subject}"), "the group of failures"),
            SubjectKind::Channel => ("/channels".to_owned(), "the channels"),
            SubjectKind::Platform => ("/".to_owned(), "the overview"),
        })
    }

    fn is_resolved(&self) -> bool {
        self.incident.state == "resolved"
    }

    fn is_silenced(&self) -> bool {
        self.incident.silenced_until.is_some_and(|until| until > self.frame.now)
    }

    fn action(&self, action: &str) -> String {
        format!("/incidents/{}/{action}", self.incident.id)
    }

    fn command(&self, action: &str) -> String {
        let id = self.incident.id.to_string();
        match action {
            "acknowledge" => copy::command(&["incidents", "ack", &id]),
            "silence" => copy::command(&[
                "incidents",
                "silence",
                &id,
                "--for",
                "2h",
                "--reason",
                copy::REASON,
            ]),
            other => copy::command(&["incidents", other, &id]),
        }
    }

    fn request(&self, action: &str) -> String {
        let body = match action {
            "silence" => json!({"for_s": 7_200, "reason": copy::REASON}),
            _ => Value::Null,
        };
        copy::request("POST", &self.action(action), &body)
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(reference): Path<String>,
    query: PageQuery<IncidentQuery>,
) -> Result<Response, Refusal> {
    let store = visit.reads();
    let found = async {
        let incident = incidents::find(store, &reference).await?;
        incidents::details(store, incident).await
    };
    let details = found.await.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Incidents).await?;
    let notice = query.values.done.map(Done::sentence);
    let (incident, role) = (&details.incident, Role::Operator);
    Ok(html(&IncidentPage { frame, details: &details, incident, notice, role }))
}
