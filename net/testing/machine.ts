/**
 * Two hosts with the whole kernel path, for specs: real hosts (host/), fake NICs, and a cable that loses, duplicates, delays
 * and corrupts frames by a seed. Both hosts share one logical process.
 *
 *     program ── SocketCalls ── stack ── driver ── FakeNic ══ cable ══ FakeNic ── driver ── stack ── SocketCalls ── program
 */
import { defaultsOf } from '../../base/parameter.ts';
import {
  type CoreThread,
  driverPlatformOf,
  Host,
  hostConfigOf,
  hostParameters,
  type ProgramContext,
} from '../../host/index.ts';
import { LogicalProcess } from '../../sim/logical-process.ts';
import { Random } from '../../sim/random.ts';
import { SingleRunner } from '../../sim/single-runner.ts';
import { Network, netConfigOf } from '../network.ts';
import type { NetCostConfig, NetDriverConfig, NetStackConfig } from '../parameters.ts';
import { netParameters } from '../parameters.ts';
import type { NetPlatform } from '../platform.ts';
import type { SocketCalls } from '../socket/index.ts';
import { type InterfaceSetup, ipv6Of, linkLocalOf, type NetAddresses } from '../stack/index.ts';
import { FakeNic, fakeBars } from './fake-nic.ts';

export const addresses = [0x0a00_0001, 0x0a00_0002] as const;
/** The same for IPv6; for VLAN {@link vlanId}, for both versions. */
export const ipv6Addresses = ['2001:db8::1', '2001:db8::2'] as const;
export const linkLocalAddresses = ['fe80::ff:fe00:1', 'fe80::ff:fe00:2'] as const;
export const vlanId = 7;
export const vlanAddresses = [0x0a07_0001, 0x0a07_0002] as const;
export const vlanIpv6Addresses = ['2001:db8:7::1', '2001:db8:7::2'] as const;
/** Addresses in the VLAN, by host. */
export const vlanPriorities = [3, 5] as const;
const macs = [Uint8Array.of(2, 0, 0, 0, 0, 1), Uint8Array.of(2, 0, 0, 0, 0, 2)] as const;
export const us = 1_000_000;
export const ms = 1_000_000_000;

/** Faults of the cable; fractions of all frames. */
export interface CableFaults {
  readonly loss?: number;
  readonly duplication?: number;
  readonly reordering?: number;
  readonly corruption?: number;
  readonly seed?: number;
}

export interface TestOptions {
  readonly cable?: CableFaults;
  readonly driver?: Partial<NetDriverConfig>;
  readonly stack?: Partial<NetStackConfig>;
  readonly cost?: Partial<NetCostConfig>;
  readonly cores?: number;
  readonly latencyPs?: number;
  /** True if the hosts do not know each other's MACs, and find them by ARP. */
  readonly asksForNeighbours?: boolean;
}

export type NetProgram = (context: ProgramContext, calls: SocketCalls, node: TestNode) => Promise<void>;

export interface TestNode {
  readonly index: number;
  readonly host: Host;
  readonly network: Network;
  readonly platform: NetPlatform;
  readonly log: string[];
  nic: FakeNic;
  isUp: boolean;
}

export class TestNetwork {
  readonly process = new LogicalProcess('net');
  readonly nodes: readonly TestNode[];
  /** Sees each frame on the cable; returning false removes it. */
  onFrame: (from: number, frame: Uint8Array) => boolean = () => true;
  readonly #runner: SingleRunner;
  readonly #faults: CableFaults;
  readonly #random: Random;
  readonly #latencyPs: number;
  readonly #freePs = [0, 0];

  constructor(options: TestOptions = {}) {
    this.#faults = options.cable ?? {};
    this.#random = new Random(this.#faults.seed ?? 1, 'cable');
    this.#latencyPs = options.latencyPs ?? 2 * us;
    this.nodes = [0, 1].map((index) => newNode(this.process, index, options));
    for (const node of this.nodes) {
      node.nic.sendFrame = (frame) => this.#carry(node.index, frame);
      this.#boot(node);
    }
    this.#runner = new SingleRunner([this.process]);
  }

  /** Starts a program on a host; it waits until its NIC is up. */
  run(node: number, name: string, body: NetProgram, core = 0): void {
    const at = this.nodes[node]!;
    at.host.runProgram(name, core, async (context) => {
      while (!this.nodes.every(({ isUp }) => isUp)) await context.cpu.sleep(10 * us);
      const calls = at.network.open(context.memory);
      context.onExit((cpu) => calls.exit(cpu));
      await body(context, calls, at);
    });
  }

  /** Runs until all programs have ended, and a while longer. */
  async toEnd(drainPs = 1, limitPs = 600_000 * ms): Promise<void> {
    const outcome = await this.#runner.runUntilEnded(drainPs, limitPs);
    if (outcome.reason !== 'ended') throw new Error('the programs have not ended');
  }

  async for(durationPs: number): Promise<void> {
    await this.#runner.runTo(this.process.nowPs + durationPs);
  }

  /** Runs a kernel thread until it ends. */
  async kernel(node: number, body: (cpu: CoreThread) => Promise<void>): Promise<void> {
    let isDone = false;
    this.nodes[node]!.host.spawn('test', async (cpu) => {
      await body(cpu);
      await cpu.settle();
      isDone = true;
    });
    for (let tries = 0; tries < 1000 && !isDone; tries++) await this.for(ms);
    if (!isDone) throw new Error('the kernel thread has not ended');
  }

  #boot(node: TestNode): void {
    this.process.addMember();
    node.host.spawn('boot', async (cpu) => {
      await node.network.probe(cpu);
      await cpu.settle();
      node.isUp = true;
      this.process.markEnded();
    });
  }

  #carry(from: number, frame: Uint8Array): void {
    if (!this.onFrame(from, frame)) return;
    const { loss = 0, duplication = 0, reordering = 0, corruption = 0 } = this.#faults;
    const draw = (): number => this.#random.unit();
    if (draw() < loss) return;
    if (draw() < corruption)
      frame[14 + Math.floor(draw() * (frame.length - 14))]! ^= 1 << Math.floor(draw() * 8);
    const extraPs = draw() < reordering ? Math.floor(draw() * 40 * us) : 0;
    // 10 Gb/s, one frame after another.
    const { nowPs } = this.process;
    this.#freePs[from] = Math.max(nowPs, this.#freePs[from]!) + (frame.length + 24) * 800;
    const wirePs = this.#freePs[from]! - nowPs;
    this.#deliver(from, frame, this.#latencyPs + wirePs + extraPs);
    if (draw() < duplication)
      this.#deliver(from, frame, this.#latencyPs + wirePs + Math.floor(draw() * 20 * us));
  }

  #deliver(from: number, frame: Uint8Array, delayPs: number): void {
    const { queue, nowPs } = this.process;
    const copy = frame.slice();
    queue.schedule(
      nowPs + delayPs,
      queue.addHandler(() => this.nodes[1 - from]!.nic.frameArrived(copy)),
    );
  }
}

function newNode(process: LogicalProcess, index: number, options: TestOptions): TestNode {
  const parts: { nic?: FakeNic } = {};
  const host = new Host({
    logicalProcess: process,
    config: hostConfigOf({
      memory: { ...defaultsOf(hostParameters.memory), sizeMib: 128 },
      core: { ...defaultsOf(hostParameters.core), count: options.cores ?? 2, storeSpaceKib: 64 },
    }),
    busMap: { trafficClassAt: () => 0 },
    connect: (memory, interrupts) => {
      parts.nic = new FakeNic(process, memory, interrupts, macs[index]!);
      const port = parts.nic.port();
      return () => port;
    },
  });
  const log: string[] = [];
  const { queue } = process;
  const platform: NetPlatform = {
    ...driverPlatformOf(host, 0x100, fakeBars),
    costs: {
      copyFixed: host.config.cost.copyFixed,
      copyBytesPerCycle: host.config.cost.copyBytesPerCycle,
    },
    startTimer: (delayPs, due) => void queue.schedule(process.nowPs + delayPs, queue.addHandler(due)),
    log: (text) => void log.push(text),
  };
  const config = netConfigOf({
    driver: { ...defaultsOf(netParameters.driver), ...options.driver },
    stack: { ...defaultsOf(netParameters.stack), ...options.stack },
    cost: { ...defaultsOf(netParameters.cost), ...options.cost },
  });
  const mac = options.asksForNeighbours === true ? undefined : macs[1 - index]!;
  const network = new Network(platform, config, addressesOf(index, mac));
  return { index, host, network, platform, log, nic: parts.nic!, isUp: false };
}

/** Both interfaces of a host. @param mac of the other host; undefined: it must be resolved */
export function addressesOf(index: number, mac: Uint8Array | undefined): NetAddresses {
  const vlan = { vlan: vlanId, priority: vlanPriorities[index]! };
  return {
    ...interfaceSetup(index, mac, addresses, ipv6Addresses),
    vlans: [{ ...interfaceSetup(index, mac, vlanAddresses, vlanIpv6Addresses), ...vlan }],
  };
}

function interfaceSetup(
  index: number,
  mac: Uint8Array | undefined,
  ipv4: readonly number[],
  ipv6: readonly string[],
): InterfaceSetup {
  const other = 1 - index;
  const known = mac === undefined ? [] : [mac];
  return {
    address: ipv4[index]!,
    neighbours: new Map(known.map((its) => [ipv4[other]!, its])),
    ...(mac === undefined ? { linkPrefixBits: 24 } : {}),
    ipv6: {
      addresses: [ipv6Of(ipv6[index]!)!],
      prefixBits: 64,
      neighbours: known.flatMap((its) =>
        [ipv6Of(ipv6[other]!)!, linkLocalOf(its)].map((address) => [address, its] as const),
      ),
    },
  };
}
