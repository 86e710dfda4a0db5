/**
 * A queue pair of the kernel's own: queues and buffers in memory of the kernel, one CQ for both directions, every receive
 * posted. The owner defines WQEs and buffers: MADs (cm/management-queue-pair.ts), frames (network/frame-queue-pair.ts).
 *
 *     post ─► lock ─ WQE ─ doorbell ─► device        interrupt ─► owner: take ─► sent, failed, or a receive, to be read and posted again
 *
 * Promises: a slot is used again only after its completion; a full send queue accepts nothing, and reports it. Source:
 * interface sheet 6.6.
 */
import {
  CqeOpcode,
  cqe,
  cqeBytes,
  cqRecord,
  icmPageBytes,
  PathMigration,
  QpState,
  qpMailbox,
  receiveRecord,
  resetOpcodeModifier,
  ServiceType,
  sendDoorbell,
  uarOffset,
} from '../abi/index.ts';
import { counterMask16, type Initial, log2Exact, passBit, viewOf } from '../base/index.ts';
import type { Device } from './device.ts';
import { KernelCompletions } from './kernel-completions.ts';
import { KernelError } from './kernel-error.ts';
import { takePieces, type Undo } from './kernel-memory.ts';
import { kernelProcess } from './kernel-process.ts';
import type { Translation } from './mtt-table.ts';
import type { Cpu, PinnedPages } from './platform.ts';
import { releaseContext, useContext } from './qp-tables.ts';
import { SpinLock } from './spin-lock.ts';
import { mapUar, type UserUar, unmapUar } from './uar.ts';

type Context = NonNullable<Initial<typeof qpMailbox>['context']>;

/** Context values of each transition, and the parameters that locate the queues. */
export interface KernelQueuePairContext {
  readonly standing: Context;
  readonly placement: Context;
}

/** Physical addresses of its own pieces and of its owner's. */
export type KernelQueuePairMemory<Piece extends string> = Readonly<
  Record<Piece | 'queues' | 'completions' | 'records', number>
>;

/** @template Piece names of the owner's pieces of memory */
export interface KernelQueuePairSetup<Piece extends string> {
  /** Name in error messages. */
  readonly name: string;
  /** QPN; -1 selects one of those for programs. */
  readonly qpn: number;
  readonly logSendSlots: number;
  /** Logarithms of bytes. */
  readonly logSendStride: number;
  readonly logReceiveSlots: number;
  readonly logReceiveStride: number;
  /** Sends that may be in flight, fewer than there are slots. */
  readonly sendsMax: number;
  /** Entries of the CQ, a power of two. */
  readonly cqEntries: number;
  /** Name of its sends in the operation ledger. */
  readonly operation: number;
  /** Sizes of the owner's pieces in bytes. */
  readonly pieces: Readonly<Record<Piece, number>>;
  /** Parameters of the command to a state: INIT, RTR, RTS. */
  mailboxTo(state: QpState, context: KernelQueuePairContext): Initial<typeof qpMailbox>;
  /** Writes the WQE of a slot's buffer at a place in all memory. */
  writeReceive(bytes: Uint8Array, at: number, slot: number, memory: KernelQueuePairMemory<Piece>): void;
}

/** A completed receive: the physical address of its CQE, and its slot. */
export interface KernelReceive {
  readonly at: number;
  readonly slot: number;
}

const receiveRecordAt = cqRecord.sizeBytes;

export class KernelQueuePair<Piece extends string> {
  readonly qpn: number;
  readonly memory: KernelQueuePairMemory<Piece>;
  readonly #device: Device;
  readonly #setup: KernelQueuePairSetup<Piece>;
  readonly #undo: Undo[];
  readonly #lock = new SpinLock();
  readonly #doorbell = viewOf(new Uint8Array(sendDoorbell.sizeBytes));
  readonly #sendQueueBytes: number;
  readonly #queueBytes: number;
  #uar!: UserUar;
  #completions!: KernelCompletions;
  #pdn = -1;
  #sendCounter = 0;
  #sendsInFlight = 0;
  #receiveCounter = 0;

  private constructor(device: Device, setup: KernelQueuePairSetup<Piece>, undo: Undo[]) {
    this.#device = device;
    this.#setup = setup;
    this.#undo = undo;
    this.#sendQueueBytes = 2 ** (setup.logSendSlots + setup.logSendStride);
    this.#queueBytes = this.#sendQueueBytes + 2 ** (setup.logReceiveSlots + setup.logReceiveStride);
    this.qpn = setup.qpn < 0 ? takeQpn(device, undo) : setup.qpn;
    this.memory = takePieces<Piece | 'queues' | 'completions' | 'records'>(
      device,
      setup.name,
      {
        queues: this.#queueBytes,
        completions: setup.cqEntries * cqeBytes,
        records: icmPageBytes,
        ...setup.pieces,
      },
      undo,
    );
  }

  /**
   * Brings one up with all its receives posted and its CQ armed.
   * @param completed called in interrupt context when completions are present
   * @throws KernelError ENOMEM, with everything released
   */
  static async open<Piece extends string>(
    cpu: Cpu,
    device: Device,
    setup: KernelQueuePairSetup<Piece>,
    completed: () => void,
  ): Promise<KernelQueuePair<Piece>> {
    const undo: Undo[] = [];
    try {
      const pair = new KernelQueuePair(device, setup, undo);
      await pair.#bringUp(cpu, completed);
      return pair;
    } catch (error) {
      await takeBack(cpu, undo);
      throw error;
    }
  }

  /** Releases everything. */
  close(cpu: Cpu): Promise<void> {
    return takeBack(cpu, this.#undo);
  }

  /**
   * Posts a send, and rings its doorbell.
   * @param write returns the WQE of a slot with an owner bit
   * @returns false, and sends nothing, if the send queue is full
   */
  post(cpu: Cpu, write: (slot: number, owner: number) => Uint8Array): boolean {
    const { logSendSlots, logSendStride, sendsMax, operation } = this.#setup;
    if (this.#sendsInFlight === sendsMax) return false;
    this.#lock.acquire(cpu);
    const slot = this.#sendCounter & (2 ** logSendSlots - 1);
    const wqe = write(slot, passBit(this.#sendCounter, logSendSlots));
    cpu.storeMemory(this.memory.queues + slot * 2 ** logSendStride, wqe);
    sendDoorbell.fields.qpn.set(this.#doorbell, 0, this.qpn);
    cpu.mmioWrite32(this.#uar.busAddress + uarOffset.sendDoorbell, this.#doorbell.getUint32(0, true));
    const counter = this.#sendCounter & counterMask16;
    this.#device.platform.operations?.posted(this.qpn, counter, operation, cpu.ownPs);
    this.#sendCounter++;
    this.#sendsInFlight++;
    this.#lock.release(cpu);
    return true;
  }

  /**
   * Dequeues the oldest completion.
   * @returns a receive, whose buffer the owner reads before {@link postReceive}; 'sent' for a completed send; undefined if the
   * CQ is empty
   */
  take(cpu: Cpu): KernelReceive | 'sent' | 'failed' | undefined {
    const at = this.#completions.next();
    if (at < 0) return undefined;
    const { view } = this.#device.platform.memory;
    const isError = cqe.fields.opcode.get(view, at) === CqeOpcode.ERROR;
    const counter = cqe.fields.wqeCounter.get(view, at);
    if (cqe.fields.isSend.get(view, at) === 1) {
      this.#sendsInFlight--;
      this.#device.platform.operations?.completed(this.qpn, counter, cpu.ownPs);
      return isError ? 'failed' : 'sent';
    }
    return isError ? 'failed' : { at, slot: counter & (2 ** this.#setup.logReceiveSlots - 1) };
  }

  /** Requests an event for the next completion, or immediately if a completion has not been dequeued yet. */
  arm(cpu: Cpu): void {
    this.#completions.arm(cpu);
  }

  /** Posts the buffer of the next slot; the device sees it by the doorbell record. */
  postReceive(): void {
    const { logReceiveSlots, logReceiveStride } = this.#setup;
    const { bytes, view } = this.#device.platform.memory;
    const slot = this.#receiveCounter & (2 ** logReceiveSlots - 1);
    const queue = this.memory.queues + this.#sendQueueBytes;
    this.#setup.writeReceive(bytes, queue + slot * 2 ** logReceiveStride, slot, this.memory);
    this.#receiveCounter++;
    const record = this.memory.records + receiveRecordAt;
    receiveRecord.fields.postedCounter.set(view, record, this.#receiveCounter & counterMask16);
  }

  async #bringUp(cpu: Cpu, completed: () => void): Promise<void> {
    const { numbers, platform, mtts, router } = this.#device;
    const { queues, completions: ring, records: record } = this.memory;
    this.#pdn = numbers.pds.allocate();
    if (this.#pdn < 0) throw new KernelError('ENOMEM', 'no protection domain is left');
    this.#undo.push(() => numbers.pds.release(this.#pdn));
    this.#uar = mapUar(this.#device, kernelProcess);
    this.#undo.push(() => unmapUar(this.#device, kernelProcess, this.#uar));
    // Hands no entry to the device yet: every owner bit is that of the pass before the first.
    platform.memory.bytes.fill(0xff, queues, queues + this.#sendQueueBytes);
    const sink = { completion: completed, asyncEvent: () => undefined };
    const place = { entries: this.#setup.cqEntries, ring, record, uar: this.#uar };
    this.#completions = await KernelCompletions.open(cpu, this.#device, place, sink);
    this.#undo.push((thread) => this.#completions.close(thread));
    const pages = kernelProcess.pin(cpu, queues, this.#queueBytes) as PinnedPages;
    const translation = await mtts.translate(cpu, pages, 0);
    this.#undo.push((thread) => mtts.release(thread, translation));
    await useContext(cpu, this.#device, this.qpn);
    this.#undo.push((thread) => releaseContext(thread, this.#device, this.qpn));
    router.qps.set(this.qpn, sink);
    this.#undo.push(() => void router.qps.delete(this.qpn));
    platform.operations?.opened(this.qpn, 2 ** this.#setup.logSendSlots);
    this.#undo.push(() => platform.operations?.closed(this.qpn));
    await this.#transitions(cpu, translation);
    for (let slot = 0; slot < 2 ** this.#setup.logReceiveSlots; slot++) this.postReceive();
    this.arm(cpu);
  }

  async #transitions(cpu: Cpu, translation: Translation): Promise<void> {
    const { commands } = this.#device;
    const placement = this.#placement(translation);
    const execute = (name: 'RST2INIT_QP' | 'INIT2RTR_QP' | 'RTR2RTS_QP', state: QpState): Promise<number> => {
      const values = this.#setup.mailboxTo(state, { standing: this.#standing(state), placement });
      return commands.executeWithMailbox(cpu, name, { inputModifier: this.qpn }, (bytes, address) =>
        qpMailbox.encodeInto(values, bytes, address),
      );
    };
    await execute('RST2INIT_QP', QpState.INIT);
    this.#undo.push(async (thread) => {
      const command = { inputModifier: this.qpn, opcodeModifier: resetOpcodeModifier.linux };
      await commands.execute(thread, '2RST_QP', command);
    });
    await execute('INIT2RTR_QP', QpState.RTR);
    await execute('RTR2RTS_QP', QpState.RTS);
  }

  #standing(state: QpState): Context {
    const { logReceiveSlots, logReceiveStride, logSendSlots, logSendStride } = this.#setup;
    return {
      state,
      serviceType: ServiceType.MLX,
      pathMigration: PathMigration.MIGRATED,
      pd: this.#pdn,
      rqLogCount: logReceiveSlots,
      rqLogStride16: logReceiveStride - 4,
      sqLogCount: logSendSlots,
      sqLogStride16: logSendStride - 4,
      uarPage: this.#uar.page,
      localQpn: this.qpn,
      fastRegisterEnabled: 1,
      sendCqn: this.#completions.cqn,
      receiveCqn: this.#completions.cqn,
    };
  }

  #placement(translation: Translation): Context {
    return {
      reservedLkeyEnabled: 1,
      doorbellRecordAddress: BigInt(this.memory.records + receiveRecordAt),
      mttAddress: translation.mttAddress,
      logPageSize4k: translation.logPageBytes - log2Exact(icmPageBytes),
    };
  }
}

function takeQpn({ numbers }: Device, undo: Undo[]): number {
  const qpn = numbers.qps.allocate();
  if (qpn < 0) throw new KernelError('ENOMEM', 'no QP number is left');
  undo.push(() => numbers.qps.release(qpn));
  return qpn;
}

async function takeBack(cpu: Cpu, undo: Undo[]): Promise<void> {
  for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step(cpu);
}
