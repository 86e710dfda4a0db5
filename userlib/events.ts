/** Waiting for events: completion channels and asynchronous events. Both block the thread in the kernel. */
import { AsyncEventType } from '../driver/index.ts';
import { checkArguments, uint32Max } from './numbers.ts';
import type { IbvCompChannel, IbvContext, IbvCq, IbvQp, IbvSrq, IbvTargetQp } from './objects.ts';
import type { VerbsCpu } from './platform.ts';
import { VerbsError, verb } from './verbs-error.ts';

/** An asynchronous event (ibv_async_event): only the field of its element is set. */
export interface IbvAsyncEvent {
  readonly eventType: AsyncEventType;
  readonly cq?: IbvCq;
  readonly qp?: IbvQp | IbvTargetQp;
  readonly srq?: IbvSrq;
  readonly portNum?: number;
}

/**
 * Waits for a completion event of the channel's CQs (ibv_get_cq_event). The CQ must then be armed again, and the event must be
 * acknowledged before the CQ is destroyed. @returns undefined only when `timeoutPs` is given and has passed
 */
export async function getCqEvent(channel: IbvCompChannel, timeoutPs?: number): Promise<IbvCq | undefined> {
  const { context } = channel;
  return verb('ibv_get_cq_event', async () => {
    checkTimeout('ibv_get_cq_event', timeoutPs);
    const calls = context.platform.tap?.calls;
    calls?.awaitsEvent(channel);
    const handle = await waitingIn(
      channel.cpu,
      () => `ibv_get_cq_event for ${cqsOf(channel)}`,
      () => context.kernel.getCqEvent(channel.cpu, channel.handle, timeoutPs),
    );
    if (handle < 0) return undefined;
    const cq = context.cqs.get(handle);
    if (cq === undefined) throw new VerbsError('ibv_get_cq_event', 'EINVAL', 'the CQ is gone');
    cq.ring.armSequence++;
    cq.eventsUnacked++;
    calls?.gotEvent(cq);
    return cq;
  });
}

/** While it runs, errors that end the run name what the thread waits for. */
async function waitingIn<T>(cpu: VerbsCpu, describe: () => string, wait: () => Promise<T>): Promise<T> {
  cpu.waitsIn(describe);
  try {
    return await wait();
  } finally {
    cpu.waitsIn(undefined);
  }
}

/** The CQs with events on a channel, as errors name them. */
function cqsOf(channel: IbvCompChannel): string {
  const names = [...channel.context.cqs.values()]
    .filter((cq) => cq.channel === channel)
    .map(({ ring }) => ring.name);
  return names.length === 0 ? `channel ${channel.handle}, which no CQ has` : names.join(', ');
}

function checkTimeout(verbName: string, timeoutPs: number | undefined): void {
  checkArguments(verbName, ['timeoutPs', timeoutPs ?? 0, Number.MAX_SAFE_INTEGER]);
}

/** Acknowledges events that getCqEvent returned (ibv_ack_cq_events). @throws VerbsError EINVAL for an invalid count */
export function ackCqEvents(cq: IbvCq, count: number): void {
  checkArguments('ibv_ack_cq_events', ['count', count, uint32Max]);
  cq.eventsUnacked = Math.max(0, cq.eventsUnacked - count);
}

/** Waits for an asynchronous event (ibv_get_async_event). @returns undefined only when `timeoutPs` has passed */
export async function getAsyncEvent(
  context: IbvContext,
  timeoutPs?: number,
): Promise<IbvAsyncEvent | undefined> {
  return verb('ibv_get_async_event', async () => {
    checkTimeout('ibv_get_async_event', timeoutPs);
    const calls = context.platform.tap?.calls;
    calls?.awaitsAsyncEvent();
    const record = await waitingIn(
      context.cpu,
      () => 'ibv_get_async_event for its context',
      () => context.kernel.getAsyncEvent(context.cpu, timeoutPs),
    );
    if (record === undefined) return undefined;
    const { eventType, element, handle } = record;
    calls?.gotAsyncEvent(eventType === AsyncEventType.IBV_EVENT_SRQ_LIMIT_REACHED);
    if (element === 'port') return { eventType, portNum: handle };
    const cq = element === 'cq' ? context.cqs.get(handle) : undefined;
    const qp = element === 'qp' ? context.qps.get(handle) : undefined;
    const srq = element === 'srq' ? context.srqs.get(handle) : undefined;
    return { eventType, ...(cq && { cq }), ...(qp && { qp }), ...(srq && { srq }) };
  });
}

/** Does nothing: events need no acknowledgement here, because the kernel drops those of destroyed objects (ibv_ack_async_event). */
export function ackAsyncEvent(_event: IbvAsyncEvent): void {}

/** The name of an event, as ibv_event_type_str gives it. */
export function eventTypeStr(eventType: AsyncEventType): string {
  return Object.entries(AsyncEventType).find(([, code]) => code === eventType)?.[0] ?? `event ${eventType}`;
}
