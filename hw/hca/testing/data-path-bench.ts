/**
 * A miniature machine around two data paths: per node a host memory behind a root complex, a real PCIe link, real DMA
 * engines and a {@link DataPath}; between the nodes a real cable. Only the control side is missing: specs write contexts
 * into the tables and call the data path as the command processor would (data-path-verbs.ts does it for them).
 *
 *   memory ── root complex ── PCIe ── DMA engines ── DataPath a ══ cable ══ DataPath b ── DMA engines ── PCIe ── …
 *
 * What software and commands do is queued with {@link DataPathNode.act} and done at clock edges of the HCA, one an edge.
 * Every packet that reaches a node is noted, and can be dropped or added. When a spec ends, the statistics must be balanced.
 */

import { expect, onTestFinished } from 'vitest';
import type { addressPath } from '../../../abi/address-path.ts';
import type { qpc } from '../../../abi/qpc.ts';
import type { Initial } from '../../../base/index.ts';
import { defaultsOf } from '../../../base/parameter.ts';
import type { Cycles } from '../../../base/units.ts';
import {
  ChannelReader,
  ChannelWriter,
  type ClockDomain,
  type LogicalProcess,
  Random,
  SingleRunner,
} from '../../../sim/index.ts';
import {
  dataRateMbpsOf,
  type EthernetConfig,
  EthernetPort,
  ethernetChannelBytes,
  ethernetFrameBytesMax,
  ethernetParameters,
  loopbackPlug,
  type WireConfig,
  WirePort,
  wireChannelBytes,
  wireParameters,
  withTag,
} from '../../../wire/index.ts';
import { FakeFunction } from '../../dma/dma-bench.ts';
import { type DmaConfig, DmaReadEngine, DmaWriteEngine, dmaParameters } from '../../dma/index.ts';
import { linkPair } from '../../pcie/link/link-bench.ts';
import { PayloadReferences } from '../../pcie/link/payload-references.ts';
import { ZeroCopyWriter } from '../../pcie/link/zero-copy-writer.ts';
import { RootComplex } from '../../pcie/root-complex/root-complex.ts';
import { BenchMemory } from '../../pcie/root-complex/root-complex-bench.ts';
import { rootComplexParameters } from '../../pcie/root-complex/root-complex-parameters.ts';
import { COMPLETION, COMPLETION_DATA, SIDEBAND_WORD_CHANGED, WORD_AUX } from '../../pcie/tlp/tlp.ts';
import { capabilityParameters } from '../capabilities.ts';
import { connectX3 } from '../connectx3/connectx3.ts';
import { IcmMap } from '../connectx3/icm-map.ts';
import { DataPath } from '../data-path.ts';
import { makeTables } from '../data-path-parts.ts';
import type { Personality } from '../host-interface/index.ts';
import { type CongestionConfig, congestionDefaults } from '../ibta/congestion/index.ts';
import { type IbtaAttachment, type IbtaBlocks, type IbtaParts, ibtaTransport } from '../ibta/index.ts';
import type { EmbeddedManager } from '../ibta/receiver/index.ts';
import { MulticastGroups } from '../ibta/receiver/multicast-groups.ts';
import type { SramAllocator } from '../memory/dma-ports.ts';
import { type HcaConfig, hcaParameters } from '../parameters.ts';
import { type EthernetAttachment, EthernetSide, type EthernetSideSetup } from '../port/index.ts';
import type { OperationTap } from '../statistics/operations.ts';
import type { Transport, TransportParts } from '../transport/index.ts';
import { BenchAddress } from './bench-address.ts';
import { EventLog } from './event-log.ts';
import { pathToNode, type RoceForm, roceFields, setRoceTables } from './roce-ends.ts';
import { TappedPort } from './tapped-port.ts';

const MEMORY_BYTES = 32 << 20;
const SRAM_BYTES = 2 << 20;
/** Everything allocated by specs lies above this. */
const FIRST_FREE_BYTE = 0x80_0000;
/** BAR2: 64 UAR pages, then their BlueFlame pages, halves of 256 bytes. */
export const UAR_AREA_BYTES = 64 * 4096;
const BLUE_FLAME_HALF_BYTES = 256;
/** Host address of ICM address 0; ICM is mapped page by page in descending order, so that no two are neighbours. */
const ICM_HOST_BASE = 0x10_0000;
const ICM_PAGES = 0x400;
const logEntries = 10;
/** Positions of the tables in ICM. */
const icmPlaces = {
  qpc: { base: 0x00_0000, entryBytes: 256, logEntries },
  cqc: { base: 0x04_0000, entryBytes: 64, logEntries },
  srqc: { base: 0x05_0000, entryBytes: 64, logEntries },
  eqc: { base: 0x06_0000, entryBytes: 64, logEntries },
  auxc: { base: 0x07_0000, entryBytes: 64, logEntries },
  altc: { base: 0x07_0000, entryBytes: 64, logEntries },
  rdmarc: { base: 0x07_0000, entryBytes: 32, logEntries },
  mcg: { base: 0x07_0000, entryBytes: 64, logEntries },
  dmpt: { base: 0x08_0000, entryBytes: 64, logEntries: 12 },
  mtt: { base: 0x10_0000, entryBytes: 8, logEntries: 18 },
} as const;

/** The smallest sizes a configuration can have: everything stalls on everything. */
export const tightest: Partial<HcaConfig> = {
  transmitBufferPackets: 2,
  responseBufferPackets: 2,
  completionFifoDepth: 2,
  outstandingWqes: 4,
  outstandingWqesPerQp: 2,
  wqeLineCount: 2,
  receiveQueueLineCount: 2,
  wqePrefetchCount: 1,
  receivePrefetchCount: 1,
  wqeFetchOutstanding: 1,
  burstPackets: 1,
  qpcCacheEntries: 2,
  qpcCacheWays: 2,
  cqcCacheEntries: 1,
  cqcCacheWays: 1,
  srqcCacheEntries: 1,
  srqcCacheWays: 1,
  mptCacheEntries: 2,
  mptCacheWays: 2,
  mttCacheLines: 2,
  mttCacheWays: 2,
};

/** Each context and translation evicts the one before. */
export const oneLineCaches = {
  qpcCacheEntries: 1,
  qpcCacheWays: 1,
  cqcCacheEntries: 1,
  cqcCacheWays: 1,
  mptCacheEntries: 1,
  mptCacheWays: 1,
  mttCacheLines: 1,
  mttCacheWays: 1,
};

export interface BenchOptions {
  readonly hca?: Partial<HcaConfig>;
  readonly dma?: Partial<DmaConfig>;
  readonly wire?: Partial<WireConfig>;
  /** Ports of Ethernet; left out: of InfiniBand. */
  readonly ethernet?: Partial<EthernetConfig>;
  /** Offloads of these ports; none if omitted. */
  readonly offloads?: Pick<EthernetSideSetup, 'receiveChecksums' | 'logMaxLsoBytes' | 'flowCounterCount'>;
  /** Form of RoCE of Ethernet ports; omitted: no RoCE. */
  readonly roce?: RoceForm;
  /** Congestion control; left out: none. */
  readonly congestion?: Partial<CongestionConfig>;
  /** Whether static rates of paths are kept; left out: they are not. */
  readonly keepsStaticRates?: boolean;
  /** 48 bits of the nodes' MACs; left out: 0. */
  readonly macs?: { readonly a: number; readonly b: number };
  /** Both ends of an Ethernet cable send PAUSE frames and heed them. */
  readonly hasFlowControl?: boolean;
  /** Reorders what one instant leaves unordered. */
  readonly shuffleSeed?: number;
  readonly tap?: OperationTap;
  /** The host interface, made of that of the ConnectX-3, which is used if this is left out. */
  readonly personality?: (card: Personality) => Personality;
}

const wireConfigOf = ({ wire }: BenchOptions): WireConfig => ({
  ...defaultsOf(wireParameters),
  trainingUs: 0,
  ...wire,
});

const isEthernetBench = ({ ethernet, roce }: BenchOptions): boolean =>
  ethernet !== undefined || roce !== undefined;

function roceVersions({ roce }: BenchOptions): 'none' | 'v1' | 'v2' {
  if (roce === undefined) return 'none';
  return roce === 'v1' ? 'v1' : 'v2';
}

const ethernetConfigOf = ({ ethernet }: BenchOptions): EthernetConfig =>
  withTag({ ...defaultsOf(ethernetParameters), trainingUs: 0, ...ethernet });

/** A transport for the nodes of a bench: its construction, and the blocks that it connects to the port of the cable. */
export interface Carrier<Parts extends TransportParts, Blocks extends object> {
  transportOf(attachment: IbtaAttachment): Transport<Parts, Blocks>;
  connect(port: TappedPort, blocks: Blocks): void;
  /** Whether its packets share an Ethernet port with the frames of rings, regardless of the options for RoCE. */
  readonly isForFrames?: boolean;
}

export const ibtaCarrier: Carrier<IbtaParts, IbtaBlocks> = {
  transportOf: ibtaTransport,
  connect: (port, { receiver, transmitter }) => port.connect({ receiver, sender: transmitter }),
};

/** A node with any transport. */
export type AnyNode = DataPathNode<TransportParts, object>;

export class DataPathNode<Parts extends TransportParts = IbtaParts, Blocks extends object = IbtaBlocks> {
  readonly lp: LogicalProcess;
  readonly hostLp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly memory: BenchMemory;
  readonly rootComplex: RootComplex;
  readonly view: DataView;
  /** LID of the node at the other end of the cable. */
  readonly peerLid: number;
  /** Fields of QP contexts on an Ethernet port; their paths lead to the node at the other end. */
  readonly roceFields: Initial<typeof qpc> = {};
  readonly rocePath: Initial<typeof addressPath> = {};
  readonly config: HcaConfig;
  readonly icm = new IcmMap();
  readonly events: EventLog;
  readonly address: BenchAddress;
  readonly groups = new MulticastGroups();
  /** The embedded subnet manager's handling of a MAD; specs that give it a LID replace this. */
  answers: (mad: Uint8Array) => boolean = () => false;
  /** Datagrams that follow each answer, one per entry. */
  readonly following: ((mad: Uint8Array) => void)[] = [];
  specialQpBase = 0;
  readonly reads: DmaReadEngine;
  readonly writes: DmaWriteEngine;
  readonly wire: WirePort;
  /** Undefined with ports of InfiniBand; with those of Ethernet `wire` is off. */
  readonly ethernet: EthernetAttachment | undefined;
  /** Its end of the channel from the other node. */
  readonly wireReader: ChannelReader;
  /** References that the root complex reads payload by. */
  readonly references: PayloadReferences;
  readonly port: TappedPort;
  readonly dataPath: DataPath<Parts, Blocks>;
  readonly #actions: (() => void)[] = [];
  readonly #stage: number;
  #nextByte = FIRST_FREE_BYTE;
  #nextMttByte = 0;
  #nextMptIndex = 256;

  constructor(
    name: string,
    out: SharedArrayBuffer,
    into: SharedArrayBuffer,
    options: BenchOptions,
    shuffle: (() => number) | undefined,
    carrier: Carrier<Parts, Blocks>,
  ) {
    const pair = linkPair(shuffle === undefined ? {} : { shuffle });
    this.lp = pair.deviceLp;
    this.hostLp = pair.hostLp;
    this.domain = this.lp.addClockDomain(427);
    this.memory = new BenchMemory(MEMORY_BYTES);
    this.view = new DataView(this.memory.bytes.buffer);
    const { lp, domain } = this;
    const link = pair.device;
    const sram = new Sram(SRAM_BYTES);
    const dma = { ...defaultsOf(dmaParameters), ...options.dma };
    const pcieFunction = new FakeFunction();
    const isEthernet = isEthernetBench(options);
    const cable = { writer: new ChannelWriter(out), reader: new ChannelReader(into) };
    const wireConfig = wireConfigOf(options);
    const ends = isEthernet ? loopbackPlug(wireConfig) : cable;
    this.wireReader = ends.reader;
    this.references = new PayloadReferences(this.wireReader.bytes);
    const engine = { lp, domain, config: dma };
    this.writes = new DmaWriteEngine({ ...engine, link: new ZeroCopyWriter(link, this.references) });
    this.reads = new DmaReadEngine({ ...engine, link, sram: sram.bytes, hasEarlyPlacement: true });
    for (const made of [this.writes, this.reads]) made.connect({ pcieFunction });
    this.rootComplex = new RootComplex({
      lp: pair.hostLp,
      config: defaultsOf(rootComplexParameters),
      end: pair.rootPort,
      port: pair.host,
      memory: this.memory,
      interrupts: { message: () => undefined, intx: () => undefined },
      coreCount: 1,
      trafficClasses: { register: 12, config: 13 },
      device: { earlyPlaces: this.reads.earlyPlaces, references: this.references },
    });
    const receiveTlp = (offset: number, kind: number): void => {
      if (kind === COMPLETION_DATA || kind === COMPLETION) return this.reads.receiveCompletion(offset);
      const number = link.reader.words[(offset >> 2) + WORD_AUX]!;
      link.consume(offset);
      if (kind === SIDEBAND_WORD_CHANGED) this.dataPath.blocks.flusher.recordChanged(number);
    };
    link.connect({
      receiver: { receiveTlp },
      completionRuns: this.reads.completionRuns,
      posted: [this.writes],
      nonPosted: [this.reads],
      completion: [],
    });
    this.#mapIcm();
    this.wire = new WirePort({ lp, config: wireConfig, ...ends, references: this.references });
    const ethernetConfig = ethernetConfigOf(options);
    this.ethernet = isEthernet ? ethernetOf(lp, ethernetConfig, cable, options, name) : undefined;
    this.events = new EventLog();
    this.address = new BenchAddress(name === 'a' ? 1 : 2);
    this.peerLid = name === 'a' ? 2 : 1;
    if (options.roce !== undefined) {
      setRoceTables(this.address, this.ethernet!.side, options.roce, name === 'a' ? 1 : 2);
      this.rocePath = pathToNode(options.roce, this.peerLid);
      this.roceFields = roceFields(options.roce);
    }
    this.port = new TappedPort(this.wire, lp, (this.address.lid << 16) | this.peerLid);
    this.config = {
      ...defaultsOf(hcaParameters),
      ...options.hca,
    };
    const hasPackets = this.address.roce !== undefined || carrier.isForFrames === true;
    const onEthernet = hasPackets ? 'both' : 'frames';
    const carries = isEthernet ? onEthernet : 'packets';
    const geometry = { uarAreaBytes: UAR_AREA_BYTES, blueFlameHalfBytes: BLUE_FLAME_HALF_BYTES };
    const card = connectX3(geometry, this.icm);
    const personality = options.personality?.(card) ?? card;
    this.dataPath = new DataPath({
      lp,
      domain,
      config: this.config,
      tables: makeTables(
        defaultsOf(capabilityParameters),
        personality.makeContextFormats({
          frameBytesMax: isEthernet ? ethernetFrameBytesMax(ethernetConfig) : 0,
          hasRoce: options.roce !== undefined,
        }),
      ),
      dmaRead: this.reads,
      dmaWrite: this.writes,
      monitors: link,
      sram,
      transport: carrier.transportOf({
        ports: [this.port],
        addresses: [this.address],
        specialQps: this,
        managers: [this.#managerOf()],
        groups: this.groups,
        congestion: { ...congestionDefaults(), ...options.congestion },
        keepsStaticRates: options.keepsStaticRates === true,
        lines: [{ rateMbps: dataRateMbpsOf(this.wire.config), overheadBytes: this.wire.config.framingBytes }],
      }),
      carries,
      addresses: [this.address],
      ethernet: this.ethernet,
      eventQueues: this.events,
      personality,
      tap: options.tap,
    });
    const { pageFaults, completions, asyncEvents } = this.dataPath.blocks;
    carrier.connect(this.port, this.dataPath.blocks);
    const watcher = { linkChanged: () => undefined };
    this.ethernet?.port.connect({ ...this.dataPath.frameEnds, link: watcher });
    this.events.connect({ posters: [pageFaults, completions.notifier, asyncEvents] });
    this.#stage = domain.addStage(this.#perform, this);
  }

  /** Does something at an edge of the HCA's clock, after all that was queued before. */
  act(action: () => void): void {
    this.#actions.push(action);
    this.domain.wakeAfter(this.#stage, this.lp.nowPs);
  }

  /** A store of software to BAR2, one or more dwords as they lie in memory. */
  store(offset: number, bytes: Uint8Array): void {
    const copy = bytes.slice();
    const view = new DataView(copy.buffer);
    this.act(() => {
      this.dataPath.blocks.doorbells.barWrite(offset, view, 0, copy.length, this.domain.cycle);
    });
  }

  /** Bytes of host memory, aligned to `alignment`. */
  allocate(lengthBytes: number, alignment = 4096): number {
    const address = Math.ceil(this.#nextByte / alignment) * alignment;
    this.#nextByte = address + lengthBytes;
    if (this.#nextByte > MEMORY_BYTES) throw new RangeError('the bench has no memory left');
    return address;
  }

  /** Writes MTT entries for pages and returns their byte offset in the table. -1 is a page that is not present. */
  writeMtt(pages: readonly number[]): number {
    const mttOffset = this.#nextMttByte;
    this.#nextMttByte += pages.length * 8;
    pages.forEach((page, index) => {
      const at = this.icm.translationAddress(mttOffset + index * 8);
      this.view.setUint32(at, page < 0 ? 0 : Math.floor(page / 2 ** 32));
      this.view.setUint32(at + 4, page < 0 ? 0 : ((page & ~7) >>> 0) + 1);
    });
    return mttOffset;
  }

  /** Puts an MPT entry into the next free place and returns its index. */
  writeMpt(encode: (index: number) => Uint8Array): number {
    const index = this.#nextMptIndex++;
    this.rewriteMpt(index, encode(index));
    return index;
  }

  rewriteMpt(index: number, entry: Uint8Array): void {
    this.memory.bytes.set(entry, this.icm.keyAddress(index));
  }

  #managerOf(): EmbeddedManager {
    const { following } = this;
    return {
      answer: (mad) => this.answers(mad),
      get hasNext() {
        return following.length > 0;
      },
      next: (mad) => following.shift()!(mad),
    };
  }

  #perform(cycle: Cycles): void {
    this.#actions.shift()?.();
    if (this.#actions.length > 0) this.domain.wake(this.#stage, cycle + 1);
  }

  #mapIcm(): void {
    this.icm.placeTables(icmPlaces);
    for (let page = 0; page < ICM_PAGES; page++)
      this.icm.map(page * 4096, ICM_HOST_BASE + (ICM_PAGES - 1 - page) * 4096, 1);
  }
}

/** An end of an Ethernet cable with what software sets up, which specs write. */
function ethernetOf(
  lp: LogicalProcess,
  config: EthernetConfig,
  cable: { readonly writer: ChannelWriter; readonly reader: ChannelReader },
  { hasFlowControl, macs, offloads, ...options }: BenchOptions,
  name: string,
): EthernetAttachment {
  const controlMac = hasFlowControl === true ? 1 : undefined;
  const port = new EthernetPort({ lp, config, ...cable, seed: 1, controlMac });
  port.flowControl.set(true, true);
  const roce = roceVersions(options);
  const side = new EthernetSide({
    mac: macs?.[name === 'a' ? 'a' : 'b'] ?? 0,
    ...config,
    errors: port,
    roce,
    gidCount: 16,
    ...offloads,
  });
  return { port, side };
}

/** Hands out memory from the front. */
class Sram implements SramAllocator {
  readonly bytes: Uint8Array;
  #next = 0;

  constructor(lengthBytes: number) {
    this.bytes = new Uint8Array(lengthBytes);
  }

  allocate(lengthBytes: number): number {
    const offset = this.#next;
    this.#next += Math.ceil(lengthBytes / 64) * 64;
    if (this.#next > this.bytes.length) throw new RangeError('the bench has no on-chip memory left');
    return offset;
  }
}

export class DataPathBench<Parts extends TransportParts = IbtaParts, Blocks extends object = IbtaBlocks> {
  readonly a: DataPathNode<Parts, Blocks>;
  readonly b: DataPathNode<Parts, Blocks>;
  readonly #runner: SingleRunner;

  constructor(options: BenchOptions, carrier: Carrier<Parts, Blocks>) {
    const isEthernet = isEthernetBench(options);
    const bytes = isEthernet
      ? ethernetChannelBytes(ethernetConfigOf(options))
      : wireChannelBytes(wireConfigOf(options));
    const [out, back] = [new SharedArrayBuffer(bytes), new SharedArrayBuffer(bytes)];
    const random = options.shuffleSeed === undefined ? undefined : new Random(options.shuffleSeed);
    const shuffle = random === undefined ? undefined : random.unit;
    this.a = new DataPathNode('a', out, back, options, shuffle, carrier);
    this.b = new DataPathNode('b', back, out, options, shuffle, carrier);
    const { a, b } = this;
    this.#runner = new SingleRunner([a.hostLp, a.lp, b.lp, b.hostLp]);
  }

  get nodes(): readonly [DataPathNode<Parts, Blocks>, DataPathNode<Parts, Blocks>] {
    return [this.a, this.b];
  }

  /** Runs for this many microseconds. */
  async run(durationUs: number): Promise<void> {
    await this.#runner.runTo(this.#runner.nowPs + durationUs * 1_000_000);
  }

  /** Runs until `isDone` answers true. @throws when it has not within `limitUs` */
  async until(isDone: () => boolean, limitUs = 5000): Promise<void> {
    for (let us = 0; us < limitUs; us++) {
      if (isDone()) return;
      await this.run(1);
    }
    expect.fail(`not done within ${limitUs} us: ${JSON.stringify(this.nodes.map(progressOf), null, 1)}`);
  }

  async bringUp(): Promise<void> {
    const ports = this.nodes.map(({ ethernet, wire }) => ethernet?.port ?? wire);
    for (const port of ports) port.setEnabled(true);
    await this.until(() => ports.every(({ isUp }) => isUp), 100);
  }

  /** Every cycle of every block has one owner. */
  checkBalances(): void {
    for (const { dataPath, domain, lp } of this.nodes) {
      const elapsedCycles = domain.clock.cyclesElapsed(lp.nowPs);
      for (const account of dataPath.accounts) {
        account.close(elapsedCycles);
        const stalled = account.stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
        const sum = account.busyCycles + stalled + account.idleCycles;
        expect([account.name, sum, account.overlapCount]).toEqual([account.name, elapsedCycles, 0]);
      }
      expect(dataPath.parts.operations.disorderCount).toBe(0);
    }
  }
}

/** Returns the state of each QP of a node, for the error message of a spec that does not finish. */
function progressOf({ dataPath }: AnyNode): unknown {
  const { qps } = dataPath.parts;
  return qps.liveSlots().map((qp) => ({
    qpn: qps.numberOf[qp],
    state: qps.rows[qp]!.state,
    parkedFor: qps.rows[qp]!.parkedFor,
    isScheduled: qps.rows[qp]!.isScheduled,
    isFetching: qps.rows[qp]!.isFetching,
    sqCounter: qps.rows[qp]!.sqCounter,
    records: qps.rows[qp]!.recordCount,
    inPipeline: qps.rows[qp]!.inPipelineCount,
  }));
}

/** A machine whose cable is up. Its statistics are checked when the spec ends. */
export const dataPathBench = (options: BenchOptions = {}): Promise<DataPathBench> =>
  benchWith(ibtaCarrier, options);

/** Creates a bench with another transport. */
export async function benchWith<Parts extends TransportParts, Blocks extends object>(
  carrier: Carrier<Parts, Blocks>,
  options: BenchOptions = {},
): Promise<DataPathBench<Parts, Blocks>> {
  const bench = new DataPathBench(options, carrier);
  onTestFinished(() => bench.checkBalances());
  await bench.bringUp();
  return bench;
}
