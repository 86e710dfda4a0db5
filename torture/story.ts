/**
 * A story of trouble: hardware, programs, attributes and faults, as plain data. One seed draws one story; a story can be
 * written to a file, played again, and made smaller piece by piece, because every piece refers to others by number only
 * and a piece whose object is gone does nothing.
 *
 *     programs ── areas, CQs, SRQs, QPs ── steps (post, receive, drain, deregister, …)
 *        └── links: which QP of which program is connected to which
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { Partition } from '../machine/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import { IBV_ACCESS_ON_DEMAND } from '../userlib/index.ts';
import type { ScenePlan } from './scenes/index.ts';

/** Degree to which events depart from calm traffic; the judges demand more of a calmer story. */
export const climates = ['calm', 'flawed', 'lossy', 'broken'] as const;
export type Climate = (typeof climates)[number];

export interface Story {
  readonly seed: number;
  readonly climate: Climate;
  /** Changed parameters, by path. */
  readonly set: ParameterValues;
  readonly faults: readonly FaultEntry[];
  /** Played without shortcuts, each time (MachineOptions.shortcuts). */
  readonly isPlain?: true;
  /** Manner of a second play, to be compared byte by byte; undefined: one play suffices. */
  readonly again: Again | undefined;
  /** The part of its time after which it is stopped when it is played once more, in the middle of all work: the ledgers balance there too. */
  readonly stopsAfter?: number;
  readonly programs: readonly ProgramPlan[];
  readonly links: readonly Link[];
  /** Objects that are renewed each time that all programs meet in mid-story, by turn from 1. */
  readonly turns?: readonly Turn[];
  /** A scene plays in place of programs of players: there are none then. */
  readonly scene?: ScenePlan;
}

/**
 * A point at which everything that was sent has ended. Each program destroys and creates the listed objects, all exchange the new numbers and
 * keys, and continue.
 */
export interface Turn {
  readonly programs: readonly TurnOfProgram[];
}

interface TurnOfProgram {
  /** CQs to destroy and create, if no QP of an earlier turn uses them any more. */
  readonly cqs: readonly number[];
  /** Areas to deregister and register. */
  readonly areas: readonly number[];
  /** Whether those areas get another address, and other frames. */
  readonly isMoved: boolean;
}

/** Another way to run the same machine: nothing simulated may differ. */
export interface Again {
  readonly partition: Partition;
  readonly shuffleSeed: number | undefined;
  /**
   * Without observers: no linter, no log of packets, no watch of accesses. Work that otherwise waits is then done ahead
   * of its turn.
   */
  readonly isUnwatched?: true;
  /** With timeline, log of registers, capture of the cable, and costs, for which players mark their posts. */
  readonly isObserved?: true;
  /**
   * Without shortcuts: nothing is done ahead of its turn, placed early or handed on without a copy
   * (MachineOptions.shortcuts).
   */
  readonly isPlain?: true;
  /** Length of the epochs in which all parts count time; left out: the usual one (sim/epoch.ts). */
  readonly epochPs?: number;
}

/**
 * Two ends of a connection, or two datagram QPs with each other's addresses; both may be of one program (loopback).
 */
export interface Link {
  readonly ends: readonly [LinkEnd, LinkEnd];
  /** On Ethernet: index, in both ports' tables, of the GID by which an end finds the other; omitted on InfiniBand. */
  readonly gidIndex?: number;
}

export interface LinkEnd {
  readonly program: number;
  readonly qp: number;
}

export interface ProgramPlan {
  readonly node: number;
  /** QP numbers that are passed over between its first QP and its second. */
  readonly qpnGap: number;
  readonly areas: readonly AreaPlan[];
  readonly cqs: readonly CqPlan[];
  readonly srqs: readonly SrqPlan[];
  readonly qps: readonly QpPlan[];
  /** Memory windows, allocated in the beginning. */
  readonly windows?: readonly WindowPlan[];
  /** Receives that are posted before any program sends. */
  readonly early: readonly Step[];
  readonly steps: readonly Step[];
}

/**
 * `source`: the program writes it, the device reads it. `target`: peers reach it. `sink`: it receives data for the
 * program.
 */
export type AreaKind = 'source' | 'target' | 'sink';

export interface AreaPlan {
  readonly kind: AreaKind;
  /** Length of the registered region. */
  readonly lengthBytes: number;
  /** Offset of the region from the beginning of a page. */
  readonly shiftBytes: number;
  /** IBV_ACCESS_… */
  readonly access: number;
  /** Registered in the second protection domain. */
  readonly isForeign: boolean;
  /** Aligned 8-byte words at the beginning that only atomics touch. */
  readonly atomicWords: number;
}

export interface WindowPlan {
  /** True for type 2, which is bound to one QP and free before; false for type 1. */
  readonly isType2: boolean;
}

interface CqPlan {
  readonly hasChannel: boolean;
  readonly vector: number;
}

interface SrqPlan {
  readonly maxWr: number;
  readonly maxSge: number;
}

export type Transport = 'RC' | 'UC' | 'UD';

export interface QpPlan {
  readonly transport: Transport;
  readonly sendCq: number;
  readonly recvCq: number;
  /** Place among the program's SRQs; -1: a receive queue of its own. */
  readonly srq: number;
  readonly maxSendWr: number;
  readonly maxRecvWr: number;
  readonly maxSge: number;
  readonly maxInline: number;
  readonly isSignalAll: boolean;
  /** IBV_MTU_… */
  readonly mtu: number;
  readonly timeout: number;
  readonly retryCount: number;
  readonly rnrRetry: number;
  readonly rnrTimer: number;
  readonly readsOut: number;
  readonly readsIn: number;
  /** First PSN of the packets that this end sends. */
  readonly psn: number;
  readonly access: number;
  /** Undefined for a QP that exists from the beginning. */
  readonly renewal?: Renewal;
}

/** A QP that takes the place of another of the program at a turn: in a new object, or in the same one after RESET. */
export interface Renewal {
  readonly turn: number;
  readonly of: number;
  readonly how: 'create' | 'reset';
}

export interface SgePlan {
  readonly area: number;
  readonly offset: number;
  readonly length: number;
}

/** Errors that a request has on purpose, which decide how it has to end (verbs-model.ts). */
export const flaws = [
  'none',
  'localKey',
  'localBounds',
  'localRight',
  'remoteKey',
  'remoteBounds',
  'remoteRight',
  'qpRight',
  'foreignKey',
  'misaligned',
  'tooLong',
  /** The keys that the area had before it was registered again. */
  'oldLocalKey',
  'oldRemoteKey',
  /**
   * Flaws of a request by a window's key: another variant of it, a range beyond the window, a right that it does not
   * grant.
   */
  'windowKey',
  'windowBounds',
  'windowRight',
  /** Flaws of a bind: beyond the region, or over a region that allows none. */
  'bindBounds',
  'bindRight',
  /** An invalidation, by the owner or by its peer, of a variant of the key that is not the window's. */
  'invalidKey',
  'remoteInvalidKey',
] as const;
export type Flaw = (typeof flaws)[number];

/** The range of an area of the program to which a bind binds a window. */
export interface BindPlan {
  /** Place among the program's windows. */
  readonly window: number;
  readonly area: number;
  readonly offset: number;
  /** 0 takes the binding of a window of type 1 back. */
  readonly length: number;
  /** IBV_ACCESS_REMOTE_… */
  readonly access: number;
  readonly isZeroBased: boolean;
}

export interface SendPlan {
  /** Number of the request in the whole story: its work request id. */
  readonly id: number;
  /** IBV_WR_… */
  readonly opcode: number;
  readonly sges: readonly SgePlan[];
  /** Area of the peer's program. */
  readonly remote?: { readonly area: number; readonly offset: number };
  readonly isSignalled: boolean;
  readonly isFenced: boolean;
  readonly isSolicited: boolean;
  readonly isInline: boolean;
  readonly imm?: number;
  readonly bind?: BindPlan;
  /** Id of the bind whose key it uses to reach the peer's memory, or invalidates. */
  readonly through?: number;
  /** 64-bit operands in hexadecimal: JSON has no such numbers. */
  readonly compareAdd?: string;
  readonly swap?: string;
  readonly flaw: Flaw;
}

export interface ReceivePlan {
  readonly id: number;
  readonly sges: readonly SgePlan[];
  readonly flaw: Flaw;
}

/** Messages about a binding from one program to the other. */
export type Told = 'bound' | 'used' | 'gone';

export type Step =
  | { readonly do: 'post'; readonly qp: number; readonly wrs: readonly SendPlan[] }
  | { readonly do: 'receive'; readonly qp: number; readonly wrs: readonly ReceivePlan[] }
  | { readonly do: 'receiveShared'; readonly srq: number; readonly wrs: readonly ReceivePlan[] }
  /** Polls until at most this many sends of the program are outstanding. */
  | { readonly do: 'drain'; readonly outstanding: number }
  | { readonly do: 'sleep'; readonly ns: number }
  /** Waits until no request of the program reads the area, then fills it with other bytes. */
  | { readonly do: 'refill'; readonly area: number }
  /** Waits until no request of the program reads the area, deregisters it, fills it with other bytes, and registers it. */
  | { readonly do: 'reregister'; readonly area: number }
  /** Registers a mapping that nothing uses, and deregisters the oldest of such when there are more than `kept`. */
  | { readonly do: 'registerScratch'; readonly pages: number; readonly kept: number }
  /** Deregisters the area, whatever is under way, and writes other bytes over it at once. */
  | { readonly do: 'deregister'; readonly area: number; readonly isRenewed?: boolean }
  /** The program reads a part of an area that peers write to. */
  | { readonly do: 'peek'; readonly area: number; readonly offset: number; readonly length: number }
  | { readonly do: 'resizeCq'; readonly cq: number; readonly entries: number }
  | { readonly do: 'moderate'; readonly cq: number; readonly count: number; readonly periodUs: number }
  /** Arms the CQ and waits for its event, or 50 µs. */
  | { readonly do: 'awaitEvent'; readonly cq: number; readonly solicitedOnly: boolean }
  | { readonly do: 'modify'; readonly qp: number; readonly to: 'SQD' | 'RTS' | 'ERR' }
  /** Sleeps until an event of the CQ arrives, repeatedly, until the sends that complete there have completed. */
  | { readonly do: 'awaitAll'; readonly cq: number }
  /** SQD with notification, the event that all is drained, RTS. */
  | { readonly do: 'quiesce'; readonly qp: number }
  /** Arms the limit of an SRQ. */
  | { readonly do: 'limitShared'; readonly srq: number; readonly limit: number }
  | { readonly do: 'destroy'; readonly qp: number }
  /** Maps, writes and unmaps a scratch mapping next to the areas; makes memory management move. */
  | { readonly do: 'churn'; readonly pages: number }
  /**
   * madvise(MADV_DONTNEED) over whole pages of an area that is registered on demand, from the `page`-th on: they read as
   * zeros afterwards. A source is refilled at once, and given back only while no request of the program reads it.
   */
  | { readonly do: 'giveBack'; readonly area: number; readonly page: number; readonly pages: number }
  /** Tells the peer of a binding its key (null if the bind failed), that its requests have ended, or that the binding was removed. */
  | { readonly do: 'tell'; readonly what: Told; readonly bind: number }
  /** Waits until a program has sent that message; does not wait if none does. */
  | { readonly do: 'await'; readonly what: Told; readonly bind: number }
  | { readonly do: 'deallocateWindow'; readonly window: number; readonly bind: number }
  /** Fills an area that peers write to with other bytes, except the words of atomics. */
  | { readonly do: 'refillTarget'; readonly area: number }
  /**
   * Waits for all programs, and renews the objects that the story names; posting on a QP of that turn does so as well.
   */
  | { readonly do: 'turn'; readonly turn: number }
  /** Ends the program here, with everything open. */
  | { readonly do: 'exit' };

/** Bytes with which an area is filled the n-th time: another value at every place, area and time. */
export function patternInto(target: Uint8Array, program: number, area: number, fill: number, from = 0): void {
  const key = Math.imul(program * 64 + area + 1, 0x9e3779b1) ^ Math.imul(fill + 1, 0x85ebca6b);
  for (let index = 0; index < target.length; index++) {
    let word = Math.imul((from + index) ^ key, 0xc2b2ae35);
    word ^= word >>> 15;
    word = Math.imul(word, 0x27d4eb2f);
    target[index] = (word ^ (word >>> 13)) & 0xff;
  }
}

/** Every send request of a story, with the place of its post. */
export function* sendsOf(story: Story): Generator<{ program: number; qp: number; plan: SendPlan }> {
  for (const [program, { steps }] of story.programs.entries())
    for (const step of steps)
      if (step.do === 'post') for (const plan of step.wrs) yield { program, qp: step.qp, plan };
}

export const isOnDemandArea = ({ access }: AreaPlan): boolean => (access & IBV_ACCESS_ON_DEMAND) !== 0;

/** Bytes of an MTU code, IBV_MTU_…. */
export const mtuBytes = (code: number): number => 128 << code;

export const lengthOf = (sges: readonly SgePlan[]): number =>
  sges.reduce((sum, { length }) => sum + length, 0);

/** The turn from which a QP exists. */
export const turnOfQp = ({ renewal }: QpPlan): number => renewal?.turn ?? 0;

/** Whether no other QP has taken this one's place at a turn. */
export const isCurrent = ({ qps }: ProgramPlan, qp: number, turn: number): boolean =>
  turnOfQp(qps[qp]!) <= turn &&
  !qps.some(({ renewal }) => renewal !== undefined && renewal.of === qp && renewal.turn <= turn);

/** The other end of a QP's link, and the link's number; undefined if it has none. */
export function peerOfQp(
  story: Pick<Story, 'links'>,
  program: number,
  qp: number,
): (LinkEnd & { readonly link: number }) | undefined {
  for (const [link, { ends }] of story.links.entries())
    for (const [side, end] of ends.entries())
      if (end.program === program && end.qp === qp) return { ...ends[1 - side]!, link };
  return undefined;
}
