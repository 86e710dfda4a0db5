/** The one place where plain data gets the type that its author knows: a story is JSON, and a scene's programs agree on its shape. */
import type { JsonValue } from '../../../machine/index.ts';

/** Data that the same scene has drawn, returned or sent. */
export const typed = <T>(data: unknown): T => data as T;

/** Data of a scene's own shape, as JSON carries it. */
export const plainOf = (data: unknown): JsonValue => data as JsonValue;

/** What programs of a scene tell each other under a name, and of what shape. */
export interface Topic<T> {
  readonly name: string;
  /** Never there: it ties the shape to the name. */
  readonly shape?: T;
}

export const topic = <T>(name: string): Topic<T> => ({ name });
