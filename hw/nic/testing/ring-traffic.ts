/** Software that keeps the rings of one machine going in both directions. For specs only. */
import { NicCause } from '../../../abi/nic/index.ts';
import type { Random } from '../../../sim/index.ts';
import { frameBetween, type NicMachine } from './nic-bench.ts';

const { RXT0, RXDMT0, TXDW } = NicCause;
const SHORTEST_BYTES = 14;

/** Returns completed descriptors, and sends the rest of its frames, of random lengths. */
export class RingTraffic {
  sent = 0;
  done = 0;
  got = 0;
  /** Whether received frames are processed: otherwise the receive ring runs dry. */
  takes = true;
  readonly received: string[] = [];
  readonly #machine: NicMachine;
  readonly #node: number;
  readonly #ringCount: number;
  readonly #frameCount: number;
  readonly #random: Random;
  readonly #longestBytes: number;

  constructor(
    machine: NicMachine,
    node: number,
    ringCount: number,
    frameCount: number,
    random: Random,
    longestBytes = 1514,
  ) {
    this.#machine = machine;
    this.#node = node;
    this.#ringCount = ringCount;
    this.#frameCount = frameCount;
    this.#random = random;
    this.#longestBytes = longestBytes;
  }

  turn(): void {
    this.#send();
    if (this.takes) this.#receive();
    this.#machine.post('ims', RXT0 | RXDMT0 | TXDW);
  }

  #send(): void {
    const machine = this.#machine;
    const ring = this.#ringCount;
    while (this.done < this.sent && machine.transmitDescriptor(this.done % ring).done === 1) this.done++;
    while (this.sent < this.#frameCount && this.sent - this.done < ring - 1) {
      const bytes = this.#random.between(SHORTEST_BYTES, this.#longestBytes);
      machine.putFrame(this.sent % ring, frameBetween(this.#node, 1 - this.#node, bytes, this.sent));
      this.sent++;
    }
    machine.post('tdt', this.sent % ring);
  }

  #receive(): void {
    const machine = this.#machine;
    const ring = this.#ringCount;
    while (machine.receiveDescriptor(this.got % ring).done === 1) {
      this.received.push(machine.received(this.got % ring).join());
      machine.giveBuffer(this.got % ring);
      this.got++;
    }
    machine.post('rdt', (this.got + ring - 1) % ring);
  }
}
