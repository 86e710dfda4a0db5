/**
 * A user's access to the translator. It remembers the user's last translation while neither cache has changed: most
 * accesses are to the page of the previous one. That saves the lookups and checks, whose results it keeps, without any
 * visible difference: lines are touched as by a whole translation.
 *
 * A user calls {@link used} or {@link usedBuffer} once when it has used a translation, however often it had to retry; a
 * miss is counted once for each wait. So uses minus misses are uses that waited for nothing.
 */

import type { VirtualAddress, Wide } from '../../../base/index.ts';
import type { QueuePair, SetAssociativeDirectory } from '../objects/index.ts';
import { TRANSLATED, type Translation } from './translation.ts';
import type { Translator } from './translator.ts';

/** Value instead of a line of the MTT: the region has physical addresses. */
const NO_LINE = -1;

export class TranslationPort {
  readonly number: number;
  /** The last request: key, protection domain, top of the address, rights. No key equals NaN. */
  key = Number.NaN;
  pd = 0;
  addressTop = 0;
  rights = 0;
  /** Lines that were used; no MTT line for a region of physical addresses. */
  mptLine = NO_LINE;
  mttLine = NO_LINE;
  /** The part of the page that belongs to the region, and the end of the region: virtual addresses, below that top. */
  firstByte: Wide = 0;
  pageEnd: Wide = 0;
  regionEnd: Wide = 0;
  /** Distance from a virtual address of the page to the physical one. */
  distance: Wide = 0;
  /** Translations that were made use of, and those that had to be waited for, of either cache. */
  mptUses = 0;
  mttUses = 0;
  mptMisses = 0;
  mttMisses = 0;
  readonly #translator: Translator;
  readonly #mptDirectory: SetAssociativeDirectory;
  readonly #mttDirectory: SetAssociativeDirectory;

  constructor(
    translator: Translator,
    number: number,
    mptDirectory: SetAssociativeDirectory,
    mttDirectory: SetAssociativeDirectory,
  ) {
    this.#translator = translator;
    this.number = number;
    this.#mptDirectory = mptDirectory;
    this.#mttDirectory = mttDirectory;
  }

  /** Begins another translation, by this line of the MPT: the last one is forgotten. */
  turnTo(mptLine: number): void {
    this.forget();
    this.mptLine = mptLine;
  }

  /** Forgets the last translation. */
  forget(): void {
    this.key = Number.NaN;
  }

  /** The user has made use of the last translation by key, or by the place in a buffer. */
  used(): void {
    this.mptUses++;
    if (this.mttLine !== NO_LINE) this.mttUses++;
  }

  usedBuffer(): void {
    this.mttUses++;
  }

  /**
   * Translates the first part of [address, address + lengthBytes) under `key`, lengthBytes >= 1.
   * @param addressTop bits 63 to 52 of the address: see base/address.ts
   * @returns {@link TRANSLATED} with the result in the translator's fields, PENDING, or the error
   */
  translate(
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    const translator = this.#translator;
    const { pageEnd } = this;
    if (
      key !== this.key ||
      pd !== this.pd ||
      addressTop !== this.addressTop ||
      rights !== this.rights ||
      address < this.firstByte ||
      address >= pageEnd ||
      address + lengthBytes > this.regionEnd
    ) {
      return translator.translateWhole(this, key, pd, address, addressTop, lengthBytes, rights, pair);
    }
    this.#mptDirectory.touch(this.mptLine);
    if (this.mttLine !== NO_LINE) this.#mttDirectory.touch(this.mttLine);
    const rest = pageEnd - address;
    translator.physicalAddress = address + this.distance;
    translator.contiguousBytes = lengthBytes < rest ? lengthBytes : rest;
    return TRANSLATED;
  }

  /**
   * Checks key, rights and bounds of an access like {@link translate}, but looks up no page.
   * @returns {@link TRANSLATED} without a result, PENDING, or the error
   */
  check(
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    return this.#translator.checkKey(this, key, pd, address, addressTop, lengthBytes, rights, pair);
  }
}

/** Forgets the last translation of every port: a line of a cache may hold another entry. */
export function forgetLookups(ports: readonly Pick<TranslationPort, 'forget'>[]): void {
  for (const port of ports) port.forget();
}
