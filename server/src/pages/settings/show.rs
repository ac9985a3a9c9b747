//! The page itself: versions, and the settings with which this server runs.

use askama::Template;
use axum::response::Response;
use serde::Deserialize;
use sexton_model::access::Role;
use sexton_service::settings::{EffectiveSetting, SettingSource};
use sexton_store::status;

use crate::access::Viewer;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// The address says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SettingsQuery {}

/// Settings under a heading.
type Group<'a> = (&'static str, Vec<&'a EffectiveSetting>);

#[derive(Debug, Template)]
#[template(path = "settings/show.html")]
struct SettingsPage {
    frame: Frame,
    host: String,
    /// The number of the last migration.
    schema: Option<i64>,
    /// What is wrong with the schema.
    schema_problem: Option<String>,
    settings: std::sync::Arc<[EffectiveSetting]>,
    admin: Role,
}

impl SettingsPage {
    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for setting in &*self.settings {
            match groups.last_mut().filter(|(name, _)| *name == setting.group) {
                Some((_, settings)) => settings.push(setting),
                None => groups.push((setting.group, vec![setting])),
            }
        }
        groups
    }

    fn source(&self, setting: &EffectiveSetting) -> &'static str {
        match setting.source {
            SettingSource::Environment => "set",
            SettingSource::Default => "default",
        }
    }
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    _query: PageQuery<SettingsQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Settings).await?;
    let schema = status::schema_version(visit.reads()).await;
    let schema = schema.map_err(|error| visit.refuse(error))?;
    let schema_problem = visit.reads().check_schema().await.err().map(|error| error.to_string());
    let (host, settings) = (visit.host().to_owned(), visit.settings());
    Ok(html(&SettingsPage { frame, host, schema, schema_problem, settings, admin: Role::Admin }))
}
