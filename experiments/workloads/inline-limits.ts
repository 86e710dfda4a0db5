/**
 * Payload that a request can carry inline: a WQE has up to 63 units of 16 bytes, and inline data restart in each 64
 * bytes, after a header of 4. The control segment precedes them and, for a WRITE or a datagram, the destination.
 */
import {
  controlSegment,
  datagramSegment,
  inlineHeader,
  remoteAddressSegment,
  wqeUnitBytes,
  wqeUnitsMax,
} from '../../abi/index.ts';
import type { PerfConnection, PerfVerb } from './perf-plan.ts';

const wqeBytesMax = wqeUnitsMax * wqeUnitBytes;
const lineBytes = 64;

export function inlineMaxOf(connection: PerfConnection = 'RC', verb: PerfVerb = 'send'): number {
  const addressBytes =
    connection === 'UD' ? datagramSegment.sizeBytes : verb === 'send' ? 0 : remoteAddressSegment.sizeBytes;
  const start = controlSegment.sizeBytes + addressBytes;
  const headers = Math.ceil(wqeBytesMax / lineBytes) - Math.floor(start / lineBytes);
  return wqeBytesMax - start - headers * inlineHeader.sizeBytes;
}
