/** The evidence of a run, with queries for the rules. A QP number may be reused: each query uses the life at an instant. */
import type {
  CqEvidence,
  CqUse,
  DeviceEvidence,
  DropEvidence,
  Evidence,
  HostEvidence,
  ObjectLines,
  PostEvidence,
  QpEvidence,
  QpStateName,
  RegionEvidence,
  StreamEvidence,
} from '../../machine/evidence/index.ts';
import { peersOf, type Topology } from '../../machine/topology/index.ts';

/** A QP with its host. */
export interface OnNode<T> {
  readonly node: number;
  readonly of: T;
}

/** An injected fault, and how often it fired. */
export interface FiredFault {
  readonly fault: string;
  readonly fired: number;
}

export class Scene {
  readonly devices: readonly DeviceEvidence[];
  readonly hosts: readonly HostEvidence[];
  readonly faults: readonly FiredFault[];
  readonly #topology: Topology;

  constructor({ devices, hosts, topology }: Evidence, faults: readonly FiredFault[] = []) {
    this.devices = devices;
    this.hosts = hosts;
    this.#topology = topology;
    this.faults = faults.filter(({ fired }) => fired > 0);
  }

  device(node: number): DeviceEvidence | undefined {
    return this.devices.find((device) => device.node === node);
  }

  host(node: number): HostEvidence | undefined {
    return this.hosts.find((host) => host.node === node);
  }

  /** Hosts at the other ends of a host's cables. */
  peers(node: number): number[] {
    return peersOf(this.#topology, node).filter((peer) => peer !== node);
  }

  /** The host at the other end of a host's cable; undefined if its port is open or has a loopback plug. */
  farNode(node: number): number | undefined {
    return this.peers(node)[0];
  }

  /** The host at the other end of the cable, if its software is simulated. */
  farHost(node: number): HostEvidence | undefined {
    const far = this.farNode(node);
    return far === undefined ? undefined : this.host(far);
  }

  /** The device at the other end of the cable. */
  farDevice(node: number): DeviceEvidence | undefined {
    const far = this.farNode(node);
    return far === undefined ? undefined : this.device(far);
  }

  /** The life of a QP at an instant: the last one that began before it. */
  qp(node: number, qpn: number, atPs = Number.POSITIVE_INFINITY): QpEvidence | undefined {
    return this.device(node)?.qps.findLast((qp) => qp.qpn === qpn && qp.createdPs <= atPs);
  }

  cq(node: number, cqn: number): CqEvidence | undefined {
    return this.device(node)?.cqs.findLast((cq) => cq.cqn === cqn);
  }

  cqUse(node: number, cqn: number): CqUse | undefined {
    return this.host(node)?.cqs.find((use) => use.cqn === cqn);
  }

  /** The device at the end of a connection's path: the one with the address, over the cable or back to its own port. */
  target(node: number, { path }: QpEvidence): DeviceEvidence | undefined {
    const near = [node, ...this.peers(node)].map((each) => this.device(each));
    return near.find((device) => {
      if (device === undefined) return false;
      if (device.isEthernet) return path.gid !== undefined && device.port.gids.includes(path.gid);
      // A LID is in use until the port goes down, and returns unchanged with the port.
      if (path.lid !== 0 && path.lid === device.port.lid) return true;
      return path.gid !== undefined && path.lid === 0 && device.port.gids.includes(path.gid);
    });
  }

  /** The stream of a QP at an instant, over iWARP: the last one that it was given. */
  stream(node: number, qpn: number, atPs = Number.POSITIVE_INFINITY): StreamEvidence | undefined {
    return this.device(node)?.streams.findLast((stream) => stream.qpn === qpn && stream.openedPs <= atPs);
  }

  /** The other end of a TCP connection, if it is of this machine. */
  farStream(stream: StreamEvidence): OnNode<StreamEvidence> | undefined {
    const isFarEnd = (other: StreamEvidence): boolean =>
      other.isActive !== stream.isActive &&
      other.localAddress === stream.remoteAddress &&
      other.localPort === stream.remotePort &&
      other.remoteAddress === stream.localAddress &&
      other.remotePort === stream.localPort &&
      other.openedPs <= (stream.endedPs ?? Number.POSITIVE_INFINITY) &&
      stream.openedPs <= (other.endedPs ?? Number.POSITIVE_INFINITY);
    for (const { node, streams } of this.devices) {
      const of = streams.findLast(isFarEnd);
      if (of !== undefined) return { node, of };
    }
    return undefined;
  }

  #peerOfStream(node: number, qpn: number, atPs?: number): OnNode<QpEvidence> | undefined {
    const stream = this.stream(node, qpn, atPs);
    const far = stream && this.farStream(stream);
    const of = far && this.qp(far.node, far.of.qpn, far.of.endedPs);
    return of && { node: far.node, of };
  }

  /** The QP that a connection sends to, if one with its number exists at the address. */
  peer(node: number, qp: QpEvidence, atPs?: number): OnNode<QpEvidence> | undefined {
    const ofStream = this.#peerOfStream(node, qp.qpn, atPs);
    if (ofStream !== undefined) return ofStream;
    const target = this.target(node, qp);
    const of = target && this.qp(target.node, qp.remoteQpn, atPs);
    return of && { node: target!.node, of };
  }

  /** QPs of either end of the cable that send to this one. */
  senders(node: number, qp: QpEvidence): OnNode<QpEvidence>[] {
    return [...this.peers(node), node].flatMap((from) =>
      (this.device(from)?.qps ?? []).flatMap((of) =>
        of !== qp && of.remoteQpn === qp.qpn && of.service === qp.service && of.service !== 'UD'
          ? [{ node: from, of }]
          : [],
      ),
    );
  }

  /** The QP at the other end that is connected to this one, the most recent if several are. */
  intended(node: number, qp: QpEvidence): OnNode<QpEvidence> | undefined {
    const ofStream = this.#peerOfStream(node, qp.qpn);
    if (ofStream !== undefined) return ofStream;
    return this.senders(node, qp).find((sender) => sender.node !== node) ?? this.senders(node, qp)[0];
  }

  lines(node: number, object: ObjectLines['object'], number: number): ObjectLines | undefined {
    return this.host(node)?.lines.findLast((lines) => lines.object === object && lines.number === number);
  }

  post(node: number, qpn: number, wqeCounter: number): PostEvidence | undefined {
    return this.host(node)?.posts.findLast((post) => post.qpn === qpn && post.wqeCounter === wqeCounter);
  }

  /** Packets that a device dropped for one of these reasons. */
  drops(
    node: number,
    reasons: readonly string[],
    isMeant: (drop: DropEvidence) => boolean = () => true,
  ): DropEvidence | undefined {
    const found = this.device(node)?.drops.filter((drop) => reasons.includes(drop.reason) && isMeant(drop));
    if (found === undefined || found.length === 0) return undefined;
    const count = found.reduce((sum, drop) => sum + drop.count, 0);
    return { ...found[0]!, count };
  }

  /** Regions of a device that had a key, in order of creation. */
  regions(node: number, isMeant: (region: RegionEvidence) => boolean): RegionEvidence[] {
    return (this.device(node)?.regions ?? []).filter(isMeant);
  }

  /** Receives posted to a QP: counted by its program if that is known, else by the device. */
  receivesPosted(node: number, qp: QpEvidence): number {
    const use = this.host(node)?.receives.find(({ qpn }) => qpn === qp.qpn);
    if (qp.srqn !== -1) {
      const shared = this.host(node)?.receives.filter(({ qpn }) => qpn === -1);
      return shared === undefined || shared.length === 0
        ? qp.receivesPosted
        : shared.reduce((sum, { count }) => sum + count, 0);
    }
    return this.host(node) === undefined ? qp.receivesPosted : (use?.count ?? 0);
  }

  /** The line at which a program posted the receives of a QP, or of its shared queue. */
  receiveLine(node: number, { qpn, srqn }: QpEvidence): string | undefined {
    const receives = this.host(node)?.receives;
    return receives?.find((use) => use.qpn === (srqn === -1 ? qpn : -1))?.line;
  }

  /** Whether faults that lose or damage packets were requested for the cable. */
  get packetFaults(): readonly FiredFault[] {
    return this.faults.filter(({ fault }) => /packet|frame|cable|port/.test(fault));
  }
}

/**
 * Says who damaged packets: a cable, or a switch or adapter, after which the ICRC alone is wrong (IBTA volume 1, 7.8).
 * @param fault the fault that fired; undefined if none did
 */
export function damagerOf(fault: FiredFault | undefined): { readonly did: string; readonly mend: string } {
  return fault !== undefined && /crc=icrc/.test(fault.fault)
    ? { did: 'A switch or an adapter damaged', mend: 'Replace the switch or adapter' }
    : { did: 'The cable lost or damaged', mend: 'Mend the cable' };
}

/** The state of a QP at an instant. */
export function stateAt(qp: QpEvidence, atPs: number): QpStateName {
  if (qp.destroyedPs !== undefined && qp.destroyedPs <= atPs) return 'RESET';
  return qp.states.findLast((change) => change.atPs <= atPs)?.state ?? 'RESET';
}
