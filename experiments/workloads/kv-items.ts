/**
 * Self-describing keys and values, so that a receiving client can check whether a value belongs to its key and which
 * client wrote it; and the part of the items that one server thread keeps.
 *
 *     key     word 0: the item's number, scrambled one to one; the other bytes follow from it; the last is never zero
 *     value   word 0: its stamp, 0 at first, then client and number of the PUT; the other bytes follow from item and stamp
 */
import { InvariantError, mask24 } from '../../base/index.ts';
import type { ProgramMemory } from '../../machine/index.ts';
import { WorkFailedError } from './completion-poller.ts';
import type { KvPlan } from './kv-plan.ts';

const scatter = 0x9e37_79b1;
const stampBytes = 4;

/** A word that mixes the bits of both (the finalizer of MurmurHash3). */
function mixed(left: number, right: number): number {
  let word = Math.imul(left ^ Math.imul(right, 0x85eb_ca6b), 0xc2b2_ae35);
  word ^= word >>> 16;
  word = Math.imul(word, 0x27d4_eb2f);
  return word ^ (word >>> 15);
}

/** Byte `at` of the sequence derived from two words. */
const byteOf = (left: number, right: number, at: number): number =>
  (mixed(left, right + (at >>> 2)) >>> ((at & 3) * 8)) & 0xff;

/** The first word of an item's key. */
const keyWordOf = (item: number): number => Math.imul(item + 1, scatter) >>> 0;

/** The server thread that has the item. */
export const serverOfItem = ({ servers }: KvPlan, item: number): number => keyWordOf(item) % servers;

/** Writes the key of an item. */
export function writeKey(target: Uint8Array, from: number, { keyBytes }: KvPlan, item: number): void {
  const word = keyWordOf(item);
  for (let at = 0; at < keyBytes; at++)
    target[from + at] = at < 4 ? (word >>> (at * 8)) & 0xff : byteOf(word, scatter, at);
  target[from + keyBytes - 1]! |= 1;
}

/** Writes the value with this stamp of an item. */
export function writeValue(
  target: Uint8Array,
  from: number,
  { valueBytes }: KvPlan,
  item: number,
  stamp: number,
): void {
  for (let at = 0; at < valueBytes; at++)
    target[from + at] = at < stampBytes ? (stamp >>> (at * 8)) & 0xff : byteOf(item, stamp, at);
}

/**
 * The stamp of a value.
 * @returns undefined if these bytes were never a value of the item
 */
function stampOf(bytes: Uint8Array, from: number, { valueBytes }: KvPlan, item: number): number | undefined {
  const stamp = wordAt(bytes, from);
  for (let at = stampBytes; at < valueBytes; at++)
    if (bytes[from + at] !== byteOf(item, stamp, at)) return undefined;
  return stamp;
}

const wordAt = (bytes: Uint8Array, at: number): number =>
  (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;

/** Clients count from 0; the PUTs of each from 1. */
export const putStamp = (client: number, number: number): number =>
  (((client + 1) << 24) | (number & mask24)) >>> 0;

/** The client that wrote a value; -1 for an initial value. */
const clientOfStamp = (stamp: number): number => (stamp >>> 24) - 1;

/** A client's GET, and its last PUT of the key at the time: 0 for none. */
export interface ExpectedValue {
  readonly client: number;
  readonly item: number;
  readonly ownStamp: number;
}

/** @throws WorkFailedError for bytes that are no value of the key, and for a value that the client itself has replaced earlier */
export function checkAnswer(
  bytes: Uint8Array,
  plan: KvPlan,
  { client, item, ownStamp }: ExpectedValue,
): void {
  const stamp = stampOf(bytes, 0, plan, item);
  if (stamp === undefined) throw new WorkFailedError(`the answer to GET ${item} is no value of that key`);
  const writer = clientOfStamp(stamp);
  if (stamp !== ownStamp && (writer === client || writer < 0))
    throw new WorkFailedError(
      `the answer to GET ${item} is older than the last PUT of client ${client}: ${stamp}, not ${ownStamp}`,
    );
}

/** Marks an empty index entry. */
const emptyPlace = -1;

/** The items of one server thread: keys and values in its memory, found through an index with linear probing. */
export class ItemTable {
  readonly #plan: KvPlan;
  readonly #memory: ProgramMemory;
  readonly #address: number;
  readonly #itemBytes: number;
  readonly #places: Int32Array;
  readonly #key: Uint8Array<ArrayBuffer>;

  /** Maps the memory and inserts every item of this thread. */
  constructor(plan: KvPlan, memory: ProgramMemory, server: number) {
    const items = Array.from({ length: plan.items }, (_, item) => item);
    const own = items.filter((item) => serverOfItem(plan, item) === server);
    this.#plan = plan;
    this.#memory = memory;
    this.#itemBytes = Math.ceil((plan.keyBytes + plan.valueBytes) / 8) * 8;
    this.#key = new Uint8Array(plan.keyBytes);
    this.#places = new Int32Array(2 ** Math.ceil(Math.log2(2 * own.length + 1))).fill(emptyPlace);
    this.#address = memory.map(Math.max(1, own.length) * this.#itemBytes);
    const bytes = new Uint8Array(this.#itemBytes);
    for (const [place, item] of own.entries()) {
      writeKey(bytes, 0, plan, item);
      writeValue(bytes, plan.keyBytes, plan, item, 0);
      memory.write(this.#addressOf(place), bytes);
      let at = this.#slotOf(bytes, 0);
      while (this.#places[at] !== emptyPlace) at = (at + 1) & (this.#places.length - 1);
      this.#places[at] = place;
    }
  }

  /**
   * Address of this key's value.
   * @throws InvariantError for an unknown key
   */
  valueAddress(bytes: Uint8Array, from: number): number {
    const mask = this.#places.length - 1;
    for (let at = this.#slotOf(bytes, from); this.#places[at] !== emptyPlace; at = (at + 1) & mask) {
      const address = this.#addressOf(this.#places[at]!);
      this.#memory.readInto(address, this.#key);
      if (this.#key.every((byte, index) => byte === bytes[from + index])) return address + this.#key.length;
    }
    const text = Array.from(bytes.subarray(from, from + this.#plan.keyBytes)).join(' ');
    throw new InvariantError('key of a request', text, 'the key of an item');
  }

  #addressOf(place: number): number {
    return this.#address + place * this.#itemBytes;
  }

  #slotOf(bytes: Uint8Array, from: number): number {
    return mixed(wordAt(bytes, from), 0) & (this.#places.length - 1);
  }
}
