/** Cards of iWARP with drawn parameters, and connections of theirs by rdma_cm: scenes about iWARP share these. */
import { toInit } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { cmPort, nameOf } from './cm-connection.ts';
import type { Device, Draws, ParameterValues, Stage } from './language/index.ts';
import { codeOf, patternOf, psPerMs, psPerUs, topic } from './language/index.ts';

/** Draws parameters of cards, TCP, MPA and the cable. Time-outs are short, so that stories end. */
export function drawIwarp(random: Draws): ParameterValues {
  const mtuBytes = random.chance(0.4)
    ? random.between(1280, 9000)
    : random.oneOf([1500, 1500, 1280, 4200, 9000]);
  const metres = random.chance(0.7) ? 7 : random.below(1000);
  return {
    'hca.capability.linkLayer': 'ethernet',
    'hca.capability.transport': 'iwarp',
    'ethernet.mtuBytes': mtuBytes,
    'ethernet.gigabitsPerSecond': random.oneOf([1, 10, 40, 40, 100]),
    'ethernet.cableMetres': metres,
    'ethernet.pauseCableMetres': Math.max(7, metres),
    // At least two segments: the window before a QP has the stream.
    'hca.iwarp.streamBytes': Math.max(4096, 2 * mtuBytes) + random.below(random.chance(0.5) ? 1 : 20_000),
    'hca.iwarp.retransmitMinUs': random.oneOf([1000, 5000, 200_000]),
    'hca.iwarp.retransmitInitialUs': random.oneOf([5000, 1_000_000]),
    'hca.iwarp.delayedAckUs': random.oneOf([0, 500, 40_000]),
    'hca.iwarp.timeWaitUs': random.oneOf([1000, 100_000, 60_000_000]),
    // Sequence numbers that wrap during the story.
    'hca.iwarp.firstSequence': random.chance(0.6)
      ? 2 ** 32 - 1 - random.below(2 ** (6 + random.below(16)))
      : random.uint32(),
    ...random.maybe(0.3, () => ({ 'hca.iwarp.contextEntries': 1, 'hca.iwarp.contextWays': 1 })),
    ...random.maybe(0.3, () => ({ 'hca.iwarp.connectionBytes': 20_000 + random.below(20_000) })),
    // More than the window of the peer.
    ...random.maybe(0.2, () => ({
      'hca.iwarp.connectionBytes': 500_000,
      'hca.iwarp.retransmissionBytes': 2_000_000,
      'hca.iwarp.initialWindowSegments': 100,
    })),
    ...random.maybe(0.2, () => ({ 'hca.iwarp.reorderBytes': 20_000 + random.below(60_000) })),
    'hca.iwarp.packsFpdus': random.chance(0.4),
    ...random.maybe(0.2, () => ({ 'hca.iwarp.placementSegments': 1 + random.below(4) })),
    ...random.maybe(0.2, () => ({ 'hca.iwarp.transmitFrames': 2 + random.below(3) })),
    ...random.maybe(0.2, () => ({ 'hca.iwarp.initialWindowSegments': 1 + random.below(4) })),
    ...random.maybe(0.2, () => ({ 'hca.iwarp.receiveCycles': 1 + random.below(1000) })),
    'driver.mpaRevision': random.chance(0.25) ? 1 : 2,
    'driver.mpaCrc': random.chance(0.8),
    // Markers alone locate segments after a gap.
    ...(random.chance(0.4)
      ? { 'driver.mpaMarkers': true, 'hca.iwarp.earlySegments': random.oneOf([0, 1, 4, 32, 32]) }
      : { 'driver.mpaMarkers': false }),
    'driver.mpaPeerToPeer': random.chance(0.75),
    'driver.mpaReadyMessage': random.oneOf(['any', 'write', 'read', 'send']),
    'driver.tcpSack': random.chance(0.7),
    'driver.tcpTimestamps': random.chance(0.4),
    'driver.tcpCongestion': random.oneOf(['newreno', 'cubic']),
    // Less than the initial congestion window.
    ...random.maybe(0.3, () => ({ 'driver.tcpWindowBytes': 2048 + random.below(30_000) })),
  };
}

/** For some stories, a second play whose clocks are set back in mid-traffic: epochs of the first one begin between connections at most. */
export const drawEpochs = (random: Draws) =>
  random.maybe(0.15, () => ({
    again: {
      partition: 'single' as const,
      shuffleSeed: undefined,
      epochPs: Math.round((3 + random.unit() * 2 ** random.below(12)) * psPerUs),
    },
  }));

/** Whether a responder may send before its initiator does (RFC 6581, 4): the initiator sends a message of its own accord. */
export const isPeerToPeer = (set: ParameterValues): boolean =>
  set['driver.mpaPeerToPeer'] === true && set['driver.mpaRevision'] === 2;

/** A connection that is to be made. */
export interface LinkPlan {
  /** Node that connects. */
  readonly asker: number;
  readonly isIpv6: boolean;
  /** IRD and ORD of each node. */
  readonly reads: readonly { readonly inbound: number; readonly outbound: number }[];
  /** Bytes of private data in the connection request. */
  readonly privateBytes: number;
}

export const drawLink = (random: Draws): LinkPlan => ({
  asker: random.below(2),
  isIpv6: random.chance(0.3),
  reads: [0, 1].map(() => ({ inbound: random.between(1, 16), outbound: random.between(1, 16) })),
  privateBytes: random.chance(0.5) ? 0 : random.below(256),
});

const resolveMs = 2000;
const triesMax = 5;
const cmPatiencePs = 100_000 * psPerMs;
const linkLocal = topic<string>('address');

/** Link-local address by the modified EUI-64 of a MAC (RFC 4291, appendix A). */
function linkLocalOf(mac: Buffer): string {
  const digits = Buffer.from([mac[0]! ^ 2, mac[1]!, mac[2]!, 0xff, 0xfe, ...mac.subarray(3)]).toString('hex');
  return `fe80::${digits.match(/.{4}/g)!.join(':')}`;
}

/** Makes and ends the connections of a program, one after another. */
export class IwarpLinks {
  readonly device: Device;
  readonly ids: ibv.RdmaCmId[] = [];
  readonly #stage: Stage<unknown>;
  readonly #channel: ibv.RdmaEventChannel;
  readonly #listener: ibv.RdmaCmId;
  readonly #peerAddress: string;

  private constructor(parts: {
    readonly stage: Stage<unknown>;
    readonly device: Device;
    readonly channel: ibv.RdmaEventChannel;
    readonly listener: ibv.RdmaCmId;
    readonly peerAddress: string;
  }) {
    this.#stage = parts.stage;
    this.device = parts.device;
    this.#channel = parts.channel;
    this.#listener = parts.listener;
    this.#peerAddress = parts.peerAddress;
  }

  /** Opens the device, and listens at any address. Both programs call it. */
  static async open(stage: Stage<unknown>): Promise<IwarpLinks> {
    const device = await stage.open();
    const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
    const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
    await ibv.rdmaBindAddr(listener, { sinAddr: '::', sinPort: cmPort });
    await ibv.rdmaListen(listener, 16);
    // The GID of an RNIC begins with its MAC.
    const mac = Buffer.from(await ibv.queryGid(device.context, 1, 0)).subarray(0, 6);
    const peerAddress = await stage.swap(linkLocal, linkLocalOf(mac));
    await stage.meet('both listen');
    return new IwarpLinks({ stage, device, channel, listener, peerAddress });
  }

  /** Connects a QP, or accepts the peer's request with it. */
  async make(plan: LinkPlan, qp: ibv.IbvQp, beforeReady: () => void = () => {}): Promise<void> {
    const { node } = this.#stage;
    const initiatorDepth = this.#depthOf(plan);
    const isExchanged = this.#stage.context.configuration.driver.mpaRevision === 2;
    const { inbound, outbound } = plan.reads[node]!;
    // Revision 1 exchanges nothing: programs have agreed by other means.
    const reads = { responderResources: inbound, initiatorDepth: isExchanged ? outbound : initiatorDepth };
    await toInit(qp);
    beforeReady();
    const privateData = patternOf(plan.privateBytes, plan.privateBytes);
    if (node !== plan.asker) {
      const { id, param } = (await this.#expect('CONNECT_REQUEST'))!;
      this.#stage.expectBytes('private data of a request', param.conn.privateData, privateData);
      id.qp = qp;
      this.ids.push(id);
      await ibv.rdmaAccept(id, reads);
    } else {
      const id = await ibv.rdmaCreateId(this.#channel, null, ibv.RDMA_PS_TCP);
      this.ids.push(id);
      await this.#resolve(id, plan.isIpv6 ? this.#peerAddress : `10.0.0.${2 - node}`);
      id.qp = qp;
      await ibv.rdmaConnect(id, { ...reads, privateData });
    }
    const established = await this.#expect('ESTABLISHED');
    const { initiatorDepth: agreed } = established!.param.conn;
    if (agreed !== initiatorDepth)
      this.#stage.accuse(`the initiator depth is ${agreed}, ${initiatorDepth} was due`);
  }

  async #resolve(id: ibv.RdmaCmId, sinAddr: string): Promise<void> {
    // Requests for a neighbour are few, and the cable may lose them all.
    for (let tries = 0; ; tries++) {
      await ibv.rdmaResolveAddr(id, null, { sinAddr, sinPort: cmPort }, resolveMs);
      if (await this.#expect('ADDR_RESOLVED', tries < triesMax ? 'ADDR_ERROR' : undefined)) break;
    }
    await ibv.rdmaResolveRoute(id, resolveMs);
    await this.#expect('ROUTE_RESOLVED');
  }

  /** RFC 6581, 9: at most the peer's IRD. */
  #depthOf({ reads }: LinkPlan): number {
    const { node } = this.#stage;
    return Math.min(reads[node]!.outbound, reads[1 - node]!.inbound);
  }

  /** Waits until this number of connections is reported as ended. @returns how many were when the wait ended */
  async disconnected(count: number, patiencePs = cmPatiencePs): Promise<number> {
    let seen = 0;
    while (seen < count) {
      const event = await ibv.rdmaGetCmEvent(this.#channel, patiencePs);
      if (event === undefined) break;
      ibv.rdmaAckCmEvent(event);
      const name = nameOf(event);
      if (name === 'DISCONNECTED') seen++;
      else if (name !== 'TIMEWAIT_EXIT') this.#stage.accuse(`${name} of a connection that ends`);
    }
    return seen;
  }

  /** Destroys QPs, IDs and the channel. */
  async close(): Promise<void> {
    for (const id of this.ids) {
      const { qp } = id;
      id.qp = null;
      if (qp !== null && (await codeOf(this.device.destroyQp(qp))) !== 'ok') this.#stage.accuse('a QP stays');
      await ibv.rdmaDestroyId(id);
    }
    await ibv.rdmaDestroyId(this.#listener);
    for (let event = await ibv.rdmaGetCmEvent(this.#channel, 0); event !== undefined; ) {
      ibv.rdmaAckCmEvent(event);
      event = await ibv.rdmaGetCmEvent(this.#channel, 0);
    }
    await ibv.rdmaDestroyEventChannel(this.#channel);
  }

  /** The next event. @returns undefined for the other one that is bearable */
  async #expect(name: string, bearable?: string): Promise<ibv.RdmaCmEvent | undefined> {
    const event = await ibv.rdmaGetCmEvent(this.#channel, cmPatiencePs);
    if (event !== undefined) ibv.rdmaAckCmEvent(event);
    const seen = event === undefined ? 'no event' : nameOf(event);
    if (seen === name) return event;
    if (seen === bearable) return undefined;
    throw new Error(`${seen} of rdma_cm in place of ${name}`);
  }
}
