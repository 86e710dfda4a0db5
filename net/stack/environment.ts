/** What a connection needs of what is below and around it. */
import type { NetStatistics } from '../counts.ts';
import type { NetCostConfig, NetStackConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { Neighbours } from './neighbours.ts';
import type { PacketBuffer, PacketBuffers } from './packet-buffer.ts';

/** A network device: the NIC's driver fits it. */
export interface NetDevice {
  readonly macAddress: Uint8Array;
  readonly mtu: number;
  readonly hasChecksumOffload: boolean;
  readonly buffers: PacketBuffers;
  /** Frames that can be given now. */
  readonly room: number;
  /**
   * Gives a frame of `lengthBytes` that starts `start` bytes into the buffer; it leaves after {@link flush}.
   * @param isChecksummed whether a device with checksum offload is to put the transport's checksum in
   */
  transmit(cpu: Cpu, buffer: PacketBuffer, start: number, lengthBytes: number, isChecksummed: boolean): void;
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
  /**
   * A frame has arrived: `buffer.start` and `buffer.length` say where. The buffer is the layer's from now on.
   * @param sum one's complement sum of the frame from the transport header on, -1 when the device has none
   */
  receive(cpu: Cpu, buffer: PacketBuffer, sum: number): void;
  /** The device takes frames again. */
  roomAgain(cpu: Cpu): void;
}

export interface StackEnvironment {
  readonly platform: NetPlatform;
  readonly config: NetStackConfig;
  readonly costs: NetCostConfig;
  readonly counts: NetStatistics;
  readonly device: NetDevice;
  /** Our IPv4 address. */
  readonly address: number;
  readonly neighbours: Neighbours;
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
