/**
 * Collects the evidence of a simulated host: the verbs library calls of its programs, by line if lines are known, and
 * the present wait of each program. It costs no simulated time.
 */
import { errnoNumbers, QpStateVerb } from '../../driver/index.ts';
import type { CoreThread, Host } from '../../host/index.ts';
import {
  type BufferWatch,
  type CallWatch,
  IBV_QPT_UD,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
  IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_SEND_WITH_INV,
  type IbvCompChannel,
  type IbvCq,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSrq,
  type OperationTap,
} from '../../userlib/index.ts';
import { GRH_BYTES } from '../../wire/index.ts';
import type { RaceWatch } from '../node/race-watch.ts';
import { around } from '../timeline/index.ts';
import { gidText } from './address-text.ts';
import {
  type ConnectionCall,
  type ConnectionEvent,
  type CqUse,
  type HeadRead,
  type HostEvidence,
  type LimitEvidence,
  limits,
  type ObjectLines,
  type PostEvidence,
  type RefusedCall,
  type TouchedBuffer,
  type WaitEvidence,
} from './evidence.ts';

/** The line of a host's program that makes the current call; undefined if unknown. */
export type PlaceOf = (node: number) => string | undefined;

const operationNames: Readonly<Record<number, string>> = {
  [IBV_WR_RDMA_WRITE]: 'WRITE',
  [IBV_WR_RDMA_WRITE_WITH_IMM]: 'WRITE_IMM',
  [IBV_WR_SEND]: 'SEND',
  [IBV_WR_SEND_WITH_IMM]: 'SEND_IMM',
  [IBV_WR_RDMA_READ]: 'READ',
  [IBV_WR_ATOMIC_CMP_AND_SWP]: 'CMP_SWAP',
  [IBV_WR_ATOMIC_FETCH_AND_ADD]: 'FETCH_ADD',
  [IBV_WR_LOCAL_INV]: 'LOCAL_INV',
  [IBV_WR_BIND_MW]: 'BIND_MW',
  [IBV_WR_SEND_WITH_INV]: 'SEND_INV',
  [IBV_WR_MASKED_ATOMIC_CMP_AND_SWP]: 'MASKED_CMP_SWAP',
  [IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD]: 'MASKED_FETCH_ADD',
};

/** Operations that name memory of the peer as `wr.rdma`. */
const rdmaOperations: ReadonlySet<number> = new Set([
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
]);

const errnoNames = new Map<number, string>(Object.entries(errnoNumbers).map(([name, code]) => [code, name]));
const stateNames = new Map<number, string>(
  Object.entries(QpStateVerb).map(([name, code]) => [code, name.replace('IBV_QPS_', '')]),
);

type Writable<T> = { -readonly [K in keyof T]: T[K] };
/** A thread's present wait, as last reported. */
type Wait = Pick<WaitEvidence, 'kind' | 'cqns' | 'channel' | 'label' | 'line'>;

/** Label of a poll followed by one sleep. */
const sleptOnce = 'sleeps between polls';
/** CQs polled by one loop. */
const waitedCqsMax = 16;

interface SendQueue {
  readonly qp: IbvQp;
  readonly posts: Writable<PostEvidence>[];
  /** Posts whose completion, or a later one, was polled. */
  completedCount: number;
}

/** Start of a UD receive's buffer. */
interface ReceiveHead {
  readonly process: number;
  readonly qpn: number;
  readonly address: number;
}

interface ReceiveUse {
  readonly qpn: number;
  count: number;
  line?: string;
}

export class HostJournal {
  readonly node: number;
  readonly #nowPs: () => number;
  readonly #placeOf: PlaceOf;
  readonly #queues = new Map<number, SendQueue>();
  readonly #closed: SendQueue[] = [];
  readonly #receives = new Map<string, ReceiveUse>();
  readonly #refused = new Map<string, RefusedCall>();
  readonly #cqs = new Map<number, Writable<CqUse>>();
  readonly #lines = new Map<string, Writable<ObjectLines>>();
  readonly #waits = new Map<CoreThread, Wait>();
  readonly #touched: TouchedBuffer[] = [];
  /** Buffers of UD receives: start address of each, by process. */
  readonly #heads = new Map<string, ReceiveHead>();
  readonly #datagramQps = new Set<number>();
  readonly #headReads: HeadRead[] = [];
  readonly #connectionCalls: ConnectionCall[] = [];
  readonly #connectionEvents: ConnectionEvent[] = [];
  readonly #limits: Writable<LimitEvidence> = { arms: 0, events: 0 };
  /** Posts and polled completions: the measure of progress. */
  progressCount = 0;

  constructor(node: number, nowPs: () => number, placeOf: PlaceOf) {
    this.node = node;
    this.#nowPs = nowPs;
    this.#placeOf = placeOf;
  }

  /** A tap of a program's thread that forwards everything to another tap and notifies this journal of calls. */
  tapOf(cpu: CoreThread, plain: OperationTap): OperationTap {
    around(cpu, 'sleep', (sleep) => (durationPs) => {
      this.#sleeps(cpu);
      return sleep(durationPs);
    });
    return {
      watch: plain.watch,
      calls: this.#callsOf(cpu),
      opened: (qpNumber, requestCount) => plain.opened(qpNumber, requestCount),
      closed: (qpNumber) => plain.closed(qpNumber),
      posted: (qpNumber, counter, opcode, ownPs) => plain.posted(qpNumber, counter, opcode, ownPs),
      completed: (qpNumber, counter, ownPs) => {
        this.#completed(qpNumber, counter);
        plain.completed(qpNumber, counter, ownPs);
      },
    };
  }

  /** The thread starts to wait for a value of the exchange, or to sleep. */
  waits(cpu: CoreThread, kind: 'exchange' | 'sleep' | 'memory', label: string): void {
    this.#wait(cpu, { kind, cqns: [], channel: -1, label });
  }

  /** Records accesses to device-owned buffers with their lines. */
  watchRaces(watch: RaceWatch): void {
    around(watch, 'bufferWatchOf', (make) => (process) => this.#withHeads(process, make(process)));
    around(watch, 'accessed', (accessed) => (cpu, process, access, address, lengthBytes) => {
      const before = watch.races.length;
      accessed(cpu, process, access, address, lengthBytes);
      if (access === 'read' && this.#heads.size > 0) this.#readHead(process, address, lengthBytes);
      if (watch.races.length === before || this.#touched.length >= limits.calls) return;
      const line = this.#place();
      for (const { program, device } of watch.races.slice(before))
        this.#touched.push({
          program: program.name,
          access: program.access,
          bytes: program.lengthBytes,
          address: program.address,
          deviceAccess: device.access,
          queue: device.queue,
          wrId: device.wrId,
          atPs: Number(program.atPs),
          ...(line === undefined ? {} : { line }),
        });
    });
  }

  /** Records the buffers of UD receives. */
  #withHeads(process: number, watch: BufferWatch): BufferWatch {
    return {
      ...watch,
      receivePosted: (queue, slot, wr, atPs) => {
        watch.receivePosted(queue, slot, wr, atPs);
        const qpn = Number(/^RQ of QP (\d+)$/.exec(queue)?.[1] ?? -1);
        const [first] = wr.sgList;
        if (first === undefined || !this.#datagramQps.has(qpn) || this.#heads.size >= limits.calls) return;
        this.#heads.set(`${process} ${first.addr}`, { process, qpn, address: first.addr });
      },
    };
  }

  #readHead(process: number, address: number, bytes: number): void {
    if (this.#headReads.length >= limits.calls) return;
    for (const head of this.#heads.values()) {
      const isWithin = address >= head.address && address + bytes <= head.address + GRH_BYTES;
      if (head.process !== process || !isWithin) continue;
      const line = this.#place();
      this.#headReads.push({ qpn: head.qpn, address, bytes, ...(line === undefined ? {} : { line }) });
      return;
    }
  }

  /** Longest time between two polls of a loop that does not wait otherwise. */
  #sleeps(cpu: CoreThread): void {
    const known = this.#waits.get(cpu);
    if (known?.kind === 'poll' && known.label === '') this.#waits.set(cpu, { ...known, label: sleptOnce });
    else this.waits(cpu, 'sleep', '');
  }

  /** The evidence so far, as plain data. */
  collect(host: Host): HostEvidence {
    const queues = [...this.#closed, ...this.#queues.values()];
    const running = host.cores.flatMap(({ program }) => (program === undefined ? [] : [program]));
    return {
      node: this.node,
      headReads: [...this.#headReads],
      limits: { ...this.#limits },
      connectionCalls: [...this.#connectionCalls],
      connectionEvents: [...this.#connectionEvents],
      touched: [...this.#touched],
      posts: queues.flatMap(({ posts }) => posts.map((post) => ({ ...post }))),
      receives: [...this.#receives.values()].map((use) => ({ ...use })),
      refusedCalls: [...this.#refused.values()].map((call) => ({ ...call })),
      cqs: [...this.#cqs.values()].map((use) => ({ ...use })),
      lines: [...this.#lines.values()].map((lines) => ({ ...lines })),
      waits: running.map((cpu) => this.#waitOf(cpu)),
      programs: running.map(({ name }) => ({ name, hasEnded: false })),
    };
  }

  #waitOf(cpu: CoreThread): WaitEvidence {
    const { name: program, waitText: text } = cpu;
    const wait = this.#waits.get(cpu);
    if (wait !== undefined) return { program, text, ...wait };
    return { program, text, kind: 'other', cqns: [], channel: -1, label: '' };
  }

  #wait(cpu: CoreThread, wait: Omit<Wait, 'line'>): void {
    const known = this.#waits.get(cpu);
    const isSame =
      known?.kind === wait.kind && known.label === wait.label && known.cqns.join() === wait.cqns.join();
    // A loop repeats the same poll: its line is looked up once.
    if (isSame) return;
    const line = this.#place();
    this.#waits.set(cpu, { ...wait, ...(line === undefined ? {} : { line }) });
  }

  /** A loop may poll several CQs in rotation: they count as one wait. */
  #polls(cpu: CoreThread, cqn: number): void {
    const known = this.#waits.get(cpu);
    if (known?.kind !== 'poll') return this.#wait(cpu, { kind: 'poll', cqns: [cqn], channel: -1, label: '' });
    const cqns = known.cqns.includes(cqn) ? known.cqns : [...known.cqns, cqn].slice(-waitedCqsMax);
    if (known.label !== '' || cqns !== known.cqns) this.#waits.set(cpu, { ...known, cqns, label: '' });
  }

  #place(): string | undefined {
    return this.#placeOf(this.node);
  }

  #callsOf(cpu: CoreThread): CallWatch {
    return {
      place: () => this.#place(),
      made: (kind, number, place) => {
        if (kind === 'CQ') {
          const use = this.#useOf(number);
          if (place !== undefined) use.createLine = place;
        } else this.#note(kind, number, 'created', place, true);
      },
      unmade: (kind, number, place) => {
        if (kind === 'CQ') return;
        this.#note(kind, number, 'destroyed', place);
        const queue = kind === 'QP' ? this.#queues.get(number) : undefined;
        if (queue === undefined) return;
        this.#queues.delete(number);
        if (this.#closed.length < limits.calls) this.#closed.push(queue);
      },
      modified: (qp, place) => {
        if (qp.qpType === IBV_QPT_UD) this.#datagramQps.add(qp.qpNum);
        const entered = {
          INIT: 'toInit',
          RTR: 'toRtr',
          RTS: 'toRts',
          ERR: 'toError',
          RESET: 'toReset',
        } as const;
        const state = stateNames.get(qp.state) as keyof typeof entered | undefined;
        const which = state === undefined ? undefined : entered[state];
        if (which !== undefined) this.#note('QP', qp.qpNum, which, place);
      },
      sendPosted: (qp, wqeCounter, wr, ownPs) => this.#posted(qp, wqeCounter, wr, ownPs),
      receivesPosted: (queue, count) => this.#received(queue, count),
      refused: (call, queue, errno, wr) => this.#refuse(call, queue, errno, wr),
      polled: (cq, count) => {
        const use = this.#cqOf(cq);
        use.polls++;
        if (use.firstPollPs < 0) use.firstPollPs = this.#nowPs();
        use.taken += count;
        use.lastPollPs = this.#nowPs();
        if (count > 0) {
          this.progressCount++;
          // The program continues: its next wait is a new one.
          this.#waits.delete(cpu);
        } else this.#polls(cpu, cq.ring.cqn);
        const line = use.pollLine === undefined ? this.#place() : undefined;
        if (line !== undefined) use.pollLine = line;
      },
      armed: (cq, isSolicitedOnly) => {
        const use = this.#cqOf(cq);
        use.arms++;
        use.lastArmPs = this.#nowPs();
        use.isSolicitedOnly = isSolicitedOnly;
        const line = this.#place();
        if (line !== undefined) use.armLine = line;
      },
      awaitsEvent: (channel) => {
        const cqs = [...channel.context.cqs.values()].filter((cq) => cq.channel === channel);
        const cqns = cqs.map(({ ring }) => ring.cqn);
        for (const cq of cqs) this.#cqOf(cq);
        this.#wait(cpu, { kind: 'event', cqns, channel: channel.handle, label: '' });
      },
      gotEvent: (cq) => {
        this.#cqOf(cq).events++;
        this.progressCount++;
        this.#waits.delete(cpu);
      },
      limitArmed: () => {
        this.#limits.arms++;
        const line = this.#place();
        if (line !== undefined) this.#limits.armLine = line;
      },
      connectionCalled: (call, detail) => {
        this.progressCount++;
        const line = this.#place();
        const place = line === undefined ? {} : { line };
        this.#connectionCalls.push({ call, detail, atPs: this.#nowPs(), ...place });
        if (this.#connectionCalls.length > limits.calls) this.#connectionCalls.shift();
      },
      awaitsConnectionEvent: () => this.#wait(cpu, { kind: 'connection', cqns: [], channel: -1, label: '' }),
      gotConnectionEvent: (event, status) => {
        this.progressCount++;
        this.#waits.delete(cpu);
        this.#connectionEvents.push({ event, status, atPs: this.#nowPs() });
        if (this.#connectionEvents.length > limits.calls) this.#connectionEvents.shift();
      },
      awaitsAsyncEvent: () => this.#wait(cpu, { kind: 'async', cqns: [], channel: -1, label: '' }),
      gotAsyncEvent: (isOfLimit) => {
        if (isOfLimit) this.#limits.events++;
        this.progressCount++;
        this.#waits.delete(cpu);
      },
    };
  }

  #useOf(cqn: number): Writable<CqUse> {
    let use = this.#cqs.get(cqn);
    if (use === undefined) {
      use = {
        cqn,
        polls: 0,
        taken: 0,
        firstPollPs: -1,
        lastPollPs: -1,
        arms: 0,
        lastArmPs: -1,
        isSolicitedOnly: false,
        events: 0,
        hasChannel: false,
        channel: -1,
      };
      this.#cqs.set(cqn, use);
    }
    return use;
  }

  #cqOf(cq: IbvCq): Writable<CqUse> {
    const use = this.#useOf(cq.ring.cqn);
    use.hasChannel = cq.channel !== null;
    use.channel = (cq.channel as IbvCompChannel | null)?.handle ?? -1;
    return use;
  }

  #note(
    object: 'QP' | 'MR',
    number: number,
    which: Exclude<keyof ObjectLines, 'object' | 'number' | 'isDestroyed' | 'isReset'>,
    place: string | undefined,
    isNew = false,
  ): void {
    const key = `${object} ${number}`;
    let lines = this.#lines.get(key);
    if (lines === undefined || isNew) {
      if (this.#lines.size >= limits.objects) return;
      lines = { object, number, isDestroyed: false, isReset: false };
      this.#lines.set(key, lines);
    }
    if (which === 'destroyed') lines.isDestroyed = true;
    else if (which === 'toReset') lines.isReset = true;
    if (place !== undefined) lines[which] = place;
  }

  #posted(qp: IbvQp, wqeCounter: number, wr: IbvSendWr, ownPs: number): void {
    this.progressCount++;
    let queue = this.#queues.get(qp.qpNum);
    if (queue === undefined || queue.qp !== qp) {
      queue = { qp, posts: [], completedCount: 0 };
      this.#queues.set(qp.qpNum, queue);
    }
    const line = this.#place();
    const { ud, rdma } = wr.wr ?? {};
    const grh = ud?.ah.attr.isGlobal === 1 ? ud.ah.attr.grh : undefined;
    queue.posts.push({
      qpn: qp.qpNum,
      wqeCounter,
      operation: operationNames[wr.opcode] ?? `opcode ${wr.opcode}`,
      isSignalled: qp.sqSigAll !== 0 || (wr.sendFlags & IBV_SEND_SIGNALED) !== 0,
      bytes: bytesOf(wr),
      buffers: wr.sgList.slice(0, wr.numSge).map(({ addr, length }) => ({ address: addr, bytes: length })),
      atPs: ownPs,
      ...(line === undefined ? {} : { line }),
      ...(rdma === undefined || !rdmaOperations.has(wr.opcode)
        ? {}
        : { remoteKey: rdma.rkey, remoteAddress: Number(rdma.remoteAddr) }),
      ...(ud === undefined
        ? {}
        : {
            remoteQpn: ud.remoteQpn,
            remoteQkey: ud.remoteQkey,
            remoteLid: ud.ah.attr.dlid,
            ...(grh === undefined ? {} : { remoteGid: gidText(grh.dgid) }),
          }),
      isFenced: (wr.sendFlags & IBV_SEND_FENCE) !== 0,
      isInline: (wr.sendFlags & IBV_SEND_INLINE) !== 0,
      ...(wr.bindMw === undefined ? {} : { bindKey: wr.bindMw.rkey }),
      isCompleted: false,
    });
    // Keeps the newest completed requests for their lines; the pending ones are limited by the size of the queue.
    while (queue.posts.length > limits.postsPerQueue && queue.completedCount > limits.postsPerQueue / 2) {
      queue.posts.shift();
      queue.completedCount--;
    }
  }

  /** A completion also covers all earlier requests. */
  #completed(qpn: number, wqeCounter: number): void {
    const queue = this.#queues.get(qpn);
    if (queue === undefined) return;
    for (let at = queue.completedCount; at < queue.posts.length; at++) {
      const post = queue.posts[at]!;
      if (((wqeCounter - post.wqeCounter) & 0xffff) >= 0x8000) return;
      post.isCompleted = true;
      post.completedPs = this.#nowPs();
      queue.completedCount++;
    }
  }

  #received(target: IbvQp | IbvSrq, count: number): void {
    const isQp = 'qpNum' in target;
    const key = isQp ? `QP ${target.qpNum}` : `SRQ ${target.handle}`;
    let use = this.#receives.get(key);
    if (use === undefined) {
      use = { qpn: isQp ? target.qpNum : -1, count: 0 };
      const line = this.#place();
      if (line !== undefined) use.line = line;
      if (this.#receives.size < limits.objects) this.#receives.set(key, use);
    }
    use.count += count;
  }

  #refuse(call: string, target: IbvQp | IbvSrq, errno: number, wr: IbvSendWr | IbvRecvWr): void {
    const qp = 'qpNum' in target ? target : undefined;
    const line = this.#place();
    const code = errnoNames.get(errno) ?? `errno ${errno}`;
    const qpn = qp?.qpNum ?? -1;
    const key = `${call} ${code} ${qpn} ${line ?? ''}`;
    const known = this.#refused.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    if (this.#refused.size >= limits.calls) return;
    const isSend = call === 'ibv_post_send';
    const posts = isSend ? (this.#queues.get(qpn)?.posts.filter((post) => !post.isCompleted) ?? []) : [];
    const { receiveRing } = qp ?? {};
    const outstanding = isSend
      ? posts.length
      : receiveRing === undefined || receiveRing === null
        ? 0
        : (receiveRing.head - receiveRing.tail) >>> 0;
    this.#refused.set(key, {
      call,
      errno: code,
      qpn,
      state: qp === undefined ? '' : (stateNames.get(qp.state) ?? ''),
      outstanding,
      unsignalled: posts.filter(({ isSignalled }) => !isSignalled).length,
      capacity: isSend ? (qp?.sendRing.maxPost ?? 0) : (receiveRing?.wqeCount ?? 0),
      unpolled: qp === undefined ? 0 : unpolledOf(isSend ? qp.sendCq : qp.recvCq),
      operation: 'opcode' in wr ? (operationNames[wr.opcode] ?? `opcode ${wr.opcode}`) : 'receive',
      segments: wr.numSge,
      segmentsMax:
        (isSend
          ? qp?.sendRing.maxSge
          : (receiveRing?.maxSge ?? ('ring' in target ? target.ring.maxSge : 0))) ?? 0,
      inlineBytes: 'sendFlags' in wr && (wr.sendFlags & IBV_SEND_INLINE) !== 0 ? bytesOf(wr) : -1,
      inlineMax: qp?.sendRing.maxInline ?? 0,
      hasSharedQueue: qp !== undefined && qp.srq !== null,
      atPs: this.#nowPs(),
      ...(line === undefined ? {} : { line }),
      count: 1,
    });
  }
}

const bytesOf = ({ sgList, numSge }: IbvSendWr): number =>
  sgList.slice(0, numSge).reduce((sum, { length }) => sum + length, 0);

/** Completions that wait in a CQ. */
function unpolledOf({ ring }: IbvCq): number {
  let count = 0;
  while (count < ring.entries && ring.entryAt(ring.consumerCounter + count) >= 0) count++;
  return count;
}
