/**
 * The ports of the system DMA controller, as software reads and writes them: those of each channel, then those of all. Their
 * access is declared in abi/nic/system-dma.ts, after the Intel 8237A data sheet; this file contains the hooks.
 */
import {
  systemDmaBits,
  systemDmaChannelBytes,
  systemDmaChannelCount,
  systemDmaChannelPorts,
  systemDmaPorts,
} from '../../abi/nic/index.ts';
import { fieldOf, RegisterFile, type RegisterHooks, withField } from '../../base/index.ts';
import type { SystemDmaChannel } from './system-dma-channel.ts';
import type { TransferMachine } from './transfer-machine.ts';

const PORT_BYTES = 4;
const FOUR_GIB = 0x1_0000_0000;
const CHANNEL_AREA_BYTES = systemDmaChannelCount * systemDmaChannelBytes;
const NO_PORT = 0xffff_ffff;

export interface SystemDmaPortsPorts {
  readonly machine: Pick<TransferMachine, 'isAtWork' | 'clear' | 'registersWritten'>;
}

export class SystemDmaPorts {
  isEnabled = false;
  readonly channels: readonly SystemDmaChannel[];
  readonly #channelFiles: readonly RegisterFile[];
  readonly #common = new RegisterFile(systemDmaPorts.sizeBytes);
  #machine!: SystemDmaPortsPorts['machine'];

  constructor(channels: readonly SystemDmaChannel[]) {
    this.channels = channels;
    this.#channelFiles = channels.map((channel) => {
      const file = new RegisterFile(systemDmaChannelBytes);
      file.place(systemDmaChannelPorts, 0, channelHooks(channel));
      return file;
    });
    this.#common.place(systemDmaPorts, 0, this.#commonHooks());
  }

  connect({ machine }: SystemDmaPortsPorts): void {
    this.#machine = machine;
  }

  /** Reads the 32-bit port at `port` of abi/nic/system-dma.ts; a nonexistent port reads all ones. */
  read(port: number): number {
    const [file, offset] = this.#placeOf(port);
    return file.isClaimed(offset) ? file.read(offset & ~3, PORT_BYTES) : NO_PORT;
  }

  /** Writes a port. The registers of a working channel do not change. */
  write(port: number, value: number): void {
    const [file, offset] = this.#placeOf(port);
    if (file === this.#common) {
      if (file.write(offset & ~3, PORT_BYTES, value) === 'written') this.#machine.registersWritten();
    } else if (!this.#machine.isAtWork(Math.floor(port / systemDmaChannelBytes))) {
      file.write(offset & ~3, PORT_BYTES, value);
    }
  }

  #placeOf(port: number): readonly [file: RegisterFile, offset: number] {
    if (port >= CHANNEL_AREA_BYTES) return [this.#common, port];
    const file = this.#channelFiles[Math.floor(port / systemDmaChannelBytes)]!;
    return [file, port % systemDmaChannelBytes];
  }

  #commonHooks(): RegisterHooks<typeof systemDmaPorts.registers> {
    return {
      command: {
        read: () => (this.isEnabled ? 1 : 0),
        write: (written) => {
          this.isEnabled = fieldOf(written, systemDmaBits.command.enable) === 1;
        },
      },
      status: { read: () => this.#readStatus() },
      request: {
        write: (written) => {
          for (const [index, channel] of this.channels.entries()) {
            if (((written >>> index) & 1) === 1) channel.isRequested = true;
          }
        },
      },
      mask: {
        read: () => this.#bitsOf((channel) => channel.isMasked),
        write: (written) => {
          for (const [index, channel] of this.channels.entries())
            channel.isMasked = ((written >>> index) & 1) === 1;
        },
      },
      masterClear: { write: () => this.#clear() },
    };
  }

  #clear(): void {
    for (const channel of this.channels) channel.clear();
    this.isEnabled = false;
    this.#machine.clear();
  }

  #readStatus(): number {
    const { terminalCount, request, error } = systemDmaBits.status;
    let value = withField(
      0,
      terminalCount,
      this.#bitsOf((channel) => channel.hasReachedCount),
    );
    value = withField(
      value,
      request,
      this.#bitsOf((channel) => channel.isReady),
    );
    value = withField(
      value,
      error,
      this.#bitsOf((channel) => channel.hasFailed),
    );
    for (const channel of this.channels) {
      channel.hasReachedCount = false;
      channel.hasFailed = false;
    }
    return value;
  }

  #bitsOf(test: (channel: SystemDmaChannel) => boolean): number {
    return this.channels.reduce((bits, channel, index) => bits | (test(channel) ? 1 << index : 0), 0);
  }
}

const channelHooks = (channel: SystemDmaChannel): RegisterHooks<typeof systemDmaChannelPorts.registers> => ({
  addressLow: {
    read: () => channel.address % FOUR_GIB,
    write: (written) => channel.setAddressLow(written),
  },
  addressHigh: {
    read: () => Math.floor(channel.address / FOUR_GIB),
    write: (written) => channel.setAddressHigh(written),
  },
  count: { read: () => channel.count, write: (written) => channel.setCount(written) },
  deviceLow: {
    read: () => channel.device % FOUR_GIB,
    write: (written) => channel.setDeviceLow(written),
  },
  deviceHigh: {
    read: () => Math.floor(channel.device / FOUR_GIB),
    write: (written) => channel.setDeviceHigh(written),
  },
  mode: {
    read: () => channel.mode,
    write: (written) => {
      channel.mode = written;
    },
  },
});
