/** What a client of the package `pg` offers: a Client, or a PoolClient on which BEGIN was called. */
export interface Queryable {
  query(text: string, values: any[]): Promise<{ rows: any[] }>;
}

/** A transaction of Knex, or Knex itself. */
export interface KnexLike {
  raw(sql: string, bindings: any): PromiseLike<any>;
}

/** A transaction of Drizzle, or its database. */
export interface DrizzleLike {
  execute(query: any): PromiseLike<any>;
}

/** A transaction client of Prisma, or its client. */
export interface PrismaLike {
  $queryRawUnsafe(query: string, ...values: any[]): PromiseLike<any>;
}

/** Splits a statement at its $1, $2, ..., with the values in the order in which they stand there. */
function split(text: string, values: any[]): { pieces: string[]; ordered: any[] } {
  const ordered = Array.from(text.matchAll(/\$(\d+)/g), ([, n]) => values[Number(n) - 1]);
  return { pieces: text.split(/\$\d+/), ordered };
}

/** Runs Sexton's calls in a transaction of Knex. */
export function fromKnex(transaction: KnexLike): Queryable {
  return {
    async query(text, values) {
      const { pieces, ordered } = split(text, values);
      return transaction.raw(pieces.join("?"), ordered);
    },
  };
}

/** Runs Sexton's calls in a transaction of Drizzle; pass the `sql` of drizzle-orm too. */
export function fromDrizzle(
  transaction: DrizzleLike,
  sql: (pieces: TemplateStringsArray, ...values: any[]) => unknown,
): Queryable {
  return {
    async query(text, values) {
      const { pieces, ordered } = split(text, values);
      const found = await transaction.execute(sql(Object.assign(pieces, { raw: pieces }), ...ordered));
      // The driver postgres.js returns the rows themselves.
      return Array.isArray(found) ? { rows: found } : found;
    },
  };
}

/** Runs Sexton's calls in an interactive transaction of Prisma. */
export function fromPrisma(transaction: PrismaLike): Queryable {
  return { query: async (text, values) => ({ rows: await transaction.$queryRawUnsafe(text, ...values) }) };
}
