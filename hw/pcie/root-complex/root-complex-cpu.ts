/**
 * Requests of the cores, on their way to the link: stores, loads, configuration accesses.
 *
 *     core 0 ── fifo ──┐
 *     core 1 ── fifo ──┼─ round robin ──► link port          completion ── tag ── done(status, value)
 *       …              ┘
 *
 * A core's requests keep their order, so a load never leaves before an earlier store. The root complex sees a request
 * `cpuStoreLatencyPs` after its hand-over. Loads and configuration accesses hold a tag until their completion or its timeout;
 * `done` is called in the software half of an instant.
 */
import type { BusAddress, Cycles, Picoseconds } from '../../../base/index.ts';
import {
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  PHASE_SOFTWARE,
} from '../../../sim/index.ts';
import { type ConfigRequest, PayloadCopier, type PcieLinkPort } from '../link/index.ts';
import {
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  FLAG_POISONED,
  MEMORY_READ,
  MEMORY_WRITE,
  NON_POSTED,
  PAYLOAD_OFFSET,
  POSTED,
  STATUS_SUCCESS,
  STATUS_UNSUPPORTED_REQUEST,
  statusOf,
  tagOf,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_LENGTH,
} from '../tlp/index.ts';
import type { DeviceFaultLog } from './device-fault-log.ts';
import { CoreQueue, type CoreRequest, type StoreSender } from './root-complex-core-queue.ts';
import type { RootComplexEgress } from './root-complex-egress.ts';
import {
  ACCESS_POISONED,
  ACCESS_TIMEOUT,
  type AccessDone,
  FAILED_LOAD_VALUE,
} from './root-complex-interfaces.ts';
import type { RootComplexParts } from './root-complex-parts.ts';
import type { LinkTap } from './root-complex-tap.ts';
import type { RootComplexWrites } from './root-complex-writes.ts';
import { latencyCyclesOf } from './root-complex-writes.ts';

/** The root complex is function 0 of device 0 on bus 0. */
const ROOT_COMPLEX_ID = 0;

export interface CpuParts extends RootComplexParts {
  readonly coreCount: number;
}

export interface RootComplexCpuPorts {
  readonly writes: Pick<RootComplexWrites, 'settledPs'>;
  readonly egress: Pick<RootComplexEgress, 'wake' | 'wakeNow'>;
}

/** A core's access to a configuration register. */
export interface ConfigurationAccess {
  /** CONFIG_READ or CONFIG_WRITE. */
  readonly kind: number;
  /** Bus, device and function. */
  readonly target: number;
  readonly register: number;
  readonly lengthBytes: number;
  /** Value to write; 0 for a read. */
  readonly value: number;
}

export class RootComplexCpu {
  storeCount = 0;
  loadCount = 0;
  configCount = 0;
  timeoutCount = 0;
  /** Optional observer. */
  tap: LinkTap | undefined;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  #ports!: RootComplexCpuPorts;
  /** Instant at which the last value was, or will be, delivered to a core: each has its own instant. */
  #lastReturnPs = 0;
  readonly #log: DeviceFaultLog;
  readonly #coreCount: number;
  readonly #latencyCycles: number;
  readonly #returnLatencyPs: Picoseconds;
  readonly #timeoutPs: Picoseconds;
  readonly #storeBytesMax: number;
  readonly #queues: CoreQueue[] = [];
  /** Cores with requests, listed first, in any order: seldom more than one. */
  readonly #waiting: CoreQueue[] = [];
  #waitingCount = 0;
  readonly #payloads: PayloadCopier;
  /** The core whose turn it is. */
  #nextCore = 0;
  /** Tags: the free ones, and the requests that wait under the others. */
  readonly #freeTags: number[] = [];
  readonly #tagDone: (AccessDone | undefined)[] = [];
  readonly #tagTimer: Float64Array;
  readonly #tagStatus: Int32Array;
  readonly #tagValue: Float64Array;
  #absentCount = 0;
  readonly #absentDone = new Map<number, AccessDone>();
  readonly #absentHandler: number;
  readonly #timeoutHandler: number;
  readonly #returnHandler: number;

  constructor(parts: CpuParts) {
    const { lp, domain, port, log, coreCount, config } = parts;
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#log = log;
    this.#coreCount = coreCount;
    this.#latencyCycles = latencyCyclesOf(domain, config.cpuStoreLatencyPs);
    this.#returnLatencyPs = config.cpuLoadReturnLatencyPs;
    this.#timeoutPs = config.completionTimeoutPs;
    this.#storeBytesMax = config.cpuStoreBytesMax;
    // One entry more than stores may use: a core can always issue the single load for which it waits.
    const depth = config.cpuEgressTlps + 1;
    const payloadBytes = depth * this.#storeBytesMax;
    this.#payloads = new PayloadCopier(new Uint8Array(coreCount * payloadBytes));
    for (let core = 0; core < coreCount; core++)
      this.#queues.push(new CoreQueue(core, depth, core * payloadBytes, this.#storeBytesMax));
    this.#waiting.push(...this.#queues);
    for (let tag = config.cpuTagCount - 1; tag >= 0; tag--) this.#freeTags.push(tag);
    this.#tagTimer = new Float64Array(config.cpuTagCount);
    this.#tagStatus = new Int32Array(config.cpuTagCount);
    this.#tagValue = new Float64Array(config.cpuTagCount);
    this.#timeoutHandler = lp.queue.addHandler((tag) => this.#timeOut(tag), PHASE_SOFTWARE);
    this.#returnHandler = lp.queue.addHandler((tag) => this.#return(tag), PHASE_SOFTWARE);
    this.#absentHandler = lp.queue.addHandler((ticket) => {
      const done = this.#absentDone.get(ticket)!;
      this.#absentDone.delete(ticket);
      done(STATUS_UNSUPPORTED_REQUEST, FAILED_LOAD_VALUE);
    }, PHASE_SOFTWARE);
  }

  connect(ports: RootComplexCpuPorts): void {
    this.#ports = ports;
  }

  canStore(core: number): boolean {
    return this.#queues[core]!.canStore;
  }

  connectCore(core: number, stores: StoreSender): void {
    this.#queues[core]!.stores = stores;
  }

  store(
    core: number,
    address: BusAddress,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    trafficClass: number,
  ): void {
    if (lengthBytes > this.#storeBytesMax) {
      throw new RangeError(`a store of ${lengthBytes} bytes does not fit one TLP of ${this.#storeBytesMax}`);
    }
    this.storeCount++;
    const request = this.#take(core, MEMORY_WRITE, address, lengthBytes, trafficClass);
    this.#payloads.copy(source, sourceOffset, request.payloadOffset, lengthBytes);
  }

  load(core: number, address: BusAddress, lengthBytes: number, trafficClass: number, done: AccessDone): void {
    this.loadCount++;
    this.#take(core, MEMORY_READ, address, lengthBytes, trafficClass).done = done;
  }

  configure(core: number, access: ConfigurationAccess, trafficClass: number, done: AccessDone): void {
    this.configCount++;
    const request = this.#take(core, access.kind, access.register, access.lengthBytes, trafficClass);
    request.target = access.target;
    request.value = access.value;
    request.done = done;
  }

  /** No function on the bus claims the request: the root complex itself answers Unsupported Request, all ones. */
  answerAbsent(done: AccessDone): void {
    const ticket = this.#absentCount++;
    this.#absentDone.set(ticket, done);
    this.#lp.queue.schedule(this.#lp.nowPs + this.#returnLatencyPs, this.#absentHandler, ticket);
  }

  /** The queue whose oldest request may be sent at `cycle`, from the next core in turn; undefined: none. */
  readyQueue(cycle: Cycles): CoreQueue | undefined {
    const waiting = this.#waiting;
    let chosen: CoreQueue | undefined;
    let chosenTurn = this.#coreCount;
    for (let index = 0; index < this.#waitingCount; index++) {
      const queue = waiting[index]!;
      if (queue.head.visibleCycle > cycle || !this.#canLeave(queue.head)) continue;
      const distance = queue.core - this.#nextCore;
      const turn = distance < 0 ? distance + this.#coreCount : distance;
      if (turn >= chosenTurn) continue;
      chosen = queue;
      chosenTurn = turn;
    }
    return chosen;
  }

  /** Runs the egress stage when the link accepts a request, but not before `cycle`. */
  wakeEgress(cycle: Cycles): void {
    const waiting = this.#waiting;
    for (let index = 0; index < this.#waitingCount; index++) {
      const { head } = waiting[index]!;
      if (!this.#canLeave(head)) continue;
      this.#ports.egress.wake(head.visibleCycle > cycle ? head.visibleCycle : cycle);
    }
  }

  /** Hands the link the oldest request of a {@link readyQueue}. */
  send(queue: CoreQueue): void {
    this.#nextCore = queue.core + 1 === this.#coreCount ? 0 : queue.core + 1;
    if (queue.head.kind === MEMORY_WRITE) this.#sendStore(queue.head);
    else this.#sendRequest(queue.head);
    if (queue.count === 1) this.#removeWaiting(queue);
    queue.pop();
  }

  /** A completion has arrived. */
  complete(offset: number): void {
    const { words, bytes } = this.#port.reader;
    const word = offset >> 2;
    const tag = tagOf(words[word + WORD_DESCRIPTOR]!);
    const flags = words[word + WORD_FLAGS]!;
    if (this.#tagDone[tag] === undefined || this.#tagTimer[tag] === 0) {
      this.#log.note('unexpectedCompletion', this.#lp.instantPs, tag, 0);
      this.#port.consume(offset);
      return;
    }
    let status = statusOf(flags);
    let value = status === STATUS_SUCCESS ? 0 : FAILED_LOAD_VALUE;
    if ((flags & FLAG_POISONED) !== 0) {
      status = ACCESS_POISONED;
      value = FAILED_LOAD_VALUE;
    } else if (this.#port.reader.kindAt(offset) === COMPLETION_DATA && status === STATUS_SUCCESS) {
      for (let at = Math.min(words[word + WORD_LENGTH]!, 4) - 1; at >= 0; at--) {
        value = value * 256 + bytes[offset + PAYLOAD_OFFSET + at]!;
      }
    }
    this.#port.consume(offset);
    this.#lp.queue.cancel(this.#tagTimer[tag]!);
    this.#tagTimer[tag] = 0;
    this.#tagStatus[tag] = status;
    this.#tagValue[tag] = value;
    // Completions do not pass posted writes (PCIe Base 3.1, table 2-39): a core sees earlier writes before the completion.
    const settledPs = Math.max(this.#ports.writes.settledPs, this.#lastReturnPs + 1);
    const returnPs = Math.max(this.#lp.nowPs + this.#returnLatencyPs, settledPs);
    this.#lastReturnPs = returnPs;
    this.#lp.queue.schedule(returnPs, this.#returnHandler, tag);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      requests: this.#queues.map(({ count }) => count),
      nextCore: this.#nextCore,
      freeTags: [...this.#freeTags],
      absent: this.#absentDone.size,
    };
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.#lastReturnPs -= ps;
    for (const queue of this.#queues) queue.rebase(cycles);
  }

  /** Accepts a request; the caller adds the fields of its kind. */
  #take(
    core: number,
    kind: number,
    address: BusAddress,
    lengthBytes: number,
    trafficClass: number,
  ): CoreRequest {
    const queue = this.#queues[core]!;
    const request = queue.append();
    if (queue.count === 1) this.#waiting[this.#waitingCount++] = queue;
    request.kind = kind;
    request.address = address;
    request.lengthBytes = lengthBytes;
    request.trafficClass = trafficClass;
    request.visibleCycle = this.#domain.clock.cycleAfter(this.#lp.nowPs) + this.#latencyCycles;
    this.#ports.egress.wake(request.visibleCycle);
    return request;
  }

  #canLeave(request: CoreRequest): boolean {
    if (request.kind === MEMORY_WRITE) return this.#port.canSend(POSTED);
    return this.#freeTags.length > 0 && this.#port.canSend(NON_POSTED);
  }

  #removeWaiting(queue: CoreQueue): void {
    const waiting = this.#waiting;
    const last = waiting[--this.#waitingCount]!;
    if (last !== queue) waiting[waiting.indexOf(queue)] = last;
  }

  #sendStore({ address, trafficClass, payloadOffset, lengthBytes }: CoreRequest): void {
    const { target } = this.#payloads;
    this.tap?.store(address, target, payloadOffset, lengthBytes, this.#lp.nowPs);
    this.#port.write.begin(address, target, payloadOffset, lengthBytes).trafficClass = trafficClass;
    this.#port.sendMemoryWrite();
  }

  #sendRequest(request: CoreRequest): void {
    const { kind, address, lengthBytes, trafficClass, target, value } = request;
    const tag = this.#freeTags.pop()!;
    this.#tagDone[tag] = request.done;
    request.done = undefined;
    this.#tagTimer[tag] = this.#lp.queue.schedule(
      this.#lp.nowPs + this.#timeoutPs,
      this.#timeoutHandler,
      tag,
    );
    this.tap?.request({ tag, kind, target, address, lengthBytes, value }, this.#lp.nowPs);
    if (kind === MEMORY_READ) {
      const read = this.#port.read.begin(address, lengthBytes);
      read.trafficClass = trafficClass;
      read.tag = tag;
      read.requesterId = ROOT_COMPLEX_ID;
      this.#port.sendMemoryRead();
    } else if (kind === CONFIG_READ) {
      this.#port.sendConfigRead(this.#configRequest(request, tag));
    } else if (kind === CONFIG_WRITE) {
      this.#port.sendConfigWrite({ ...this.#configRequest(request, tag), value });
    }
  }

  #configRequest({ target, address, lengthBytes, trafficClass }: CoreRequest, tag: number): ConfigRequest {
    return {
      targetId: target,
      register: address,
      lengthBytes,
      trafficClass,
      tag,
      requesterId: ROOT_COMPLEX_ID,
    };
  }

  #timeOut(tag: number): void {
    this.timeoutCount++;
    this.#tagTimer[tag] = 0;
    this.#tagStatus[tag] = ACCESS_TIMEOUT;
    this.#tagValue[tag] = FAILED_LOAD_VALUE;
    this.#return(tag);
  }

  #return(tag: number): void {
    const done = this.#tagDone[tag]!;
    this.#tagDone[tag] = undefined;
    this.#freeTags.push(tag);
    if (this.#waitingCount > 0) this.#ports.egress.wakeNow();
    this.tap?.completion(tag, this.#tagStatus[tag]!, this.#tagValue[tag]!, this.#lp.nowPs);
    done(this.#tagStatus[tag]!, this.#tagValue[tag]!);
  }
}
