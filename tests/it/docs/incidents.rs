//! What to do in an incident: each cause has a section, and each section's commands run in the state of the incident, as in the
//! [runbook](super::operations).

use std::collections::BTreeSet;

use sexton_model::check;
use sexton_model::incident::{CHANNEL_FAILS, REOPENED_GROUP, SubjectKind};
use sexton_model::monitor::Cause;
use sexton_model::remedy::section_of;
use sexton_scheduler::alerts::platform_cause::PlatformCause;

use super::links::{leads_somewhere, slug};
use super::operations::{Step, run_section, sections};
use super::text;

pub(super) const PAGE: &str = "docs/operations/incidents.md";

macro_rules! causes {
    ($($test:ident $title:literal;)*) => {
        mod causes {
            $(#[tokio::test]
            async fn $test() {
                super::run_section(super::PAGE, $title).await;
            })*
        }

        const RUN: &[&str] = &[$($title),*];
    };
}

causes! {
    late "late";
    missed "missed";
    too_long "too_long";
    parked "parked";
    failed "failed";
    never_ran "never_ran";
    lock_held "lock_held";
    check_missed "check missed";
    check_too_long "check too_long";
    check_failed "check failed";
    check_never_ran "check never_ran";
    reopened_group "reopened_group";
    ping_endpoint_down "ping_endpoint_down";
    heartbeats_undelivered "heartbeats_undelivered";
    channel_fails "channel_fails";
}

/// The causes that the code can open incidents with.
fn causes_of(subject: SubjectKind) -> Vec<&'static str> {
    match subject {
        SubjectKind::Job => Cause::ALL.map(Cause::as_str).to_vec(),
        SubjectKind::Check => check::CAUSES.map(Cause::as_str).to_vec(),
        SubjectKind::Group => vec![REOPENED_GROUP],
        SubjectKind::Platform => PlatformCause::all().map(PlatformCause::as_str).collect(),
        SubjectKind::Channel => vec![CHANNEL_FAILS],
    }
}

/// The sections to which incidents lead, with what leads there.
fn led_to() -> Vec<(SubjectKind, &'static str, &'static str)> {
    let of_kind = |kind: SubjectKind| {
        causes_of(kind).into_iter().map(move |cause| (kind, cause, section_of(kind, cause)))
    };
    SubjectKind::ALL.into_iter().flat_map(of_kind).collect()
}

#[test]
fn every_cause_leads_to_a_section_about_its_subject() {
    for (kind, cause, section) in led_to() {
        assert!(section.contains('#'), "{kind:?} {cause} leads to a whole page");
        assert!(leads_somewhere("README.md".as_ref(), section), "{kind:?} {cause}: {section}");
        match kind {
            SubjectKind::Job | SubjectKind::Group | SubjectKind::Channel => {
                assert_eq!(section, format!("{PAGE}#{cause}"));
            }
            SubjectKind::Check => assert_eq!(section, format!("{PAGE}#check-{cause}")),
            SubjectKind::Platform => {
                let of_others = led_to().into_iter().find(|(other, _, their_section)| {
                    *other != SubjectKind::Platform && *their_section == section
                });
                assert_eq!(of_others, None, "{cause} of the platform leads to another's section");
            }
        }
    }
}

#[test]
fn every_section_of_the_page_is_about_a_cause_and_runs() {
    let document = text(PAGE);
    let sections = sections(&document);
    let titles: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles, RUN);
    let led_to: BTreeSet<&str> = led_to().into_iter().map(|(_, _, section)| section).collect();
    for section in &sections {
        let path = format!("{PAGE}#{}", slug(&section.title));
        assert!(led_to.contains(path.as_str()), "no incident leads to {path}");
        let commands = section.steps.iter().filter(|step| matches!(step, Step::Command { .. }));
        assert!(
            commands.count() >= 3,
            "{}: how to see why, put it right, know it is over",
            section.title
        );
    }
}
