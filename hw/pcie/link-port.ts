/**
 * One end of a PCIe link: what an endpoint or a root complex sends TLPs through and gets them from.
 *
 *     sendMemoryWrite … ──► LinkTransmitter ──► channel ══► other end
 *     onReceive ◄────────── LinkReceiver ◄───── channel ◄══ other end
 *                  consume ──► UpdateFC, Ack ──► the transmitter's lanes
 *
 * When things happen inside is told in link-engine.ts.
 *
 * Listeners of {@link onSendSpace} may be called from within any call of this port: they only wake stages at an
 * edge after the current instant.
 */
import type { Clock } from '../../sim/clock.ts';
import type { CompletionSplit } from './completion-split.ts';
import type { DeviceRead } from './device-read.ts';
import type { PayloadCopier } from './link-copy.ts';
import { LinkEngine } from './link-engine.ts';
import { NO_LOANS, type PayloadLoans } from './payload-loans.ts';
import {
  COMPLETION,
  COMPLETION_DATA,
  CONFIG_READ,
  CONFIG_WRITE,
  DWORD_BYTES,
  descriptorOf,
  FLAG_LANDED,
  FLAG_LENT,
  FLAG_STATUS_SHIFT,
  headerBytesOf,
  MEMORY_READ,
  MEMORY_WRITE,
  MESSAGE,
  PAYLOAD_OFFSET,
  REQUEST_BOUNDARY_BYTES,
  SHORT_HEADER_BYTES,
  WORD_AUX,
  WORD_BYTE_COUNT,
  WORD_DATA,
} from './tlp.ts';

/** A completion carries the low seven bits of its first byte's address (2.2.9). */
const LOWER_ADDRESS_MASK = 0x7f;

export class PcieLinkPort extends LinkEngine {
  /** Bus, device and function that completions from here carry as completer. */
  completerId = 0;
  /** Place of the payload of the completion just placed. */
  payloadOffset = 0;
  /** What is lent to the other end, with which this one shares them. */
  loans: PayloadLoans = NO_LOANS;

  /** Writes `lengthBytes` (1 to MPS, not across 4 KiB) at `address`; lends them where {@link loans} can. */
  sendMemoryWrite(
    address: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    flags = 0,
  ): void {
    this.checkPayload(lengthBytes);
    const { transmitter, loans } = this;
    const isLent = loans.canLend(source, lengthBytes);
    const offset = this.place(
      transmitter.posted,
      MEMORY_WRITE,
      address,
      lengthBytes,
      isLent ? flags | FLAG_LENT : flags,
      descriptorOf(0, 0, trafficClass),
    );
    if (isLent) transmitter.target.refer(offset, sourceOffset, loans.lend());
    else transmitter.target.fill(offset, source, sourceOffset, lengthBytes);
    this.commit();
  }

  /**
   * Writes `count` times `lengthBytes` one behind the other, write n at edge `cycle` + n × `cycles` of `clock`, as far as they
   * are lent and leave at once. `lengthBytes` is a power of two and divides `address`. Nothing but this happens at this end
   * until the last of them.
   * @returns how many were sent, none if they need long headers; the caller goes on behind them
   */
  sendMemoryWrites(
    address: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    count: number,
    clock: Clock,
    cycle: number,
    cycles: number,
  ): number {
    const { transmitter, loans } = this;
    const isLong = headerBytesOf(MEMORY_WRITE, address + count * lengthBytes) !== SHORT_HEADER_BYTES;
    if (isLong || !loans.canLend(source, lengthBytes)) return 0;
    this.checkPayload(lengthBytes);
    const descriptor = descriptorOf(0, 0, trafficClass);
    const { posted, target } = transmitter;
    let sent = 0;
    for (; sent < count; sent++) {
      const offset = this.placeAt(clock.edgePs(cycle + sent * cycles), posted, MEMORY_WRITE, lengthBytes);
      if (offset < 0) break;
      target.describe(offset, address + sent * lengthBytes, lengthBytes, FLAG_LENT, descriptor);
      target.refer(offset, sourceOffset + sent * lengthBytes, loans.lend());
    }
    if (sent > 0) transmitter.countAll(posted, sent, sent * lengthBytes);
    return sent;
  }

  /** Requests `lengthBytes` (not across 4 KiB) at `address`. */
  sendMemoryRead(
    address: number,
    trafficClass: number,
    lengthBytes: number,
    tag: number,
    requesterId: number,
    flags = 0,
  ): void {
    const { transmitter } = this;
    this.place(
      transmitter.nonPosted,
      MEMORY_READ,
      address,
      lengthBytes,
      flags,
      descriptorOf(requesterId, tag, trafficClass),
    );
    this.commit();
  }

  /**
   * Answers a request with data.
   * @param byteCount bytes of the request still to come, these included
   * @param address of the first byte; the completion carries its low 7 bits
   */
  sendCompletionData(
    tag: number,
    requesterId: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    byteCount: number,
    address: number,
    flags = 0,
  ): void {
    const descriptor = descriptorOf(requesterId, tag, trafficClass);
    this.placeCompletionData(descriptor, lengthBytes, byteCount, address, flags);
    this.payloadTarget.copy(source, sourceOffset, this.payloadOffset, lengthBytes);
    this.commit();
  }

  /**
   * Like {@link sendCompletionData} for a sender that fetches the data itself: the caller at once puts them at
   * `payloadTarget.target[payloadOffset …]`, or with FLAG_LANDED where the read lands, and calls {@link commit}.
   */
  placeCompletionData(
    descriptor: number,
    lengthBytes: number,
    byteCount: number,
    address: number,
    flags = 0,
  ): void {
    this.checkPayload(lengthBytes);
    const { transmitter } = this;
    const lower = address & LOWER_ADDRESS_MASK;
    const offset = this.place(transmitter.completion, COMPLETION_DATA, lower, lengthBytes, flags, descriptor);
    transmitter.target.set(offset, WORD_BYTE_COUNT, byteCount);
    transmitter.target.set(offset, WORD_AUX, this.completerId);
    this.payloadOffset = offset + PAYLOAD_OFFSET;
  }

  /**
   * Answers a read at edge `cycle` of `clock` and at those after it, up to `last`, with data that have landed, as far as they
   * are whole dwords and leave at once. Nothing but this happens at this end meanwhile. `read` is brought up to date; the
   * books are by {@link countLanded}.
   * @returns how many completions were sent; the caller goes on behind them
   */
  sendLanded(read: DeviceRead, split: CompletionSplit, clock: Clock, cycle: number, last: number): number {
    const { transmitter, completerId } = this;
    const { descriptor, address, remainingBytes } = read;
    // It lies within a page: what is within is reckoned in integers.
    const start = address & (REQUEST_BOUNDARY_BYTES - 1);
    if (((start | remainingBytes) & (DWORD_BYTES - 1)) !== 0) return 0;
    let sentBytes = 0;
    let edge = cycle;
    for (; sentBytes < remainingBytes && edge <= last; edge++) {
      const at = start + sentBytes;
      const left = remainingBytes - sentBytes;
      const bytes = split.bytesOf(at, left);
      const offset = this.placeAt(clock.edgePs(edge), transmitter.completion, COMPLETION_DATA, bytes);
      if (offset < 0) break;
      const { target } = transmitter;
      target.describe(offset, at & LOWER_ADDRESS_MASK, bytes, FLAG_LANDED, descriptor);
      target.set(offset, WORD_BYTE_COUNT, left);
      target.set(offset, WORD_AUX, completerId);
      sentBytes += bytes;
    }
    read.address = address + sentBytes;
    read.remainingBytes = remainingBytes - sentBytes;
    return edge - cycle;
  }

  /** Enters completions in the books that {@link sendLanded} has sent. */
  countLanded(count: number, payloadBytes: number): void {
    this.transmitter.countAll(this.transmitter.completion, count, payloadBytes);
  }

  /** Where the payload of the completion just placed goes. */
  get payloadTarget(): PayloadCopier {
    return this.transmitter.target.copier;
  }

  /** Answers a request without data: a configuration write, or any request with a status other than success. */
  sendCompletion(
    tag: number,
    requesterId: number,
    trafficClass: number,
    status: number,
    byteCount = 4,
    address = 0,
    flags = 0,
  ): void {
    const { transmitter } = this;
    const sentFlags = flags | (status << FLAG_STATUS_SHIFT);
    const lower = address & LOWER_ADDRESS_MASK;
    const offset = this.place(
      transmitter.completion,
      COMPLETION,
      lower,
      0,
      sentFlags,
      descriptorOf(requesterId, tag, trafficClass),
    );
    transmitter.target.set(offset, WORD_BYTE_COUNT, byteCount);
    transmitter.target.set(offset, WORD_AUX, this.completerId);
    this.commit();
  }

  /** Reads 1 to 4 bytes of the target function's configuration space, within one dword. */
  sendConfigRead(
    targetId: number,
    register: number,
    lengthBytes: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
  ): void {
    const { transmitter } = this;
    const offset = this.place(
      transmitter.nonPosted,
      CONFIG_READ,
      register,
      lengthBytes,
      0,
      descriptorOf(requesterId, tag, trafficClass),
    );
    transmitter.target.set(offset, WORD_AUX, targetId);
    this.commit();
  }

  /** Writes 1 to 4 bytes, within one dword; `value` has the byte for `register` in its lowest bits. */
  sendConfigWrite(
    targetId: number,
    register: number,
    lengthBytes: number,
    value: number,
    trafficClass: number,
    tag: number,
    requesterId: number,
    flags = 0,
  ): void {
    const { transmitter } = this;
    const offset = this.place(
      transmitter.nonPosted,
      CONFIG_WRITE,
      register,
      lengthBytes,
      flags,
      descriptorOf(requesterId, tag, trafficClass),
    );
    transmitter.target.set(offset, WORD_DATA, value);
    transmitter.target.set(offset, WORD_AUX, targetId);
    this.commit();
  }

  /** Sends a message without data, such as Assert_INTA. */
  sendMessage(messageCode: number, trafficClass: number, requesterId: number, data = 0): void {
    const { transmitter } = this;
    const offset = this.place(
      transmitter.posted,
      MESSAGE,
      0,
      0,
      0,
      descriptorOf(requesterId, 0, trafficClass),
    );
    transmitter.target.set(offset, WORD_DATA, data);
    transmitter.target.set(offset, WORD_AUX, messageCode);
    this.commit();
  }
}
