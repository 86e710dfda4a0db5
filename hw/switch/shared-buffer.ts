/**
 * The buffer that all ports share, in bytes of frames with their FCS: how much each input and the whole holds, and what fits.
 *
 *     buffer = headroom of each input and lossless class + shared part
 *     an output's queue of a lossy priority:  at most alpha × free             (Choudhury and Hahne 1998)
 *     an input's lossless class:              at most pauseAlpha × free, then the headroom; beyond that its sender is stopped
 *
 * where free is what the shared part has left. Classes are all traffic of an input with PAUSE, its priorities with PFC. A frame for several
 * outputs counts once. Room is counted, not tied to frames: the bytes of any leaving frame are taken from the headroom first. So a
 * stopped sender may send again when as many bytes have left as came too late (switch-mmu.cc of the HPCC simulator, RemoveFromIngressAdmission).
 */
import { ConfigurationError } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';
import { type EthernetSwitchConfig, ratioOf } from './ethernet-parameters.ts';

export const PRIORITY_COUNT = 8;
const BYTES_PER_KIB = 1024;

/** Bytes of one input, by class. */
class InputShare {
  readonly shared = new Float64Array(PRIORITY_COUNT);
  readonly headroom = new Float64Array(PRIORITY_COUNT);
  bytes = 0;
  bytesMax = 0;
}

export class SharedBuffer {
  /** Size of the part without headroom. */
  readonly sharedBytes: number;
  readonly #config: EthernetSwitchConfig;
  readonly #alpha: number;
  readonly #pauseAlpha: number;
  readonly #headroomBytes: number;
  readonly #inputs: readonly InputShare[];
  #usedBytes = 0;
  #sharedUsedBytes = 0;
  /** Most bytes held at once. */
  usedBytesMax = 0;

  /** @param headroomBytes of each input and lossless class */
  constructor(config: EthernetSwitchConfig, inputCount: number, headroomBytes: number) {
    this.#config = config;
    this.#alpha = ratioOf(config.alpha);
    this.#pauseAlpha = ratioOf(config.pauseAlpha);
    this.#headroomBytes = headroomBytes;
    this.#inputs = Array.from({ length: inputCount }, () => new InputShare());
    this.sharedBytes = bufferBytesOf(config) - reservedBytesOf(config, inputCount, headroomBytes);
  }

  /** Whether frames of a priority are kept from loss by stopping their sender. */
  isLossless(priority: number): boolean {
    return isLosslessIn(this.#config, priority);
  }

  /** Class of a priority at an input. */
  classOf(priority: number): number {
    return this.#config.flowControl === 'pause' ? 0 : priority;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Longest queue of a lossy priority now. */
  get queueLimitBytes(): number {
    return this.#alpha * this.#freeBytes;
  }

  /** Bytes that an input holds, and the most so far. */
  heldBy(input: number): { readonly bytes: number; readonly bytesMax: number } {
    return this.#inputs[input]!;
  }

  /** Takes room for a frame of an input. @returns false if it has none */
  take(input: number, priority: number, bytes: number): boolean {
    const room = this.#roomFor(input, priority, bytes);
    if (room === undefined) return false;
    const share = this.#inputs[input]!;
    share[room][this.classOf(priority)]! += bytes;
    share.bytes += bytes;
    if (share.bytes > share.bytesMax) share.bytesMax = share.bytes;
    if (room === 'shared') this.#sharedUsedBytes += bytes;
    this.#usedBytes += bytes;
    if (this.#usedBytes > this.usedBytesMax) this.usedBytesMax = this.#usedBytes;
    return true;
  }

  /** Releases the room of a frame: that of the headroom first. */
  release(input: number, priority: number, bytes: number): void {
    const share = this.#inputs[input]!;
    const index = this.classOf(priority);
    const late = Math.min(bytes, share.headroom[index]!);
    share.headroom[index]! -= late;
    share.shared[index]! -= bytes - late;
    share.bytes -= bytes;
    this.#sharedUsedBytes -= bytes - late;
    this.#usedBytes -= bytes;
  }

  /** Whether the sender of a lossless class must stop: its share is full. */
  mustStop(input: number, priority: number): boolean {
    const share = this.#inputs[input]!;
    const index = this.classOf(priority);
    return share.headroom[index]! > 0 || share.shared[index]! >= this.#inputLimitBytes;
  }

  /** Whether it may send again. */
  mayResume(input: number, priority: number): boolean {
    const share = this.#inputs[input]!;
    const index = this.classOf(priority);
    if (share.headroom[index]! > 0) return false;
    const held = share.shared[index]!;
    return held === 0 || held + this.#config.resumeBytes <= this.#inputLimitBytes;
  }

  inspect(): BlockState {
    return { usedBytes: this.#usedBytes, sharedUsedBytes: this.#sharedUsedBytes };
  }

  get #freeBytes(): number {
    return this.sharedBytes - this.#sharedUsedBytes;
  }

  get #inputLimitBytes(): number {
    return this.#pauseAlpha * this.#freeBytes;
  }

  #roomFor(input: number, priority: number, bytes: number): 'shared' | 'headroom' | undefined {
    const isShared = bytes <= this.#freeBytes;
    if (!this.isLossless(priority)) return isShared ? 'shared' : undefined;
    const share = this.#inputs[input]!;
    const index = this.classOf(priority);
    if (isShared && share.shared[index]! + bytes <= this.#inputLimitBytes) return 'shared';
    return share.headroom[index]! + bytes <= this.#headroomBytes ? 'headroom' : undefined;
  }
}

const bufferBytesOf = ({ bufferKib }: EthernetSwitchConfig): number => bufferKib * BYTES_PER_KIB;

const reservedBytesOf = (config: EthernetSwitchConfig, inputCount: number, headroomBytes: number): number =>
  headroomBytes * inputCount * losslessClassCountOf(config);

/** @throws ConfigurationError for a buffer of which headroom takes more than half */
export function checkSharedBuffer(
  config: EthernetSwitchConfig,
  inputCount: number,
  headroomBytes: number,
): void {
  const reservedBytes = reservedBytesOf(config, inputCount, headroomBytes);
  if (2 * reservedBytes <= bufferBytesOf(config)) return;
  const kibOf = (bytes: number): number => Math.ceil(bytes / BYTES_PER_KIB);
  throw new ConfigurationError(
    'switch.ethernet.bufferKib',
    config.bufferKib,
    `at least ${kibOf(2 * reservedBytes)}, twice the headroom of ${inputCount} ports`,
  );
}

const isLosslessIn = ({ flowControl, losslessPriorities }: EthernetSwitchConfig, priority: number): boolean =>
  flowControl === 'pause' || (flowControl === 'pfc' && ((losslessPriorities >>> priority) & 1) === 1);

/** Classes of an input that need headroom. */
function losslessClassCountOf(config: EthernetSwitchConfig): number {
  if (config.flowControl === 'pause') return 1;
  const priorities = Array.from({ length: PRIORITY_COUNT }, (_, priority) => priority);
  return priorities.filter((priority) => isLosslessIn(config, priority)).length;
}
