/**
 * Wraps the DMA engines and the interrupts of the PCIe function in a device whose costs are attributed: every request
 * passes unchanged, and is counted for the work of the block that makes it.
 */
import { EventType } from '../../../abi/index.ts';
import { type BusAddress, type Cycles, viewOf } from '../../../base/index.ts';
import { tlpCountOf } from '../../dma/index.ts';
import type { EqTable } from '../events/index.ts';
import type { EventFormat } from '../host-interface/index.ts';
import {
  type ContextMisses,
  type DmaReads,
  type DmaWrites,
  type InterruptPort,
  PORT_COMPLETION,
  PORT_RECEIVE_FETCH,
  PORT_RECEIVER,
  PORT_REQUESTER,
  PORT_RESPONSE,
  PORT_WQE_FETCH,
  type ReadRequesterPort,
  type WriteRequesterPort,
} from '../memory/index.ts';
import type { CostAttribution } from './cost-attribution.ts';

/** Which port's work a requester is busy with; those left out belong to the control side. */
const portOfRequester: Readonly<Record<string, number>> = {
  wqeRead: PORT_WQE_FETCH,
  payloadRead: PORT_REQUESTER,
  responseRead: PORT_RESPONSE,
  atomicRead: PORT_RESPONSE,
  atomicWrite: PORT_RESPONSE,
  payloadWrite: PORT_RECEIVER,
  receiveRecord: PORT_RECEIVE_FETCH,
  receiveWqeRead: PORT_RECEIVE_FETCH,
  cqRecord: PORT_COMPLETION,
  cqe: PORT_COMPLETION,
};
/** Requesters whose owner is found at each call: the translator's by the port that is its cookie, the caches' by {@link missing}. */
const TRANSLATION = -1;
const CONTEXT = -2;
const CONTROL = -3;
const EVENT = -4;

const sourceOf = (name: string): number => {
  if (name === 'translation') return TRANSLATION;
  if (/^(qpc|cqc|srqc)(Read|Write)$/.test(name)) return CONTEXT;
  if (name === 'eqe') return EVENT;
  return portOfRequester[name] ?? CONTROL;
};

/** The limit that determines how a read is split into TLPs. */
export interface TransferLimits {
  maxReadRequestBytes(): number;
}

/** Records the port for which the context caches make their next requests. */
export class MissingPort implements ContextMisses {
  port = PORT_WQE_FETCH;

  contextMissed(port: number): void {
    this.port = port;
  }
}

export class AttributedReads implements DmaReads {
  readonly #reads: DmaReads;
  readonly #costs: CostAttribution;
  readonly #limits: TransferLimits;
  readonly #missing: MissingPort;
  readonly #sources: number[] = [];
  readonly #classes: number[] = [];

  constructor(reads: DmaReads, costs: CostAttribution, limits: TransferLimits, missing: MissingPort) {
    this.#reads = reads;
    this.#costs = costs;
    this.#limits = limits;
    this.#missing = missing;
  }

  get requesters(): DmaReads['requesters'] {
    return this.#reads.requesters;
  }

  addRequester(options: Parameters<DmaReads['addRequester']>[0], port: ReadRequesterPort): number {
    const requester = this.#reads.addRequester(options, port);
    this.#sources[requester] = sourceOf(options.name);
    this.#classes[requester] = options.trafficClass;
    return requester;
  }

  canRequest(requester: number): boolean {
    return this.#reads.canRequest(requester);
  }

  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    sramOffset: number,
    cookie: number,
  ): void {
    const count = tlpCountOf(address, lengthBytes, this.#limits.maxReadRequestBytes());
    const source = this.#sources[requester]!;
    const trafficClass = this.#classes[requester]!;
    if (source === CONTROL) this.#costs.controlRead(trafficClass, count);
    else if (source === TRANSLATION) this.#costs.read(cookie, trafficClass, count);
    else this.#costs.read(source === CONTEXT ? this.#missing.port : source, trafficClass, count);
    this.#reads.request(requester, address, lengthBytes, sramOffset, cookie);
  }

  withdrawPlaces(): void {
    this.#reads.withdrawPlaces();
  }
}

export class AttributedWrites implements DmaWrites {
  readonly #writes: DmaWrites;
  readonly #costs: CostAttribution;
  readonly #missing: MissingPort;
  readonly #events: Pick<EventFormat, 'typeAt' | 'cqnAt'>;
  #eqs: EqTable | undefined;
  readonly #sources: number[] = [];
  readonly #classes: number[] = [];

  constructor(
    writes: DmaWrites,
    costs: CostAttribution,
    missing: MissingPort,
    events: Pick<EventFormat, 'typeAt' | 'cqnAt'>,
  ) {
    this.#events = events;
    this.#writes = writes;
    this.#costs = costs;
    this.#missing = missing;
  }

  /** Connects the event queues, which are created later. */
  connect({ eqs }: { readonly eqs: EqTable }): void {
    this.#eqs = eqs;
  }

  get requesters(): DmaWrites['requesters'] {
    return this.#writes.requesters;
  }

  tlpCount(address: BusAddress, lengthBytes: number): number {
    return this.#writes.tlpCount(address, lengthBytes);
  }

  addRequester(options: Parameters<DmaWrites['addRequester']>[0], port?: WriteRequesterPort): number {
    const requester = this.#writes.addRequester(options, port);
    this.#sources[requester] = sourceOf(options.name);
    this.#classes[requester] = options.trafficClass;
    return requester;
  }

  canRequest(requester: number): boolean {
    return this.#writes.canRequest(requester);
  }

  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    source: Uint8Array,
    sourceOffset: number,
    cookie: number,
  ): void {
    const count = this.#writes.tlpCount(address, lengthBytes);
    const trafficClass = this.#classes[requester]!;
    const from = this.#sources[requester]!;
    if (from === EVENT) this.#countEvent(source, sourceOffset, trafficClass, count);
    else if (from === CONTROL) this.#costs.controlWrite(trafficClass, count);
    else this.#costs.write(from === CONTEXT ? this.#missing.port : from, trafficClass, count);
    this.#writes.request(requester, address, lengthBytes, source, sourceOffset, cookie);
  }

  #countEvent(source: Uint8Array, offset: number, trafficClass: number, count: number): void {
    const view = viewOf(source);
    const isCompletion = this.#events.typeAt(view, offset) === EventType.COMP;
    const cqn = isCompletion ? this.#events.cqnAt(view, offset) : undefined;
    const eqn = cqn === undefined ? undefined : this.#costs.eqnOf(cqn);
    const slot = eqn === undefined || this.#eqs === undefined ? -1 : this.#eqs.slotOf(eqn);
    const vector = slot === -1 ? undefined : this.#eqs?.vector[slot];
    this.#costs.eventWritten(cqn, vector, trafficClass, count);
  }
}

/** Interrupts on their way to the function: counts those that it accepts. */
export class AttributedInterrupts implements InterruptPort {
  readonly #interrupts: InterruptPort;
  readonly #costs: CostAttribution;

  constructor(interrupts: InterruptPort, costs: CostAttribution) {
    this.#interrupts = interrupts;
    this.#costs = costs;
  }

  get msixEnabled(): boolean {
    return this.#interrupts.msixEnabled;
  }

  requestInterrupt(vector: number, cycle: Cycles): boolean {
    const isTaken = this.#interrupts.requestInterrupt(vector, cycle);
    if (isTaken) this.#costs.interrupted(vector);
    return isTaken;
  }

  setIntx(isAsserted: boolean, cycle: Cycles): void {
    if (isAsserted) this.#costs.pinAsserted();
    this.#interrupts.setIntx(isAsserted, cycle);
  }
}
