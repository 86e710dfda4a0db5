/**
 * A port of type Ethernet with RoCE, as mlx4_en and mlx4_ib bring it up between them. Of a network interface there is what RoCE needs: an
 * MTU, a MAC, addresses, the link, and the search for neighbours (network/).
 *
 *   SET_PORT general ─► SET_PORT MAC table ─► its ring: SET_PORT receive QPs ─► INIT_PORT ─► filter of groups ─► CONFIG_DEV (UDP port of v2)
 *   ─► SET_PORT GIDs ─► event 0x09 subtype 4
 *
 * Its GIDs are in the order of Linux' table: those of the link-local address, then those of the IPv4 address; of each that of version 1,
 * then that of version 2 if the device has it. The MAC of a peer follows from a link-local GID by version 1; all others are asked for, by
 * ARP or Neighbor Discovery, as ib_resolve_eth_dmac has them.
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
import { type DeviceLimits, type PortLimits, queryPortLimits } from './capabilities.ts';
import type { CommandInterface } from './command-interface.ts';
import type { Device } from './device.ts';
import {
  gidOfIpv4,
  gidOfMac,
  isIpv4Gid,
  isLinkLocalGid,
  isMulticastGid,
  macBytesOf,
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

/** What stands around the longest payload of a frame: header, two tags, FCS. */
const frameOverheadBytes = 14 + 2 * 4 + 4;
/** mlx4_en asks for all of MTU and pause; a device with both versions of RoCE is put into the mode that has both. */
const bothRoceVersions = 2;
const roceV2 = 2;
/** IANA's for RoCE v2. */
const roceUdpPort = 4791;
/** The port has one MAC. */
const macIndex = 0;
/** Headers that a packet of RoCE has at most, as Linux' iboe_get_mtu takes them off the MTU of frames: GRH, UDP, BTH, XRC, atomic, ICRC. */
const roceHeaderBytesMax = 40 + 8 + 12 + 4 + 28 + 4;
/** Of a port of Ethernet in Linux: CM is there, and GIDs are addresses of IP. */
const portCapFlags = (1 << 16) | (1 << 26);
const maxVlNum = 2;
/** ip_default_ttl. */
const routedHopLimit = 64;
/** What the verbs wait for a MAC (rdma_addr_find_l2_eth_by_grh). */
const resolveLimitMs = 1000;
const width4x = 2;
const width1x = 1;
const speedQdr = 4;
const speedFdr = 16;
/** QUERY_PORT's codes of the rate, and the path rates that Linux makes of them (iboe_get_rate): 56 Gb/s is 40. */
const ethernetSpeed = { GBPS_40: 0x40, GBPS_56: 0x20, GBPS_20: 0x08 } as const;
const pathRates: Readonly<Record<number, number>> = { 64: 7, 32: 7, 8: 6, 0: 3, 1: 3 };

/** What a path to a GID has on Ethernet beside the GID: 6 bytes of MAC, and the hop limit that the route gives. */
export interface ResolvedGid {
  readonly mac: Uint8Array;
  readonly hopLimit: number;
}

/** A place of the GID table as the device has it. */
interface Entry {
  readonly gid: Uint8Array;
  readonly gidType: GidTypeVerb;
}

export class EthernetPort extends Port {
  override readonly linkLayer = LinkLayerVerb.IBV_LINK_LAYER_ETHERNET;
  /** Index of its MAC in the port's table: the source of all its packets. */
  readonly macIndex = macIndex;
  /** IPv4 address by the host's table of addresses; undefined where it is not there. */
  readonly address: string | undefined;
  private readonly hasVersion2: boolean;
  private readonly usesPause: boolean;
  private readonly entries: readonly Entry[];
  private opened: NetworkInterface | undefined;

  constructor(
    platform: DriverPlatform,
    commands: CommandInterface,
    number: number,
    port: PortLimits,
    limits: DeviceLimits,
    { usesPause }: Pick<DriverConfig, 'usesPause'>,
  ) {
    super(platform, commands, number, port);
    this.usesPause = usesPause;
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

  /** Linux makes one of whatever the device has (IBTA A16.5.2). */
  override get pkeyCount(): number {
    return 1;
  }

  /** Takes the place of InfiniBand's SET_PORT: the longest frame that the port has, and its MAC. */
  override async configure(cpu: Cpu): Promise<void> {
    await this.setEthernet(cpu, SetPortEthernet.GENERAL, (bytes, at) =>
      setPortGeneral.encodeInto(
        {
          mtuValid: 1,
          rxPauseValid: 1,
          txPauseValid: 1,
          mtuBytes: this.limits.maxEthernetMtu + frameOverheadBytes,
          txGlobalPause: Number(this.usesPause),
          rxGlobalPause: Number(this.usesPause),
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

  /** The rate of paths from here, as an InfiniBand code; 0 where there is none. */
  async pathRate(cpu: Cpu): Promise<number> {
    return pathRates[(await this.state(cpu)).ethernetSpeed] ?? 0;
  }

  /** All zeros where there is none. */
  override async gid(_cpu: Cpu, index: number): Promise<Uint8Array> {
    requireWithin('GID index', index, 0, this.gidCount - 1);
    return this.gidAt(index);
  }

  /** The same without asking; all zeros where there is none. */
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

  /** By what packets from a place of the table go. @throws KernelError EINVAL for a place without a GID */
  typeOfGid(index: number): GidTypeVerb {
    const entry = this.entries[index];
    if (entry === undefined)
      throw new KernelError('EINVAL', `sgidIndex is ${index}, expected 0 to ${this.entries.length - 1}`);
    return entry.gidType;
  }

  /**
   * The place from which packets go to a GID: the own one of its kind; -1 without one.
   * @param isRoutable whether by version 2; left out: by the newest version that the device has
   */
  gidIndexTo(destinationGid: Uint8Array, isRoutable = this.hasVersion2): number {
    const isIpv4 = isIpv4Gid(destinationGid);
    const wanted = isRoutable ? GidTypeVerb.IBV_GID_TYPE_ROCE_V2 : GidTypeVerb.IBV_GID_TYPE_ROCE_V1;
    return this.entries.findIndex(({ gid, gidType }) => isIpv4Gid(gid) === isIpv4 && gidType === wanted);
  }

  /** Whether packets go from an address of IP: by version 2. */
  get isRoutable(): boolean {
    return this.hasVersion2;
  }

  /** What its search for neighbours has come to, since the port was brought up. */
  get networkCounts(): NetworkCounts | undefined {
    return this.opened?.counts;
  }

  /** Made when the port is brought up. @throws KernelError ENODEV before that */
  get interface(): NetworkInterface {
    if (this.opened === undefined) throw new KernelError('ENODEV', `port ${this.number} has no interface`);
    return this.opened;
  }

  /** Opens its network interface; the port follows. @param undone gets what closes it */
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
   * How packets get to where an address says: the thread waits for a neighbour's answer.
   * @throws KernelError EINVAL for one without a GID, from a place without one, or of another kind than that; ENETUNREACH for one
   *   that is not of this link; ETIMEDOUT when nobody has answered within a second
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

/** The port if it is of Ethernet. */
export const ethernetPortOf = (port: Port | undefined): EthernetPort | undefined =>
  port instanceof EthernetPort ? port : undefined;
