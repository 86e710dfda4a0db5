/** Probes common to HCA and NIC: PCIe function, DMA engines, interrupts, registers. */
import type { DmaReadEngine, DmaWriteEngine } from '../../../hw/dma/index.ts';
import type { BarTarget, PcieFunction, PcieLinkPort } from '../../../hw/pcie/index.ts';
import type { ClockDomain } from '../../../sim/index.ts';
import { around } from '../around.ts';
import { interruptStepNumbers } from '../kinds.ts';
import type { Stream } from '../stream.ts';
import { watchLevel } from './blocks.ts';

export interface Adapter extends BarTarget {
  readonly domain: ClockDomain;
  readonly linkPort: PcieLinkPort;
  readonly pcieFunction: PcieFunction;
  readonly dmaRead: DmaReadEngine;
  readonly dmaWrite: DmaWriteEngine;
}

export function watchAdapter(stream: Stream, adapter: Adapter): void {
  const { dmaRead, dmaWrite, linkPort, pcieFunction } = adapter;
  if (stream.has('dma')) {
    watchReads(stream, dmaRead, adapter.domain);
    watchWrites(stream, dmaWrite, adapter.domain);
  }
  const { tags } = dmaRead;
  watchLevel(stream, 'tags in use', tags, ['take', 'release'], () => tags.takenCount);
  watchTransmitFifos(stream, linkPort);
  if (stream.has('interrupts')) watchMessages(stream, pcieFunction, adapter.domain);
  if (stream.has('registers')) watchRegisters(stream, adapter);
}

/** Both ends of a link have transmit FIFOs: TLPs that wait for credits or for the lanes. */
export function watchTransmitFifos(stream: Stream, { transmitter }: PcieLinkPort): void {
  for (const [index, name] of ['posted', 'nonPosted', 'completion'].entries()) {
    const { fifo } = transmitter.flows[index]!;
    watchLevel(stream, `pcie transmit: ${name}`, fifo, ['take', 'drop'], () => fifo.count);
  }
}

/** Pending requests of one requester of an engine, which are reported in order. */
class UnderWay {
  readonly #fields: number[] = [];
  readonly #stream: Stream;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Instants are stored as microseconds and picoseconds since power-on: a new epoch does not change them. */
  begin(atPs: number, address: number, lengthBytes: number): void {
    this.#fields.push(this.#stream.lp.epochUs, atPs, address, lengthBytes);
  }

  /** Passes the oldest one on and removes it; does nothing if none exists, after a reset. */
  end(done: (fromPs: number, address: number, lengthBytes: number) => void): void {
    if (this.#fields.length === 0) return;
    const [epochUs, atPs, address, lengthBytes] = this.#fields.splice(0, 4) as [
      number,
      number,
      number,
      number,
    ];
    done(atPs - (this.#stream.lp.epochUs - epochUs) * 1e6, address, lengthBytes);
  }

  clear(): void {
    this.#fields.length = 0;
  }
}

function watchReads(stream: Stream, engine: DmaReadEngine, { clock }: ClockDomain): void {
  const underWay = engine.requesters.map(() => new UnderWay(stream));
  engine.requesters.forEach((queue, requester) => {
    const track = stream.track('dma', `read: ${queue.name}`);
    const { port } = queue;
    const listened: { port: typeof port } = queue;
    listened.port = {
      ...(port.space === undefined ? {} : { space: () => port.space?.() }),
      done: (cookie, status, cycle) => {
        const endPs = clock.edgePs(cycle);
        underWay[requester]!.end((fromPs, address, lengthBytes) =>
          stream.interval('dmaRead', track, fromPs, endPs, address, lengthBytes, status),
        );
        port.done(cookie, status, cycle);
      },
    };
  });
  around(engine, 'request', (request) => (requester, address, lengthBytes, sramOffset, cookie) => {
    request(requester, address, lengthBytes, sramOffset, cookie);
    underWay[requester]!.begin(stream.lp.nowPs, address, lengthBytes);
  });
  around(engine, 'reset', (reset) => (cycle) => {
    reset(cycle);
    for (const requests of underWay) requests.clear();
  });
}

function watchWrites(stream: Stream, engine: DmaWriteEngine, { clock }: ClockDomain): void {
  const underWay = engine.requesters.map(() => new UnderWay(stream));
  engine.requesters.forEach((owner, requester) => {
    const track = stream.track('dma', `write: ${owner.name}`);
    const { port } = owner;
    const listened: { port: typeof port } = owner;
    listened.port = {
      ...(port.space === undefined ? {} : { space: () => port.space?.() }),
      done: (cookie, cycle) => {
        const endPs = clock.edgePs(cycle);
        underWay[requester]!.end((fromPs, address, lengthBytes) =>
          stream.interval('dmaWrite', track, fromPs, Math.max(fromPs, endPs), address, lengthBytes),
        );
        port.done?.(cookie, cycle);
      },
    };
  });
  around(engine, 'request', (request) => (requester, address, lengthBytes, source, sourceOffset, cookie) => {
    request(requester, address, lengthBytes, source, sourceOffset, cookie);
    underWay[requester]!.begin(stream.lp.nowPs, address, lengthBytes);
  });
  around(engine, 'reset', (reset) => (cycle) => {
    reset(cycle);
    for (const requests of underWay) requests.clear();
  });
}

/** The outcome of each request of an MSI-X vector. */
function watchMessages(stream: Stream, { msix }: PcieFunction, { clock }: ClockDomain): void {
  const track = stream.track('interrupts', 'MSI-X');
  const { counters } = msix;
  const { masked, coalesced, dropped, sent } = interruptStepNumbers;
  const outcomes = [
    [counters.masked, masked],
    [counters.coalesced, coalesced],
    [counters.dropped, dropped],
    [counters.delivered, sent],
  ] as const;
  around(msix, 'request', (request) => (vector, cycle) => {
    const before = outcomes.map(([counts]) => counts[vector]!);
    const isTaken = request(vector, cycle);
    outcomes.forEach(([counts, step], index) => {
      if (counts[vector]! > before[index]!)
        stream.instant('interrupt', track, clock.edgePs(cycle), step, vector);
    });
    return isTaken;
  });
  around(msix, 'deliverPending', (deliverPending) => (cycle) => {
    const before = counters.delivered.slice();
    const goesOn = deliverPending(cycle);
    for (let vector = 0; vector < msix.vectorCount; vector++)
      if (counters.delivered[vector]! > before[vector]!)
        stream.instant('interrupt', track, clock.edgePs(cycle), sent, vector);
    return goesOn;
  });
}

/** Accesses of software to the registers of BAR0, with up to 32 bits of their value, as a little-endian number. */
function watchRegisters(stream: Stream, adapter: Adapter): void {
  const track = stream.track('registers', 'BAR0');
  const { clock } = adapter.domain;
  around(adapter, 'barWrite', (barWrite) => (bar, offset, bytes, at, lengthBytes, cycle) => {
    if (bar === 0) {
      const value = numberIn(new DataView(bytes.buffer, bytes.byteOffset + at), lengthBytes);
      stream.instant('registerWrite', track, clock.edgePs(cycle), bar, offset, value, lengthBytes);
    }
    return barWrite(bar, offset, bytes, at, lengthBytes, cycle);
  });
  around(adapter, 'barRead', (barRead) => (bar, offset, lengthBytes, into, cycle) => {
    barRead(bar, offset, lengthBytes, into, cycle);
    if (bar === 0) {
      const value = numberIn(into, lengthBytes);
      stream.instant('registerRead', track, clock.edgePs(cycle), bar, offset, value, lengthBytes);
    }
  });
}

function numberIn(view: DataView, lengthBytes: number): number {
  if (lengthBytes >= 4) return view.getUint32(0, true);
  let value = 0;
  for (let at = 0; at < lengthBytes; at++) value += view.getUint8(at) * 2 ** (8 * at);
  return value;
}
