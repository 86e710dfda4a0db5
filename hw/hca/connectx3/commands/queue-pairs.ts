/**
 * Queue pairs: every transition, QUERY_QP, CONF_SPECIAL_QP. Which fields a transition takes from its mailbox, and from
 * which states it leads, is the table in abi/qp-transitions.ts. Source: interface sheet 3.17, 5.1.
 *
 * Promises: a rejected transition leaves the context as it was; 2RST ends when nothing of the QP is in the pipelines, and its received
 * payload has reached memory.
 */

import {
  CommandStatus,
  copyQpcFields,
  fieldsSetBy,
  iwarpContext,
  iwarpOffsetInQpc,
  logPageBytesMax,
  PathMtu,
  portOfScheduleQueue,
  type QpcFieldPath,
  QpState,
  type QpTransition,
  type QpTransitionName,
  qpc,
  qpcOffsetInMailbox,
  qpMailbox,
  qpTransitions,
  rssContext,
  rssOffsetInQpc,
  ServiceType,
  specialQpBlock,
  sqdEventRequest,
} from '../../../../abi/index.ts';
import { mask24, viewOf } from '../../../../base/index.ts';
import type { CapabilityConfig } from '../../capabilities.ts';
import { type CommandRequest, demand, reject, type Steps, until } from '../../commands/index.ts';
import type { Qpn, QpTable } from '../../objects/index.ts';
import { logPageBytesOf } from '../queue-pages.ts';
import { logRingTable, uarPageCount } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { readInBox, writeOutBox } from './mailboxes.ts';

const fields = qpc.fields;

/** RST2INIT: creates the context. */
export function* initialiseQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, icm, dataPath } = device.parts;
  const qpn = request.inputModifier & mask24;
  const index = contextIndex(device, qpn);
  demand(qps.slotOf(qpn) < 0, CommandStatus.BAD_QP_STATE);
  demand(!device.qpnOfIndex.has(index), CommandStatus.BAD_RES_STATE);
  demand(icm.contextAddress('qpc', qpn) >= 0, CommandStatus.ICM_ERROR);
  const mailbox = viewOf(yield* readInBox(request, qpMailbox.sizeBytes));
  checkNewContext(device, mailbox, qpcOffsetInMailbox);
  const mask = qpMailbox.fields.optionalParameterMask.get(mailbox, 0);
  const fieldsSet = fieldsSetBy('RST2INIT_QP', mask);
  checkLimits(device, mailbox, qpcOffsetInMailbox, fieldsSet, QpState.INIT);
  const slot = qps.allocate(qpn);
  const base = qps.offsetOf(slot);
  copyQpcFields(fieldsSet, mailbox, qpcOffsetInMailbox, qps.view, base);
  if (fields.isRssIndirection.get(qps.view, base) === 1) copyRingTable(mailbox, qps.bytes, base);
  fields.localQpn.set(qps.view, base, qpn);
  fields.state.set(qps.view, base, QpState.INIT);
  device.qpnOfIndex.set(index, qpn);
  dataPath.qpCreated(slot);
  return undefined;
}

/** The table occupies the place of the paths in other contexts. */
function copyRingTable(mailbox: DataView, contexts: Uint8Array, base: number): void {
  const from = qpcOffsetInMailbox + rssOffsetInQpc;
  const table = new Uint8Array(mailbox.buffer, mailbox.byteOffset + from, rssContext.sizeBytes);
  contexts.set(table, base + rssOffsetInQpc);
}

/**
 * Copies the fields that a transition sets. A table of rings keeps its values of RST2INIT: mlx4_ib sets it only there,
 * mlx4_en each time.
 */
function copyKeepingTable(
  fieldsSet: readonly QpcFieldPath[],
  mailbox: DataView,
  { view, bytes }: Pick<QpTable, 'view' | 'bytes'>,
  base: number,
): void {
  const at = base + rssOffsetInQpc;
  const isTable = fields.isRssIndirection.get(view, base) === 1;
  const table = isTable ? bytes.slice(at, at + rssContext.sizeBytes) : undefined;
  copyQpcFields(fieldsSet, mailbox, qpcOffsetInMailbox, view, base);
  if (table !== undefined) bytes.set(table, at);
}

/** Objects that a new context names must exist, and its queues must be within the limits. */
function checkNewContext(device: DeviceState, view: DataView, base: number): void {
  const { cqs, srqs, icm, capabilities } = device.parts;
  demand(servicesOf(device).includes(fields.serviceType.get(view, base)), CommandStatus.BAD_PARAM);
  if (fields.isRssIndirection.get(view, base) === 1) checkRingTable(device, view, base);
  demand(fields.sqLogCount.get(view, base) <= capabilities.logMaxQpWqes, CommandStatus.EXCEED_LIM);
  demandStride(fields.sqLogStride16.get(view, base), capabilities.maxSendDescriptorBytes);
  demand(logPageBytesOf(fields.logPageSize4k.get(view, base)) <= logPageBytesMax, CommandStatus.BAD_PARAM);
  demand(fields.uarPage.get(view, base) < uarPageCount(capabilities), CommandStatus.BAD_PARAM);
  demand(cqs.slotOf(fields.sendCqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  demand(cqs.slotOf(fields.receiveCqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  if (fields.srqAttached.get(view, base) === 1) {
    demand(srqs.slotOf(fields.srqn.get(view, base)) >= 0, CommandStatus.BAD_RESOURCE);
  } else if (fields.doorbellRecordAddress.getNumber(view, base) !== 0) {
    // A QP without a doorbell record has no receive queue; Linux leaves its size byte at 0xfc.
    demand(fields.rqLogCount.get(view, base) <= capabilities.logMaxQpWqes, CommandStatus.EXCEED_LIM);
    demandStride(fields.rqLogStride16.get(view, base), capabilities.maxReceiveDescriptorBytes);
  }
  demand(icm.translationAddress(fields.mttAddress.get(view, base)) >= 0, CommandStatus.ICM_ERROR);
}

/** Services of the capability flags; QP0 and QP1 use MLX. */
const servicesOffered: readonly number[] = [
  ServiceType.RC,
  ServiceType.UC,
  ServiceType.UD,
  ServiceType.XRC,
  ServiceType.MLX,
];

/** The rings of an Ethernet port are MLX, which is all that it offers without RoCE. */
const servicesOf = ({ parts: { capabilities } }: DeviceState): readonly number[] =>
  capabilities.transport === 'iwarp' ? [ServiceType.MLX, ServiceType.RC] : servicesWith(capabilities);

const servicesWith = (capabilities: CapabilityConfig): readonly number[] =>
  capabilities.linkLayer === 'ethernet' && capabilities.roce === 'none' ? [ServiceType.MLX] : servicesOffered;

/** True for a ring, which has no packet MTU. */
const isRing = ({ parts }: DeviceState, view: DataView, base: number): boolean =>
  parts.capabilities.linkLayer === 'ethernet' && fields.pathMtu.get(view, base) > PathMtu.MTU_4096;

const hashFunctionMax = 1;

/** Checks a QP that represents a table of rings (RSS): only ports that carry frames have them. */
function checkRingTable({ parts }: DeviceState, view: DataView, base: number): void {
  const table = rssContext.fields;
  const at = base + rssOffsetInQpc;
  demand(parts.capabilities.linkLayer === 'ethernet', CommandStatus.BAD_PARAM);
  demand(table.logTableSize.get(view, at) <= logRingTable, CommandStatus.BAD_PARAM);
  demand(table.hashFunction.get(view, at) <= hashFunctionMax, CommandStatus.BAD_PARAM);
}

/** A stride holds at most the largest descriptor, rounded up to a power of two. */
function demandStride(logStride16: number, descriptorBytesMax: number): void {
  demand(2 ** (logStride16 + 3) < descriptorBytesMax, CommandStatus.BAD_PARAM);
}

const pathOf = qpc.fields.primaryPath.fields;

/** Rejects values of a transition to `state` beyond the limits of QUERY_DEV_CAP and QUERY_PORT. */
function checkLimits(
  device: DeviceState,
  view: DataView,
  base: number,
  fieldsSet: readonly QpcFieldPath[],
  state: number,
): void {
  const { capabilities, ports } = device.parts;
  const { logMaxRequesterReads, logMaxMessageBytes, logGids, logPkeys } = capabilities;
  const within = (name: QpcFieldPath, value: number, max: number): void =>
    demand(value <= max || !fieldsSet.includes(name), CommandStatus.BAD_PARAM);
  const responderReadsMax = Math.min(capabilities.logMaxResponderReads, device.profile!.logRdmarcPerQp);
  within('logMaxRequesterReads', fields.logMaxRequesterReads.get(view, base), logMaxRequesterReads);
  within('logMaxResponderReads', fields.logMaxResponderReads.get(view, base), responderReadsMax);
  // Linux sets the largest codes for rings; their frames have separate limits.
  if (!isRing(device, view, base)) {
    within('logMaxMessage', fields.logMaxMessage.get(view, base), logMaxMessageBytes);
    within('pathMtu', fields.pathMtu.get(view, base), PathMtu.MTU_4096);
  }
  const hasMtu = capabilities.transport !== 'iwarp';
  if (state === QpState.RTR && hasMtu) demand(fields.pathMtu.get(view, base) !== 0, CommandStatus.BAD_PARAM);
  within('primaryPath.pkeyIndex', pathOf.pkeyIndex.get(view, base), 2 ** logPkeys - 1);
  if (pathOf.grhPresent.get(view, base) === 1)
    within('primaryPath.sourceGidIndex', pathOf.sourceGidIndex.get(view, base), 2 ** logGids - 1);
  const port = portOfScheduleQueue(pathOf.scheduleQueue.get(view, base));
  within('primaryPath.scheduleQueue', port, ports.length);
}

/** The context of a QP whose stream is one of TCP begins there in a mailbox. */
const streamAt = qpcOffsetInMailbox + iwarpOffsetInQpc;

/**
 * Checks INIT2RTR with iWARP: it must name an established connection that no other QP has, and READs in flight within
 * the limits.
 */
function checkStream({ parts, profile }: DeviceState, mailbox: DataView): void {
  const { capabilities, tcp } = parts;
  if (tcp === undefined) return;
  const { connection, inboundReads, outboundReads } = iwarpContext.fields;
  const logInboundMax = Math.min(capabilities.logMaxResponderReads, profile!.logRdmarcPerQp);
  demand(inboundReads.get(mailbox, streamAt) <= 2 ** logInboundMax, CommandStatus.BAD_PARAM);
  demand(
    outboundReads.get(mailbox, streamAt) <= 2 ** capabilities.logMaxRequesterReads,
    CommandStatus.BAD_PARAM,
  );
  const number = connection.get(mailbox, streamAt);
  demand(tcp.rowOf(number) !== undefined, CommandStatus.BAD_RESOURCE);
  demand(tcp.mayBecomeStream(number), CommandStatus.BAD_RES_STATE);
}

function copyStream({ parts: { tcp, qps } }: DeviceState, mailbox: DataView, base: number): void {
  if (tcp === undefined) return;
  const { sizeBytes } = iwarpContext;
  const bytes = new Uint8Array(mailbox.buffer, mailbox.byteOffset + streamAt, sizeBytes);
  qps.bytes.set(bytes, base + iwarpOffsetInQpc);
}

/** All transitions between live states: RTR, RTS, SQD and those that only change fields. */
export function transitionOf(name: QpTransitionName) {
  const transition: QpTransition = qpTransitions[name];
  return function* changeState(device: DeviceState, request: CommandRequest): Steps<undefined> {
    const { qps, dataPath } = device.parts;
    const qpn = request.inputModifier & mask24;
    const slot = liveQueuePair(device, qpn);
    const base = qps.offsetOf(slot);
    const needsMailbox = transition.takesOptional || transition.required.length > 0;
    const mailbox = needsMailbox ? viewOf(yield* readInBox(request, qpMailbox.sizeBytes)) : undefined;
    const mask = mailbox === undefined ? 0 : qpMailbox.fields.optionalParameterMask.get(mailbox, 0);
    const fieldsSet = fieldsSetBy(name, mask);
    // Work posted before the send queue is brought back is flushed first.
    if (name === 'SQERR2RTS_QP') yield* until(() => !dataPath.qpIsFlushing(slot));
    dataPath.qpSync(slot); // the QP may have moved to an error state by itself, even while the mailbox was read
    const previousState = fields.state.get(qps.view, base);
    demand((transition.from as readonly number[]).includes(previousState), CommandStatus.BAD_QP_STATE);
    if (mailbox !== undefined) {
      const takesStream = name === 'INIT2RTR_QP' && fields.serviceType.get(qps.view, base) === ServiceType.RC;
      checkLimits(device, mailbox, qpcOffsetInMailbox, fieldsSet, transition.to);
      if (takesStream) checkStream(device, mailbox);
      copyKeepingTable(fieldsSet, mailbox, qps, base);
      if (takesStream) copyStream(device, mailbox, base);
    }
    fields.state.set(qps.view, base, transition.to);
    dataPath.qpModified(slot, previousState);
    if (transition.to !== QpState.SQD) device.parts.drains.forget(slot);
    else if (request.inputModifier >= sqdEventRequest) device.parts.drains.watch(slot);
    return undefined;
  };
}

/**
 * 2ERR: flushes both queues. The mailbox that Linux supplies is empty. A QP in reset has no context and no work to
 * flush: the command succeeds and leaves the QP in reset.
 */
export function failQueuePair(device: DeviceState, request: CommandRequest): undefined {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & mask24;
  contextIndex(device, qpn);
  const slot = qps.slotOf(qpn);
  if (slot < 0) return undefined;
  dataPath.qpSync(slot);
  if (fields.state.get(qps.view, qps.offsetOf(slot)) === QpState.ERR) return undefined;
  device.parts.drains.forget(slot);
  fields.state.set(qps.view, qps.offsetOf(slot), QpState.ERR);
  dataPath.qpToError(slot);
  return undefined;
}

/** 2RST: the QP disappears, without completions. A QP without a context is in reset already. */
export function* resetQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & mask24;
  const index = contextIndex(device, qpn);
  const slot = qps.slotOf(qpn);
  if (slot < 0) return undefined;
  // The QP's work is dropped, not finished: no event reports it.
  device.parts.drains.forget(slot);
  dataPath.qpDestroyed(slot);
  dataPath.beginFence();
  yield* until(() => !dataPath.qpIsBusy(slot) && dataPath.isFencePassed());
  qps.free(slot);
  device.qpnOfIndex.delete(index);
  return undefined;
}

/** The context with the live state; of a QP in reset, zeros. */
export function* queryQueuePair(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { qps, dataPath } = device.parts;
  const qpn = request.inputModifier & mask24;
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

/** Sets the block of special QPs, 8 of them and aligned to 8; 0 removes it. */
export function configureSpecialQueuePairs(device: DeviceState, request: CommandRequest): undefined {
  const base = request.inputModifier & mask24;
  demand(base % specialQpBlock === 0, CommandStatus.BAD_PARAM);
  if (base !== 0) contextIndex(device, base);
  device.specialQpBase = base;
  return undefined;
}

function liveQueuePair(device: DeviceState, qpn: Qpn): number {
  contextIndex(device, qpn);
  const slot = device.parts.qps.slotOf(qpn);
  return slot >= 0 ? slot : reject(CommandStatus.BAD_QP_STATE);
}

/**
 * Index of the QPC entry. Bits above the table and below XRC's are generation bits; reserved QPs are the firmware's.
 * Numbers that no table could hold do not exist: the input modifier has 24 bits of them.
 */
function contextIndex(device: DeviceState, qpn: Qpn): number {
  demand(qpn >= 2 ** device.parts.capabilities.logReservedQps, CommandStatus.BAD_RESOURCE);
  return qpn % 2 ** device.profile!.logQps;
}
