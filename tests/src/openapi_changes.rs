//! Compares two descriptions of an API, and finds what breaks clients of the earlier one.
//!
//! A client breaks if a route is gone or needs a higher role, if an answer lacks a field or may leave one out, if a request must have more
//! than before, and if what it may send or be has become less.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum depth of schemas in each other.
const MAX_DEPTH: usize = 24;
/// Roles, the lowest first.
const ROLES: [&str; 4] = ["viewer", "operator", "editor", "admin"];

/// Limits of a value, and whether each is the lower one.
const BOUNDS: [(&str, bool); 8] = [
    ("minimum", true),
    ("exclusiveMinimum", true),
    ("minLength", true),
    ("minItems", true),
    ("maximum", false),
    ("exclusiveMaximum", false),
    ("maxLength", false),
    ("maxItems", false),
];

/// Returns each change that breaks clients of `published`, in words, with its place.
pub fn breaking_changes(published: &Value, current: &Value) -> Vec<String> {
    let mut comparison = Comparison { published, current, found: BTreeSet::new() };
    for (path, item) in fields(&published["paths"]) {
        for (method, operation) in fields(item) {
            let place = format!("{} {path}", method.to_uppercase());
            match current["paths"].get(path).and_then(|item| item.get(method)) {
                None => comparison.add(&place, "the route is gone"),
                Some(now) => comparison.operation(&place, operation, now),
            }
        }
    }
    comparison.found.into_iter().collect()
}

struct Comparison<'a> {
    published: &'a Value,
    current: &'a Value,
    found: BTreeSet<String>,
}

/// In which direction a document goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

impl Comparison<'_> {
    fn add(&mut self, place: &str, change: &str) {
        self.found.insert(format!("{place}: {change}"));
    }

    fn operation(&mut self, place: &str, before: &Value, now: &Value) {
        let rank = |operation: &Value| {
            let role = operation["x-role"].as_str().unwrap_or_default();
            ROLES.iter().position(|one| *one == role)
        };
        if rank(now) > rank(before) {
            self.add(place, "it needs a higher role");
        }
        self.parameters(place, before, now);
        self.body(place, before, now);
        for (status, answer) in fields(&before["responses"]) {
            let place = format!("{place} {status}");
            match now["responses"].get(status) {
                None => self.add(&place, "the status is gone"),
                Some(current) => self.content(&place, answer, current, Direction::ToClient),
            }
        }
    }

    fn parameters(&mut self, place: &str, before: &Value, now: &Value) {
        let find = |operation: &Value, wanted: &Value| {
            let all = operation["parameters"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|one| one["name"] == wanted["name"] && one["in"] == wanted["in"])
        };
        for parameter in before["parameters"].as_array().into_iter().flatten() {
            let place = format!("{place} ?{}", parameter["name"].as_str().unwrap_or_default());
            match find(now, parameter) {
                None => self.add(&place, "the parameter is gone"),
                Some(current) => {
                    if is_true(&current["required"]) && !is_true(&parameter["required"]) {
                        self.add(&place, "it is required now");
                    }
                    let (old, new) = (&parameter["schema"], &current["schema"]);
                    self.schema(&place, (old, new), Direction::ToServer, 0);
                }
            }
        }
        for parameter in now["parameters"].as_array().into_iter().flatten() {
            if is_true(&parameter["required"]) && find(before, parameter).is_none() {
                let name = parameter["name"].as_str().unwrap_or_default();
                self.add(&format!("{place} ?{name}"), "a new parameter is required");
            }
        }
    }

    fn body(&mut self, place: &str, before: &Value, now: &Value) {
        let (old, new) = (&before["requestBody"], &now["requestBody"]);
        let place = format!("{place} body");
        match (old.is_null(), new.is_null()) {
            (true, false) if is_true(&new["required"]) => self.add(&place, "it is required now"),
            (false, true) => self.add(&place, "it is gone"),
            (false, false) => {
                if is_true(&new["required"]) && !is_true(&old["required"]) {
                    self.add(&place, "it is required now");
                }
                self.content(&place, old, new, Direction::ToServer);
            }
            _ => {}
        }
    }

    fn content(&mut self, place: &str, before: &Value, now: &Value, direction: Direction) {
        for (kind, old) in fields(&before["content"]) {
            match now["content"].get(kind) {
                None => self.add(place, &format!("{kind} is gone")),
                Some(new) => self.schema(place, (&old["schema"], &new["schema"]), direction, 0),
            }
        }
    }

    /// Compares what may stand at a place.
    fn schema(
        &mut self,
        place: &str,
        (before, now): (&Value, &Value),
        direction: Direction,
        depth: usize,
    ) {
        if depth > MAX_DEPTH {
            return;
        }
        let old = resolve(self.published, before);
        let new = resolve(self.current, now);
        if direction == Direction::ToServer {
            self.bounds(place, old, new);
        }
        let (old, new) = (Shape::of(self.published, old), Shape::of(self.current, new));
        self.types(place, &old, &new, direction);
        self.words(place, &old, &new, direction);
        for (name, field) in &old.fields {
            let place = format!("{place}.{name}");
            match new.fields.iter().find(|(other, _)| other == name) {
                None => self.add(&place, "the field is gone"),
                Some((_, current)) => self.schema(&place, (field, current), direction, depth + 1),
            }
        }
        for name in old.required.difference(&new.required) {
            if direction == Direction::ToClient && new.fields.iter().any(|(other, _)| other == name)
            {
                self.add(&format!("{place}.{name}"), "the answer may leave it out now");
            }
        }
        for name in new.required.difference(&old.required) {
            if direction == Direction::ToServer {
                self.add(&format!("{place}.{name}"), "it is required now");
            }
        }
        if let (Some(old), Some(new)) = (old.items, new.items) {
            self.schema(&format!("{place}[]"), (&old, &new), direction, depth + 1);
        }
    }

    /// What may be sent no longer because it is too small, too large, too long or of another form.
    fn bounds(&mut self, place: &str, old: &Value, new: &Value) {
        for (name, is_lower) in BOUNDS {
            let is_narrower = match (old[name].as_f64(), new[name].as_f64()) {
                (Some(old), Some(new)) if is_lower => new > old,
                (Some(old), Some(new)) => new < old,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if is_narrower {
                let change = format!("{name} was {}, and is {}", old[name], new[name]);
                self.add(place, &change);
            }
        }
        if new["pattern"].is_string() && new["pattern"] != old["pattern"] {
            self.add(place, "it must have another form");
        }
    }

    fn types(&mut self, place: &str, old: &Shape, new: &Shape, direction: Direction) {
        let (from, to) = match direction {
            Direction::ToServer => (&old.types, &new.types),
            Direction::ToClient => (&new.types, &old.types),
        };
        // Without types anything may be there.
        let is_narrower = !to.is_empty() && (from.is_empty() || !from.is_subset(to));
        if is_narrower {
            let change = format!("{:?} has become {:?}", old.types, new.types);
            self.add(place, &format!("the type {change}"));
        }
    }

    /// A word that may be sent no longer, or that only a newer client knows.
    fn words(&mut self, place: &str, old: &Shape, new: &Shape, direction: Direction) {
        if direction == Direction::ToServer && !new.words.is_empty() {
            let gone: Vec<_> = old.words.difference(&new.words).cloned().collect();
            if !gone.is_empty() || old.words.is_empty() {
                self.add(place, &format!("it may no longer be {}", gone.join(", ")));
            }
        }
    }
}

/// What a schema allows, with its parts put together.
#[derive(Default)]
struct Shape {
    types: BTreeSet<String>,
    words: BTreeSet<String>,
    fields: Vec<(String, Value)>,
    required: BTreeSet<String>,
    items: Option<Value>,
}

impl Shape {
    fn of(document: &Value, schema: &Value) -> Self {
        let mut shape = Self::default();
        shape.add(document, schema, true, 0);
        shape
    }

    fn add(&mut self, document: &Value, schema: &Value, is_certain: bool, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let schema = resolve(document, schema);
        match &schema["type"] {
            Value::String(one) => drop(self.types.insert(one.clone())),
            Value::Array(several) => {
                self.types.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
        let words = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
        self.words.extend(words.map(|word| word.as_str().map_or(word.to_string(), str::to_owned)));
        for (name, field) in fields(&schema["properties"]) {
            self.fields.push((name.clone(), field.clone()));
        }
        if is_certain {
            let required = schema["required"].as_array().into_iter().flatten();
            self.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
        }
        if schema["items"].is_object() {
            self.items = Some(schema["items"].clone());
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.add(document, part, is_certain, depth + 1);
        }
        for several in ["oneOf", "anyOf"] {
            let parts = schema[several].as_array().map(Vec::as_slice).unwrap_or_default();
            // Beside null there is one alternative, whose fields are there if it is.
            let others = parts.iter().filter(|part| part["type"] != "null").count();
            for part in parts {
                self.add(document, part, is_certain && others <= 1, depth + 1);
            }
        }
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

fn fields(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn is_true(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

#[cfg(test)]
mod tests;
