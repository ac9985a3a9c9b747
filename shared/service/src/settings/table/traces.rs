//! Traces.

use crate::settings::rule::{CollectorUrl, Decimal, Text};
use crate::settings::setting::Program::{Scheduler, Worker};
use crate::settings::setting::{Fallback, Program, Setting, SettingInfo};

const SERVICES: &[Program] = &[Scheduler, Worker];

pub(crate) static OTEL_EXPORTER_OTLP_ENDPOINT: Setting<CollectorUrl> = Setting {
    about: SettingInfo {
        name: "OTEL_EXPORTER_OTLP_ENDPOINT",
        meaning: "The collector that receives traces, by OTLP over grpc.",
        unit: "URL",
        fallback: Fallback::Without("nothing is traced, and nothing connects anywhere"),
        trade_off: "Each attempt makes about three spans. A collector that is down or slow loses spans, and never \
                    delays a job.",
        programs: SERVICES,
        secret: false,
    },
    rule: CollectorUrl,
};

pub(crate) static OTEL_SERVICE_NAME: Setting<Text> = Setting {
    about: SettingInfo {
        name: "OTEL_SERVICE_NAME",
        meaning: "The name of the program in traces.",
        unit: "text",
        fallback: Fallback::Derived("`sexton-scheduler` or `sexton-worker`"),
        trade_off: "Two platforms that send to one collector need different names.",
        programs: SERVICES,
        secret: false,
    },
    rule: Text { what: "a text", max_bytes: 200 },
};

pub(crate) static OTEL_TRACES_SAMPLER_ARG: Setting<Decimal> = Setting {
    about: SettingInfo {
        name: "OTEL_TRACES_SAMPLER_ARG",
        meaning: "The share of traces that are recorded. The trace of a calling program is recorded if that program \
                  records it.",
        unit: "number",
        fallback: Fallback::Text("1.0"),
        trade_off: "Less costs less, and leaves out whole executions, never parts of one. Every scheduler and worker \
                    should have the same.",
        programs: SERVICES,
        secret: false,
    },
    rule: Decimal { min: 0.0, max: 1.0 },
};
