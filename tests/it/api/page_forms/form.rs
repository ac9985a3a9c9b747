//! The forms of a page, read and filled in as a browser does it.

use url::form_urlencoded::Serializer;

/// A field that is sent, or can be.
#[derive(Debug)]
struct Field {
    name: String,
    value: String,
    /// What it can hold; `None`: any text.
    choices: Option<Vec<String>>,
    /// A checkbox and a button are sent only if somebody chooses them.
    is_sent: bool,
}

impl Field {
    fn takes(&self, name: &str, value: &str) -> bool {
        let is_possible =
            self.choices.as_ref().is_none_or(|choices| choices.iter().any(|it| it == value));
        self.name == name && is_possible
    }

    fn of_input(tag: &str) -> Option<Self> {
        let name = attribute(tag, "name")?;
        let value = attribute(tag, "value");
        let kind = attribute(tag, "type");
        let (value, choices, is_sent) = match kind.as_deref() {
            Some("hidden") => {
                let value = value.unwrap_or_default();
                (value.clone(), Some(vec![value]), true)
            }
            Some("checkbox") => {
                let value = value.unwrap_or_else(|| "on".to_owned());
                (value.clone(), Some(vec![value]), tag.contains(" checked"))
            }
            _ => (value.unwrap_or_default(), None, true),
        };
        Some(Self { name, value, choices, is_sent })
    }

    fn of_textarea((tag, text): (&str, &str)) -> Option<Self> {
        let name = attribute(tag, "name")?;
        // A browser drops a line break at the beginning.
        let value = unescaped(text.strip_prefix('\n').unwrap_or(text));
        Some(Self { name, value, choices: None, is_sent: true })
    }

    fn of_select((tag, options): (&str, &str)) -> Option<Self> {
        let name = attribute(tag, "name")?;
        let options = elements(options, "option");
        let value_of = |option: &(&str, &str)| {
            attribute(option.0, "value").unwrap_or_else(|| unescaped(option.1))
        };
        let selected = options.iter().find(|option| option.0.contains(" selected"));
        let value = selected.or(options.first()).map(value_of).unwrap_or_default();
        let choices = options.iter().map(value_of).collect();
        Some(Self { name, value, choices: Some(choices), is_sent: true })
    }

    /// A button that is sent with the form, if it is the one that was pressed.
    fn of_button(tag: &str) -> Option<Self> {
        let (name, value) = (attribute(tag, "name")?, attribute(tag, "value")?);
        Some(Self { name, value: value.clone(), choices: Some(vec![value]), is_sent: false })
    }
}

/// A form that changes something.
#[derive(Debug)]
pub(super) struct Form {
    action: String,
    fields: Vec<Field>,
}

impl Form {
    /// Finds the first form of a page that is sent to `action` and takes these values, and fills it in. A hidden field, a checkbox and a
    /// button take only the value that they have.
    #[track_caller]
    pub(super) fn filled(page: &str, action: &str, values: &[(&str, &str)]) -> Self {
        let forms = elements(page, "form").into_iter().filter(|(tag, _)| is_post(tag));
        let mut forms: Vec<Self> = forms.map(Self::read).collect();
        let fits = |form: &Self| {
            let takes = |(name, value): &(&str, &str)| {
                form.fields.iter().any(|field| field.takes(name, value))
            };
            form.action == action && values.iter().all(takes)
        };
        let Some(at) = forms.iter().position(fits) else {
            panic!("no form of {action} takes {values:?}: {forms:#?}")
        };
        let mut form = forms.swap_remove(at);
        for (name, value) in values {
            let field = form.fields.iter_mut().find(|field| field.takes(name, value)).unwrap();
            (*value).clone_into(&mut field.value);
            field.is_sent = true;
        }
        form
    }

    fn read((tag, content): (&str, &str)) -> Self {
        let action = attribute(tag, "action").unwrap_or_else(|| panic!("no action: {tag}"));
        let inputs = elements(content, "input").into_iter().map(|(tag, _)| Field::of_input(tag));
        let texts = elements(content, "textarea").into_iter().map(Field::of_textarea);
        let selects = elements(content, "select").into_iter().map(Field::of_select);
        let buttons = elements(content, "button").into_iter().map(|(tag, _)| Field::of_button(tag));
        let fields = inputs.chain(texts).chain(selects).chain(buttons).flatten().collect();
        Self { action, fields }
    }

    /// The body that a browser sends: empty fields are in it as well.
    pub(super) fn body(&self) -> String {
        let sent = self.fields.iter().filter(|field| field.is_sent);
        let mut body = Serializer::new(String::new());
        for field in sent {
            body.append_pair(&field.name, &field.value);
        }
        body.finish()
    }
}

fn is_post(tag: &str) -> bool {
    attribute(tag, "method").as_deref() == Some("post")
}

/// The elements of a name, each as its attributes and what stands in it. None of them contains another one.
fn elements<'a>(text: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let (begin, end) = (format!("<{name}"), format!("</{name}>"));
    let mut found = Vec::new();
    for part in text.split(begin.as_str()).skip(1) {
        // An attribute has it escaped.
        let (tag, content) = part.split_once('>').unwrap_or_else(|| panic!("no end: {part}"));
        found.push((tag, content.split(end.as_str()).next().unwrap_or_default()));
    }
    found
}

/// The value of an attribute, as the browser reads it.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split('"').next().map(unescaped)
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (entity, after) = part.split_once(';').unwrap_or_else(|| panic!("not escaped: {text}"));
        let number = entity.strip_prefix('#').and_then(|number| number.parse::<u32>().ok());
        let character = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            _ => number.and_then(char::from_u32),
        };
        plain.push(character.unwrap_or_else(|| panic!("{entity} is no character: {text}")));
        plain.push_str(after);
    }
    plain
}

#[test]
fn a_form_is_read_and_filled_in_as_by_a_browser() {
    let page = r#"<form method="get" action="/a"><input name="since"></form>
        <form method="post" action="/a"><input type="hidden" name="state" value="open"><button type="submit">x</button></form>
        <form class="long" method="post" action="/a">
        <input type="hidden" name="state" value="muted"><input id="why" name="reason" value="a &#38; b" required>
        <textarea name="params" rows="2">
{&#34;n&#34;: 1}</textarea><select name="role"><option>viewer</option><option selected>editor</option></select>
        <input type="checkbox" name="stay" value="true"><input type="checkbox" name="no_verify" value="true" checked>
        <button type="submit" name="apply" value="true">y</button></form>"#;
    let form = Form::filled(page, "/a", &[("state", "muted")]);
    let plain = "state=muted&reason=a+%26+b&no_verify=true&params=%7B%22n%22%3A+1%7D&role=editor";
    assert_eq!(form.body(), plain);
    let values = [("state", "muted"), ("stay", "true"), ("role", "viewer"), ("apply", "true")];
    let body = Form::filled(page, "/a", &values).body();
    assert_eq!(
        body,
        "state=muted&reason=a+%26+b&stay=true&no_verify=true&params=%7B%22n%22%3A+1%7D&role=viewer&apply=true"
    );
}
