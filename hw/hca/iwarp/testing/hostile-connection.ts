/**
 * Two cards with a healthy connection, and a hostile station that connects to card b again and again. Judges: every frame
 * is counted once, under the outcome that its sender knows; the healthy connection carries its bytes unchanged; memory that
 * the hostile peer may not write is as it was; and once the station is gone, the card holds nothing of it.
 */
import { expect } from 'vitest';
import { iwarpContext, iwarpOffsetInQpc } from '../../../../abi/index.ts';
import { WqeOpcode } from '../../../../abi/wqe-opcodes.ts';
import { macBytesOf } from '../../../../base/index.ts';
import type { QpSlot } from '../../objects/index.ts';
import { Cq, pattern, Qp, Region, takeNumber } from '../../testing/data-path-verbs.ts';
import { CardConnection } from '../tcp/card-connection.ts';
import { CONNECTIONS_MAX, cardScene, macs, PORT } from './card-bench.ts';
import { type Ends, flag, HostileStation, type Segment } from './hostile-station.ts';

/** Protection domain of the QPs that the hostile peer reaches. */
const HOSTILE_PD = 6;
const REGION_BYTES = 4096;
const HEALTHY_BYTES = 8192;
const FIRST_PORT = 10_000;
const PORTS = 50_000;
const NO_PORT = 0;
/** Pattern of the memory that the hostile peer may not write. */
export const CLOSED_SEED = 77;
const SEGMENTS_MAX = 20;
/** Frames that the card answers at once; the others wait for acknowledgements that never come. */
const settings = {
  delayedAckUs: 0,
  timeWaitUs: 0,
  retransmitInitialUs: 1000,
  retransmitMinUs: 1000,
  firstSequence: 0xffff_0000,
};

type Scene = Awaited<ReturnType<typeof cardScene>>;

export class HostileConnection {
  readonly scene: Scene;
  readonly station: HostileStation;
  /** Memory of card b that the hostile peer may write, and memory with the same protection domain that it may not. */
  readonly open: Region;
  readonly closed: Region;
  /** Number of the connection at card b; undefined without one. */
  connection: number | undefined;
  /** Sequence number that the card expects, and its own next one, as its last frame said. */
  next = 0;
  theirs = 0;
  qp: Qp<Scene['bench']['b']> | undefined;
  readonly #qpn = takeNumber();
  readonly #cq: Cq;
  #port = FIRST_PORT;
  #healthyRound = 0;

  private constructor(scene: Scene) {
    const { a, b } = scene.bench;
    this.scene = scene;
    this.station = new HostileStation(a.ethernet!.port, b.ethernet!.port);
    this.#cq = new Cq(b);
    this.open = new Region(b, REGION_BYTES, { pd: HOSTILE_PD });
    this.closed = new Region(b, REGION_BYTES, {
      pd: HOSTILE_PD,
      rights: { remoteRead: false, remoteWrite: false },
    });
    this.closed.fill(CLOSED_SEED);
  }

  static async create(): Promise<HostileConnection> {
    const hostile = new HostileConnection(
      await cardScene({}, { regionBytes: HEALTHY_BYTES, iwarp: settings }),
    );
    await hostile.scene.bench.run(5);
    return hostile;
  }

  /** Ends of the present connection. */
  get ends(): Ends {
    return this.station.endsOf(this.#port, PORT);
  }

  /** Ends of the healthy connection, as its other station has them. */
  get healthyEnds(): Ends {
    return { mac: macBytesOf(macs.a), from: [10, 0, 0, 1], fromPort: 5000, toPort: PORT };
  }

  get tcp() {
    return this.scene.bench.b.dataPath.blocks.tcpControl;
  }

  /** The card's state of a connection. */
  rowOf(number: number | undefined): CardConnection | undefined {
    const row = number === undefined ? undefined : this.tcp.rowOf(number);
    return row instanceof CardConnection ? row : undefined;
  }

  send(segment: Segment): void {
    this.station.send(this.ends, { acknowledgement: this.theirs, ...segment });
  }

  /** Sends the next bytes of the stream in segments of these sizes, the last of which repeats; in some twenty at most. */
  sendBytes(bytes: Uint8Array, sizes: readonly number[]): void {
    const bytesMin = Math.ceil(bytes.length / SEGMENTS_MAX);
    for (let at = 0, index = 0; at < bytes.length; index++) {
      const size = Math.max(sizes[Math.min(index, sizes.length - 1)]!, bytesMin);
      const end = Math.min(bytes.length, at + size);
      this.send({ sequence: this.next, payload: bytes.subarray(at, end) });
      this.next = (this.next + end - at) >>> 0;
      at = end;
    }
  }

  /** Runs until what was sent has arrived, and takes the card's answers: SYNs that the station did not ask for get RST. */
  async settle(us = 6): Promise<void> {
    await this.scene.bench.run(us);
    for (const frame of this.station.received.splice(0)) {
      expect(frame.wrong).toEqual([]);
      if (frame.destinationPort === this.#port) this.#answered(frame);
      else if (frame.flags.includes('S')) {
        const ends = this.station.endsOf(frame.destinationPort, frame.sourcePort);
        this.station.send(ends, { sequence: frame.acknowledgement, flags: flag.RST });
      }
    }
  }

  /** Closes the present connection, and opens another. */
  async reopen(): Promise<void> {
    await this.leave();
    this.#port = FIRST_PORT + ((this.#port + 1 - FIRST_PORT) % PORTS);
    const start = (this.#port * 0x1234_5677) >>> 0;
    this.next = (start + 1) >>> 0;
    const { lines } = this.scene.bench.b.dataPath.blocks.tcpLog;
    lines.length = 0;
    const options = [2, 4, 5, 180, 1, 3, 3, 0];
    for (let tries = 0; this.connection === undefined; tries++) {
      if (tries === 100) throw new Error(`card b accepts no connection: ${lines.join(', ')}`);
      this.send({ sequence: start, acknowledgement: 0, flags: flag.SYN, options });
      await this.settle(6);
      this.send({ sequence: this.next });
      await this.settle(6);
      const accepted = lines.findLast((line) => line.startsWith('ACCEPTED'));
      const number = accepted === undefined ? undefined : Number(accepted.split(' ')[1]);
      if (this.rowOf(number)?.remotePort === this.#port) this.connection = number;
    }
  }

  /** Makes the connection the stream of a QP with a posted receive. */
  async attach(agreement: { readonly hasCrc: number; readonly hasMarkers: number }): Promise<void> {
    const { b } = this.scene.bench;
    const { qps } = b.dataPath.parts;
    const qp = new Qp(b, {
      qpn: this.#qpn,
      sendCq: this.#cq,
      sqLogCount: 1,
      rqLogCount: 2,
      fields: { pd: HOSTILE_PD },
    });
    const context = iwarpContext.encode({
      connection: this.connection!,
      isInitiator: 0,
      sendsMarkers: agreement.hasMarkers,
      receivesMarkers: agreement.hasMarkers,
      hasCrc: agreement.hasCrc,
      inboundReads: 2,
      outboundReads: 2,
    });
    b.act(() => qps.bytes.set(context, qps.offsetOf(qp.slot) + iwarpOffsetInQpc));
    qp.connect(1, 0, 0);
    qp.receive([this.open.part(2048, 256)]);
    this.qp = qp;
    await this.settle();
  }

  /** Software ends the connections of the station and their QP, and gives the numbers back. */
  async leave(): Promise<void> {
    const { bench } = this.scene;
    const { b } = bench;
    const rows = this.#hostileRows();
    for (const row of rows) b.act(() => this.tcp.abort(row));
    await this.settle(4);
    if (this.qp !== undefined) await this.#destroy(this.qp);
    await bench.until(() => rows.every(({ isEndReported }) => isEndReported));
    for (const row of rows) b.act(() => this.tcp.release(row));
    await this.settle(2);
    this.#cq.drain();
    b.events.lines.length = 0;
    b.events.cycles.length = 0;
    this.connection = undefined;
    this.qp = undefined;
  }

  /** Connections of the station that software knows of: a SYN that it sends may open some in addition. */
  #hostileRows(): CardConnection[] {
    const { numbers } = this.scene;
    return Array.from({ length: CONNECTIONS_MAX }, (_, number) => this.rowOf(number) ?? [])
      .flat()
      .filter(({ isKnown, number }) => isKnown && number !== numbers.b);
  }

  async #destroy({ slot }: { readonly slot: QpSlot }): Promise<void> {
    const { bench } = this.scene;
    const { control, parts } = bench.b.dataPath;
    bench.b.act(() => control.qpToError(slot));
    await bench.until(() => !control.qpIsBusy(slot) && !control.qpIsFlushing(slot));
    bench.b.act(() => {
      control.qpDestroyed(slot);
      parts.qps.free(slot);
    });
  }

  /** The healthy connection WRITEs and READs; every byte is as it was sent. */
  async checkHealthy(): Promise<void> {
    const { bench, a, aCq, local, remote } = this.scene;
    const round = this.#healthyRound++;
    const bytes = 1 + ((round * 613) % 3000);
    const place = (round * 97) % 500;
    const expected = pattern(round, bytes);
    local.write(expected);
    const target = { address: remote.address + place, key: remote.key };
    a.post({ opcode: WqeOpcode.RDMA_WRITE, segments: [local.part(0, bytes)], remote: target });
    a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(4096, bytes)], remote: target });
    a.ring();
    const syndromes: number[] = [];
    await bench.until(() => {
      syndromes.push(...aCq.drain().map(({ syndrome }) => syndrome));
      return syndromes.length >= 2;
    }, 50_000);
    expect(syndromes).toEqual([0, 0]);
    const isEqual = (found: Uint8Array): boolean => Buffer.compare(found, expected) === 0;
    expect([isEqual(remote.read(place, bytes)), isEqual(local.read(4096, bytes))]).toEqual([true, true]);
  }

  /** Every frame was counted once, and nothing was written that may not be. */
  checkAccounts(): void {
    const { a, b } = this.scene.bench;
    const { counters, arrivedCount } = b.dataPath.blocks.tcpEngine;
    const { transmitted } = a.ethernet!.port;
    const { received } = b.ethernet!.port;
    const rings = Object.values(b.ethernet!.side.steering.drops).reduce((sum, count) => sum + count, 0);
    const lost = received.fifoDrops + received.corruptedFrames + received.linkDownDrops;
    expect(received.deliveredFrames + lost).toBe(transmitted.frames);
    expect(arrivedCount + rings).toBe(received.deliveredFrames);
    expect(counters.received + counters.damaged + counters.portClosed).toBe(arrivedCount);
    const { sent } = this.station;
    // A frame that found no room may have had any outcome.
    expect(sent.damaged - counters.damaged).toBeLessThanOrEqual(lost);
    expect(sent.rings - rings).toBeLessThanOrEqual(lost);
    expect([counters.damaged <= sent.damaged, rings <= sent.rings]).toEqual([true, true]);
    expect(Buffer.compare(this.closed.read(), pattern(CLOSED_SEED, REGION_BYTES))).toBe(0);
  }

  /** The card holds nothing of a station that is gone. */
  async checkLeft(): Promise<void> {
    await this.leave();
    this.#port = NO_PORT;
    const { blocks } = this.scene.bench.b.dataPath;
    // Connections of which the card has only the SYN: it sends its answer again, which is refused.
    for (let tries = 0; tries < 1000 && blocks.tcpEngine.inspect()['connections'] !== 2; tries++)
      await this.settle(200);
    await this.checkHealthy();
    await this.settle(50);
    this.checkAccounts();
    expect(blocks.tcpEngine.inspect()).toMatchObject({
      ...{ connections: 2, arrived: [], attention: [], throttled: [], poolWaiters: [] },
      ...{ sendMemory: 0, reorderMemory: 0, held: 0 },
    });
    expect(this.scene.bench.b.ethernet!.port.heldFrames).toBe(0);
  }

  /** Counters of TCP that are not zero, and Terminates that the card has sent, by name. */
  outcomes(): string[] {
    const { tcpEngine } = this.scene.bench.b.dataPath.blocks;
    const { terminatesSent } = this.scene.bench.b.dataPath.parts.segmentCounters;
    const counts = Object.entries({ ...tcpEngine.counters, ...tcpEngine.totals() });
    return [
      ...counts.filter(([, count]) => count > 0).map(([name]) => name),
      ...[...terminatesSent.keys()].map((error) => `Terminate 0x${error.toString(16)}`),
    ];
  }

  #answered({ flags, sequence, acknowledgement, payload }: HostileStation['received'][number]): void {
    if (flags.includes('R')) return;
    const length = payload.length + (/[SF]/.test(flags) ? 1 : 0);
    this.theirs = (sequence + length) >>> 0;
    this.next = acknowledgement;
  }
}
