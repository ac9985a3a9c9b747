//! The description of the API as a whole; the handlers describe the rest.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi, PathItem, Ref,
    RefOr, Required, ResponseBuilder, Schema, SecurityRequirement, Type, path::Operation,
};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::idempotency::takes_key;
use crate::access::session::SECURE_COOKIE;
use crate::problem::{Problem, ProblemCode, ProblemPlace};

/// The names of the ways to identify the caller of a request.
const TOKEN: &str = "token";
const SESSION: &str = "session";
/// The name of the extension with the role that a route needs.
pub const ROLE_EXTENSION: &str = "x-role";

/// The groups of routes, and what each is about.
const TAGS: [(&str, &str); 10] = [
    ("access", "The caller of a request, sessions, accounts and tokens."),
    ("jobs", "Jobs, their firings and what becomes of them."),
    ("executions", "Executions, their output, and flows of them."),
    ("failures", "Failed executions, their groups, and messages that belong to none."),
    ("bulks", "Actions on many executions."),
    ("approvals", "Actions that wait for another person, and the rules by which they do."),
    ("incidents", "Monitors, incidents and the channels that report them."),
    ("checks", "Checks of jobs that run elsewhere."),
    ("locks", "Locks of jobs and services, and their keys."),
    ("platform", "Processes, the platform's state, and the audit."),
];

fn described_tag(name: &str, about: &str) -> Tag {
    TagBuilder::new().name(name).description(Some(about)).build()
}

/// Adds what every route has in common.
pub(super) fn complete(api: &mut OpenApi) {
    let license =
        LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0"));
    api.info = InfoBuilder::new()
        .title("Sexton")
        .version("1")
        .description(Some(
            "Jobs, executions and failures of a Sexton platform. Documents are those that `sexton … --json` prints. Every answer \
             that is no success is a problem (RFC 9457).",
        ))
        .license(Some(license.build()))
        .build();
    api.tags = Some(TAGS.map(|(name, about)| described_tag(name, about)).to_vec());
    // Relative, so that it is true behind every proxy.
    api.servers = Some(vec![utoipa::openapi::Server::new("/")]);
    api.security =
        Some([TOKEN, SESSION].map(|way| SecurityRequirement::new(way, [""; 0])).to_vec());
    let components = api.components.get_or_insert_with(Components::new);
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("`sexton tokens create NAME --role ROLE` prints one."));
    components.add_security_scheme(TOKEN, SecurityScheme::Http(bearer.build()));
    let cookie = ApiKeyValue::with_description(
        SECURE_COOKIE,
        "`POST /api/v1/session` sets it; by plain HTTP, which only localhost may use, its name is `sexton_session`. A request that changes something must then come from a page of the server, as `Sec-Fetch-Site` or `Origin` shows.",
    );
    components.add_security_scheme(SESSION, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    for (name, schema) in [
        (Problem::name(), Problem::schema()),
        (ProblemPlace::name(), ProblemPlace::schema()),
        (ProblemCode::name(), ProblemCode::schema()),
    ] {
        components.schemas.insert(name.into_owned(), schema);
    }
    refer_to_rows(components);
    for (path, item) in &mut api.paths.paths {
        if let Some(post) = item.post.as_mut().filter(|_| takes_key(path)) {
            post.parameters.get_or_insert_default().push(RefOr::T(idempotency_key()));
        }
        for operation in operations(item) {
            for (status, description) in [
                (
                    "429",
                    "Too many requests of this caller, or failed attempts from this address. Send it again after `Retry-After` seconds.",
                ),
                ("default", "Why it was refused or failed."),
            ] {
                let problem = ContentBuilder::new()
                    .schema(Some(RefOr::Ref(Ref::from_schema_name(Problem::name()))))
                    .build();
                let refused = ResponseBuilder::new()
                    .description(description)
                    .content("application/problem+json", problem);
                operation.responses.responses.insert(status.to_owned(), refused.build().into());
            }
        }
    }
}

/// Lets pages refer to the type of their rows. The derive writes it into each list once more, since a type's parameter is no name to it.
fn refer_to_rows(components: &mut Components) {
    let names: Vec<String> = components.schemas.keys().cloned().collect();
    for (name, schema) in &mut components.schemas {
        let row = ["Page_", "Items_"].iter().find_map(|list| name.strip_prefix(list));
        if let Some(row) = row.filter(|row| names.iter().any(|name| name == row))
            && let RefOr::T(Schema::Object(list)) = schema
            && let Some(RefOr::T(Schema::Array(rows))) = list.properties.get_mut("items")
        {
            rows.items = Ref::from_schema_name(row).into();
        }
    }
}

/// The header by which a POST that is sent again is not carried out again.
fn idempotency_key() -> Parameter {
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A new text for each request, such as a UUID. Sent again with it within 24 hours, the request is not carried out again, and \
             the answer is that of the first time, with `Idempotent-Replayed: true`.",
        ))
        .schema(Some(key.build()))
        .build()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch]
        .into_iter()
        .filter_map(Option::as_mut)
}
