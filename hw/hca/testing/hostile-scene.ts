/**
 * A node with queue pairs of all services, regions of all rights and posted receives, at whose port packets of a stranger arrive; on a port
 * of Ethernet also a ring. Judges: nothing is thrown; every packet leaves a trace (it was refused for a named reason, answered, or it moved
 * a queue pair on); one whose headers are wrong is counted once, under its reason, and under no other; no byte changes but of regions that
 * a packet may name and of posted receives; a completion comes only of a posted receive; and another connection works as before.
 */
import { expect } from 'vitest';
import { PathMtu, QpState, type qpc, ServiceType } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { Initial } from '../../../base/index.ts';
import { DataPathBench, type DataPathNode, ibtaCarrier } from './data-path-bench.ts';
import {
  type Completion,
  Cq,
  connectedPair,
  PD,
  pattern,
  Qp,
  Region,
  Srq,
  takeNumber,
} from './data-path-verbs.ts';
import { DOMAIN } from './extended-connection.ts';
import { type HostilePacket, type Targets, XRC_SERVICE_CODE } from './hostile-packets.ts';
import { GROUP, type HostilePort, LONGEST_BYTES, VLAN } from './hostile-ports.ts';
import { Ring, steer } from './rings.ts';
import { GID_INDEX, MAC_INDEX, macOfNode } from './roce-ends.ts';

const QKEY = 0x1111_1111;
/** An unused QP number at the other end. */
const STRANGER = 0x77_7777;
const RECEIVES = 12;
const RECEIVE_BYTES = 700;
/** Receive buffers of the ring: some frames are longer. */
const RING_RECEIVE_BYTES = 2000;
/** QP0 and QP1 of port 1, as software has placed them. */
const SPECIAL_BASE = 0x200;
const SPECIAL_QPNS = [SPECIAL_BASE, SPECIAL_BASE + 2];
/** Software marks XRC targets by it; the device does not look. */
const TARGET_BIT = 0x80_0000;
/** Address range in which the bench keeps contexts, which the device writes. */
const ICM = { first: 0x10_0000, end: 0x10_0000 + 0x400 * 4096 };

const noRights = { remoteReadEnabled: 0, remoteWriteEnabled: 0, remoteAtomicEnabled: 0 };
/** One victim of each. */
const services: readonly {
  readonly fields: Initial<typeof qpc> & { readonly serviceType: number };
  readonly hasSharedQueue?: true;
}[] = [
  { fields: { serviceType: ServiceType.RC } },
  { fields: { serviceType: ServiceType.RC } },
  { fields: { serviceType: ServiceType.RC, ...noRights } },
  { fields: { serviceType: ServiceType.RC, logMaxResponderReads: 0 } },
  { fields: { serviceType: ServiceType.UC } },
  { fields: { serviceType: ServiceType.UD, qkey: QKEY } },
  { fields: { serviceType: ServiceType.RC }, hasSharedQueue: true },
  { fields: { serviceType: ServiceType.XRC }, hasSharedQueue: true },
];
/** Services as the upper bits of opcodes have them. */
const serviceCodes: Readonly<Record<number, number>> = {
  [ServiceType.RC]: 0,
  [ServiceType.UC]: 1,
  [ServiceType.UD]: 3,
  [ServiceType.XRC]: XRC_SERVICE_CODE,
};

interface Victim {
  readonly qp: Qp;
  readonly srq?: Srq | undefined;
  receivesTaken: number;
}

/**
 * True for a positive acknowledgement of packets that were acknowledged before, or never sent: lawful, and without
 * effect (IBTA vol 1, 9.7.5.1.2).
 */
function isGhost({ bytes, base }: HostilePacket): boolean {
  if (base === undefined) return false;
  // A flipped bit of the LRH may have added or removed a GRH before it.
  return [base, 8, 48].some(
    (place) => (bytes[place]! & 0x5f) === 0x11 && ((bytes[place + 12]! >> 5) & 3) === 0,
  );
}

/** True for a packet to a group: if the group has no member the packet belongs to no QP, and nothing counts it. */
function isForGroup({ bytes, base }: HostilePacket): boolean {
  if (base === undefined) return false;
  const isToMembers = bytes[base + 5] === 0xff && bytes[base + 6] === 0xff && bytes[base + 7] === 0xff;
  // The GID ends where the BTH begins, or a UDP header before it.
  return isToMembers && [base - 16, base - 8 - 16].some((place) => bytes[place] === 0xff);
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

export class HostileScene<Draw> {
  readonly bench: DataPathBench;
  readonly targets: Targets;
  readonly #port: HostilePort<Draw>;
  readonly #node: DataPathNode;
  readonly #cq: Cq;
  readonly #receives: Region;
  /**
   * QPNs of the living victims, in the order of {@link services}, and every victim ever created.
   */
  readonly #qpns: number[] = [];
  readonly #victims = new Map<number, Victim>();
  /** QPN of the ring on a port of Ethernet. */
  #ringQpn = -1;
  /** Regions that packets may change, with their initial contents. */
  readonly #open: readonly { readonly region: Region; readonly held: Uint8Array }[];
  /** The open regions above 2^52. */
  readonly #high: readonly Region[];
  readonly #bystanders: ReturnType<typeof connectedPair>;
  #before: Uint8Array | undefined;
  /** Packets that left no trace, and those that were counted otherwise than their headers say, as they were drawn. */
  readonly silent: Draw[] = [];
  readonly misjudged: { readonly draw: Draw; readonly verdict: string; readonly counts: string }[] = [];

  private constructor(bench: DataPathBench, port: HostilePort<Draw>) {
    this.bench = bench;
    this.#port = port;
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
    const receives = new Region(node, RECEIVES * RING_RECEIVE_BYTES, {
      rights: { localRead: true, localWrite: true },
    });
    this.#receives = receives;
    for (const [index] of services.entries()) this.#makeVictim(index);
    for (const qpn of SPECIAL_QPNS) this.#makeSpecialQp(qpn);
    if (node.ethernet !== undefined) this.#makeRing();
    const gidPlace = node.ethernet === undefined ? 0 : GID_INDEX * 16;
    // Made after all others, so that these keep their addresses.
    const high = this.#makeHighRegions();
    this.targets = {
      lid: node.address.lid,
      gid: node.address.gids.slice(gidPlace, gidPlace + 16),
      qpns: this.#qpns,
      serviceOf: (qpn) => serviceCodes[services[this.#qpns.indexOf(qpn)]?.fields.serviceType ?? -1],
      psnOf: (qpn) => this.#psnOf(qpn),
      srqnOf: (qpn) => this.#victims.get(qpn)?.srq?.srqn ?? 0,
      hasQp: (qpn) => qpn < 2 || node.dataPath.parts.qps.slotOf(qpn) !== -1,
      regions: regions.map(({ address, lengthBytes, key }) => ({ address, bytes: lengthBytes, key })),
      highRegions: high.map(({ region, start, isOpen }) => ({
        start,
        bytes: region.lengthBytes,
        key: region.key,
        isOpen,
      })),
      qkey: QKEY,
    };
    for (const [index, region] of [...regions, receives].entries()) region.fill(index + 1);
    for (const [index, { region }] of high.entries()) region.fill(index + 100);
    this.#high = high.flatMap(({ region, isOpen }) => (isOpen ? [region] : []));
    this.#open = [regions[0]!, regions[4]!, regions[5]!, receives, ...this.#high].map((region) => ({
      region,
      held: region.read(0, region === regions[4] ? 4096 : region.lengthBytes),
    }));
  }

  /** Makes regions with all rights: high, high but unreachable, across a multiple of 2^52, and low but unreachable. */
  #makeHighRegions(): { readonly region: Region; readonly start: bigint; readonly isOpen: boolean }[] {
    const of = (start: bigint, isOpen: boolean) => {
      const pageOffset = Number(start % 4096n);
      const region = new Region(this.#node, 5000, { pageOffset, fields: { startAddress: start } });
      return { region, start, isOpen };
    };
    return [
      of(0xabc0_1234_5678_9000n, true),
      of(0x8001_2345_6789_a040n, false),
      of(0x7ff0_0000_0000_0000n - 2500n, true),
      of(0x1234_5678_9080n, false),
    ];
  }

  static async open<Draw>(port: HostilePort<Draw>): Promise<HostileScene<Draw>> {
    const bench = new DataPathBench(port.options, ibtaCarrier);
    await bench.bringUp();
    const scene = new HostileScene(bench, port);
    await bench.run(10);
    scene.#before = bench.b.memory.bytes.slice();
    return scene;
  }

  /** Whether a packet has written to a region by an address of 64 bits. */
  get hasReachedHigh(): boolean {
    return this.#open.some(
      ({ region, held }) => this.#high.includes(region) && Buffer.compare(region.read(), held) !== 0,
    );
  }

  /** The packet of a draw arrives, and all that follows from it has happened. */
  async arrive(draw: Draw): Promise<void> {
    await this.#revive();
    const packet = this.#port.packetOf(draw, this.targets, this.bench);
    if (this.#isForBystander(packet)) return;
    const counts = this.#counts();
    const traces = this.#traces();
    if (!this.#port.inject(packet, this.bench)) return;
    let hasTrace = false;
    for (const us of [3, 40]) {
      await this.bench.run(us);
      this.#takeCompletions();
      hasTrace = this.#traces() !== traces || isGhost(packet) || isForGroup(packet);
      if (hasTrace) break;
    }
    if (!hasTrace) this.silent.push(draw);
    this.#judge(draw, packet, counts);
    await this.bench.run(this.#port.restUs(draw));
  }

  /** All that holds in the end. */
  async check(): Promise<void> {
    await this.bench.run(100);
    this.#takeCompletions();
    expect(this.silent, 'packets that left no trace').toEqual([]);
    expect(this.misjudged, 'packets that were not counted as their headers say').toEqual([]);
    this.#checkMemory();
    await this.#checkBystanders();
    this.bench.checkBalances();
  }

  /** Checks that a packet with a verdict by headers alone is counted once under that verdict and nowhere else. */
  #judge(draw: Draw, { verdict }: HostilePacket, before: Readonly<Record<string, number>>): void {
    if (verdict === undefined) return;
    const now = this.#counts();
    if (now[verdict] === (before[verdict] ?? 0) + 1 && sumOf(now) === sumOf(before) + 1) return;
    const changed = Object.entries(now).filter(([name, count]) => count !== before[name]);
    const counts = changed.map(([name, count]) => `${name} ${count - (before[name] ?? 0)}`).join();
    this.misjudged.push({ draw, verdict, counts });
  }

  /** A fresh queue pair, in place of one that has failed. */
  #makeVictim(index: number): void {
    const { fields, hasSharedQueue = false } = services[index]!;
    this.#write(() => {
      const node = this.#node;
      const isTarget = fields.serviceType === ServiceType.XRC;
      const inDomain = isTarget ? { xrcDomain: DOMAIN, cqn: this.#cq.cqn } : {};
      const srq = hasSharedQueue ? new Srq(node, 4, inDomain) : undefined;
      const target = { doorbellRecordAddress: 0n, xrcDomain: DOMAIN };
      const qp = new Qp(node, {
        sendCq: this.#cq,
        fields: { ...fields, ...(isTarget ? target : {}) },
        ...(isTarget ? { qpn: TARGET_BIT | takeNumber() } : srq === undefined ? {} : { srq }),
      });
      qp.connect(STRANGER, 100, 0xff_fffa);
      for (let place = 0; place < RECEIVES; place++) {
        const segments = [this.#receives.part(place * RECEIVE_BYTES, RECEIVE_BYTES)];
        if (srq === undefined) qp.receive(segments);
        else srq.post(segments);
      }
      this.#qpns[index] = qp.qpn;
      this.#victims.set(qp.qpn, { qp, srq, receivesTaken: 0 });
    });
  }

  /** Makes QP0 or QP1, with receives for once. */
  #makeSpecialQp(qpn: number): void {
    const node = this.#node;
    node.specialQpBase = SPECIAL_BASE;
    const fields = {
      serviceType: ServiceType.MLX,
      pathMtu: PathMtu.MTU_4096,
      logMaxMessage: 11,
      qkey: QKEY,
    } as const;
    const qp = new Qp(node, { sendCq: this.#cq, qpn, sqLogStride16: 5, fields });
    qp.connect(0, 0, 0);
    for (let place = 0; place < RECEIVES; place++)
      qp.receive([this.#receives.part(place * RECEIVE_BYTES, RECEIVE_BYTES)]);
    this.#victims.set(qpn, { qp, receivesTaken: 0 });
  }

  /** A fresh ring, to which the port's tables lead. */
  #makeRing(): void {
    this.#write(() => {
      const { qp } = new Ring(this.#node, { sendCq: this.#cq });
      for (let place = 0; place < RECEIVES; place++)
        qp.receive([this.#receives.part(place * RING_RECEIVE_BYTES, RING_RECEIVE_BYTES)]);
      this.#ringQpn = qp.qpn;
      this.#victims.set(qp.qpn, { qp, receivesTaken: 0 });
      const macs = new Array<number>(MAC_INDEX).fill(-1);
      const { steering } = this.#node.ethernet!.side;
      steer(this.#node, [...macs, macOfNode(2)], { baseQpn: qp.qpn - MAC_INDEX, multicastQpn: qp.qpn });
      steering.isGroupFilterOn = true;
      steering.groups.add(GROUP);
      steering.vlanFilter[VLAN] = 1;
      steering.longestBytes = LONGEST_BYTES;
    });
  }

  /** Lets software write its queues, and records what it has written. */
  #write(make: () => void): void {
    const { bytes } = this.#node.memory;
    const from = this.#node.allocate(0);
    make();
    this.#before?.set(bytes.subarray(from, this.#node.allocate(0)), from);
  }

  async #revive(): Promise<void> {
    const isGone = (qpn: number): boolean => {
      const { qp, receivesTaken } = this.#victims.get(qpn)!;
      return qp.state === QpState.ERR || receivesTaken === RECEIVES;
    };
    const failed = this.#qpns.flatMap((qpn, index) => (isGone(qpn) ? [index] : []));
    const isRingGone = this.#ringQpn !== -1 && isGone(this.#ringQpn);
    if (failed.length === 0 && !isRingGone) return;
    for (const index of failed) this.#makeVictim(index);
    if (isRingGone) this.#makeRing();
    await this.bench.run(2);
  }

  #psnOf(qpn: number): number {
    const victim = this.#victims.get(qpn);
    return victim === undefined ? 0 : this.#node.dataPath.parts.states.rows[victim.qp.slot]!.expectedPsn;
  }

  /** A forged packet with all the numbers of a connection is that connection's: no device can tell. */
  #isForBystander({ bytes, base }: HostilePacket): boolean {
    const view = new DataView(bytes.buffer);
    return [8, 48, base ?? bytes.length].some(
      (place) =>
        place + 8 <= bytes.length && (view.getUint32(place + 4) & 0xff_ffff) === this.#bystanders.b.qpn,
    );
  }

  /** Reasons for which packets are dropped; those of the device that have not occurred left out. */
  #counts(): Record<string, number> {
    return { ...this.#node.dataPath.parts.violations.report(), ...this.#port.counts(this.bench) };
  }

  /** State that a packet may change: counts of reasons and answers, and the states of queue pairs. */
  #traces(): string {
    const { transport, pageFaults, qps, states } = this.#node.dataPath.parts;
    const pairs = [...this.#qpns, ...SPECIAL_QPNS, ...(this.#ringQpn === -1 ? [] : [this.#ringQpn])];
    return [
      ...Object.entries(this.#counts()),
      ...transport.counts,
      pageFaults.droppedPacketCount,
      this.#port.answerCount(this.bench),
      ...pairs.map((qpn) => {
        const { qp, receivesTaken } = this.#victims.get(qpn)!;
        const { state, messageKind, writeRemaining } = qps.rows[qp.slot]!;
        const { expectedPsn } = states.rows[qp.slot]!;
        return [expectedPsn, state, messageKind, writeRemaining, receivesTaken].join();
      }),
    ].join();
  }

  #takeCompletions(): void {
    for (const completion of this.#cq.drain()) this.#takeCompletion(completion);
  }

  #takeCompletion({ qpn, isSend, wqeCounter }: Completion): void {
    const victim = this.#victims.get(qpn);
    expect(victim, `a completion of QP ${qpn}`).toBeDefined();
    expect(isSend, 'a completion of a send that was not posted').toBe(false);
    // A list has its places in their order as long as none has been given back.
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
