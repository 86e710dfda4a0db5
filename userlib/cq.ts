/**
 * Completion queues and their events: creation, resizing, moderation, destruction, channels. Polling is in `poll-cq.ts`.
 *
 * Resizing: the device marks the end of the old ring with an entry of its own; CQEs that the program has not dequeued yet move
 * to the new ring, one slot later, because the mark has used a number (interface sheet 3.16; rdma-core).
 */
import { CqeOpcode, cqe, cqeBytes, cqRecord } from '../abi/index.ts';
import { log2Ceil } from '../base/index.ts';
import { CompletionRing } from './completion-ring.ts';
import { checkArguments, checkCount, uint16Max } from './numbers.ts';
import type { IbvCompChannel, IbvContext, IbvCq, IbvSrq } from './objects.ts';
import { QueueMemory } from './queue-memory.ts';
import { VerbsError, verb } from './verbs-error.ts';

/** Creates a channel on which CQs raise their events (ibv_create_comp_channel). */
export async function createCompChannel(context: IbvContext): Promise<IbvCompChannel> {
  const handle = await verb('ibv_create_comp_channel', () =>
    context.kernel.createCompletionChannel(context.cpu),
  );
  return { context, handle, cpu: context.cpu };
}

/** Destroys a channel (ibv_destroy_comp_channel). Rejects with EBUSY while a CQ uses it. */
export const destroyCompChannel = (channel: IbvCompChannel): Promise<void> =>
  verb('ibv_destroy_comp_channel', () =>
    channel.context.kernel.destroyCompletionChannel(channel.context.cpu, channel.handle),
  );

/** Attributes of a CQ, for every verb that creates one. */
interface CqAttributes {
  readonly cqe: number;
  readonly cqContext: unknown;
  readonly channel: IbvCompChannel | null;
  readonly compVector: number;
  /** Whether successful completions carry the core clock. */
  readonly hasTimestamps: boolean;
}

/** Creates a CQ of at least `cqe` entries (ibv_create_cq). */
export const createCq = (
  context: IbvContext,
  cqe: number,
  cqContext: unknown = null,
  channel: IbvCompChannel | null = null,
  compVector = 0,
): Promise<IbvCq> =>
  makeCq('ibv_create_cq', context, { cqe, cqContext, channel, compVector, hasTimestamps: false });

/** Creates a CQ. @param verbName name of the verb in errors */
export async function makeCq(
  verbName: string,
  context: IbvContext,
  { cqe: cqeMin, cqContext, channel, compVector, hasTimestamps }: CqAttributes,
): Promise<IbvCq> {
  const { memory } = context.platform;
  const calls = context.platform.tap?.calls;
  const place = calls?.place();
  return verb(verbName, async () => {
    const entries = entriesFor(verbName, context, cqeMin);
    checkArguments(verbName, ['compVector', compVector, context.numCompVectors - 1]);
    await context.cpu.settle();
    const buffer = mapOrFail(verbName, context, entries * cqeBytes);
    const record = context.cqRecords.take();
    try {
      if (record === undefined) throw new VerbsError(verbName, 'ENOMEM', 'no memory for a doorbell record');
      const { handle, cqn } = await context.kernel.createCq(context.cpu, {
        entries,
        bufferAddress: buffer.address,
        doorbellRecordAddress: record.address,
        channel: channel?.handle ?? -1,
        completionVector: compVector,
        hasTimestamps,
      });
      const ring = new CompletionRing(cqn, memory, buffer, entries, record);
      const cq: IbvCq = {
        context,
        channel,
        cqContext,
        handle,
        cqe: entries - 1,
        cpu: context.cpu,
        ring,
        eventsUnacked: 0,
      };
      context.cqs.set(handle, cq);
      calls?.made('CQ', cqn, place);
      return cq;
    } catch (error) {
      if (record !== undefined) context.cqRecords.give(record);
      buffer.unmap();
      throw error;
    }
  });
}

/** Resizes a CQ to at least `cqe` entries (ibv_resize_cq). Rejects with EINVAL if it holds more completions than that. */
export async function resizeCq(cq: IbvCq, cqeMin: number): Promise<void> {
  const { context, ring } = cq;
  await verb('ibv_resize_cq', async () => {
    const entries = entriesFor('ibv_resize_cq', context, cqeMin);
    if (entries === ring.entries) return;
    await cq.cpu.settle();
    if (outstanding(ring) + 1 > entries)
      throw new VerbsError(
        'ibv_resize_cq',
        'EINVAL',
        `the CQ holds ${outstanding(ring)} completions, expected fewer than ${entries}`,
      );
    const buffer = mapOrFail('ibv_resize_cq', context, entries * cqeBytes);
    disownEntries(cq, buffer, entries);
    try {
      await context.kernel.resizeCq(context.cpu, {
        cq: cq.handle,
        entries,
        bufferAddress: buffer.address,
      });
    } catch (error) {
      buffer.unmap();
      throw error;
    }
    await cq.cpu.settle();
    await moveEntries(cq, buffer, entries);
    cq.cqe = entries - 1;
  });
}

/** Moderates events: one after `cqCount` completions or `cqPeriod` µs (ibv_modify_cq). */
export const modifyCq = (cq: IbvCq, cqCount: number, cqPeriod: number): Promise<void> =>
  verb('ibv_modify_cq', async () => {
    checkArguments('ibv_modify_cq', ['cqCount', cqCount, uint16Max], ['cqPeriod', cqPeriod, uint16Max]);
    await cq.context.kernel.modifyCq(cq.context.cpu, cq.handle, cqCount, cqPeriod);
  });

/** Destroys a CQ (ibv_destroy_cq). Rejects with EBUSY while a QP uses it, or while it has unacknowledged events (libibverbs would wait for them). */
export async function destroyCq(cq: IbvCq): Promise<void> {
  const { context, ring } = cq;
  await verb('ibv_destroy_cq', async () => {
    if (cq.eventsUnacked > 0) {
      throw new VerbsError('ibv_destroy_cq', 'EBUSY', `${cq.eventsUnacked} events are not acknowledged`);
    }
    await cq.cpu.settle();
    await context.kernel.destroyCq(context.cpu, cq.handle);
    context.cqs.delete(cq.handle);
    context.cqRecords.give(ring.record);
    ring.buffer.unmap();
  });
}

/**
 * Removes the completions of a QP or an SRQ that is being reset or destroyed, as mlx4_cq_clean does: the others move up, and
 * the consumer counter skips the removed ones. Receives of a shared queue free their WQEs.
 */
export function cleanCq(
  cq: IbvCq,
  isGone: (entry: CqOwner) => boolean,
  freeShared?: (index: number) => void,
): void {
  const { ring, context } = cq;
  const { bytes, view } = context.platform.memory;
  const { qpn, owner, isSend, sourceQpn, wqeCounter } = cqe.fields;
  let removed = 0;
  for (
    let counter = ring.consumerCounter + outstanding(ring) - 1;
    counter >= ring.consumerCounter;
    counter--
  ) {
    const from = ring.slots[counter & (ring.entries - 1)]!;
    const entry = {
      qpn: qpn.get(view, from),
      isSend: isSend.get(view, from),
      sourceQpn: sourceQpn.get(view, from),
    };
    if (isGone(entry)) {
      if (freeShared !== undefined && entry.isSend === 0) freeShared(wqeCounter.get(view, from));
      removed++;
    } else if (removed > 0) {
      const to = ring.slots[(counter + removed) & (ring.entries - 1)]!;
      const ownerThere = owner.get(view, to);
      bytes.copyWithin(to, from, from + cqeBytes);
      owner.set(view, to, ownerThere);
    }
  }
  if (removed === 0) return;
  ring.consumerCounter = (ring.consumerCounter + removed) >>> 0;
  cqRecord.fields.consumerCounter.set(view, ring.record.physicalAddress, ring.consumerCounter);
}

/** Frees the WQE of a shared receive queue at once: the caller's stores have settled. */
export function freeSharedNow(
  srq: IbvSrq,
  index: number,
  setLink: (address: number, index: number) => void,
): void {
  const { ring } = srq;
  ring.next[ring.tail] = index;
  setLink(ring.slots[ring.tail]!, index);
  ring.tail = index;
}

/** QPN of an entry's completion; `sourceQpn` is the SRQN in a receive of an XRC target. */
interface CqOwner {
  readonly qpn: number;
  readonly isSend: number;
  readonly sourceQpn: number;
}

/** Completions waiting in the ring. */
function outstanding(ring: CompletionRing): number {
  let count = 0;
  while (count < ring.entries && ring.entryAt(ring.consumerCounter + count) >= 0) count++;
  return count;
}

/**
 * Gives every entry of a new ring to the device, for any pass of its producer counter: the device initialises rings only at
 * creation. Later entries lie within one ring's length of the consumer counter. The consumer counter's own number stays unused
 * in the new ring: it belongs to the mark.
 */
function disownEntries(cq: IbvCq, buffer: QueueMemory, entries: number): void {
  const { view } = cq.context.platform.memory;
  for (let ahead = 1; ahead <= entries; ahead++) {
    const counter = cq.ring.consumerCounter + ahead;
    const isOddPass = (counter & entries) !== 0;
    cqe.fields.owner.set(view, buffer.physicalOf((counter & (entries - 1)) * cqeBytes), isOddPass ? 0 : 1);
  }
}

/** Moves the remaining CQEs of the old ring, up to the device's mark, which has used one number. */
async function moveEntries(cq: IbvCq, buffer: QueueMemory, entries: number): Promise<void> {
  const { ring, context, cpu } = cq;
  const { bytes, view } = context.platform.memory;
  const old = ring.buffer;
  for (let counter = ring.consumerCounter; ; counter++) {
    const from = ring.slots[counter & (ring.entries - 1)]!;
    // The mark may still be in flight when the command has ended.
    await cpu.spin(from, context.platform.costs.pollEmpty, () => ring.entryAt(counter) >= 0);
    if (cqe.fields.opcode.get(view, from) === CqeOpcode.RESIZE) break;
    const to = buffer.physicalOf(((counter + 1) & (entries - 1)) * cqeBytes);
    bytes.copyWithin(to, from, from + cqeBytes);
    cqe.fields.owner.set(view, to, ((counter + 1) & entries) !== 0 ? 1 : 0);
  }
  ring.consumerCounter = (ring.consumerCounter + 1) >>> 0;
  ring.moveTo(buffer, entries);
  cqRecord.fields.consumerCounter.set(view, ring.record.physicalAddress, ring.consumerCounter);
  old.unmap();
}

/** A power of two above the requested size, so that a full CQ differs from an empty one. */
function entriesFor(verbName: string, context: IbvContext, cqeMin: number): number {
  checkCount(verbName, ['cqe', cqeMin, context.info.maxCqe]);
  return 2 ** log2Ceil(cqeMin + 1);
}

function mapOrFail(verbName: string, context: IbvContext, lengthBytes: number): QueueMemory {
  const buffer = QueueMemory.map(context.platform.memory, lengthBytes);
  if (buffer === undefined) throw new VerbsError(verbName, 'ENOMEM', `no memory for ${lengthBytes} bytes`);
  return buffer;
}
