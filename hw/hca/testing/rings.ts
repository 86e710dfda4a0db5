/** Software of Ethernet rings for specs of the data path: rings, WQEs of several blocks, steering, and the usual scene. */
import { CqeOpcode, ethernetCqe } from '../../../abi/cqe.ts';
import { PathMtu, ServiceType } from '../../../abi/qpc.ts';
import { ethernetControlSegment, lsoHeader } from '../../../abi/wqe.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import type { ReceiveQps } from '../port/frame-steering.ts';
import {
  type BenchOptions,
  type DataPathBench,
  type DataPathNode,
  dataPathBench,
} from './data-path-bench.ts';
import { Cq, encodeWqe, Qp, type QpOptions, Region, type SendRequest } from './data-path-verbs.ts';

const BLOCK_BYTES = 64;
const logBlocks = 4;
const blocks = 2 ** logBlocks;
const ring = { serviceType: ServiceType.MLX, pathMtu: PathMtu.RAW, logMaxMessage: 31 } as const;

export interface FrameRequest extends Pick<SendRequest, 'segments' | 'inline'> {
  readonly opcode?: number;
  readonly tag?: number;
  readonly isServiceTag?: boolean;
  readonly hasChecksums?: boolean;
  /** LSO parameters, if the frame is an LSO. */
  readonly lso?: LsoRequest;
}

export interface LsoRequest {
  readonly segmentBytes: number;
  readonly headers: Uint8Array;
  /** Length in the segment; omitted: the actual length of the headers. */
  readonly headerBytes?: number;
  /** Value of the flag for long headers; omitted: the right one. */
  readonly isLong?: boolean;
}

/** Offset of the headers in an LSO WQE, and the size of the block in which they fit if not marked long. */
const LSO_HEADERS_PLACE = 16 + lsoHeader.sizeBytes;
const LINE_BYTES = 64;

/** A ring that sends and receives, as a driver creates it: 64-byte blocks, with an invalid WQE after each WQE. */
export class Ring {
  readonly qp: Qp;
  readonly cq: Cq;
  readonly node: DataPathNode;
  #counter = 0;

  constructor(node: DataPathNode, options: Partial<QpOptions> = {}) {
    this.node = node;
    this.cq = options.sendCq ?? new Cq(node, 8);
    const { fields, ...rest } = options;
    this.qp = new Qp(node, {
      sendCq: this.cq,
      sqLogCount: logBlocks,
      sqLogStride16: 2,
      rqLogCount: 5,
      rqLogStride16: 1,
      ...rest,
      fields: { ...ring, ...fields },
    });
    this.qp.connect(0, 0, 0);
  }

  /** Writes a WQE and rings. Returns the counter of its first block. */
  send({ opcode, tag, isServiceTag = false, hasChecksums = false, lso, ...data }: FrameRequest): number {
    const counter = this.#counter;
    const control = ethernetControlSegment.fields;
    const usual = lso === undefined ? WqeOpcode.SEND : WqeOpcode.LSO;
    const segment = lso === undefined ? {} : { lso: lsoSegment(lso) };
    const wqe = encodeWqe({ opcode: opcode ?? usual, ...data, ...segment }, 0);
    const view = new DataView(wqe.buffer);
    if (lso !== undefined) {
      const isLong = lso.isLong ?? LSO_HEADERS_PLACE + lso.headers.length > LINE_BYTES;
      control.longLsoHeader.set(view, 0, isLong ? 1 : 0);
    }
    if (tag !== undefined) {
      control.vlanTag.set(view, 0, tag);
      control[isServiceTag ? 'insertSVlan' : 'insertCVlan'].set(view, 0, 1);
    }
    if (hasChecksums) {
      control.ipChecksum.set(view, 0, 1);
      control.tcpUdpChecksum.set(view, 0, 1);
    }
    const count = Math.ceil(wqe.length / BLOCK_BYTES);
    for (let block = 0; block < count; block++) {
      const piece = wqe.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      this.node.memory.bytes.set(piece, this.#placeOf(counter + block));
    }
    this.#counter = (counter + count) & 0xffff;
    control.owner.set(this.node.view, this.#placeOf(this.#counter), passOf(this.#counter) ^ 1);
    control.owner.set(this.node.view, this.#placeOf(counter), passOf(counter));
    this.qp.ring();
    return counter;
  }

  #placeOf(counter: number): number {
    return this.qp.sqAddress + (counter & (blocks - 1)) * BLOCK_BYTES;
  }
}

function lsoSegment({ segmentBytes, headers, headerBytes = headers.length }: LsoRequest): Uint8Array {
  const segment = new Uint8Array(lsoHeader.sizeBytes + headers.length);
  lsoHeader.encodeInto({ mss: segmentBytes, headerBytes }, segment);
  segment.set(headers, lsoHeader.sizeBytes);
  return segment;
}

const passOf = (counter: number): number => (counter >>> logBlocks) & 1;

/** The completions of a CQ as a driver of Ethernet reads them. */
export function frameCompletions(node: DataPathNode, cq: Cq) {
  const first = cq.consumer;
  const { view } = node;
  const fields = ethernetCqe.fields;
  return cq.drain().map(({ isSend, opcode, wqeCounter, byteCount, immediate, syndrome, qpn }, index) => {
    const at = cq.bufferAddress + ((first + index) & ((1 << cq.logEntries) - 1)) * ethernetCqe.sizeBytes;
    const isError = opcode === CqeOpcode.ERROR;
    const hasTag = !isError && fields.cVlanPresent.get(view, at) === 1;
    return {
      qpn,
      isSend,
      wqeCounter,
      byteCount,
      hash: immediate >>> 0,
      syndrome,
      status: isError ? 0 : fields.ipStatus.get(view, at),
      checksum: isError ? 0 : fields.checksum.get(view, at),
      tag: hasTag ? view.getUint16(at + 0x0c) : undefined,
    };
  });
}

/** Sets the QPs that receive frames, by the index of their MACs. */
export function steer({ ethernet }: DataPathNode, macs: readonly number[], qps: Partial<ReceiveQps>): void {
  const { steering } = ethernet!.side;
  steering.macs.fill(-1);
  steering.macs.set(macs);
  steering.receiveQps = { baseQpn: 0, isPromiscuous: false, promiscuousQpn: 0, multicastQpn: 0, ...qps };
}

const MAC_A = 0x0002_c900_0001;
export const MAC_B = 0x0002_c900_0002;

/** A frame with this payload after its header. */
export function frameOf(to: number, payload: Uint8Array, from = MAC_A, type = 0x88b5): Uint8Array {
  const frame = new Uint8Array(14 + payload.length);
  const view = new DataView(frame.buffer);
  for (const [at, mac] of [to, from].entries()) {
    view.setUint16(at * 6, Math.floor(mac / 2 ** 32));
    view.setUint32(at * 6 + 2, mac % 2 ** 32);
  }
  view.setUint16(12, type);
  frame.set(payload, 14);
  return frame;
}

export interface RingScene {
  readonly bench: DataPathBench;
  readonly a: Ring;
  readonly b: Ring;
  readonly from: Region;
  readonly to: Region;
}

/** Makes a ring and a region at either end; b's ring receives frames for its MAC and for groups. */
export async function ringScene(
  options: BenchOptions = {},
  ringOptions: Partial<QpOptions> = {},
): Promise<RingScene> {
  const bench = await dataPathBench({ ethernet: {}, ...options });
  const [a, b] = [new Ring(bench.a), new Ring(bench.b, ringOptions)];
  const [from, to] = [new Region(bench.a, 65_536), new Region(bench.b, 65_536, { pageOffset: 1000 })];
  steer(bench.b, [MAC_B], { baseQpn: b.qp.qpn, multicastQpn: b.qp.qpn });
  from.fill(7);
  await bench.run(5);
  return { bench, a, b, from, to };
}
