/**
 * Evidence of why requests fail or never end, as plain data: what a device knows of its objects and of what it refused, and what the
 * verbs library of a simulated host knows of its callers. A stock guest has the device's part alone.
 *
 * Bounded: objects that were destroyed, refusals and drops are kept up to the limits of `limits`; what does not fit is counted in `omitted`.
 */

import type { Topology } from '../topology/index.ts';

export const limits = { objects: 4096, records: 1024, postsPerQueue: 256, calls: 256 } as const;

/** An instant in picoseconds since power-on. */
export type InstantPs = number;

export type Service = 'RC' | 'UC' | 'UD' | 'XRC' | 'MLX' | 'other';
export type QpStateName = 'RESET' | 'INIT' | 'RTR' | 'RTS' | 'SQD' | 'SQE' | 'ERR' | 'unknown';

/** A state that a QP entered: by a command of its software, or by the device after an error. */
export interface StateChange {
  readonly state: QpStateName;
  readonly by: 'software' | 'device';
  readonly atPs: InstantPs;
}

/** Where the packets of a connection go, from its context. */
export interface PathEvidence {
  readonly lid: number;
  /** Hexadecimal groups of the GID, where packets have a GRH. */
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
  /** The newest last; at most the last 16. */
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
  /** Local ACK timeout; 0 is never. */
  timeoutCode: number;
  timeoutPs: number;
  rnrTimerCode: number;
  /** Rights of the peer: bit 0 READ, 1 WRITE, 2 atomics. */
  rights: number;
  requesterReadsMax: number;
  responderReadsMax: number;
  /** Places of the send queue, and bytes of each. */
  sendSlots: number;
  sendSlotBytes: number;
  /** Send requests that the device has begun, and that have completed: with a CQE, silently, with an error. */
  begun: number;
  signalled: number;
  silent: number;
  failed: number;
  /** Oldest send requests under way, at most 16. */
  underWay: readonly RequestEvidence[];
  /** Of these, those under way when the QP was destroyed. */
  abandoned: number;
  /** Why the send queue stands still, as hw/hca/send-queue names it; 0 it does not. */
  parkedFor: string;
  /** Time-outs, those while the own port was down, and what RNR NAKs made the requester wait. */
  timeouts: number;
  timeoutsWhileDown: number;
  rnrNaksReceived: number;
  rnrWaitPs: number;
  lastRnrPs: InstantPs;
  sequenceNaksReceived: number;
  lateAnswers: number;
  missingResponses: number;
  /** As responder: requests without a receive, for want of a page, out of sequence, repeated. */
  noReceive: number;
  pageRnrNaks: number;
  outOfSequence: number;
  duplicates: number;
  /** Packets of RoCE of each version that arrived for it. */
  packetsV1: number;
  packetsV2: number;
  /** Requests served, by kind, and receives completed well. */
  served: { send: number; write: number; writeImmediate: number; read: number; atomic: number };
  received: number;
  lastReceivedPs: InstantPs;
  /** Receives that the device knows to be posted, and that it has taken; of a shared queue those of the queue. */
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
  /** Producer counter less the consumer counter, as last seen by the device. */
  producer: number;
  consumer: number;
  /** Arm requests, when the last one arrived, and what it asked for. */
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
  /** Bits as of `rightNames`. */
  readonly rights: number;
  readonly isOnDemand: boolean;
  readonly isRegion: boolean;
  readonly createdPs: InstantPs;
  destroyedPs?: InstantPs;
}

/** Packets that a device dropped for one reason, to one QP number. */
export interface DropEvidence {
  /** A name of hw/hca/statistics/violation-counters.ts, of frame drops, or `noReceive` of an unreliable service. */
  readonly reason: string;
  readonly destinationQpn: number;
  readonly sourceQpn: number;
  readonly opcode: number;
  readonly psn: number;
  readonly bytes: number;
  /** The header field that failed, and what it was compared with. */
  readonly found: string;
  readonly heldTo: string;
  readonly firstPs: InstantPs;
  lastPs: InstantPs;
  count: number;
}

/** A translation that ended an access: `answer` of machine/timeline/kinds.ts. */
export interface AccessEvidence {
  readonly qpn: number;
  /** Name of the block that accessed. */
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

/** A request that a responder refused for good. */
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

/** A CQE with an error. */
export interface ErrorEvidence {
  readonly qpn: number;
  readonly wqeCounter: number;
  readonly syndrome: number;
  readonly isSend: boolean;
  readonly cqn: number;
  readonly atPs: InstantPs;
  /** The vendor syndrome of the CQE. */
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
  /** Instants at which the port ceased to be active, at most the first 16. */
  readonly downPs: readonly InstantPs[];
  readonly upPs: readonly InstantPs[];
}

export interface DeviceEvidence {
  readonly node: number;
  readonly atPs: InstantPs;
  readonly isEthernet: boolean;
  readonly port: PortEvidence;
  readonly qps: readonly QpEvidence[];
  readonly cqs: readonly CqEvidence[];
  readonly regions: readonly RegionEvidence[];
  readonly drops: readonly DropEvidence[];
  readonly accesses: readonly AccessEvidence[];
  readonly refusals: readonly RefusalEvidence[];
  readonly errors: readonly ErrorEvidence[];
  readonly commands: readonly CommandEvidence[];
  /** Page requests, and what waiting for them took. */
  readonly pageRequests: number;
  readonly pageRequestsRefused: number;
  readonly pageWaitPs: number;
  /** Packets with a wrong CRC, and packets that were not sent since the link was down. */
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
  /** Buffers of the request, in their order. */
  readonly buffers: readonly BufferEvidence[];
  readonly atPs: InstantPs;
  readonly line?: string;
  /** Of a datagram. */
  readonly remoteQpn?: number;
  readonly remoteQkey?: number;
  readonly remoteLid?: number;
  readonly remoteGid?: string;
  /** It waits for READs and atomics before it. */
  readonly isFenced: boolean;
  /** The library copied its data when it was posted. */
  readonly isInline: boolean;
  /** For the bind of a window: the new key. */
  readonly bindKey?: number;
  isCompleted: boolean;
  /** When its program learned of it. */
  completedPs?: InstantPs;
}

/** A call of the library that returned an error number. */
export interface RefusedCall {
  readonly call: string;
  readonly errno: string;
  readonly qpn: number;
  readonly state: string;
  /** Of the queue at that instant: posted and not completed, of these unsignalled, room for, and completions that wait in the CQ. */
  readonly outstanding: number;
  readonly unsignalled: number;
  readonly capacity: number;
  readonly unpolled: number;
  /** The request, and what the queue takes. */
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

/** A program's actions on a CQ. */
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

/** Lines of a program that made or changed an object. */
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
  /** True if the program destroyed it by a call, also if the call's line is unknown. */
  isDestroyed: boolean;
  isReset: boolean;
}

/** A program's wait at the end of the run. */
export interface WaitEvidence {
  readonly program: string;
  readonly text: string;
  /** The object that it polls, or whose event it waits for. */
  readonly kind: 'poll' | 'event' | 'async' | 'connection' | 'exchange' | 'memory' | 'sleep' | 'other';
  readonly cqns: readonly number[];
  readonly channel: number;
  readonly label: string;
  readonly line?: string;
}

/** An access of a program to a buffer that is the device's, where that is watched. */
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

/** A read of the first 40 bytes of a receive of a UD QP, which are the GRH's, where accesses are watched. */
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

/** A call of rdma_cm, by its name in C. */
export interface ConnectionCall {
  readonly call: string;
  /** Address and port that it names. */
  readonly detail: string;
  readonly atPs: InstantPs;
  readonly line?: string;
}

/** An event of rdma_cm that a program took, by its name in C. */
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
  /** Receives posted by QP number, and to shared queues by handle. */
  readonly receives: readonly { readonly qpn: number; readonly count: number; readonly line?: string }[];
  readonly refusedCalls: readonly RefusedCall[];
  readonly cqs: readonly CqUse[];
  readonly lines: readonly ObjectLines[];
  readonly waits: readonly WaitEvidence[];
  readonly programs: readonly { readonly name: string; readonly hasEnded: boolean }[];
}

/** Everything of a run, by node. */
export interface Evidence extends PartEvidence {
  /** Hosts, and the cables between their adapters. */
  readonly topology: Topology;
}

/** The share of one part of a machine. */
export interface PartEvidence {
  readonly devices: readonly DeviceEvidence[];
  /** Simulated hosts only. */
  readonly hosts: readonly HostEvidence[];
}
