//! What a reader of a dashboard finds: each panel in its place, with a unit and an explanation that leads somewhere.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{DASHBOARDS, code_spans, dashboard, panels};
use crate::docs::{root, text};

const COLUMNS: u64 = 24;

#[test]
fn panels_have_numbers_and_places_of_their_own() {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: the id of {title}");
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
            assert!(w > 0 && h > 0 && x + w <= COLUMNS, "{name}: {title} is too wide");
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{name}: {title} lies on another panel");
            }
        }
    }
}

#[test]
fn panels_read_the_chosen_prometheus_and_say_what_they_show() {
    let mut uids = BTreeSet::new();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        assert!(uids.insert(dashboard["uid"].to_string()));
        let variables = &dashboard["templating"]["list"];
        assert_eq!(variables[0]["type"], "datasource");
        assert_eq!(variables[0]["name"], "datasource");
        let sources = |holder: &Value| holder["datasource"]["uid"] == "${datasource}";
        assert!(variables.as_array().unwrap()[1..].iter().all(sources), "{name}: a variable");
        let mut titles = BTreeSet::new();
        for (title, panel) in panels(&dashboard) {
            assert!(!title.is_empty() && titles.insert(title), "{name}: two panels {title}");
            assert!(sources(panel), "{name}: {title}");
            assert!(panel["targets"].as_array().unwrap().iter().all(sources), "{name}: {title}");
            let defaults = &panel["fieldConfig"]["defaults"];
            assert!(!defaults["unit"].as_str().unwrap().is_empty(), "{name}: {title}");
            assert!(panel["description"].as_str().unwrap().len() > 20, "{name}: {title}");
        }
    }
}

#[test]
fn every_page_and_command_of_a_description_exists() {
    let commands = text("docs/reference/commands.md");
    let (mut pages, mut calls) = (0, 0);
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let of_panels = panels(&dashboard).map(|(_, panel)| &panel["description"]);
        for description in of_panels.chain([&dashboard["description"]]) {
            let description = description.as_str().unwrap();
            let words = description.split(|c: char| c.is_whitespace() || ",;:".contains(c));
            for page in words.filter(|word| word.starts_with("docs/")) {
                let page = page.trim_end_matches('.');
                pages += 1;
                assert!(root().join(page).is_file(), "{name}: there is no {page}");
            }
            for code in code_spans(description).filter(|code| code.starts_with("sexton ")) {
                calls += 1;
                let words: Vec<&str> = code.split(' ').take(3).collect();
                let heading = format!("# `{}`\n", words.join(" "));
                let short = format!("# `{}`\n", words[..2].join(" "));
                let known = commands.contains(&heading) || commands.contains(&short);
                assert!(known, "{name}: there is no {code}");
            }
        }
    }
    assert!(pages >= 10 && calls >= 10, "only {pages} pages and {calls} commands were found");
}

/// A reader who sees a limit crossed finds the alert with the same limit.
#[test]
fn limits_are_those_of_the_alerts() {
    let rules = text("deploy/prometheus/rules.yml");
    let dashboard = dashboard("operations.json");
    for (title, metric) in [
        ("Oldest unpublished ticket", "max(sexton_unpublished_ticket_oldest_seconds) > "),
        ("Longest wait", "max by (pool) (sexton_due_oldest_seconds) > "),
        ("Longest wait by pool", "max by (pool) (sexton_due_oldest_seconds) > "),
        ("Failed, for an operator", "sum(max by (pool) (sexton_failed)) > "),
        ("Oldest failed", "max by (pool) (sexton_failed_oldest_seconds) > "),
        ("Firing lag", "sum by (le) (rate(sexton_firing_lag_seconds_bucket[5m]))) > "),
        ("Wait for PostgreSQL", "rate(sexton_db_acquire_seconds_bucket[5m]))) > "),
    ] {
        let (_, after) = rules.split_once(metric).unwrap_or_else(|| panic!("no alert: {metric}"));
        let limit: f64 = after.split_whitespace().next().unwrap().parse().unwrap();
        let (_, panel) = panels(&dashboard).find(|(name, _)| *name == title).unwrap();
        let steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"].as_array().unwrap();
        let last = steps.last().unwrap();
        assert_eq!((last["color"].as_str(), last["value"].as_f64()), (Some("red"), Some(limit)));
    }
}
