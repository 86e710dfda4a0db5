/**
 * A program in a rough guest that does no harm: two connected QPs of its own, their CQ and their memory. Whatever the guest
 * does to the device beside it, completions come for what was asked and for nothing else.
 *
 *     far address ──► mailbox | CQ | queues | records | data | ICM pages of its own contexts
 *                     └─ the last MiB of the guest's file, which nothing else in the guest uses
 *
 * Its numbers, keys and addresses are such that a number that a rough guest draws is none of them (one in 2^24 of the
 * random ones), and its contexts lie in pages of its own. It may suffer: its QPs break, its requests end in error, or
 * never. So what is judged is only what must not be: an entry that is no completion of something posted, one that comes
 * twice or before its turn, and bytes that change where nothing was to be written.
 */

import * as abi from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import { type GuestLife, REGION_BAR2, ramBytes, word32 } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';
import { contextsToRts, eqn, icmBase, logQueue, pathTo, uarPage } from './well-behaved-guest.ts';

/** Address at which the device finds its memory, and its offset in the guest's file. */
const farAddress = 0x1a5c_3b96_e000;
const memoryBegin = ramBytes;
const memoryBytes = 16 * pageBytes;

/** Address at which the device finds its CQ. */
export const bystandersCq = farAddress + pageBytes;

/** Pages of the bystander's memory. */
const page = { mailbox: 0, cq: 1, queues: 2, records: 4, source: 5, target: 6, icm: 7 } as const;
/** Pages that only the guest writes. */
const ownPages = [page.mailbox, page.queues, page.queues + 1, page.records, page.source] as const;

const firstQpn = 0x5a2c;
const cqn = 0x6b39;
const mptIndex = 0x3a1b;
const key = mptIndex << 8;
const firstMtt = 0x1_62e4;
const pd = 0x4d93;
const entries = 2 ** logQueue;
const wqeBytes = 64;
const receivesBegin = wqeBytes * entries;
const messageBytes = 64;
/** Completions that it waits for at most: fewer than the CQ has entries. */
const outstandingMax = 12;
const peerOf = (qp: number): number => 1 - qp;

/** One queue of a QP. */
interface Queue {
  /** Opcode of each request, from the first on; 0 for a receive. */
  readonly posted: number[];
  completed: number;
  hasFailed: boolean;
}

interface Pair {
  readonly send: Queue;
  readonly receive: Queue;
  /** Receives that a message has filled. */
  filled: number;
  sentMessages: number;
}

const noQueue = (): Queue => ({ posted: [], completed: 0, hasFailed: false });
const noPair = (): Pair => ({ send: noQueue(), receive: noQueue(), filled: 0, sentMessages: 0 });

export class Bystander {
  /** Words for contradictions. */
  readonly findings: string[] = [];
  /** Completions that arrived for posted requests. */
  completionCount = 0;
  readonly #life: GuestLife;
  readonly #random: Random;
  /** True if its CQ was created, and has changed since only by completions. */
  #hasCq = false;
  /** True if all its objects were created. */
  #isThere = false;
  #qps: readonly Pair[] = [noPair(), noPair()];
  /** Entries of the CQ that were taken. */
  #consumed = 0;
  /** The expected CQ, and the bytes that only the guest has written. */
  #cqImage: Uint8Array = new Uint8Array(pageBytes);
  readonly #ownImage = new Uint8Array(memoryBytes);

  constructor(life: GuestLife, random: Random) {
    this.#life = life;
    this.#random = random;
    this.#begin();
  }

  /** Must be called when the guest's memory is mapped, and again when all of it was unmapped. */
  map(): void {
    this.#life.map(farAddress, memoryBytes, memoryBegin);
  }

  /** All of the guest's memory was taken back. */
  unmapped(): void {
    this.#life.ram.unmapped(memoryBegin, memoryBytes);
  }

  /** Creates its objects at a device that a driver has just brought up, as far as a CQ at least. */
  create(lid: number): void {
    this.judge();
    const sizes = abi.queryDevCap.decode(this.#life.command('QUERY_DEV_CAP', { outBytes: 256 }).outBox);
    const places = [
      icmBase('qpc') + firstQpn * sizes.qpcEntryBytes,
      icmBase('cqc') + cqn * sizes.cqcEntryBytes,
      icmBase('dmpt') + mptIndex * sizes.dmptEntryBytes,
      icmBase('mtt') + firstMtt * abi.mttEntryBytes,
    ];
    const maps = places.map((place, at) =>
      abi.mapEntry.encode({
        icmAddress: BigInt(place - (place % pageBytes)),
        physicalAddress: BigInt(farAddress + (page.icm + at) * pageBytes),
        logSize4k: 0,
      }),
    );
    // If the pages are mapped already, the device still has the earlier objects: they stay in use.
    if (!this.#does('MAP_ICM', maps.length, Buffer.concat(maps))) return;
    this.#begin();
    const mttPage = (page.icm + 3) * pageBytes + ((firstMtt * abi.mttEntryBytes) % pageBytes);
    for (let at = 0; at < 3; at++) {
      const pageAddress = BigInt(bystandersCq + at * pageBytes);
      this.#put(mttPage + at * abi.mttEntryBytes, abi.mttEntry.encode({ pageAddress, present: 1 }));
    }
    this.#isThere = this.#createCq() && this.#createRegion() && [0, 1].every((qp) => this.#connect(qp, lid));
  }

  /** Posts something, unless it has enough under way. */
  act(): void {
    this.judge();
    if (!this.#isThere) return;
    const random = this.#random;
    for (let left = random.between(1, 3); left > 0; left--) {
      const outstanding = this.#qps.reduce(
        (sum, { send, receive }) =>
          sum + send.posted.length - send.completed + receive.posted.length - receive.completed,
        0,
      );
      if (outstanding + 2 > outstandingMax) return;
      const qp = random.below(2);
      if (random.chance(0.5)) {
        this.#postReceive(peerOf(qp));
        this.#send(qp, abi.WqeOpcode.SEND);
      } else this.#send(qp, abi.WqeOpcode.RDMA_WRITE);
    }
  }

  /** Takes the completions that have arrived, and checks that nothing else has changed. */
  judge(): void {
    if (!this.#hasCq || this.findings.length > 0) return;
    const found = this.#readCq();
    // Without bus mastering or memory the device loses a write: later entries arrive all the same.
    for (let ahead = 0; ahead < entries && this.findings.length === 0; ahead++) {
      const position = this.#consumed + ahead;
      const at = (position % entries) * abi.cqeBytes;
      const entry = found.subarray(at, at + abi.cqeBytes);
      if (Buffer.compare(entry, this.#cqImage.subarray(at, at + abi.cqeBytes)) === 0) continue;
      if (abi.cqe.fields.owner.get(viewOf(entry), 0) !== ((position / entries) & 1)) continue;
      this.#take(entry);
      this.#cqImage.set(entry, at);
      this.#consumed = position + 1;
      ahead = -1;
    }
    if (this.findings.length > 0) return;
    const different = found.findIndex((byte, index) => byte !== this.#cqImage[index]);
    if (different >= 0)
      this.#find(
        `wrote to byte ${different} of a CQ what is no completion, where entry ${this.#consumed % entries} comes next`,
      );
    this.#tellConsumed();
    for (const own of ownPages) {
      const now = this.#life.ram.read(memoryBegin + own * pageBytes, pageBytes);
      const kept = this.#ownImage.subarray(own * pageBytes, (own + 1) * pageBytes);
      if (Buffer.compare(now, kept) !== 0) this.#find(`changed page ${own}, which only the guest writes`);
    }
  }

  #readCq(): Uint8Array {
    return this.#life.ram.read(memoryBegin + page.cq * pageBytes, pageBytes);
  }

  #take(entry: Uint8Array): void {
    const { qpn, isSend, opcode, wqeCounter } = abi.cqe.decode(entry);
    const text = `completion ${Buffer.from(entry).toString('hex')}`;
    const pair = this.#qps[qpn - firstQpn];
    if (pair === undefined) {
      this.#find(`${text} of a QP that is not the CQ's`);
      return;
    }
    const queue = isSend === 1 ? pair.send : pair.receive;
    const isError = opcode === abi.CqeOpcode.ERROR;
    const number = queue.completed + ((wqeCounter - queue.completed) & 0xffff);
    if (queue.completed >= queue.posted.length) this.#find(`${text} of nothing that was posted`);
    else if (number >= queue.posted.length)
      this.#find(
        `${text}, where the numbers from ${queue.completed} to ${queue.posted.length - 1} are under way`,
      );
    else if (!isError && opcode !== queue.posted[number])
      this.#find(`${text} of another operation than the one that was posted`);
    else if (!isError && queue.hasFailed) this.#find(`${text}: success after an error`);
    if (isError) queue.hasFailed = true;
    else if (isSend === 0 && ++pair.filled > this.#qps[1 - (qpn - firstQpn)]!.sentMessages)
      this.#find(`${text} of a message that was never sent`);
    queue.completed = number + 1;
    this.completionCount++;
  }

  #find(text: string): void {
    this.findings.push(`the device ${text}`);
  }

  // ---- its objects ----

  /** Prepares its memory before the device gets it. */
  #begin(): void {
    this.#isThere = false;
    this.#qps = [noPair(), noPair()];
    this.#consumed = 0;
    this.#put(page.mailbox * pageBytes, new Uint8Array(pageBytes));
    this.#put(page.cq * pageBytes, new Uint8Array(pageBytes).fill(0xff));
    this.#cqImage = new Uint8Array(pageBytes).fill(0xff);
    this.#put(page.queues * pageBytes, new Uint8Array(2 * pageBytes).fill(0xff));
    this.#put(page.records * pageBytes, new Uint8Array(pageBytes));
    this.#put(
      page.source * pageBytes,
      Uint8Array.from({ length: pageBytes }, (_, at) => (at * 13) & 0xff),
    );
    this.#put(page.icm * pageBytes, new Uint8Array(4 * pageBytes));
  }

  #createCq(): boolean {
    const context = abi.cqc.encode({
      logEntries: logQueue,
      uarPage,
      eqn,
      mttAddress: firstMtt * abi.mttEntryBytes,
      doorbellRecordAddress: BigInt(farAddress + page.records * pageBytes),
    });
    // The device takes ownership of all entries. If this was not observed to end, their state is unknown.
    this.#hasCq = false;
    if (!this.#does('SW2HW_CQ', cqn, context)) return false;
    this.#hasCq = true;
    this.#cqImage = this.#readCq();
    return true;
  }

  #createRegion(): boolean {
    const context = abi.mpt.encode({
      isRegion: 1,
      isPhysical: 1,
      remoteWriteEnabled: 1,
      localWriteEnabled: 1,
      localReadEnabled: 1,
      keyIndexForm: abi.indexFormOfKey(key),
      pd,
      startAddress: BigInt(farAddress + page.source * pageBytes),
      lengthBytes: BigInt(2 * pageBytes),
    });
    return this.#does('SW2HW_MPT', mptIndex, context);
  }

  #connect(qp: number, lid: number): boolean {
    const contexts = contextsToRts(
      {
        ...{ localQpn: firstQpn + qp, pd, sendCqn: cqn, receiveCqn: cqn, remoteWriteEnabled: 1 },
        doorbellRecordAddress: BigInt(recordOf(qp)),
        mttAddress: (firstMtt + 1 + qp) * abi.mttEntryBytes,
      },
      {
        ...{ logMaxMessage: 20, remoteQpn: firstQpn + peerOf(qp), nextReceivePsn: 0x5_2a00 + qp },
        primaryPath: pathTo(lid),
      },
      { nextSendPsn: 0x5_2a00 + peerOf(qp) },
    );
    return contexts.every(([name, context]) =>
      this.#does(name, firstQpn + qp, abi.qpMailbox.encode({ context })),
    );
  }

  /** A command whose mailbox lies in its own memory; whether it succeeded. */
  #does(name: abi.CommandName, inputModifier: number, inBox: Uint8Array): boolean {
    this.#put(page.mailbox * pageBytes, inBox);
    const inParam = farAddress + page.mailbox * pageBytes;
    return this.#life.statusOf(name, { inputModifier, inParam }) === abi.CommandStatus.OK;
  }

  // ---- its work ----

  #postReceive(qp: number): void {
    const { receive } = this.#qps[qp]!;
    const at = receive.posted.length % entries;
    const pointer = abi.dataPointer.encode({ byteCount: messageBytes, lkey: key, address: this.#target() });
    this.#put((page.queues + qp) * pageBytes + receivesBegin + 16 * at, pointer);
    receive.posted.push(abi.ReceiveOpcode.SEND);
    this.#put(recordOf(qp) - farAddress, word32(receive.posted.length & 0xffff));
  }

  #send(qp: number, opcode: typeof abi.WqeOpcode.SEND | typeof abi.WqeOpcode.RDMA_WRITE): void {
    const pair = this.#qps[qp]!;
    const index = pair.send.posted.length;
    const source = farAddress + page.source * pageBytes + this.#random.below(pageBytes - messageBytes);
    const segments = [
      ...(opcode === abi.WqeOpcode.SEND
        ? []
        : [abi.remoteAddressSegment.encode({ address: this.#target(), rkey: key })]),
      abi.dataPointer.encode({
        byteCount: this.#random.between(1, messageBytes),
        lkey: key,
        address: BigInt(source),
      }),
    ];
    const control = abi.controlSegment.encode({
      owner: (index / entries) & 1,
      opcode,
      ds: 1 + segments.length,
      completion: abi.completionRequested,
    });
    this.#put(
      (page.queues + qp) * pageBytes + (index % entries) * wqeBytes,
      Buffer.concat([control, ...segments]),
    );
    pair.send.posted.push(opcode);
    if (opcode === abi.WqeOpcode.SEND) pair.sentMessages++;
    this.#life.client.postLater(REGION_BAR2, abi.sendDoorbellOffset(uarPage), word32((firstQpn + qp) << 8));
  }

  #target(): bigint {
    return BigInt(farAddress + page.target * pageBytes + this.#random.below(pageBytes - messageBytes));
  }

  #tellConsumed(): void {
    this.#put(page.records * pageBytes, word32(this.#consumed & 0xff_ffff));
  }

  /** Writes into its memory, at an offset from its beginning. */
  #put(offset: number, bytes: Uint8Array): void {
    this.#life.put(memoryBegin + offset, bytes);
    this.#ownImage.set(bytes, offset);
  }
}

/** Doorbell record of a QP's receives, as the device finds it; the CQ's is the first. */
const recordOf = (qp: number): number => farAddress + page.records * pageBytes + 64 + 8 * qp;
