/**
 * A port of type Ethernet with RoCE, as mlx4_en and mlx4_ib bring it up between them. Only the parts
 * of a network interface that RoCE needs are modelled: MTU, MAC, addresses, link, and neighbour resolution (network/).
 *
 *   SET_PORT general ─► SET_PORT MAC table ─► its ring: SET_PORT receive QPs ─► INIT_PORT ─► filter of groups ─► CONFIG_DEV (UDP port of v2)
 *   ─► SET_PORT GIDs ─► event 0x09 subtype 4
 *
 * Its GIDs are in the order of Linux' table: those of the link-local address, then those of the IPv4 address; each first by
 * version 1, then by version 2 if the device supports it. A link-local GID by version 1 contains the peer's MAC; all other MACs
 * are resolved by ARP or Neighbor Discovery, as in ib_resolve_eth_dmac.
 *
 * Sources: interface sheet 3.12, 3.13, 3.19, 7.3 to 7.5, 8.3; Linux 6.1, mlx4_ib main.c (eth_link_query_port, mlx4_ib_update_gids) and
 * ib_core roce_gid_mgmt.c, addr.c, verbs.c (ib_resolve_eth_dmac, ib_resolve_unicast_gid_dmac).
 */
import {
  configDev,
  hasFlag,
  MemoryManagementFlag,
  PortPhysicalState,
  SetPortEthernet,
  SetPortForm,
  setPortGeneral,
  setPortGidTable,
  setPortMacTable,
  setPortRoceAddresses,
} from '../abi/index.ts';
import { macBytesOf } from '../base/index.ts';
import { type DeviceLimits, type PortLimits, queryPortLimits } from './capabilities.ts';
import type { CommandInterface } from './command-interface.ts';
import type { Device } from './device.ts';
import {
  gidOfIpv4,
  gidOfMac,
  isIpv4Gid,
  isLinkLocalGid,
  isMulticastGid,
  macOfGid,
  multicastMacOf,
} from './gid.ts';
import { KernelError, requireWithin } from './kernel-error.ts';
import { type NetworkCounts, NetworkInterface } from './network/index.ts';
import { frameQpnOf } from './numbers.ts';
import type { DriverConfig } from './parameters.ts';
import type { Cpu, DriverPlatform } from './platform.ts';
import { Port } from './port.ts';
import {
  type AhAttr,
  type GidEntry,
  GidTypeVerb,
  LinkLayerVerb,
  MtuVerb,
  type PortAttr,
  PortStateVerb,
} from './uapi.ts';

/** Overhead around the longest payload of a frame: header, two tags, FCS. */
const frameOverheadBytes = 14 + 2 * 4 + 4;
/** mlx4_en sets both MTU and pause; a device with both versions of RoCE is put into the mode for both. */
const bothRoceVersions = 2;
const roceV2 = 2;
/** IANA's for RoCE v2. */
const roceUdpPort = 4791;
/** The port has one MAC. */
const macIndex = 0;
/** Largest header overhead of a RoCE packet, which Linux' iboe_get_mtu subtracts from the frame MTU: GRH, UDP, BTH, XRC, atomic, ICRC. */
const roceHeaderBytesMax = 40 + 8 + 12 + 4 + 28 + 4;
/** Capabilities of an Ethernet port in Linux: CM is supported, and GIDs are IP addresses. */
const portCapFlags = (1 << 16) | (1 << 26);
const maxVlNum = 2;
/** ip_default_ttl. */
const routedHopLimit = 64;
/** Time that the verbs wait for a MAC (rdma_addr_find_l2_eth_by_grh). */
const resolveLimitMs = 1000;
const width4x = 2;
const width1x = 1;
const speedQdr = 4;
const speedFdr = 16;
/** QUERY_PORT's codes of the rate, and the path rates that Linux derives from them (iboe_get_rate): 56 Gb/s is 40. */
const ethernetSpeed = { GBPS_40: 0x40, GBPS_56: 0x20, GBPS_20: 0x08 } as const;
const pathRates: Readonly<Record<number, number>> = { 64: 7, 32: 7, 8: 6, 0: 3, 1: 3 };

/** Attributes of a path on Ethernet other than the GID: a 6-byte MAC, and the hop limit of the route. */
export interface ResolvedGid {
  readonly mac: Uint8Array;
  readonly hopLimit: number;
}

/** An entry of the GID table as the device has it. */
interface Entry {
  readonly gid: Uint8Array;
  readonly gidType: GidTypeVerb;
}

export class EthernetPort extends Port {
  override readonly linkLayer = LinkLayerVerb.IBV_LINK_LAYER_ETHERNET;
  /** Index of its MAC in the port's table: the source of all its packets. */
  readonly macIndex = macIndex;
  /** IPv4 address in the host's address table; undefined if it has none. */
  readonly address: string | undefined;
  private readonly hasVersion2: boolean;
  private readonly usesPause: boolean;
  private readonly pfcPriorities: number;
  private readonly entries: readonly Entry[];
  private opened: NetworkInterface | undefined;

  constructor(
    platform: DriverPlatform,
    commands: CommandInterface,
    number: number,
    port: PortLimits,
    limits: DeviceLimits,
    { usesPause, pfcPriorities }: Pick<DriverConfig, 'usesPause' | 'pfcPriorities'>,
  ) {
    super(platform, commands, number, port);
    this.usesPause = usesPause && pfcPriorities === 0;
    this.pfcPriorities = pfcPriorities;
    this.hasVersion2 = hasFlag(limits.memoryManagementFlags, MemoryManagementFlag.ROCE_V1_V2);
    this.address = platform.neighbours?.find(({ mac }) => mac === port.mac)?.address;
    const gids = [gidOfMac(port.mac), ...(this.address === undefined ? [] : [gidOfIpv4(this.address)])];
    const types = [GidTypeVerb.IBV_GID_TYPE_ROCE_V1, GidTypeVerb.IBV_GID_TYPE_ROCE_V2] as const;
    this.entries = gids.flatMap((gid) =>
      types.slice(0, this.hasVersion2 ? 2 : 1).map((gidType) => ({ gid, gidType })),
    );
  }

  /** MAC of the port, burned in. */
  get mac(): number {
    return this.limits.mac;
  }

  /** Linux derives one from every rate of the device (IBTA A16.5.2). */
  override get pkeyCount(): number {
    return 1;
  }

  /** Replaces InfiniBand's SET_PORT: sets the longest frame of the port, and its MAC. */
  override async configure(cpu: Cpu): Promise<void> {
    await this.setEthernet(cpu, SetPortEthernet.GENERAL, (bytes, at) =>
      setPortGeneral.encodeInto(
        {
          mtuValid: 1,
          rxPauseValid: 1,
          txPauseValid: 1,
          mtuBytes: this.limits.maxEthernetMtu + frameOverheadBytes,
          txGlobalPause: Number(this.usesPause),
          txPriorityPause: this.pfcPriorities,
          rxGlobalPause: Number(this.usesPause),
          rxPriorityPause: this.pfcPriorities,
          ...(this.hasVersion2 ? { roceModeValid: 1, roceMode: bothRoceVersions } : {}),
        },
        bytes,
        at,
      ),
    );
    await this.setEthernet(cpu, SetPortEthernet.MAC_TABLE, (bytes, at) =>
      setPortMacTable.encodeInto({ entries: [{ valid: 1, mac: this.mac }] }, bytes, at),
    );
  }

  override async init(cpu: Cpu): Promise<void> {
    await super.init(cpu);
    await this.opened?.filterGroups(cpu);
    await this.setGids(cpu);
  }

  /** Writes the GIDs into the device's table, and the UDP port of RoCE v2. */
  protected async setGids(cpu: Cpu): Promise<void> {
    if (!this.hasVersion2) {
      await this.setEthernet(cpu, SetPortEthernet.GID_TABLE, (bytes, at) =>
        setPortGidTable.encodeInto({ gids: this.entries.map(({ gid }) => gid) }, bytes, at),
      );
      return;
    }
    await this.commands.executeWithMailbox(cpu, 'CONFIG_DEV', {}, (bytes, at) =>
      configDev.encodeInto({ updateRocePort: 1, roceUdpPort }, bytes, at),
    );
    const entries = this.entries.map(({ gid, gidType }) => ({
      gid,
      type: isIpv4Gid(gid) ? 0 : 1,
      version: gidType === GidTypeVerb.IBV_GID_TYPE_ROCE_V2 ? roceV2 : 0,
    }));
    await this.setEthernet(cpu, SetPortEthernet.ROCE_ADDR, (bytes, at) =>
      setPortRoceAddresses.encodeInto({ entries }, bytes, at),
    );
  }

  override async query(cpu: Cpu): Promise<PortAttr> {
    const now = await this.state(cpu);
    const isUp = now.linkUp === 1;
    const { ethernetSpeed: speed } = now;
    return {
      state: isUp ? PortStateVerb.IBV_PORT_ACTIVE : PortStateVerb.IBV_PORT_DOWN,
      maxMtu: MtuVerb.IBV_MTU_4096,
      activeMtu: pathMtuOf(now.maxEthernetMtu),
      gidTblLen: this.gidCount,
      portCapFlags,
      maxMsgSz: 2 ** 30,
      badPkeyCntr: 0,
      qkeyViolCntr: 0,
      pkeyTblLen: this.pkeyCount,
      lid: 0,
      smLid: 0,
      lmc: 0,
      maxVlNum,
      smSl: 0,
      subnetTimeout: 0,
      initTypeReply: 0,
      activeWidth: speed === ethernetSpeed.GBPS_40 || speed === ethernetSpeed.GBPS_56 ? width4x : width1x,
      activeSpeed: speed === ethernetSpeed.GBPS_56 ? speedFdr : speedQdr,
      physState: isUp ? PortPhysicalState.LINK_UP : PortPhysicalState.DISABLED,
      linkLayer: this.linkLayer,
    };
  }

  /** The rate of paths from this port, as an InfiniBand code; 0 if the port reports none. */
  async pathRate(cpu: Cpu): Promise<number> {
    return pathRates[(await this.state(cpu)).ethernetSpeed] ?? 0;
  }

  /** All zeros if the entry is empty. */
  override async gid(_cpu: Cpu, index: number): Promise<Uint8Array> {
    requireWithin('GID index', index, 0, this.gidCount - 1);
    return this.gidAt(index);
  }

  /** The same without a query; all zeros if the entry is empty. */
  gidAt(index: number): Uint8Array {
    return Uint8Array.from(this.entries[index]?.gid ?? new Uint8Array(16));
  }

  override async gidTable(): Promise<GidEntry[]> {
    return this.entries.map(({ gid, gidType }, gidIndex) => ({
      gid: Uint8Array.from(gid),
      gidIndex,
      portNum: this.number,
      gidType,
    }));
  }

  /** The version of packets sent from a GID index. @throws KernelError EINVAL for an empty entry */
  typeOfGid(index: number): GidTypeVerb {
    const entry = this.entries[index];
    if (entry === undefined)
      throw new KernelError('EINVAL', `sgidIndex is ${index}, expected 0 to ${this.entries.length - 1}`);
    return entry.gidType;
  }

  /**
   * The GID index from which packets go to a GID: the own GID of the same kind; -1 without one.
   * @param isRoutable whether by version 2; left out: by the newest version that the device has
   */
  gidIndexTo(destinationGid: Uint8Array, isRoutable = this.hasVersion2): number {
    const isIpv4 = isIpv4Gid(destinationGid);
    const wanted = isRoutable ? GidTypeVerb.IBV_GID_TYPE_ROCE_V2 : GidTypeVerb.IBV_GID_TYPE_ROCE_V1;
    return this.entries.findIndex(({ gid, gidType }) => isIpv4Gid(gid) === isIpv4 && gidType === wanted);
  }

  /** Whether packets from an IP address use version 2. */
  get isRoutable(): boolean {
    return this.hasVersion2;
  }

  /** Counters of neighbour resolution since the port was brought up. */
  get networkCounts(): NetworkCounts | undefined {
    return this.opened?.counts;
  }

  /** Created when the port is brought up. @throws KernelError ENODEV before that */
  get interface(): NetworkInterface {
    if (this.opened === undefined) throw new KernelError('ENODEV', `port ${this.number} has no interface`);
    return this.opened;
  }

  /** Opens its network interface; the port follows. @param undone receives the step that closes it */
  async openInterface(
    cpu: Cpu,
    device: Device,
    undone: (close: (thread: Cpu) => Promise<void>) => void,
  ): Promise<void> {
    const opened = new NetworkInterface(device, {
      portNumber: this.number,
      mac: this.mac,
      qpn: frameQpnOf(device.limits, device.profile, this.number),
      addresses: this.entries
        .filter(({ gidType }) => gidType === GidTypeVerb.IBV_GID_TYPE_ROCE_V1)
        .map(({ gid }) => gid),
      frameBytesMax: this.limits.maxEthernetMtu + frameOverheadBytes,
    });
    this.opened = opened;
    undone((thread) => opened.close(thread));
    await opened.open(cpu);
  }

  /**
   * Resolves how packets reach an address; the thread waits for a neighbour's answer.
   * @throws KernelError EINVAL if the address has no GID, or the source GID index is empty or of another kind;
   *   ENETUNREACH if it is not on this link; ETIMEDOUT if no station answers within a second
   */
  async resolve(cpu: Cpu, { isGlobal, grh }: AhAttr): Promise<ResolvedGid> {
    if (isGlobal !== 1 || grh === undefined)
      throw new KernelError('EINVAL', `isGlobal is ${isGlobal ?? 0}, expected 1 on a port of Ethernet`);
    const { dgid, sgidIndex, hopLimit } = grh;
    if (isMulticastGid(dgid)) return { mac: multicastMacOf(dgid), hopLimit };
    const isVersion2 = this.typeOfGid(sgidIndex) === GidTypeVerb.IBV_GID_TYPE_ROCE_V2;
    if (isLinkLocalGid(dgid) && !isVersion2) return { mac: macBytesOf(macOfGid(dgid)), hopLimit };
    if (isIpv4Gid(this.gidAt(sgidIndex)) !== isIpv4Gid(dgid))
      throw new KernelError('EINVAL', `dgid and the GID at ${sgidIndex} are not both of IPv4`);
    return { mac: await this.interface.lookUp(cpu, dgid, resolveLimitMs), hopLimit: routedHopLimit };
  }

  protected override async isActiveNow(cpu: Cpu): Promise<boolean> {
    return (await this.state(cpu)).linkUp === 1;
  }

  private state(cpu: Cpu): Promise<PortLimits> {
    return queryPortLimits(cpu, this.commands, this.number);
  }

  private async setEthernet(
    cpu: Cpu,
    subCommand: SetPortEthernet,
    write: (bytes: Uint8Array, address: number) => void,
  ): Promise<void> {
    const command = {
      inputModifier: (subCommand << 8) | this.number,
      opcodeModifier: SetPortForm.ETHERNET,
    };
    await this.commands.executeWithMailbox(cpu, 'SET_PORT', command, write);
  }
}

/** Code of the longest payload of a packet in frames of an MTU. */
function pathMtuOf(mtuBytes: number): MtuVerb {
  const payload = mtuBytes - roceHeaderBytesMax;
  const fitting = Object.values(MtuVerb).filter((code) => bytesOfMtu(code) <= payload);
  return fitting.at(-1) ?? MtuVerb.IBV_MTU_256;
}

const bytesOfMtu = (code: MtuVerb): number => 128 * 2 ** code;

/** The port if it is Ethernet. */
export const ethernetPortOf = (port: Port | undefined): EthernetPort | undefined =>
  port instanceof EthernetPort ? port : undefined;
