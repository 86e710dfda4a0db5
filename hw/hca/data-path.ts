/**
 * The data path of the HCA: everything between a doorbell and its completion. data-path-parts.ts makes
 * the memories and queues, data-path-blocks.ts the blocks; data-path-wires.ts connects them. The command processor speaks to
 * {@link DataPath.control}.
 *
 *   doorbells ─> scheduler ─> requester ─> packet queue ─> transmitter ─> wire port
 *                  ^   ^          │ WQE fetch, translator, DMA reads
 *                  │   └──────────┘
 *                                                            └─> loopback ─┐
 *   acknowledgements <─ receiver <─────────────────────────────────────────┴── wire port
 *          │               └─> responder ─> payload writes, response engine ─> packet queue ─> transmitter
 *          └──────> completion writer <─┘        (receive-WQE fetch)
 */
import { QpState } from '../../abi/index.ts';
import { type Block, type BlockAccount, type BlockState, connectBlocks } from '../../sim/index.ts';
import { type DataPathBlocks, makeBlocks } from './data-path-blocks.ts';
import { type DataPathParts, type DataPathSite, makeParts } from './data-path-parts.ts';
import { type Carried, dataPathWires, type EventQueues } from './data-path-wires.ts';
import type { DataPathControl } from './host-interface/index.ts';

export interface DataPathSetup extends DataPathSite {
  readonly eventQueues: EventQueues;
}

export class DataPath {
  readonly parts: DataPathParts;
  readonly blocks: DataPathBlocks;
  readonly #all: readonly (readonly [string, Block])[];

  constructor(setup: DataPathSetup) {
    const { eventQueues, ...site } = setup;
    this.parts = makeParts(site);
    this.blocks = makeBlocks(this.parts);
    this.#all = Object.entries<Block>(this.blocks);
    const wired = { ...setup.tables, ...this.blocks };
    connectBlocks(wired, dataPathWires({ ...this.blocks, eventQueues, dataPath: this }, this.#carried));
  }

  get #carried(): Carried {
    if (this.parts.ethernet === undefined) return 'packets';
    return this.parts.roceLink.isOn ? 'both' : 'frames';
  }

  /** What the command processor speaks to. */
  get control(): DataPathControl {
    return this.blocks.objects;
  }

  /** The cycle accounts of all blocks that have one. */
  get accounts(): readonly BlockAccount[] {
    const b = this.blocks;
    const ends = {
      packets: [b.transmitter, b.receiver],
      frames: [b.frameTransmitter, b.frameReceiver],
      both: [b.transmitter, b.frameTransmitter, b.receiver],
    };
    return [
      b.doorbells,
      b.wqeFetch,
      b.requester,
      ...ends[this.#carried],
      b.responses,
      b.receives,
      b.keys,
      b.completions,
      b.flusher,
      b.asyncEvents,
    ].map(({ account }) => account);
  }

  /**
   * Forgets every context and all work, from the side that asks to the side that serves, and what it has counted for software. The
   * report's statistics stay.
   */
  reset(): void {
    const { qps, records, diagnostics } = this.parts;
    const { completion } = this.blocks;
    for (const slot of qps.liveSlots()) {
      const pair = qps.rows[slot]!;
      completion.dropAll(pair);
      pair.state = QpState.RST;
      pair.sendGeneration++;
      pair.inPipelineCount = 0;
    }
    for (const [, block] of this.#all.toReversed()) block.reset?.();
    records.reset();
    diagnostics.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    for (const account of this.accounts) account.rebase(cycles);
    this.parts.qps.rebase(ps, cycles);
    this.parts.records.rebase(cycles);
    this.parts.readUnit.rebase(cycles);
    for (const [, block] of this.#all) block.rebase?.(cycles);
  }

  /** What each block holds, by name: see {@link Block.inspect}; and the queue pairs, as far as they are numbers. */
  inspect(): BlockState {
    const { qps, records } = this.parts;
    const queuePairs = Object.fromEntries(
      Array.from(qps.liveSlots(), (slot) => [qps.numberOf[slot]!, numbersOf(qps.rows[slot]!)]),
    );
    const blocks = this.#all.flatMap(([name, block]) => (block.inspect ? [[name, block.inspect()]] : []));
    return {
      ...Object.fromEntries(blocks),
      queuePairs,
      recordsInUse: records.capacity - records.freeCount,
    };
  }
}

function numbersOf(row: object): BlockState {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => typeof value === 'number'));
}
