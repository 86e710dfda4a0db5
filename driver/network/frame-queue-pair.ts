/**
 * The ring of an Ethernet port, as in mlx4_en: a raw QP in memory of the kernel, whose WQEs are frames without FCS. One queue
 * pair sends and receives; mlx4_en has several for each direction.
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
/** Largest message of a ring, larger than any frame: Linux uses the largest codes. */
const logMaxMessage = 31;
/** From mlx4_en: fill_qp_context. */
const ackTimeout = 1;
const sinkCounter = 0xff;

export interface FrameQueuePairSetup {
  readonly portNumber: number;
  /** QPN; -1 selects one of those for programs. */
  readonly qpn: number;
  /** Longest frame that the port receives, without FCS. */
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
   * @param completed called in interrupt context when completions are present
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

  /** Releases everything. */
  close(cpu: Cpu): Promise<void> {
    return this.#pair.close(cpu);
  }

  /** Posts a frame to the device. @returns false, and sends nothing, if the send queue is full */
  post(cpu: Cpu, frame: Uint8Array): boolean {
    return this.#pair.post(cpu, (_slot, owner) => this.#writeWqe(frame, owner));
  }

  /** Dequeues the oldest completion: a received frame, or 'sent' for a transmitted one; undefined if the CQ is empty. */
  take(cpu: Cpu): Uint8Array | 'sent' | 'failed' | undefined {
    const taken = this.#pair.take(cpu);
    if (typeof taken !== 'object') return taken;
    const { view, bytes } = this.#device.platform.memory;
    const buffer = this.#pair.memory.received + taken.slot * this.#bufferBytes;
    const frame = bytes.slice(buffer, buffer + cqe.fields.byteCount.get(view, taken.at));
    this.#pair.postReceive();
    return frame;
  }

  /** Requests an event for the next completion, or immediately if a completion has not been dequeued yet. */
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
      // One context and no mask for all transitions, as in mlx4_qp_to_ready.
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
