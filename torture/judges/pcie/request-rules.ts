/** Requests and their completions: sizes and boundaries (2.2.2, 2.2.7), tags (2.2.6.2), the order and cuts of completions (2.3.1.1). */
import type { LinkPacket } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import {
  type Accuse,
  type Direction,
  dataDwordsOf,
  dwordBytes,
  dwordsOf,
  type LinkRule,
  pageBytes,
  textOf,
} from './link-facts.ts';

/** Device Control, from the PCI Express capability on (7.8.4). */
const deviceControlOffset = 0x08;

/** Sizes against MPS and MRRS as software has set them, and addresses against the 4 KiB boundary. */
export class SizeRule implements LinkRule {
  readonly #accuse: Accuse;
  readonly #deviceControl: number;
  readonly #linkPayloadBytes: number;
  #maxPayloadBytes = 128;
  #maxReadBytes = 512;

  constructor({ machine, pcie, nic }: MachineConfig, accuse: Accuse) {
    this.#accuse = accuse;
    const { expressOffset } = machine.adapter === 'nic' ? nic.function : pcie.function;
    this.#deviceControl = expressOffset + deviceControlOffset;
    this.#linkPayloadBytes = pcie.link.maxPayloadBytes;
  }

  see(packet: LinkPacket, direction: Direction): void {
    const { kind, address, lengthBytes } = packet;
    if (kind === 'CfgWr0' && address === this.#deviceControl) this.#take(packet);
    const mostBytes = direction === 'toHost' ? this.#maxPayloadBytes : this.#linkPayloadBytes;
    if (dataDwordsOf(packet) * dwordBytes > Math.max(mostBytes, dwordBytes))
      this.#accuse(`more than MPS, ${mostBytes} bytes: ${textOf(packet)}`);
    if (kind !== 'MRd' && kind !== 'MWr') return;
    if ((address % pageBytes) + lengthBytes > pageBytes) this.#accuse(`crosses 4 KiB: ${textOf(packet)}`);
    if (kind === 'MRd' && direction === 'toHost' && dwordsOf(packet) * dwordBytes > this.#maxReadBytes)
      this.#accuse(`more than MRRS, ${this.#maxReadBytes} bytes: ${textOf(packet)}`);
  }

  #take({ data, lengthBytes }: LinkPacket): void {
    if (lengthBytes < 2) return;
    // TLPs in flight follow the earlier setting: a larger one holds at once, a smaller one does not occur in stories.
    this.#maxPayloadBytes = 128 << ((data >>> 5) & 7);
    this.#maxReadBytes = 128 << ((data >>> 12) & 7);
  }
}

interface Outstanding {
  readonly request: LinkPacket;
  /** Address of the next byte to arrive, and the number of bytes. */
  address: number;
  remainingBytes: number;
}

/** Each completion continues its request, and each request has a tag of its own while it is not answered. */
export class CompletionRule implements LinkRule {
  readonly #accuse: Accuse;
  readonly #boundaryBytes: number;
  readonly #timeoutPs: number;
  readonly #outstanding = new Map<string, Outstanding>();

  /**
   * @param timeoutPs after which a device abandons a read; Infinity if none is lost
   */
  constructor({ pcie }: MachineConfig, timeoutPs: number, accuse: Accuse) {
    this.#accuse = accuse;
    this.#boundaryBytes = pcie.rootComplex.readCompletionBoundaryBytes;
    this.#timeoutPs = timeoutPs;
  }

  see(packet: LinkPacket, direction: Direction): void {
    const { kind } = packet;
    if (kind === 'MRd' || kind === 'CfgRd0' || kind === 'CfgWr0') this.#begin(packet, direction);
    else if (kind === 'CplD' || kind === 'Cpl') this.#continue(packet, direction);
  }

  #begin(request: LinkPacket, direction: Direction): void {
    const key = keyOf(request, direction);
    const earlier = this.#outstanding.get(key);
    if (earlier !== undefined && request.atPs - earlier.request.atPs < this.#timeoutPs)
      this.#accuse(`its tag is in use since ${earlier.request.atPs} ps: ${textOf(request)}`);
    const remainingBytes = request.kind === 'MRd' ? Math.max(1, request.lengthBytes) : 4;
    this.#outstanding.set(key, { request, address: request.address, remainingBytes });
  }

  #continue(completion: LinkPacket, direction: Direction): void {
    const requester: Direction = direction === 'toHost' ? 'toDevice' : 'toHost';
    const key = keyOf(completion, requester);
    const open = this.#outstanding.get(key);
    if (open === undefined) return this.#accuse(`answers no request: ${textOf(completion)}`);
    const { request, address, remainingBytes } = open;
    if (completion.kind === 'Cpl' || request.kind !== 'MRd') {
      this.#outstanding.delete(key);
      return;
    }
    const { lengthBytes, byteCount } = completion;
    const isOrderly = byteCount === remainingBytes && completion.address === address % 128;
    if (!isOrderly || lengthBytes > remainingBytes)
      this.#accuse(
        `byte count ${byteCount} where ${remainingBytes} bytes from 0x${address.toString(16)} on are to come: ${textOf(completion)}`,
      );
    open.address += lengthBytes;
    open.remainingBytes -= lengthBytes;
    if (open.remainingBytes <= 0) this.#outstanding.delete(key);
    else if (open.address % this.#boundaryBytes !== 0)
      this.#accuse(`ends at no multiple of ${this.#boundaryBytes} (RCB): ${textOf(completion)}`);
  }
}

const keyOf = ({ requesterId, tag }: LinkPacket, requester: Direction): string =>
  `${requester} ${requesterId} ${tag}`;
