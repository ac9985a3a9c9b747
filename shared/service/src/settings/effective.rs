//! The settings with which a program runs, to be shown.

use std::collections::BTreeMap;

use super::setting::{AnySetting, Fallback, Program};
use super::table::GROUPS;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingSource {
    /// The environment.
    Environment,
    /// There was none.
    Default,
}

/// A setting, and its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveSetting {
    /// Its heading in the documentation.
    pub group: &'static str,
    /// The environment variable.
    pub name: &'static str,
    /// Its value, without any secret; `None`: it has none.
    pub value: Option<String>,
    /// Where that comes from.
    pub source: SettingSource,
    /// What it means, in full sentences.
    pub meaning: String,
    /// What its absence means.
    pub without: Option<String>,
}

/// Lists the settings that one of `programs` reads, in the order of the documentation. `known` are values that the program computed, or
/// secrets as they may be shown; of other secrets it says only that they are set.
pub(super) fn list(
    programs: &[Program],
    variables: &[(String, String)],
    known: &[(&'static str, String)],
) -> Vec<EffectiveSetting> {
    let set: BTreeMap<&str, &str> = variables
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let known: BTreeMap<&str, &String> = known.iter().map(|(name, value)| (*name, value)).collect();
    let of_group = |group: &'static str, setting: &&dyn AnySetting| {
        let about = setting.about();
        let given = set.get(about.name).copied();
        let value = match (known.get(about.name), given, about.fallback) {
            (Some(value), ..) => Some((*value).clone()),
            (None, Some(_), _) if about.secret => Some("set, and not shown".to_owned()),
            (None, Some(text), _)
            | (None, None, Fallback::Text(text) | Fallback::Derived(text)) => Some(text.to_owned()),
            (None, None, Fallback::Required | Fallback::Without(_)) => None,
        };
        let without = match about.fallback {
            Fallback::Without(text) if given.is_none() => Some(plain(text)),
            _ => None,
        };
        let source =
            if given.is_some() { SettingSource::Environment } else { SettingSource::Default };
        let (name, meaning) = (about.name, plain(about.meaning));
        EffectiveSetting { group, name, value, source, meaning, without }
    };
    let is_read = |setting: &&&dyn AnySetting| {
        setting.about().programs.iter().any(|program| programs.contains(program))
    };
    GROUPS
        .iter()
        .flat_map(|(group, settings)| {
            settings.iter().filter(is_read).map(|setting| of_group(group, setting))
        })
        .collect()
}

/// The texts mark code as Markdown does.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{ServerSettings, table};

    const SECRET: &str = "hunter2";

    fn listed(variables: &[(&str, &str)]) -> Vec<EffectiveSetting> {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        ServerSettings::from_env(variables).unwrap().effective
    }

    fn of<'a>(listed: &'a [EffectiveSetting], name: &str) -> &'a EffectiveSetting {
        listed.iter().find(|setting| setting.name == name).unwrap()
    }

    #[test]
    fn no_secret_is_shown_and_a_url_without_its_password_is() {
        let urls = [
            ("DATABASE_URL", format!("postgres://u:{SECRET}@db/app?password={SECRET}")),
            ("DATABASE_DIRECT_URL", format!("postgres://u:{SECRET}@direct/app")),
            ("AMQP_URL", format!("amqp://u:{SECRET}@broker/v")),
        ];
        let variables: Vec<(&str, &str)> =
            urls.iter().map(|(name, url)| (*name, url.as_str())).collect();
        let shown = listed(&variables);
        assert!(!format!("{shown:?}").contains(SECRET), "{shown:?}");
        assert_eq!(of(&shown, "DATABASE_URL").value.as_deref(), Some("postgres://u:***@db/app"));
        assert_eq!(of(&shown, "AMQP_URL").value.as_deref(), Some("amqp://u:***@broker/v"));
    }

    #[test]
    fn a_secret_without_a_form_to_show_is_only_said_to_be_set() {
        for setting in table::settings().filter(|setting| setting.about().secret) {
            let about = setting.about();
            let variables = [(about.name.to_owned(), SECRET.to_owned())];
            let shown = list(about.programs, &variables, &[]);
            assert_eq!(of(&shown, about.name).value.as_deref(), Some("set, and not shown"));
        }
    }

    #[test]
    fn a_default_is_shown_as_such_and_an_empty_variable_is_absent() {
        let url = ("DATABASE_URL", "postgres://db/app");
        let shown = listed(&[url, ("DB_POOL_SIZE", "20"), ("SERVE_REQUESTS_PER_MINUTE", "")]);
        let size = of(&shown, "DB_POOL_SIZE");
        assert_eq!((size.value.as_deref(), size.source), (Some("20"), SettingSource::Environment));
        let requests = of(&shown, "SERVE_REQUESTS_PER_MINUTE");
        assert_eq!(requests.value.as_deref(), Some("600"));
        assert_eq!(requests.source, SettingSource::Default);
        let proxies = of(&shown, "SERVE_TRUSTED_PROXIES");
        assert!(proxies.value.is_none() && proxies.without.is_some(), "{proxies:?}");
        assert!(of(&shown, "SEXTON_INSTANCE").value.is_some());
        assert!(!shown.iter().any(|setting| setting.name == "WORKER_SLOTS"));
    }
}
