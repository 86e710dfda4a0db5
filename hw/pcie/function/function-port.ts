/** Services that the function needs of its end of the link, and those that the device core offers it. */
import type { Cycles } from '../../../base/index.ts';
import type { ChannelReader } from '../../../sim/index.ts';
import type { CompletionFields, Flow } from '../tlp/index.ts';

/** The part of a `PcieLinkPort` that an endpoint's function uses. */
export interface FunctionPort {
  readonly reader: ChannelReader;
  /** Bus, device and function in completions of this end. */
  completerId: number;
  /** Releases a TLP's buffer and credits. */
  consume(offset: number): void;
  canSend(flow: Flow): boolean;
  /** The completion that {@link sendCompletion} sends. */
  readonly completion: CompletionFields;
  sendCompletion(): void;
  sendMessage(messageCode: number, trafficClass: number, requesterId: number): void;
}

/** Optional observer of software's accesses to the BARs: the fault injector. */
export interface AccessObserver {
  /** A load or store has arrived, and has not taken effect yet. */
  barAccessed(cycle: Cycles): void;
}

/** The device core that serves the BARs. All calls are made at an edge of the function's clock domain. */
export interface BarTarget {
  /**
   * A write of `lengthBytes` at `bytes[byteOffset]`, which are valid only during the call.
   * @returns the cycles for which the write port is taken, at least 1
   */
  barWrite(
    bar: number,
    offset: number,
    bytes: Uint8Array,
    byteOffset: number,
    lengthBytes: number,
    cycle: Cycles,
  ): number;
  /** A read of `lengthBytes`, to be stored at the start of `into`, which is zero. */
  barRead(bar: number, offset: number, lengthBytes: number, into: DataView, cycle: Cycles): void;
  /** The function was reset: the core returns to power-on values, and sends nothing more. */
  functionReset(cycle: Cycles): void;
  /** A monitored word of memory has changed; called between edges. Left out: the device monitors none. */
  wordChanged?(number: number): void;
}
