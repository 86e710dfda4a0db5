/**
 * A segment of TCP as a stranger on the cable reads it from its frame: addresses, fields, options, payload, and what contradicts itself.
 *
 *     MACs 12 │ [ 8100, tag ] │ type │ IPv4 or IPv6 │ TCP, options │ payload │ [ padding ]
 *
 * Sources: IEEE 802.3, 3.2; RFC 791, 3.1; RFC 8200, 3 and 8.1; RFC 9293, 3.1; RFC 7323, 2.2 and 3.2; RFC 2018, 2 and 3.
 */

export interface Segment {
  /** Address and port of the sender, and of the destination, as hexadecimal digits. */
  readonly from: string;
  readonly to: string;
  readonly sequence: number;
  readonly acknowledgement: number;
  readonly isSyn: boolean;
  readonly isFin: boolean;
  readonly isReset: boolean;
  readonly isAck: boolean;
  /** As the header has it. */
  readonly window: number;
  /** Options; undefined if absent. */
  readonly maximumSegment: number | undefined;
  readonly windowScale: number | undefined;
  readonly isSackPermitted: boolean;
  readonly sackBlocks: readonly (readonly [left: number, right: number])[];
  readonly timestamps: { readonly value: number; readonly echo: number } | undefined;
  readonly optionBytes: number;
  readonly payload: Uint8Array;
  /** Bytes of the IP packet. */
  readonly packetBytes: number;
  readonly wrong: readonly string[];
}

const ethernetBytes = 14;
const tagType = 0x8100;
const protocolTcp = 6;
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Place of the network header, and its version; undefined of another type. */
function networkOf(view: DataView): { readonly at: number; readonly version: 4 | 6 } | undefined {
  const isTagged = view.getUint16(12) === tagType;
  const at = isTagged ? ethernetBytes + 4 : ethernetBytes;
  if (view.byteLength < at + 20) return undefined;
  const type = view.getUint16(at - 2);
  if (type === 0x0800) return { at, version: 4 };
  return type === 0x86dd && view.byteLength >= at + 40 ? { at, version: 6 } : undefined;
}

/** The sum of 16-bit words in one's complement (RFC 1071); all ones over bytes with their right checksum. */
function sumOf(bytes: Uint8Array, start: number): number {
  let sum = start;
  for (let at = 0; at < bytes.length; at += 2) sum += bytes[at]! * 256 + (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum % 0x1_0000) + Math.floor(sum / 0x1_0000);
  return sum;
}

/** Undefined of a frame that carries no TCP, or is cut. */
export function segmentIn(bytes: Uint8Array): Segment | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const network = networkOf(view);
  if (network === undefined) return undefined;
  const { at, version } = network;
  const headerBytes = version === 4 ? (bytes[at]! & 0xf) * 4 : 40;
  const protocol = bytes[at + (version === 4 ? 9 : 6)];
  const packetBytes = version === 4 ? view.getUint16(at + 2) : 40 + view.getUint16(at + 4);
  const [tcp, end] = [at + headerBytes, at + packetBytes];
  if (protocol !== protocolTcp || tcp + 20 > end || end > bytes.length) return undefined;
  const dataAt = tcp + (bytes[tcp + 12]! >> 4) * 4;
  if (dataAt < tcp + 20 || dataAt > end) return undefined;
  const wrong: string[] = [];
  if (bytes[at]! >> 4 !== version) wrong.push(`version ${bytes[at]! >> 4} of IP`);
  if (version === 4) {
    if (sumOf(bytes.subarray(at, tcp), 0) !== 0xffff) wrong.push('a wrong checksum of IPv4');
    if ((view.getUint16(at + 6) & 0x3fff) !== 0) wrong.push('a fragment');
  }
  if (bytes[at + (version === 4 ? 8 : 7)] === 0) wrong.push('no hop left');
  const addresses = bytes.subarray(at + (version === 4 ? 12 : 8), at + (version === 4 ? 20 : 40));
  // Pseudo header: both addresses, the protocol, the length of the segment.
  const pseudo = sumOf(addresses, protocolTcp + (end - tcp));
  if (sumOf(bytes.subarray(tcp, end), pseudo) !== 0xffff) wrong.push('a wrong checksum of TCP');
  if (bytes.subarray(end).some((byte) => byte !== 0)) wrong.push('padding other than zeros');
  const half = addresses.length / 2;
  const flags = bytes[tcp + 13]!;
  if ((flags & 0xe0) !== 0 || (bytes[tcp + 12]! & 0xf) !== 0) wrong.push('reserved bits of the header');
  const options = optionsOf(bytes.subarray(tcp + 20, dataAt), wrong);
  return {
    from: `${hexOf(addresses.subarray(0, half))} ${view.getUint16(tcp)}`,
    to: `${hexOf(addresses.subarray(half))} ${view.getUint16(tcp + 2)}`,
    sequence: view.getUint32(tcp + 4),
    acknowledgement: view.getUint32(tcp + 8),
    isFin: (flags & 1) !== 0,
    isSyn: (flags & 2) !== 0,
    isReset: (flags & 4) !== 0,
    isAck: (flags & 16) !== 0,
    window: view.getUint16(tcp + 14),
    ...options,
    optionBytes: dataAt - tcp - 20,
    payload: bytes.subarray(dataAt, end),
    packetBytes,
    wrong,
  };
}

type Options = Pick<
  Segment,
  'maximumSegment' | 'windowScale' | 'isSackPermitted' | 'sackBlocks' | 'timestamps'
>;

/** Bytes of the options that have one length. */
const optionBytes: Readonly<Record<number, number>> = { 2: 4, 3: 3, 4: 2, 8: 10 };

function optionsOf(bytes: Uint8Array, wrong: string[]): Options {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const sackBlocks: [number, number][] = [];
  let options: Options = {
    maximumSegment: undefined,
    windowScale: undefined,
    isSackPermitted: false,
    sackBlocks,
    timestamps: undefined,
  };
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const kind = bytes[at]!;
    if (kind === 1) {
      at++;
      continue;
    }
    const length = bytes[at + 1] ?? 0;
    const isBlocks = kind === 5 && length >= 10 && (length - 2) % 8 === 0;
    if (at + length > bytes.length || !(isBlocks || optionBytes[kind] === length)) {
      wrong.push(`option ${kind} of ${length} bytes`);
      break;
    }
    if (kind === 2) options = { ...options, maximumSegment: view.getUint16(at + 2) };
    if (kind === 3) options = { ...options, windowScale: bytes[at + 2]! };
    if (kind === 4) options = { ...options, isSackPermitted: true };
    for (let block = at + 2; isBlocks && block < at + length; block += 8)
      sackBlocks.push([view.getUint32(block), view.getUint32(block + 4)]);
    if (kind === 8)
      options = { ...options, timestamps: { value: view.getUint32(at + 2), echo: view.getUint32(at + 6) } };
    at += length;
  }
  return options;
}
