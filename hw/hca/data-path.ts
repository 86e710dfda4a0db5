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
import { type Carried, type DataPathParts, type DataPathSite, makeParts } from './data-path-parts.ts';
import { dataPathWires, type EventQueues, enginesFor } from './data-path-wires.ts';
import type { DataPathControl } from './host-interface/index.ts';
import type { TransportParts, TransportRoles } from './transport/index.ts';

export interface DataPathSetup<Parts extends TransportParts, Blocks extends object>
  extends DataPathSite<Parts, Blocks> {
  readonly eventQueues: EventQueues;
}

/** @typeParam Parts of the transport, and its Blocks */
export class DataPath<Parts extends TransportParts, Blocks extends object> {
  readonly parts: DataPathParts<Parts>;
  readonly blocks: DataPathBlocks<Blocks>;
  readonly roles: TransportRoles;
  readonly #carries: Carried;
  readonly #all: readonly (readonly [string, Block])[];

  constructor(setup: DataPathSetup<Parts, Blocks>) {
    const { eventQueues, ...site } = setup;
    const { transport, tables, carries } = site;
    this.parts = makeParts(site);
    const { engines, own, all } = makeBlocks(this.parts, transport);
    this.blocks = all;
    this.roles = transport.rolesOf(own);
    this.#carries = carries;
    this.#all = Object.entries<Block>(all);
    const surroundings = { eventQueues, dataPath: this };
    connectBlocks(own, transport.wires(own, enginesFor(engines, carries)));
    connectBlocks(
      { ...tables, ...engines },
      dataPathWires({ ...engines, ...surroundings }, this.roles, carries),
    );
  }

  /** The interface that the command processor uses. */
  get control(): DataPathControl {
    return this.blocks.objects;
  }

  /** The blocks at an Ethernet port: the receiver of its frames, and the block that waits for room in it. */
  get frameEnds() {
    const { frameReceiver, frameTransmitter, outbound } = this.blocks;
    return this.#carries === 'both'
      ? { receiver: this.roles.frameSink, sender: outbound }
      : { receiver: frameReceiver, sender: frameTransmitter };
  }

  /** The cycle accounts of all blocks that have one. */
  get accounts(): readonly BlockAccount[] {
    const b = this.blocks;
    const { outbound, inbound, responses, otherAccounts } = this.roles;
    const ends = {
      packets: [outbound, inbound],
      frames: [b.frameTransmitter, b.frameReceiver],
      both: [outbound, b.frameTransmitter, inbound],
    };
    const accounts = [
      b.doorbells,
      b.wqeFetch,
      b.requester,
      ...ends[this.#carries],
      responses,
      b.receives,
      b.keys,
      b.completions,
      b.flusher,
      b.asyncEvents,
    ].map(({ account }) => account);
    return [...accounts, ...otherAccounts];
  }

  /**
   * Resets every block, from requesting to serving ones: drops every context, all work, and the counters that software
   * reads. The report's statistics stay.
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

  /**
   * Returns the state of each block, by name (see {@link Block.inspect}), and the numeric fields of the queue pairs.
   */
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
