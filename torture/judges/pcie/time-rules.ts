/**
 * Judges times: the bytes that the lanes carry (4.2), and the earliest response of either end by its parameters. Bounds
 * are lower bounds, and hold whatever else happens; packets that follow each other at once show that the lanes are also
 * fast enough.
 */
import type { LinkPacket } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import {
  type Accuse,
  type Direction,
  type LinkRule,
  linkBytesOf,
  psPerByteOf,
  roundingPsAt,
  textOf,
} from './link-facts.ts';

/** Number of adjacent completions of one read, between which DLLPs may occur. */
const adjoiningMin = 20;

/** TLPs of one direction arrive at least as far apart as their bytes take, and adjacent ones no farther. */
export class LaneRule implements LinkRule {
  readonly #accuse: Accuse;
  readonly #direction: Direction;
  readonly #psPerByte: number;
  readonly #alignmentBytes: number;
  readonly #isPrompt: boolean;
  #previous: LinkPacket | undefined;
  #adjoiningCount = 0;
  #leastExcessPs = Number.POSITIVE_INFINITY;
  #leastPs = 0;
  #roundingPs = 0;

  constructor(config: MachineConfig, direction: Direction, accuse: Accuse) {
    const { link, rootComplex, rootPort, endpointPort } = config.pcie;
    this.#accuse = accuse;
    this.#direction = direction;
    this.#psPerByte = psPerByteOf(config);
    this.#alignmentBytes = link.packetAlignmentBytes;
    // The root complex has a completion ready in each of its cycles, and only the lanes delay it.
    const cyclePs = 1_000_000 / rootComplex.clockMHz;
    const leastPs = rootComplex.readCompletionBoundaryBytes * this.#psPerByte;
    const isUnlimited = endpointPort.completionHeaders === 0 && endpointPort.completionData === 0;
    this.#isPrompt =
      direction === 'toDevice' &&
      rootComplex.completionOrder === 'inOrder' &&
      isUnlimited &&
      rootPort.transmitBufferTlps >= 2 &&
      4 * cyclePs <= leastPs;
  }

  see(packet: LinkPacket, direction: Direction): void {
    if (direction !== this.#direction || packet.kind === 'UpdateFC') return;
    const previous = this.#previous;
    this.#previous = packet;
    if (previous === undefined) return;
    const gapPs = packet.atPs - previous.atPs;
    const bytes = linkBytesOf(packet);
    if (gapPs < bytes * this.#psPerByte - roundingPsAt(packet.atPs))
      this.#accuse(`only ${gapPs} ps after the packet before, for ${bytes} bytes: ${textOf(packet)}`);
    const isAdjoining =
      packet.kind === 'CplD' && previous.kind === 'CplD' && previous.byteCount > previous.lengthBytes;
    if (!isAdjoining || previous.tag !== packet.tag) return;
    const before = linkBytesOf(previous);
    const padding = (this.#alignmentBytes - (before % this.#alignmentBytes)) % this.#alignmentBytes;
    const duePs = (padding + bytes) * this.#psPerByte;
    this.#adjoiningCount++;
    this.#roundingPs = roundingPsAt(packet.atPs);
    if (gapPs - duePs >= this.#leastExcessPs) return;
    this.#leastExcessPs = gapPs - duePs;
    this.#leastPs = duePs;
  }

  end(): void {
    if (!this.#isPrompt || this.#adjoiningCount < adjoiningMin) return;
    if (this.#leastExcessPs > this.#leastPs * 0.02 + this.#roundingPs)
      this.#accuse(
        `of ${this.#adjoiningCount} completions after another of the same read each came ${Math.round(this.#leastExcessPs)} ps later than the ${Math.round(this.#leastPs)} ps of its bytes`,
      );
  }
}

/** No end answers a request sooner than its parameters allow. */
abstract class LatencyRule implements LinkRule {
  readonly #accuse: Accuse;
  readonly #who: string;
  readonly #latencyPs: number;
  readonly #psPerByte: number;
  /** When the end can answer at the earliest, by tag. */
  protected readonly readyPs = new Map<number, number>();

  constructor(config: MachineConfig, who: string, accuse: Accuse) {
    this.#accuse = accuse;
    this.#who = who;
    this.#latencyPs = config.pcie.link.latencyPs;
    this.#psPerByte = psPerByteOf(config);
  }

  abstract see(packet: LinkPacket, direction: Direction): void;

  protected answer(packet: LinkPacket): void {
    const readyPs = this.readyPs.get(packet.tag);
    if (readyPs === undefined) return;
    this.readyPs.delete(packet.tag);
    const soonestPs = readyPs + this.#latencyPs + linkBytesOf(packet) * this.#psPerByte;
    const earlyPs = Math.round(soonestPs - packet.atPs);
    if (packet.atPs < soonestPs - roundingPsAt(packet.atPs))
      this.#accuse(`${earlyPs} ps before the ${this.#who} can answer: ${textOf(packet)}`);
  }
}

/** The root complex answers `readLatencyPs` after it has begun with a read, and works on a limited number of reads at a time. */
export class ReadLatencyRule extends LatencyRule {
  readonly #readLatencyPs: number;
  /** When each place is free at the earliest. */
  readonly #freePs: number[];

  constructor(config: MachineConfig, accuse: Accuse) {
    super(config, 'root complex', accuse);
    const { readLatencyPs, outstandingReadCount } = config.pcie.rootComplex;
    this.#readLatencyPs = readLatencyPs;
    this.#freePs = Array.from({ length: outstandingReadCount }, () => Number.NEGATIVE_INFINITY);
  }

  override see(packet: LinkPacket, direction: Direction): void {
    if (packet.kind === 'MRd' && direction === 'toHost') {
      let place = 0;
      for (const [index, freePs] of this.#freePs.entries()) if (freePs < this.#freePs[place]!) place = index;
      const readyPs = Math.max(packet.atPs, this.#freePs[place]!) + this.#readLatencyPs;
      this.#freePs[place] = readyPs;
      this.readyPs.set(packet.tag, readyPs);
    } else if (packet.kind.startsWith('Cpl') && direction === 'toDevice') this.answer(packet);
  }
}

/** The device answers reads of its registers and configuration requests no sooner than the cycles that these take. */
export class RegisterLatencyRule extends LatencyRule {
  readonly #memoryPs: number;
  readonly #configPs: number;

  constructor(config: MachineConfig, accuse: Accuse) {
    super(config, 'device', accuse);
    const { machine, pcie, nic, hca } = config;
    const isNic = machine.adapter === 'nic';
    const { mmioReadCycles, configCycles } = isNic ? nic.function : pcie.function;
    const cyclePs = 1_000_000 / (isNic ? nic.coreClockMHz : hca.coreClockMHz);
    this.#memoryPs = mmioReadCycles * cyclePs;
    this.#configPs = configCycles * cyclePs;
  }

  override see(packet: LinkPacket, direction: Direction): void {
    const { kind, tag, atPs } = packet;
    if (direction === 'toHost') {
      if (kind.startsWith('Cpl')) this.answer(packet);
    } else if (kind === 'MRd') this.readyPs.set(tag, atPs + this.#memoryPs);
    else if (kind.startsWith('Cfg')) this.readyPs.set(tag, atPs + this.#configPs);
  }
}
