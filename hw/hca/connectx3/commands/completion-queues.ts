/** Completion queues: SW2HW_CQ, HW2SW_CQ, QUERY_CQ, MODIFY_CQ (resize, moderation). Source: interface sheet 3.16, 5.2. */

import { CommandStatus, cqc, cqRecord } from '../../../../abi/index.ts';
import { advance, mask24, passBit, ringIndex, viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, read, reject, type Steps, until } from '../../commands/index.ts';
import type { Cqn, CqSlot } from '../../objects/index.ts';
import { logPageBytesOf, logPageSize4kOf } from '../queue-pages.ts';
import { uarPageCount } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';
import { checkBuffer, markEntries, type QueueBuffer, readPages } from './queue-buffer.ts';

const fields = cqc.fields;
const modifyResize = 0;
const modifyModeration = 1;

export function* createCompletionQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { cqs, eqs, icm, capabilities, dataPath } = device.parts;
  const cqn = request.inputModifier;
  requireNumber(device, cqn);
  demand(cqs.slotOf(cqn) < 0, CommandStatus.BAD_RES_STATE);
  demand(icm.contextAddress('cqc', cqn) >= 0, CommandStatus.ICM_ERROR);
  const context = yield* readInBox(request, cqc.sizeBytes);
  const view = viewOf(context);
  const buffer = bufferOf(view);
  checkBuffer(buffer, capabilities.logMaxCqEntries);
  demand(fields.uarPage.get(view, 0) < uarPageCount(capabilities), CommandStatus.BAD_PARAM);
  demand(eqs.slotOf(fields.eqn.get(view, 0)) >= 0, CommandStatus.BAD_RESOURCE);
  if ((request.opcodeModifier & 1) === 0) {
    const pages = yield* readPages(device, buffer);
    yield* markEntries(pages, buffer, 0, 2 ** buffer.logEntries, 1);
  }
  fields.consumerCounter.set(view, 0, 0);
  fields.producerCounter.set(view, 0, 0);
  const slot = cqs.allocate(cqn);
  cqs.bytes.set(context, cqs.offsetOf(slot));
  dataPath.cqCreated(slot);
  return undefined;
}

/** Destroys a CQ: afterwards neither a CQE nor a completion event of it appears. */
export function* destroyCompletionQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { cqs, dataPath, events } = device.parts;
  const cqn = request.inputModifier;
  const slot = liveQueue(device, cqn);
  dataPath.cqDestroyed(slot);
  yield* until(() => !dataPath.cqIsBusy(slot) && !events.holdsCompletion(cqn));
  dataPath.cqSync(slot);
  const context = contextOf(device, slot);
  cqs.free(slot);
  if (request.opcodeModifier === 0) yield* writeOutBox(request, context);
  return undefined;
}

export function* queryCompletionQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const slot = liveQueue(device, request.inputModifier);
  device.parts.dataPath.cqSync(slot);
  yield* writeOutBox(request, contextOf(device, slot));
  return undefined;
}

export function* modifyCompletionQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const slot = liveQueue(device, request.inputModifier);
  const wanted = viewOf(yield* readInBox(request, cqc.sizeBytes));
  if (request.opcodeModifier === modifyResize) return yield* resize(device, slot, wanted);
  demand(request.opcodeModifier === modifyModeration, CommandStatus.BAD_OP);
  const { cqs, dataPath } = device.parts;
  const base = cqs.offsetOf(slot);
  for (const name of ['moderationPeriodUs', 'moderationCount'] as const) {
    fields[name].set(cqs.view, base, fields[name].get(wanted, 0));
  }
  dataPath.cqModerated(slot);
  return undefined;
}

/**
 * Changes to another buffer. Software copies the entries that it has not consumed from the old buffer, so the whole new
 * one is made invalid first: entries from the producer on for this pass, entries before it for the next. The producer's
 * own number belongs to the mark that is written into the old buffer: its place in the new one is written a pass later.
 * When the command ends, the last entry of the old buffer has left, and software owns that buffer.
 */
function* resize(device: DeviceState, slot: CqSlot, wanted: DataView): Steps<undefined> {
  const { cqs, capabilities, dataPath } = device.parts;
  const base = cqs.offsetOf(slot);
  const buffer: QueueBuffer = {
    ...bufferOf(wanted),
    pageOffset: fields.pageOffset32.get(cqs.view, base) * 32,
  };
  checkBuffer(buffer, capabilities.logMaxCqEntries);
  yield* requireRoom(device, slot, buffer.logEntries);
  const pages = yield* readPages(device, buffer);
  dataPath.cqSync(slot);
  const first = advance(fields.producerCounter.get(cqs.view, base), 1, mask24);
  const index = ringIndex(first, buffer.logEntries);
  const pass = passBit(first, buffer.logEntries);
  yield* markEntries(pages, buffer, 0, index, pass);
  yield* markEntries(pages, buffer, index, 2 ** buffer.logEntries - index, 1 - pass);
  yield* requireRoom(device, slot, buffer.logEntries); // the CQ ran on meanwhile
  fields.logEntries.set(cqs.view, base, buffer.logEntries);
  fields.logPageSize4k.set(cqs.view, base, logPageSize4kOf(buffer.logPageBytes));
  fields.mttAddress.set(cqs.view, base, buffer.mttAddress);
  dataPath.cqResized(slot);
  yield* until(() => !dataPath.cqIsResizing());
  return undefined;
}

/**
 * Rejects a size smaller than the contents of the CQ. The consumer counter is current in the doorbell record alone: the device's copy is as
 * old as the last overrun check.
 */
function* requireRoom(device: DeviceState, slot: CqSlot, logEntries: number): Steps<void> {
  const { cqs, dataPath } = device.parts;
  const base = cqs.offsetOf(slot);
  const address = fields.doorbellRecordAddress.getNumber(cqs.view, base);
  const record = viewOf(yield* read(address, cqRecord.sizeBytes));
  dataPath.cqSync(slot);
  const producer = fields.producerCounter.get(cqs.view, base);
  const held = (producer - cqRecord.fields.consumerCounter.get(record, 0)) & mask24;
  demand(held <= 2 ** logEntries, CommandStatus.BAD_SIZE);
}

function liveQueue(device: DeviceState, cqn: Cqn): number {
  requireNumber(device, cqn);
  const slot = device.parts.cqs.slotOf(cqn);
  return slot >= 0 ? slot : reject(CommandStatus.BAD_RES_STATE);
}

function requireNumber(device: DeviceState, cqn: Cqn): void {
  demand(cqn < 2 ** device.profile!.logCqs, CommandStatus.BAD_INDEX);
  demand(cqn >= 2 ** device.parts.capabilities.logReservedCqs, CommandStatus.BAD_RESOURCE);
}

function contextOf(device: DeviceState, slot: CqSlot): Uint8Array {
  const { cqs } = device.parts;
  return cqs.bytes.slice(cqs.offsetOf(slot), cqs.offsetOf(slot) + cqc.sizeBytes);
}

const bufferOf = (view: DataView, base = 0): QueueBuffer => ({
  logEntries: fields.logEntries.get(view, base),
  logPageBytes: logPageBytesOf(fields.logPageSize4k.get(view, base)),
  pageOffset: fields.pageOffset32.get(view, base) * 32,
  mttAddress: fields.mttAddress.get(view, base),
});
