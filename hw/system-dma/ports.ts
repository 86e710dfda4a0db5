/**
 * The ports of the system DMA controller, as software reads and writes them: those of each channel, then those of all.
 * Source: abi/nic/system-dma.ts, after the Intel 8237A data sheet.
 */
import {
  systemDmaBits,
  systemDmaChannelBytes,
  systemDmaChannelCount,
  systemDmaChannelPorts,
  systemDmaPorts,
} from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/registers.ts';
import type { SystemDmaChannel } from './channel.ts';

const FOUR_GIB = 0x1_0000_0000;
const CHANNEL_AREA_BYTES = systemDmaChannelCount * systemDmaChannelBytes;
const ALL_CHANNELS = (1 << systemDmaChannelCount) - 1;

/** What a write means to the controller. */
export interface PortEffects {
  /** Whether the controller is moving words of this channel. */
  isAtWork(channel: number): boolean;
  /** Master clear: a word under way comes to nothing. */
  cleared(): void;
  /** Something has changed that the controller looks at. */
  written(): void;
}

export class SystemDmaPorts {
  isEnabled = false;
  readonly channels: readonly SystemDmaChannel[];
  readonly #effects: PortEffects;

  constructor(channels: readonly SystemDmaChannel[], effects: PortEffects) {
    this.channels = channels;
    this.#effects = effects;
  }

  /** Reads the 32-bit port at `port` of abi/nic/system-dma.ts; one that does not exist reads all ones. */
  read(port: number): number {
    if (port < CHANNEL_AREA_BYTES) return this.#readChannel(port);
    switch (systemDmaPorts.nameAt(port)) {
      case 'command':
        return this.isEnabled ? 1 : 0;
      case 'status':
        return this.#readStatus();
      case 'mask':
        return this.#bitsOf((channel) => channel.isMasked);
      case 'request':
      case 'masterClear':
        return 0;
      default:
        return 0xffff_ffff;
    }
  }

  /** Writes a port; what it does not concern ignores it. */
  write(port: number, value: number): void {
    if (port < CHANNEL_AREA_BYTES) {
      this.#writeChannel(port, value >>> 0);
      return;
    }
    switch (systemDmaPorts.nameAt(port)) {
      case 'command':
        this.isEnabled = fieldOf(value, systemDmaBits.command.enable) === 1;
        break;
      case 'request':
        for (const [index, channel] of this.channels.entries()) {
          if (((value >>> index) & 1) === 1) channel.isRequested = true;
        }
        break;
      case 'mask':
        for (const [index, channel] of this.channels.entries())
          channel.isMasked = ((value >>> index) & 1) === 1;
        break;
      case 'masterClear':
        for (const channel of this.channels) channel.clear();
        this.isEnabled = false;
        this.#effects.cleared();
        break;
      default:
        return;
    }
    this.#effects.written();
  }

  #readChannel(port: number): number {
    const channel = this.channels[Math.floor(port / systemDmaChannelBytes)]!;
    switch (systemDmaChannelPorts.nameAt(port % systemDmaChannelBytes)) {
      case 'addressLow':
        return channel.address % FOUR_GIB;
      case 'addressHigh':
        return Math.floor(channel.address / FOUR_GIB);
      case 'count':
        return channel.count;
      case 'deviceLow':
        return channel.device % FOUR_GIB;
      case 'deviceHigh':
        return Math.floor(channel.device / FOUR_GIB);
      case 'mode':
        return channel.mode;
      default:
        return 0xffff_ffff;
    }
  }

  /** The registers of a channel that is at work do not change. */
  #writeChannel(port: number, value: number): void {
    const index = Math.floor(port / systemDmaChannelBytes);
    if (this.#effects.isAtWork(index)) return;
    const channel = this.channels[index]!;
    switch (systemDmaChannelPorts.nameAt(port % systemDmaChannelBytes)) {
      case 'addressLow':
        channel.setAddressLow(value);
        return;
      case 'addressHigh':
        channel.setAddressHigh(value);
        return;
      case 'count':
        channel.setCount(value);
        return;
      case 'deviceLow':
        channel.setDeviceLow(value);
        return;
      case 'deviceHigh':
        channel.setDeviceHigh(value);
        return;
      case 'mode':
        channel.mode = value;
        return;
      default:
    }
  }

  #readStatus(): number {
    const value =
      this.#bitsOf((channel) => channel.hasReachedCount) |
      (this.#bitsOf((channel) => channel.isReady) << systemDmaBits.status.request.low) |
      (this.#bitsOf((channel) => channel.hasFailed) << systemDmaBits.status.error.low);
    for (const channel of this.channels) {
      channel.hasReachedCount = false;
      channel.hasFailed = false;
    }
    return value;
  }

  #bitsOf(test: (channel: SystemDmaChannel) => boolean): number {
    return (
      this.channels.reduce((bits, channel, index) => bits | (test(channel) ? 1 << index : 0), 0) &
      ALL_CHANNELS
    );
  }
}
