/**
 * The ring of a port of Ethernet, as mlx4_en opens one: a raw QP in memory of the kernel, whose WQEs are frames without FCS. One queue
 * pair sends and receives, where mlx4_en has some of either.
 *
 *     send WQE:  control 16 | the frame inline, 104 bytes at most      receive WQE:  a pointer to a buffer for the longest frame
 *
 * Its number is the one to which the port steers frames for its MAC. Promises: a slot is used again only after its completion; a full
 * send queue takes nothing, and reports it. Sources: interface sheet 6.1, 6.3, 6.6, 8.3; Linux 6.1, mlx4_en en_resources.c, en_tx.c.
 */
import {
  CqeOpcode,
  completionRequested,
  cqe,
  cqeBytes,
  cqRecord,
  dataPointer,
  ethernetControlSegment,
  frameOperation,
  icmPageBytes,
  PathMigration,
  PathMtu,
  QpState,
  qpMailbox,
  receiveRecord,
  resetOpcodeModifier,
  ServiceType,
  scheduleQueueOf,
  sendDoorbell,
  uarOffset,
  WqeOpcode,
} from '../../abi/index.ts';
import { counterMask16, type Initial, log2Exact, passBit, roundUp, viewOf } from '../../base/index.ts';
import type { Device } from '../device.ts';
import { writeInline } from '../inline-segments.ts';
import { KernelCompletions } from '../kernel-completions.ts';
import { KernelError } from '../kernel-error.ts';
import { takePieces, type Undo } from '../kernel-memory.ts';
import { kernelProcess } from '../kernel-process.ts';
import type { Translation } from '../mtt.ts';
import type { Cpu, PinnedPages } from '../platform.ts';
import { releaseContext, useContext } from '../qp-tables.ts';
import { SpinLock } from '../spin-lock.ts';
import { mapUar, type UserUar, unmapUar } from '../uar.ts';

const logSendSlots = 5;
const logSendStride = 7;
const logReceiveSlots = 5;
const logReceiveStride = 4;
const cqEntries = 128;
const queueBytes = 2 ** (logSendSlots + logSendStride) + 2 ** (logReceiveSlots + logReceiveStride);
const receiveRecordAt = cqRecord.sizeBytes;
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

type Memory = Readonly<Record<'queues' | 'completions' | 'records' | 'received', number>>;

export class FrameQueuePair {
  readonly qpn: number;
  readonly #device: Device;
  readonly #portNumber: number;
  readonly #bufferBytes: number;
  readonly #undo: Undo[] = [];
  readonly #memory: Memory;
  readonly #lock = new SpinLock();
  readonly #wqe = new Uint8Array(2 ** logSendStride);
  readonly #doorbell = viewOf(new Uint8Array(sendDoorbell.sizeBytes));
  #uar!: UserUar;
  #completions!: KernelCompletions;
  #pdn = -1;
  #sendCounter = 0;
  #sendsInFlight = 0;
  #receiveCounter = 0;

  private constructor(device: Device, { portNumber, qpn, frameBytesMax }: FrameQueuePairSetup) {
    this.#device = device;
    this.#portNumber = portNumber;
    this.qpn = qpn < 0 ? takeQpn(device, this.#undo) : qpn;
    this.#bufferBytes = roundUp(frameBytesMax, bufferAlignment);
    const pieces = {
      queues: queueBytes,
      completions: cqEntries * cqeBytes,
      records: icmPageBytes,
      received: 2 ** logReceiveSlots * this.#bufferBytes,
    };
    this.#memory = takePieces(device, `the ring of port ${portNumber}`, pieces, this.#undo);
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
    const pair = new FrameQueuePair(device, setup);
    try {
      await pair.#bringUp(cpu, completed);
    } catch (error) {
      await pair.close(cpu);
      throw error;
    }
    return pair;
  }

  /** Gives everything back. */
  async close(cpu: Cpu): Promise<void> {
    for (let step = this.#undo.pop(); step !== undefined; step = this.#undo.pop()) await step(cpu);
  }

  /** Hands a frame to the device. @returns false, and nothing is sent, when the send queue is full */
  post(cpu: Cpu, frame: Uint8Array): boolean {
    if (this.#sendsInFlight === 2 ** logSendSlots - 1) return false;
    this.#lock.acquire(cpu);
    const slot = this.#sendCounter & (2 ** logSendSlots - 1);
    const wqe = this.#writeWqe(frame);
    cpu.storeMemory(this.#memory.queues + slot * 2 ** logSendStride, wqe);
    sendDoorbell.fields.qpn.set(this.#doorbell, 0, this.qpn);
    cpu.mmioWrite32(this.#uar.busAddress + uarOffset.sendDoorbell, this.#doorbell.getUint32(0, true));
    const counter = this.#sendCounter & counterMask16;
    this.#device.platform.operations?.posted(this.qpn, counter, frameOperation, cpu.ownPs);
    this.#sendCounter++;
    this.#sendsInFlight++;
    this.#lock.release(cpu);
    return true;
  }

  /** The oldest completion: a frame that has arrived, 'sent' for one that has left; undefined when there is none. */
  take(cpu: Cpu): Uint8Array | 'sent' | 'failed' | undefined {
    const at = this.#completions.next();
    if (at < 0) return undefined;
    const { view, bytes } = this.#device.platform.memory;
    const isError = cqe.fields.opcode.get(view, at) === CqeOpcode.ERROR;
    const counter = cqe.fields.wqeCounter.get(view, at);
    if (cqe.fields.isSend.get(view, at) === 1) {
      this.#sendsInFlight--;
      this.#device.platform.operations?.completed(this.qpn, counter, cpu.ownPs);
      return isError ? 'failed' : 'sent';
    }
    if (isError) return 'failed';
    const buffer = this.#bufferOf(counter);
    const frame = bytes.slice(buffer, buffer + cqe.fields.byteCount.get(view, at));
    this.#postReceive();
    return frame;
  }

  /** Asks for an event with the next completion, or at once if there is one that was not taken. */
  arm(cpu: Cpu): void {
    this.#completions.arm(cpu);
  }

  #writeWqe(frame: Uint8Array): Uint8Array {
    const wqe = this.#wqe.fill(0);
    const end = writeInline(wqe, ethernetControlSegment.sizeBytes, frame);
    ethernetControlSegment.encodeInto(
      {
        owner: passBit(this.#sendCounter, logSendSlots),
        opcode: WqeOpcode.SEND,
        ds: end / dataPointer.sizeBytes,
        completion: completionRequested,
      },
      wqe,
    );
    return wqe.subarray(0, end);
  }

  async #bringUp(cpu: Cpu, completed: () => void): Promise<void> {
    const { numbers, platform, mtts, router } = this.#device;
    const { queues, completions: ring, records: record } = this.#memory;
    this.#pdn = numbers.pds.allocate();
    if (this.#pdn < 0) throw new KernelError('ENOMEM', 'no protection domain is left');
    this.#undo.push(() => numbers.pds.release(this.#pdn));
    this.#uar = mapUar(this.#device, kernelProcess);
    this.#undo.push(() => unmapUar(this.#device, kernelProcess, this.#uar));
    // Nothing in it is the device's yet: every owner bit is that of the pass before the first.
    platform.memory.bytes.fill(0xff, queues, queues + 2 ** (logSendSlots + logSendStride));
    const sink = { completion: completed, asyncEvent: () => undefined };
    const place = { entries: cqEntries, ring, record, uar: this.#uar };
    this.#completions = await KernelCompletions.open(cpu, this.#device, place, sink);
    this.#undo.push((thread) => this.#completions.close(thread));
    const { pages } = kernelProcess.pin(cpu, queues, queueBytes) as PinnedPages;
    const translation = await mtts.translate(cpu, pages, 0);
    this.#undo.push((thread) => mtts.release(thread, translation));
    await useContext(cpu, this.#device, this.qpn);
    this.#undo.push((thread) => releaseContext(thread, this.#device, this.qpn));
    router.qps.set(this.qpn, sink);
    this.#undo.push(() => void router.qps.delete(this.qpn));
    platform.operations?.opened(this.qpn, 2 ** logSendSlots);
    this.#undo.push(() => platform.operations?.closed(this.qpn));
    await this.#transitions(cpu, translation);
    for (let slot = 0; slot < 2 ** logReceiveSlots; slot++) this.#postReceive();
    this.arm(cpu);
  }

  /** RST2INIT to RTS with one context and no mask, as mlx4_qp_to_ready. */
  async #transitions(cpu: Cpu, translation: Translation): Promise<void> {
    const { commands } = this.#device;
    const execute = (name: 'RST2INIT_QP' | 'INIT2RTR_QP' | 'RTR2RTS_QP', state: QpState): Promise<number> =>
      commands.executeWithMailbox(cpu, name, { inputModifier: this.qpn }, (bytes, address) =>
        qpMailbox.encodeInto(this.#mailbox(state, translation), bytes, address),
      );
    await execute('RST2INIT_QP', QpState.INIT);
    this.#undo.push(async (thread) => {
      const command = { inputModifier: this.qpn, opcodeModifier: resetOpcodeModifier.linux };
      await commands.execute(thread, '2RST_QP', command);
    });
    await execute('INIT2RTR_QP', QpState.RTR);
    await execute('RTR2RTS_QP', QpState.RTS);
  }

  #mailbox(state: QpState, translation: Translation): Initial<typeof qpMailbox> {
    const scheduleQueue = scheduleQueueOf(this.#portNumber, 0);
    return {
      context: {
        state,
        serviceType: ServiceType.MLX,
        pathMigration: PathMigration.MIGRATED,
        pd: this.#pdn,
        pathMtu: PathMtu.RAW,
        logMaxMessage,
        rqLogCount: logReceiveSlots,
        rqLogStride16: logReceiveStride - 4,
        sqLogCount: logSendSlots,
        sqLogStride16: logSendStride - 4,
        uarPage: this.#uar.page,
        localQpn: this.qpn,
        primaryPath: { ackTimeout, scheduleQueue, counterIndex: sinkCounter },
        reservedLkeyEnabled: 1,
        fastRegisterEnabled: 1,
        sendCqn: this.#completions.cqn,
        receiveCqn: this.#completions.cqn,
        doorbellRecordAddress: BigInt(this.#memory.records + receiveRecordAt),
        mttAddress: translation.mttAddress,
        logPageSize4k: translation.logPageBytes - log2Exact(icmPageBytes),
      },
    };
  }

  #bufferOf(counter: number): number {
    return this.#memory.received + (counter & (2 ** logReceiveSlots - 1)) * this.#bufferBytes;
  }

  /** Posts the buffer of the next slot; the device sees it by the doorbell record. */
  #postReceive(): void {
    const { bytes, view } = this.#device.platform.memory;
    const slot = this.#receiveCounter & (2 ** logReceiveSlots - 1);
    const ring = this.#memory.queues + 2 ** (logSendSlots + logSendStride);
    const at = ring + slot * 2 ** logReceiveStride;
    const lkey = this.#device.limits.reservedLkey;
    const address = BigInt(this.#bufferOf(slot));
    dataPointer.encodeInto({ byteCount: this.#bufferBytes, lkey, address }, bytes, at);
    this.#receiveCounter++;
    const record = this.#memory.records + receiveRecordAt;
    receiveRecord.fields.postedCounter.set(view, record, this.#receiveCounter & 0xffff);
  }
}

function takeQpn({ numbers }: Device, undo: Undo[]): number {
  const qpn = numbers.qps.allocate();
  if (qpn < 0) throw new KernelError('ENOMEM', 'no QP number is left');
  undo.push(() => numbers.qps.release(qpn));
  return qpn;
}
