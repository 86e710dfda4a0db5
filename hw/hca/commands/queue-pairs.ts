/**
 * Queue pairs: every transition, QUERY_QP, CONF_SPECIAL_QP. Which fields a transition takes from its mailbox, and from
 * which states it leads, is the table in abi/qp-transitions.ts. Source: interface sheet 3.17, 5.1.
 *
 * Promises: a rejected transition leaves the context as it was; 2RST ends when nothing of the QP is in the pipelines.
 */
import { CommandStatus } from '../../../abi/command-status.ts';
import { sqdEventRequest } from '../../../abi/commands.ts';
import {
  fieldsSetBy,
  type QpTransition,
  type QpTransitionName,
  qpTransitions,
} from '../../../abi/qp-transitions.ts';
import {
  QpState,
  qpc,
  qpcOffsetInMailbox,
  qpMailbox,
  ServiceType,
  specialQpBlock,
} from '../../../abi/qpc.ts';
import { copyQpcFields } from '../../../abi/qpc-fields.ts';
import { viewOf } from '../../../base/index.ts';
import {
  type CommandRequest,
  demand,
  readInBox,
  reject,
  type Steps,
  until,
  writeOutBox,
} from '../command-steps.ts';
import { uarPageCount } from '../device-capabilities.ts';
import type { DeviceState } from '../device-state.ts';

const fields = qpc.fields;
const qpnMask = 0xff_ffff;

/** RST2INIT: creates the context. */
export function* initialiseQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, icm, dataPath } = device.parts;
  const qpn = request.inputModifier & qpnMask;
  const index = contextIndex(device, qpn);
  demand(qps.slotOf(qpn) < 0, CommandStatus.BAD_QP_STATE);
  demand(!device.qpnOfIndex.has(index), CommandStatus.BAD_RES_STATE);
  demand(icm.contextAddress('qpc', qpn) >= 0, CommandStatus.ICM_ERROR);
  const mailbox = viewOf(yield* readInBox(request, qpMailbox.sizeBytes));
  checkNewContext(device, mailbox, qpcOffsetInMailbox);
  demand(qps.liveCount < qps.capacity, CommandStatus.EXCEED_LIM);
  const slot = qps.allocate(qpn);
  const base = qps.offsetOf(slot);
  const mask = qpMailbox.fields.optionalParameterMask.get(mailbox, 0);
  copyQpcFields(fieldsSetBy('RST2INIT_QP', mask), mailbox, qpcOffsetInMailbox, qps.view, base);
  fields.localQpn.set(qps.view, base, qpn);
  fields.state.set(qps.view, base, QpState.INIT);
  device.qpnOfIndex.set(index, qpn);
  dataPath.qpCreated(slot);
  return undefined;
}

/** What a new context refers to must exist, and its queues must be within the limits. */
function checkNewContext(device: DeviceState, view: DataView, base: number): void {
  const { cqs, srqs, icm, capabilities } = device.parts;
  const serviceType = fields.serviceType.get(view, base);
  demand(Object.values<number>(ServiceType).includes(serviceType), CommandStatus.BAD_PARAM);
  demand(fields.sqLogCount.get(view, base) <= capabilities.logMaxQpWqes, CommandStatus.EXCEED_LIM);
  demand(fields.uarPage.get(view, base) < uarPageCount(capabilities), CommandStatus.BAD_PARAM);
  demand(cqs.slotOf(fields.sendCqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  demand(cqs.slotOf(fields.receiveCqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  if (fields.srqAttached.get(view, base) === 1) {
    demand(srqs.slotOf(fields.srqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  } else {
    demand(fields.rqLogCount.get(view, base) <= 15, CommandStatus.BAD_PARAM);
  }
  demand(icm.mttEntryAddress(fields.mttAddress.get(view, base)) >= 0, CommandStatus.ICM_ERROR);
}

/** All transitions between live states: RTR, RTS, SQD and those that only change fields. */
export function transitionOf(name: QpTransitionName) {
  const transition: QpTransition = qpTransitions[name];
  return function* changeState(device: DeviceState, request: CommandRequest): Steps<undefined> {
    const { qps, dataPath } = device.parts;
    const qpn = request.inputModifier & qpnMask;
    const slot = liveQueuePair(device, qpn);
    const base = qps.offsetOf(slot);
    const needsMailbox = transition.takesOptional || transition.required.length > 0;
    const mailbox = needsMailbox ? viewOf(yield* readInBox(request, qpMailbox.sizeBytes)) : undefined;
    dataPath.qpSync(slot); // the QP may have moved to an error state by itself, even while the mailbox was read
    const previousState = fields.state.get(qps.view, base);
    demand((transition.from as readonly number[]).includes(previousState), CommandStatus.BAD_QP_STATE);
    if (mailbox !== undefined) {
      const mask = qpMailbox.fields.optionalParameterMask.get(mailbox, 0);
      copyQpcFields(fieldsSetBy(name, mask), mailbox, qpcOffsetInMailbox, qps.view, base);
    }
    fields.state.set(qps.view, base, transition.to);
    dataPath.qpModified(slot, previousState);
    if (transition.to === QpState.SQD && request.inputModifier >= sqdEventRequest) {
      device.draining.push(slot);
      device.parts.watchDraining();
    }
    return undefined;
  };
}

/**
 * 2ERR: both queues are flushed. The mailbox that Linux supplies has no content. A QP in reset has no context and no work
 * to flush: the command succeeds and leaves it there.
 */
export function failQueuePair(device: DeviceState, request: CommandRequest): undefined {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & qpnMask;
  contextIndex(device, qpn);
  const slot = qps.slotOf(qpn);
  if (slot < 0) return undefined;
  dataPath.qpSync(slot);
  if (fields.state.get(qps.view, qps.offsetOf(slot)) === QpState.ERR) return undefined;
  fields.state.set(qps.view, qps.offsetOf(slot), QpState.ERR);
  dataPath.qpToError(slot);
  return undefined;
}

/** 2RST: the QP disappears, without completions. A QP that is not there is in reset already. */
export function* resetQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & qpnMask;
  const index = contextIndex(device, qpn);
  const slot = qps.slotOf(qpn);
  if (slot < 0) return undefined;
  dataPath.qpDestroyed(slot);
  yield* until(() => !dataPath.qpIsBusy(slot));
  const watched = device.draining.indexOf(slot);
  if (watched >= 0) device.draining.splice(watched, 1);
  qps.free(slot);
  device.qpnOfIndex.delete(index);
  return undefined;
}

/** The context with the live state; of a QP in reset, zeros. */
export function* queryQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & qpnMask;
  contextIndex(device, qpn);
  const slot = qps.slotOf(qpn);
  const answer = new Uint8Array(qpMailbox.sizeBytes);
  if (slot >= 0) {
    dataPath.qpSync(slot);
    const base = qps.offsetOf(slot);
    answer.set(qps.bytes.subarray(base, base + qpc.sizeBytes), qpcOffsetInMailbox);
    if (dataPath.qpIsDraining(slot))
      fields.state.set(viewOf(answer), qpcOffsetInMailbox, QpState.SQ_DRAINING);
  }
  yield* writeOutBox(request, answer);
  return undefined;
}

/** Names the block of special QPs, 8 of them and aligned to 8; 0 takes it back. */
export function configureSpecialQueuePairs(device: DeviceState, request: CommandRequest): undefined {
  const base = request.inputModifier & qpnMask;
  demand(base % specialQpBlock === 0, CommandStatus.BAD_PARAM);
  if (base !== 0) contextIndex(device, base);
  device.specialQpBase = base;
  return undefined;
}

function liveQueuePair(device: DeviceState, qpn: number): number {
  contextIndex(device, qpn);
  const slot = device.parts.qps.slotOf(qpn);
  return slot >= 0 ? slot : reject(CommandStatus.BAD_QP_STATE);
}

/**
 * Index of the QPC entry. Bits above the table and below XRC's are generation bits; reserved QPs are the firmware's.
 * Numbers that no table could hold do not exist: the input modifier has 24 bits of them.
 */
function contextIndex(device: DeviceState, qpn: number): number {
  demand(qpn >= 2 ** device.parts.capabilities.logReservedQps, CommandStatus.BAD_RESOURCE);
  return qpn % 2 ** device.profile!.logQps;
}
