/**
 * Receive-side scaling: selects the ring of a table by a hash of the frame's addresses and ports, or of its addresses
 * alone if the table does not include ports. A frame that matches none of the table's kinds goes to the default ring.
 *
 * Toeplitz follows Microsoft's specification, with the key of the table's context. No source defines the XOR hash: here
 * it is the XOR of the same bytes. Source of the context: interface sheet 5.1 (RSS QPs).
 */
import { rssContext, rssOffsetInQpc } from '../../../abi/index.ts';
import {
  hasPorts,
  IPV4_ADDRESS_BYTES,
  IPV4_ADDRESSES_PLACE,
  IPV6_ADDRESS_BYTES,
  IPV6_ADDRESSES_PLACE,
  isTcp,
  type PacketPlaces,
} from './frame-headers.ts';

const table = rssContext.fields;
const HASH_TOEPLITZ = 1;
const UDP_IPV6 = 1 << 0;
const UDP_IPV4 = 1 << 1;
const TCP_IPV6 = 1 << 2;
const IPV6 = 1 << 3;
const TCP_IPV4 = 1 << 4;
const IPV4 = 1 << 5;
const PORTS_BYTES = 4;

export class RingChoice {
  qpn = 0;
  /** Hash of the frame; 0 if nothing was hashed. */
  hash = 0;

  /** Chooses for the frame's packet, by the context of the table's QP at `qpcPlace`. */
  choose(view: DataView, qpcPlace: number, bytes: Uint8Array, packet: PacketPlaces | undefined): void {
    const at = qpcPlace + rssOffsetInQpc;
    const flags = table.flags.get(view, at);
    const kinds = packet === undefined ? undefined : kindsOf(packet);
    this.hash = 0;
    if (packet === undefined || kinds === undefined || (flags & (kinds.withPorts | kinds.addresses)) === 0) {
      this.qpn = table.defaultQpn.get(view, at);
      return;
    }
    const first = packet.network + (packet.isIpv4 ? IPV4_ADDRESSES_PLACE : IPV6_ADDRESSES_PLACE);
    const addressBytes = packet.isIpv4 ? IPV4_ADDRESS_BYTES : IPV6_ADDRESS_BYTES;
    const portBytes = (flags & kinds.withPorts) === 0 ? 0 : PORTS_BYTES;
    const key = table.hashFunction.get(view, at) === HASH_TOEPLITZ ? table.key.get(view, at) : undefined;
    const hash = new Hash(key);
    for (let byte = 0; byte < addressBytes; byte++) hash.add(bytes[first + byte]!);
    for (let byte = 0; byte < portBytes; byte++) hash.add(bytes[packet.transport + byte]!);
    this.hash = hash.value;
    this.qpn = table.baseQpn.get(view, at) + (hash.value & ((1 << table.logTableSize.get(view, at)) - 1));
  }
}

/** Returns the flags by which a table accepts the packet: with its ports, and by addresses alone. */
function kindsOf(packet: PacketPlaces): { readonly withPorts: number; readonly addresses: number } {
  const { isIpv4 } = packet;
  const addresses = isIpv4 ? IPV4 : IPV6;
  if (!hasPorts(packet)) return { withPorts: 0, addresses };
  if (isTcp(packet)) return { withPorts: isIpv4 ? TCP_IPV4 : TCP_IPV6, addresses };
  return { withPorts: isIpv4 ? UDP_IPV4 : UDP_IPV6, addresses };
}

class Hash {
  value = 0;
  readonly #key: Uint8Array | undefined;
  #place = 0;

  /**
   * @param key of Toeplitz, 4 bytes longer than the hashed data; without one: XOR
   */
  constructor(key: Uint8Array | undefined) {
    this.#key = key;
  }

  add(byte: number): void {
    const key = this.#key;
    const place = this.#place++;
    if (key === undefined) {
      this.value ^= byte << (8 * (3 - (place & 3)));
      return;
    }
    for (let bit = 0; bit < 8; bit++)
      if (((byte << bit) & 0x80) !== 0) this.value ^= windowOf(key, 8 * place + bit);
  }
}

/** The 32 bits of the key from this bit on. */
function windowOf(key: Uint8Array, firstBit: number): number {
  const byte = firstBit >> 3;
  const shift = firstBit & 7;
  const word = (key[byte]! << 24) | (key[byte + 1]! << 16) | (key[byte + 2]! << 8) | key[byte + 3]!;
  return shift === 0 ? word : (word << shift) | ((key[byte + 4] ?? 0) >>> (8 - shift));
}
