/**
 * Evidence of why requests fail or never complete, as plain data: the device's records of its objects and refusals, and
 * the verbs library's records of its callers on a simulated host. A stock guest has only the device's part.
 *
 * Bounded: destroyed objects, refusals and drops are kept up to the limits in `limits`; `omitted` counts the others.
 */

import type { Topology } from '../topology/index.ts';

export const limits = { objects: 4096, records: 1024, postsPerQueue: 256, calls: 256 } as const;

/** An instant in picoseconds since power-on. */
export type InstantPs = number;

export type Service = 'RC' | 'UC' | 'UD' | 'XRC' | 'MLX' | 'other';
export type QpStateName = 'RESET' | 'INIT' | 'RTR' | 'RTS' | 'SQD' | 'SQE' | 'ERR' | 'unknown';

/** A state that a QP entered, by a command of its software or by the device after an error. */
export interface StateChange {
  readonly state: QpStateName;
  readonly by: 'software' | 'device';
  readonly atPs: InstantPs;
}

/** Destination of a connection's packets, from its context. */
export interface PathEvidence {
  readonly lid: number;
  /** GID in hexadecimal groups, if packets have a GRH. */
  readonly gid?: string;
  readonly sourceGidIndex?: number;
  /** Ethernet only. */
  readonly mac?: string;
  readonly vlan?: number;
  readonly roce?: 'v1' | 'v2';
}

export interface QpEvidence {
  readonly qpn: number;
  readonly service: Service;
  readonly pd: number;
  readonly sendCqn: number;
  readonly receiveCqn: number;
  /** -1 without a shared receive queue. */
  readonly srqn: number;
  readonly createdPs: InstantPs;
  /** Undefined while the QP exists. */
  destroyedPs?: InstantPs;
  state: QpStateName;
  /** Ordered by time; at most the last 16. */
  readonly states: readonly StateChange[];
  remoteQpn: number;
  path: PathEvidence;
  mtuBytes: number;
  pkeyIndex: number;
  pkey: number;
  queueKey: number;
  /** First PSNs as software configured them; -1 before. */
  sendPsn: number;
  receivePsn: number;
  retryCount: number;
  rnrRetryCount: number;
  /** Local ACK timeout; 0 disables it. */
  timeoutCode: number;
  timeoutPs: number;
  rnrTimerCode: number;
  /** Access rights of the peer: bit 0 READ, 1 WRITE, 2 atomics. */
  rights: number;
  requesterReadsMax: number;
  responderReadsMax: number;
  /** Slots of the send queue, and bytes of each. */
  sendSlots: number;
  sendSlotBytes: number;
  /** Send requests that the device has begun, and that have completed: with a CQE, silently, with an error. */
  begun: number;
  signalled: number;
  silent: number;
  failed: number;
  /** Oldest send requests under way, at most 16. */
  underWay: readonly RequestEvidence[];
  /** Requests that were under way when the QP was destroyed. */
  abandoned: number;
  /** Why the send queue is stalled, by its name in hw/hca/send-queue; 0 if it is not. */
  parkedFor: string;
  /** Timeouts, timeouts while the own port was down, and the requester's waiting time after RNR NAKs. */
  timeouts: number;
  timeoutsWhileDown: number;
  /** Times without progress after which the timeouts expired: the shortest, the longest, the sum. */
  readonly timeoutWaits: { leastPs: number; mostPs: number; totalPs: number };
  rnrNaksReceived: number;
  rnrWaitPs: number;
  lastRnrPs: InstantPs;
  sequenceNaksReceived: number;
  lateAnswers: number;
  missingResponses: number;
  /** Counts as responder: requests without a receive, with a missing page, out of sequence, repeated. */
  noReceive: number;
  pageRnrNaks: number;
  outOfSequence: number;
  duplicates: number;
  /** RoCE packets of each version that arrived for this QP. */
  packetsV1: number;
  packetsV2: number;
  /** Served requests by kind, and successfully completed receives. */
  served: { send: number; write: number; writeImmediate: number; read: number; atomic: number };
  received: number;
  lastReceivedPs: InstantPs;
  /** Receives that the device knows to be posted, and those that it has fetched; with a shared queue, those of that queue. */
  receivesPosted: number;
  receivesTaken: number;
}

/** A send request that the device has begun and not completed. */
export interface RequestEvidence {
  readonly wqeCounter: number;
  readonly operation: string;
  readonly firstPsn: number;
  readonly psnCount: number;
  readonly isSignalled: boolean;
  readonly bytes: number;
}

export interface CqEvidence {
  readonly cqn: number;
  readonly createdPs: InstantPs;
  destroyedPs?: InstantPs;
  entries: number;
  status: 'ok' | 'overrun' | 'failed';
  failedPs?: InstantPs;
  /** CQEs written or refused. */
  written: number;
  /** Producer counter minus consumer counter, as last seen by the device. */
  producer: number;
  consumer: number;
  /** Arm requests; time and kind of the last one. */
  arms: number;
  lastArmPs: InstantPs;
  armed: 'not' | 'next' | 'solicited';
  events: number;
  lastEventPs: InstantPs;
  /** CQEs written since the last event. */
  sinceEvent: number;
  lastWrittenPs: InstantPs;
}

/** A memory region or window of the device's table. */
export interface RegionEvidence {
  readonly key: number;
  readonly pd: number;
  readonly start: number;
  readonly lengthBytes: number;
  /** Bits in the order of `rightNames`. */
  readonly rights: number;
  readonly isOnDemand: boolean;
  readonly isRegion: boolean;
  readonly createdPs: InstantPs;
  destroyedPs?: InstantPs;
}

/** Packets that a device dropped for one reason, for one QP number. */
export interface DropEvidence {
  /** A name from hw/hca/statistics/violation-counters.ts or of frame drops, or `noReceive` of an unreliable service. */
  readonly reason: string;
  readonly destinationQpn: number;
  readonly sourceQpn: number;
  readonly opcode: number;
  readonly psn: number;
  readonly bytes: number;
  /** The header field that failed, and the value that it was compared with. */
  readonly found: string;
  readonly heldTo: string;
  readonly firstPs: InstantPs;
  lastPs: InstantPs;
  count: number;
}

/** A translation that ended an access; `answer` is explained in machine/timeline/kinds.ts. */
export interface AccessEvidence {
  readonly qpn: number;
  /** Name of the accessing block. */
  readonly user: string;
  readonly key: number;
  readonly answer: number;
  readonly address: number;
  readonly bytes: number;
  readonly found: number;
  readonly heldTo: number;
  readonly heldToEnd: number;
  readonly atPs: InstantPs;
}

/** A request that a responder refused permanently. */
export interface RefusalEvidence {
  readonly qpn: number;
  readonly check: string;
  readonly opcode: number;
  readonly psn: number;
  readonly found: number;
  readonly heldTo: number;
  readonly requesterQpn: number;
  readonly atPs: InstantPs;
}

export type StreamEndName = 'closed' | 'reset' | 'timedOut';

/** An error that ended a stream of iWARP. */
export interface StreamErrorEvidence {
  /** Layer, type and code of its Terminate, as 0xLTCC (RFC 5040, 4.8). */
  readonly error: number;
  readonly atPs: InstantPs;
  /** RDMAP message of the segment in error, if one was quoted. */
  readonly message?: string;
}

/** A TCP connection of an iWARP card, and the stream of the QP that it became. */
export interface StreamEvidence {
  readonly connection: number;
  /** QP whose stream it is or was; 0 before. */
  qpn: number;
  /** Whether the card has the messages of RFC 7306: atomics and immediate data. */
  readonly hasExtensions: boolean;
  /** Whether this side opened it; a listener accepts the others. */
  readonly isActive: boolean;
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly openedPs: InstantPs;
  establishedPs?: InstantPs;
  /** ORD: READs that this side may have outstanding; undefined before the QP has the stream. */
  outboundReads?: number;
  /** Error that this side found, and that of the peer's Terminate; the first of them. */
  ownError?: StreamErrorEvidence;
  peerError?: StreamErrorEvidence;
  /** Arrival of the peer's FIN. */
  peerClosedPs?: InstantPs;
  end?: StreamEndName;
  endedPs?: InstantPs;
  /** Whether this side sent the RST that ended it. */
  hasAborted: boolean;
  retransmissions: number;
  /** Expiries of the retransmission timer, and those since the last acknowledgement. */
  timeouts: number;
  tries: number;
}

/** A CQE with an error. */
export interface ErrorEvidence {
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly syndrome: number;
  readonly isSend: boolean;
  readonly cqn: number;
  readonly atPs: InstantPs;
  /** Vendor syndrome of the CQE. */
  readonly vendor: number;
}

/** A command that the device rejected. */
export interface CommandEvidence {
  readonly command: string;
  readonly status: string;
  readonly inputModifier: number;
  readonly atPs: InstantPs;
}

export interface PortEvidence {
  readonly isActive: boolean;
  readonly lid: number;
  readonly gids: readonly string[];
  readonly macs: readonly string[];
  readonly pkeys: readonly number[];
  readonly mtuBytes: number;
  /** Times at which the port left the active state, at most the first 16. */
  readonly downPs: readonly InstantPs[];
  readonly upPs: readonly InstantPs[];
}

export interface DeviceEvidence {
  readonly node: number;
  readonly atPs: InstantPs;
  readonly isEthernet: boolean;
  readonly lossRecovery: 'go-back-n' | 'selective-repeat';
  readonly port: PortEvidence;
  readonly qps: readonly QpEvidence[];
  readonly cqs: readonly CqEvidence[];
  readonly regions: readonly RegionEvidence[];
  readonly drops: readonly DropEvidence[];
  readonly accesses: readonly AccessEvidence[];
  readonly refusals: readonly RefusalEvidence[];
  /** iWARP only. */
  readonly streams: readonly StreamEvidence[];
  readonly errors: readonly ErrorEvidence[];
  readonly commands: readonly CommandEvidence[];
  /** Page requests, and the time spent waiting for them. */
  readonly pageRequests: number;
  readonly pageRequestsRefused: number;
  readonly pageWaitPs: number;
  /** Packets with a wrong CRC, and packets not sent because the link was down. */
  readonly corruptedPackets: number;
  readonly unsentPackets: number;
  /** Records beyond the limits. */
  readonly omitted: number;
}

/** A buffer of a work request. */
export interface BufferEvidence {
  readonly address: number;
  readonly bytes: number;
}

/** A work request as its program posted it. */
export interface PostEvidence {
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly operation: string;
  readonly isSignalled: boolean;
  readonly bytes: number;
  /** Buffers of the request, in order. */
  readonly buffers: readonly BufferEvidence[];
  readonly atPs: InstantPs;
  readonly line?: string;
  /** Address of a datagram. */
  readonly remoteQpn?: number;
  readonly remoteQkey?: number;
  readonly remoteLid?: number;
  readonly remoteGid?: string;
  /** Memory of the peer that a WRITE or READ names. */
  readonly remoteKey?: number;
  readonly remoteAddress?: number;
  /** Whether it waits for earlier READs and atomics. */
  readonly isFenced: boolean;
  /** Whether the library copied its data at the post. */
  readonly isInline: boolean;
  /** The new key of a memory window bind. */
  readonly bindKey?: number;
  isCompleted: boolean;
  /** When its program polled the completion. */
  completedPs?: InstantPs;
}

/** A library call that returned an error number. */
export interface RefusedCall {
  readonly call: string;
  readonly errno: string;
  readonly qpn: number;
  readonly state: string;
  /**
   * State of the queue at that instant: posted and uncompleted requests, the unsignalled ones among them, its capacity,
   * and completions that wait in the CQ.
   */
  readonly outstanding: number;
  readonly unsignalled: number;
  readonly capacity: number;
  readonly unpolled: number;
  /** The request's values, and the queue's limits. */
  readonly operation: string;
  readonly segments: number;
  readonly segmentsMax: number;
  /** -1: its data are not inline. */
  readonly inlineBytes: number;
  readonly inlineMax: number;
  readonly hasSharedQueue: boolean;
  readonly atPs: InstantPs;
  readonly line?: string;
  count: number;
}

/** Actions of a program on a CQ. */
export interface CqUse {
  readonly cqn: number;
  polls: number;
  taken: number;
  /** -1: never. */
  firstPollPs: InstantPs;
  lastPollPs: InstantPs;
  pollLine?: string;
  armLine?: string;
  createLine?: string;
  arms: number;
  lastArmPs: InstantPs;
  isSolicitedOnly: boolean;
  events: number;
  hasChannel: boolean;
  channel: number;
}

/** Program lines that created or changed an object. */
export interface ObjectLines {
  readonly object: 'QP' | 'MR' | 'AH';
  /** QP number or key. */
  readonly number: number;
  created?: string;
  destroyed?: string;
  toInit?: string;
  toRtr?: string;
  toRts?: string;
  toError?: string;
  toReset?: string;
  /** Whether the program destroyed it by a call, even if the line of that call is unknown. */
  isDestroyed: boolean;
  isReset: boolean;
}

/** A program's wait at the end of the run. */
export interface WaitEvidence {
  readonly program: string;
  readonly text: string;
  /** The polled object, or the object whose event the program waits for. */
  readonly kind: 'poll' | 'event' | 'async' | 'connection' | 'exchange' | 'memory' | 'sleep' | 'other';
  readonly cqns: readonly number[];
  readonly channel: number;
  readonly label: string;
  readonly line?: string;
}

/** A program's access to a buffer that the device owns, if such accesses are watched. */
export interface TouchedBuffer {
  readonly program: string;
  readonly access: string;
  readonly bytes: number;
  readonly address: number;
  readonly deviceAccess: 'reads' | 'writes';
  readonly queue: string;
  readonly wrId: number;
  readonly atPs: InstantPs;
  readonly line?: string;
}

/** A read of the first 40 bytes of a UD receive, which belong to the GRH, if accesses are watched. */
export interface HeadRead {
  readonly qpn: number;
  readonly address: number;
  readonly bytes: number;
  readonly line?: string;
}

/** Actions of a host's programs on the limits of shared receive queues. */
export interface LimitEvidence {
  readonly arms: number;
  readonly events: number;
  readonly armLine?: string;
}

/** A call of rdma_cm, by its C name. */
export interface ConnectionCall {
  readonly call: string;
  /** Its address and port. */
  readonly detail: string;
  readonly atPs: InstantPs;
  readonly line?: string;
}

/** An event of rdma_cm that a program received, by its C name. */
export interface ConnectionEvent {
  readonly event: string;
  /** 0, a negative errno, or the reason of a REJECTED. */
  readonly status: number;
  readonly atPs: InstantPs;
}

export interface HostEvidence {
  readonly node: number;
  readonly connectionCalls: readonly ConnectionCall[];
  readonly connectionEvents: readonly ConnectionEvent[];
  readonly limits: LimitEvidence;
  readonly touched: readonly TouchedBuffer[];
  readonly headReads: readonly HeadRead[];
  readonly posts: readonly PostEvidence[];
  /** Posted receives by QP number; for shared queues by handle. */
  readonly receives: readonly { readonly qpn: number; readonly count: number; readonly line?: string }[];
  readonly refusedCalls: readonly RefusedCall[];
  readonly cqs: readonly CqUse[];
  readonly lines: readonly ObjectLines[];
  readonly waits: readonly WaitEvidence[];
  readonly programs: readonly { readonly name: string; readonly hasEnded: boolean }[];
}

/** All evidence of a run, by node. */
export interface Evidence extends PartEvidence {
  /** Hosts, and the cables between their adapters. */
  readonly topology: Topology;
}

/** Evidence of one part of a machine. */
export interface PartEvidence {
  readonly devices: readonly DeviceEvidence[];
  /** Simulated hosts only. */
  readonly hosts: readonly HostEvidence[];
}
