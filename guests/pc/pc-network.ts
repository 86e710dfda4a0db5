/**
 * The Ethernet between PCs, by which their programs find each other: a frame reaches every other PC after the network's
 * latency, in the order in which frames were sent.
 */
import type { Pc } from './pc.ts';

/** A frame under way to one PC. */
interface FrameUnderWay {
  readonly arrivesPs: number;
  readonly frame: Uint8Array;
}

/** Frames under way to one PC at most; further ones are lost, as in a switch. */
const framesMax = 1024;
/** Locally administered addresses, the last byte of which is the PC's number. */
const macOf = (node: number): Uint8Array => Uint8Array.of(0x02, 0, 0, 0, 0, node + 1);

export class PcNetwork {
  /** Frames that found no room. */
  lostCount = 0;
  readonly #queues = new Map<Pc, FrameUnderWay[]>();

  constructor(pcs: readonly Pc[], latencyPs: number) {
    for (const pc of pcs) {
      this.#queues.set(pc, []);
      pc.onFrame = (frame) => {
        const arrivesPs = pc.clock.nowPs + latencyPs;
        for (const [other, queue] of this.#queues) if (other !== pc) this.#add(queue, { arrivesPs, frame });
      };
    }
    this.addressCards();
  }

  /** Gives each PC's card its address. */
  addressCards(): void {
    for (const [node, pc] of [...this.#queues.keys()].entries()) pc.setMac(macOf(node));
  }

  /** Instant at which the next frame to a PC arrives, Infinity if none is under way. */
  nextPs(pc: Pc): number {
    return this.#queues.get(pc)![0]?.arrivesPs ?? Number.POSITIVE_INFINITY;
  }

  /** Hands a PC the frames that have arrived by its instant. */
  deliver(pc: Pc): void {
    const queue = this.#queues.get(pc)!;
    while (queue.length > 0 && queue[0]!.arrivesPs <= pc.clock.nowPs) pc.receive(queue.shift()!.frame);
  }

  #add(queue: FrameUnderWay[], under: FrameUnderWay): void {
    if (queue.length < framesMax) queue.push(under);
    else this.lostCount++;
  }
}
