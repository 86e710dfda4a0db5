/** Services that a connection needs of the layers below and around it. */
import type { NetStatistics } from '../net-statistics.ts';
import type { NetCostConfig, NetStackConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { PacketBuffer, PacketBuffers } from './packet-buffer.ts';

/** Offsets at which the device begins to sum a frame and at which it inserts the checksum. */
export interface ChecksumPlace {
  readonly start: number;
  readonly offset: number;
}

/** Tag value of an untagged frame. */
export const noTag = -1;

/** A frame whose MAC addresses are in its buffer, or not yet. */
export interface OutboundFrame {
  readonly buffer: PacketBuffer;
  /** Offset of the frame in the buffer, and its length in bytes. */
  readonly start: number;
  readonly lengthBytes: number;
  /** The checksum that a device with checksum offload inserts; undefined: none. */
  readonly checksum: ChecksumPlace | undefined;
}

/** Frames that a device accepts, in addition to untagged ones to its own address or to all. */
export interface DeviceFilters {
  /** MACs of groups. */
  readonly groups: readonly Uint8Array[];
  /** IDs of VLANs; 0 is for frames with a priority but no VLAN. */
  readonly vlans: readonly number[];
}

/** A network device: the NIC's driver implements it. */
export interface NetDevice {
  readonly macAddress: Uint8Array;
  readonly mtu: number;
  readonly hasChecksumOffload: boolean;
  readonly buffers: PacketBuffers;
  /** Frames that can be posted now. */
  readonly room: number;
  /**
   * Posts a frame whose MAC addresses are in its buffer; it is sent after {@link flush}.
   * @param tag priority, bits 15:13, and VLAN of its tag on the cable (IEEE 802.1Q, 9.6), or {@link noTag}
   */
  transmit(cpu: Cpu, frame: OutboundFrame, tag: number): void;
  /**
   * Rings the doorbell for the posted frames; every path that may have posted one ends with it. One thread at a time rings,
   * also for frames that others post meanwhile, so that the tail never goes back.
   */
  flush(cpu: Cpu): Promise<void>;
  /** The device is in use: its watchdog continues. */
  used(): void;
}

/** Receiver of a device's frames. */
export interface NetworkLayer {
  /** The device is about to work, with this MAC. @returns the frames that it must accept */
  begins(mac: Uint8Array): DeviceFilters;
  /**
   * A frame has arrived, at `buffer.start` with `buffer.length` bytes. The layer owns the buffer from now on.
   * @param sum one's complement sum of the frame from {@link receiveSumStart} on, -1 if the device computed none
   * @param tag removed from the frame, or {@link noTag}
   */
  receive(cpu: Cpu, buffer: PacketBuffer, sum: number, tag: number): void;
  /** The device accepts frames again. */
  roomAgain(cpu: Cpu): void;
}

export interface StackEnvironment {
  readonly platform: NetPlatform;
  readonly config: NetStackConfig;
  readonly costs: NetCostConfig;
  readonly counts: NetStatistics;
  readonly device: NetDevice;
  /** The device has no room: the connection's output continues when it has. */
  throttle(connection: Connection): void;
  /** A deadline of the connection has changed. */
  timersChanged(connection: Connection): void;
  /** The connection no longer exists. */
  forget(connection: Connection): void;
  /** A connection that the peer opened is established: it waits to be accepted. @returns false if the backlog is full */
  established(cpu: Cpu, connection: Connection): boolean;
  /** The connection has entered TIME_WAIT. */
  timeWaits(connection: Connection): void;
}
