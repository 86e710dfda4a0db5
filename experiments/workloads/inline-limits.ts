/**
 * How many bytes of payload a request can carry: a WQE has up to 63 units of 16 bytes, and inline data begin again in each 64 bytes,
 * after a header of 4. What stands before them is the control segment and, of a WRITE or a datagram, where it goes.
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
