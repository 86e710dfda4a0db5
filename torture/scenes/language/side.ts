/**
 * Set-up of most scenes: a program at each host, each with an area that the peer may reach, one CQ, and reliable connections between them with
 * attributes of the scene's choice.
 */
import {
  allAccess,
  announcedOf,
  type PeerAddress,
  type PortAddress,
  peerFrom,
  type RcAttributes,
  type RcBuffer,
  toInit,
  toRtr,
  toRts,
} from '../../../experiments/workloads/index.ts';
import * as ibv from '../../../userlib/index.ts';
import type { Ended, Taken } from './completions.ts';
import type { Device } from './device.ts';
import { ADD, SEND } from './opcodes.ts';
import { codeOf, type Patience, type Stage, topic } from './stage.ts';

export interface SideOptions {
  /** Length of the area that the peer may reach. */
  readonly areaBytes: number;
  readonly access?: number;
  readonly qpCount?: number;
  readonly cqEntries?: number;
  /** The CQ raises its events on a channel of its own. */
  readonly hasChannel?: true;
  readonly cap?: Partial<ibv.QpCap>;
  /** Messages of up to this many bytes arrive in their receive WQE. */
  readonly inlRecvSz?: number;
  readonly attributes?: Partial<RcAttributes>;
  /** Path MTU: IBV_MTU_256 is 1, IBV_MTU_4096 is 5. */
  readonly mtuCode?: number;
  /** First PSN of this side's QPs; drawn when left out. */
  readonly firstPsn?: number;
  /** Runs while the QPs are in INIT: posts receives before anything can arrive. */
  readonly beforeReady?: (side: Side) => void;
  /** The device may die as soon as its last QP is ready to send: EIO of that command is no failure. */
  readonly mayDieWhenReady?: true;
  /** Distinguishes several pairs of programs at the same hosts. */
  readonly label?: string;
}

/** Memory of the peer. */
export interface Reach {
  readonly address: number;
  readonly rkey: number;
}

interface News extends PortAddress, Reach {
  readonly qpNums: readonly number[];
  readonly psn: number;
}

/** Bytes of the own area and of the peer's, at the same offset unless `remoteOffset` says otherwise. */
export interface Span {
  readonly offset?: number;
  readonly lengthBytes: number;
  readonly remoteOffset?: number;
}

/** A span, and the QP that is posted to, by number: 0 when left out. */
export interface Posting extends Span {
  readonly qp?: number;
  /** Flags in addition to IBV_SEND_SIGNALED. */
  readonly flags?: number;
  /** Addend of an atomic; 1 when left out. */
  readonly addend?: bigint;
}

/** Default attributes of a connection. */
export const usual: RcAttributes = {
  pathMtu: 5 as ibv.PortAttr['activeMtu'],
  readAtomicMax: 16,
  timeoutCode: 18,
  retryCount: 7,
  rnrRetryCount: 7,
  rnrTimerCode: 12,
};

export const mtuOf = (mtuCode: number): number => 128 << mtuCode;

/** ACK time-out by its code: 4.096 µs × 2^code (IBTA 9.7.6.1.3). */
export const timeOutPsOf = (timeoutCode: number): number => 4_096_000 * 2 ** timeoutCode;

/** One end of connections. */
export class Side {
  readonly stage: Stage<unknown>;
  readonly device: Device;
  readonly cq: ibv.IbvCq;
  readonly qps: readonly ibv.IbvQp[];
  readonly area: RcBuffer;
  readonly peer: Reach;
  /** The peer's port. */
  readonly path: PeerAddress;

  constructor(parts: Pick<Side, 'stage' | 'device' | 'cq' | 'qps' | 'area' | 'peer' | 'path'>) {
    this.stage = parts.stage;
    this.device = parts.device;
    this.cq = parts.cq;
    this.qps = parts.qps;
    this.area = parts.area;
    this.peer = parts.peer;
    this.path = parts.path;
  }

  get qp(): ibv.IbvQp {
    return this.qps[0]!;
  }

  /** Returns the side with another area, here or at the peer. */
  with(parts: Partial<Pick<Side, 'area' | 'peer'>>): Side {
    const { stage, device, cq, qps, area, peer, path } = this;
    return new Side({ stage, device, cq, qps, area, peer, path, ...parts });
  }

  sge({ offset = 0, lengthBytes }: Span): ibv.IbvSge {
    return { addr: this.area.address + offset, length: lengthBytes, lkey: this.area.region.lkey };
  }

  /** A request over one buffer of the own area. */
  request(id: number, opcode: number, posting: Posting): ibv.IbvSendWr {
    const { offset = 0, remoteOffset = offset, flags = 0, addend = 1n } = posting;
    const at = { remoteAddr: this.peer.address + remoteOffset, rkey: this.peer.rkey };
    const wr = opcode === ADD ? { atomic: { ...at, compareAdd: addend, swap: 0n } } : { rdma: at };
    const sendFlags = ibv.IBV_SEND_SIGNALED | flags;
    const request = { wrId: id, sgList: [this.sge(posting)], numSge: 1, opcode, sendFlags };
    return opcode === SEND ? request : { ...request, wr };
  }

  /** Posts a request over one buffer of the own area. @returns 0, or the errno of ibv_post_send */
  post(id: number, opcode: number, posting: Posting): number {
    return ibv.postSend(this.qps[posting.qp ?? 0]!, this.request(id, opcode, posting));
  }

  /** Posts a receive. @returns 0, or the errno of ibv_post_recv */
  receive(id: number, span: Span & { readonly qp?: number }): number {
    return ibv.postRecv(this.qps[span.qp ?? 0]!, { wrId: id, sgList: [this.sge(span)], numSge: 1 });
  }

  /** Writes to the own area. */
  fill(bytes: Uint8Array, offset = 0): void {
    this.stage.memory.write(this.area.address + offset, bytes);
  }

  /** Reads from the own area. */
  bytes(offset: number, lengthBytes: number): Uint8Array {
    return this.stage.memory.read(this.area.address + offset, lengthBytes);
  }

  /** Accuses if the own area does not hold these bytes. */
  expect(what: string, offset: number, expected: Uint8Array): void {
    this.stage.expectAt(what, this.area.address + offset, expected);
  }

  completions(count: number, patiencePs?: number): Promise<Taken[]> {
    return this.stage.completions(this.cq, count, patiencePs);
  }

  watch(count: number, patience: Patience): Promise<Taken[]> {
    return this.stage.watch(this.cq, count, patience);
  }

  /** Waits for completions, and accuses if one is missing or no success. */
  expectWell(count: number, patiencePs?: number): Promise<void> {
    return this.stage.expectWell(this.cq, count, patiencePs);
  }

  /** Waits for one completion. */
  async next(): Promise<Ended | undefined> {
    return (await this.completions(1))[0];
  }
}

/** Opens the device, creates the objects and connects to the program at the other host that calls this as well. */
export async function connect(stage: Stage<unknown>, options: SideOptions): Promise<Side> {
  const { areaBytes, access = allAccess, qpCount = 1, cqEntries = 255, cap = {}, inlRecvSz = 0 } = options;
  const device = await stage.open();
  const { endpoint } = device;
  const cq = await device.cq(cqEntries, options.hasChannel ? await device.channel() : null);
  const qps = await device.rcQps(qpCount, cq, cap, { inlRecvSz });
  const area = await device.buffer(areaBytes, access);
  for (const qp of qps) await toInit(qp, allAccess);
  const early = { stage, device, cq, qps, area, peer: nowhere, path: endpoint.own };
  options.beforeReady?.(new Side(early));
  const { pathMtu } = usual;
  const mtu = options.mtuCode === undefined ? pathMtu : (options.mtuCode as typeof pathMtu);
  const attributes = { ...usual, pathMtu: mtu, ...options.attributes };
  const psn = options.firstPsn ?? stage.context.random.below(1 << 24);
  const there = await stage.swap<News>(topic(`${options.label ?? ''}pair`), {
    ...{ address: area.address, rkey: area.region.rkey },
    ...announcedOf(endpoint.own),
    ...{ qpNums: qps.map(({ qpNum }) => qpNum), psn },
  });
  const path = peerFrom(endpoint.own, there);
  for (const [at, qp] of qps.entries()) {
    await toRtr(qp, { ...path, qpNum: there.qpNums[at]!, psn: there.psn }, attributes);
    const isLast = at === qps.length - 1;
    if (!isLast || !options.mayDieWhenReady) await toRts(qp, psn, attributes);
    else if (!['ok', 'EIO'].includes(await codeOf(toRts(qp, psn, attributes))))
      stage.accuse('the last QP cannot be brought to RTS');
  }
  await stage.meet(`${options.label ?? ''}pair is ready`);
  return new Side({ ...early, peer: { address: there.address, rkey: there.rkey }, path });
}

/** A program that is connected and owns its area, until the other one has ended. */
export const present =
  <Args>(optionsOf: (args: Args) => SideOptions) =>
  async (stage: Stage<Args>): Promise<void> => {
    await connect(stage, optionsOf(stage.args));
    await stage.meet('over');
  };

const nowhere: Reach = { address: 0, rkey: 0 };
