/**
 * Ports and subnet management: the answers of MAD_IFC, and how a port becomes active.
 *
 *   SET_PORT -> INIT_PORT -> (a subnet manager, or the device itself, sets LID and state) -> event 0x09 subtype 4
 *
 * Every query asks the device's own agent, without key checks, as Linux does (op_mod 3). Sources: interface sheet 3.12
 * to 3.14, 7.6, 7.7.
 */

import {
  CommandStatus,
  extendedPortInfo,
  guidInfo,
  LinkSpeed,
  LinkSpeedExtended,
  MadClass,
  MadIfcFlag,
  MadMethod,
  MadStatus,
  madIfcModifier,
  nodeInfo,
  PortMtu,
  PortState,
  pkeyTable,
  portInfo,
  SetPortForm,
  SmpAttribute,
  setPortInfiniband,
  smp,
  smpDataOffset,
} from '../abi/index.ts';
import { type Decoded, usToPs } from '../base/index.ts';
import type { PortLimits } from './capabilities.ts';
import type { CommandInterface } from './command-interface.ts';
import { CommandFailure, KernelError, requireWithin } from './kernel-error.ts';
import type { Cpu, DriverPlatform, Signal } from './platform.ts';
import {
  AsyncEventType,
  type GidEntry,
  GidTypeVerb,
  LinkLayerVerb,
  type MtuVerb,
  type PortAttr,
  type PortStateVerb,
} from './uapi.ts';

export type PortInfo = Decoded<typeof portInfo>;
type PkeyBlock = Decoded<typeof pkeyTable>;
export type NodeInfo = Decoded<typeof nodeInfo>;

const guidsPerBlock = 8;
const pkeysPerBlock = 32;
/** VL counts tried in turn while the device rejects them as too many. */
const vlCounts = [8, 4, 2, 1] as const;
/** FDR10, which only the vendor's attribute distinguishes from QDR. */
const speedFdr10 = 8;
const extendedSpeeds: { readonly [code: number]: number } = {
  [LinkSpeedExtended.FDR]: 16,
  [LinkSpeedExtended.EDR]: 32,
  [LinkSpeedExtended.HDR]: 64,
  [LinkSpeedExtended.NDR]: 128,
};

export class Port {
  readonly number: number;
  readonly limits: PortLimits;
  readonly linkLayer: LinkLayerVerb = LinkLayerVerb.IBV_LINK_LAYER_INFINIBAND;
  protected readonly platform: DriverPlatform;
  protected readonly commands: CommandInterface;
  private readonly changed: Signal;
  private isActive = false;

  constructor(platform: DriverPlatform, commands: CommandInterface, number: number, limits: PortLimits) {
    this.platform = platform;
    this.commands = commands;
    this.number = number;
    this.limits = limits;
    this.changed = platform.newSignal();
  }

  get gidCount(): number {
    return 2 ** this.limits.logGids;
  }

  get pkeyCount(): number {
    return 2 ** this.limits.logPkeys;
  }

  /** An event of this port has arrived. */
  noteEvent(type: AsyncEventType): void {
    if (type === AsyncEventType.IBV_EVENT_PORT_ACTIVE) this.isActive = true;
    if (type === AsyncEventType.IBV_EVENT_PORT_ERR) this.isActive = false;
    this.changed.raise();
  }

  /** SET_PORT with MTU 4096 and as many VLs as the device takes; the capability mask stays. */
  async configure(cpu: Cpu, capabilityMask: number): Promise<void> {
    for (const vlCount of vlCounts) {
      try {
        await this.setPort(cpu, vlCount, capabilityMask);
        return;
      } catch (error) {
        const isTooMany = error instanceof CommandFailure && error.status === CommandStatus.BAD_SIZE;
        if (!isTooMany || vlCount === vlCounts.at(-1)) throw error;
      }
    }
  }

  async init(cpu: Cpu): Promise<void> {
    await this.commands.execute(cpu, 'INIT_PORT', { inputModifier: this.number });
  }

  async close(cpu: Cpu): Promise<void> {
    await this.commands.execute(cpu, 'CLOSE_PORT', { inputModifier: this.number });
  }

  /** Waits until the port is active. @returns false if it is not active within `limitUs` */
  async waitUntilActive(cpu: Cpu, limitUs: number): Promise<boolean> {
    const watch = this.platform.stopwatch();
    if (await this.isActiveNow(cpu)) return true;
    while (!this.isActive) {
      const restPs = usToPs(limitUs) - watch.elapsedPs;
      if (restPs <= 0 || !(await this.changed.wait(cpu, restPs))) return this.isActive;
    }
    return true;
  }

  /** The state that the device reports, regardless of received events. */
  protected async isActiveNow(cpu: Cpu): Promise<boolean> {
    return (await this.portInfo(cpu)).portState === PortState.ACTIVE;
  }

  portInfo(cpu: Cpu): Promise<PortInfo> {
    return this.get(cpu, SmpAttribute.PORT_INFO, this.number, (bytes, at) => portInfo.decode(bytes, at));
  }

  /** Returns the node's own attributes; Linux queries them through port 1. */
  nodeInfo(cpu: Cpu): Promise<NodeInfo> {
    return this.get(cpu, SmpAttribute.NODE_INFO, 0, (bytes, at) => nodeInfo.decode(bytes, at));
  }

  nodeDescription(cpu: Cpu): Promise<Uint8Array> {
    return this.get(cpu, SmpAttribute.NODE_DESC, 0, (bytes, at) => bytes.slice(at, at + 64));
  }

  async query(cpu: Cpu): Promise<PortAttr> {
    const info = await this.portInfo(cpu);
    return {
      state: info.portState as PortStateVerb,
      maxMtu: info.mtuCap as MtuVerb,
      activeMtu: info.neighborMtu as MtuVerb,
      gidTblLen: this.gidCount,
      portCapFlags: info.capabilityMask,
      maxMsgSz: 2 ** 30,
      badPkeyCntr: info.pkeyViolations,
      qkeyViolCntr: info.qkeyViolations,
      pkeyTblLen: this.pkeyCount,
      lid: info.lid,
      smLid: info.masterSmLid,
      lmc: info.lmc,
      maxVlNum: info.vlCap,
      smSl: info.masterSmSl,
      subnetTimeout: info.subnetTimeout,
      initTypeReply: info.initTypeReply,
      activeWidth: info.linkWidthActive,
      activeSpeed: await this.activeSpeed(cpu, info),
      physState: info.portPhysicalState,
      linkLayer: this.linkLayer,
    };
  }

  /** Subnet prefix of the port followed by the GUID of this entry: 16 bytes. */
  async gid(cpu: Cpu, index: number): Promise<Uint8Array> {
    requireWithin('GID index', index, 0, this.gidCount - 1);
    const { gidPrefix } = await this.portInfo(cpu);
    const block = Math.floor(index / guidsPerBlock);
    const guids = await this.get(cpu, SmpAttribute.GUID_INFO, block, (bytes, at) =>
      guidInfo.decode(bytes, at),
    );
    const gid = new Uint8Array(16);
    const view = new DataView(gid.buffer);
    view.setBigUint64(0, gidPrefix);
    view.setBigUint64(8, guids.guids[index % guidsPerBlock]!);
    return gid;
  }

  /** The entries that are not empty, in order. */
  async gidTable(cpu: Cpu): Promise<GidEntry[]> {
    const entries: GidEntry[] = [];
    for (let gidIndex = 0; gidIndex < this.gidCount; gidIndex++) {
      const gid = await this.gid(cpu, gidIndex);
      if (gid.subarray(8).some((byte) => byte !== 0))
        entries.push({ gid, gidIndex, portNum: this.number, gidType: GidTypeVerb.IBV_GID_TYPE_IB });
    }
    return entries;
  }

  async pkey(cpu: Cpu, index: number): Promise<number> {
    requireWithin('P_Key index', index, 0, this.pkeyCount - 1);
    const block = Math.floor(index / pkeysPerBlock);
    const table = await this.get(cpu, SmpAttribute.PKEY_TABLE, block, (bytes, at) =>
      pkeyTable.decode(bytes, at),
    );
    return table.pkeys[index % pkeysPerBlock]!;
  }

  /**
   * Writes P_Keys from a place of the table on, as a subnet manager does by SubnSet(P_KeyTable) in blocks of 32. A full
   * member's key has the highest bit set, a limited member's has it clear; 0 is an empty entry.
   */
  async setPkeys(cpu: Cpu, index: number, pkeys: readonly number[]): Promise<void> {
    requireWithin('P_Key index', index, 0, this.pkeyCount - 1);
    requireWithin('number of P_Keys', pkeys.length, 1, this.pkeyCount - index);
    for (const pkey of pkeys) requireWithin('P_Key', pkey, 0, 0xffff);
    const last = Math.floor((index + pkeys.length - 1) / pkeysPerBlock);
    for (let block = Math.floor(index / pkeysPerBlock); block <= last; block++) {
      const first = block * pkeysPerBlock;
      const decode = (bytes: Uint8Array, at: number): PkeyBlock => pkeyTable.decode(bytes, at);
      const old = await this.get(cpu, SmpAttribute.PKEY_TABLE, block, decode);
      const entries = old.pkeys.map((pkey, at) => pkeys[first + at - index] ?? pkey);
      const fill = (bytes: Uint8Array, at: number): void =>
        pkeyTable.encodeInto({ pkeys: entries }, bytes, at);
      await this.mad(cpu, MadMethod.SET, SmpAttribute.PKEY_TABLE, block, fill, () => undefined);
    }
  }

  private async activeSpeed(cpu: Cpu, info: PortInfo): Promise<number> {
    const extended = extendedSpeeds[info.linkSpeedExtendedActive];
    if (extended !== undefined) return extended;
    if (info.linkSpeedActive !== LinkSpeed.QDR) return info.linkSpeedActive;
    const isFdr10 = await this.get(
      cpu,
      SmpAttribute.MLX_EXTENDED_PORT_INFO,
      this.number,
      (bytes, at) => extendedPortInfo.decode(bytes, at).linkSpeedActive === 1,
    );
    return isFdr10 ? speedFdr10 : LinkSpeed.QDR;
  }

  private async setPort(cpu: Cpu, vlCount: number, capabilityMask: number): Promise<void> {
    const command = { inputModifier: this.number, opcodeModifier: SetPortForm.INFINIBAND };
    await this.commands.executeWithMailbox(cpu, 'SET_PORT', command, (bytes, address) => {
      setPortInfiniband.encodeInto(
        { changeMtuCap: 1, changeVlCap: 1, mtuCap: PortMtu.MTU_4096, vlCount, capabilityMask },
        bytes,
        address,
      );
    });
  }

  /** One Get of the device's own agent; `read` decodes the attribute at its address. */
  private get<T>(
    cpu: Cpu,
    attributeId: number,
    attributeModifier: number,
    read: (bytes: Uint8Array, address: number) => T,
  ): Promise<T> {
    return this.mad(cpu, MadMethod.GET, attributeId, attributeModifier, () => undefined, read);
  }

  /** One Get or Set of the device's own agent; `fill` writes the attribute at its address. */
  private async mad<T>(
    cpu: Cpu,
    method: MadMethod,
    attributeId: number,
    attributeModifier: number,
    fill: (bytes: Uint8Array, address: number) => void,
    read: (bytes: Uint8Array, address: number) => T,
  ): Promise<T> {
    const request = this.commands.mailboxes.take();
    try {
      smp.encodeInto(
        {
          baseVersion: 1,
          managementClass: MadClass.SUBN_LID_ROUTED,
          classVersion: 1,
          method,
          attributeId,
          attributeModifier,
        },
        this.platform.memory.bytes,
        request,
      );
      fill(this.platform.memory.bytes, request + smpDataOffset);
      const command = {
        input: request,
        inputModifier: madIfcModifier(this.number, 0),
        opcodeModifier: MadIfcFlag.NO_MKEY_CHECK | MadIfcFlag.NO_BKEY_CHECK,
      };
      return await this.commands.query(cpu, 'MAD_IFC', command, (bytes, at) => {
        if (smp.fields.status.get(this.platform.memory.view, at) !== MadStatus.OK) {
          throw new KernelError('EINVAL', `the agent refuses attribute 0x${attributeId.toString(16)}`);
        }
        return read(bytes, at + smpDataOffset);
      });
    } finally {
      this.commands.mailboxes.give(request);
    }
  }
}
