//! What `sexton serve` measures.

use super::Histogram;
use super::family::{Info, Kind, Label, Values};
use crate::settings::Program::Server;

/// Requests by route, method and class of status: few words each, none of which a client chooses.
pub static HTTP_REQUEST_DURATION: Histogram<3> = Histogram::of_waits(Info {
    name: "http_request_duration_seconds",
    help: "From a request's head to the begin of its answer; a ping's commit is in between. Not of clients that left before.",
    kind: Kind::Histogram,
    labels: &[
        Label {
            name: "route",
            values: Values::Fixed(
                "the route as it is declared, such as `/ping/{*path}` or `/api/v1/jobs/{name}`, or `other`: there is none",
            ),
        },
        Label {
            name: "method",
            values: Values::Fixed("`GET`, `HEAD`, `POST`, `DELETE` or `other`"),
        },
        Label { name: "status", values: Values::Fixed("`2xx`, `3xx`, `4xx` or `5xx`") },
    ],
    programs: &[Server],
    is_platform: false,
});
