/** Software for the card of toy-card.ts: a driver that gives pages and makes objects by commands, and regions of memory. */
import { CommandStatus } from '../../../abi/command-status.ts';
import { QpState } from '../../../abi/qpc.ts';
import { viewOf } from '../../../base/index.ts';
import { CommandDma } from '../commands/command-dma.ts';
import { CommandProcessor } from '../commands/command-processor.ts';
import type { DataPathBench, DataPathNode } from './data-path-bench.ts';
import type { Segment } from './data-path-regions.ts';
import type { ToyCard } from './toy-card.ts';
import type { ToyCompletions, ToyRings } from './toy-personality.ts';

const PAGE_BYTES = 4096;
const MAILBOX_DATA_BYTES = 64;
const FIRMWARE_PAGES = 3;
const PD = 3;
const EQN = 4;
/** All rights: see RIGHT_LOCAL_READ and the following. */
const ALL_RIGHTS = 31;

/** Numbers one after the other: 4 bytes each, or 8 if they are bigints. */
function input(...values: readonly (number | bigint)[]): Uint8Array {
  const bytes = new Uint8Array(
    values.reduce<number>((sum, value) => sum + (typeof value === 'bigint' ? 8 : 4), 0),
  );
  const view = viewOf(bytes);
  let at = 0;
  for (const value of values) {
    if (typeof value === 'bigint') view.setBigUint64(at, value, true);
    else view.setUint32(at, value, true);
    at += typeof value === 'bigint' ? 8 : 4;
  }
  return bytes;
}

/** Memory of software at a virtual address: its pages are in descending order. */
export class ToyRegion {
  readonly address = 0x7000_0000_0000;
  readonly pages: readonly number[];
  readonly lengthBytes: number;
  key = 0;
  readonly #node: DataPathNode;

  constructor(node: DataPathNode, pageCount: number) {
    this.#node = node;
    this.lengthBytes = pageCount * PAGE_BYTES;
    const base = node.allocate(this.lengthBytes);
    this.pages = Array.from({ length: pageCount }, (_, page) => base + (pageCount - 1 - page) * PAGE_BYTES);
  }

  part(offset: number, bytes: number): Segment {
    return { address: this.address + offset, bytes, key: this.key };
  }

  write(bytes: Uint8Array): void {
    for (const [index, byte] of bytes.entries()) this.#node.memory.bytes[this.#physical(index)] = byte;
  }

  read(offset: number, lengthBytes: number): Uint8Array {
    return Uint8Array.from(
      { length: lengthBytes },
      (_, index) => this.#node.memory.bytes[this.#physical(offset + index)]!,
    );
  }

  #physical(offset: number): number {
    return this.pages[Math.floor(offset / PAGE_BYTES)]! + (offset % PAGE_BYTES);
  }
}

export class ToyDriver {
  readonly node: DataPathNode;
  readonly #bench: DataPathBench;
  readonly #entryAddress: number;

  /** Makes the device's command processor, which the bench has not, with the commands of `card`. */
  constructor(bench: DataPathBench, node: DataPathNode, card: ToyCard) {
    this.#bench = bench;
    this.node = node;
    const { domain, reads, writes, dataPath } = node;
    const { qps, cqs, sram: bytes, allocateSram: allocate } = dataPath.parts;
    const commandSet = card.makeCommandSet({ qps, cqs });
    const processor = new CommandProcessor({
      domain,
      config: { commandDecodeCycles: 10, conditionPollCycles: 8 },
    });
    const { fillPatterns: patterns } = card;
    const dma = new CommandDma({ reads, writes, sram: { bytes, allocate }, writesInFlightMax: 2, patterns });
    const { source, commands, registers } = commandSet;
    dma.connect({ processor });
    processor.connect({
      source,
      commands,
      dma,
      events: { canPost: () => true, postCommand: () => undefined },
    });
    commandSet.connect({ dataPath: dataPath.control, processor });
    this.#entryAddress = node.allocate(64);
    this.#store = (offset, value) =>
      node.act(() => registers.write(offset, viewOf(input(value)), 0, 4, domain.cycle));
    this.#store(0, this.#entryAddress);
  }

  readonly #store: (offset: number, value: number) => void;

  /** Gives the firmware its pages. */
  async start(): Promise<void> {
    const pages = Array.from({ length: FIRMWARE_PAGES }, () => BigInt(this.node.allocate(PAGE_BYTES)));
    await this.must('P', 0, input(...pages));
  }

  /** Runs a command to its end. */
  async command(
    letter: string,
    number: number,
    bytes: Uint8Array,
  ): Promise<{ status: number; number: number }> {
    const { view } = this.node;
    const at = this.#entryAddress;
    view.setUint8(at + 1, letter.charCodeAt(0));
    view.setUint8(at + 2, 0xff);
    view.setUint32(at + 4, number, true);
    view.setBigUint64(at + 8, BigInt(this.#writeChain(bytes)), true);
    view.setUint32(at + 16, bytes.length, true);
    view.setUint8(at, 1);
    this.#store(4, 1);
    await this.#bench.until(() => view.getUint8(at) === 0, 500);
    return { status: view.getUint8(at + 2), number: view.getUint32(at + 4, true) };
  }

  /** Runs a command that must succeed. @returns the number in its entry */
  async must(letter: string, number: number, bytes: Uint8Array): Promise<number> {
    const outcome = await this.command(letter, number, bytes);
    if (outcome.status !== CommandStatus.OK) throw new Error(`${letter} ended with status ${outcome.status}`);
    return outcome.number;
  }

  async region(pageCount: number): Promise<ToyRegion> {
    const region = new ToyRegion(this.node, pageCount);
    const { address, lengthBytes, pages } = region;
    const head = [PD, ALL_RIGHTS, BigInt(address), BigInt(lengthBytes), 0, 0] as const;
    region.key = await this.must('K', 0, input(...head, ...pages.map(BigInt)));
    return region;
  }

  async cq(logEntries: number): Promise<ToyCompletions> {
    const bufferAddress = this.node.allocate(PAGE_BYTES);
    const recordAddress = this.node.allocate(8, 64);
    const bytes = input(logEntries, EQN, BigInt(recordAddress), BigInt(bufferAddress));
    return { cqn: await this.must('C', 0, bytes), logEntries, bufferAddress, recordAddress };
  }

  /** Rings of 2^logCount WQEs of 64 bytes, in one page. */
  async qp(cqn: number, logCount: number): Promise<ToyRings> {
    const sqAddress = this.node.allocate(PAGE_BYTES);
    const recordAddress = this.node.allocate(8, 64);
    const bytes = input(cqn, cqn, logCount, PD, BigInt(recordAddress), BigInt(sqAddress));
    const qpn = await this.must('Q', 0, bytes);
    return { qpn, sqAddress, rqAddress: sqAddress + 64 * 2 ** logCount, recordAddress };
  }

  /**
   * Moves the QP to RTR and RTS. @param gid of the peer, with which packets have a GRH
   */
  async connect(
    qpn: number,
    peerQpn: number,
    sendPsn: number,
    receivePsn: number,
    gid?: Uint8Array,
  ): Promise<void> {
    for (const state of [QpState.RTR, QpState.RTS]) {
      const { peerLid } = this.node;
      const head = input(state, peerQpn, peerLid, sendPsn, receivePsn, gid === undefined ? 0 : 1);
      await this.must('M', qpn, Uint8Array.of(...head, ...(gid ?? new Uint8Array(16))));
    }
  }

  #writeChain(bytes: Uint8Array): number {
    const { node } = this;
    let next = 0;
    const count = Math.ceil(bytes.length / MAILBOX_DATA_BYTES);
    for (let block = count - 1; block >= 0; block--) {
      const address = node.allocate(8 + MAILBOX_DATA_BYTES, 128);
      node.view.setBigUint64(address, BigInt(next), true);
      node.memory.bytes.set(
        bytes.subarray(block * MAILBOX_DATA_BYTES, (block + 1) * MAILBOX_DATA_BYTES),
        address + 8,
      );
      next = address;
    }
    return next;
  }
}
