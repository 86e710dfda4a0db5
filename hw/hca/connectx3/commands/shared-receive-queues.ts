/** Shared receive queues: SW2HW_SRQ, HW2SW_SRQ, QUERY_SRQ, ARM_SRQ. Source: interface sheet 3.16, 5.5. */

import { CommandStatus, logPageBytesMax, srqc } from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, reject, type Steps, until } from '../../commands/index.ts';
import type { SrqSlot } from '../../objects/index.ts';
import { logPageBytesOf } from '../queue-pages.ts';
import type { DeviceState } from './device-state.ts';
import { inParamOf, readInBox, writeOutBox } from './mailboxes.ts';

const fields = srqc.fields;
/** A WQE holds the next segment and one data pointer at least. */
const logStride16Min = 1;

export function* createSharedQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { srqs, icm, capabilities, dataPath } = device.parts;
  const srqn = request.inputModifier;
  requireNumber(device, srqn);
  demand(srqs.slotOf(srqn) < 0, CommandStatus.BAD_RES_STATE);
  demand(icm.contextAddress('srqc', srqn) >= 0, CommandStatus.ICM_ERROR);
  const context = yield* readInBox(request, srqc.sizeBytes);
  const view = viewOf(context);
  demand(fields.logWqes.get(view, 0) <= capabilities.logMaxSrqWqes, CommandStatus.EXCEED_LIM);
  demand(fields.logStride16.get(view, 0) >= logStride16Min, CommandStatus.BAD_PARAM);
  demand(
    2 ** (fields.logStride16.get(view, 0) + 4) <= capabilities.maxReceiveDescriptorBytes,
    CommandStatus.BAD_PARAM,
  );
  demand(logPageBytesOf(fields.logPageSize4k.get(view, 0)) <= logPageBytesMax, CommandStatus.BAD_PARAM);
  demand(icm.translationAddress(fields.mttAddress.get(view, 0)) >= 0, CommandStatus.ICM_ERROR);
  fields.srqn.set(view, 0, srqn);
  fields.postedWqes.set(view, 0, 0);
  fields.wqeCounter.set(view, 0, 0);
  const slot = srqs.allocate(srqn);
  srqs.bytes.set(context, srqs.offsetOf(slot));
  dataPath.srqCreated(slot);
  return undefined;
}

export function* destroySharedQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { srqs, dataPath } = device.parts;
  const slot = liveQueue(device, request.inputModifier);
  dataPath.srqSync(slot);
  const context = contextOf(device, slot);
  dataPath.srqDestroyed(slot);
  yield* until(() => !dataPath.srqIsBusy(slot));
  dataPath.srqGone(slot);
  srqs.free(slot);
  if (request.opcodeModifier === 0) yield* writeOutBox(request, context);
  return undefined;
}

export function* querySharedQueue(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const slot = liveQueue(device, request.inputModifier);
  device.parts.dataPath.srqSync(slot);
  yield* writeOutBox(request, contextOf(device, slot));
  return undefined;
}

/** When fewer WQEs than the limit are left, event 0x14 is sent once. A limit beyond the queue is refused. */
export function armSharedQueue(device: DeviceState, request: CommandRequest): undefined {
  const { srqs, dataPath } = device.parts;
  const slot = liveQueue(device, request.inputModifier);
  const base = srqs.offsetOf(slot);
  const limit = inParamOf(request);
  demand(limit <= 2 ** fields.logWqes.get(srqs.view, base), CommandStatus.BAD_PARAM);
  fields.limitWatermark.set(srqs.view, base, limit);
  dataPath.srqArmed(slot);
  return undefined;
}

function liveQueue(device: DeviceState, srqn: number): number {
  requireNumber(device, srqn);
  const slot = device.parts.srqs.slotOf(srqn);
  return slot >= 0 ? slot : reject(CommandStatus.BAD_RES_STATE);
}

function requireNumber(device: DeviceState, srqn: number): void {
  demand(srqn < 2 ** device.profile!.logSrqs, CommandStatus.BAD_INDEX);
  demand(srqn >= 2 ** device.parts.capabilities.logReservedSrqs, CommandStatus.BAD_RESOURCE);
}

function contextOf(device: DeviceState, slot: SrqSlot): Uint8Array {
  const { srqs } = device.parts;
  return srqs.bytes.slice(srqs.offsetOf(slot), srqs.offsetOf(slot) + srqc.sizeBytes);
}
