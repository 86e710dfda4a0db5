/**
 * Reads frames of TCP by the standards alone, for specs: shares no code with the engine. Sources: RFC 791, 8200, 9293, 1071; IEEE 802.3 and 802.1Q.
 */

export interface ReadFrame {
  readonly destination: string;
  readonly source: string;
  /** Control information; undefined: untagged. */
  readonly tag: number | undefined;
  readonly version: 4 | 6;
  readonly hopLimit: number;
  readonly trafficClass: number;
  readonly from: string;
  readonly to: string;
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly sequence: number;
  readonly acknowledgement: number;
  /** Letters of the flags that are set, of FSRPAUEC. */
  readonly flags: string;
  readonly window: number;
  /** Kind and value bytes of each option, no-operations left out. */
  readonly options: readonly (readonly number[])[];
  readonly payload: Uint8Array;
  /** Checksums that are wrong, and lengths that contradict each other. */
  readonly wrong: readonly string[];
}

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');

/** The ones' complement sum over 16-bit words, end-around carry after each (RFC 1071, 4.1 in the form of its section 2). */
function sumOf(...parts: readonly Uint8Array[]): number {
  const bytes = parts.flatMap((part) => [...part]);
  if (bytes.length % 2 === 1) bytes.push(0);
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) {
    sum += 0x100 * bytes[at]! + bytes[at + 1]!;
    if (sum > 0xffff) sum -= 0xffff;
  }
  return sum;
}

/** @throws Error for a frame that is not one of TCP */
export function readFrame(frame: Uint8Array): ReadFrame {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  const isTagged = view.getUint16(12) === 0x8100;
  const typeAt = isTagged ? 16 : 12;
  const at = typeAt + 2;
  const version = view.getUint16(typeAt) === 0x0800 ? 4 : 6;
  if (version === 6 && view.getUint16(typeAt) !== 0x86dd) throw new Error('neither IPv4 nor IPv6');
  const wrong: string[] = [];
  const ipBytes = version === 4 ? (frame[at]! & 15) * 4 : 40;
  const end = version === 4 ? at + view.getUint16(at + 2) : at + 40 + view.getUint16(at + 4);
  if (frame[at]! >> 4 !== version) wrong.push('version');
  if (end > frame.length) wrong.push('length');
  if (frame[at + (version === 4 ? 9 : 6)] !== 6) throw new Error('not TCP');
  if (version === 4 && sumOf(frame.subarray(at, at + ipBytes)) !== 0xffff) wrong.push('IP checksum');
  const [fromAt, addressBytes] = version === 4 ? [at + 12, 4] : [at + 8, 16];
  const from = frame.subarray(fromAt, fromAt + addressBytes);
  const to = frame.subarray(fromAt + addressBytes, fromAt + 2 * addressBytes);
  const tcp = frame.subarray(at + ipBytes, end);
  const pseudo = Uint8Array.of(0, 6, tcp.length >> 8, tcp.length & 0xff);
  if (sumOf(from, to, pseudo, tcp) !== 0xffff) wrong.push('TCP checksum');
  const t = at + ipBytes;
  const headerBytes = (tcp[12]! >> 4) * 4;
  return {
    destination: hex(frame.subarray(0, 6)),
    source: hex(frame.subarray(6, 12)),
    tag: isTagged ? view.getUint16(14) : undefined,
    version,
    hopLimit: frame[at + (version === 4 ? 8 : 7)]!,
    trafficClass: version === 4 ? frame[at + 1]! : (view.getUint16(at) >> 4) & 0xff,
    from: hex(from),
    to: hex(to),
    sourcePort: view.getUint16(t),
    destinationPort: view.getUint16(t + 2),
    sequence: view.getUint32(t + 4),
    acknowledgement: view.getUint32(t + 8),
    flags: [...'FSRPAUEC'].filter((_, bit) => ((tcp[13]! >> bit) & 1) === 1).join(''),
    window: view.getUint16(t + 14),
    options: optionsOf(tcp.subarray(20, headerBytes)),
    payload: tcp.slice(headerBytes),
    wrong,
  };
}

function optionsOf(bytes: Uint8Array): number[][] {
  const options: number[][] = [];
  for (let at = 0; at < bytes.length && bytes[at] !== 0; ) {
    const isPad = bytes[at] === 1;
    const length = isPad ? 1 : bytes[at + 1]!;
    if (!isPad) options.push([bytes[at]!, ...bytes.subarray(at + 2, at + length)]);
    at += length;
  }
  return options;
}
