export * from "./adapters";
export * from "./client";
export {
  DeletedJob, InvalidArgument, InvalidParams, PausedJob, SextonError, TooManyItems, UnknownJob,
} from "./errors";
export { type Job, defineJob } from "./job";
export type { Cancelled, Demand, Enqueued, Execution, State } from "./results";
export * from "./wait";
