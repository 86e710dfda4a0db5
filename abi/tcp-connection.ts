/**
 * TCP connections of a card that offloads TCP for iWARP: the context of a connection, the mailboxes of its commands and its
 * events. A ConnectX-3 has none of this. Source: this project (reference/iwarp-interface.md), after what Linux's cxgb4 driver
 * passes to a card that opens its connections itself (drivers/infiniband/hw/cxgb4/cm.c).
 */
import { bits8, bits32, bytes, layout, named, u8, u16, u32, u64 } from '../base/index.ts';
import { EventType, eqeBytes, eqeOwnerOffset } from './eqe.ts';

const source = 'this project';

/** States of a connection: those of RFC 9293, 3.3.2. */
export const TcpState = {
  CLOSED: 0,
  LISTEN: 1,
  SYN_SENT: 2,
  SYN_RECEIVED: 3,
  ESTABLISHED: 4,
  FIN_WAIT_1: 5,
  FIN_WAIT_2: 6,
  CLOSE_WAIT: 7,
  CLOSING: 8,
  LAST_ACK: 9,
  TIME_WAIT: 10,
} as const;
export type TcpState = (typeof TcpState)[keyof typeof TcpState];

/** Congestion control of a connection: RFC 5681 with RFC 6582, or RFC 9438. */
export const TcpCongestion = { NEWRENO: 0, CUBIC: 1 } as const;
export type TcpCongestion = (typeof TcpCongestion)[keyof typeof TcpCongestion];

/**
 * One entry of the connection table, which lies in the ICM table `auxc`. OPEN_TCP and QUERY_TCP use it as their mailbox.
 * OPEN_TCP ignores the fields marked (device). An IPv4 address fills the last 4 bytes of its field, after `::ffff`.
 */
export const tcpContext = layout(
  'TCP context',
  { sizeBytes: 0x100, byteOrder: 'big', source },
  {
    state: named(bits32(0x00, 31, 28), TcpState),
    isIpv6: bits32(0x00, 27, 27),
    hasVlan: bits32(0x00, 26, 26),
    offersTimestamps: bits32(0x00, 25, 25, 'RFC 7323'),
    offersSack: bits32(0x00, 24, 24, 'RFC 2018'),
    congestion: named(bits32(0x00, 23, 20), TcpCongestion),
    port: bits32(0x00, 7, 0, 'of the card, from 1'),
    cookie: u32(
      0x04,
      'repeated in every event of the connection; a listener hands it to those that it accepts',
    ),
    remoteMac: bytes(0x08, 6),
    vlanTag: u16(0x0e),
    localAddress: bytes(0x10, 16),
    remoteAddress: bytes(0x20, 16, 'zeros of a listener'),
    localPort: u16(0x30),
    remotePort: u16(0x32, '0 of a listener'),
    hopLimit: u8(0x34),
    trafficClass: u8(0x35),
    maxSegmentBytes: u16(0x36, 'offered; after the handshake (device): the payload of a full segment'),
    receiveWindowBytes: u32(0x38, 'most that is offered'),
    receiveScale: bits8(0x3c, 3, 0),
    sendScale: bits8(0x3d, 3, 0, '(device)'),
    keepAliveSeconds: u16(0x3e, 'of silence before a probe; 0: no probes'),
    backlog: u16(0x40, 'of a listener: connections that software has not yet learnt of'),
    synRetries: u8(0x42),
    dataRetries: u8(0x43),
    qpn: bits32(0x44, 23, 0, '(device) QP to which the stream belongs; 0: software reads and writes it'),
    initialSendSequence: u32(0x48, '(device)'),
    sendUnacknowledged: u32(0x4c, '(device)'),
    sendNext: u32(0x50, '(device)'),
    sendWindowBytes: u32(0x54, '(device)'),
    initialReceiveSequence: u32(0x58, '(device)'),
    receiveNext: u32(0x5c, '(device)'),
    congestionWindowBytes: u32(0x60, '(device)'),
    slowStartThresholdBytes: u32(0x64, '(device)'),
    smoothedRoundTripNs: u32(0x68, '(device) RFC 6298'),
    roundTripVariationNs: u32(0x6c, '(device) RFC 6298'),
    retransmissions: u32(0x70, '(device)'),
    retransmissionTimeouts: u32(0x74, '(device)'),
    bytesSent: u64(0x78, '(device) of the stream'),
    bytesReceived: u64(0x80, '(device) of the stream'),
  },
);

/** Most bytes that one SEND_TCP or RECEIVE_TCP moves: a request or reply of MPA has at most 532. */
export const streamBytesMax = 1024;

/** Mailbox of SEND_TCP and RECEIVE_TCP: bytes of a stream that belongs to no QP. */
export const streamMailbox = layout(
  'TCP stream mailbox',
  { sizeBytes: 8 + streamBytesMax, byteOrder: 'big', source },
  { lengthBytes: u32(0x00), bytes: bytes(0x08, streamBytesMax) },
);

/** Opcode modifiers of OPEN_TCP. */
export const OpenTcp = { CONNECT: 0, LISTEN: 1 } as const;
export type OpenTcp = (typeof OpenTcp)[keyof typeof OpenTcp];
/** Opcode modifiers of CLOSE_TCP. */
export const CloseTcp = {
  /** FIN after everything sent. */
  ORDERLY: 0,
  /** RST. */
  ABORT: 1,
  /** The number of a connection that has ended, or of a listener, is free again. */
  RELEASE: 2,
  /** Sends a Terminate with the layer, type and code of the immediate value (RFC 5040, 4.8), then FIN. The connection has a QP. */
  TERMINATE: 3,
} as const;
export type CloseTcp = (typeof CloseTcp)[keyof typeof CloseTcp];

/** Subtypes of the TCP event. CLOSED, RESET and TIMED_OUT end a connection: no event of it follows. */
export const TcpEvent = {
  /** The handshake of a connection that software opened is over. */
  ESTABLISHED: 1,
  /** A listener has a connection, with a number of its own. */
  ACCEPTED: 2,
  /** Bytes wait for RECEIVE_TCP. Raised once until software has read all of them. */
  READABLE: 3,
  /** The peer's FIN has arrived, after everything that it sent. */
  PEER_CLOSED: 4,
  /** Ended in agreement: both FINs are acknowledged. TIME_WAIT is the card's affair. */
  CLOSED: 5,
  /** A RST ended it: the peer's, before or after it was established, or this card's when software aborted it. */
  RESET: 6,
  /** The peer has not answered, after all retries that the context allows. */
  TIMED_OUT: 7,
  /** RDMAP: the QP's stream ended with a Terminate of the peer, or of this card. */
  TERMINATE_RECEIVED: 8,
  TERMINATE_SENT: 9,
} as const;
export type TcpEvent = (typeof TcpEvent)[keyof typeof TcpEvent];

/** Something happened to a connection. */
export const tcpEqe = layout(
  'TCP EQE',
  { sizeBytes: eqeBytes, byteOrder: 'big', source },
  {
    type: named(u8(0x01), EventType),
    subtype: named(u8(0x03), TcpEvent),
    connection: bits32(0x04, 23, 0),
    listener: bits32(0x08, 23, 0, 'of ACCEPTED'),
    cookie: u32(0x0c),
    terminate: u16(0x10, 'of TERMINATE_: layer, type and code of RFC 5040, 4.8'),
    qpn: bits32(0x14, 23, 0, 'of TERMINATE_'),
    slaveId: u8(0x1c, 'multi-function only'),
    owner: bits8(eqeOwnerOffset, 7, 7, 'pass bit of the producer counter'),
  },
);

/** Kinds of the ready-to-receive message of peer-to-peer mode (RFC 6581, 4.2), as bits. */
export const RtrKind = { NONE: 0, SEND: 1, WRITE: 2, READ: 4 } as const;
export type RtrKind = (typeof RtrKind)[keyof typeof RtrKind];

/** iWARP's part of the QPC replaces the alternate path, which iWARP does not have. */
export const iwarpOffsetInQpc = 0x44;

/** The part of iWARP of a QPC, set by INIT2RTR: from then on the unread bytes of the connection's stream belong to the QP. */
export const iwarpContext = layout(
  'iWARP context',
  { sizeBytes: 0x2c, byteOrder: 'big', source },
  {
    connection: bits32(0x00, 23, 0, 'which is established'),
    isInitiator: bits32(0x00, 31, 31, 'may send first (RFC 5044, 7.1.2)'),
    sendsMarkers: bits32(0x00, 30, 30),
    receivesMarkers: bits32(0x00, 29, 29),
    hasCrc: bits32(0x00, 28, 28),
    rtr: bits32(0x00, 26, 24, 'RtrKind: an initiator sends it first, a responder expects it first'),
    inboundReads: u16(0x04, 'IRD: READs that the peer may have outstanding here'),
    outboundReads: u16(0x06, 'ORD: READs that this QP may have outstanding there'),
  },
);
