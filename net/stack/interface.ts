/**
 * An interface of the host: the adapter without a tag (eth0), or with the tag of a VLAN (eth0.7). It has its own addresses and
 * is reached only by those: packets for another interface's address are not its own (RFC 1122, 3.3.4.2, the strong model).
 *
 *     frame ─┬─ ARP ──► IPv4's neighbours      ┐
 *            ├─ a neighbor message ──► IPv6's  ┘ ─► MACs          a packet of ours ─► route ─► neighbours ─► device, with the tag
 *            └─ IPv4, IPv6 ──► the stack
 *
 * With IPv6 it has the link-local address derived from its MAC, in addition to those of the configuration, and is a member of
 * their groups. It does not check for duplicate addresses (RFC 4862, 5.4), neither solicits nor handles routers, and does not
 * report groups (RFC 3810). Sources: RFC 826; RFC 4861; RFC 4291, 2.8; IEEE 802.1Q, 9.6; Linux 6.1, net/8021q (names,
 * priorities).
 */
import { viewOf } from '../../base/index.ts';
import {
  allNodes,
  arpRequest,
  macOfIpv6Group,
  neighborSolicitation,
  receiveArp,
  receiveNeighborMessage,
} from '../../driver/network/index.ts';
import type { Cpu } from '../platform.ts';
import {
  bytesOfIp,
  type IpAddress,
  Ipv6Address,
  isSameAddress,
  linkLocalOf,
  solicitedNodeOf,
} from './address.ts';
import { noTag, type OutboundFrame, type StackEnvironment } from './environment.ts';
import { type NeighbourRoute, Neighbours, type Resolution } from './neighbours.ts';
import type { PacketBuffer } from './packet-buffer.ts';

/** IPv6 addresses in addition to the link-local one. */
interface Ipv6Setup {
  readonly addresses: readonly Ipv6Address[];
  /** Length of the prefix that all hosts of the link share with one of them. */
  readonly prefixBits: number;
  /** Hosts with configured MACs, which are not resolved. */
  readonly neighbours: readonly (readonly [Ipv6Address, Uint8Array])[];
}

/** Configuration of an interface. */
export interface InterfaceSetup {
  /** Its IPv4 address as a number. */
  readonly address: number;
  /** Configured MACs of IPv4 hosts, which never change. */
  readonly neighbours: ReadonlyMap<number, Uint8Array>;
  /** Length of the prefix, 1 to 30, that all hosts of the link share with its address: these hosts are resolved. Left out: no other hosts exist. */
  readonly linkPrefixBits?: number | undefined;
  /** Set-up of IPv6; left out: no IPv6. */
  readonly ipv6?: Ipv6Setup | undefined;
}

/** An interface of a VLAN. */
export interface VlanSetup extends InterfaceSetup {
  /** 1 to 4094. */
  readonly vlan: number;
  /** Priority of the frames that it sends, 0 to 7 (IEEE 802.1Q, 6.9.3). */
  readonly priority: number;
}

/** Destination of packets to a host, and their source address. */
export interface Route extends NeighbourRoute {
  readonly via: NetInterface;
  readonly source: IpAddress;
}

const linkLocalBits = 64;
const allOnes = 0xffff_ffff;
const priorityShift = 13;
export const vlanMask = 0xfff;
const allNodesGroup = new Ipv6Address(allNodes);

export class NetInterface {
  readonly name: string;
  /** Priority and VLAN of sent frames, or noTag. */
  readonly tag: number;
  readonly address: number;
  /** IPv6 addresses, the link-local one first; none before the device has started. */
  ipv6Addresses: readonly Ipv6Address[] = [];
  #groups: readonly Ipv6Address[] = [];
  readonly #environment: StackEnvironment;
  readonly #setup: InterfaceSetup;
  readonly #ipv4Neighbours: Neighbours;
  readonly #ipv6Neighbours: Neighbours;
  readonly #failed: (cpu: Cpu, via: NetInterface, address: IpAddress) => void;

  /** @param failed called if no host has answered for an address, on a kernel thread */
  constructor(
    environment: StackEnvironment,
    setup: InterfaceSetup & Partial<VlanSetup>,
    failed: (cpu: Cpu, via: NetInterface, address: IpAddress) => void,
  ) {
    const { vlan, priority = 0, address, neighbours, ipv6 } = setup;
    this.#environment = environment;
    this.#setup = setup;
    this.#failed = failed;
    this.name = vlan === undefined ? 'eth0' : `eth0.${vlan}`;
    this.tag = vlan === undefined ? noTag : (priority << priorityShift) | vlan;
    this.address = address;
    this.#ipv4Neighbours = new Neighbours(environment, this.#arp(), neighbours);
    this.#ipv6Neighbours = new Neighbours(environment, this.#discovery(), ipv6?.neighbours ?? []);
  }

  get vlan(): number | undefined {
    return this.tag === noTag ? undefined : this.tag & vlanMask;
  }

  get hasIpv6(): boolean {
    return this.#setup.ipv6 !== undefined;
  }

  /** The device has this MAC, which determines its IPv6 addresses. @returns the MACs of its groups */
  begins(mac: Uint8Array): Uint8Array[] {
    const { ipv6 } = this.#setup;
    if (ipv6 === undefined) return [];
    this.ipv6Addresses = [linkLocalOf(mac), ...ipv6.addresses];
    const groups = new Map(this.ipv6Addresses.map(solicitedNodeOf).map((group) => [group.key, group]));
    this.#groups = [allNodesGroup, ...groups.values()];
    return this.#groups.map(({ bytes }) => macOfIpv6Group(bytes));
  }

  isOwn(address: IpAddress): boolean {
    return typeof address === 'number'
      ? address === this.address
      : this.ipv6Addresses.some(({ key }) => key === address.key);
  }

  isOwnGroup(address: Ipv6Address): boolean {
    return this.#groups.some(({ key }) => key === address.key);
  }

  /**
   * The route to a host of the link.
   * @param source one of our addresses, of the same version; left out: the matching one (RFC 6724)
   * @returns undefined without a route
   */
  routeTo(destination: IpAddress, source = this.#sourceFor(destination)): Route | undefined {
    if (source === undefined || typeof source !== typeof destination) return undefined;
    if (!this.#neighboursOf(destination).isReachable(destination)) return undefined;
    return { via: this, source, destination, neighbour: undefined };
  }

  /** Sends a packet. @returns false, and keeps nothing, if the neighbour has no route */
  transmit(cpu: Cpu, route: Route, frame: OutboundFrame): boolean {
    if (this.tag !== noTag) cpu.charge('protocol', this.#environment.costs.vlan);
    return this.#neighboursOf(route.destination).transmit(cpu, route, frame);
  }

  /** A packet sent to this neighbour was acknowledged. */
  confirmed(route: Route): void {
    this.#neighboursOf(route.destination).confirmed(route);
  }

  /** Handles an ARP frame; the caller keeps its bytes. */
  receiveArp(cpu: Cpu, buffer: PacketBuffer): void {
    const { counts, device } = this.#environment;
    const neighbours = this.#ipv4Neighbours;
    const outcome = receiveArp(this.#bytesOf(buffer), {
      mac: device.macAddress,
      isOwn: (address) => address === this.address,
      isOnLink: (address) => neighbours.isReachable(address),
      asked: (address, mac) => {
        neighbours.table.asked(bytesOfIp(address), mac);
        neighbours.found(cpu, address);
      },
      announced: (address, mac, flags) => {
        const isTaken = neighbours.table.announced(bytesOfIp(address), mac, flags);
        if (isTaken) neighbours.found(cpu, address);
        return isTaken;
      },
    });
    if (typeof outcome !== 'string') {
      if (neighbours.send(cpu, outcome)) counts.arpReplies++;
    } else if (outcome === 'malformed') counts.badFrames++;
    else if (outcome !== 'taken') counts.arpIgnored++;
  }

  /** Handles an ICMPv6 frame; the caller keeps its bytes. @returns false if it is not a neighbour message */
  receiveNeighborMessage(cpu: Cpu, buffer: PacketBuffer): boolean {
    const { counts, device } = this.#environment;
    const neighbours = this.#ipv6Neighbours;
    const outcome = receiveNeighborMessage(this.#bytesOf(buffer), {
      mac: device.macAddress,
      isOwn: (address) => this.isOwn(new Ipv6Address(address)),
      isOnLink: (address) => neighbours.isReachable(new Ipv6Address(address)),
      asked: (address, mac) => {
        neighbours.table.asked(address, mac);
        neighbours.found(cpu, new Ipv6Address(address));
      },
      advertised: (address, mac, flags) => {
        const isTaken = neighbours.table.advertised(address, mac, flags);
        if (isTaken) neighbours.found(cpu, new Ipv6Address(address));
        return isTaken;
      },
    });
    if (outcome === 'other') return false;
    if (typeof outcome !== 'string') {
      if (neighbours.send(cpu, outcome)) counts.neighborAdvertisements++;
    } else if (outcome === 'malformed') counts.badFrames++;
    else if (outcome !== 'taken') counts.neighborIgnored++;
    return true;
  }

  /** The device is being removed. */
  close(): void {
    this.#ipv4Neighbours.close();
    this.#ipv6Neighbours.close();
  }

  #neighboursOf(address: IpAddress): Neighbours {
    return typeof address === 'number' ? this.#ipv4Neighbours : this.#ipv6Neighbours;
  }

  #bytesOf({ physical, length }: PacketBuffer): Uint8Array {
    return this.#environment.platform.memory.bytes.subarray(physical, physical + length);
  }

  /** Link-local to link-local, otherwise the source with the destination's prefix (RFC 6724, rules 2 and 8). */
  #sourceFor(destination: IpAddress): IpAddress | undefined {
    if (typeof destination === 'number') return this.address;
    const [linkLocal, ...others] = this.ipv6Addresses;
    if (destination.isLinkLocal) return linkLocal;
    const bits = this.#setup.ipv6?.prefixBits ?? 0;
    return others.find((own) => own.sharesPrefix(destination, bits)) ?? others[0] ?? linkLocal;
  }

  #arp(): Resolution {
    const own = () => ({ mac: this.#environment.device.macAddress, address: this.address });
    return {
      isOnLink: (address) => typeof address === 'number' && this.#isOnIpv4Link(address),
      request: (address, mac) => arpRequest(own(), viewOf(address).getUint32(0), mac),
      requestCount: 'arpRequests',
      tag: this.tag,
      failed: (cpu, address) => this.#failed(cpu, this, address),
    };
  }

  #discovery(): Resolution {
    return {
      isOnLink: (address) => typeof address !== 'number' && this.#isOnIpv6Link(address),
      request: (address, mac) => {
        const own = bytesOfIp(this.#sourceFor(new Ipv6Address(address))!);
        return neighborSolicitation({ mac: this.#environment.device.macAddress, address: own }, address, mac);
      },
      requestCount: 'neighborSolicitations',
      tag: this.tag,
      failed: (cpu, address) => this.#failed(cpu, this, address),
    };
  }

  /** Neither our own address, nor the network's or broadcast address. */
  #isOnIpv4Link(address: number): boolean {
    const { linkPrefixBits: bits, address: own } = this.#setup;
    if (bits === undefined || address === own) return false;
    const hostBits = allOnes >>> bits;
    const host = (address & hostBits) >>> 0;
    const isSameLink = address >>> (32 - bits) === own >>> (32 - bits);
    return isSameLink && host !== 0 && host !== hostBits && !this.#setup.neighbours.has(address);
  }

  /** Neither our own address, nor a group. The subnet-router address (all zeros after the prefix) is never in use. */
  #isOnIpv6Link(address: Ipv6Address): boolean {
    const { ipv6 } = this.#setup;
    const isHost = !address.isGroup && !address.isUnspecified && !this.isOwn(address);
    if (ipv6 === undefined || !isHost) return false;
    if (address.isLinkLocal) return this.ipv6Addresses[0]!.sharesPrefix(address, linkLocalBits);
    return ipv6.addresses.some((own) => own.sharesPrefix(address, ipv6.prefixBits));
  }
}

export const isSameRoute = (left: Route, right: Pick<Route, 'via' | 'source' | 'destination'>): boolean =>
  left.via === right.via &&
  isSameAddress(left.destination, right.destination) &&
  isSameAddress(left.source, right.source);
