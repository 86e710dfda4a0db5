/**
 * A test bench for the DMA engines: a link to a plain memory that records the TLPs sent, and answers as the spec requests. One
 * clock of 1 GHz: cycle n is at n × 1000 ps. For specs only.
 */

import { type Cycles, defaultsOf, type Picoseconds } from '../../base/index.ts';
import { ChannelReader, type ClockDomain, channelBufferBytes, LogicalProcess } from '../../sim/index.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  descriptorOf,
  FLAG_POISONED,
  FLAG_STATUS_SHIFT,
  type LinkSender,
  MemoryReadFields,
  MemoryWriteFields,
  PAYLOAD_OFFSET,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
} from '../pcie/index.ts';
import { DmaReadEngine } from './dma-read-engine.ts';
import { DmaWriteEngine } from './dma-write-engine.ts';
import type { DmaReadLink, DmaWriteLink } from './link.ts';
import { type DmaConfig, dmaParameters } from './parameters.ts';

export const MEMORY_BYTES = 1 << 16;
const SLOT_BYTES = 8192;
const SLOT_COUNT = 128;

/** A memory read that was sent, and the progress of its answer. */
export interface SentRead {
  readonly timePs: Picoseconds;
  readonly address: number;
  readonly bytes: number;
  readonly tag: number;
  readonly trafficClass: number;
  readonly requesterId: number;
  answeredBytes: number;
}

export interface SentWrite {
  readonly timePs: Picoseconds;
  readonly address: number;
  readonly bytes: number;
  readonly trafficClass: number;
}

export class ScriptedLink implements DmaReadLink, DmaWriteLink {
  readonly memory = new Uint8Array(MEMORY_BYTES);
  readonly reader: ChannelReader;
  readonly returnsCompletionCredits: boolean;
  readonly reads: SentRead[] = [];
  readonly writes: SentWrite[] = [];
  /** Records announced and not yet consumed. */
  heldRecords = 0;
  /** Number of TLPs that each flow still accepts. */
  readonly room = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  readonly read = new MemoryReadFields();
  readonly write = new MemoryWriteFields();
  announce: (offset: number) => void = () => {};
  onRead: (read: SentRead) => void = () => {};
  readonly #lp: LogicalProcess;
  #senders: readonly LinkSender[] = [];
  readonly #freeSlots = Array.from({ length: SLOT_COUNT }, (_, slot) => slot);

  constructor(lp: LogicalProcess, returnsCompletionCredits: boolean) {
    this.#lp = lp;
    this.returnsCompletionCredits = returnsCompletionCredits;
    this.reader = new ChannelReader(new SharedArrayBuffer(channelBufferBytes(SLOT_BYTES * SLOT_COUNT)));
  }

  passCompletion(offset: number): void {
    this.consume(offset);
  }

  countCompletions(): void {}

  /** This link has no credits. */
  passLimits(): boolean {
    return false;
  }

  canSend(flow: number): boolean {
    return this.room[flow]! > 0;
  }

  /** The engines that send posted and non-posted TLPs. */
  connect(senders: readonly [posted: LinkSender, nonPosted: LinkSender]): void {
    this.#senders = senders;
  }

  /** Lets a flow accept `count` more TLPs. */
  makeRoom(flow: number, count: number): void {
    this.room[flow] = this.room[flow]! + count;
    this.#senders[flow]!.linkSpace();
  }

  sendMemoryRead(): void {
    const { address, trafficClass, lengthBytes: bytes, tag, requesterId } = this.read;
    this.room[1] = this.room[1]! - 1;
    const timePs = this.#lp.nowPs;
    const read = { timePs, address, bytes, tag, trafficClass, requesterId, answeredBytes: 0 };
    this.reads.push(read);
    this.onRead(read);
  }

  sendMemoryWrite(): void {
    const { address, trafficClass, source, sourceOffset, lengthBytes: bytes } = this.write;
    this.room[0] = this.room[0]! - 1;
    this.memory.set(source.subarray(sourceOffset, sourceOffset + bytes), address % MEMORY_BYTES);
    this.writes.push({ timePs: this.#lp.nowPs, address, bytes, trafficClass });
  }

  /** Answers the next `bytes` of a read. */
  answer(read: SentRead, bytes = read.bytes - read.answeredBytes, flags = 0): void {
    const from = (read.address + read.answeredBytes) % MEMORY_BYTES;
    const remaining = read.bytes - read.answeredBytes;
    const offset = this.record(COMPLETION_DATA, read.tag, flags, bytes, remaining);
    const data = this.memory.subarray(from, from + bytes);
    this.reader.bytes.set(data, offset + PAYLOAD_OFFSET);
    read.answeredBytes += bytes;
    this.announce(offset);
  }

  answerPoisoned(read: SentRead, bytes: number): void {
    this.answer(read, bytes, FLAG_POISONED);
  }

  /** Ends a read by a completion with an error status. */
  refuse(read: SentRead, status: number): void {
    const remaining = read.bytes - read.answeredBytes;
    this.announce(this.record(COMPLETION, read.tag, status << FLAG_STATUS_SHIFT, 0, remaining));
  }

  /** A record in its own slot; returns its offset. */
  record(kind: number, tag: number, flags: number, bytes: number, byteCount: number): number {
    const offset = this.#freeSlots.shift()! * SLOT_BYTES;
    const word = offset >> 2;
    const { words } = this.reader;
    words[word + WORD_KIND] = kind;
    words[word + WORD_FLAGS] = flags;
    words[word + WORD_DESCRIPTOR] = descriptorOf(0, tag, 0);
    words[word + WORD_LENGTH] = bytes;
    words[word + WORD_BYTE_COUNT] = byteCount;
    this.heldRecords++;
    return offset;
  }

  consume(offset: number): void {
    this.heldRecords--;
    this.#freeSlots.push(offset / SLOT_BYTES);
  }
}

/** Answers of the PCIe function. */
export class FakeFunction {
  isMaster = true;
  maxPayload = 256;
  maxReadRequest = 512;
  isBusMaster = (): boolean => this.isMaster;
  maxReadRequestBytes = (): number => this.maxReadRequest;
  maxPayloadBytes = (): number => this.maxPayload;
  tagCountMax = 256;
  completionTimeoutPs = 10_000_000_000;
  readonly reported: string[] = [];
  requesterId = (): number => 0x0100;
  reportUnexpectedCompletion = (): unknown => this.reported.push('unexpected');
  reportCompletionTimeout = (): unknown => this.reported.push('timeout');
}

export class DmaBench {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: ScriptedLink;
  readonly pcieFunction = new FakeFunction();
  readonly sram = new Uint8Array(new SharedArrayBuffer(1 << 16));
  readonly config: DmaConfig;
  readonly reads: DmaReadEngine;
  readonly writes: DmaWriteEngine;
  readonly #actions = new Map<number, (() => void)[]>();
  readonly #stage: number;
  readonly #events: (() => void)[] = [];
  readonly #event: number;

  /** @param addStages adds stages before (downstream of) the engines */
  constructor(
    changes: Partial<DmaConfig> = {},
    returnsCompletionCredits = false,
    addStages: (domain: ClockDomain) => void = () => {},
  ) {
    this.config = { ...defaultsOf(dmaParameters), ...changes };
    this.lp = new LogicalProcess('hca');
    this.domain = this.lp.addClockDomain(1000);
    addStages(this.domain);
    this.link = new ScriptedLink(this.lp, returnsCompletionCredits);
    const { lp, domain, link, pcieFunction, config, sram } = this;
    this.writes = new DmaWriteEngine({ lp, domain, link, config });
    this.reads = new DmaReadEngine({ lp, domain, link, config, sram, hasEarlyPlacement: true });
    for (const engine of [this.writes, this.reads]) engine.connect({ pcieFunction });
    link.connect([this.writes, this.reads]);
    link.announce = (offset) => {
      if (this.reads.completionRuns?.receiveCompletionRun(offset) !== true)
        this.reads.receiveCompletion(offset);
    };
    this.#stage = domain.addStage((cycle) => this.#act(cycle));
    this.#event = lp.queue.addHandler((index) => this.#events[index]!());
    for (let index = 0; index < MEMORY_BYTES; index++) link.memory[index] = (index * 7 + (index >> 8)) & 0xff;
  }

  /** Runs an action at a clock edge, upstream of the engines. */
  atCycle(cycle: Cycles, action: () => void): void {
    const actions = this.#actions.get(cycle) ?? [];
    actions.push(action);
    this.#actions.set(cycle, actions);
    this.domain.wake(this.#stage, cycle);
  }

  /** Runs an action at every edge from `cycle` on until it returns false. */
  everyCycle(cycle: Cycles, action: () => boolean): void {
    this.atCycle(cycle, () => {
      if (action()) this.everyCycle(this.domain.cycle + 1, action);
    });
  }

  /** Runs an action at an instant, outside any edge, as a link does. */
  atPs(timePs: Picoseconds, action: () => void): void {
    this.#events.push(action);
    this.lp.queue.schedule(timePs, this.#event, this.#events.length - 1);
  }

  /** Answers every read `delayPs` after it was sent, completely. */
  answerAll(delayPs: Picoseconds): void {
    this.link.onRead = (read) => this.atPs(this.lp.nowPs + delayPs, () => this.link.answer(read));
  }

  /** Runs everything before the edge of `cycle`. */
  runTo(cycle: Cycles): void {
    this.lp.advance(cycle * 1000);
  }

  #act(cycle: Cycles): void {
    const actions = this.#actions.get(cycle) ?? [];
    this.#actions.delete(cycle);
    for (const action of actions) action();
    const next = Math.min(...this.#actions.keys());
    if (next < Number.POSITIVE_INFINITY) this.domain.wake(this.#stage, next);
  }
}
