import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { ChannelWriter } from '../../sim/channel.ts';
import { runPair } from '../pcie/link/link-bench.ts';
import { PayloadReferences } from '../pcie/link/payload-references.ts';
import { ZeroCopyWriter } from '../pcie/link/zero-copy-writer.ts';
import { rootComplexBench } from '../pcie/root-complex/root-complex-bench.ts';
import { type EarlyPlaces, READ_POISONED } from '../pcie/root-complex/root-complex-interfaces.ts';
import type { LinkTap } from '../pcie/root-complex/root-complex-tap.ts';
import { COMPLETION, COMPLETION_DATA, FLAG_POISONED, STATUS_SUCCESS, WORD_FLAGS } from '../pcie/tlp/tlp.ts';
import { FakeFunction } from './dma-bench.ts';
import { DmaReadEngine } from './dma-read-engine.ts';
import { DmaWriteEngine } from './dma-write-engine.ts';
import { dmaParameters } from './parameters.ts';

const MEMORY_BYTES = 1 << 16;
const WINDOW = 0xfee0_0000;
/** A message window over memory: bytes written there are messages nevertheless. */
const LOW_WINDOW = 0xc000;
const SLOT_BYTES = 8192;
const SLOT_COUNT = 8;

/** Initial contents of the card's and the host's memory. */
const SRAM_AT_FIRST = Uint8Array.from(
  { length: SLOT_BYTES * SLOT_COUNT * 3 },
  (_, at) => (at * 7 + (at >> 9)) & 0xff,
);
const MEMORY_AT_FIRST = Uint8Array.from({ length: MEMORY_BYTES }, (_, at) => (at * 11 + (at >> 8)) & 0xff);

interface Transfer {
  readonly cycle: number;
  readonly isWrite: boolean;
  readonly address: number;
  readonly slot: number;
  readonly bytes: number;
}

interface Story {
  readonly transfers: readonly Transfer[];
  readonly hostEventsPs: readonly number[];
  /** When both cores issue two stores each. */
  readonly storesPs: readonly number[];
  readonly deviceEventsPs: readonly number[];
  readonly stopsPs: readonly number[];
  /** 4 KiB pages of host memory whose writes are recorded. */
  readonly watchedPages: readonly number[];
  readonly hasLowWindow: boolean;
  /** Every such read is answered with poisoned data, which the PCIe function must see. */
  readonly poisonEvery: number;
  readonly transmitBufferTlps: number;
  /** Parameter of the root port: where completions wait for room. */
  readonly completionFifoTlps: number;
  readonly rootTransmitBufferTlps: number;
  readonly postedHeaders: number;
  /** Parameter of the card: how often it returns credits for the cores' stores. */
  readonly endpointPostedHeaders: number;
  readonly nonPostedHeaders: number;
  readonly dataPathBytes: number;
  readonly ackEveryTlps: number;
  readonly tagCount: number;
}

/** A card that reads and writes, shares its memory with the root complex, and is observed from both sides. */
function storyBench(story: Story, seesDeviceEdges: boolean, isByEdges = false) {
  const sram = SRAM_AT_FIRST.slice();
  const references = new PayloadReferences(sram);
  // The engine is created later: the bench makes the link that it reads.
  const engine: { reads?: DmaReadEngine } = {};
  const earlyPlaces: EarlyPlaces = {
    memory: sram,
    placeOf: (descriptor, byteCount) => engine.reads!.earlyPlaces!.placeOf(descriptor, byteCount),
  };
  const bench = rootComplexBench({
    shared: { references, earlyPlaces },
    memoryBytes: MEMORY_BYTES,
    link: { ackEveryTlps: story.ackEveryTlps },
    endpoint: { transmitBufferTlps: story.transmitBufferTlps, postedHeaders: story.endpointPostedHeaders },
    rootComplex: { messageWindowAddress: story.hasLowWindow ? LOW_WINDOW : WINDOW },
    rootPort: {
      postedHeaders: story.postedHeaders,
      postedData: story.postedHeaders * 16,
      nonPostedHeaders: story.nonPostedHeaders,
      transmitBufferTlps: story.rootTransmitBufferTlps,
      completionFifoTlps: story.completionFifoTlps,
    },
  });
  const { device, deviceLp, hostLp, host, memory, rootComplex } = bench;
  const domain = deviceLp.addClockDomain(427);
  const { tagCount, dataPathBytes } = story;
  const config = { ...defaultsOf(dmaParameters), tagCount, dataPathBytes };
  const pcieFunction = new FakeFunction();
  memory.bytes.set(MEMORY_AT_FIRST);
  const parts = { lp: deviceLp, domain, config };
  const writes = new DmaWriteEngine({ ...parts, link: new ZeroCopyWriter(device, references) });
  const reads = new DmaReadEngine({ ...parts, link: device, sram, hasEarlyPlacement: true });
  for (const made of [writes, reads]) made.connect({ pcieFunction });
  engine.reads = reads;
  let readCount = 0;
  const answerTo = (): number => (++readCount % story.poisonEvery === 0 ? READ_POISONED : STATUS_SUCCESS);
  rootComplex.reads.faults = { answerTo };
  const log: string[] = [];
  const receiveTlp = (offset: number, kind: number): void => {
    const isPoisoned = (device.reader.words[(offset >> 2) + WORD_FLAGS]! & FLAG_POISONED) !== 0;
    if (isPoisoned) log.push(`${deviceLp.nowPs} poisoned completion`);
    if (kind === COMPLETION_DATA || kind === COMPLETION) reads.receiveCompletion(offset);
    else device.consume(offset);
  };
  device.connect({
    receiver: { receiveTlp },
    completionRuns: isByEdges ? undefined : reads.completionRuns,
    posted: [writes],
    nonPosted: [reads],
    completion: [],
  });
  const { write } = memory;
  const plainWrite = write.bind(memory);
  const isWatched = (address: number): boolean => story.watchedPages.includes(address >>> 12);
  Object.assign(memory, {
    write: (address: number, bytes: number, source: Uint8Array, from: number): boolean => {
      const isDone = plainWrite(address, bytes, source, from);
      if (isDone && isWatched(address))
        log.push(`${hostLp.nowPs} page written at ${address}, ${bytes} bytes`);
      return isDone;
    },
  });
  const addReader = (trafficClass: number, placesEarly: boolean): number =>
    reads.addRequester(
      { name: `r${trafficClass}`, trafficClass, fifoDepth: 64, weight: 1, placesEarly },
      {
        done: (cookie, status, cycle) => log.push(`${deviceLp.nowPs} read ${cookie}: ${status} at ${cycle}`),
      },
    );
  const readers = [addReader(4, true), addReader(6, true), addReader(7, false)];
  const writer = writes.addRequester(
    { name: 'w', trafficClass: 5, fifoDepth: 64 },
    {
      done: (cookie, cycle) =>
        log.push(`${deviceLp.nowPs} write ${cookie} at ${cycle}, edge ${domain.cycle}`),
    },
  );
  // Other reads use other destinations: early placement needs exclusive ones.
  const readInto = (reader: number, address: number, bytes: number, slot: number, cookie: number): void => {
    const firstSlot = reader < 2 ? SLOT_COUNT : 2 * SLOT_COUNT;
    reads.request(readers[reader]!, address, bytes, (firstSlot + slot) * SLOT_BYTES, cookie);
  };
  const todo = story.transfers.map((transfer, index) => ({ ...transfer, index }));
  todo.sort((a, b) => a.cycle - b.cycle);
  const stage = domain.addStage((cycle) => {
    for (; todo[0] !== undefined && todo[0].cycle <= cycle; todo.shift()) {
      const { isWrite, address, bytes, slot, index } = todo[0];
      if (isWrite) writes.request(writer, address, bytes, sram, slot * SLOT_BYTES, index);
      else readInto(index % 3, address, bytes, slot, index);
    }
    if (todo[0] !== undefined) domain.wake(stage, todo[0].cycle);
  });
  if (todo[0] !== undefined) domain.wake(stage, todo[0].cycle);
  const hostNote = hostLp.queue.addHandler(() => log.push(`${hostLp.nowPs} host ${hostState()}`));
  const deviceNote = deviceLp.queue.addHandler(() => log.push(`${deviceLp.nowPs} device ${deviceState()}`));
  const store = hostLp.queue.addHandler(() => {
    for (const core of [0, 1, 0, 1])
      if (rootComplex.canStore(core)) rootComplex.cpuStore(core, 0x1000 + core * 8, memory.bytes, 0, 8, 9);
  });
  for (const atPs of story.storesPs) hostLp.queue.schedule(atPs, store);
  for (const atPs of story.hostEventsPs) hostLp.queue.schedule(atPs, hostNote);
  for (const atPs of story.deviceEventsPs) deviceLp.queue.schedule(atPs, deviceNote);

  const linkState = (port: typeof device): unknown[] => [
    port.transmitter.linkBytes,
    port.transmitter.lanes.ackCount,
    port.transmitter.lanes.updateFcCount,
    port.transmitter.waitingCount,
    port.receiver.received.tlps,
    port.receiver.received.linkBytes,
    port.receiver.overflowCount,
    port.receiver.heldCount,
    [...port.transmitter.stallPs],
  ];
  function hostState(): string {
    const { writeCount, writtenBytes, interruptMessageCount } = rootComplex.writes;
    const { readCount, completionCount } = rootComplex.reads;
    const counts = [writeCount, writtenBytes, interruptMessageCount, readCount, completionCount];
    return JSON.stringify([sumOf(memory.bytes), counts, rootComplex.log.counts, rootComplex.domain.cycle]);
  }
  function deviceState(): string {
    const { account, requesters } = writes;
    const { counters } = requesters[0]!;
    const cycle = seesDeviceEdges ? domain.cycle : 0;
    const { pendingTagCount, lateCompletions, malformedCompletions } = reads;
    const counts = [pendingTagCount, lateCompletions, malformedCompletions];
    return JSON.stringify([account, counters, reads.account, reads.returnAccount, counts, cycle]);
  }
  function wholeState(): string {
    for (const port of [device, host]) port.closeAccounts(hostLp.nowPs);
    const edges = [seesDeviceEdges ? domain.activeEdgeCount : 0, rootComplex.domain.activeEdgeCount];
    const held = [device.reader.takenBytes, host.reader.takenBytes];
    const statistics = [
      linkState(device),
      linkState(host),
      edges,
      [deviceLp.recordCount, hostLp.recordCount],
      held,
    ];
    const placed = sumOf(sram.subarray(SLOT_BYTES * SLOT_COUNT));
    return `${hostState()} ${deviceState()} ${JSON.stringify(statistics)} ${placed} ${bench.interrupts.join()}`;
  }
  return { ...bench, log, wholeState };
}

/** A checksum of all bytes, whose number is a multiple of 4. */
function sumOf({ buffer, byteOffset, byteLength }: Uint8Array): number {
  const words = new Int32Array(buffer, byteOffset, byteLength / 4);
  let sum = 0;
  for (let at = 0; at < words.length; at++) sum = (Math.imul(sum, 31) + words[at]!) | 0;
  return sum;
}

const ignored = () => undefined;
/** An observer of each TLP: with it, no TLPs are processed together. */
const WITNESS: LinkTap = {
  store: ignored,
  request: ignored,
  completion: ignored,
  deviceRead: ignored,
  deviceWrite: ignored,
  message: ignored,
  intx: ignored,
  refused: ignored,
};

/** Observations of a story whose turns of a process have at most this length. */
function seen(story: Story, windowPs: number, isWitnessed = false): string[] {
  return seenOf(storyBench(story, true), story, windowPs, isWitnessed);
}

/** The same without the device's edges, and with each completion taken at an edge if `isByEdges`. */
function seenAfterwards(story: Story, isByEdges: boolean): string[] {
  const bench = storyBench(story, false, isByEdges);
  return seenOf(bench, story, Number.POSITIVE_INFINITY, false);
}

function seenOf(
  { rootComplex, deviceLp, hostLp, link, log, wholeState }: ReturnType<typeof storyBench>,
  story: Story,
  windowPs: number,
  isWitnessed: boolean,
): string[] {
  if (isWitnessed) {
    rootComplex.writes.tap = WITNESS;
    rootComplex.reads.tap = WITNESS;
  }
  const { append } = ChannelWriter.prototype;
  ChannelWriter.prototype.append = function (timePs, kind, lengthBytes) {
    log.push(`record ${timePs},${kind},${lengthBytes}`);
    return append.call(this, timePs, kind, lengthBytes);
  };
  try {
    for (const stopPs of story.stopsPs.toSorted((a, b) => a - b)) {
      runPair(deviceLp, hostLp, Math.min(windowPs, link.latencyPs), stopPs);
      log.push(`stop at ${stopPs} ${wholeState()}`);
    }
  } finally {
    ChannelWriter.prototype.append = append;
  }
  // Events of one instant on both sides are recorded in the order of the turns.
  return log.toSorted();
}

const transfer = fc.record({
  cycle: fc.integer({ min: 1, max: 800 }),
  isWrite: fc.boolean(),
  address: fc.oneof(
    { weight: 8, arbitrary: fc.nat({ max: 224 }).map((block) => block * 256) },
    { weight: 2, arbitrary: fc.nat({ max: MEMORY_BYTES }) },
    fc.constantFrom(WINDOW, WINDOW - 256, MEMORY_BYTES - 512),
  ),
  slot: fc.nat({ max: SLOT_COUNT - 1 }),
  bytes: fc.oneof(
    fc.integer({ min: 1, max: 32 }).map((blocks) => blocks * 256),
    fc.integer({ min: 1, max: 5000 }),
  ),
});
const instants = (max: number) => fc.array(fc.integer({ min: 1, max }), { maxLength: 12 });
const END_PS = 60_000_000;
const storyOf: fc.Arbitrary<Story> = fc.record({
  transfers: fc.array(transfer, { minLength: 1, maxLength: 10 }),
  hostEventsPs: instants(6_000_000),
  storesPs: instants(3_000_000),
  deviceEventsPs: instants(6_000_000),
  stopsPs: instants(6_000_000).map((stops) => [...stops, END_PS]),
  watchedPages: fc.array(fc.nat({ max: 15 }), { maxLength: 2 }),
  transmitBufferTlps: fc.integer({ min: 1, max: 24 }),
  completionFifoTlps: fc.integer({ min: 1, max: 8 }),
  rootTransmitBufferTlps: fc.integer({ min: 1, max: 8 }),
  postedHeaders: fc.integer({ min: 2, max: 64 }),
  endpointPostedHeaders: fc.integer({ min: 1, max: 4 }),
  nonPostedHeaders: fc.integer({ min: 1, max: 32 }),
  dataPathBytes: fc.constantFrom(4, 32),
  ackEveryTlps: fc.integer({ min: 1, max: 9 }),
  hasLowWindow: fc.boolean(),
  poisonEvery: fc.constantFrom(3, 1000),
  tagCount: fc.integer({ min: 1, max: 32 }),
});

/**
 * A story that writes fewer bytes than make postponing a copy worthwhile, after more of them to the same destination
 * (found with seed -1188821547).
 */
const SMALL_OVER_LARGE: Story = {
  transfers: [
    { cycle: 1, isWrite: false, address: 0, slot: 0, bytes: 256 },
    { cycle: 1, isWrite: false, address: 256, slot: 0, bytes: 1 },
  ],
  hostEventsPs: [],
  storesPs: [],
  deviceEventsPs: [],
  stopsPs: [END_PS],
  watchedPages: [],
  hasLowWindow: false,
  poisonEvery: 3,
  transmitBufferTlps: 1,
  completionFifoTlps: 1,
  rootTransmitBufferTlps: 1,
  postedHeaders: 2,
  endpointPostedHeaders: 4,
  nonPostedHeaders: 8,
  dataPathBytes: 4,
  ackEveryTlps: 1,
  tagCount: 2,
};

describe('work that the engines and the root complex do ahead of their turns', () => {
  it('equals the work done one instant after another', () => {
    fc.assert(
      fc.property(storyOf, (story) => {
        const expected = seen(story, 1, true);
        expect(seen(story, Number.POSITIVE_INFINITY)).toEqual(expected);
        expect(seen(story, 1)).toEqual(expected);
      }),
      { numRuns: 150, examples: [[SMALL_OVER_LARGE]] },
    );
  });

  it('gives the same results whether a completion that changes only statistics is taken on arrival or at the next edge', () => {
    fc.assert(
      fc.property(storyOf, (story) => {
        const unobserved = { ...story, deviceEventsPs: [], stopsPs: [END_PS] };
        expect(seenAfterwards(unobserved, false)).toEqual(seenAfterwards(unobserved, true));
      }),
      { numRuns: 100 },
    );
  });
});
