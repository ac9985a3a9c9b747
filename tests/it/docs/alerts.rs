//! What to do about an alert of Prometheus: each rule leads to a section, whose commands run in the situation of the alert, as in
//! the [runbook](super::operations).
//!
//! Each section first brings its situation about, and sees it in the metrics that the rule reads; behind its commands it sees there
//! that the situation is over. How long a rule waits is tested by `promtool`. Sections that go well together share a platform.

use std::collections::BTreeSet;

use super::links::{leads_somewhere, slug};
use super::operations::{Section, Step, run_sections, sections};
use super::text;

pub(super) const PAGE: &str = "docs/operations/alert-runbook.md";
const RULES: &str = "deploy/prometheus/rules.yml";

macro_rules! platforms {
    ($($test:ident [$($title:literal)*];)*) => {
        $(#[tokio::test]
        async fn $test() {
            run_sections(PAGE, &[$($title),*]).await;
        })*

        const RUN: &[&str] = &[$($($title),*),*];
    };
}

platforms! {
    the_alerts_about_schedulers_and_workers_are_over_after_their_commands [
        "SextonNoScheduler" "SextonPoolWithoutWorkers" "SextonWaitsTooLong" "SextonLeasesLost"
    ];
    the_alerts_about_failures_are_over_after_their_commands [
        "SextonFailedTooMany" "SextonFailedTooOld" "SextonAttemptsFail"
    ];
    the_alerts_about_the_broker_are_over_after_their_commands [
        "SextonBrokerDisconnected" "SextonTicketsUnpublished" "SextonFiringLag"
    ];
    the_alerts_about_the_database_are_over_after_their_commands [
        "SextonNoReadings" "SextonDatabaseSlow" "SextonLoopFails"
    ];
    the_alerts_about_firings_are_over_after_their_commands [
        "SextonUnaccountedFirings" "SextonCatchUpHeld"
    ];
}

/// A rule of Prometheus.
#[derive(Debug, Default)]
struct Rule {
    name: String,
    expression: String,
    runbook_url: Option<String>,
}

fn rules() -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut in_expression = false;
    for line in text(RULES).lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            rules.push(Rule { name: name.to_owned(), ..Rule::default() });
        }
        let Some(rule) = rules.last_mut() else { continue };
        if let Some(url) = line.strip_prefix("runbook_url: ") {
            rule.runbook_url = Some(url.to_owned());
        }
        in_expression &= !line.starts_with("for: ") && !line.starts_with("labels: ");
        in_expression |= line.starts_with("expr: ");
        if in_expression {
            rule.expression.push_str(line);
            rule.expression.push(' ');
        }
    }
    assert!(rules.len() >= 15, "only {} rules were found", rules.len());
    rules
}

/// The metrics that a text names.
fn metrics(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("sexton_"))
        .collect()
}

#[test]
fn every_alert_has_a_section_to_which_its_rule_leads_and_every_section_an_alert() {
    let (rules, document) = (rules(), text(PAGE));
    let titles: Vec<String> =
        sections(&document).into_iter().map(|section| section.title).collect();
    let alerts: Vec<String> = rules.iter().map(|rule| rule.name.clone()).collect();
    assert_eq!(titles, alerts, "left: {PAGE}; right: {RULES}");
    for rule in rules {
        let url = rule.runbook_url.unwrap_or_else(|| panic!("{} has no runbook_url", rule.name));
        assert_eq!(url, format!("{PAGE}#{}", slug(&rule.name)));
        assert!(leads_somewhere("README.md".as_ref(), &url), "{} leads to {url}", rule.name);
    }
    let run: BTreeSet<&str> = RUN.iter().copied().collect();
    assert_eq!((run.len(), run), (RUN.len(), titles.iter().map(String::as_str).collect()));
}

/// The conditions of a section that are seen before its first command, and those that are seen behind it.
fn conditions(section: &Section) -> [Vec<&str>; 2] {
    let first = section.steps.iter().position(|step| matches!(step, Step::Command { .. }));
    let (before, behind) = section.steps.split_at(first.unwrap_or(section.steps.len()));
    [before, behind].map(|steps| {
        let conditions = steps.iter().filter_map(|step| match step {
            Step::Act(act) => act.strip_prefix("metric "),
            Step::Command { .. } => None,
        });
        conditions.collect()
    })
}

#[test]
fn every_section_shows_its_situation_and_its_end_in_the_metrics_that_its_rule_reads() {
    let document = text(PAGE);
    for (section, rule) in sections(&document).iter().zip(rules()) {
        let read = metrics(&rule.expression);
        let [before, behind] = conditions(section);
        let shown: BTreeSet<&str> = before.iter().flat_map(|one| metrics(one)).collect();
        assert!(!read.is_empty() && read.is_subset(&shown), "{}: {read:?}, {shown:?}", rule.name);
        let is_over = behind.iter().any(|one| metrics(one).iter().any(|name| read.contains(name)));
        assert!(is_over, "{}: its end is not seen in {read:?}", rule.name);
        let commands = section.steps.iter().filter(|step| matches!(step, Step::Command { .. }));
        assert!(commands.count() >= 2, "{}: what to look at, what to do", rule.name);
    }
}
