/**
 * The network interface of an Ethernet port, as far as RoCE needs one: it resolves the MACs of its neighbours, by ARP for IPv4
 * and by Neighbor Discovery for IPv6, and answers their requests. It has no sockets, no route except to its own link, and no
 * programs that send frames.
 *
 *     resolve ─► neighbour table ─► request ─► FrameQueuePair ─► port ═ cable ═► port ─► … ─► interrupt ─► thread: receive ─► table
 *
 * A frame costs the core what a command costs (`commandPost` to send, `commandComplete` to handle): an estimate.
 * Sources: RFC 826, packet reception; RFC 4861, 7.2; Linux 6.1, net/ipv4/arp.c (arp_process), net/ipv6/ndisc.c, mlx4_en en_netdev.c
 * (mlx4_en_do_multicast: the filter of groups).
 */
import {
  EtherType,
  MulticastFilterForm,
  MulticastMode,
  multicastFilterEntry,
  SetPortEthernet,
  SetPortForm,
  setPortReceiveQps,
} from '../../abi/index.ts';
import { bytesEqual, macBytesOf, macOfBytes, toHex, viewOf } from '../../base/index.ts';
import type { Device } from '../device.ts';
import { gidOfIpv4Number, ipv4NumberOfGid, isIpv4Gid, isLinkLocalGid } from '../gid.ts';
import { KernelError } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import { ProtocolTimers } from '../protocol-timers.ts';
import { type ErrnoName, errnoNumbers } from '../uapi.ts';
import { arpRequest } from './arp.ts';
import { receiveArp } from './arp-reception.ts';
import { broadcastMac, ethernetHeader, macOfIpv6Group } from './ethernet-header.ts';
import { FrameQueuePair } from './frame-queue-pair.ts';
import { receiveNeighborMessage } from './neighbor-reception.ts';
import { allNodes, neighborSolicitation, solicitedNode } from './neighbour-discovery.ts';
import { type MacTaken, NeighbourTable } from './neighbour-table.ts';

export interface NetworkInterfaceSetup {
  readonly portNumber: number;
  /** 48 bits. */
  readonly mac: number;
  /** The QP of frames for the MAC; -1: one of those for programs. */
  readonly qpn: number;
  /** Its addresses, 16 bytes each, as in GIDs. */
  readonly addresses: readonly Uint8Array[];
  /** Longest frame that the port receives, without FCS. */
  readonly frameBytesMax: number;
}

/** Frames of the kernel, and the results of received ones. */
export interface NetworkCounts {
  /** ARP requests and solicitations that were sent. */
  readonly requests: number;
  /** Requested addresses: those whose MAC has arrived, and those without an answer to three requests. */
  readonly resolved: number;
  readonly unresolved: number;
  /** Answers sent to requests of other stations. */
  readonly answers: number;
  readonly received: number;
  /** Frames of another protocol, or not for an own address. */
  readonly ignored: number;
  /** Frames that no sender may produce: with a wrong checksum, hop limit or length, or from a group. */
  readonly malformed: number;
  /** Unsolicited announcements, or ones that would replace a known MAC. */
  readonly unsolicited: number;
  /** Frames from one of the own addresses. */
  readonly conflicting: number;
  /** Frames lost because the send queue was full, and completions with an error. */
  readonly failed: number;
}

/** Bits of an IPv4 address that all hosts of the link share. */
const linkPrefixBits = 24;
const groupPrefixBits = 4;
const ipv4Group = 0xe;
const logMacs = 7;
/** Linux' MLX4_VLAN_MISS_IDX. */
const vlanMissIndex = 1;

export class NetworkInterface {
  readonly #device: Device;
  readonly #setup: NetworkInterfaceSetup;
  readonly #timers: ProtocolTimers;
  readonly #neighbours: NeighbourTable;
  readonly #mac: Uint8Array;
  readonly #counts = {
    requests: 0,
    answers: 0,
    received: 0,
    ignored: 0,
    malformed: 0,
    unsolicited: 0,
    conflicting: 0,
    failed: 0,
  };
  #pair: FrameQueuePair | undefined;
  #isScheduled = false;
  #isClosed = false;

  constructor(device: Device, setup: NetworkInterfaceSetup) {
    const { platform } = device;
    this.#device = device;
    this.#setup = setup;
    this.#mac = macBytesOf(setup.mac);
    this.#timers = new ProtocolTimers(platform, 'neighbours');
    this.#neighbours = new NeighbourTable({
      timers: this.#timers,
      newStopwatch: () => platform.stopwatch(),
      solicit: (cpu, address) => this.#solicit(cpu, address),
    });
  }

  get counts(): NetworkCounts {
    return { ...this.#counts, ...this.#neighbours.counts };
  }

  /** Brings its ring up, and makes the port steer frames to it. @throws KernelError */
  async open(cpu: Cpu): Promise<void> {
    this.#pair = await FrameQueuePair.open(cpu, this.#device, this.#setup, () => this.#schedule());
    // A dead device delivers no answer: ends all waits for neighbours.
    this.#device.lifecycle.onDeath(() => this.#neighbours.close());
    const { portNumber } = this.#setup;
    const { qpn: baseQpn } = this.#pair;
    const command = {
      inputModifier: (SetPortEthernet.RQP_CALC << 8) | portNumber,
      opcodeModifier: SetPortForm.ETHERNET,
    };
    const values = {
      baseQpn,
      logMacs,
      vlanMissIndex,
      promiscuousQpn: baseQpn,
      multicastMode: MulticastMode.DEFAULT_QP,
      multicastQpn: baseQpn,
    };
    await this.#device.commands.executeWithMailbox(cpu, 'SET_PORT', command, (bytes, address) =>
      setPortReceiveQps.encodeInto(values, bytes, address),
    );
  }

  /** After the port is open, it accepts only the groups of its own addresses. */
  async filterGroups(cpu: Cpu): Promise<void> {
    const { addresses } = this.#setup;
    const groups = [allNodes, ...addresses.filter((address) => !isIpv4Gid(address)).map(solicitedNode)];
    const macs = new Set([
      macOfBytes(broadcastMac),
      ...groups.map((group) => macOfBytes(macOfIpv6Group(group))),
    ]);
    await this.#setFilter(cpu, MulticastFilterForm.DISABLE, 0n);
    for (const [at, mac] of [...macs].entries()) {
      const entry = multicastFilterEntry.encode({ mac, clearsList: at === 0 ? 1 : 0 });
      await this.#setFilter(cpu, MulticastFilterForm.CONFIGURE, viewOf(entry).getBigUint64(0));
    }
    await this.#setFilter(cpu, MulticastFilterForm.ENABLE, 0n);
  }

  /** Stops sending, and drops received frames from now on. */
  async close(cpu: Cpu): Promise<void> {
    this.#isClosed = true;
    this.#neighbours.close();
    this.#timers.close();
    await this.#pair?.close(cpu);
  }

  /** Why an address has no route; undefined if it has one. @param address 16 bytes, as in a GID */
  routeError(address: Uint8Array): ErrnoName | undefined {
    if (!isIpv4Gid(address)) return isLinkLocalGid(address) ? undefined : 'ENETUNREACH';
    const number = ipv4NumberOfGid(address);
    const prefixOf = (value: number): number => value >>> (32 - linkPrefixBits);
    const isOnLink = this.#setup.addresses.some(
      (own) => isIpv4Gid(own) && prefixOf(ipv4NumberOfGid(own)) === prefixOf(number),
    );
    const isGroup = number >>> (32 - groupPrefixBits) === ipv4Group;
    return isOnLink && !isGroup ? undefined : 'ENETUNREACH';
  }

  /**
   * Resolves the MAC of an address of the link, at once or later.
   * @param address 16 bytes, as in a GID
   * @throws KernelError ENETUNREACH
   */
  resolve(cpu: Cpu, address: Uint8Array, timeoutMs: number, taken: MacTaken): void {
    if (this.#isOwn(address)) return taken(this.#mac);
    const error = this.routeError(address);
    if (error !== undefined) throw new KernelError(error, `no route to ${toHex(address)}`);
    if (this.#device.lifecycle.isDead) throw new KernelError('ENODEV', 'the device is gone');
    this.#neighbours.resolve(cpu, address, timeoutMs, taken);
  }

  /**
   * Resolves the MAC of an address like {@link resolve}; the thread waits for it. @throws KernelError ENETUNREACH, ETIMEDOUT, ENOBUFS, ENODEV
   */
  async lookUp(cpu: Cpu, address: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    const answer: { outcome?: Uint8Array | number } = {};
    const answered = this.#device.platform.newSignal();
    this.resolve(cpu, address, timeoutMs, (outcome) => {
      answer.outcome = outcome;
      answered.raise();
    });
    while (answer.outcome === undefined) await answered.wait(cpu);
    if (typeof answer.outcome !== 'number') return answer.outcome;
    const { outcome } = answer;
    const code = (['ETIMEDOUT', 'ENOBUFS'] as const).find((name) => errnoNumbers[name] === outcome);
    throw new KernelError(code ?? 'ENODEV', `nobody has answered for ${toHex(address)}`);
  }

  /** Handles a received frame, without FCS. */
  receive(cpu: Cpu, frame: Uint8Array): void {
    this.#counts.received++;
    const { type } = frame.length < ethernetHeader.sizeBytes ? { type: 0 } : ethernetHeader.decode(frame);
    if (type === EtherType.ARP) this.#receiveArp(cpu, frame);
    else if (type === EtherType.IPV6) this.#receiveNeighborMessage(cpu, frame);
    else this.#counts.ignored++;
  }

  #receiveArp(cpu: Cpu, frame: Uint8Array): void {
    const outcome = receiveArp(frame, {
      mac: this.#mac,
      isOwn: (address) => this.#isOwn(gidOfIpv4Number(address)),
      isOnLink: (address) => this.routeError(gidOfIpv4Number(address)) === undefined,
      asked: (address, mac) => this.#neighbours.asked(gidOfIpv4Number(address), mac),
      announced: (address, mac, flags) => this.#neighbours.announced(gidOfIpv4Number(address), mac, flags),
    });
    if (typeof outcome !== 'string') this.#answer(cpu, outcome);
    else if (outcome !== 'taken') this.#counts[outcome]++;
  }

  #receiveNeighborMessage(cpu: Cpu, frame: Uint8Array): void {
    const outcome = receiveNeighborMessage(frame, {
      mac: this.#mac,
      isOwn: (address) => this.#isOwn(address),
      isOnLink: (address) => this.routeError(address) === undefined,
      asked: (address, mac) => this.#neighbours.asked(address, mac),
      advertised: (address, mac, flags) => this.#neighbours.advertised(address, mac, flags),
    });
    if (typeof outcome !== 'string') this.#answer(cpu, outcome);
    else if (outcome === 'other') this.#counts.ignored++;
    else if (outcome !== 'taken') this.#counts[outcome]++;
  }

  #isOwn(address: Uint8Array): boolean {
    return this.#setup.addresses.some((own) => bytesEqual(own, address));
  }

  /** Asks from an address of the same kind. */
  #solicit(cpu: Cpu, address: Uint8Array): void {
    const isIpv4 = isIpv4Gid(address);
    const own = this.#setup.addresses.find((candidate) => isIpv4Gid(candidate) === isIpv4)!;
    this.#counts.requests++;
    if (isIpv4)
      this.#send(
        cpu,
        arpRequest({ mac: this.#mac, address: ipv4NumberOfGid(own) }, ipv4NumberOfGid(address)),
      );
    else this.#send(cpu, neighborSolicitation({ mac: this.#mac, address: own }, address));
  }

  #answer(cpu: Cpu, frame: Uint8Array): void {
    this.#counts.answers++;
    this.#send(cpu, frame);
  }

  #send(cpu: Cpu, frame: Uint8Array): void {
    if (this.#isClosed || this.#device.lifecycle.isDead) return;
    cpu.charge('driver', this.#device.platform.costs.commandPost);
    if (this.#pair?.post(cpu, frame) !== true) this.#counts.failed++;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    this.#device.platform.spawn('mlx4_en', (cpu) => this.#work(cpu));
  }

  async #work(cpu: Cpu): Promise<void> {
    const { costs } = this.#device.platform;
    while (!this.#isClosed) {
      await cpu.settle();
      const completion = this.#pair?.take(cpu);
      if (completion === undefined) break;
      if (completion === 'failed') this.#counts.failed++;
      if (typeof completion === 'string') continue;
      cpu.charge('driver', costs.commandComplete);
      this.receive(cpu, completion);
    }
    this.#isScheduled = false;
    if (!this.#isClosed) this.#pair?.arm(cpu);
    await cpu.settle();
  }

  async #setFilter(cpu: Cpu, form: MulticastFilterForm, input: bigint): Promise<void> {
    const command = { input, inputModifier: this.#setup.portNumber, opcodeModifier: form };
    await this.#device.commands.execute(cpu, 'SET_MCAST_FLTR', command);
  }
}
