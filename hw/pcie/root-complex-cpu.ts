/**
 * Requests of the cores, on their way to the link: stores, loads, configuration accesses.
 *
 *     core 0 ── fifo ──┐
 *     core 1 ── fifo ──┼─ round robin ──► link port          completion ── tag ── done(status, value)
 *       …              ┘
 *
 * A core's requests keep their order, so a load never leaves before a store given before it. A request is seen
 * by the root complex `cpuStoreLatencyPs` after it was given. Loads and configuration accesses hold a tag until
 * their completion or its timeout; `done` is called in the software half of an instant.
 */
import type { ClockDomain } from '../../sim/clock-domain.ts';
import * as eventQueue from '../../sim/event-queue.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import { PayloadCopier } from './link-copy.ts';
import type { PcieLinkPort } from './link-port.ts';
import type { AccessDone } from './root-complex-interfaces.ts';
import * as rootComplexInterfaces from './root-complex-interfaces.ts';
import type { DeviceFaultLog } from './root-complex-log.ts';
import type { RootComplexConfig } from './root-complex-parameters.ts';
import type { LinkTap } from './root-complex-tap.ts';
import { latencyCyclesOf } from './root-complex-writes.ts';
import * as tlp from './tlp.ts';
import { statusOf } from './tlp.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { PHASE_SOFTWARE } = eventQueue;
const { ACCESS_POISONED, ACCESS_TIMEOUT, FAILED_LOAD_VALUE } = rootComplexInterfaces;
const { COMPLETION_DATA, CONFIG_READ, CONFIG_WRITE, FLAG_POISONED, MEMORY_READ, MEMORY_WRITE } = tlp;
const { NON_POSTED, PAYLOAD_OFFSET, POSTED, STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST, WORD_FLAGS } = tlp;
const { WORD_LENGTH, WORD_TAG } = tlp;

const NEVER = Number.POSITIVE_INFINITY;
/** The root complex is function 0 of device 0 on bus 0. */
const ROOT_COMPLEX_ID = 0;

export class RootComplexCpu {
  storeCount = 0;
  loadCount = 0;
  configCount = 0;
  timeoutCount = 0;
  /** Who looks on; undefined is nobody. */
  tap: LinkTap | undefined;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #port: PcieLinkPort;
  readonly #log: DeviceFaultLog;
  readonly #coreCount: number;
  readonly #depth: number;
  readonly #latencyCycles: number;
  readonly #returnLatencyPs: number;
  readonly #timeoutPs: number;
  readonly #storeBytesMax: number;
  /** Requests: slot = core × depth + place in the core's ring. */
  readonly #kind: Int32Array;
  readonly #address: Float64Array;
  readonly #lengthBytes: Int32Array;
  readonly #trafficClass: Int32Array;
  readonly #target: Int32Array;
  readonly #value: Int32Array;
  readonly #visibleCycle: Float64Array;
  readonly #slotDone: (AccessDone | undefined)[] = [];
  readonly #payloads: PayloadCopier;
  readonly #head: Int32Array;
  readonly #count: Int32Array;
  readonly #spaceListener: ((() => void) | undefined)[] = [];
  #pendingCount = 0;
  #nextCore = 0;
  /** Tags: those free, and what waits under the others. */
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
  /** Set by the root complex: has its egress stage run at a cycle. */
  readonly #wakeEgress: (cycle: number) => void;

  constructor(
    lp: LogicalProcess,
    domain: ClockDomain,
    port: PcieLinkPort,
    log: DeviceFaultLog,
    coreCount: number,
    config: RootComplexConfig,
    wakeEgress: (cycle: number) => void,
  ) {
    this.#lp = lp;
    this.#domain = domain;
    this.#port = port;
    this.#log = log;
    this.#coreCount = coreCount;
    // One place more than stores may take: a core can always give the one load it waits for.
    this.#depth = config.cpuEgressTlps + 1;
    this.#latencyCycles = latencyCyclesOf(domain, config.cpuStoreLatencyPs);
    this.#returnLatencyPs = config.cpuLoadReturnLatencyPs;
    this.#timeoutPs = config.completionTimeoutPs;
    this.#storeBytesMax = config.cpuStoreBytesMax;
    const slotCount = coreCount * this.#depth;
    this.#kind = new Int32Array(slotCount);
    this.#address = new Float64Array(slotCount);
    this.#lengthBytes = new Int32Array(slotCount);
    this.#trafficClass = new Int32Array(slotCount);
    this.#target = new Int32Array(slotCount);
    this.#value = new Int32Array(slotCount);
    this.#visibleCycle = new Float64Array(slotCount);
    this.#payloads = new PayloadCopier(new Uint8Array(slotCount * this.#storeBytesMax));
    this.#head = new Int32Array(coreCount);
    this.#count = new Int32Array(coreCount);
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
    this.#wakeEgress = wakeEgress;
  }

  canStore(core: number): boolean {
    return this.#count[core]! < this.#depth - 1;
  }

  onSpace(core: number, listener: () => void): void {
    this.#spaceListener[core] = listener;
  }

  store(
    core: number,
    address: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    trafficClass: number,
  ): void {
    if (lengthBytes > this.#storeBytesMax) {
      throw new RangeError(`a store of ${lengthBytes} bytes does not fit one TLP of ${this.#storeBytesMax}`);
    }
    this.storeCount++;
    const slot = this.#take(core, MEMORY_WRITE, address, lengthBytes, trafficClass);
    this.#payloads.copy(source, sourceOffset, slot * this.#storeBytesMax, lengthBytes);
  }

  load(core: number, address: number, lengthBytes: number, trafficClass: number, done: AccessDone): void {
    this.loadCount++;
    this.#slotDone[this.#take(core, MEMORY_READ, address, lengthBytes, trafficClass)] = done;
  }

  /** @param kind CONFIG_READ or CONFIG_WRITE */
  configure(
    core: number,
    kind: number,
    target: number,
    register: number,
    lengthBytes: number,
    value: number,
    trafficClass: number,
    done: AccessDone,
  ): void {
    this.configCount++;
    const slot = this.#take(core, kind, register, lengthBytes, trafficClass);
    this.#target[slot] = target;
    this.#value[slot] = value;
    this.#slotDone[slot] = done;
  }

  /** Nobody on the bus claims the request: Unsupported Request, all ones, by the root complex itself. */
  answerAbsent(done: AccessDone): void {
    const ticket = this.#absentCount++;
    this.#absentDone.set(ticket, done);
    this.#lp.queue.schedule(this.#lp.nowPs + this.#returnLatencyPs, this.#absentHandler, ticket);
  }

  /** Earliest cycle at which the link could be handed a request, or Infinity while all wait for it or for a tag. */
  get readyCycle(): number {
    if (this.#pendingCount === 0) return NEVER;
    let earliest = NEVER;
    for (let core = 0; core < this.#coreCount; core++) {
      if (this.#count[core] === 0) continue;
      const slot = core * this.#depth + this.#head[core]!;
      if (this.#visibleCycle[slot]! < earliest && this.#canLeave(slot)) earliest = this.#visibleCycle[slot]!;
    }
    return earliest;
  }

  /** Hands the link one request: of the next core in turn that has one ready. */
  send(cycle: number): void {
    for (let step = 0; step < this.#coreCount; step++) {
      const core = (this.#nextCore + step) % this.#coreCount;
      if (this.#count[core] === 0) continue;
      const slot = core * this.#depth + this.#head[core]!;
      if (this.#visibleCycle[slot]! > cycle || !this.#canLeave(slot)) continue;
      this.#nextCore = core + 1 === this.#coreCount ? 0 : core + 1;
      this.#transmit(slot);
      this.#drop(core);
      return;
    }
  }

  /** A completion has arrived. */
  complete(offset: number): void {
    const { words, bytes } = this.#port.reader;
    const word = offset >> 2;
    const tag = words[word + WORD_TAG]!;
    const flags = words[word + WORD_FLAGS]!;
    if (this.#tagDone[tag] === undefined || this.#tagTimer[tag] === 0) {
      this.#log.note('unexpectedCompletion', this.#lp.nowPs, tag, 0);
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
    this.#lp.queue.schedule(this.#lp.nowPs + this.#returnLatencyPs, this.#returnHandler, tag);
  }

  #take(core: number, kind: number, address: number, lengthBytes: number, trafficClass: number): number {
    const count = this.#count[core]!;
    if (count === this.#depth) throw new RangeError(`core ${core} gives the root complex more than it takes`);
    const slot = core * this.#depth + ((this.#head[core]! + count) % this.#depth);
    this.#count[core] = count + 1;
    this.#pendingCount++;
    this.#kind[slot] = kind;
    this.#address[slot] = address;
    this.#lengthBytes[slot] = lengthBytes;
    this.#trafficClass[slot] = trafficClass;
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs) + this.#latencyCycles;
    this.#visibleCycle[slot] = cycle;
    this.#wakeEgress(cycle);
    return slot;
  }

  #canLeave(slot: number): boolean {
    if (this.#kind[slot] === MEMORY_WRITE) return this.#port.canSend(POSTED);
    return this.#freeTags.length > 0 && this.#port.canSend(NON_POSTED);
  }

  #transmit(slot: number): void {
    const kind = this.#kind[slot]!;
    const address = this.#address[slot]!;
    const lengthBytes = this.#lengthBytes[slot]!;
    const trafficClass = this.#trafficClass[slot]!;
    if (kind === MEMORY_WRITE) {
      const payload = slot * this.#storeBytesMax;
      this.tap?.store(address, this.#payloads.target, payload, lengthBytes, this.#lp.nowPs);
      this.#port.sendMemoryWrite(address, trafficClass, this.#payloads.target, payload, lengthBytes);
      return;
    }
    const tag = this.#freeTags.pop()!;
    this.#tagDone[tag] = this.#slotDone[slot];
    this.#slotDone[slot] = undefined;
    this.#tagTimer[tag] = this.#lp.queue.schedule(
      this.#lp.nowPs + this.#timeoutPs,
      this.#timeoutHandler,
      tag,
    );
    const target = this.#target[slot]!;
    this.tap?.request(tag, kind, target, address, lengthBytes, this.#value[slot]!, this.#lp.nowPs);
    if (kind === MEMORY_READ) {
      this.#port.sendMemoryRead(address, trafficClass, lengthBytes, tag, ROOT_COMPLEX_ID);
    } else if (kind === CONFIG_READ) {
      this.#port.sendConfigRead(target, address, lengthBytes, trafficClass, tag, ROOT_COMPLEX_ID);
    } else if (kind === CONFIG_WRITE) {
      const value = this.#value[slot]!;
      this.#port.sendConfigWrite(target, address, lengthBytes, value, trafficClass, tag, ROOT_COMPLEX_ID);
    }
  }

  #drop(core: number): void {
    const couldNotStore = !this.canStore(core);
    this.#head[core] = (this.#head[core]! + 1) % this.#depth;
    this.#count[core] = this.#count[core]! - 1;
    this.#pendingCount--;
    if (couldNotStore && this.canStore(core)) this.#spaceListener[core]?.();
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
    if (this.#pendingCount > 0) this.#wakeEgress(this.#domain.clock.cycleAfter(this.#lp.nowPs));
    this.tap?.completion(tag, this.#tagStatus[tag]!, this.#tagValue[tag]!, this.#lp.nowPs);
    done(this.#tagStatus[tag]!, this.#tagValue[tag]!);
  }
}
