/** Addresses of ports as people read them. */
import { viewOf } from '../../base/index.ts';

/** A GID in Linux' notation. */
export function gidText(bytes: Uint8Array, at = 0): string {
  const view = viewOf(bytes);
  const groups = Array.from({ length: 8 }, (_, group) => view.getUint16(at + 2 * group));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return `::ffff:${Array.from(bytes.subarray(at + 12, at + 16)).join('.')}`;
  return groups.map((group) => group.toString(16).padStart(4, '0')).join(':');
}

export const macText = (bytes: Uint8Array, at: number): string =>
  Array.from(bytes.subarray(at, at + 6), (byte) => byte.toString(16).padStart(2, '0')).join(':');

export const macOfNumber = (mac: number): string =>
  (mac.toString(16).padStart(12, '0').match(/../g) ?? []).join(':');
