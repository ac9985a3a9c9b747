// Grafana's types of a dashboard, for JSON: an enum is the text of its members, and a panel has the options of its kind.
import type * as bargauge from "@grafana/grafana-foundation-sdk/bargauge";
import type * as grafana from "@grafana/grafana-foundation-sdk/dashboard";
import type * as prometheus from "@grafana/grafana-foundation-sdk/prometheus";
import type * as stat from "@grafana/grafana-foundation-sdk/stat";
import type * as timeseries from "@grafana/grafana-foundation-sdk/timeseries";

type Json<T> = 0 extends 1 & T
  ? T
  : T extends string
    ? `${T}`
    : T extends number | boolean | null | undefined
      ? T
      : T extends (infer Item)[]
        ? Json<Item>[]
        : T extends Record<string, unknown> | object
          ? { [Key in keyof T as T[Key] extends Function ? never : Key]: Json<T[Key]> }
          : never;

type Of<Kind extends string, Options, Custom> = Json<
  Omit<grafana.Panel, "type" | "options" | "fieldConfig" | "targets"> & {
    type: Kind;
    options: Options;
    fieldConfig: Omit<grafana.FieldConfigSource, "defaults"> & {
      defaults: Omit<grafana.FieldConfig, "custom"> & { custom?: Custom };
    };
    targets: prometheus.dataquery[];
  }
>;

type Panel =
  | Of<"stat", stat.Options, never>
  | Of<"bargauge", bargauge.Options, never>
  | Of<"timeseries", timeseries.Options, timeseries.FieldConfig>;

export type Dashboard = Omit<Json<grafana.Dashboard>, "panels"> & { panels: (Panel | Json<grafana.RowPanel>)[] };
