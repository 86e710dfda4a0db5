/**
 * QP1 or QP0 of port 1, as ib_mad opens them: the queue pairs of general services and of subnet management, with queues in kernel memory. A MAD that is sent
 * carries its packet's headers, written here, and its data by two pointers; a received MAD follows 40 bytes for a GRH.
 *
 *     send WQE:  MLX control | inline 28: LRH BTH DETH | pointer 24: MAD header | pointer 232: data | inline 4: ICRC
 *
 * On Ethernet the headers differ and fill two inline segments, because no segment may cross a boundary of 64 bytes
 * (roce-headers.ts).
 *
 * Sources: interface sheet 3.17, 6.3, 7.2; golden captures a-probe (the transitions), x-kernel-mads (the WQE).
 */
import {
  completionRequested,
  cqe,
  dataPointer,
  generalServicesQkey,
  grhBytes,
  madBytes,
  mlxControlSegment,
  OptionalParameter,
  PathMtu,
  QpState,
  type qpMailbox,
  RoceMode,
  roceUdCqe,
  scheduleQueueOf,
  WqeOpcode,
} from '../../abi/index.ts';
import { type Initial, macBytesOf, mask24 } from '../../base/index.ts';
import { specialQpBaseOf } from '../capabilities.ts';
import type { Device } from '../device.ts';
import { type EthernetPort, ethernetPortOf } from '../ethernet-port.ts';
import { writeInline } from '../inline-segments.ts';
import {
  KernelQueuePair,
  type KernelQueuePairContext,
  type KernelQueuePairSetup,
  type KernelReceive,
} from '../kernel-queue-pair.ts';
import type { Cpu } from '../platform.ts';
import {
  type ManagementService,
  managementHeaders,
  managementHeadersBytes,
  permissiveLid,
} from './management-headers.ts';
import { isRoutableHeader, roceManagementHeaders, sourceGidOf } from './roce-headers.ts';

/** Destination of a MAD. */
export interface MadAddress {
  readonly lid: number;
  readonly serviceLevel: number;
  /** Present on Ethernet, which has no LIDs. */
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
  /** On Ethernet: whether it arrived by version 2 of RoCE. */
  readonly isRoutable?: boolean;
  readonly bytes: Uint8Array;
}

/** Linux' sizes: mad.c IB_MAD_QP_SEND_SIZE and _RECV_SIZE; twice the sends, because half of the ring is headroom. */
const logSendSlots = 8;
const sendsMax = 128;
const logSendStride = 8;
const logReceiveSlots = 9;
const logReceiveStride = 5;
const cqEntries = 1024;
/** Values that Linux writes into its contexts (golden capture a-probe). */
const logMaxMessage = 11;
const ackRequestFrequency = 8;
const sinkCounter = 0xff;
const receiveBytes = grhBytes + madBytes;
/** A multiple of 64, so that buffers cross as few page boundaries as possible. */
const receiveStrideBytes = 320;
const madHeaderBytes = 24;
const icrcBytes = 4;
/** Distance of the port 1's QP from the first special one. */
const qpnOf: Readonly<Record<ManagementService, number>> = { subnet: 0, general: 2 };

/** Offset of the headers in a send WQE. */
const headersAt = mlxControlSegment.sizeBytes;
const wqeUnit = dataPointer.sizeBytes;
/** Bytes 0 and 1 of the destination MAC in the control segment on Ethernet, and the other four. */
const macHighAt = 0x08;
const macLowAt = 0x0c;
/** Hop limit of MADs of the CM on Ethernet: ip_default_ttl. */
const hopLimit = 64;

const bit = (parameter: OptionalParameter): number => 2 ** parameter;

type Piece = 'sent' | 'received';

export class ManagementQueuePair {
  readonly #device: Device;
  readonly #service: ManagementService;
  readonly #wqe = new Uint8Array(2 ** logSendStride);
  /** The port, if it is Ethernet. */
  readonly #ethernet: EthernetPort | undefined;
  #pair!: KernelQueuePair<Piece>;
  /** PSN of the next MAD: software counts them (Linux 6.1, mlx4_ib qp.c build_mlx_header). */
  #psn = 0;

  private constructor(device: Device, service: ManagementService) {
    this.#device = device;
    this.#service = service;
    this.#ethernet = ethernetPortOf(device.ports[0]);
  }

  /**
   * Brings the QP up with all its receives posted and its CQ armed.
   * @param completed called in interrupt context when completions are present
   * @throws KernelError ENOMEM if no frames are left
   */
  static async open(
    cpu: Cpu,
    device: Device,
    completed: () => void,
    service: ManagementService = 'general',
  ): Promise<ManagementQueuePair> {
    const opened = new ManagementQueuePair(device, service);
    opened.#pair = await KernelQueuePair.open(cpu, device, opened.#setup(), completed);
    return opened;
  }

  /** Releases everything. */
  close(cpu: Cpu): Promise<void> {
    return this.#pair.close(cpu);
  }

  /** Posts a MAD to the device. @returns false, and sends nothing, if the send queue is full */
  post(cpu: Cpu, mad: Uint8Array, to: MadAddress): boolean {
    return this.#pair.post(cpu, (slot, owner) => {
      const buffer = this.#pair.memory.sent + slot * madBytes;
      this.#device.platform.memory.bytes.set(mad, buffer);
      const wqe = this.#writeWqe(to, buffer, owner);
      this.#psn = (this.#psn + 1) & mask24;
      return wqe;
    });
  }

  /** The WQE of the MAD in a buffer. */
  #writeWqe(to: MadAddress, buffer: number, owner: number): Uint8Array {
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
      owner,
      opcode: WqeOpcode.SEND,
      ds: end / wqeUnit,
      completion: completionRequested,
    };
    if (roce === undefined)
      mlxControlSegment.encodeInto(
        {
          ...control,
          ...{ serviceLevel, remoteLid: lid },
          ...{ vl15: this.#service === 'subnet' ? 1 : 0, slr: lid === permissiveLid ? 1 : 0 },
        },
        wqe,
        0,
      );
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
      managementHeaders(bytes, 0, { lid, serviceLevel, psn: this.#psn }, this.#service);
      return bytes;
    }
    return roceManagementHeaders({
      sourceMac: this.#ownMac,
      destinationMac: roce.mac,
      sourceGid: this.#ethernet.gidAt(this.#ethernet.gidIndexTo(roce.gid)),
      destinationGid: roce.gid,
      hopLimit,
      psn: this.#psn,
      isRoutable: this.#isRoutable,
    });
  }

  /** Sends by the newest version that the port has: a card receives packets of both, but sends by the version in its context. */
  get #isRoutable(): boolean {
    return this.#ethernet?.isRoutable ?? false;
  }

  /** Dequeues the oldest completion: a received MAD, or 'sent' for a transmitted one; undefined if the CQ is empty. */
  take(cpu: Cpu): ReceivedMad | 'sent' | 'failed' | undefined {
    const taken = this.#pair.take(cpu);
    if (typeof taken !== 'object') return taken;
    const mad = this.#read(taken);
    this.#pair.postReceive();
    return mad;
  }

  /** Requests an event for the next completion, or immediately if a completion has not been dequeued yet. */
  arm(cpu: Cpu): void {
    this.#pair.arm(cpu);
  }

  #read({ at, slot }: KernelReceive): ReceivedMad {
    const { bytes, view } = this.#device.platform.memory;
    const buffer = this.#pair.memory.received + slot * receiveStrideBytes;
    const from = buffer + grhBytes;
    const header = bytes.subarray(buffer, from);
    return {
      ...(this.#ethernet === undefined ? {} : { isRoutable: isRoutableHeader(header) }),
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
                gid: sourceGidOf(header),
                mac: Uint8Array.from(roceUdCqe.fields.sourceMac.get(view, at)),
              },
            },
      bytes: bytes.slice(from, from + madBytes),
    };
  }

  #setup(): KernelQueuePairSetup<Piece> {
    const lkey = this.#device.limits.reservedLkey;
    return {
      name: this.#service === 'subnet' ? 'QP0' : 'QP1',
      qpn: specialQpBaseOf(this.#device.limits) + qpnOf[this.#service],
      logSendSlots,
      logSendStride,
      logReceiveSlots,
      logReceiveStride,
      sendsMax,
      cqEntries,
      operation: WqeOpcode.SEND,
      pieces: { sent: 2 ** logSendSlots * madBytes, received: 2 ** logReceiveSlots * receiveStrideBytes },
      mailboxTo: (state, context) => this.#mailboxTo(state, context),
      writeReceive: (bytes, at, slot, { received }) => {
        const address = BigInt(received + slot * receiveStrideBytes);
        dataPointer.encodeInto({ byteCount: receiveBytes, lkey, address }, bytes, at);
        dataPointer.encodeInto({ byteCount: 0, lkey, address: 0n }, bytes, at + wqeUnit);
      },
    };
  }

  #mailboxTo(state: QpState, { standing, placement }: KernelQueuePairContext): Initial<typeof qpMailbox> {
    const context = { ...standing, pathMtu: PathMtu.MTU_4096, logMaxMessage, ackRequestFrequency };
    if (state === QpState.INIT)
      return {
        optionalParameterMask: bit(OptionalParameter.PKEY_INDEX) + bit(OptionalParameter.QKEY),
        context: {
          ...context,
          ...placement,
          qkey: this.#service === 'subnet' ? 0 : generalServicesQkey,
        },
      };
    if (state === QpState.RTS) return { context };
    const primaryPath = { counterIndex: sinkCounter, scheduleQueue: scheduleQueueOf(1, 0) };
    if (this.#ethernet === undefined) return { context: { ...context, primaryPath } };
    const roceMode = this.#isRoutable ? RoceMode.V2 : RoceMode.V1;
    return { context: { ...context, roceMode, primaryPath: { ...primaryPath, doNotForceSourceMac: 1 } } };
  }
}
