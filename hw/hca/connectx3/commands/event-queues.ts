/** Event queues: SW2HW_EQ, HW2SW_EQ, QUERY_EQ, MAP_EQ. Source: interface sheet 3.16, 5.3. */

import { CommandStatus, eqc, mapEqUnmap } from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, reject, type Steps, until } from '../../commands/index.ts';
import type { EqSlot } from '../../objects/index.ts';
import { logPageBytesOf } from '../queue-pages.ts';
import { reservedEqCount } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';
import { checkBuffer, markEntries, type QueueBuffer, readPages } from './queue-buffer.ts';

const fields = eqc.fields;
/** MSI-X table entries. */
const interruptCount = 128;

export function* createEventQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { eqs, icm, capabilities } = device.parts;
  const eqn = request.inputModifier;
  requireNumber(device, eqn);
  demand(eqs.slotOf(eqn) < 0, CommandStatus.BAD_RES_STATE);
  demand(icm.contextAddress('eqc', eqn) >= 0, CommandStatus.ICM_ERROR);
  const context = yield* readInBox(request, eqc.sizeBytes);
  const view = viewOf(context);
  const buffer = bufferOf(view);
  checkBuffer(buffer, capabilities.logMaxEqEntries);
  demand(fields.interruptNumber.get(view, 0) < interruptCount, CommandStatus.BAD_PARAM);
  const pages = yield* readPages(device, buffer);
  yield* markEntries(pages, buffer, 0, 2 ** buffer.logEntries, 1);
  const slot = eqs.allocate(eqn);
  eqs.bytes.set(context, eqs.offsetOf(slot));
  eqs.activate(slot);
  return undefined;
}

/** Destroys an EQ: events that wait for it are dropped, and EQEs in flight have left before the command ends. */
export function* destroyEventQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { eqs, events } = device.parts;
  const eqn = request.inputModifier;
  const slot = liveQueue(device, eqn);
  events.forgetQueue(slot);
  eqs.sync(slot);
  const context = contextOf(device, slot);
  eqs.free(slot);
  yield* until(() => !events.queueIsBusy(eqn));
  if (request.opcodeModifier === 0) yield* writeOutBox(request, context);
  return undefined;
}

export function* queryEventQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const slot = liveQueue(device, request.inputModifier);
  device.parts.eqs.sync(slot);
  yield* writeOutBox(request, contextOf(device, slot));
  return undefined;
}

/** Sends the event types of the mask to an EQ, or nowhere. */
export function mapEventQueue(device: DeviceState, request: CommandRequest): undefined {
  const isUnmap = request.inputModifier >= mapEqUnmap;
  const eqn = request.inputModifier % mapEqUnmap;
  liveQueue(device, eqn);
  device.parts.events.mapEvents(request.inParamHigh, request.inParamLow, isUnmap ? -1 : eqn);
  return undefined;
}

function liveQueue(device: DeviceState, eqn: number): number {
  requireNumber(device, eqn);
  const slot = device.parts.eqs.slotOf(eqn);
  return slot >= 0 ? slot : reject(CommandStatus.BAD_RES_STATE);
}

function requireNumber(device: DeviceState, eqn: number): void {
  demand(eqn < 2 ** device.profile!.logEqs, CommandStatus.BAD_INDEX);
  demand(eqn >= reservedEqCount(device.parts.capabilities), CommandStatus.BAD_RESOURCE);
}

function contextOf(device: DeviceState, slot: EqSlot): Uint8Array {
  const { eqs } = device.parts;
  return eqs.bytes.slice(eqs.offsetOf(slot), eqs.offsetOf(slot) + eqc.sizeBytes);
}

const bufferOf = (view: DataView): QueueBuffer => ({
  logEntries: fields.logEntries.get(view, 0),
  logPageBytes: logPageBytesOf(fields.logPageSize4k.get(view, 0)),
  pageOffset: fields.pageOffset32.get(view, 0) * 32,
  mttAddress: fields.mttAddress.get(view, 0),
});
