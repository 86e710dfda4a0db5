/**
 * The address path of a QP context: where packets go and by which port. Source: interface sheet 5.1.1.
 *
 * The schedule queue byte selects port and priority: [7] 1, [6] port − 1, IB [5:2] service level, Ethernet [5:3] priority.
 */

import { bits8, bits32, bytes, layout, named, u8, u16 } from '../base/index.ts';

export const LinkType = { INFINIBAND: 0, ETHERNET: 1 } as const;
export type LinkType = (typeof LinkType)[keyof typeof LinkType];

export const addressPath = layout(
  'address path',
  { sizeBytes: 0x2c, byteOrder: 'big', source: 'sheet 5.1.1' },
  {
    forceLoopback: bits8(0x00, 7, 7),
    cv: bits8(0x00, 6, 6),
    sv: bits8(0x00, 5, 5),
    hideVlanInCqe: bits8(0x00, 2, 2),
    multicastLoopbackSourceCheck: bits8(0x00, 1, 1),
    unicastLoopbackSourceCheck: bits8(0x00, 0, 0),
    sourceCheckByCounter: bits8(0x01, 7, 7),
    blockTaggedTx: bits8(0x01, 6, 6),
    blockPriorityTaggedTx: bits8(0x01, 5, 5),
    blockUntaggedTx: bits8(0x01, 4, 4),
    blockTaggedRx: bits8(0x01, 2, 2),
    blockPriorityTaggedRx: bits8(0x01, 1, 1),
    blockUntaggedRx: bits8(0x01, 0, 0),
    disablePkeyCheck: bits8(0x02, 6, 6),
    pkeyIndex: bits8(0x03, 6, 0),
    counterIndex: u8(0x04, '0xff is the sink'),
    grhPresent: bits8(0x05, 7, 7),
    sourcePathBits: bits8(0x05, 6, 0, 'source-MAC index on Ethernet'),
    remoteLid: u16(0x06),
    ackTimeout: bits8(0x08, 7, 3, 'local ACK timeout code: 4.096 µs × 2^n, 0 is never'),
    linkType: named(bits8(0x08, 2, 0), LinkType),
    sourceGidIndex: bits8(0x09, 6, 0),
    staticRate: bits8(0x0a, 3, 0, '0 is none, else IB rate code + 5'),
    hopLimit: u8(0x0b),
    trafficClass: bits32(0x0c, 27, 20),
    flowLabel: bits32(0x0c, 19, 0),
    remoteGid: bytes(0x10, 16),
    scheduleQueue: u8(0x20),
    vlanIndex: bits8(0x21, 6, 0),
    doNotForceSourceMac: bits8(0x22, 7, 7),
    forceEthernetPriority: bits8(0x22, 6, 6),
    forceSourceMac: bits8(0x22, 5, 5),
    forceVlan: bits8(0x22, 3, 3),
    enforceVlanOnReceive: bits8(0x23, 0, 0),
    destinationMac: bytes(0x26, 6),
  },
);

/** Static rate codes of paths and address vectors are the code of the IB rate plus this; 0 stays 0. */
const staticRateOffset = 5;
const staticRateFieldMax = 15;
/**
 * A rate that the field cannot hold becomes its highest, IBV_RATE_120_GBPS: Linux steps down to a rate that the device
 * has.
 */
export const staticRateFieldOf = (rateCode: number): number =>
  rateCode === 0 ? 0 : Math.min(rateCode + staticRateOffset, staticRateFieldMax);
/** Code of the IB rate in a field; 0 for none, and for values below all codes. */
export const rateCodeOf = (field: number): number => Math.max(0, field - staticRateOffset);

/** The constant part Linux puts in the schedule queue of ordinary QPs, and of QP0. */
export const scheduleQueueBase = { ordinary: 0x83, qp0: 0x3f } as const;

/** Port (1 or 2) that a schedule queue selects. */
export const portOfScheduleQueue = (scheduleQueue: number): number => ((scheduleQueue >>> 6) & 1) + 1;

/** Service level of a schedule queue on an InfiniBand port. */
export const serviceLevelOfScheduleQueue = (scheduleQueue: number): number => (scheduleQueue >>> 2) & 0xf;

/** Schedule queue of an ordinary QP on an InfiniBand port. */
export const scheduleQueueOf = (port: number, serviceLevel: number): number =>
  scheduleQueueBase.ordinary | ((port - 1) << 6) | (serviceLevel << 2);

/** The same on an Ethernet port: the low three bits of the service level are the priority. */
export const ethernetScheduleQueueOf = (port: number, serviceLevel: number): number =>
  scheduleQueueBase.ordinary | ((port - 1) << 6) | ((serviceLevel & 7) << 3);

/** Priority of a schedule queue on an Ethernet port. */
export const priorityOfScheduleQueue = (scheduleQueue: number): number => (scheduleQueue >>> 3) & 7;
