//! Parses settings from a set of variables and collects their problems.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::problem::{Problem, SettingsErrors};
use super::rule::Rule;
use super::setting::{AnySetting, Fallback, Program, Setting};
use super::{table, unknown};

/// The variables of one program, and the problems found so far.
pub(crate) struct Reader {
    program: Program,
    variables: BTreeMap<String, String>,
    problems: Vec<Problem>,
}

impl Reader {
    /// Takes the variables; those with an empty value count as not set.
    pub(crate) fn new(
        program: Program,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let variables = variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Self { program, variables, problems: Vec::new() }
    }

    /// Returns the setting's value, from the variable or its default. `None` if it has neither, or after a problem,
    /// which [`Reader::finish`] then reports.
    pub(crate) fn value<R: Rule + Sync>(&mut self, setting: &Setting<R>) -> Option<R::Value> {
        debug_assert!(setting.about.programs.contains(&self.program), "{}", setting.about.name);
        let text = match (self.variables.get(setting.about.name), setting.about.fallback) {
            (Some(text), _) => text.as_str(),
            (None, Fallback::Text(text)) => text,
            (None, Fallback::Required) => {
                let reason = format!("not set; allowed: {}", setting.allowed());
                self.problems.push(Problem::new(setting.about.name, None, reason));
                return None;
            }
            (None, Fallback::Without(_) | Fallback::Derived(_)) => return None,
        };
        match parse_value(setting, text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// Like [`Reader::value`], for a setting that only a part of the program needs.
    pub(crate) fn value_if_set<R: Rule + Sync>(
        &mut self,
        setting: &Setting<R>,
    ) -> Option<R::Value> {
        self.is_set(setting).then(|| self.value(setting)).flatten()
    }

    /// Like [`Reader::value`], with a default that is computed at start.
    pub(crate) fn value_or<R: Rule + Sync>(
        &mut self,
        setting: &Setting<R>,
        derive: impl FnOnce(&Self) -> R::Value,
    ) -> Option<R::Value> {
        if self.is_set(setting) { self.value(setting) } else { Some(derive(self)) }
    }

    /// Reports that a setting conflicts with the others; nothing if it is not set.
    pub(crate) fn refuse_if_set<R: Rule + Sync>(&mut self, setting: &Setting<R>, reason: &str) {
        if let Some(text) = self.variables.get(setting.about.name) {
            let shown = (!setting.about.secret).then_some(text.as_str());
            self.problems.push(Problem::new(setting.about.name, shown, reason.to_owned()));
        }
    }

    /// Reports that a setting, set or not, conflicts with the others.
    pub(crate) fn refuse<R: Rule + Sync>(&mut self, setting: &Setting<R>, reason: &str) {
        let text = self.variables.get(setting.about.name).map(String::as_str);
        let shown = text.filter(|_| !setting.about.secret);
        self.problems.push(Problem::new(setting.about.name, shown, reason.to_owned()));
    }

    /// Returns a path from a variable of another program.
    pub(crate) fn foreign_path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).map(PathBuf::from)
    }

    /// Returns the settings, or every problem: of the settings, and of unknown names.
    pub(crate) fn finish<T>(mut self, settings: Option<T>) -> Result<T, SettingsErrors> {
        let unknown_names = self.variables.iter().filter_map(|(name, value)| {
            // The value is not shown: it may be a secret under a misspelt name.
            unknown::unknown_name_problem(name, value)
                .map(|reason| Problem::new(name, None, reason))
        });
        self.problems.extend(unknown_names);
        match settings {
            Some(settings) if self.problems.is_empty() => Ok(settings),
            _ => Err(SettingsErrors::new(in_table_order(self.problems))),
        }
    }

    pub(crate) const fn program(&self) -> Program {
        self.program
    }

    pub(crate) fn is_set<R>(&self, setting: &Setting<R>) -> bool {
        self.variables.contains_key(setting.about.name)
    }
}

fn parse_value<R: Rule + Sync>(setting: &Setting<R>, text: &str) -> Result<R::Value, Problem> {
    let outcome = if text.contains('\u{FFFD}') {
        Err("holds bytes that are not UTF-8".to_owned())
    } else {
        setting.rule.parse(text)
    };
    outcome.map_err(|reason| {
        let shown = (!setting.about.secret).then_some(text);
        let reason = format!("{reason}; allowed: {}", setting.allowed());
        Problem::new(setting.about.name, shown, reason)
    })
}

/// Known names first, in the order of the documentation; unknown ones last.
fn in_table_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    let place = |problem: &Problem| {
        table::settings()
            .position(|setting| setting.about().name == problem.name())
            .unwrap_or(usize::MAX)
    };
    problems.sort_by_key(place);
    problems
}
