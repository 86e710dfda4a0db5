/**
 * Queue pairs: a number, ICM pages for its context, the process's ring and record; and the transitions, checked against
 * the verbs' attribute table before a command goes out. Source: interface sheet 3.17, 4.2, 5.1, 6.1.
 */
import {
  type CommandName,
  hasFlag,
  LinkType,
  MemoryManagementFlag,
  portOfScheduleQueue,
  priorityOfScheduleQueue,
  QpState,
  type qpc,
  qpMailbox,
  RoceMode,
  rateCodeOf,
  receiveRecord,
  resetOpcodeModifier,
  serviceLevelOfScheduleQueue,
  sqdEventRequest,
  xrcTargetBit,
} from '../abi/index.ts';
import type { Decoded } from '../base/index.ts';
import type { ContextMemory, UserRecord } from './context-memory.ts';
import type { Device } from './device.ts';
import { inlineReceiveBytesMax } from './device-attributes.ts';
import { ethernetPortOf } from './ethernet-port.ts';
import type { EventSink } from './event-router.ts';
import { responderResourcesOf } from './icm-profile.ts';
import { requireConnectedType, requireProgramTransition } from './iwarp/iwarp-qps.ts';
import { KernelError, require, requireWithin } from './kernel-error.ts';
import type { CreateQp } from './kernel-verbs.ts';
import type { Cpu } from './platform.ts';
import { commandForTransition } from './qp-attributes.ts';
import { type EthernetSettings, type QpGeometry, type QpMemory, transitionMailbox } from './qp-context.ts';
import { releaseContext, useContext } from './qp-tables.ts';
import {
  AccessFlag,
  GidTypeVerb,
  MtuVerb,
  type QpAttr,
  QpAttrMask,
  QpStateVerb,
  QpTypeVerb,
} from './uapi.ts';
import { mapBuffer, type UserBuffer, unmapBuffer } from './user-buffer.ts';
import { type IdleSendQueue, makeIdleQueue, releaseIdleQueue, type XrcDomain } from './xrc-domain.ts';

export interface QueuePair {
  readonly qpn: number;
  readonly geometry: QpGeometry;
  readonly buffer: UserBuffer;
  /** Undefined without a receive queue. */
  readonly record: UserRecord | undefined;
  /**
   * The kernel-owned queue of an XRC target, described by {@link buffer}.
   */
  readonly idleQueue: IdleSendQueue | undefined;
  /** State set by software; a device error shows only in queryQp. */
  state: QpStateVerb;
  readonly memory: QpMemory;
}

/** Numbers of the objects that a QP refers to. */
export interface QpObjects {
  readonly pdn: number;
  readonly uarPage: number;
  readonly sendCqn: number;
  readonly receiveCqn: number;
  /** -1 without an SRQ. */
  readonly srqn: number;
  /** Number of the domain for an XRC target, else 0. */
  readonly xrcdn: number;
}

const verbStates: { readonly [state: number]: QpStateVerb } = {
  [QpState.RST]: QpStateVerb.IBV_QPS_RESET,
  [QpState.INIT]: QpStateVerb.IBV_QPS_INIT,
  [QpState.RTR]: QpStateVerb.IBV_QPS_RTR,
  [QpState.RTS]: QpStateVerb.IBV_QPS_RTS,
  [QpState.SQER]: QpStateVerb.IBV_QPS_SQE,
  [QpState.SQD]: QpStateVerb.IBV_QPS_SQD,
  [QpState.SQ_DRAINING]: QpStateVerb.IBV_QPS_SQD,
  [QpState.ERR]: QpStateVerb.IBV_QPS_ERR,
};

const counterMax = { psn: 0xff_ffff, retry: 7, timeout: 31 } as const;

export async function createQp(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  objects: QpObjects,
  request: CreateQp,
  sink: EventSink,
): Promise<QueuePair> {
  if (device.iwarpQps !== undefined) requireConnectedType(request.type);
  checkSizes(device, request);
  const buffer = await mapBuffer(cpu, device, memory.process, request.bufferAddress, request.bufferBytes);
  let record: UserRecord | undefined;
  const qpn = device.numbers.qps.allocate();
  try {
    if (request.receiveWqes > 0) {
      record = memory.mapRecord(cpu, request.doorbellRecordAddress, receiveRecord.sizeBytes);
    }
    if (qpn < 0) throw new KernelError('ENOMEM', 'no QP number is left');
    await useContext(cpu, device, qpn);
  } catch (error) {
    if (qpn >= 0) device.numbers.qps.release(qpn);
    if (record !== undefined) memory.unmapRecord(cpu, record);
    await unmapBuffer(cpu, device, memory.process, buffer);
    throw error;
  }
  device.router.qps.set(qpn, sink);
  const geometry: QpGeometry = {
    type: request.type,
    qpn,
    ...objects,
    logSendWqes: request.logSendWqes,
    logSendStride: request.logSendStride,
    receiveWqes: request.receiveWqes,
    logReceiveStride: request.logReceiveStride,
    receivesInline: inlineBytesOf(request) > 0,
    translation: buffer.translation,
    recordAddress: record?.physicalAddress ?? 0,
    logMaxMessageBytes: device.limits.logMaxMessageBytes,
  };
  const state = QpStateVerb.IBV_QPS_RESET;
  const qp = { qpn, geometry, buffer, record, idleQueue: undefined, state, memory: freshMemory() };
  device.iwarpQps?.add(qp);
  return qp;
}

const freshMemory = (): QpMemory => ({ port: 1, access: 0, maxDestRdAtomic: 0 });

/** An XRC target: it has no queues of a process. */
export async function createTargetQp(
  cpu: Cpu,
  device: Device,
  domain: XrcDomain,
  uarPage: number,
  sink: EventSink,
): Promise<QueuePair> {
  const idleQueue = await makeIdleQueue(cpu, device);
  const number = device.numbers.qps.allocate();
  try {
    if (number < 0) throw new KernelError('ENOMEM', 'no QP number is left');
    await useContext(cpu, device, number);
  } catch (error) {
    if (number >= 0) device.numbers.qps.release(number);
    await releaseIdleQueue(cpu, device, idleQueue);
    throw error;
  }
  const { buffer, logWqes, logStride } = idleQueue;
  const { pdn, cqn, xrcdn } = domain;
  const qpn = number | xrcTargetBit;
  device.router.qps.set(qpn, sink);
  const geometry: QpGeometry = {
    type: QpTypeVerb.IBV_QPT_XRC_RECV,
    qpn,
    ...{ pdn, xrcdn, uarPage, sendCqn: cqn, receiveCqn: cqn, srqn: -1 },
    ...{ logSendWqes: logWqes, logSendStride: logStride, receiveWqes: 0, logReceiveStride: 0 },
    receivesInline: false,
    translation: buffer.translation,
    recordAddress: 0,
    logMaxMessageBytes: device.limits.logMaxMessageBytes,
  };
  const state = QpStateVerb.IBV_QPS_RESET;
  return { qpn, geometry, buffer, record: undefined, idleQueue, state, memory: freshMemory() };
}

/** Makes a transition, or changes attributes within a state. */
export async function modifyQp(
  cpu: Cpu,
  device: Device,
  qp: QueuePair,
  attr: QpAttr,
  mask: number,
): Promise<void> {
  const has = (attribute: number): boolean => (mask & attribute) !== 0;
  const from = has(QpAttrMask.IBV_QP_CUR_STATE) ? (attr.curQpState ?? qp.state) : qp.state;
  const to = has(QpAttrMask.IBV_QP_STATE) ? (attr.qpState ?? from) : from;
  if (device.iwarpQps !== undefined) requireProgramTransition(from, to);
  const command = commandForTransition(qp.geometry.type, from, to, mask);
  checkValues(device, attr, mask);
  if (command === '2RST_QP') {
    const inputModifier = qp.qpn;
    await device.commands.execute(cpu, command, { inputModifier, opcodeModifier: resetOpcodeModifier.linux });
  } else if (command !== undefined) {
    const wantsEvent = command === 'RTS2SQD_QP' && attr.enSqdAsyncNotify === 1;
    const inputModifier = (wantsEvent ? sqdEventRequest | qp.qpn : qp.qpn) >>> 0;
    const ethernet = await ethernetSettings(cpu, device, qp, command, attr, mask);
    const mailbox = transitionMailbox(qp.geometry, qp.memory, from, to, attr, mask, ethernet);
    await device.commands.executeWithMailbox(cpu, command, { inputModifier }, (bytes, address) => {
      qpMailbox.encodeInto(mailbox, bytes, address);
    });
  }
  remember(qp, to, attr, mask);
}

/** Fields of a transition that depend on an Ethernet port. @throws KernelError for an unreachable address */
async function ethernetSettings(
  cpu: Cpu,
  device: Device,
  { qpn, memory }: QueuePair,
  command: CommandName,
  attr: QpAttr,
  mask: number,
): Promise<EthernetSettings | undefined> {
  const number = (mask & QpAttrMask.IBV_QP_PORT) === 0 ? memory.port : (attr.portNum ?? memory.port);
  const port = ethernetPortOf(device.ports[number - 1]);
  if (port === undefined) return undefined;
  const { ahAttr } = attr;
  const hasAddress = (mask & QpAttrMask.IBV_QP_AV) !== 0 && ahAttr !== undefined;
  const isVersion2 =
    hasAddress && port.typeOfGid(ahAttr.grh?.sgidIndex ?? 0) === GidTypeVerb.IBV_GID_TYPE_ROCE_V2;
  const route = hasAddress
    ? { ...(await port.resolve(cpu, ahAttr)), roceMode: isVersion2 ? RoceMode.V2 : RoceMode.V1 }
    : undefined;
  const hasEntropy = hasFlag(device.limits.memoryManagementFlags, MemoryManagementFlag.ROCE_V1_V2);
  const entropy =
    hasEntropy && command === 'RTR2RTS_QP'
      ? await device.commands.query(cpu, 'QUERY_QP', { inputModifier: qpn }, (bytes, at) =>
          entropyOf(qpMailbox.decode(bytes, at).context.remoteQpn, qpn),
        )
      : undefined;
  return { macIndex: port.macIndex, route, entropy };
}

/** The UDP source port of a connection, from the dynamic ports: Linux' mlx4_qp_roce_entropy. */
function entropyOf(remoteQpn: number, qpn: number): number {
  const folded = (number: number): number => ((number ^ (number >>> 16)) & 0xff) | (number & 0xff00);
  return (remoteQpn === qpn ? folded(qpn) : folded(remoteQpn) ^ folded(qpn)) | 0xc000;
}

/** The live state, as reported by the device. */
export function queryQp(cpu: Cpu, device: Device, qp: QueuePair): Promise<QpAttr> {
  if (qp.state === QpStateVerb.IBV_QPS_RESET) {
    return Promise.resolve({ qpState: qp.state, curQpState: qp.state });
  }
  return device.commands.query(cpu, 'QUERY_QP', { inputModifier: qp.qpn }, (bytes, at) =>
    attributesOf(qpMailbox.decode(bytes, at).context, qp),
  );
}

/** Resets the QP unless it is reset, and releases its resources. */
export async function destroyQp(
  cpu: Cpu,
  device: Device,
  memory: ContextMemory,
  qp: QueuePair,
): Promise<void> {
  if (qp.state !== QpStateVerb.IBV_QPS_RESET) {
    await device.commands.execute(cpu, '2RST_QP', {
      inputModifier: qp.qpn,
      opcodeModifier: resetOpcodeModifier.linux,
    });
  }
  device.router.qps.delete(qp.qpn);
  device.iwarpQps?.remove(qp);
  await releaseContext(cpu, device, qp.qpn);
  device.numbers.qps.release(qp.qpn);
  if (qp.record !== undefined) memory.unmapRecord(cpu, qp.record);
  if (qp.idleQueue === undefined) await unmapBuffer(cpu, device, memory.process, qp.buffer);
  else await releaseIdleQueue(cpu, device, qp.idleQueue);
}

const inlineBytesOf = ({ inlineReceiveBytes }: CreateQp): number => inlineReceiveBytes ?? 0;

function checkSizes(device: Device, request: CreateQp): void {
  const { limits } = device;
  const logMax = limits.logMaxQpWqes;
  const { logSendWqes, logSendStride, receiveWqes, logReceiveStride } = request;
  require(Object.values<number>(QpTypeVerb).includes(
    request.type,
  ), `type is ${request.type}, expected one of ${Object.values(QpTypeVerb).join(', ')}`);
  require(request.type !== QpTypeVerb.IBV_QPT_XRC_RECV, 'a QP with queues cannot be an XRC target');
  require(request.type !== QpTypeVerb.IBV_QPT_XRC_SEND ||
    (receiveWqes === 0 && request.srq < 0), 'an XRC initiator has no receive queue');
  // The headroom is added to the program's maximum, so one power of two more is allowed.
  require(logSendWqes <= logMax + 1 &&
    logSendWqes < 16, `logSendWqes is ${logSendWqes}, expected 0 to ${Math.min(logMax + 1, 15)}`);
  require(logSendStride >= 6 && logSendStride <= 11, `logSendStride is ${logSendStride}, expected 6 to 11`);
  require(receiveWqes === 0 ||
    Number.isInteger(Math.log2(receiveWqes)), `receiveWqes is ${receiveWqes}, expected 0 or a power of two`);
  require(receiveWqes <= 2 ** logMax, `receiveWqes is ${receiveWqes}, expected at most ${2 ** logMax}`);
  require(receiveWqes === 0 ||
    (logReceiveStride >= 4 &&
      logReceiveStride <= 11), `logReceiveStride is ${logReceiveStride}, expected 4 to 11`);
  require(request.srq < 0 ||
    receiveWqes === 0, `receiveWqes is ${receiveWqes}, expected 0 for a QP with an SRQ`);
  const inlineBytes = inlineBytesOf(request);
  const inlineMax = inlineReceiveBytesMax(device);
  require(inlineBytes <= inlineMax, `inlineReceiveBytes is ${inlineBytes}, expected at most ${inlineMax}`);
  require(inlineBytes === 0 ||
    (receiveWqes > 0 &&
      inlineBytes <=
        2 **
          logReceiveStride), `inlineReceiveBytes is ${inlineBytes}, expected a receive queue with WQEs of that size`);
  const bytes = 2 ** (logSendWqes + logSendStride) + receiveWqes * 2 ** logReceiveStride;
  require(request.bufferBytes >=
    bytes, `bufferBytes is ${request.bufferBytes}, expected at least ${bytes} for both queues`);
}

function checkValues(device: Device, attr: QpAttr, mask: number): void {
  const check = (attribute: number, name: string, value: number | undefined, max: number, min = 0): void => {
    if ((mask & attribute) !== 0) requireWithin(name, value ?? 0, min, max);
  };
  const { limits } = device;
  const ports = device.ports.length;
  const maxPkey = Math.max(...device.ports.map((port) => port.pkeyCount)) - 1;
  check(QpAttrMask.IBV_QP_PORT, 'portNum', attr.portNum, ports, 1);
  check(QpAttrMask.IBV_QP_PKEY_INDEX, 'pkeyIndex', attr.pkeyIndex, maxPkey);
  check(QpAttrMask.IBV_QP_AV, 'ahAttr.portNum', attr.ahAttr?.portNum, ports, 1);
  check(QpAttrMask.IBV_QP_PATH_MTU, 'pathMtu', attr.pathMtu, MtuVerb.IBV_MTU_4096, 1);
  check(QpAttrMask.IBV_QP_TIMEOUT, 'timeout', attr.timeout, counterMax.timeout);
  check(QpAttrMask.IBV_QP_RETRY_CNT, 'retryCnt', attr.retryCnt, counterMax.retry);
  check(QpAttrMask.IBV_QP_RNR_RETRY, 'rnrRetry', attr.rnrRetry, counterMax.retry);
  check(QpAttrMask.IBV_QP_MIN_RNR_TIMER, 'minRnrTimer', attr.minRnrTimer, counterMax.timeout);
  check(QpAttrMask.IBV_QP_SQ_PSN, 'sqPsn', attr.sqPsn, counterMax.psn);
  check(QpAttrMask.IBV_QP_RQ_PSN, 'rqPsn', attr.rqPsn, counterMax.psn);
  check(QpAttrMask.IBV_QP_DEST_QPN, 'destQpNum', attr.destQpNum, counterMax.psn);
  const requesterMax = 2 ** limits.logMaxRequesterReads;
  const responderMax = responderResourcesOf(device.profile);
  check(QpAttrMask.IBV_QP_MAX_QP_RD_ATOMIC, 'maxRdAtomic', attr.maxRdAtomic, requesterMax);
  check(QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC, 'maxDestRdAtomic', attr.maxDestRdAtomic, responderMax);
}

function remember(qp: QueuePair, to: QpStateVerb, attr: QpAttr, mask: number): void {
  qp.state = to;
  if ((mask & QpAttrMask.IBV_QP_PORT) !== 0) qp.memory.port = attr.portNum ?? 1;
  if ((mask & QpAttrMask.IBV_QP_ACCESS_FLAGS) !== 0) qp.memory.access = attr.qpAccessFlags ?? 0;
  if ((mask & QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC) !== 0) {
    qp.memory.maxDestRdAtomic = attr.maxDestRdAtomic ?? 0;
  }
  if (to === QpStateVerb.IBV_QPS_RESET) {
    qp.memory.access = 0;
    qp.memory.maxDestRdAtomic = 0;
  }
}

function attributesOf(context: Decoded<typeof qpc>, qp: QueuePair): QpAttr {
  const path = context.primaryPath;
  const state = verbStates[context.state] ?? QpStateVerb.IBV_QPS_ERR;
  const isEthernet = path.linkType === LinkType.ETHERNET;
  return {
    qpState: state,
    curQpState: state,
    pathMtu: context.pathMtu as MtuVerb,
    qkey: context.qkey,
    rqPsn: context.nextReceivePsn,
    sqPsn: context.nextSendPsn,
    destQpNum: context.remoteQpn,
    qpAccessFlags:
      (context.remoteReadEnabled === 1 ? AccessFlag.IBV_ACCESS_REMOTE_READ : 0) |
      (context.remoteWriteEnabled === 1 ? AccessFlag.IBV_ACCESS_REMOTE_WRITE : 0) |
      (context.remoteAtomicEnabled === 1 ? AccessFlag.IBV_ACCESS_REMOTE_ATOMIC : 0),
    ahAttr: {
      dlid: path.remoteLid,
      sl: isEthernet
        ? priorityOfScheduleQueue(path.scheduleQueue)
        : serviceLevelOfScheduleQueue(path.scheduleQueue),
      // On Ethernet they hold the index of the source MAC.
      srcPathBits: isEthernet ? 0 : path.sourcePathBits,
      staticRate: rateCodeOf(path.staticRate),
      isGlobal: path.grhPresent,
      portNum: state === QpStateVerb.IBV_QPS_INIT ? qp.memory.port : portOfScheduleQueue(path.scheduleQueue),
      grh: {
        dgid: path.remoteGid,
        flowLabel: path.flowLabel,
        sgidIndex: path.sourceGidIndex,
        hopLimit: path.hopLimit,
        trafficClass: path.trafficClass,
      },
    },
    pkeyIndex: path.pkeyIndex,
    portNum: qp.memory.port,
    sqDraining: context.state === QpState.SQ_DRAINING ? 1 : 0,
    maxRdAtomic: 2 ** context.logMaxRequesterReads,
    maxDestRdAtomic: 2 ** context.logMaxResponderReads,
    minRnrTimer: context.minRnrNak,
    timeout: path.ackTimeout,
    retryCnt: context.retryCount,
    rnrRetry: context.rnrRetryCount,
  };
}
