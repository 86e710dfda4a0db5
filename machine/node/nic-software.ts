/**
 * A host kernel's software for a conventional NIC: its driver, the protocol stack and the sockets above it. Without
 * that software, a program drives the card word by word.
 *
 *     programs ── sockets ── stack ── driver ──► NIC        nicDriver = kernel
 *     programs ── packet buffer in the BAR ────► NIC        nicDriver = none
 *
 * Addresses are configuration, see {@link addressOf} and {@link ipv6AddressOf}. Between two NICs the peer's MAC is
 * configuration too; ARP and Neighbor Discovery find an HCA at the other end of the cable.
 */
import { type CoreThread, driverPlatformOf, type Host, type Process } from '../../host/index.ts';
import { macAddressOf } from '../../hw/nic/index.ts';
import type { EnumeratedFunction } from '../../hw/pcie/index.ts';
import { type InterfaceSetup, ipv6Of, linkLocalOf, Network, type SocketCalls } from '../../net/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { DmaController } from './dma-controller.ts';

/** IPv4 address of a host: 10.0.0.(n + 1), and on VLAN v 10.(16 + v / 256).(v % 256).(n + 1). @param vlan 0: without a tag */
export const addressOf = (node: number, vlan = 0): number =>
  0x0a00_0001 + node + (vlan === 0 ? 0 : (0x1000 + vlan) * 256);

/** IPv6 address of a host in addition to its link-local one, as text: 2001:db8:0:v::(n + 1) on VLAN v (RFC 3849). */
const ipv6AddressOf = (node: number, vlan = 0): string =>
  `2001:db8:0:${vlan.toString(16)}::${(node + 1).toString(16)}`;

/** Address bits that all hosts of the link share. */
const linkPrefixBits = 24;
const ipv6PrefixBits = 64;

/** The kernel's interface to the host. */
export interface NicKernel {
  startTimer(delayPs: number, due: () => void): void;
  log(text: string): void;
}

/** Counters of programs that drive the card themselves. */
class ProgrammedStatistics {
  /** Words that a core has moved: stores to the packet buffer and loads from it, with their bytes. */
  stores = 0;
  storedBytes = 0;
  loads = 0;
  loadedBytes = 0;
  /** Bytes of program memory among them: read and written. */
  readBytes = 0;
  writtenBytes = 0;
  framesSent = 0;
  framesReceived = 0;
  /** Frames retransmitted because no acknowledgement arrived. */
  retransmissions = 0;
  /** Payloads that a core moved, and their bytes. */
  copies = 0;

  /** Bytes of program memory that a core moved. */
  get copiedBytes(): number {
    return this.readBytes + this.writtenBytes;
  }
}

export class NicSoftware {
  readonly node: number;
  readonly programmed = new ProgrammedStatistics();
  readonly found: EnumeratedFunction;
  /** The host's system DMA controller, which can move words between memory and the card. */
  readonly systemDma: DmaController;
  /** The machine below the kernel's driver; also used by programs that drive the card themselves. */
  readonly platform: ReturnType<typeof driverPlatformOf>;
  /** Driver, stack and sockets; undefined if the kernel leaves the card to programs. */
  readonly network: Network | undefined;

  /** @param neighbours hosts of the link whose MACs are configuration; if empty, ARP finds the neighbours */
  constructor(
    host: Host,
    config: MachineConfig,
    node: number,
    found: EnumeratedFunction,
    systemDma: DmaController,
    kernel: NicKernel,
    neighbours: readonly number[],
  ) {
    const functionId = config.pcie.rootComplex.deviceBus << 8;
    this.node = node;
    this.found = found;
    this.systemDma = systemDma;
    this.platform = driverPlatformOf(host, functionId, found.bars, Math.max(0, found.interruptPin - 1));
    if (config.machine.nicDriver === 'none') return;
    const { copyFixed, copyBytesPerCycle } = config.host.cost;
    const platform = {
      ...this.platform,
      costs: { copyFixed, copyBytesPerCycle },
      startTimer: (delayPs: number, due: () => void) => kernel.startTimer(delayPs, due),
      log: (text: string) => kernel.log(text),
    };
    const { ipv6: hasIpv6, vlanId, vlanPriority: priority } = config.net.stack;
    const setupOf = (vlan: number): InterfaceSetup => interfaceSetup(node, neighbours, vlan, hasIpv6);
    this.network = new Network(platform, config.net, {
      ...setupOf(0),
      vlans: vlanId === 0 ? [] : [{ ...setupOf(vlanId), vlan: vlanId, priority }],
    });
  }

  /** Brings the card up, if the kernel drives it. */
  async probe(cpu: CoreThread): Promise<void> {
    await this.network?.probe(cpu);
  }

  /** The socket calls of a process, which close when it ends. */
  socketsOf(process: Process): SocketCalls | undefined {
    const calls = this.network?.open(process.memory);
    if (calls !== undefined) process.onExit((cpu) => calls.exit(cpu));
    return calls;
  }

  /** Frees all resources. */
  async remove(cpu: CoreThread): Promise<void> {
    await this.network?.remove(cpu);
  }
}

/**
 * An interface's addresses, and those of its neighbours.
 * @param known hosts of the link whose MACs are configuration; if empty, ARP finds the neighbours
 * @param vlan 0: without a tag
 */
function interfaceSetup(
  node: number,
  known: readonly number[],
  vlan: number,
  hasIpv6: boolean,
): InterfaceSetup {
  const macs = known.map((peer) => [peer, Uint8Array.from(macAddressOf(peer))] as const);
  return {
    address: addressOf(node, vlan),
    neighbours: new Map(macs.map(([peer, mac]) => [addressOf(peer, vlan), mac])),
    ...(known.length === 0 ? { linkPrefixBits } : {}),
    ...(hasIpv6
      ? {
          ipv6: {
            addresses: [ipv6Of(ipv6AddressOf(node, vlan))!],
            prefixBits: ipv6PrefixBits,
            neighbours: macs.flatMap(([peer, mac]) =>
              [ipv6Of(ipv6AddressOf(peer, vlan))!, linkLocalOf(mac)].map(
                (address) => [address, mac] as const,
              ),
            ),
          },
        }
      : {}),
  };
}
