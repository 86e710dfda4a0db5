/** Work requests, receives and doorbells of a rough guest: nearly right ones, into the queues that its contexts name. */
import { QpState, WqeOpcode } from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import type { Draw } from './draw.ts';
import { type GuestLife, REGION_BAR2, word32 } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';
import { pagesOfQueue, recordArea, recordOfQueuePair, roughMtt } from './rough-commands.ts';
import type { RoughObjects } from './rough-objects.ts';
import { cqn, key, qpn, uarPage, workQueueAddress } from './well-behaved-guest.ts';

const wqeBytes = 64;
const wqeOpcodes = Object.values(WqeOpcode);
/** Memory that they read and write: their own pages, and those of the well-behaved guest's data. */
const dataArea = { begin: 0x10_0000, bytes: 0x8_0000 } as const;
const remoteOpcodes: readonly number[] = [
  WqeOpcode.RDMA_WRITE,
  WqeOpcode.RDMA_WRITE_IMM,
  WqeOpcode.RDMA_READ,
];
const atomicOpcodes: readonly number[] = [WqeOpcode.ATOMIC_CS, WqeOpcode.ATOMIC_FA];
const sendOpcodes: readonly number[] = [WqeOpcode.SEND, WqeOpcode.SEND_IMM];
const usualOpcodes = [...remoteOpcodes, ...atomicOpcodes, ...sendOpcodes];
const doorbellOffsets = [0x14, 0x20, 0x24, 0x800, 0x808, 0x810, 0x840];

type Note = (text: string) => void;

export class RoughWork {
  readonly #draw: Draw;
  readonly #objects: RoughObjects;
  readonly #life: GuestLife;

  constructor(draw: Draw, objects: RoughObjects, life: GuestLife) {
    this.#draw = draw;
    this.#objects = objects;
    this.#life = life;
  }

  /** Some requests for one QP, and mostly the doorbell record or the doorbell for them. */
  post(note: Note): { readonly requests: number; readonly doorbells: number } {
    const { random } = this.#draw;
    const qp = this.#objects.queuePair([QpState.RTS, QpState.RTS, QpState.RTR, QpState.SQD]);
    const requests = random.between(1, 4);
    if (random.chance(0.35)) {
      this.#postReceives(qp, requests);
      return { requests, doorbells: 0 };
    }
    for (let at = 0; at < requests; at++) this.#writeRequest(qp);
    note(`${requests} requests for QP ${qpn(qp)}`);
    if (random.chance(0.15)) return { requests, doorbells: 0 };
    this.#ringFor(qp);
    return { requests, doorbells: 1 };
  }

  /** A store to a doorbell page. */
  ring(note: Note): void {
    const { random } = this.#draw;
    if (random.chance(0.5)) {
      this.#ringFor(random.below(8));
      return;
    }
    const page = random.chance(0.7) ? this.#draw.pick([0, 1, uarPage]) : random.below(2048);
    const within = random.chance(0.9) ? this.#draw.pick(doorbellOffsets) : random.below(4092);
    const value = new Uint8Array(random.chance(0.7) ? 4 : 8);
    const view = viewOf(value);
    const isArm = random.chance(0.7);
    view.setUint32(
      0,
      isArm
        ? (random.below(4) << 28) | (random.between(1, 2) << 24) | (cqn + random.below(8))
        : random.uint32(),
    );
    if (value.length > 4) view.setUint32(4, random.chance(0.7) ? random.below(64) : random.uint32());
    note(`doorbell ${hex(page * pageBytes + within)} = ${Buffer.from(value).toString('hex')}`);
    this.#life.client.postLater(REGION_BAR2, page * pageBytes + within, value);
  }

  postBlueFlame(note: Note): void {
    const { random } = this.#draw;
    const page = random.chance(0.8) ? uarPage : random.below(1024);
    const qp = random.below(8);
    const wqe = this.#request(qp);
    const view = viewOf(wqe);
    view.setUint32(0, (((this.#objects.sent[qp]! & 0xffff) << 8) | (view.getUint32(0) & 0x1f)) >>> 0);
    view.setUint32(4, ((qpn(qp) << 8) | random.between(1, 4)) >>> 0);
    const within = random.chance(0.9) ? 256 * random.below(4) : random.below(4000);
    const offset = 0x40_0000 + page * pageBytes + within;
    note(`BlueFlame ${hex(offset)}`);
    for (let at = 0; at < wqeBytes; at += 8)
      if (random.chance(0.98))
        this.#life.client.postLater(REGION_BAR2, offset + at, wqe.subarray(at, at + 8));
  }

  #ringFor(qp: number): void {
    this.#life.client.postLater(REGION_BAR2, uarPage * pageBytes + 0x14, word32(qpn(qp) << 8));
  }

  #writeRequest(qp: number): void {
    const objects = this.#objects;
    const { random } = this.#draw;
    const index = objects.sent[qp]!;
    const entries = 2 ** objects.sendLog[qp]!;
    const wqe = this.#request(qp);
    const view = viewOf(wqe);
    // The owner bit is that of the pass through the ring, which hands a request to the device.
    const owner = random.chance(0.95) ? (index / entries) & 1 : random.below(2);
    view.setUint32(0, ((view.getUint32(0) & 0x7fff_ffff) | (owner << 31)) >>> 0);
    objects.sent[qp] = index + 1;
    this.#life.put(this.#queueOf(qp) + (index % entries) * wqeBytes, wqe);
  }

  #request(qp: number): Uint8Array {
    const { random } = this.#draw;
    const wqe = this.#draw.bytes(wqeBytes);
    if (random.chance(0.05)) return wqe;
    const view = viewOf(wqe);
    const opcode = random.chance(0.8) ? this.#draw.pick(usualOpcodes) : this.#draw.pick(wqeOpcodes);
    view.setUint32(0, opcode);
    view.setUint32(8, random.chance(0.9) ? random.below(16) & ~2 : random.uint32());
    view.setUint32(12, random.uint32());
    let at = 16;
    const isRemote = remoteOpcodes.includes(opcode) || atomicOpcodes.includes(opcode);
    if (isRemote) {
      view.setUint32(at, this.#top());
      view.setUint32(at + 4, dataArea.begin + 8 * random.below(dataArea.bytes / 8));
      view.setUint32(at + 8, this.#key());
      at += 16;
    }
    if (atomicOpcodes.includes(opcode)) at += 16;
    while (at < wqeBytes) {
      const length = atomicOpcodes.includes(opcode) ? 8 : random.below(random.chance(0.9) ? 5000 : 2 ** 31);
      this.#putPointer(view, at, length);
      at += 16;
      if (random.chance(0.6)) break;
    }
    view.setUint32(4, (random.chance(0.97) ? at / 16 : random.below(64)) | (random.chance(0.05) ? 0x40 : 0));
    if (random.chance(0.08)) this.#draw.flip(wqe, random.between(1, 4));
    if (random.chance(0.02)) view.setUint32(16, qpn(qp));
    return wqe;
  }

  #putPointer(view: DataView, at: number, length: number): void {
    const { random } = this.#draw;
    view.setUint32(at, random.chance(0.97) ? length : random.uint32());
    view.setUint32(at + 4, this.#key());
    view.setUint32(at + 8, this.#top());
    view.setUint32(at + 12, dataArea.begin + random.below(dataArea.bytes));
  }

  /** The upper half of an address; at times one of more than 53 bits. */
  #top(): number {
    const { random } = this.#draw;
    return random.chance(0.95) ? 0 : random.uint32();
  }

  #key(): number {
    const { random } = this.#draw;
    if (random.chance(0.85)) return key;
    return random.chance(0.7) ? key + 256 * random.below(8) : random.uint32();
  }

  /** Writes receives after the send queue, and a counter, perhaps a wrong one, into the doorbell record. */
  #postReceives(qp: number, count: number): void {
    const objects = this.#objects;
    const { random } = this.#draw;
    const begin = this.#queueOf(qp) + (wqeBytes << objects.sendLog[qp]!);
    for (let at = 0; at < count; at++) {
      const pointer = new Uint8Array(16);
      this.#putPointer(viewOf(pointer), 0, 4096);
      const index = objects.received[qp]!++;
      this.#life.put(begin + 16 * (index % 32), pointer);
    }
    const counter = word32(random.chance(0.9) ? objects.received[qp]! & 0xffff : random.uint32());
    const record = random.chance(0.95)
      ? recordOfQueuePair(qp)
      : recordArea.begin + 4 * random.below(recordArea.bytes / 4);
    this.#life.put(record, counter);
  }

  /** The first two QPs may be those of the bring-up. */
  #queueOf(qp: number): number {
    const own = roughMtt.begin + qp * pagesOfQueue * pageBytes;
    return qp < 2 && this.#draw.random.chance(0.5) ? workQueueAddress(qp) : own;
  }
}

const hex = (value: number): string => `0x${value.toString(16)}`;
