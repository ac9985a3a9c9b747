/**
 * A call that Sexton refused; nothing was enqueued or cancelled.
 *
 * `sqlstate` is undefined if the client refused the call before it reached the database. Other database errors, such as
 * a lost connection or a serialization failure, stay the driver's own.
 */
export class SextonError extends Error {
  /** The place in the caller's list of the item that `detail` counts as item 1. */
  firstItem = 1;

  constructor(
    message: string,
    readonly sqlstate?: string,
    readonly hint?: string,
    readonly detail?: string,
    cause?: unknown,
  ) {
    super(message, { cause });
    this.name = new.target.name;
  }
}

/** There is no job of this name (SX001). */
export class UnknownJob extends SextonError {}
/** The job was deleted (SX002). */
export class DeletedJob extends SextonError {}
/** The job is paused (SX003). */
export class PausedJob extends SextonError {}
/** An argument is wrong, for example an empty key (SX010). */
export class InvalidArgument extends SextonError {}
/** The params break a limit (SX011), or violate the schema of the task (SX012). */
export class InvalidParams extends SextonError {}
/** One call has more than 10,000 items (SX020). */
export class TooManyItems extends SextonError {}

const CLASSES: Record<string, typeof SextonError> = {
  SX001: UnknownJob,
  SX002: DeletedJob,
  SX003: PausedJob,
  SX010: InvalidArgument,
  SX011: InvalidParams,
  SX012: InvalidParams,
  SX020: TooManyItems,
};

/** Returns the SextonError for a driver's error, or the error itself if it isn't one of Sexton's. */
export function fromDriver(error: unknown): unknown {
  // Drizzle wraps the driver's error in `cause`, Prisma in `meta.driverAdapterError.cause`.
  let found = error as any;
  for (let depth = 0; depth < 5 && found; depth += 1) {
    const code = found.originalCode ?? found.code;
    if (typeof code === "string" && /^SX\d{3}$/.test(code)) {
      const message = found.originalMessage ?? found.message;
      return new (CLASSES[code] ?? SextonError)(message, code, found.hint, found.detail, error);
    }
    found = found.meta?.driverAdapterError ?? found.cause;
  }
  return error;
}
