/**
 * The Ethernet between PCs, by which their programs find each other: a frame reaches every other PC after the network's
 * latency, in the order in which frames were sent.
 */
import type { Pc } from './pc.ts';

/** A station that is no PC. */
export interface PcStation {
  /** Receives each frame that it sends, at the instant of the present call. */
  onFrame: (frame: Uint8Array) => void;
  /** Instant since power-on to which it has come. */
  readonly nowPs: number;
  /** Instant at which it acts by itself, Infinity if it does not. */
  readonly nextPs: number;
  receive(frame: Uint8Array, nowPs: number): void;
  /** Acts on everything that is due. */
  run(nowPs: number): void;
}

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
  readonly #station: PcStation | undefined;
  readonly #toStation: FrameUnderWay[] = [];

  constructor(pcs: readonly Pc[], latencyPs: number, station?: PcStation) {
    this.#station = station;
    if (station !== undefined)
      station.onFrame = (frame) => {
        const arrivesPs = station.nowPs + latencyPs;
        for (const queue of this.#queues.values()) this.#add(queue, { arrivesPs, frame });
      };
    for (const pc of pcs) {
      this.#queues.set(pc, []);
      pc.onFrame = (frame) => {
        const arrivesPs = pc.clock.nowPs + latencyPs;
        for (const [other, queue] of this.#queues) if (other !== pc) this.#add(queue, { arrivesPs, frame });
        if (station !== undefined) this.#add(this.#toStation, { arrivesPs, frame });
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

  /** Instant at which the station acts: a frame arrives there, or it acts by itself; Infinity if neither is due. */
  get stationPs(): number {
    const { nextPs = Number.POSITIVE_INFINITY } = this.#station ?? {};
    return Math.min(nextPs, this.#toStation[0]?.arrivesPs ?? Number.POSITIVE_INFINITY);
  }

  /** Lets the station act until this instant. */
  runStation(nowPs: number): void {
    const station = this.#station;
    if (station === undefined) return;
    while (this.stationPs <= nowPs) {
      const [first] = this.#toStation;
      if (first !== undefined && first.arrivesPs <= station.nextPs) {
        this.#toStation.shift();
        station.receive(first.frame, first.arrivesPs);
      } else station.run(station.nextPs);
    }
  }

  #add(queue: FrameUnderWay[], under: FrameUnderWay): void {
    if (queue.length < framesMax) queue.push(under);
    else this.lostCount++;
  }
}
