/** Errors of a stream: those of an access as RFC 5040 and 5041 name them, and the events that software gets of each. */
import { EventType } from '../../../../abi/index.ts';
import { ErrorLayer, IwarpError, layerOf, typeOf } from '../../../../protocol/iwarp/index.ts';
import { BAD_KEY, BAD_PD, MISSING_RIGHT, OUT_OF_BOUNDS } from '../../memory/index.ts';

/** The bytes pass the end of the 64-bit addresses; in addition to the answers of a translation. */
export const WRAPS = -1;

/** RFC 5041, 7.1; without rights as cxgb4 and irdma name it, since DDP has no code for it. */
const tagged: ReadonlyMap<number, number> = new Map<number, number>([
  [BAD_KEY, IwarpError.TAGGED_STAG_INVALID],
  [BAD_PD, IwarpError.TAGGED_STAG_OF_OTHER_STREAM],
  [OUT_OF_BOUNDS, IwarpError.TAGGED_BOUNDS],
  [MISSING_RIGHT, IwarpError.PROTECTION_ACCESS_RIGHTS],
]);

/** RFC 5040, 4.8. */
const sources: ReadonlyMap<number, number> = new Map<number, number>([
  [BAD_KEY, IwarpError.PROTECTION_STAG_INVALID],
  [BAD_PD, IwarpError.PROTECTION_STAG_OF_OTHER_STREAM],
  [OUT_OF_BOUNDS, IwarpError.PROTECTION_BOUNDS],
  [MISSING_RIGHT, IwarpError.PROTECTION_ACCESS_RIGHTS],
  [WRAPS, IwarpError.PROTECTION_OFFSET_WRAPS],
]);

/** Error of a tagged segment whose translation was refused with `answer`: see memory/translation.ts. */
export const taggedErrorOf = (answer: number): number =>
  tagged.get(answer) ?? IwarpError.DDP_LOCAL_CATASTROPHIC;

/** Returns the same error for the source of a READ. */
export const sourceErrorOf = (answer: number): number =>
  sources.get(answer) ?? IwarpError.OPERATION_CATASTROPHIC_STREAM;

const PROTECTION = 1;
const REMOTE_OPERATION = 2;

/** Event of the QP whose stream has failed with `error`, as Linux's drivers report it (cxgb4, ev.c). */
export function eventTypeOf(error: number): number {
  const layer = layerOf(error);
  const type = typeOf(error);
  if (layer !== ErrorLayer.MPA && type === PROTECTION) return EventType.WQ_ACCESS_ERROR;
  const isRequest =
    (layer === ErrorLayer.RDMAP && type === REMOTE_OPERATION && !isCatastrophic(error)) ||
    error === IwarpError.UNTAGGED_TOO_LONG;
  return isRequest ? EventType.WQ_INVAL_REQ_ERROR : EventType.WQ_CATAS_ERROR;
}

const isCatastrophic = (error: number): boolean =>
  error === IwarpError.OPERATION_CATASTROPHIC_STREAM || error === IwarpError.OPERATION_CATASTROPHIC_ALL;
