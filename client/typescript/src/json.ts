import { InvalidParams } from "./errors";

const MAX_DEPTH = 1000;

/**
 * Writes a value as JSON text, with every digit of a bigint.
 *
 * It differs from JSON.stringify where that changes a value silently: it refuses NaN, infinite numbers, Map, Set,
 * functions and symbols.
 */
export function toJson(value: unknown, place = "params", depth = 0): string {
  if (depth > MAX_DEPTH) throw refusal(place.slice(0, 60), "is nested too deep, or contains itself");
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value === "boolean" || typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw refusal(place, `is ${value}`);
    return JSON.stringify(value);
  }
  if (typeof value !== "object") throw refusal(place, `is of the type ${typeof value}`);
  if (typeof (value as any).toJSON === "function") return toJson((value as any).toJSON(), place, depth + 1);
  if (Array.isArray(value)) {
    return `[${Array.from(value, (item, n) => toJson(item ?? null, `${place}[${n}]`, depth + 1)).join(",")}]`;
  }
  if (value instanceof Map || value instanceof Set) throw refusal(place, "is a Map or a Set");
  const fields = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${JSON.stringify(key)}:${toJson(item, `${place}.${key}`, depth + 1)}`);
  return `{${fields.join(",")}}`;
}

function refusal(place: string, problem: string): InvalidParams {
  return new InvalidParams(
    `${place} ${problem}, which is not JSON`,
    undefined,
    "Pass objects, arrays, strings, finite numbers, bigints, booleans and null.",
  );
}
