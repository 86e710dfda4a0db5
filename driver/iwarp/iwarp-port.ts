/**
 * A port of Ethernet whose connections are iWARP's: the verbs' attributes of such a port are those of cxgb4 (Linux 6.1,
 * provider.c: c4iw_query_port, c4iw_query_gid). Addresses and neighbours are those of {@link EthernetPort}; the card has no table of GIDs.
 */
import { macBytesOf } from '../../base/index.ts';
import { EthernetPort } from '../ethernet-port.ts';
import { requireWithin } from '../kernel-error.ts';
import type { Cpu } from '../platform.ts';
import { type GidEntry, GidTypeVerb, type PortAttr } from '../uapi.ts';

/** IB_PORT_CM_SUP, SNMP_TUNNEL_SUP, REINIT_SUP, DEVICE_MGMT_SUP, VENDOR_CLASS_SUP and BOOT_MGMT_SUP. */
const portCapFlags = (1 << 16) | (1 << 17) | (1 << 18) | (1 << 19) | (1 << 21) | (1 << 23);
const maxMessageBytes = 2 ** 32 - 1;

export class IwarpPort extends EthernetPort {
  override get gidCount(): number {
    return 1;
  }

  override async query(cpu: Cpu): Promise<PortAttr> {
    return { ...(await super.query(cpu)), portCapFlags, maxMsgSz: maxMessageBytes, maxVlNum: 0 };
  }

  override async gid(_cpu: Cpu, index: number): Promise<Uint8Array> {
    requireWithin('GID index', index, 0, this.gidCount - 1);
    return this.macGid();
  }

  override async gidTable(): Promise<GidEntry[]> {
    return [{ gid: this.macGid(), gidIndex: 0, portNum: this.number, gidType: GidTypeVerb.IBV_GID_TYPE_IB }];
  }

  protected override async setGids(): Promise<void> {}

  /** The MAC, then zeros. */
  private macGid(): Uint8Array {
    const gid = new Uint8Array(16);
    gid.set(macBytesOf(this.mac));
    return gid;
  }
}
