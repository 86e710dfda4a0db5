/**
 * State of an Ethernet port for RoCE: for each GID whether its datagrams use IP and UDP, and the UDP port of version 2.
 * The port holds the GIDs; the frame side holds the MACs and VLANs. Source: interface sheet 3.12, 3.19, 7.4, 7.5.
 */
import type { BlockState } from '../../../sim/index.ts';
import { ROCE_UDP_PORT } from '../../../wire/index.ts';
import type { RoceTables } from '../ibta/packets/index.ts';
import type { FrameSteering } from './frame-steering.ts';

export class RoceSide implements RoceTables {
  readonly macs: Float64Array;
  readonly vlans: Int32Array;
  readonly isRoutable: Uint8Array;
  /** Whether the port supports version 2 in addition to version 1. */
  readonly hasVersion2: boolean;
  #udpPort = ROCE_UDP_PORT;

  constructor({ macs, vlans }: FrameSteering, versions: 'v1' | 'v2', gidCount: number) {
    this.macs = macs;
    this.vlans = vlans;
    this.isRoutable = new Uint8Array(gidCount);
    this.hasVersion2 = versions === 'v2';
  }

  get udpPort(): number | undefined {
    return this.hasVersion2 ? this.#udpPort : undefined;
  }

  /** CONFIG_DEV. */
  setUdpPort(port: number): void {
    this.#udpPort = port;
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { routableGids: this.isRoutable.reduce((sum, is) => sum + is, 0), udpPort: this.#udpPort };
  }

  /** Restores the state of a fresh device. */
  reset(): void {
    this.isRoutable.fill(0);
    this.#udpPort = ROCE_UDP_PORT;
  }
}
