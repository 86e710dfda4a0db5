/** Messages of RDMAP over DDP in words. Source: RFC 5041, 4 (DDP); RFC 5040, 4 (RDMAP); RFC 7306, 5 and 6 (atomics, immediate data). */
import { bits8, bytes as bytesField, layout, u8, u32, u64 } from '../../../base/index.ts';
import { hex } from '../address-text.ts';

const tagged = layout(
  'tagged DDP segment',
  { sizeBytes: 14, byteOrder: 'big', source: 'RFC 5041, 4.2' },
  {
    isTagged: bits8(0, 7, 7),
    isLast: bits8(0, 6, 6),
    ddpVersion: bits8(0, 1, 0),
    rdmapVersion: bits8(1, 7, 6),
    opcode: bits8(1, 3, 0),
    steeringTag: u32(2),
    offset: bytesField(6, 8),
  },
);
const untagged = layout(
  'untagged DDP segment',
  { sizeBytes: 18, byteOrder: 'big', source: 'RFC 5041, 4.3' },
  { invalidated: u32(2), queue: u32(6), message: u32(10), offset: u32(14) },
);
const readRequest = layout(
  'RDMAP READ request',
  { sizeBytes: 28, byteOrder: 'big', source: 'RFC 5040, 4.4' },
  { sinkTag: u32(0), sinkOffset: u64(4), bytes: u32(12), sourceTag: u32(16), sourceOffset: u64(20) },
);
const atomicRequest = layout(
  'RDMAP atomic request',
  { sizeBytes: 52, byteOrder: 'big', source: 'RFC 7306, 5.2.1' },
  {
    operation: bits8(3, 3, 0),
    request: u32(4),
    steeringTag: u32(8),
    offset: u64(12),
    data: u64(20),
    compare: u64(36),
  },
);
const atomicResponse = layout(
  'RDMAP atomic response',
  { sizeBytes: 12, byteOrder: 'big', source: 'RFC 7306, 5.2.2' },
  { request: u32(0), original: u64(4) },
);
const terminate = layout(
  'RDMAP terminate control',
  { sizeBytes: 4, byteOrder: 'big', source: 'RFC 5040, 4.8' },
  {
    high: bits8(0, 7, 4),
    low: bits8(0, 3, 0),
    code: u8(1),
    quoted: bits8(2, 7, 5),
    mirrored: bits8(2, 2, 0),
  },
);

const opcodeNames = [
  'WRITE',
  'READ request',
  'READ response',
  'SEND',
  'SEND with invalidate',
  'SEND solicited',
  'SEND solicited with invalidate',
  'TERMINATE',
  'IMMEDIATE',
  'IMMEDIATE solicited',
  'ATOMIC request',
  'ATOMIC response',
] as const;
const Operation = {
  WRITE: 0,
  READ_REQUEST: 1,
  READ_RESPONSE: 2,
  TERMINATE: 7,
  ATOMIC_REQUEST: 10,
  ATOMIC_RESPONSE: 11,
} as const;
const INVALIDATES: readonly number[] = [4, 6];
const TAGGED: readonly number[] = [Operation.WRITE, Operation.READ_RESPONSE];

export interface RdmapWords {
  /** Name of the message. */
  readonly name: string;
  readonly words: string;
  readonly isTrouble: boolean;
}

/** Whether a DDP segment can begin with these bytes: checks its versions, its opcode, and whether that opcode is tagged. */
export function isRdmap(segment: Uint8Array): boolean {
  if (segment.length < tagged.sizeBytes) return false;
  const { isTagged, ddpVersion, rdmapVersion, opcode } = tagged.decode(segment);
  return (
    ddpVersion === 1 &&
    rdmapVersion === 1 &&
    opcode < opcodeNames.length &&
    (isTagged === 1) === TAGGED.includes(opcode)
  );
}

/**
 * Words for a segment accepted by {@link isRdmap}.
 * @param segment as far as it was captured
 * @param segmentBytes its length on the wire
 */
export function rdmapWords(segment: Uint8Array, segmentBytes: number): RdmapWords {
  const { isLast, opcode, steeringTag } = tagged.decode(segment);
  const name = opcodeNames[opcode]!;
  const last = isLast === 1 ? '' : ', more follows';
  if (TAGGED.includes(opcode)) {
    const offset = new DataView(segment.buffer, segment.byteOffset).getBigUint64(6);
    const words = `${name}, ${segmentBytes - tagged.sizeBytes} bytes at ${hex(offset)} STag ${hex(steeringTag)}${last}`;
    return { name, words, isTrouble: false };
  }
  if (segment.length < untagged.sizeBytes) return { name, words: name, isTrouble: false };
  const { message, offset, invalidated } = untagged.decode(segment);
  const data = segment.subarray(untagged.sizeBytes);
  const dataBytes = segmentBytes - untagged.sizeBytes;
  const start = `${name}, message ${message}`;
  if (opcode === Operation.TERMINATE)
    return { name, words: `${start}${terminateWords(data)}`, isTrouble: true };
  const detail =
    opcode === Operation.READ_REQUEST
      ? readRequestWords(data)
      : opcode === Operation.ATOMIC_REQUEST
        ? atomicRequestWords(data)
        : opcode === Operation.ATOMIC_RESPONSE
          ? atomicResponseWords(data)
          : `, ${dataBytes} bytes${offset === 0 ? '' : ` at offset ${offset}`}`;
  const invalidates = INVALIDATES.includes(opcode) ? `, invalidates STag ${hex(invalidated)}` : '';
  return { name, words: `${start}${detail}${invalidates}${last}`, isTrouble: false };
}

function readRequestWords(data: Uint8Array): string {
  if (data.length < readRequest.sizeBytes) return '';
  const { bytes, sourceOffset, sourceTag, sinkOffset, sinkTag } = readRequest.decode(data);
  return `, ${bytes} bytes from ${hex(sourceOffset)} STag ${hex(sourceTag)} to ${hex(sinkOffset)} STag ${hex(sinkTag)}`;
}

function atomicRequestWords(data: Uint8Array): string {
  if (data.length < atomicRequest.sizeBytes) return '';
  const { operation, request, steeringTag, offset } = atomicRequest.decode(data);
  const name = { 0: 'fetch and add', 2: 'compare and swap' }[operation] ?? `operation ${operation}`;
  return `, ${name} ${hex(request)} at ${hex(offset)} STag ${hex(steeringTag)}`;
}

function atomicResponseWords(data: Uint8Array): string {
  if (data.length < atomicResponse.sizeBytes) return '';
  const { request, original } = atomicResponse.decode(data);
  return ` to ${hex(request)}, was ${hex(original)}`;
}

const layerNames = ['RDMAP', 'DDP', 'MPA'] as const;

/** Codes by layer, type and number. */
const errorNames: Readonly<Record<string, string>> = {
  '0.0.0': 'local catastrophic error',
  '0.1.0': 'STag not valid',
  '0.1.1': 'base or bounds violation',
  '0.1.2': 'access rights violation',
  '0.1.3': 'STag not of this stream',
  '0.1.4': 'tagged offset wraps',
  '0.1.9': 'STag cannot be invalidated',
  '0.2.5': 'RDMAP version not valid',
  '0.2.6': 'unexpected opcode',
  '0.2.7': 'catastrophic error of this stream',
  '0.2.8': 'catastrophic error of all streams',
  '0.2.9': 'STag cannot be invalidated',
  '1.0.0': 'local catastrophic error',
  '1.1.0': 'STag not valid',
  '1.1.1': 'base or bounds violation',
  '1.1.2': 'STag not of this stream',
  '1.1.3': 'tagged offset wraps',
  '1.1.4': 'DDP version not valid',
  '1.2.1': 'queue number not valid',
  '1.2.2': 'no buffer for the message',
  '1.2.3': 'message number out of range',
  '1.2.4': 'message offset not valid',
  '1.2.5': 'message longer than its buffer',
  '1.2.6': 'DDP version not valid',
  '2.0.1': 'TCP connection lost',
  '2.0.2': 'wrong CRC',
  '2.0.3': 'marker and length disagree',
  '2.0.4': 'request or reply not valid',
  '2.0.5': 'local catastrophic error',
  '2.0.6': 'too few READs at once',
  '2.0.7': 'no common ready-to-receive message',
};

/**
 * Layer, type and code. Linux' siw swaps the nibbles and flags of the word, which its flags reveal (RFC 5040 has layer
 * and quoted headers in the high bits).
 */
function terminateWords(data: Uint8Array): string {
  if (data.length < terminate.sizeBytes) return '';
  const { high, low, code, quoted, mirrored } = terminate.decode(data);
  const isMirrored = quoted === 0 && mirrored !== 0;
  const [layer, type] = isMirrored ? [low, high] : [high, low];
  const name = errorNames[`${layer}.${type}.${code}`];
  const which = `${layerNames[layer] ?? `layer ${layer}`}, type ${type}, code ${hex(code)}`;
  return `: ${name === undefined ? '' : `${name} (`}${which}${name === undefined ? '' : ')'}`;
}
