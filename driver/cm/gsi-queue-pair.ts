/**
 * QP1 of port 1, as ib_mad opens it: the queue pair of general services, with queues in kernel memory. A MAD that is sent
 * carries its packet's headers, written here, and its data by two pointers; one that is received lies behind 40 bytes for
 * a GRH.
 *
 *     send WQE:  MLX control | inline 28: LRH BTH DETH | pointer 24: MAD header | pointer 232: data | inline 4: ICRC
 *
 * On Ethernet the headers are others, and lie in two inline segments, for none crosses a boundary of 64 bytes (roce-headers.ts).
 *
 * Promises: a slot is used again only after its completion; a full send queue takes nothing, and reports it.
 * Sources: interface sheet 3.17, 6.3, 6.6, 7.2; golden captures a-probe (the transitions), x-kernel-mads (the WQE).
 */
import {
  CqeOpcode,
  completionRequested,
  cqe,
  cqeBytes,
  cqRecord,
  dataPointer,
  generalServicesQkey,
  grhBytes,
  icmPageBytes,
  madBytes,
  mlxControlSegment,
  OptionalParameter,
  PathMigration,
  PathMtu,
  QpState,
  qpMailbox,
  RoceMode,
  receiveRecord,
  resetOpcodeModifier,
  roceUdCqe,
  ServiceType,
  scheduleQueueOf,
  sendDoorbell,
  uarOffset,
  WqeOpcode,
} from '../../abi/index.ts';
import { counterMask16, type Initial, log2Exact, passBit, viewOf } from '../../base/index.ts';
import { specialQpBaseOf } from '../capabilities.ts';
import type { Device } from '../device.ts';
import { type EthernetPort, ethernetPortOf } from '../ethernet-port.ts';
import { macBytesOf } from '../gid.ts';
import { writeInline } from '../inline-segments.ts';
import { KernelCompletions } from '../kernel-completions.ts';
import { KernelError } from '../kernel-error.ts';
import { takePieces, type Undo } from '../kernel-memory.ts';
import { kernelProcess } from '../kernel-process.ts';
import type { Translation } from '../mtt.ts';
import type { Cpu, PinnedPages } from '../platform.ts';
import { releaseContext, useContext } from '../qp-tables.ts';
import { SpinLock } from '../spin-lock.ts';
import { GidTypeVerb } from '../uapi.ts';
import { mapUar, type UserUar, unmapUar } from '../uar.ts';
import { managementHeaders, managementHeadersBytes } from './management-headers.ts';
import { roceManagementHeaders, sourceGidOf } from './roce-headers.ts';

/** Where a MAD goes. */
export interface MadAddress {
  readonly lid: number;
  readonly serviceLevel: number;
  /** On Ethernet, where there are no LIDs. */
  readonly roce?: RoceMadAddress;
}

interface RoceMadAddress {
  /** 16 bytes. */
  readonly gid: Uint8Array;
  /** 6 bytes. */
  readonly mac: Uint8Array;
}

/** A MAD that has arrived; `bytes` is a copy. */
export interface ReceivedMad {
  readonly from: MadAddress;
  readonly bytes: Uint8Array;
}

/** Linux' sizes: mad.c IB_MAD_QP_SEND_SIZE and _RECV_SIZE; twice the sends, for half of the ring is headroom. */
const logSendSlots = 8;
const sendsMax = 128;
const logSendStride = 8;
const logReceiveSlots = 9;
const logReceiveStride = 5;
const cqEntries = 1024;
const receiveBytes = grhBytes + madBytes;
/** A multiple of 64, so that no buffer crosses a page more than it must. */
const receiveStrideBytes = 320;
const madHeaderBytes = 24;
const icrcBytes = 4;
const qp1OfPort1 = 2;

/** Where headers begin in a send WQE. */
const headersAt = mlxControlSegment.sizeBytes;
const wqeUnit = dataPointer.sizeBytes;
/** Bytes 0 and 1 of the destination MAC in the control segment on Ethernet, and the other four. */
const macHighAt = 0x08;
const macLowAt = 0x0c;
/** Of MADs that connections are made of, on Ethernet: ip_default_ttl. */
const hopLimit = 64;

const bit = (parameter: OptionalParameter): number => 2 ** parameter;

/** The pieces of kernel memory that it has. */
const piecesBytes = {
  queues: 2 ** (logSendSlots + logSendStride) + 2 ** (logReceiveSlots + logReceiveStride),
  completions: cqEntries * cqeBytes,
  records: icmPageBytes,
  sent: 2 ** logSendSlots * madBytes,
  received: 2 ** logReceiveSlots * receiveStrideBytes,
};
/** Their physical addresses. */
type Memory = Readonly<Record<keyof typeof piecesBytes, number>>;
const receiveRecordAt = cqRecord.sizeBytes;

export class GsiQueuePair {
  readonly qpn: number;
  readonly #device: Device;
  readonly #memory: Memory;
  readonly #undo: Undo[];
  #completions!: KernelCompletions;
  #uar!: UserUar;
  #pdn = -1;
  #sendCounter = 0;
  #sendsInFlight = 0;
  #receiveCounter = 0;
  /** Of the send queue, which threads of several cores post to. */
  readonly #lock = new SpinLock();
  readonly #doorbell = viewOf(new Uint8Array(sendDoorbell.sizeBytes));
  readonly #wqe = new Uint8Array(2 ** logSendStride);
  /** The port, if it is of Ethernet. */
  readonly #ethernet: EthernetPort | undefined;

  private constructor(device: Device, memory: Memory, undo: Undo[]) {
    this.#device = device;
    this.#memory = memory;
    this.#undo = undo;
    this.#ethernet = ethernetPortOf(device.ports[0]);
    this.qpn = specialQpBaseOf(device.limits) + qp1OfPort1;
  }

  /**
   * Brings QP1 up with all its receives posted and its CQ armed.
   * @param completed called in interrupt context when there are completions to take
   * @throws KernelError ENOMEM when there are no frames
   */
  static async open(cpu: Cpu, device: Device, completed: () => void): Promise<GsiQueuePair> {
    const undo: Undo[] = [];
    const pair = new GsiQueuePair(device, takePieces(device, 'QP1', piecesBytes, undo), undo);
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

  /** Hands a MAD to the device. @returns false, and nothing is sent, when the send queue is full */
  post(cpu: Cpu, mad: Uint8Array, to: MadAddress): boolean {
    if (this.#sendsInFlight === sendsMax) return false;
    this.#lock.acquire(cpu);
    const { memory } = this.#device.platform;
    const slot = this.#sendCounter & (2 ** logSendSlots - 1);
    const buffer = this.#memory.sent + slot * madBytes;
    memory.bytes.set(mad, buffer);
    const wqe = this.#writeWqe(to, buffer);
    cpu.storeMemory(this.#memory.queues + slot * 2 ** logSendStride, wqe);
    sendDoorbell.fields.qpn.set(this.#doorbell, 0, this.qpn);
    cpu.mmioWrite32(this.#uar.busAddress + uarOffset.sendDoorbell, this.#doorbell.getUint32(0, true));
    const counter = this.#sendCounter & counterMask16;
    this.#device.platform.operations?.posted(this.qpn, counter, WqeOpcode.SEND, cpu.ownPs);
    this.#sendCounter++;
    this.#sendsInFlight++;
    this.#lock.release(cpu);
    return true;
  }

  /** The WQE of the MAD in a buffer, for the next slot. */
  #writeWqe(to: MadAddress, buffer: number): Uint8Array {
    const wqe = this.#wqe.fill(0);
    const pointersAt = writeInline(wqe, headersAt, this.#headersTo(to));
    const lkey = this.#device.limits.reservedLkey;
    const pointer = (at: number, address: number, byteCount: number): void =>
      dataPointer.encodeInto({ byteCount, lkey, address: BigInt(address) }, wqe, at);
    pointer(pointersAt, buffer, madHeaderBytes);
    pointer(pointersAt + wqeUnit, buffer + madHeaderBytes, madBytes - madHeaderBytes);
    const end = writeInline(wqe, pointersAt + 2 * wqeUnit, new Uint8Array(icrcBytes));
    const { lid, serviceLevel, roce } = to;
    const control = {
      owner: passBit(this.#sendCounter, logSendSlots),
      opcode: WqeOpcode.SEND,
      ds: end / wqeUnit,
      completion: completionRequested,
    };
    if (roce === undefined)
      mlxControlSegment.encodeInto({ ...control, serviceLevel, remoteLid: lid }, wqe, 0);
    else {
      const isOwn = this.#ownMac.every((byte, at) => byte === roce.mac[at]);
      mlxControlSegment.encodeInto({ ...control, forceLoopback: isOwn ? 1 : 0 }, wqe, 0);
      wqe.set(roce.mac.subarray(0, 2), macHighAt);
      wqe.set(roce.mac.subarray(2), macLowAt);
    }
    return wqe.subarray(0, end);
  }

  get #ownMac(): Uint8Array {
    return macBytesOf(this.#ethernet?.mac ?? 0);
  }

  #headersTo({ lid, serviceLevel, roce }: MadAddress): Uint8Array {
    if (roce === undefined || this.#ethernet === undefined) {
      const bytes = new Uint8Array(managementHeadersBytes);
      managementHeaders(bytes, 0, lid, serviceLevel);
      return bytes;
    }
    const { ipv4GidIndex } = this.#ethernet;
    return roceManagementHeaders({
      sourceMac: this.#ownMac,
      destinationMac: roce.mac,
      sourceGid: this.#ethernet.gidAt(ipv4GidIndex),
      destinationGid: roce.gid,
      hopLimit,
      isRoutable: this.#isRoutable,
    });
  }

  /** By the newest version that the port has: a card takes those of both, but sends by that of its context. */
  get #isRoutable(): boolean {
    const port = this.#ethernet;
    return port !== undefined && port.typeOfGid(port.ipv4GidIndex) === GidTypeVerb.IBV_GID_TYPE_ROCE_V2;
  }

  /** The oldest completion: a MAD that has arrived, 'sent' for one that has left; undefined when there is none. */
  take(cpu: Cpu): ReceivedMad | 'sent' | 'failed' | undefined {
    const at = this.#completions.next();
    if (at < 0) return undefined;
    const { view } = this.#device.platform.memory;
    const isError = cqe.fields.opcode.get(view, at) === CqeOpcode.ERROR;
    if (cqe.fields.isSend.get(view, at) === 1) {
      this.#sendsInFlight--;
      const counter = cqe.fields.wqeCounter.get(view, at);
      this.#device.platform.operations?.completed(this.qpn, counter, cpu.ownPs);
      return isError ? 'failed' : 'sent';
    }
    if (isError) return 'failed';
    const mad = this.#read(view, at);
    this.#postReceive();
    return mad;
  }

  /** Asks for an event with the next completion, or at once if there is one that was not taken. */
  arm(cpu: Cpu): void {
    this.#completions.arm(cpu);
  }

  #read(view: DataView, at: number): ReceivedMad {
    const slot = cqe.fields.wqeCounter.get(view, at) & (2 ** logReceiveSlots - 1);
    const buffer = this.#memory.received + slot * receiveStrideBytes;
    const from = buffer + grhBytes;
    const { bytes } = this.#device.platform.memory;
    return {
      from:
        this.#ethernet === undefined
          ? {
              lid: cqe.fields.sourceLid.get(view, at),
              serviceLevel: cqe.fields.serviceLevel.get(view, at),
            }
          : {
              lid: 0,
              serviceLevel: 0,
              roce: {
                gid: sourceGidOf(bytes.subarray(buffer, from)),
                mac: Uint8Array.from(roceUdCqe.fields.sourceMac.get(view, at)),
              },
            },
      bytes: bytes.slice(from, from + madBytes),
    };
  }

  async #bringUp(cpu: Cpu, completed: () => void): Promise<void> {
    const { numbers, platform, mtts, router } = this.#device;
    this.#pdn = numbers.pds.allocate();
    if (this.#pdn < 0) throw new KernelError('ENOMEM', 'no protection domain is left');
    this.#undo.push(() => numbers.pds.release(this.#pdn));
    this.#uar = mapUar(this.#device, kernelProcess);
    this.#undo.push(() => unmapUar(this.#device, kernelProcess, this.#uar));
    // Nothing in it is the device's yet: every owner bit is that of the pass before the first.
    const sendQueueBytes = 2 ** (logSendSlots + logSendStride);
    platform.memory.bytes.fill(0xff, this.#memory.queues, this.#memory.queues + sendQueueBytes);
    const sink = { completion: completed, asyncEvent: () => undefined };
    const { completions: ring, records: record } = this.#memory;
    const place = { entries: cqEntries, ring, record, uar: this.#uar };
    this.#completions = await KernelCompletions.open(cpu, this.#device, place, sink);
    this.#undo.push((thread) => this.#completions.close(thread));
    const { queues } = this.#memory;
    const { pages } = kernelProcess.pin(cpu, queues, piecesBytes.queues) as PinnedPages;
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

  async #transitions(cpu: Cpu, translation: Translation): Promise<void> {
    const { commands } = this.#device;
    const execute = (
      name: 'RST2INIT_QP' | 'INIT2RTR_QP' | 'RTR2RTS_QP',
      values: Initial<typeof qpMailbox>,
    ): Promise<number> =>
      commands.executeWithMailbox(cpu, name, { inputModifier: this.qpn }, (bytes, address) =>
        qpMailbox.encodeInto(values, bytes, address),
      );
    await execute('RST2INIT_QP', this.#initMailbox(translation));
    this.#undo.push(async (thread) => {
      const command = { inputModifier: this.qpn, opcodeModifier: resetOpcodeModifier.linux };
      await commands.execute(thread, '2RST_QP', command);
    });
    const primaryPath = { counterIndex: 0xff, scheduleQueue: scheduleQueueOf(1, 0) };
    const ready = this.#standing(QpState.RTR);
    const context =
      this.#ethernet === undefined
        ? { ...ready, primaryPath }
        : {
            ...ready,
            roceMode: this.#isRoutable ? RoceMode.V2 : RoceMode.V1,
            primaryPath: { ...primaryPath, doNotForceSourceMac: 1 },
          };
    await execute('INIT2RTR_QP', { context });
    await execute('RTR2RTS_QP', { context: this.#standing(QpState.RTS) });
  }

  #initMailbox(translation: Translation): Initial<typeof qpMailbox> {
    return {
      optionalParameterMask: bit(OptionalParameter.PKEY_INDEX) + bit(OptionalParameter.QKEY),
      context: {
        ...this.#standing(QpState.INIT),
        reservedLkeyEnabled: 1,
        doorbellRecordAddress: BigInt(this.#memory.records + receiveRecordAt),
        qkey: generalServicesQkey,
        mttAddress: translation.mttAddress,
        logPageSize4k: translation.logPageBytes - log2Exact(icmPageBytes),
      },
    };
  }

  /** What every transition repeats. */
  #standing(state: QpState) {
    return {
      state,
      serviceType: ServiceType.MLX,
      pathMigration: PathMigration.MIGRATED,
      pd: this.#pdn,
      pathMtu: PathMtu.MTU_4096,
      logMaxMessage: 11,
      rqLogCount: logReceiveSlots,
      rqLogStride16: logReceiveStride - 4,
      sqLogCount: logSendSlots,
      sqLogStride16: logSendStride - 4,
      uarPage: this.#uar.page,
      localQpn: this.qpn,
      ackRequestFrequency: 8,
      fastRegisterEnabled: 1,
      sendCqn: this.#completions.cqn,
      receiveCqn: this.#completions.cqn,
    };
  }

  /** Posts the buffer of the next slot; the device sees it by the doorbell record. */
  #postReceive(): void {
    const { bytes, view } = this.#device.platform.memory;
    const slot = this.#receiveCounter & (2 ** logReceiveSlots - 1);
    const ring = this.#memory.queues + 2 ** (logSendSlots + logSendStride);
    const at = ring + slot * 2 ** logReceiveStride;
    const lkey = this.#device.limits.reservedLkey;
    const address = BigInt(this.#memory.received + slot * receiveStrideBytes);
    dataPointer.encodeInto({ byteCount: receiveBytes, lkey, address }, bytes, at);
    dataPointer.encodeInto({ byteCount: 0, lkey, address: 0n }, bytes, at + dataPointer.sizeBytes);
    this.#receiveCounter++;
    const record = this.#memory.records + receiveRecordAt;
    receiveRecord.fields.postedCounter.set(view, record, this.#receiveCounter & 0xffff);
  }
}
