/**
 * The packet headers as lists of fields in transmission order, each with its width in bits. Offsets follow from the
 * widths.
 *
 * Sources: IEEE 802.3, 3.1.1 and 802.1Q, 9.6; RFC 791, 3.1; RFC 8200, 3; RFC 768; IBTA vol 1: LRH 7.7, GRH 8.3, BTH
 * 9.2, extended headers 9.3 and annexes A14 (XRC) and A17 (CNP). Masked atomics: docs/how-to/wire.md.
 */

type FieldList = readonly (readonly [name: string, bits: number])[];

const headers = {
  ETHERNET: [
    ['destination', 48],
    ['source', 48],
    ['type', 16],
  ],
  VLAN: [
    ['priority', 3],
    ['dropEligible', 1],
    ['vlan', 12],
    ['type', 16],
  ],
  IPV4: [
    ['versionAndLength', 8],
    ['differentiatedServices', 6],
    ['ecn', 2],
    ['totalLength', 16],
    ['identification', 16],
    ['fragment', 16],
    ['timeToLive', 8],
    ['protocol', 8],
    ['checksum', 16],
    ['source', 32],
    ['destination', 32],
  ],
  IPV6: [
    ['version', 4],
    ['differentiatedServices', 6],
    ['ecn', 2],
    ['flowLabel', 20],
    ['payloadLength', 16],
    ['nextHeader', 8],
    ['hopLimit', 8],
    ['source', 128],
    ['destination', 128],
  ],
  UDP: [
    ['sourcePort', 16],
    ['destinationPort', 16],
    ['length', 16],
    ['checksum', 16],
  ],
  LRH: [
    ['virtualLane', 4],
    ['linkVersion', 4],
    ['serviceLevel', 4],
    ['reserved1', 2],
    ['linkNextHeader', 2],
    ['destinationLid', 16],
    ['reserved4', 5],
    ['packetLength', 11],
    ['sourceLid', 16],
  ],
  GRH: [
    ['ipVersion', 4],
    ['trafficClass', 8],
    ['flowLabel', 20],
    ['payloadLength', 16],
    ['nextHeader', 8],
    ['hopLimit', 8],
    ['sourceGid', 128],
    ['destinationGid', 128],
  ],
  BTH: [
    ['opcode', 8],
    ['solicitedEvent', 1],
    ['migrationRequest', 1],
    ['padCount', 2],
    ['transportVersion', 4],
    ['partitionKey', 16],
    ['fecn', 1],
    ['becn', 1],
    ['reserved4', 6],
    ['destinationQp', 24],
    ['ackRequest', 1],
    ['reserved8', 7],
    ['psn', 24],
  ],
  RDETH: [
    ['reserved0', 8],
    ['endToEndContext', 24],
  ],
  DETH: [
    ['queueKey', 32],
    ['reserved4', 8],
    ['sourceQp', 24],
  ],
  XRCETH: [
    ['reserved0', 8],
    ['sharedReceiveQueue', 24],
  ],
  RETH: [
    ['virtualAddress', 64],
    ['rKey', 32],
    ['dmaLength', 32],
  ],
  AtomicETH: [
    ['virtualAddress', 64],
    ['rKey', 32],
    ['swapOrAdd', 64],
    ['compare', 64],
  ],
  MaskedAtomicETH: [
    ['virtualAddress', 64],
    ['rKey', 32],
    ['swap', 64],
    ['compare', 64],
    ['swapMask', 64],
    ['compareMask', 64],
  ],
  AETH: [
    ['syndrome', 8],
    ['messageSequenceNumber', 24],
  ],
  AtomicAckETH: [['originalData', 64]],
  ImmDt: [['immediate', 32]],
  IETH: [['rKey', 32]],
  CNP: [['reservedBytes', 128]],
} as const satisfies Record<string, FieldList>;

export type HeaderName = keyof typeof headers;

export const bytesOf = (name: HeaderName): number =>
  (headers[name] as FieldList).reduce((sum, [, bits]) => sum + bits, 0) / 8;

/** The fields of one header. Fields of more than 32 bits are hexadecimal digits. */
export interface HeaderFields {
  readonly name: HeaderName;
  /** Offset of its first byte. */
  readonly at: number;
  readonly numbers: Readonly<Record<string, number>>;
  readonly digits: Readonly<Record<string, string>>;
}

/** Reads the header at `at`. */
export function fieldsAt(bytes: Uint8Array, at: number, name: HeaderName): HeaderFields {
  const numbers: Record<string, number> = {};
  const digits: Record<string, string> = {};
  let bit = 8 * at;
  for (const [field, bits] of headers[name] as FieldList) {
    if (bits <= 32) numbers[field] = numberAt(bytes, bit, bits);
    else digits[field] = digitsAt(bytes, bit / 8, bits / 8);
    bit += bits;
  }
  return { name, at, numbers, digits };
}

/** Reads this many bits as a number; the offset counts bits. */
function numberAt(bytes: Uint8Array, from: number, bits: number): number {
  let value = 0;
  for (let bit = from; bit < from + bits; bit++)
    value = value * 2 + ((bytes[Math.floor(bit / 8)]! >> (7 - (bit % 8))) & 1);
  return value;
}

function digitsAt(bytes: Uint8Array, at: number, count: number): string {
  let text = '';
  for (const byte of bytes.subarray(at, at + count)) text += byte.toString(16).padStart(2, '0');
  return text;
}
