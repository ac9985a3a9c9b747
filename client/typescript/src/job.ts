/** A job's name with the type of its params. */
export interface Job<Params extends object> {
  readonly name: string;
  /** Never set; it only carries the type. */
  readonly params?: Params;
}

/** Names a job and the type of its params once, so that each call is checked against it. */
export function defineJob<Params extends object>(name: string): Job<Params> {
  return { name };
}

export const jobName = (job: string | Job<any>): string => (typeof job === "string" ? job : job.name);
