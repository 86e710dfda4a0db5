/** What a connection needs of what is below and around it. */
import type { NetStatistics } from '../net-statistics.ts';
import type { NetCostConfig, NetStackConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { PacketBuffer, PacketBuffers } from './packet-buffer.ts';

/** Where in a frame the device puts a checksum, and where it begins to sum. */
export interface ChecksumPlace {
  readonly start: number;
  readonly offset: number;
}

/** Of a frame without a tag. */
export const noTag = -1;

/** A frame whose MAC addresses are not yet in its buffer, or are. */
export interface OutboundFrame {
  readonly buffer: PacketBuffer;
  /** Where in the buffer the frame begins, and its bytes. */
  readonly start: number;
  readonly lengthBytes: number;
  /** The checksum that a device with checksum offload is to put in; undefined: none. */
  readonly checksum: ChecksumPlace | undefined;
}

/** What a device lets through, beside frames for its own address, to all, and without a tag. */
export interface DeviceFilters {
  /** MACs of groups. */
  readonly groups: readonly Uint8Array[];
  /** Ids of VLANs; 0 is of frames that have a priority and no VLAN. */
  readonly vlans: readonly number[];
}

/** A network device: the NIC's driver fits it. */
export interface NetDevice {
  readonly macAddress: Uint8Array;
  readonly mtu: number;
  readonly hasChecksumOffload: boolean;
  readonly buffers: PacketBuffers;
  /** Frames that can be given now. */
  readonly room: number;
  /**
   * Gives a frame, whose MAC addresses are in its buffer; it leaves after {@link flush}.
   * @param tag priority, bits 15:13, and VLAN of the tag that it is to have on the cable (IEEE 802.1Q, 9.6), or {@link noTag}
   */
  transmit(cpu: Cpu, frame: OutboundFrame, tag: number): void;
  /**
   * Rings the doorbell for the frames given; every path that may have sent something ends with it. One thread at a time
   * rings, also for what others give meanwhile, so that the tail never goes back.
   */
  flush(cpu: Cpu): Promise<void>;
  /** The device is in use: its watchdog goes on checking. */
  used(): void;
}

/** What a device hands its frames to. */
export interface NetworkLayer {
  /** The device is about to work, under this MAC. @returns what it is to let through */
  begins(mac: Uint8Array): DeviceFilters;
  /**
   * A frame has arrived: `buffer.start` and `buffer.length` say where. The buffer is the layer's from now on.
   * @param sum one's complement sum of the frame from {@link receiveSumStart} on, -1 when the device has none
   * @param tag that the frame had on the cable and has no longer, or {@link noTag}
   */
  receive(cpu: Cpu, buffer: PacketBuffer, sum: number, tag: number): void;
  /** The device takes frames again. */
  roomAgain(cpu: Cpu): void;
}

export interface StackEnvironment {
  readonly platform: NetPlatform;
  readonly config: NetStackConfig;
  readonly costs: NetCostConfig;
  readonly counts: NetStatistics;
  readonly device: NetDevice;
  /** The device has no room: the connection's output goes on when it has. */
  throttle(connection: Connection): void;
  /** A deadline of the connection has changed. */
  timersChanged(connection: Connection): void;
  /** The connection exists no longer. */
  forget(connection: Connection): void;
  /** A connection that the peer opened is established: it waits to be accepted. @returns false when there is no room */
  established(cpu: Cpu, connection: Connection): boolean;
  /** The connection has come to TIME_WAIT. */
  timeWaits(connection: Connection): void;
}
