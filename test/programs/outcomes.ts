/** Results in the standard's words: statuses, error codes and events as plain data. */
import {
  eventTypeStr,
  getAsyncEvent,
  type IbvContext,
  type IbvCq,
  IbvWc,
  pollCq,
  spinCq,
  VerbsError,
  wcStatusStr,
} from '../../userlib/index.ts';

/** A completion in a form that a result can carry. */
export interface Outcome {
  readonly wrId: number;
  readonly status: string;
  readonly opcode: number;
  readonly byteLen: number;
  readonly immData: number;
  readonly wcFlags: number;
}

const microsecond = 1e6;
const entries = Array.from({ length: 16 }, () => new IbvWc());

const outcomeOf = ({ wrId, status, opcode, byteLen, immData, wcFlags }: IbvWc): Outcome => ({
  wrId,
  status: wcStatusStr(status),
  opcode,
  byteLen,
  immData,
  wcFlags,
});

/** Waits for `count` completions, spinning. */
export async function take(cq: IbvCq, count: number): Promise<Outcome[]> {
  const taken: Outcome[] = [];
  while (taken.length < count) {
    const found = await spinCq(cq, Math.min(entries.length, count - taken.length), entries);
    for (let index = 0; index < found; index++) taken.push(outcomeOf(entries[index]!));
  }
  return taken;
}

/** Dequeues completions until none has arrived for `quietUs`. */
export async function takeAll(cq: IbvCq, quietUs = 50): Promise<Outcome[]> {
  const taken: Outcome[] = [];
  for (;;) {
    const found = await pollCq(cq, entries.length, entries);
    for (let index = 0; index < found; index++) taken.push(outcomeOf(entries[index]!));
    if (found > 0) continue;
    await cq.cpu.sleep(quietUs * microsecond);
    const late = await pollCq(cq, entries.length, entries);
    if (late === 0) return taken;
    for (let index = 0; index < late; index++) taken.push(outcomeOf(entries[index]!));
  }
}

/** Waits for `count` completions, at most `limitUs`: polls every 10 µs. */
export async function takeWithin(cq: IbvCq, count: number, limitUs: number): Promise<Outcome[]> {
  const taken: Outcome[] = [];
  const deadlinePs = cq.cpu.localPs + limitUs * microsecond;
  while (taken.length < count && cq.cpu.localPs < deadlinePs) {
    const found = await pollCq(cq, Math.min(entries.length, count - taken.length), entries);
    for (let index = 0; index < found; index++) taken.push(outcomeOf(entries[index]!));
    if (found === 0) await cq.cpu.sleep(10 * microsecond);
  }
  return taken;
}

export const statusesOf = (outcomes: readonly Outcome[]): string[] => outcomes.map(({ status }) => status);

/** Result of a control verb: `ok`, or the name of its error code. */
export async function codeOf(verb: Promise<unknown>): Promise<string> {
  try {
    await verb;
    return 'ok';
  } catch (error) {
    if (error instanceof VerbsError) return error.code;
    throw error;
  }
}

/** Names of the asynchronous events of a context, without IBV_EVENT_, until none has occurred for `quietUs`. */
export async function eventsWithin(context: IbvContext, quietUs = 20): Promise<string[]> {
  const events: string[] = [];
  for (;;) {
    const event = await getAsyncEvent(context, quietUs * microsecond);
    if (event === undefined) return events;
    events.push(eventTypeStr(event.eventType).slice('IBV_EVENT_'.length));
  }
}
