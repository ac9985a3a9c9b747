//! The fields of a part of a manifest, read as what they must be.

use sexton_model::quoting::{plain, quoted};

use super::super::yaml::Value;

/// A part that may be missing, and where it is.
pub(super) struct Fields<'v> {
    value: Option<&'v Value>,
    path: &'static str,
}

impl<'v> Fields<'v> {
    pub(super) fn new(value: Option<&'v Value>, path: &'static str) -> Self {
        Self { value, path }
    }

    pub(super) fn value(&self, name: &str) -> Option<&'v Value> {
        self.value?.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'v str> {
        self.value(name)?.text()
    }

    pub(super) fn boolean(&self, name: &str, problems: &mut Vec<String>) -> Option<bool> {
        let value = self.value(name)?;
        match value.text() {
            Some("true" | "True" | "TRUE") => Some(true),
            Some("false" | "False" | "FALSE") => Some(false),
            _ => {
                problems.push(self.type_problem(name, value, "true or false"));
                None
            }
        }
    }

    pub(super) fn count(&self, name: &str, problems: &mut Vec<String>) -> Option<u64> {
        let value = self.value(name)?;
        let count = value.text().and_then(|text| text.parse::<u32>().ok());
        if count.is_none() {
            problems.push(self.type_problem(name, value, "a whole number"));
        }
        count.map(u64::from)
    }

    fn type_problem(&self, name: &str, value: &Value, what: &str) -> String {
        let given = value.text().map_or_else(|| "a list or map".to_owned(), quoted);
        format!("line {}: {}.{name}: {given} is not {what}", value.line, self.path)
    }

    /// The fields that are none of these, with their lines.
    pub(super) fn unknown(&self, known: &[&str]) -> impl Iterator<Item = (usize, String)> {
        let path = self.path;
        let fields = self.value.map(Value::fields).unwrap_or_default();
        let others = fields.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        let others: Vec<_> =
            others.map(|(name, value)| (value.line, format!("{path}.{}", plain(name)))).collect();
        others.into_iter()
    }
}

/// The texts of a map.
pub(super) fn texts(value: &Value) -> Vec<(String, String)> {
    let list = value.fields().iter();
    list.filter_map(|(name, value)| Some((name.clone(), value.text()?.to_owned()))).collect()
}
