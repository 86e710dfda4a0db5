/**
 * From verbs attributes to the mailbox of a QP transition: the context with what the transition needs, and the mask of
 * optional parameters. Fields are set as mlx4_ib sets them, to the bit; the golden captures are the test.
 * Sources: interface sheet 3.17, 5.1; golden captures b, d, f, h, i.
 */
import {
  type addressPath,
  ethernetScheduleQueueOf,
  icmPageBytes,
  LinkType,
  OptionalParameter,
  PathMigration,
  PathMtu,
  QpState,
  type qpMailbox,
  type RoceMode,
  ServiceType,
  scheduleQueueOf,
  staticRateFieldOf,
} from '../abi/index.ts';
import { type Initial, log2Ceil, log2Exact } from '../base/index.ts';
import type { Translation } from './mtt-table.ts';
import { AccessFlag, type AhAttr, type QpAttr, QpAttrMask, QpStateVerb, QpTypeVerb } from './uapi.ts';

/** State of a QP that the kernel keeps besides its present attributes. */
export interface QpGeometry {
  readonly type: QpTypeVerb;
  readonly qpn: number;
  readonly pdn: number;
  readonly uarPage: number;
  readonly sendCqn: number;
  readonly receiveCqn: number;
  /** -1 without an SRQ. */
  readonly srqn: number;
  /** Number of the domain for an XRC target, else 0. */
  readonly xrcdn: number;
  readonly logSendWqes: number;
  readonly logSendStride: number;
  /** 0 with an SRQ. */
  readonly receiveWqes: number;
  readonly logReceiveStride: number;
  readonly receivesInline: boolean;
  readonly translation: Translation;
  readonly recordAddress: number;
  /** Longest message that the device accepts, log2. */
  readonly logMaxMessageBytes: number;
}

/** Fields of a QP that depend on its port, if it is Ethernet. */
export interface EthernetSettings {
  /** Index of the source MAC in the port's table. */
  readonly macIndex: number;
  /** Route of a transition that sets an address. */
  readonly route:
    | { readonly mac: Uint8Array; readonly hopLimit: number; readonly roceMode: RoceMode }
    | undefined;
  /** UDP source port of version 2; undefined if the transition does not set it. */
  readonly entropy: number | undefined;
}

/** Attributes that later transitions build on. */
export interface QpMemory {
  port: number;
  access: number;
  maxDestRdAtomic: number;
}

type Mailbox = Initial<typeof qpMailbox>;
type Context = Exclude<Mailbox['context'], undefined>;
type Path = Initial<typeof addressPath>;

const deviceStates: { readonly [state in QpStateVerb]: QpState } = {
  [QpStateVerb.IBV_QPS_RESET]: QpState.RST,
  [QpStateVerb.IBV_QPS_INIT]: QpState.INIT,
  [QpStateVerb.IBV_QPS_RTR]: QpState.RTR,
  [QpStateVerb.IBV_QPS_RTS]: QpState.RTS,
  [QpStateVerb.IBV_QPS_SQD]: QpState.SQD,
  [QpStateVerb.IBV_QPS_SQE]: QpState.SQER,
  [QpStateVerb.IBV_QPS_ERR]: QpState.ERR,
};
const serviceTypes: { readonly [type in QpTypeVerb]: ServiceType } = {
  [QpTypeVerb.IBV_QPT_RC]: ServiceType.RC,
  [QpTypeVerb.IBV_QPT_UC]: ServiceType.UC,
  [QpTypeVerb.IBV_QPT_UD]: ServiceType.UD,
  [QpTypeVerb.IBV_QPT_XRC_SEND]: ServiceType.XRC,
  [QpTypeVerb.IBV_QPT_XRC_RECV]: ServiceType.XRC,
};

/** An ACK is requested at least every 2^8 packets. */
const ackRequestFrequency = 8;
/** Message limit that Linux requests: above the MTU for a datagram QP, the device's own for a connected QP. */
const logMaxDatagram = 13;
/** Index of no flow counter. */
const sinkCounter = 0xff;
const noReceiveQueue = { rqSizeBorrow: 1, rqLogCount: 15, rqLogStride16: 4 } as const;

const bit = (parameter: OptionalParameter): number => 2 ** parameter;

/** The mailbox of the transition to `to`; `memory` holds the attributes of earlier ones. */
export function transitionMailbox(
  geometry: QpGeometry,
  memory: QpMemory,
  from: QpStateVerb,
  to: QpStateVerb,
  attr: QpAttr,
  mask: number,
  ethernet: EthernetSettings | undefined,
): Mailbox {
  const isInit = from === QpStateVerb.IBV_QPS_RESET && to === QpStateVerb.IBV_QPS_INIT;
  const isRtr = from === QpStateVerb.IBV_QPS_INIT && to === QpStateVerb.IBV_QPS_RTR;
  const requester = requesterFields(attr, mask);
  const responder = responderFields(memory, attr, mask);
  const path = pathFields(geometry, memory, attr, mask, isRtr, ethernet);
  return {
    optionalParameterMask: requester.mask + responder.mask + path.mask,
    context: {
      state: deviceStates[to],
      ...standingFields(geometry),
      ...(isInit ? initFields(geometry) : {}),
      ...mtuFields(geometry, attr, mask),
      ...requester.fields,
      ...responder.fields,
      ...(isRtr && ethernet?.route !== undefined ? { roceMode: ethernet.route.roceMode } : {}),
      ...(ethernet?.entropy === undefined ? {} : { roceEntropy: ethernet.entropy }),
      primaryPath: path.fields,
    },
  };
}

/** Fields that every transition repeats. */
export function standingFields(geometry: QpGeometry): Context {
  const hasSrq = geometry.srqn >= 0;
  const receiveQueue =
    geometry.receiveWqes > 0
      ? {
          rqLogCount: log2Exact(geometry.receiveWqes),
          rqLogStride16: geometry.logReceiveStride - 4,
        }
      : noReceiveQueue;
  return {
    serviceType: serviceTypes[geometry.type],
    pathMigration: PathMigration.MIGRATED,
    pd: geometry.pdn,
    ...receiveQueue,
    sqLogCount: geometry.logSendWqes,
    sqLogStride16: geometry.logSendStride - 4,
    uarPage: geometry.uarPage,
    localQpn: geometry.qpn,
    ackRequestFrequency,
    sendCqn: geometry.sendCqn,
    receiveCqn: geometry.receiveCqn,
    ...(geometry.receivesInline ? { inlineReceive: 1 } : {}),
    ...(hasSrq ? { ric: 1, srqAttached: 1, srqn: geometry.srqn } : {}),
  };
}

/** Fields that only the first transition carries: addresses of the queues and the record. */
function initFields(geometry: QpGeometry): Context {
  return {
    logPageSize4k: geometry.translation.logPageBytes - log2Exact(icmPageBytes),
    mttAddress: geometry.translation.mttAddress,
    xrcDomain: geometry.xrcdn,
    ...(geometry.receiveWqes > 0 ? { doorbellRecordAddress: BigInt(geometry.recordAddress) } : {}),
  };
}

function mtuFields(geometry: QpGeometry, attr: QpAttr, mask: number): Context {
  if (geometry.type === QpTypeVerb.IBV_QPT_UD) {
    return {
      pathMtu: PathMtu.MTU_4096,
      logMaxMessage: Math.min(logMaxDatagram, geometry.logMaxMessageBytes),
    };
  }
  if ((mask & QpAttrMask.IBV_QP_PATH_MTU) === 0) return {};
  return { pathMtu: attr.pathMtu ?? 0, logMaxMessage: geometry.logMaxMessageBytes };
}

interface Selected<T> {
  readonly fields: T;
  readonly mask: number;
}

/** log2 of a number of outstanding reads, rounded up; 0 reads and 1 read have the same code. */
export const logReads = (reads: number): number => (reads <= 1 ? 0 : log2Ceil(reads));

function requesterFields(attr: QpAttr, mask: number): Selected<Context> {
  const has = (attribute: number): boolean => (mask & attribute) !== 0;
  let optional = 0;
  const fields: { -readonly [Name in keyof Context]: Context[Name] } = {};
  if (has(QpAttrMask.IBV_QP_RETRY_CNT)) {
    fields.retryCount = attr.retryCnt ?? 0;
    optional += bit(OptionalParameter.RETRY_COUNT);
  }
  if (has(QpAttrMask.IBV_QP_RNR_RETRY)) {
    fields.rnrRetryCount = attr.rnrRetry ?? 0;
    optional += bit(OptionalParameter.RNR_RETRY);
  }
  if (has(QpAttrMask.IBV_QP_MAX_QP_RD_ATOMIC)) {
    fields.logMaxRequesterReads = logReads(attr.maxRdAtomic ?? 0);
    optional += bit(OptionalParameter.SRA_MAX);
  }
  if (has(QpAttrMask.IBV_QP_SQ_PSN)) fields.nextSendPsn = attr.sqPsn ?? 0;
  if (has(QpAttrMask.IBV_QP_DEST_QPN)) fields.remoteQpn = attr.destQpNum ?? 0;
  if (has(QpAttrMask.IBV_QP_QKEY)) {
    fields.qkey = attr.qkey ?? 0;
    optional += bit(OptionalParameter.QKEY);
  }
  return { fields, mask: optional };
}

function responderFields(memory: QpMemory, attr: QpAttr, mask: number): Selected<Context> {
  const has = (attribute: number): boolean => (mask & attribute) !== 0;
  let optional = 0;
  let fields: Context = {};
  if (has(QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC)) {
    fields = { ...fields, logMaxResponderReads: logReads(attr.maxDestRdAtomic ?? 0) };
    optional += bit(OptionalParameter.RRA_MAX);
  }
  if (has(QpAttrMask.IBV_QP_ACCESS_FLAGS | QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC)) {
    fields = { ...fields, ...accessFields(memory, attr, mask) };
    optional += bit(OptionalParameter.RRE) + bit(OptionalParameter.RAE) + bit(OptionalParameter.RWE);
  }
  if (has(QpAttrMask.IBV_QP_MIN_RNR_TIMER)) {
    fields = { ...fields, minRnrNak: attr.minRnrTimer ?? 0 };
    optional += bit(OptionalParameter.MIN_RNR_NAK);
  }
  if (has(QpAttrMask.IBV_QP_RQ_PSN)) fields = { ...fields, nextReceivePsn: attr.rqPsn ?? 0 };
  return { fields, mask: optional };
}

/** Remote rights; without responder resources only writes can be served. */
function accessFields(memory: QpMemory, attr: QpAttr, mask: number): Context {
  const access = (mask & QpAttrMask.IBV_QP_ACCESS_FLAGS) !== 0 ? (attr.qpAccessFlags ?? 0) : memory.access;
  const reads =
    (mask & QpAttrMask.IBV_QP_MAX_DEST_RD_ATOMIC) !== 0
      ? (attr.maxDestRdAtomic ?? 0)
      : memory.maxDestRdAtomic;
  const granted = reads > 0 ? access : access & AccessFlag.IBV_ACCESS_REMOTE_WRITE;
  const right = (flag: AccessFlag): number => ((granted & flag) !== 0 ? 1 : 0);
  return {
    remoteReadEnabled: right(AccessFlag.IBV_ACCESS_REMOTE_READ),
    remoteWriteEnabled: right(AccessFlag.IBV_ACCESS_REMOTE_WRITE),
    remoteAtomicEnabled: right(AccessFlag.IBV_ACCESS_REMOTE_ATOMIC),
  };
}

function pathFields(
  geometry: QpGeometry,
  memory: QpMemory,
  attr: QpAttr,
  mask: number,
  isRtr: boolean,
  ethernet: EthernetSettings | undefined,
): Selected<Path> {
  let path: Path = {};
  let optional = 0;
  if ((mask & QpAttrMask.IBV_QP_PKEY_INDEX) !== 0) {
    path = { ...path, pkeyIndex: attr.pkeyIndex ?? 0 };
    optional += bit(OptionalParameter.PKEY_INDEX);
  }
  if ((mask & QpAttrMask.IBV_QP_TIMEOUT) !== 0) {
    path = { ...path, ackTimeout: attr.timeout ?? 0 };
    optional += bit(OptionalParameter.ACK_TIMEOUT);
  }
  if ((mask & QpAttrMask.IBV_QP_AV) !== 0 && attr.ahAttr !== undefined) {
    path = { ...path, ...addressFields(attr.ahAttr), ...ethernetFields(attr.ahAttr, ethernet) };
    optional += bit(OptionalParameter.PRIMARY_ADDR_PATH) + bit(OptionalParameter.SCHED_QUEUE);
  } else if (isRtr && geometry.type === QpTypeVerb.IBV_QPT_UD) {
    path = { ...path, scheduleQueue: scheduleQueueOf(memory.port, 0) };
    if (ethernet !== undefined) {
      path = { ...path, ...sourceOf(ethernet) };
      optional += bit(OptionalParameter.PRIMARY_ADDR_PATH);
    }
  }
  if (isRtr) path = { ...path, counterIndex: sinkCounter };
  return { fields: path, mask: optional };
}

function addressFields(ah: AhAttr): Path {
  const route = ah.isGlobal === 1 ? ah.grh : undefined;
  return {
    sourcePathBits: ah.srcPathBits ?? 0,
    remoteLid: ah.dlid,
    staticRate: staticRateFieldOf(ah.staticRate ?? 0),
    scheduleQueue: scheduleQueueOf(ah.portNum, ah.sl ?? 0),
    ...(route === undefined
      ? {}
      : {
          grhPresent: 1,
          sourceGidIndex: route.sgidIndex,
          hopLimit: route.hopLimit,
          trafficClass: route.trafficClass,
          flowLabel: route.flowLabel,
          remoteGid: route.dgid,
        }),
  };
}

/** The source of all packets of a QP on Ethernet; bit 7 of its byte is the GRH bit. */
const sourceOf = ({ macIndex }: EthernetSettings): Path => ({
  grhPresent: 1,
  sourcePathBits: macIndex,
  linkType: LinkType.ETHERNET,
});

/** Fields that replace LIDs, path bits and service levels on Ethernet. */
function ethernetFields(ah: AhAttr, ethernet: EthernetSettings | undefined): Path {
  if (ethernet?.route === undefined) return {};
  const { mac, hopLimit } = ethernet.route;
  return {
    ...sourceOf(ethernet),
    hopLimit,
    scheduleQueue: ethernetScheduleQueueOf(ah.portNum, ah.sl ?? 0),
    forceEthernetPriority: 1,
    destinationMac: mac,
  };
}
