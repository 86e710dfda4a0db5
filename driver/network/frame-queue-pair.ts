/**
 * The ring of a port of Ethernet, as mlx4_en opens one: a raw QP in memory of the kernel, whose WQEs are frames without FCS. One queue
 * pair sends and receives, where mlx4_en has some of either.
 *
 *     send WQE:  control 16 | the frame inline, 104 bytes at most      receive WQE:  a pointer to a buffer for the longest frame
 *
 * Its number is the one to which the port steers frames for its MAC.
 * Sources: interface sheet 6.1, 6.3, 8.3; Linux 6.1, mlx4_en en_resources.c, en_tx.c.
 */
import {
  completionRequested,
  cqe,
  dataPointer,
  ethernetControlSegment,
  frameOperation,
  PathMtu,
  scheduleQueueOf,
  WqeOpcode,
} from '../../abi/index.ts';
import { roundUp } from '../../base/index.ts';
import type { Device } from '../device.ts';
import { writeInline } from '../inline-segments.ts';
import { KernelQueuePair, type KernelQueuePairSetup } from '../kernel-queue-pair.ts';
import type { Cpu } from '../platform.ts';

const logSendSlots = 5;
const logSendStride = 7;
const logReceiveSlots = 5;
const cqEntries = 128;
const bufferAlignment = 64;
/** What a message of a ring may have, which is none of its frames' limits: Linux gives the largest codes. */
const logMaxMessage = 31;
/** mlx4_en's: fill_qp_context. */
const ackTimeout = 1;
const sinkCounter = 0xff;

export interface FrameQueuePairSetup {
  readonly portNumber: number;
  /** -1: one of those of programs. */
  readonly qpn: number;
  /** Longest frame that the port hands on, without FCS. */
  readonly frameBytesMax: number;
}

export class FrameQueuePair {
  readonly #device: Device;
  readonly #bufferBytes: number;
  readonly #wqe = new Uint8Array(2 ** logSendStride);
  #pair!: KernelQueuePair<'received'>;

  private constructor(device: Device, frameBytesMax: number) {
    this.#device = device;
    this.#bufferBytes = roundUp(frameBytesMax, bufferAlignment);
  }

  /**
   * Brings it up with all its receives posted and its CQ armed.
   * @param completed called in interrupt context when there are completions to take
   * @throws KernelError ENOMEM
   */
  static async open(
    cpu: Cpu,
    device: Device,
    setup: FrameQueuePairSetup,
    completed: () => void,
  ): Promise<FrameQueuePair> {
    const ring = new FrameQueuePair(device, setup.frameBytesMax);
    ring.#pair = await KernelQueuePair.open(cpu, device, ring.#setupOf(setup), completed);
    return ring;
  }

  get qpn(): number {
    return this.#pair.qpn;
  }

  /** Gives everything back. */
  close(cpu: Cpu): Promise<void> {
    return this.#pair.close(cpu);
  }

  /** Hands a frame to the device. @returns false, and nothing is sent, when the send queue is full */
  post(cpu: Cpu, frame: Uint8Array): boolean {
    return this.#pair.post(cpu, (_slot, owner) => this.#writeWqe(frame, owner));
  }

  /** The oldest completion: a frame that has arrived, 'sent' for one that has left; undefined when there is none. */
  take(cpu: Cpu): Uint8Array | 'sent' | 'failed' | undefined {
    const taken = this.#pair.take(cpu);
    if (typeof taken !== 'object') return taken;
    const { view, bytes } = this.#device.platform.memory;
    const buffer = this.#pair.memory.received + taken.slot * this.#bufferBytes;
    const frame = bytes.slice(buffer, buffer + cqe.fields.byteCount.get(view, taken.at));
    this.#pair.postReceive();
    return frame;
  }

  /** Asks for an event with the next completion, or at once if there is one that was not taken. */
  arm(cpu: Cpu): void {
    this.#pair.arm(cpu);
  }

  #writeWqe(frame: Uint8Array, owner: number): Uint8Array {
    const wqe = this.#wqe.fill(0);
    const end = writeInline(wqe, ethernetControlSegment.sizeBytes, frame);
    ethernetControlSegment.encodeInto(
      {
        owner,
        opcode: WqeOpcode.SEND,
        ds: end / dataPointer.sizeBytes,
        completion: completionRequested,
      },
      wqe,
    );
    return wqe.subarray(0, end);
  }

  #setupOf({ portNumber, qpn }: FrameQueuePairSetup): KernelQueuePairSetup<'received'> {
    const bufferBytes = this.#bufferBytes;
    const lkey = this.#device.limits.reservedLkey;
    const primaryPath = {
      ackTimeout,
      scheduleQueue: scheduleQueueOf(portNumber, 0),
      counterIndex: sinkCounter,
    };
    return {
      name: `the ring of port ${portNumber}`,
      qpn,
      logSendSlots,
      logSendStride,
      logReceiveSlots,
      logReceiveStride: 4,
      sendsMax: 2 ** logSendSlots - 1,
      cqEntries,
      operation: frameOperation,
      pieces: { received: 2 ** logReceiveSlots * bufferBytes },
      // One context and no mask for all, as mlx4_qp_to_ready.
      mailboxTo: (_state, { standing, placement }) => ({
        context: { ...standing, ...placement, pathMtu: PathMtu.RAW, logMaxMessage, primaryPath },
      }),
      writeReceive: (bytes, at, slot, { received }) => {
        const address = BigInt(received + slot * bufferBytes);
        dataPointer.encodeInto({ byteCount: bufferBytes, lkey, address }, bytes, at);
      },
    };
  }
}
