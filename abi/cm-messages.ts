/**
 * Messages of communication management, after the common header of a MAD of class 0x07: REQ, MRA, REJ, REP, RTU, DREQ, DREP,
 * and SIDR_REQ and SIDR_REP for datagrams. Also the header with IP addresses that rdma_cm writes before a REQ's private data.
 * Source: InfiniBand Architecture volume 1, 12.6 and 12.11, annex A11.
 */
import { bits8, bits16, bits32, bytes, layout, named, reserved, u8, u16, u32, u64 } from '../base/index.ts';

const CM_MESSAGE_BYTES = 232;

const headerOf = (source: string, sizeBytes = CM_MESSAGE_BYTES) =>
  ({ sizeBytes, byteOrder: 'big', source: `IBA ${source}` }) as const;

/** Reasons for rejecting a connection (12.6.7.2): those that Linux sends. */
export const RejectReason = {
  NO_QP: 1,
  NO_RESOURCES: 3,
  TIMEOUT: 4,
  UNSUPPORTED: 5,
  INVALID_COMM_ID: 6,
  INVALID_COMM_INSTANCE: 7,
  INVALID_SERVICE_ID: 8,
  INVALID_TRANSPORT_TYPE: 9,
  STALE_CONN: 10,
  RDC_NOT_EXIST: 11,
  INVALID_GID: 12,
  INVALID_LID: 13,
  CONSUMER_DEFINED: 28,
} as const;

/** One of the two paths of a REQ, from its offset on. */
const path = (at: number) =>
  ({
    localLid: u16(at),
    remoteLid: u16(at + 2),
    localGid: bytes(at + 4, 16),
    remoteGid: bytes(at + 20, 16),
    flowLabel: bits32(at + 36, 31, 12),
    reserved: reserved(bits32(at + 36, 11, 6)),
    packetRate: bits32(at + 36, 5, 0),
    trafficClass: u8(at + 40),
    hopLimit: u8(at + 41),
    serviceLevel: bits8(at + 42, 7, 4),
    subnetLocal: bits8(at + 42, 3, 3),
    reserved42: reserved(bits8(at + 42, 2, 0)),
    localAckTimeout: bits8(at + 43, 7, 3),
    reserved43: reserved(bits8(at + 43, 2, 0)),
  }) as const;
const primary = path(52);
const alternate = path(96);

const cmReq = layout('REQ', headerOf('12.6.5'), {
  localCommId: u32(0),
  reserved4: reserved(u32(4)),
  serviceId: u64(8),
  localCaGuid: u64(16),
  reserved24: reserved(u32(24)),
  localQkey: u32(28),
  localQpn: bits32(32, 31, 8),
  responderResources: bits32(32, 7, 0),
  localEecn: bits32(36, 31, 8),
  initiatorDepth: bits32(36, 7, 0),
  remoteEecn: bits32(40, 31, 8),
  remoteCmResponseTimeout: bits32(40, 7, 3),
  transportServiceType: bits32(40, 2, 1),
  endToEndFlowControl: bits32(40, 0, 0),
  startingPsn: bits32(44, 31, 8),
  localCmResponseTimeout: bits32(44, 7, 3),
  retryCount: bits32(44, 2, 0),
  partitionKey: u16(48),
  pathMtu: bits8(50, 7, 4),
  rdcExists: bits8(50, 3, 3),
  rnrRetryCount: bits8(50, 2, 0),
  maxCmRetries: bits8(51, 7, 4),
  srq: bits8(51, 3, 3),
  extendedTransportType: bits8(51, 2, 0),
  primaryLocalLid: primary.localLid,
  primaryRemoteLid: primary.remoteLid,
  primaryLocalGid: primary.localGid,
  primaryRemoteGid: primary.remoteGid,
  primaryFlowLabel: primary.flowLabel,
  primaryReserved: primary.reserved,
  primaryPacketRate: primary.packetRate,
  primaryTrafficClass: primary.trafficClass,
  primaryHopLimit: primary.hopLimit,
  primaryServiceLevel: primary.serviceLevel,
  primarySubnetLocal: primary.subnetLocal,
  primaryReserved42: primary.reserved42,
  primaryLocalAckTimeout: primary.localAckTimeout,
  primaryReserved43: primary.reserved43,
  alternateLocalLid: alternate.localLid,
  alternateRemoteLid: alternate.remoteLid,
  alternateLocalGid: alternate.localGid,
  alternateRemoteGid: alternate.remoteGid,
  alternateFlowLabel: alternate.flowLabel,
  alternateReserved: alternate.reserved,
  alternatePacketRate: alternate.packetRate,
  alternateTrafficClass: alternate.trafficClass,
  alternateHopLimit: alternate.hopLimit,
  alternateServiceLevel: alternate.serviceLevel,
  alternateSubnetLocal: alternate.subnetLocal,
  alternateReserved42: alternate.reserved42,
  alternateLocalAckTimeout: alternate.localAckTimeout,
  alternateReserved43: alternate.reserved43,
  privateData: bytes(140, 92),
});

const ids = { localCommId: u32(0), remoteCommId: u32(4) } as const;

const cmMra = layout('MRA', headerOf('12.6.6'), {
  ...ids,
  messageMraed: bits8(8, 7, 6, '0 REQ, 1 REP, 2 LAP'),
  reserved8: reserved(bits8(8, 5, 0)),
  serviceTimeout: bits8(9, 7, 3),
  reserved9: reserved(bits8(9, 2, 0)),
  privateData: bytes(10, 222),
});

const cmRej = layout('REJ', headerOf('12.6.7'), {
  ...ids,
  messageRejected: bits8(8, 7, 6, '0 REQ, 1 REP, 2 none'),
  reserved8: reserved(bits8(8, 5, 0)),
  rejectInfoLength: bits8(9, 7, 1),
  reserved9: reserved(bits8(9, 0, 0)),
  reason: named(u16(10), RejectReason),
  additionalInformation: bytes(12, 72),
  privateData: bytes(84, 148),
});

const cmRep = layout('REP', headerOf('12.6.8'), {
  ...ids,
  localQkey: u32(8),
  localQpn: bits32(12, 31, 8),
  reserved15: reserved(bits32(12, 7, 0)),
  localEecn: bits32(16, 31, 8),
  reserved19: reserved(bits32(16, 7, 0)),
  startingPsn: bits32(20, 31, 8),
  reserved23: reserved(bits32(20, 7, 0)),
  responderResources: u8(24),
  initiatorDepth: u8(25),
  targetAckDelay: bits8(26, 7, 3),
  failoverAccepted: bits8(26, 2, 1),
  endToEndFlowControl: bits8(26, 0, 0),
  rnrRetryCount: bits8(27, 7, 5),
  srq: bits8(27, 4, 4),
  reserved27: reserved(bits8(27, 3, 0)),
  localCaGuid: u64(28),
  privateData: bytes(36, 196),
});

const cmRtu = layout('RTU', headerOf('12.6.9'), { ...ids, privateData: bytes(8, 224) });

const cmDreq = layout('DREQ', headerOf('12.6.10'), {
  ...ids,
  remoteQpn: bits32(8, 31, 8),
  reserved11: reserved(bits32(8, 7, 0)),
  privateData: bytes(12, 220),
});

const cmDrep = layout('DREP', headerOf('12.6.11'), { ...ids, privateData: bytes(8, 224) });

const cmSidrReq = layout('SIDR_REQ', headerOf('12.11.1'), {
  requestId: u32(0),
  partitionKey: u16(4),
  reserved6: reserved(bits16(6, 15, 0)),
  serviceId: u64(8),
  privateData: bytes(16, 216),
});

const cmSidrRep = layout('SIDR_REP', headerOf('12.11.2'), {
  requestId: u32(0),
  status: u8(4),
  additionalInformationLength: u8(5),
  reserved6: reserved(bits16(6, 15, 0)),
  qpn: bits32(8, 31, 8),
  reserved11: reserved(bits32(8, 7, 0)),
  serviceId: u64(12),
  queueKey: u32(20),
  additionalInformation: bytes(24, 72),
  privateData: bytes(96, 136),
});

/** The messages by their attribute IDs. */
export const cmMessages = {
  16: cmReq,
  17: cmMra,
  18: cmRej,
  19: cmRep,
  20: cmRtu,
  21: cmDreq,
  22: cmDrep,
  23: cmSidrReq,
  24: cmSidrRep,
} as const;

/** Header before the private data of an rdma_cm REQ: the IP addresses of both sides. An IPv4 address is the last four bytes. */
export const ipCmHeader = layout('IP CM header', headerOf('annex A11', 36), {
  majorVersion: bits8(0, 7, 4),
  minorVersion: bits8(0, 3, 0),
  ipVersion: bits8(1, 7, 4),
  reserved1: reserved(bits8(1, 3, 0)),
  sourcePort: u16(2),
  sourceAddress: bytes(4, 16),
  destinationAddress: bytes(20, 16),
});

/** A service ID of rdma_cm: this prefix, the port space (TCP 0x06, UDP 0x11), the port. */
export const ipServicePrefix = 0x0000_0000_0100_0000n;
