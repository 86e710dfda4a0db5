/**
 * A node with queue pairs of all services, regions of all rights and posted receives, at whose port packets of a stranger arrive. Judges:
 * nothing is thrown; every packet leaves a trace (it was refused for a named reason, answered, or it moved a queue pair on); no byte
 * changes but of regions that a packet may name and of posted receives; a completion comes only of a posted receive; and another
 * connection works as before.
 */
import { expect } from 'vitest';
import { QpState, ServiceType } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { Opcode } from '../../../wire/opcodes.ts';
import { FLAG_GRH, PACKET_PAYLOAD_OFFSET } from '../../../wire/packet.ts';
import { type DataPathBench, type DataPathNode, dataPathBench } from './data-path-bench.ts';
import { type Completion, Cq, connectedPair, PD, pattern, Qp, Region } from './data-path-verbs.ts';
import { type HostilePacket, hostilePacket, type PacketDraw, type Targets } from './hostile-packets.ts';

const QKEY = 0x1111_1111;
/** QP number at the other end: there is none. */
const STRANGER = 0x77_7777;
const RECEIVES = 12;
const RECEIVE_BYTES = 700;
/** Where the bench keeps contexts, which the device writes. */
const ICM = { first: 0x10_0000, end: 0x10_0000 + 0x400 * 4096 };
const HEADERS_BYTES = 26;
const GRH_BYTES = 40;

const noRights = { remoteReadEnabled: 0, remoteWriteEnabled: 0, remoteAtomicEnabled: 0 };
/** One victim of each. */
const services = [
  { serviceType: ServiceType.RC },
  { serviceType: ServiceType.RC },
  { serviceType: ServiceType.RC, ...noRights },
  { serviceType: ServiceType.RC, logMaxResponderReads: 0 },
  { serviceType: ServiceType.UC },
  { serviceType: ServiceType.UD, qkey: QKEY },
] as const;
/** Services as the upper bits of opcodes have them. */
const serviceCodes: Readonly<Record<number, number>> = {
  [ServiceType.RC]: 0,
  [ServiceType.UC]: 1,
  [ServiceType.UD]: 3,
};

interface Victim {
  readonly qp: Qp;
  receivesTaken: number;
}

/**
 * A positive acknowledgement of what has been acknowledged, or was never sent: lawful, and without effect (IBTA vol 1, 9.7.5.1.2).
 */
function isGhost({ bytes }: HostilePacket): boolean {
  const base = (bytes[1]! & 3) === 3 ? 48 : 8;
  return bytes[base] === Opcode.RC_ACKNOWLEDGE && ((bytes[base + 12]! >> 5) & 3) === 0;
}

export class HostileScene {
  readonly bench: DataPathBench;
  readonly targets: Targets;
  readonly #node: DataPathNode;
  readonly #cq: Cq;
  readonly #receives: Region;
  /** Of the living victims, in the order of {@link services}; and every victim there has been. */
  readonly #qpns: number[] = [];
  readonly #victims = new Map<number, Victim>();
  /** What packets may change, with what it held. */
  readonly #open: readonly { readonly region: Region; readonly held: Uint8Array }[];
  readonly #bystanders: ReturnType<typeof connectedPair>;
  #before: Uint8Array | undefined;
  /** Packets that left no trace, as they were drawn. */
  readonly silent: PacketDraw[] = [];

  private constructor(bench: DataPathBench) {
    this.bench = bench;
    const node = bench.b;
    this.#node = node;
    this.#bystanders = connectedPair(bench.a, node, { ackTimeout: 4 });
    this.#cq = new Cq(node, 9);
    const write = new Region(node, 5000, { pageOffset: 3000 });
    const none = { localRead: true };
    const regions = [
      write,
      new Region(node, 5000, { rights: { ...none, remoteRead: true } }),
      new Region(node, 5000, { pd: PD + 1 }),
      new Region(node, 5000, { rights: none }),
      new Region(node, 8192, { holes: [1] }),
      new Region(node, 64, { pageOffset: 4090 }),
    ];
    const receives = new Region(node, RECEIVES * RECEIVE_BYTES, {
      rights: { localRead: true, localWrite: true },
    });
    this.#receives = receives;
    for (const [index] of services.entries()) this.#makeVictim(index);
    this.targets = {
      lid: node.address.lid,
      gid: node.address.gids.slice(0, 16),
      qpns: this.#qpns,
      serviceOf: (qpn) => serviceCodes[services[this.#qpns.indexOf(qpn)]?.serviceType ?? -1],
      psnOf: (qpn) => this.#psnOf(qpn),
      regions: regions.map(({ address, lengthBytes, key }) => ({ address, bytes: lengthBytes, key })),
      qkey: QKEY,
    };
    for (const [index, region] of [...regions, receives].entries()) region.fill(index + 1);
    this.#open = [regions[0]!, regions[4]!, regions[5]!, receives].map((region) => ({
      region,
      held: region.read(0, region === regions[4] ? 4096 : region.lengthBytes),
    }));
  }

  static async open(): Promise<HostileScene> {
    const bench = await dataPathBench({ wire: { packetForm: 'bytes' } });
    const scene = new HostileScene(bench);
    await bench.run(10);
    scene.#before = bench.b.memory.bytes.slice();
    return scene;
  }

  /** The packet of a draw arrives, and all that follows from it has happened. */
  async arrive(draw: PacketDraw): Promise<void> {
    await this.#revive();
    const packet = hostilePacket(draw, this.targets);
    if (this.#isForBystander(packet)) return;
    const before = this.#traces();
    if (!this.#inject(packet)) return;
    for (const us of [3, 40]) {
      await this.bench.run(us);
      this.#takeCompletions();
      if (this.#traces() !== before || isGhost(packet)) return;
    }
    this.silent.push(draw);
  }

  /** All that holds in the end. */
  async check(): Promise<void> {
    await this.bench.run(100);
    this.#takeCompletions();
    expect(this.silent, 'packets that left no trace').toEqual([]);
    this.#checkMemory();
    await this.#checkBystanders();
  }

  /** A fresh queue pair, in place of one that has failed. */
  #makeVictim(index: number): void {
    const { bytes } = this.#node.memory;
    const from = this.#node.allocate(0);
    const qp = new Qp(this.#node, { sendCq: this.#cq, fields: { ...services[index] } });
    qp.connect(STRANGER, 100, 0xff_fffa);
    for (let place = 0; place < RECEIVES; place++)
      qp.receive([this.#receives.part(place * RECEIVE_BYTES, RECEIVE_BYTES)]);
    // Software has written its queues.
    this.#before?.set(bytes.subarray(from, this.#node.allocate(0)), from);
    this.#qpns[index] = qp.qpn;
    this.#victims.set(qp.qpn, { qp, receivesTaken: 0 });
  }

  async #revive(): Promise<void> {
    const failed = this.#qpns.flatMap((qpn, index) => {
      const { qp, receivesTaken } = this.#victims.get(qpn)!;
      return qp.state === QpState.ERR || receivesTaken === RECEIVES ? [index] : [];
    });
    if (failed.length === 0) return;
    for (const index of failed) this.#makeVictim(index);
    await this.bench.run(2);
  }

  #psnOf(qpn: number): number {
    const victim = this.#victims.get(qpn);
    return victim === undefined ? 0 : this.#node.dataPath.core.qps.rows[victim.qp.slot]!.expectedPsn;
  }

  /** A forged packet with all the numbers of a connection is that connection's: no device can tell. */
  #isForBystander({ bytes }: HostilePacket): boolean {
    const view = new DataView(bytes.buffer);
    return [8, 48].some(
      (base) => base + 8 <= bytes.length && (view.getUint32(base + 4) & 0xff_ffff) === this.#bystanders.b.qpn,
    );
  }

  /** Puts bytes on the cable as they are. False: the cable takes none now. */
  #inject({ bytes, virtualLane }: HostilePacket): boolean {
    const { wire, lp } = this.bench.a;
    const hasRoute = bytes.length >= HEADERS_BYTES + GRH_BYTES;
    const flags = hasRoute ? FLAG_GRH : 0;
    const payloadBytes = bytes.length - HEADERS_BYTES - (hasRoute ? GRH_BYTES : 0);
    if (!wire.canTransmit(Opcode.RC_SEND_ONLY, payloadBytes, flags, virtualLane)) return false;
    const offset = wire.beginPacket(Opcode.RC_SEND_ONLY, payloadBytes, flags, lp.nowPs, virtualLane);
    const bodyBytes = (payloadBytes + (hasRoute ? GRH_BYTES + 3 : 0) + 3) & ~3;
    wire.txBytes.set(bytes, offset + PACKET_PAYLOAD_OFFSET + bodyBytes);
    return true;
  }

  /** What a packet may leave behind: counts of reasons and answers, and where queue pairs are. */
  #traces(): string {
    const { dataPath, wire } = this.#node;
    const { violations, transport, pageFaults, qps } = dataPath.core;
    const { corrupted, malformedPackets, managementDrops, overruns } = wire.received;
    const pairs = this.#qpns.map((qpn) => {
      const { qp, receivesTaken } = this.#victims.get(qpn)!;
      const { expectedPsn, state, messageKind, writeRemaining } = qps.rows[qp.slot]!;
      return [expectedPsn, state, messageKind, writeRemaining, receivesTaken].join();
    });
    return [
      corrupted.packetTotal,
      malformedPackets,
      managementDrops,
      overruns,
      ...violations.counts,
      ...transport.counts,
      pageFaults.droppedPacketCount,
      this.bench.a.port.packets.length,
      ...pairs,
    ].join();
  }

  #takeCompletions(): void {
    for (const completion of this.#cq.drain()) this.#takeCompletion(completion);
  }

  #takeCompletion({ qpn, isSend, wqeCounter }: Completion): void {
    const victim = this.#victims.get(qpn);
    expect(victim, `a completion of QP ${qpn}`).toBeDefined();
    expect(isSend, 'a completion of a send that was not posted').toBe(false);
    expect(wqeCounter).toBe(victim!.receivesTaken++);
    expect(victim!.receivesTaken).toBeLessThanOrEqual(RECEIVES);
  }

  #checkMemory(): void {
    const { memory } = this.#node;
    for (const { region, held } of this.#open) region.write(held);
    const now = memory.bytes;
    const cq = { first: this.#cq.bufferAddress, end: this.#cq.bufferAddress + (32 << 9) };
    const record = { first: this.#cq.recordAddress, end: this.#cq.recordAddress + 8 };
    const allowed = [ICM, record, cq].sort((left, right) => left.first - right.first);
    let at = 0;
    for (const { first, end } of [...allowed, { first: now.length, end: now.length }]) {
      const [is, was] = [now.subarray(at, first), this.#before!.subarray(at, first)];
      if (Buffer.compare(is, was) !== 0)
        expect.fail(
          `byte ${at + is.findIndex((byte, place) => byte !== was[place])} of host memory has changed`,
        );
      at = end;
    }
  }

  async #checkBystanders(): Promise<void> {
    const { a, b, aCq } = this.#bystanders;
    const from = new Region(this.bench.a, 3000);
    const to = new Region(this.#node, 3000);
    from.write(pattern(9, 3000));
    const remote = { address: to.address, key: to.key };
    a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [from.part()], remote });
    const taken: Completion[] = [];
    await this.bench.until(() => taken.push(...aCq.drain()) > 0, 400);
    expect(taken.map(({ syndrome }) => syndrome)).toEqual([0]);
    expect([a.state, b.state]).toEqual([QpState.RTS, QpState.RTS]);
    expect(to.read()).toEqual(from.read());
  }
}
