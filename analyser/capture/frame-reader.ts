/** Reads frames of the link types that captures of InfiniBand and RoCE use. */
import {
  type DecodedFrame,
  decodeEthernet,
  decodeEtherType,
  decodeInfiniband,
  decodeInternet,
} from '../../wire/index.ts';
import {
  COOKED_OUTGOING,
  ERF_ETHERNET_PAD_BYTES,
  ERF_EXTENSION_BYTES,
  ERF_MORE_HEADERS,
  ErfType,
  erfHeader,
  LinkType,
  linuxCooked,
  linuxCooked2,
} from './capture-layouts.ts';

/** A frame in a form that this reader does not support. */
interface UnreadFrame {
  readonly kind: 'unread';
  readonly reason: string;
}

export type ReadFrame = DecodedFrame | UnreadFrame;

/** @param wireBytes length of the frame on the wire, if the capture cut it */
export function readFrame(linkType: number, bytes: Uint8Array, wireBytes = bytes.length): ReadFrame {
  switch (linkType) {
    case LinkType.ETHERNET:
      return decodeEthernet(bytes, wireBytes);
    case LinkType.INFINIBAND:
      return decodeInfiniband(bytes, wireBytes);
    case LinkType.ERF:
      return readErf(bytes);
    case LinkType.LINUX_COOKED:
      if (bytes.length < linuxCooked.sizeBytes) return cutWithin('Linux cooked header');
      return decodeEtherType(bytes, linuxCooked.sizeBytes, linuxCooked.decode(bytes).protocol, wireBytes);
    case LinkType.LINUX_COOKED_2:
      if (bytes.length < linuxCooked2.sizeBytes) return cutWithin('Linux cooked header');
      return decodeEtherType(bytes, linuxCooked2.sizeBytes, linuxCooked2.decode(bytes).protocol, wireBytes);
    case LinkType.NULL:
    case LinkType.LOOP:
      return decodeInternet(bytes, FAMILY_BYTES, wireBytes);
    case LinkType.RAW_BSD:
    case LinkType.RAW_OPENBSD:
    case LinkType.RAW:
    case LinkType.IPV4:
    case LinkType.IPV6:
      return decodeInternet(bytes, 0, wireBytes);
    default:
      return { kind: 'unread', reason: `link type ${linkType}` };
  }
}

/** Address family before a packet of a loopback interface; the version field of the packet repeats it. */
const FAMILY_BYTES = 4;

const cutWithin = (what: string): DecodedFrame => ({ kind: 'cut', reason: `cut within the ${what}` });

/** A record states the packet's length on the wire itself. */
function readErf(bytes: Uint8Array): ReadFrame {
  if (bytes.length < erfHeader.sizeBytes) return cutWithin('ERF record header');
  const { type, recordLength, wireLength } = erfHeader.decode(bytes);
  let at: number = erfHeader.sizeBytes;
  for (let more = type; (more & ERF_MORE_HEADERS) !== 0; at += ERF_EXTENSION_BYTES) {
    if (at + ERF_EXTENSION_BYTES > bytes.length) return cutWithin('ERF extension header');
    more = bytes[at]!;
  }
  const end = Math.min(bytes.length, recordLength);
  const packetAt = (start: number): Uint8Array => bytes.subarray(start, Math.min(end, start + wireLength));
  switch (type & ~ERF_MORE_HEADERS) {
    case ErfType.INFINIBAND:
      return decodeInfiniband(packetAt(at), wireLength);
    case ErfType.ETHERNET:
    case ErfType.COLOR_ETHERNET:
    case ErfType.DSM_COLOR_ETHERNET:
    case ErfType.COLOR_HASH_ETHERNET:
      return decodeEthernet(packetAt(at + ERF_ETHERNET_PAD_BYTES), wireLength);
    case ErfType.IPV4:
    case ErfType.IPV6:
      return decodeInternet(packetAt(at), 0, wireLength);
    default:
      return { kind: 'unread', reason: `ERF record of type ${type & ~ERF_MORE_HEADERS}` };
  }
}

/** Place of capture of a frame, as far as its own bytes tell. */
export interface SeenAt {
  /** Number of the device; 0 if none is given. */
  readonly device: number;
  readonly direction: 'unknown' | 'inbound' | 'outbound';
}

const UNKNOWN: SeenAt = { device: 0, direction: 'unknown' };

/** Device and direction of the capturing host, in a frame of link type 113 or 276. */
export function seenAt(linkType: number, bytes: Uint8Array): SeenAt {
  if (linkType === LinkType.LINUX_COOKED && bytes.length >= linuxCooked.sizeBytes)
    return { device: 0, direction: directionOf(linuxCooked.decode(bytes).packetType) };
  if (linkType !== LinkType.LINUX_COOKED_2 || bytes.length < linuxCooked2.sizeBytes) return UNKNOWN;
  const { packetType, deviceIndex } = linuxCooked2.decode(bytes);
  return { device: deviceIndex, direction: directionOf(packetType) };
}

const directionOf = (packetType: number): SeenAt['direction'] =>
  packetType === COOKED_OUTGOING ? 'outbound' : 'inbound';
